"""`profiler compare`: what differs between two versions, runs or plain report files, or many and one."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import (
    add_across,
    add_evidence,
    add_filters,
    add_json,
    add_metrics,
    add_pairing,
    evidence_of,
    note_forgotten,
    open_store,
    print_document,
    print_lines,
    print_table,
    say,
    write_document,
)
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.compare import Comparison, MetricChange, PairComparison
    from profiler.documents import ComparisonDocument, Document, VersionTableDocument

_DETAILED = 5  # pairs whose counters are listed unasked
_NAMED = 10  # missing concepts that a line names
_PLACES_OF_FACTS = 3  # workloads and architectures of a table of many versions that are printed unasked
_SUFFIXES = (".csv", ".parquet", ".md", ".json")
_OF_TWO_ALONE = {"--top": "top", "--fail": "fail", "--all": "all"}  # options that say nothing of many

_DESCRIPTION = """\
Compare B with A: the latency of calls mode by mode, counters launch by launch. A and B are report files (no
store is opened then), run ids, family/version, or a version whose name is unique; looked for in this order.
A version as one run has it is version~RUN_ID.

Latencies that one run took in alternating rounds are judged by these rounds; those of two runs by the noise
floor of the GPU, and without one they are unclear.

Kernels of one name pair; what cannot be paired is listed. Kernels whose names differ are a pair where --pair
or `profiler pair` says so. Where that is safe one is proposed, as for gemm_v6 and gemm_v7, which is said
beside it; --no-guess refuses. ncu's duration is not latency: it is measured under the profiler, and a launch
under 50 µs that moved is unclear, not worse. Without a declared workload or pair, a changed grid and the same
code are another workload, not comparable.

Two versions that were not both measured are compared by their static and their modelled facts, each kind by
itself, on every workload and architecture that both have: --evidence, --workload and --gpu choose. A version
whose results are wrong has no speed and no verdict: it stands as wrong.

Three names or more, or --against BASE: a table of all of them against BASE, else against the first. It has
the time on every workload and GPU, then counters and facts (--metrics), all judged as one table. A run stands
for all its versions. What is wrong or not measured comes last, with the reason or the command."""

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
    compare.add_argument(
        "names", nargs="+", metavar="NAME", help="A, which is judged against, and B; or a table of more"
    )
    compare.add_argument("--against", metavar="BASE", help="a table of all names against this one")
    add_metrics(compare, "which counters and facts the table has")
    compare.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="FILE",
        help="write there too, by its suffix .csv, .parquet, .md or .json (repeatable); CSV and Parquet "
        "have a row a number, with its state, verdict and interval",
    )
    shape = compare.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--markdown", action="store_true", help="print Markdown for a pull request")
    shape.add_argument("--all", action="store_true", help="print every metric of every pair, not what moved")
    add_filters(compare, "kernel", "top", "workload", "gpu")
    add_evidence(compare)
    add_across(compare)
    add_pairing(compare)
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
    """Compare, print, write, and with --fail judge."""
    from profiler.documents import compare_names
    from profiler.evidence import load_metrics

    if arguments.on and not arguments.fail:
        raise ProfilerError("--on says which concepts --fail judges: add --fail, or leave --on out")
    files = [_destination(Path(name)) for name in arguments.out]
    if arguments.against is not None or len(arguments.names) > 2:
        return _run_table(arguments, files)
    if len(arguments.names) < 2:
        raise ProfilerError(f"{arguments.names[0]} alone: name what to hold it against, or --against BASE")
    if arguments.metrics:
        raise ProfilerError("--metrics is of a table of many: name a third version, or --against BASE")
    names, opener = tuple(arguments.names), lru_cache(maxsize=1)(open_store)
    chosen = ("workload", "gpu", "kernel", "across", "top", "pairs", "guess", "on")
    options = {name: getattr(arguments, name) for name in chosen} | {"evidence": evidence_of(arguments)}
    document = compare_names(names[0], names[1], load_metrics(), opener, with_gate=arguments.fail, **options)
    if not arguments.fail:
        note_forgotten(names, opener)
    _write(document, files)
    return print_document(document, arguments, print_text)


def _run_table(arguments: argparse.Namespace, files: Sequence[Path]) -> int:
    """Compare many with one."""
    from profiler.documents import compare_many
    from profiler.evidence import load_metrics

    for option, name in _OF_TWO_ALONE.items():
        if getattr(arguments, name):
            raise ProfilerError(
                f"{option} is of two names: `profiler gate NAME… --baseline BASE` judges many"
                if option == "--fail"
                else f"{option} is of two names; a table has --metrics, --workload and --kernel"
            )
    opener = lru_cache(maxsize=1)(open_store)
    chosen = ("against", "metrics", "workload", "gpu", "kernel", "across", "pairs", "guess")
    options = {name: getattr(arguments, name) for name in chosen}
    kind = evidence_of(arguments)
    document = compare_many(
        arguments.names, load_metrics(), opener, evidence=[kind] if kind else [], **options
    )
    note_forgotten([*arguments.names, *filter(None, [arguments.against])], opener)
    _write(document, files)
    return print_document(document, arguments, print_table_text)


def _destination(path: Path) -> Path:
    """A file to write, whose suffix says the form; ProfilerError for one that says nothing."""
    if path.suffix not in _SUFFIXES:
        raise ProfilerError(f"--out {path}: the suffix says the form: one of {', '.join(_SUFFIXES)}")
    if not path.parent.is_dir():
        raise ProfilerError(f"--out {path}: there is no folder {path.parent}")
    return path


def _write(document: Document, files: Sequence[Path]) -> None:
    for path in files:
        write_document(document, path)


def print_table_text(document: VersionTableDocument, arguments: argparse.Namespace) -> None:
    """Print a sentence a version, then a table for each workload and kind of evidence."""
    from itertools import groupby

    from profiler.evidence import Evidence

    say(document.title)
    print_lines(document.sentences, "  ")
    for evidence, group in groupby(document.sections(), key=lambda section: section.evidence):
        sections = list(group)
        shown = sections if evidence is Evidence.MEASURED else sections[:_PLACES_OF_FACTS]
        for section in shown:
            say(f"\n{section.heading}")
            print_table(section.header, section.rows, right=range(1, len(section.header)))
        if len(sections) > len(shown):
            say(f"\nand {evidence} on {len(sections) - len(shown)} more: --workload, --gpu, or --out FILE")


def print_text(document: ComparisonDocument, arguments: argparse.Namespace) -> None:
    """Print the comparison: every metric of every pair with --all, else what moved where time did."""
    from profiler.cli.gate import print_gate
    from profiler.documents.comparison_text import PAIRS_SHOWN

    shown = document.shown(PAIRS_SHOWN)
    if document.is_measured:
        _print_measured(shown[0], arguments.all)
    else:
        _print_facts(shown, arguments.all)
    print_gate(document.gate)


def _print_measured(comparison: Comparison, everything: bool) -> None:
    from profiler.documents import comparison_text as text

    print_head(comparison)
    if comparison.latency:
        say("\nlatency of calls")
        print_table(text.LATENCY_HEAD, text.latency_rows(comparison), right=(1, 2, 3, 4))
        print_lines(text.latency_notes(comparison), "  ")
    if comparison.pairs:
        say(f"\n{text.NOT_LATENCY}")
        print_table(text.DURATION_HEAD, text.duration_rows(comparison), right=(1, 2, 3))
        print_lines((*text.pairing_notes(comparison), *text.undecided_reasons(comparison)), "  ")
    elif comparison.a.launches or comparison.b.launches or not comparison.latency:
        say("\nno launch of A has a partner in B: --pair A=B says which kernels are one under two names")
    if comparison.hidden_pairs:
        say(f"  {text.hidden_pairs(comparison)}: --top N")
    print_unmatched(comparison)
    pairs = comparison.pairs if everything else _pairs_that_moved(comparison.pairs)
    said: set[str] = set()  # what several launches lack alike is said below the first
    for pair in pairs if everything else pairs[:_DETAILED]:
        _print_pair(pair, everything)
        lines = [] if everything else _missing_lines(pair)
        print_lines([line for line in lines if line not in said], "  ")
        said.update(lines)
    if not everything and len(pairs) > _DETAILED:
        say(f"\nand the counters of {len(pairs) - _DETAILED} more that moved: --all, or --kernel PATTERN")
    elif comparison.pairs and not pairs:
        say("\nno duration is better or worse; the counters: --all, or --kernel PATTERN")


def print_head(comparison: Comparison) -> None:
    """Print which sides they are, and whether they may be compared."""
    from profiler.documents.comparison_text import warnings

    for name, side in (("A", comparison.a), ("B", comparison.b)):
        ncu = side.session.ncu_version or "version unknown"
        say(f"{name}  {side.label}  ({', '.join(side.gpus) or 'GPU unknown'}, ncu {ncu})")
    noted = warnings(comparison)
    if comparison.comparable:
        say(f"Comparable: yes{', but note' if noted else ''}")
    else:
        say("Comparable: no")
    say(
        "  same: "
        + ", ".join(f"{field} {value}" for field, value in comparison.same if field != "command line")
    )
    print_lines(noted, "  ")


def print_unmatched(comparison: Comparison) -> None:
    """Print the launches that have no partner, and those that are ambiguous."""
    from profiler.documents.comparison_text import describe_launch, pair_options, unmatched
    from profiler.evidence import brief_list

    print_lines(unmatched(comparison))
    for group in comparison.ambiguous:
        a, b = (
            brief_list([describe_launch(comparison, launch) for launch in side])
            for side in (group.a, group.b)
        )
        say(f"ambiguous: {group.base_name}: {group.why}\n  A: {a}\n  B: {b}")
    print_lines(pair_options(comparison), "  ")


def _pairs_that_moved(pairs: Sequence[PairComparison]) -> Sequence[PairComparison]:
    return pairs if len(pairs) == 1 else [pair for pair in pairs if pair.verdict.traits.moved]


def _print_pair(pair: PairComparison, everything: bool) -> None:
    from profiler.compare import split_repeats
    from profiler.documents.comparison_text import change_numbers, derivations, repeated

    changes = (change for change in pair.metrics if not change.verdict.traits.quiet)
    shown, repeats = (list(pair.metrics), []) if everything else split_repeats(changes)
    groups = list(dict.fromkeys(change.group for change in shown))
    shown.sort(key=lambda change: (groups.index(change.group), -_size(change)))
    what = "every metric" if everything else "what moved"
    say(f"\n{pair.kernel}: {what}, largest change first within a group")
    rows, last = [], None
    for change in shown:
        group = "" if change.group == last else change.group
        rows.append((group, change.label, *change_numbers(change), change.verdict.label))
        last = change.group
    if rows:
        print_table(("group", "metric", "A", "B", "change", "verdict"), rows, right=(2, 3, 4))
        print_lines((*derivations(shown), *repeated(repeats)), "  ")
    else:
        say("  nothing beyond its threshold")


def _missing_lines(pair: PairComparison) -> list[str]:
    """The concepts of which a side has no number, a line for each reason."""
    from profiler.statistics import Verdict

    concepts_by_reason: dict[str, list[str]] = {}
    for change in pair.metrics:
        if change.verdict is Verdict.MISSING:
            concepts_by_reason.setdefault(change.reason, []).append(change.concept)
    lines = []
    for reason, concepts in concepts_by_reason.items():
        more = f" and {len(concepts) - _NAMED} more" if len(concepts) > _NAMED else ""
        lines.append(f"– {reason}: {', '.join(concepts[:_NAMED])}{more}")
    return lines


def _size(change: MetricChange) -> float:
    """The size of a change as it is shown: points for percentages, else per cent."""
    if change.a.number is None or change.b.number is None:
        return -1.0
    if change.unit == "%":
        return abs(change.b.number - change.a.number)
    return math.inf if change.change_pct is None else abs(change.change_pct)


def _print_facts(comparisons: Sequence[Comparison], everything: bool) -> None:
    """A table for each kind of evidence and each group of equal cells; without `everything`, what moved."""
    from profiler.documents.facts_comparison import FACTS_HEAD, facts_sections, wrong_sides

    first = comparisons[0]
    say(f"A  {first.a.label}\nB  {first.b.label}")
    print_lines(wrong_sides(first))
    for heading, tables in facts_sections(comparisons, everything=everything):
        say(f"\n{heading}")
        for table in tables:
            say(f"\n{table.cells}")
            if table.rows:
                print_table(FACTS_HEAD, table.rows, right=(1, 2, 3))
            else:
                say("nothing moved")
            if table.same and not everything:
                say(f"{table.same} metrics the same: --all")
            print_lines(table.unmatched)
