"""`profiler compare`: what differs between two versions, runs or plain report files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from profiler.cli.output import add_evidence, add_filters, add_json, evidence_of, print_json
from profiler.errors import CannotJudge, ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.compare import Comparison, StoreOpener
    from profiler.evidence import MetricTable, Side
    from profiler.gate import GateReport

_DESCRIPTION = """\
Compare B with A: the latency of calls mode by mode, counters launch by launch. A and B are report files (no
store is opened then), run ids, family/version, or a version whose name is unique; looked for in this order.
A version as one run has it is version~RUN_ID.

Latencies that one run took in alternating rounds are judged by these rounds; those of two runs by the noise
floor of the GPU, and without one they are unclear.

Kernels with different names never pair; what cannot be paired is listed. ncu's duration is not latency: it is
measured under the profiler, and a launch under 50 µs that moved is unclear, not worse.

Two versions that were not both measured are compared by their static and their modelled facts, each kind by
itself, on every workload and architecture that both have: --evidence, --workload and --gpu choose. A version
whose results are wrong has no speed and no verdict: it stands as wrong."""

_EPILOG = """\
exit codes: 0, unless an input cannot be read or used (2). With --fail, what `profiler gate B --baseline A`
says of these two sides, with the reason and what would settle it below: 0 nothing got worse · 1 something
did (one launch a side counts) · 3 could not judge: unclear, missing, not comparable, or nothing was compared.
Time decides, then exact counts and facts; a counter that wobbles weighs where --on names it, and is unclear
there without A/A pairs. --top does not change the exit code."""


def add(commands: Commands) -> None:
    """Add `compare`."""
    compare = commands.add_parser(
        "compare",
        help="what differs between two versions, runs or report files",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.add_argument("a", metavar="A", help="the side to judge against")
    compare.add_argument("b", metavar="B", help="the side that is judged")
    shape = compare.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--markdown", action="store_true", help="print Markdown for a pull request")
    shape.add_argument("--all", action="store_true", help="print every metric of every pair, not what moved")
    add_filters(compare, "kernel", "top", "workload", "gpu")
    add_evidence(compare)
    compare.add_argument(
        "--across",
        action="append",
        choices=("driver", "ncu"),
        default=[],
        help="driver or ncu version may differ: that is the question (may be repeated)",
    )
    compare.add_argument(
        "--fail", action="store_true", help="judge as `profiler gate` does, and make that the exit code"
    )
    compare.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="CONCEPT",
        help="with --fail: judge this concept too (repeatable)",
    )
    compare.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare, print, and with --fail judge."""
    from profiler.cli import comparison, failing, output
    from profiler.compare import comparison as compare_comparison
    from profiler.evidence import metric_table

    if arguments.on and not arguments.fail:
        raise ProfilerError("--on says which concepts --fail judges: add --fail, or leave --on out")
    table, opener = metric_table.load_metrics(), lru_cache(maxsize=1)(output.open_store)
    compare_comparison.check_concepts(table, arguments.on)
    pairs, facts = _pairs(arguments, opener)
    if not arguments.fail:
        output.note_forgotten((arguments.a, arguments.b), opener)
    found = _compared(arguments, pairs, table, opener)
    every_cell = facts and not arguments.kernel
    told = failing.judge(arguments, found, table, opener, every_cell=every_cell) if arguments.fail else None
    limit = arguments.top or (None if arguments.json else comparison.SHOWN)
    _print(arguments, [one.top(limit) for one in found], told)
    return told.code if told else 0


def _pairs(arguments: argparse.Namespace, opener: StoreOpener) -> tuple[list[tuple[Side, Side]], bool]:
    """The sides of every comparison, and whether they are all the facts that two versions share."""
    from profiler.compare import resolve_names
    from profiler.history.without_results import versions_without_results_explained

    names, where = (arguments.a, arguments.b), (arguments.workload, arguments.gpu)
    kind = evidence_of(arguments)
    try:
        with versions_without_results_explained(names, opener):
            if pairs := resolve_names.find_fact_pairs(names, opener, *where, kind):
                return pairs, True
            a, b = resolve_names.resolve_all(names, opener, *where, kind)
            return [(a, b)], False
    except resolve_names.NothingShared as error:
        if arguments.fail:
            raise CannotJudge(str(error)) from None
        raise


def _compared(
    arguments: argparse.Namespace,
    pairs: Sequence[tuple[Side, Side]],
    table: MetricTable,
    opener: StoreOpener,
) -> list[Comparison]:
    from profiler.compare import NoiseModel
    from profiler.compare import comparison as compare_comparison

    noise = NoiseModel.of_store(opener)
    return [
        compare_comparison.compare(
            a,
            b,
            table,
            across=arguments.across,
            kernel=arguments.kernel,
            noise=noise,
        )
        for a, b in pairs
    ]


def _print(arguments: argparse.Namespace, shown: Sequence[Comparison], told: GateReport | None) -> None:
    """Print the comparison in the form asked for, and below it what --fail makes of it."""
    from profiler.cli import comparison, comparison_json, facts, failing
    from profiler.documents import GateDocument
    from profiler.evidence import Evidence

    if arguments.json:
        print_json(failing.with_gate(comparison_json.documents(shown), told))
        return
    if shown[0].a.evidence is not Evidence.MEASURED:
        facts.print_facts(shown, everything=arguments.all, markdown=arguments.markdown)
    elif arguments.markdown:
        print(comparison.markdown(shown[0]), end="")
    else:
        comparison.print_text(shown[0], everything=arguments.all)
    if told and arguments.markdown:
        print(f"\n{GateDocument(told).to_markdown()}", end="")
    else:
        failing.print_text(told)
