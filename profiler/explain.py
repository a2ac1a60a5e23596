"""Why a launch changed: the causes of each pair's difference in time, in words too, or why there are none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from profiler import present
from profiler.compare import Comparison, MetricChange, PairComparison, Verdict
from profiler.metrics import Metric, MetricTable, chip_of
from profiler.split import CONCEPTS, NONE, WAITING, Split, Term, identities, split, time_us
from profiler.values import NOT_COLLECTED, Evidence, Value
from profiler.verdict import missing as missing_words

_STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_MOVED = (Verdict.BETTER, Verdict.WORSE)
_MAIN = 0.5  # a cause is the main one from this share of the change on
_OFFSET = 0.1  # a cause against the change is worth a clause from this share on


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


def to_collect(explanations: Sequence[Explanation]) -> tuple[Missing, ...]:
    """What the explanations lack for the full split, each line of metrics.txt once, in its order."""
    found = {one.concept: one for told in explanations for one in told.missing}
    return tuple(sorted(found.values(), key=lambda one: one.line))


def time(us: float, largest: float | None = None) -> str:
    """A time in the unit that suits it; beside a `largest`, in its unit and with its decimals."""
    if largest is None:
        return str(present.quantity(Value(us, "us")))
    scale = present.scale_for("us", largest)
    decimals = max(0, 3 - len(str(int(abs(largest) / scale.divisor))))
    number = f"{abs(us) / scale.divisor:.{decimals}f}"
    return f"{present.MINUS if us < 0 and float(number) else ''}{number} {scale.unit}"


def signed(us: float, largest: float | None = None) -> str:
    """A change in time with its sign, `+1.04 ms`; `±0` for what rounds to nothing."""
    text = time(us, largest)
    if not any(digit in text for digit in "123456789"):
        return "±0"
    return text if us < 0 else f"+{text}"


def _explained(pair: PairComparison, table: MetricTable, chip: str | None) -> Explanation:
    changes = {change.concept: change for change in pair.metrics if _same_counter(change, pair)}
    stalls = _stalls(table, chip)
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
    return replace(told, sentence=_sentence(told))


def _without_time(pair: PairComparison, evidence: Evidence) -> Explanation:
    words = f"{evidence} evidence has no duration: there is no time to split"
    sentence = f"{words[:1].upper()}{words[1:]}."
    return Explanation(pair, pair.kernel, None, None, None, None, Verdict.MISSING, words, (), sentence)


def _same_counter(change: MetricChange, pair: PairComparison) -> bool:
    """Whether both sides carry the concept under one name; where nothing is comparable, nothing is split."""
    return change.verdict is not Verdict.NOT_COMPARABLE or pair.verdict is Verdict.NOT_COMPARABLE


def _both(change: MetricChange | None) -> tuple[Value, Value]:
    return (change.a, change.b) if change else (NOT_COLLECTED, NOT_COLLECTED)


def _stalls(table: MetricTable, chip: str | None) -> dict[str, Metric]:
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


def _sentence(told: Explanation) -> str:
    """One sentence that answers why, or says what stands in the way of an answer."""
    found, a, b, delta = told.split, told.a_us, told.b_us, told.delta_us
    if told.verdict is Verdict.NOT_COMPARABLE:
        return f"No causes: {told.reason}."
    if a is None or b is None or delta is None:
        return f"No split: the duration is {told.reason}."
    between = f"{time(a, max(a, b))} → {time(b, max(a, b))}"
    if told.verdict is Verdict.SAME:
        return f"Unchanged, {between}: {told.reason}, so no causes."
    if told.verdict is Verdict.UNCLEAR:
        return f"Unclear whether it changed, {between}, so no causes: {told.reason}."
    size = f"{time(abs(delta))} {'faster' if delta < 0 else 'slower'}"
    if found is None:
        return f"{size}, but no split: too few counters for the causes."
    return f"{size}, {_because(found)}. {_residue(found)}."


def _because(found: Split) -> str:
    """The main cause, what goes against it, and the rest, with what each adds."""
    kinds = dict.fromkeys(term.cause.partition(":")[0] for term in found.terms)
    sums = {kind: found.total(kind) for kind in kinds}
    delta, largest = found.delta_us, max(map(abs, (*sums.values(), found.delta_us)))
    ahead = max(sums, key=lambda kind: sums[kind] * delta)
    if sums[ahead] * delta <= 0:
        ahead, start = "", "which none of its counters explains"
    else:
        most = abs(sums[ahead]) >= _MAIN * abs(delta)
        start = f"{'mainly' if most else 'most of all'} by {_told(ahead, sums, found, largest)}"
    against = [kind for kind, us in sums.items() if us * delta < 0 and abs(us) >= _OFFSET * abs(delta)]
    rest = [kind for kind in sums if kind != ahead and kind not in against]
    against.sort(key=lambda kind: -abs(sums[kind]))
    if against:
        start += ", partly offset by " + " and ".join(_told(kind, sums, found, largest) for kind in against)
    if rest:
        start += "; " + ", ".join(_told(kind, sums, found, largest) for kind in rest)
    return start


def _told(kind: str, sums: Mapping[str, float], found: Split, largest: float) -> str:
    """`waiting (+1.04 ms, most: long_scoreboard)`."""
    words = signed(sums[kind], largest)
    if kind == WAITING:
        of = [term for term in found.terms if term.cause.startswith(f"{WAITING}:")]
        chief = max(of, key=lambda term: term.us * sums[kind], default=None)
        if chief and chief.us * sums[kind] > 0:
            words += f", most: {chief.cause.partition(':')[2]}"
    return f"{kind} ({words})"


def _residue(found: Split) -> str:
    largest = max(abs(found.delta_us), *(abs(term.us) for term in found.terms))
    words = f"Residue {signed(found.residue_us, largest)}"
    if found.flagged:
        return f"{words}, too large to trust the terms: {found.flagged}"
    share = f"{abs(found.residue_us / found.delta_us):.1%}".replace("%", " %")
    return f"{words}, {share} of the change" if found.residue_us else words
