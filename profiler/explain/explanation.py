"""Explains a change in time: the causes of each pair's difference, also in words, or why there are none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profiler.compare.comparison import Comparison
from profiler.compare.metric_verdict import missing_reason
from profiler.compare.pair_comparison import MetricChange, PairComparison
from profiler.evidence import formatting
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.metric_table import Metric, MetricTable
from profiler.evidence.naming import brief_list
from profiler.evidence.values import NOT_COLLECTED, Evidence, Value
from profiler.explain.identity_factors import CONCEPTS
from profiler.explain.sentence import SentenceParts, compose_sentence
from profiler.explain.time_identity import (
    CYCLES_ONLY,
    FULL,
    NO_SPLIT,
    Term,
    TimeSplit,
    read_identities,
    split_time,
    usable_time_us,
)
from profiler.explain.what_moved import STALLS, WhatMoved, what_moved
from profiler.statistics.verdict import Verdict

_STALL_NAME = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_MAX_STALL_ROWS = 3  # stalls that are named row by row; more share one row
_PIPES = ("pipe_fp64", "pipe_fma", "pipe_alu", "pipe_xu", "pipe_lsu", "pipe_adu", "tensor_busy")
_BUSY_PIPE_PCT = 80.0  # of its peak: from here on the pipe bounds the time, and warps queue for it
_MAX_LABELS = 4  # of counters to collect that a sentence names


@dataclass(frozen=True)
class MissingCounter:
    """A line of metrics.txt that the full split needs and at least one side lacks."""

    concept: str
    label: str
    names: tuple[str, ...]  # the ncu metrics that carry it on this chip, best first
    line: int  # of metrics.txt; 0 where it has no such line
    group: str  # of metrics.txt
    why: str  # "not collected in either", "failed in A"


@dataclass(frozen=True)
class CounterToCollect:
    """What to collect for a deeper split: one metric of metrics.txt, or all stalls."""

    label: str
    names: str  # of ncu
    why: str


@dataclass(frozen=True)
class Explanation:
    """Why one pair of launches differs in time, as far as its counters tell."""

    pair: PairComparison
    kernel: str  # the pair's label: range/kernel#n
    a_us: float | None
    b_us: float | None
    delta_us: float | None
    split: TimeSplit | None  # None where nothing is split: unchanged, not comparable, or too few counters
    verdict: Verdict
    reason: str  # of the verdict
    missing: tuple[MissingCounter, ...]  # what a deeper split needs
    sentence_parts: SentenceParts
    moved: WhatMoved | None = None  # what else moved; None where the split is full, or nothing is to explain
    chip: str | None = None  # "sm_90", of both launches; None where the reports do not say

    @property
    def sentence(self) -> str:
        """The answer as text."""
        return str(self.sentence_parts)

    @property
    def causes(self) -> tuple[Term, ...]:
        """The terms of the split if the verdict says that the time changed; else there are none."""
        return self.split.terms if self.split and self.verdict.traits.moved else ()


def explain(comparison: Comparison, table: MetricTable) -> tuple[Explanation, ...]:
    """Why each pair differs in time, in the comparison's order: longest first.

    A change below the verdict's threshold is not split, since splitting noise misleads. An unclear change is
    split, but its terms are no causes.
    """
    evidence = comparison.a.evidence
    if evidence is not Evidence.MEASURED:
        return tuple(_explain_without_time(pair, evidence) for pair in comparison.pairs)
    # Launches of different chips are no pair unless that was asked for: B's chip is mostly that of both.
    return tuple(
        _explain_pair(pair, table, chip_of(comparison.b.capability_of(pair.b))) for pair in comparison.pairs
    )


def counters_to_collect(explanations: Sequence[Explanation]) -> tuple[CounterToCollect, ...]:
    """The counters that explanations lack for the full split, by line; many stalls share a row."""
    by_concept = {counter.concept: counter for explanation in explanations for counter in explanation.missing}
    missing = sorted(by_concept.values(), key=lambda counter: counter.line)
    stalls = [counter for counter in missing if counter.group == STALLS]
    if len(stalls) > _MAX_STALL_ROWS:
        missing = [counter for counter in missing if counter not in stalls]
    rows = [CounterToCollect(counter.label, brief_list(counter.names), counter.why) for counter in missing]
    if len(stalls) > _MAX_STALL_ROWS:
        name = "smsp__average_warps_issue_stalled_*_per_issue_active.ratio"
        rows.append(CounterToCollect(f"{len(stalls)} stalls", name, stalls[0].why))
    return tuple(rows)


def describe_depth(explanations: Sequence[Explanation]) -> str:
    """What the splits lack of which launches; "" where all are complete."""
    lacking = [explanation for explanation in explanations if explanation.missing]
    without_split = [one for one in lacking if any(counter.concept == "cycles" for counter in one.missing)]
    coarse = [one for one in lacking if one not in without_split]
    words = []
    if without_split:
        launches = brief_list([one.kernel for one in without_split])
        words.append(f"cycles and clock missing for {launches}, so no split")
    if coarse:
        groups = {counter.group for one in coarse for counter in one.missing}
        what = "stall reasons" if groups == {STALLS} else "counters"
        words.append(f"{what} missing for {brief_list([one.kernel for one in coarse])}, so a coarser split")
    return "; ".join(words)


def count_launches(count: int) -> str:
    """`1 launch`, `2 launches`."""
    return "1 launch" if count == 1 else f"{count} launches"


def stall_metrics(table: MetricTable, chip: str | None) -> dict[str, Metric]:
    """The stalls that metrics.txt declares and the chip has, by the reason in their ncu name."""
    by_reason = {}
    for metric in table.metrics:
        match = _STALL_NAME.fullmatch(metric.alternatives[0].name)
        if match and metric.names_for(chip):
            by_reason[match[1]] = metric
    return by_reason


def _explain_pair(pair: PairComparison, table: MetricTable, chip: str | None) -> Explanation:
    changes = {change.concept: change for change in pair.metrics if _is_usable(change, pair)}
    stalls = stall_metrics(table, chip)
    stall_values = {reason: _both_values(changes.get(metric.concept)) for reason, metric in stalls.items()}
    values = {concept: _both_values(changes[concept]) for concept in CONCEPTS if concept in changes}
    identity_a, identity_b = read_identities(
        {concept: a for concept, (a, _) in values.items()},
        {concept: b for concept, (_, b) in values.items()},
        stall_values,
    )
    duration_a, duration_b = _both_values(pair.headline)
    a_us, b_us = usable_time_us(duration_a), usable_time_us(duration_b)
    has_times = a_us is not None and b_us is not None
    split = None
    if has_times and (pair.verdict.traits.moved or pair.verdict is Verdict.UNCLEAR):
        split = split_time(identity_a, identity_b)
        if split.depth == NO_SPLIT:
            split = None
    reason = pair.headline.reason if pair.headline else f"{table.path} declares no duration"
    is_comparable = pair.verdict is not Verdict.NOT_COMPARABLE
    # Work that may be other work has no causes either, however the times compare.
    is_other_work = bool(pair.workload_change) and not pair.verdict.traits.decided
    why = reason if has_times or not is_comparable else _why_no_time(duration_a, duration_b)
    is_explained = split is not None and split.depth == FULL and not split.flagged
    may_have_moved = has_times and (pair.verdict.traits.moved or pair.verdict is Verdict.UNCLEAR)
    is_asked = may_have_moved and not is_explained and not is_other_work
    moved = what_moved(pair, table) if is_asked else None
    is_divided = split is not None and split.depth != CYCLES_ONLY
    declared = {**table.by_concept, **stalls}
    every = {change.concept: change for change in pair.metrics}
    missing = (
        tuple(_missing_counter(name, declared.get(name), every, chip) for name in identity_a.missing)
        if is_comparable  # else no counter would change the answer
        else ()
    )
    return Explanation(
        pair,
        pair.kernel,
        a_us,
        b_us,
        None if a_us is None or b_us is None else b_us - a_us,
        split,
        pair.verdict,
        reason,
        missing,
        compose_sentence(
            Verdict.NOT_COMPARABLE if is_other_work else pair.verdict,
            why,
            a_us,
            b_us,
            split,
            moved,
            "" if is_divided else _what_to_collect(missing, chip),
            by_cycles=_is_by_cycles(pair),
            busy_pipe=_busy_pipe(changes, a_us, b_us),
        ),
        moved,
        chip,
    )


def _busy_pipe(changes: Mapping[str, MetricChange], a_us: float | None, b_us: float | None) -> str:
    """The busiest pipe of the slower side and how busy it is; "" where none is near its peak."""
    if a_us is None or b_us is None:
        return ""
    side, name = (0, "A") if a_us > b_us else (1, "B")
    pipes = [
        (value.number, change.label, value)
        for change in (changes[concept] for concept in _PIPES if concept in changes)
        if (value := _both_values(change)[side]).number is not None
    ]
    busiest = max(pipes, default=None, key=lambda pipe: pipe[0])
    if busiest is None or busiest[0] < _BUSY_PIPE_PCT:
        return ""
    return f"{busiest[1]} {formatting.quantity(busiest[2])} in {name}"


def _what_to_collect(missing: Sequence[MissingCounter], chip: str | None) -> str:
    """The counters that would divide the cycles, and the command for them; "" where none is missing."""
    labels = [counter.label for counter in missing if counter.group != STALLS]
    stalls = len(missing) - len(labels)
    more = len(labels) - _MAX_LABELS
    # Labels hold commas.
    words = [*labels[:_MAX_LABELS], *([f"{more} more"] if more > 0 else [])]
    words += [f"{stalls} stall{'s' if stalls > 1 else ''}"] if stalls else []
    if not words:
        return ""
    options = f'--metrics "$(profiler list metrics --chip {chip} --tier lean)"' if chip else "--set full"
    return f"To split the time, collect {'; '.join(words)}: `ncu {options}`."


def _is_by_cycles(pair: PairComparison) -> bool:
    """Whether a clock alone moved the time, so that the verdict is about cycles."""
    return pair.headline is not None and bool(pair.headline.judged_by) and pair.verdict.traits.decided


def _why_no_time(a: Value, b: Value) -> str:
    """Why there is no time on both sides: a value is missing, or is no time."""
    sides = [side for side, value in (("A", a), ("B", b)) if usable_time_us(value) is None]
    return missing_reason(a, b) or f"no usable time in {' and '.join(sides)}"


def _explain_without_time(pair: PairComparison, evidence: Evidence) -> Explanation:
    reason = f"{evidence} evidence has no duration: there is no time to split"
    parts = SentenceParts(f"{reason[:1].upper()}{reason[1:]}")
    return Explanation(pair, pair.kernel, None, None, None, None, Verdict.MISSING, reason, (), parts)


def _is_usable(change: MetricChange, pair: PairComparison) -> bool:
    """Whether both sides have the concept under one name, so that a change is not one of the counter.

    Where sides are not comparable, every counter has that verdict, and nothing is split anyway. A stand-in of
    the table is not usable: the time identity knows by itself what may stand for its factors, and says it.
    """
    if _is_stand_in(change.a) or _is_stand_in(change.b):
        return False
    return change.verdict is not Verdict.NOT_COMPARABLE or pair.verdict is Verdict.NOT_COMPARABLE


def _is_stand_in(value: Value) -> bool:
    return value.derivation is not None and value.derivation.is_stand_in


def _both_values(change: MetricChange | None) -> tuple[Value, Value]:
    return (change.a, change.b) if change else (NOT_COLLECTED, NOT_COLLECTED)


def _missing_counter(
    name: str, metric: Metric | None, changes: Mapping[str, MetricChange], chip: str | None
) -> MissingCounter:
    if metric is None:
        return MissingCounter(name, name, (), 0, "", "not declared in metrics.txt")
    change = changes.get(metric.concept)
    a, b = (NOT_COLLECTED if _is_stand_in(value) else value for value in _both_values(change))
    differs = change.reason if change and change.verdict is Verdict.NOT_COMPARABLE else ""
    why = missing_reason(a, b) or differs or "not above zero"
    return MissingCounter(
        metric.concept, metric.label, metric.names_for(chip), metric.line, metric.group, why
    )
