"""`profiler explain`: why B takes another time than A, from the counters of both."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import astuple
from functools import lru_cache
from typing import TYPE_CHECKING

from profiler.cli.compare import print_head, print_unmatched
from profiler.cli.output import (
    add_across,
    add_filters,
    add_json,
    add_pairing,
    note_forgotten,
    open_store,
    print_document,
    print_lines,
    print_table,
    say,
)

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import ExplanationDocument, UnmeasuredDocument
    from profiler.explain import Explanation

_DESCRIPTION = """\
Split the difference in time of every pair of launches into causes, in microseconds: work (instructions
issued), waiting by stall reason, parallelism (active warps), balance (active share of the cycles), clock, and
a residue that makes the sum exact (skew between ncu's replay passes). A and B are named as for `compare`.

It is Little's law, T = I * L / (W * S * a * f), split with the log-mean Divisia method. A factor without its
counter is computed from what stands for it, and says so. Where too much is missing the split is coarser
(waiting undivided, or cycles and clock) or there is none: then the three counters that moved most are named,
and the lines of metrics.txt to collect. A launch whose time moved less than its threshold is unchanged and
has no causes."""

_EPILOG = """\
exit codes: 0, unless an input cannot be read or used (2). With --fail, as `compare --fail`, with the reason
below: 0 nothing got worse, 1 something did, 3 could not judge, as where no GPU measured the two. --top does
not change the exit code."""


def add(commands: Commands) -> None:
    """Add `explain`."""
    explain = commands.add_parser(
        "explain",
        help="why a version takes another time: work, waiting, parallelism, balance, clock",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    explain.add_argument("a", metavar="A", help="the side to explain from")
    explain.add_argument("b", metavar="B", help="the side to explain")
    shape = explain.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--markdown", action="store_true", help="print Markdown for a pull request")
    shape.add_argument("--all", action="store_true", help="split launches whose verdict is unclear too")
    add_filters(explain, "kernel", "top", "workload", "gpu")
    add_across(explain)
    add_pairing(explain)
    explain.add_argument("--fail", action="store_true", help="make the verdict the exit code")
    explain.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare, split, print, and with --fail judge."""
    from profiler.documents import explain_names
    from profiler.evidence import load_metrics

    names, opener = (arguments.a, arguments.b), lru_cache(maxsize=1)(open_store)
    chosen = ("workload", "gpu", "kernel", "across", "top", "pairs", "guess")
    options = {name: getattr(arguments, name) for name in chosen}
    document = explain_names(*names, load_metrics(), opener, with_gate=arguments.fail, **options)
    if not arguments.fail:
        note_forgotten(names, opener)
    return print_document(document, arguments, print_text)


def print_text(document: ExplanationDocument | UnmeasuredDocument, arguments: argparse.Namespace) -> None:
    """Print the causes of every pair that moved; with --all the split of the unclear ones too."""
    from profiler.cli.gate import print_gate
    from profiler.documents import ExplanationDocument

    if isinstance(document, ExplanationDocument):
        _print_explanation(document, arguments.all)
        print_gate(document.gate)
    else:
        say(document.sentence)


def _print_explanation(document: ExplanationDocument, everything: bool) -> None:
    from profiler.documents import comparison_text as text
    from profiler.documents.explanation import NO_COUNTERS, explained, without_causes

    comparison, explanations = document.shown(text.PAIRS_SHOWN)
    print_head(comparison)
    if comparison.latency:
        say("\nlatency of calls, which decides")
        print_table(text.LATENCY_HEAD, text.latency_rows(comparison), right=(1, 2, 3, 4))
        print_lines(text.latency_notes(comparison), "  ")
    if comparison.pairs:
        say(f"\n{text.NOT_LATENCY}")
        print_table(text.DURATION_HEAD, text.duration_rows(comparison), right=(1, 2, 3))
    elif comparison.a.launches or comparison.b.launches or not comparison.latency:
        say("\nno launch of A has a partner in B: --pair A=B says which kernels are one under two names")
    else:
        say(f"\n{NO_COUNTERS}")
    print_lines((*text.pairing_notes(comparison), *text.undecided_reasons(comparison)), "  ")
    print_lines(without_causes(explanations, everything=everything), "  ")
    if comparison.hidden_pairs:
        say(f"  {text.hidden_pairs(comparison)}: --top N")
    print_unmatched(comparison)
    _print_causes(explained(explanations, everything=everything))
    _print_counters_to_collect(explanations)


def _print_causes(explanations: Sequence[Explanation]) -> None:
    from profiler.documents.explanation import CAUSES_HEAD, cause_rows
    from profiler.explain.sentence import split_notes

    for explanation in explanations:
        say(f"\n{explanation.kernel}: {explanation.sentence}")
        if explanation.split:
            print_table(CAUSES_HEAD, cause_rows(explanation), right=(1, 2))
            print_lines(split_notes(explanation.split, bool(explanation.causes)), "  ")


def _print_counters_to_collect(explanations: Sequence[Explanation]) -> None:
    from profiler.documents.explanation import COLLECT_HEAD, collect_heading
    from profiler.explain import counters_to_collect

    if lacking := counters_to_collect(explanations):
        say(f"\n{collect_heading(explanations)}")
        print_table(COLLECT_HEAD, [astuple(counter) for counter in lacking])
