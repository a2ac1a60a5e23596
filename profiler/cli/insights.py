"""`profiler insights`: at most six statements about a version, each with the numbers that it rests on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_filters, add_json, ask, print_document

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_DESCRIPTION = """\
At most six statements about VERSION (a report file, run id, family/version or version): what limits it, what
changed against the baseline, and what to try, those that concern most of the time first. Every statement
names its metrics, their values, the baseline's values, the evidence, and whether every input was valid. What
the data cannot tell is reported as unknown, with the lines of metrics.txt to collect; a missing counter never
becomes advice. For a version whose results are wrong, only that is reported.

Of several launches the longest is examined, leaving out kernels of libraries; --kernel chooses another. The
baseline is the nearest correct ancestor in the lineage's catalogue unless --against names one; a report file
has none. Each lever says in how many known steps of optimisation it helped, and what would refute it."""

_EPILOG = """\
exit codes: 0 · 2 an input cannot be read or used · 3 nothing is known about the version."""


def add(commands: Commands) -> None:
    """Add `insights`."""
    command = commands.add_parser(
        "insights",
        help="what limits a version, what changed, and what to try next",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("version", metavar="VERSION", help="what to look at")
    command.add_argument("--against", metavar="BASELINE", help="the baseline")
    shape = command.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--markdown", action="store_true", help="print Markdown for a pull request")
    add_filters(command, "kernel", "workload", "gpu")
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Look, and print."""
    from profiler.documents.insights import insights_of_name

    return print_document(ask(insights_of_name, arguments, name=arguments.version), arguments)
