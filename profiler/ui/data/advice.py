"""What the chosen launch of a page calls for: the statements of `profiler insights` about it alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from profiler.advice.insights import find_insights
from profiler.advice.places import with_places
from profiler.advice.statement import Statement
from profiler.advice.subject import ComparedSide, Subject, TrafficByWorkload
from profiler.compare.comparison import Comparison
from profiler.compare.pair_comparison import PairComparison
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.reports.instances import LaunchDetail

DetailOpener = Callable[[], LaunchDetail | None]


def _no_detail() -> LaunchDetail | None:
    return None


def statements_of_pair(
    comparison: Comparison,
    pair: PairComparison,
    table: MetricTable,
    traffic: TrafficByWorkload | None = None,
    open_detail: DetailOpener = _no_detail,
) -> Sequence[Statement]:
    """What B's launch of the pair calls for, compared with A's; of a wrong B only what is wrong.

    `traffic` is B's shared memory by workload and source line, where its run keeps that. `open_detail` gives
    what B's report holds of each instruction, for levers with their line.
    """
    b = comparison.b
    # The chosen launch alone: a page speaks of what it shows, not of the whole run.
    compared = ComparedSide(replace(b, launches=(pair.b,)), replace(comparison, pairs=(pair,)))
    is_measured = b.evidence is Evidence.MEASURED
    subject = Subject(
        b.label,
        compared if is_measured else None,
        () if is_measured else (compared,),
        b.wrong,
        traffic=traffic or {},
    )
    return with_places(find_insights(subject, table), open_detail).statements


def statements_of_launch(
    launch: Launch, capability: str | None, table: MetricTable, open_detail: DetailOpener = _no_detail
) -> Sequence[Statement]:
    """What one measured launch calls for by itself. `capability` is its GPU's, as "9.0".

    `open_detail` gives what its report holds of each instruction, for levers with their line.
    """
    side = Side(launch.base_name, (launch,), compute_capability=capability)
    insights = find_insights(Subject(side.label, ComparedSide(side)), table)
    return with_places(insights, open_detail).statements


def chip_of_side(side: Side) -> str | None:
    """The chip ("sm_90") that names what to collect; None where the side does not say its GPU."""
    return chip_of(side.compute_capability) if side.compute_capability else None
