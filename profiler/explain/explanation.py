"""Why a launch changed: the causes of each pair's difference in time, in words too, or why there are none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from profiler.compare.comparison import Comparison, MetricChange, PairComparison
from profiler.compare.metric_verdict import missing_reason as missing_words
from profiler.evidence import NOT_COLLECTED, Evidence, Metric, MetricTable, Value, brief_list, chip_of
from profiler.explain.sentence import level, notes, sentence, signed, time
from profiler.explain.time_identity import CONCEPTS, NONE, Split, Term, identities, split, time_us
from profiler.statistics import Verdict

__all__ = [
    "Collect",
    "Explanation",
    "Missing",
    "explain",
    "how_deep",
    "launches",
    "level",
    "notes",
    "signed",
    "stall_metrics",
    "time",
    "to_collect",
]

_STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_STALLS = "stalls"  # the group of metrics.txt
_EACH = 3  # stalls that are named one by one; more stand as one row
_MOVED = (Verdict.BETTER, Verdict.WORSE)


@dataclass(frozen=True)
class Missing:
    """A line of metrics.txt that the full split lacks on at least one side."""

    concept: str
    label: str
    names: tuple[str, ...]  # the ncu metrics that carry it on this chip, best first
    line: int  # of metrics.txt; 0 where it has no such line
    group: str  # of metrics.txt
    why: str  # "not collected in either", "failed in A"


@dataclass(frozen=True)
class Collect:
    """What to collect for a deeper split: a line of metrics.txt, or the lines of all stalls."""

    lines: str  # of metrics.txt: "27" or "113–131"
    label: str
    names: str  # of ncu
    why: str


@dataclass(frozen=True)
class Explanation:
    """What is known of why one pair of launches differs in time."""

    pair: PairComparison
    kernel: str  # A's label: range/kernel#n
    a_us: float | None
    b_us: float | None
    delta_us: float | None
    split: Split | None  # None where nothing is split: unchanged, not comparable, or too few counters
    verdict: Verdict
    reason: str  # of the verdict
    missing: tuple[Missing, ...]  # what a deeper split needs
    sentence: str

    @property
    def causes(self) -> tuple[Term, ...]:
        """The terms of the split where the verdict says that the time moved; an unclear one has none."""
        return self.split.terms if self.split and self.verdict in _MOVED else ()


def explain(comparison: Comparison, table: MetricTable) -> tuple[Explanation, ...]:
    """Why each pair differs in time, in the comparison's order: longest first.

    Under the verdict's threshold nothing is split, since splitting noise misleads; where the verdict is
    unclear the split is there, but its terms are no causes.
    """
    chip = chip_of(comparison.a.compute_capability) if comparison.a.compute_capability else None
    evidence = comparison.a.evidence
    if evidence is not Evidence.MEASURED:
        return tuple(_without_time(pair, evidence) for pair in comparison.pairs)
    return tuple(_explained(pair, table, chip) for pair in comparison.pairs)


def to_collect(explanations: Sequence[Explanation]) -> tuple[Collect, ...]:
    """What the explanations lack for the full split, in the order of metrics.txt; many stalls are one row."""
    found = {one.concept: one for told in explanations for one in told.missing}
    lacking = sorted(found.values(), key=lambda one: one.line)
    stalls = [one for one in lacking if one.group == _STALLS]
    each = [one for one in lacking if one not in stalls or len(stalls) <= _EACH]
    rows = [Collect(str(one.line or "–"), one.label, brief_list(one.names), one.why) for one in each]
    if len(stalls) > _EACH:
        name = "smsp__average_warps_issue_stalled_*_per_issue_active.ratio"
        lines = f"{stalls[0].line}–{stalls[-1].line}"
        rows.append(Collect(lines, f"{len(stalls)} stalls", name, stalls[0].why))
    return tuple(rows)


def how_deep(explanations: Sequence[Explanation]) -> str:
    """How far the split gets with what the reports carry; "" where all of it is there."""
    none = sum(any(one.concept == "cycles" for one in told.missing) for told in explanations)
    coarse = sum(bool(told.missing) for told in explanations) - none
    words = []
    if none:
        words.append(f"no split of {launches(none)}: cycles and clock are not on both sides either")
    if coarse:
        words.append(f"only a coarser split of {launches(coarse)}")
    return "; ".join(words)


def launches(count: int) -> str:
    """`1 launch`, `2 launches`."""
    return "1 launch" if count == 1 else f"{count} launches"


def _explained(pair: PairComparison, table: MetricTable, chip: str | None) -> Explanation:
    changes = {change.concept: change for change in pair.metrics if _same_counter(change, pair)}
    stalls = stall_metrics(table, chip)
    waits = {reason: _both(changes.get(metric.concept)) for reason, metric in stalls.items()}
    pairs = {concept: _both(changes[concept]) for concept in CONCEPTS if concept in changes}
    a, b = identities(
        {concept: both[0] for concept, both in pairs.items()},
        {concept: both[1] for concept, both in pairs.items()},
        waits,
    )
    headline = pair.headline
    times = [time_us(value) for value in _both(headline)]
    timed = None not in times
    found = split(a, b) if timed and pair.verdict in (*_MOVED, Verdict.UNCLEAR) else None
    known = {**table.by_concept, **stalls}
    blocked = pair.verdict is Verdict.NOT_COMPARABLE  # no counter would change that
    told = Explanation(
        pair,
        pair.kernel,
        times[0],
        times[1],
        None if times[0] is None or times[1] is None else times[1] - times[0],
        None if found is None or found.depth == NONE else found,
        pair.verdict,
        headline.reason if headline else f"{table.path} declares no duration",
        () if blocked else tuple(_missing(name, known.get(name), changes, chip) for name in a.missing),
        sentence="",
    )
    reason = told.reason if timed or blocked else _untimed(*_both(headline))
    words = sentence(told.verdict, reason, told.a_us, told.b_us, told.split)
    return replace(told, sentence=words)


def _untimed(a: Value, b: Value) -> str:
    """Why there is no time on both sides: it is missing, or a number that is no time."""
    sides = [side for side, value in (("A", a), ("B", b)) if time_us(value) is None]
    return missing_words(a, b) or f"no usable time in {' and '.join(sides)}"


def _without_time(pair: PairComparison, evidence: Evidence) -> Explanation:
    words = f"{evidence} evidence has no duration: there is no time to split"
    sentence = f"{words[:1].upper()}{words[1:]}."
    return Explanation(pair, pair.kernel, None, None, None, None, Verdict.MISSING, words, (), sentence)


def _same_counter(change: MetricChange, pair: PairComparison) -> bool:
    """Whether both sides carry the concept under one name; where nothing is comparable, nothing is split."""
    return change.verdict is not Verdict.NOT_COMPARABLE or pair.verdict is Verdict.NOT_COMPARABLE


def _both(change: MetricChange | None) -> tuple[Value, Value]:
    return (change.a, change.b) if change else (NOT_COLLECTED, NOT_COLLECTED)


def stall_metrics(table: MetricTable, chip: str | None) -> dict[str, Metric]:
    """The stalls that metrics.txt declares and the chip has, by reason as the ncu name has it."""
    found = {}
    for metric in table.metrics:
        match = _STALL.fullmatch(metric.alternatives[0].name)
        if match and metric.names_for(chip):
            found[match[1]] = metric
    return found


def _missing(
    name: str, metric: Metric | None, changes: Mapping[str, MetricChange], chip: str | None
) -> Missing:
    if metric is None:
        return Missing(name, name, (), 0, "", "not declared in metrics.txt")
    a, b = _both(changes.get(metric.concept))
    why = missing_words(a, b) or "not above zero"
    return Missing(metric.concept, metric.label, metric.names_for(chip), metric.line, metric.group, why)
