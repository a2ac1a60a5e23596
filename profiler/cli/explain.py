"""`profiler explain`: why B takes another time than A, from the counters of both."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import (
    add_across,
    add_filters,
    add_json,
    add_pairing,
    ask,
    note_forgotten,
    print_document,
)

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
Split the difference in time of every pair of launches into causes, in microseconds: work (instructions
issued), waiting by stall reason, parallelism (active warps), balance (active share of the cycles), clock, and
a residue that makes the sum exact (skew between ncu's replay passes). A and B are named as for `compare`.

The split is Little's law, T = I * L / (W * S * a * f), by the log-mean Divisia method. A factor whose counter
is missing is computed from others, and marked. Where too much is missing the split is coarser (waiting
undivided, or cycles and clock only) or absent; then the three counters that moved most are listed, with the
lines of metrics.txt to collect. A launch whose time moved less than its threshold is unchanged and is not
split."""

_EPILOG = """\
exit codes: 0, or 2 if an input cannot be read or used. With --fail, as `compare --fail`, with the reason:
0 nothing got worse · 1 something did · 3 could not judge, for instance because the two were not measured on
a GPU. --top does not change the exit code."""


def add(commands: Commands) -> None:
    """Add `explain`."""
    explain = commands.add_parser(
        "explain",
        help="why the time differs: work, waiting, parallelism, balance, clock",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    explain.add_argument("a", metavar="A", help="the baseline")
    explain.add_argument("b", metavar="B", help="the version to explain")
    shape = explain.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--markdown", action="store_true", help="print Markdown for a pull request")
    shape.add_argument("--all", action="store_true", help="also split launches whose verdict is unclear")
    add_filters(explain, "kernel", "top", "workload", "gpu")
    add_across(explain)
    add_pairing(explain)
    explain.add_argument("--fail", action="store_true", help="make the verdict the exit code")
    explain.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare, split, print, and with --fail judge."""
    from profiler.documents.explanation import explain_names

    document = ask(explain_names, arguments, with_gate=arguments.fail)
    if not arguments.fail:
        note_forgotten(arguments, arguments.a, arguments.b)
    return print_document(document, arguments)
