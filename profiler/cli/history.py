"""`profiler history`: since when a metric is what it is, and what else changed there."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from profiler.cli.output import (
    add_evidence,
    add_filters,
    add_json,
    evidence_of,
    print_document,
    print_table,
    say,
)

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import HistoryDocument
    from profiler.history import History, Step, TrendPoint

_HEAD = (
    "kernel",
    "verdict",
    "size (95 %)",
    "level",
    "since",
    "can lie in",
    "machine code",
    "environment",
    "due to",
)
_DESCRIPTION = """\
The steps of a metric in the history of each kernel: where the level changed, by how much, in which runs that
can have been, and what else differed there: driver, ncu, CUDA, GPU, clocks, flags, and whether the machine
code did. A step with the same machine code and source is "changed", due to the environment.

CONCEPT is a concept of metrics.txt, an exact ncu name, or latency (the medians of timed calls). Runs come in
the order in which they were made. Where runs hold several versions each version has a history of its own, and
the newest run of each makes one over versions, in the catalogue's order.

A level that was there before is "back in a known state", and one that was left for an older one "did not
last": with the same machine code it is a state of the machine, and no verdict. A slow drift is no step.

A step needs 8 points, 2 of them after it. What the last point alone does is for `profiler compare` to say."""


def add(commands: Commands) -> None:
    """Add `history`."""
    history = commands.add_parser(
        "history",
        help="since when a metric is what it is",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    history.add_argument("concept", metavar="CONCEPT", help="a concept, latency, or an exact ncu name")
    history.add_argument("--version", metavar="VERSION", help="only this version, over its runs")
    add_filters(history, "family", "workload", "gpu", "kernel")
    add_evidence(history)
    add_json(history)
    history.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Find the steps and print them."""
    from profiler.cli.output import open_store
    from profiler.documents import find_history
    from profiler.evidence import load_metrics

    filters = {name: getattr(arguments, name) for name in ("family", "workload", "gpu", "kernel", "version")}
    filters["evidence"] = evidence_of(arguments)
    document = find_history(arguments.concept, load_metrics(), open_store(), **filters)
    return print_document(document, arguments, print_text)


def print_text(document: HistoryDocument, _arguments: argparse.Namespace) -> None:
    """Print one table for each family, workload, GPU and mode: a row a step, and in a line what has none."""
    from profiler.history.step_words import LAST_POINT, drift_words, shared_words

    for shared in document.shared:
        say(shared_words(shared))
    if document.shared:
        say()
    for heading, group in groupby(document.histories, key=_heading):
        histories = list(group)
        say(heading)
        rows = [_row(history, step) for history in histories for step in history.steps]
        if rows:
            print_table(_HEAD, rows)
        for history in histories:
            for drift in history.drifts:
                say(f"  {_kernel(history)} {drift_words(drift, history.series.unit)}")
        without_step = [
            _kernel(history)
            for history in histories
            if not history.steps and not history.drifts and not history.not_judged
        ]
        if without_step:
            say(f"  no step: {', '.join(without_step)}")
        _print_not_judged(histories)
        if pair := next((history.last_pair for history in histories if history.last_pair), None):
            names = [_name_to_compare(point, pair, histories[0].series.family) for point in pair]
            say(f"  {LAST_POINT}: profiler compare {names[0]} {names[1]}")
        say()


def _heading(history: History) -> str:
    from profiler.history.change_points import VERSIONS

    series = history.series
    where = ", ".join(filter(None, (series.workload, series.gpu or "", series.evidence, series.mode)))
    over = "over versions" if history.over == VERSIONS else "over runs"
    of = f" of {history.version}" if history.version else ""
    return f"{series.family}: {series.label}{of} {over} ({where})"


def _print_not_judged(histories: Sequence[History]) -> None:
    kernels_by_reason: dict[str, list[str]] = {}
    for history in histories:
        if history.not_judged:
            kernels_by_reason.setdefault(history.not_judged, []).append(_kernel(history))
    for reason, kernels in kernels_by_reason.items():
        say(f"  not judged, {reason}: {', '.join(kernels)}")


def _row(history: History, step: Step) -> tuple[str, ...]:
    from profiler.history import step_words

    return (
        _kernel(history),
        step_words.verdict_words(step),
        step_words.size_words(step),
        step_words.level_words(step),
        step_words.moment(step.likeliest),
        step_words.where_words(step),
        step_words.code_words(step),
        step_words.environment_words(step),
        step_words.due_to_words(step),
    )


def _kernel(history: History) -> str:
    return f"{history.series.part.removesuffix('#0')}{history.series.also}"


def _name_to_compare(point: TrendPoint, pair: tuple[TrendPoint, TrendPoint], family: str) -> str:
    """Two runs of one version are told apart by their ids; versions are named."""
    return point.run_id if pair[0].version == pair[1].version else f"{family}/{point.version}"
