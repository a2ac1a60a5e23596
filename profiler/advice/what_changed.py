"""What changed in a measured launch against its baseline, by its causes, and what undoes the worst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from profiler.advice.levers import FEWER_REGISTERS, LESS_SHARED, blocks_lever
from profiler.advice.stall_levers import STALL_REASONS, Advice, advice_for_stall
from profiler.advice.statement import (
    CHANGE,
    UNKNOWN,
    LaunchMetrics,
    MetricInput,
    OpenQuestion,
    Statement,
    all_valid,
    is_plausible,
)
from profiler.compare.comparison import Comparison
from profiler.compare.pair_comparison import OpcodeChange, PairComparison
from profiler.evidence import formatting
from profiler.evidence.metric_table import Metric
from profiler.evidence.values import NOT_COLLECTED, Evidence, Value
from profiler.explain.explanation import Explanation
from profiler.explain.sentence import format_change, format_noise, format_time
from profiler.explain.time_identity import BALANCE, CLOCK, CYCLES, FULL, PARALLELISM, WAITING, WORK, Term
from profiler.statistics.decision import Decision, share_text
from profiler.statistics.noise_floor import STORED_BASELINE
from profiler.statistics.verdict import Verdict

_OF_LONGER = "the slower side's time"  # what the share of a change is of
MIN_CAUSE_SHARE = 0.1  # of the change: a cause below it gets no statement
_UNCHANGED_WEIGHT = 0.05  # the rank of what did not change
_ONE_PAIR = "unreplicated: one launch per side, under the profiler"
_BY_PAIRS = "by A/A pairs, under the profiler"
_MAX_OPCODES, _MAX_LAUNCHES = 3, 3  # how many a statement names
_FACTORS = {  # the concepts that each cause is read from, the most telling one first
    WORK: ("inst_issued", "inst_executed"),
    PARALLELISM: ("warps_active", "sm_warps_active", "occupancy_theoretical"),
    BALANCE: ("sm_cycles_active", "sm_cycles_elapsed", "waves", "grid_size"),
    CLOCK: ("sm_clock",),
    WAITING: ("warp_latency",),
}
_CAUSE_WORDS = {
    WORK: "the number of instructions",
    PARALLELISM: "the number of active warps",
    BALANCE: "the share of time in which SMs have work",
    CLOCK: "the clock",
}


def change_statements(
    explanation: Explanation,
    metrics: LaunchMetrics,
    stalls: Mapping[str, Metric],
    of_report: Sequence[Explanation],
) -> Iterator[Statement | OpenQuestion]:
    """What changed in the launch: the main cause, what offsets it, and which other launches changed.

    `of_report` are the explanations of every launch of the report, including this one.
    """
    duration = metrics["duration"]
    if explanation.verdict is Verdict.MISSING:
        inputs = (duration, *_missing_baseline(duration))
        yield OpenQuestion("change", "whether it got faster", inputs, main=True)
    elif explanation.verdict is Verdict.NOT_COMPARABLE:
        inputs = (duration, *_missing_baseline(duration))
        yield _unknown_change(explanation.sentence, inputs, "not comparable")
    elif explanation.verdict is Verdict.UNCLEAR:
        yield _unknown_change(explanation.sentence, (duration,), _confidence(explanation.pair))
    else:
        yield _headline(explanation, metrics)
        yield from _causes(explanation, metrics, stalls)
    if explanation.verdict.traits.moved and explanation.missing:
        missing = tuple(_missing_input(counter.concept, metrics) for counter in explanation.missing)
        yield OpenQuestion("split", "the full split of the change into causes", missing)
    yield from _other_launches(explanation, of_report)


def latency_statements(comparison: Comparison) -> Iterator[Statement]:
    """What timed calls say, a statement for each mode: they decide, and counters explain."""
    for latency in comparison.latency:
        a, b = (NOT_COLLECTED if ns is None else Value(ns, "ns") for ns in (latency.a_ns, latency.b_ns))
        metric = MetricInput(f"latency ({latency.mode})", "latency", "latency", b, a)
        is_decided = latency.verdict.traits.decided
        to_settle = f" To settle it: `{latency.settle}`." if latency.settle else ""
        word = latency.verdict.words
        reason = latency.decision.reason
        text = f"Latency {formatting.from_to(a, b)} ({latency.mode}): {word}, {reason}.{to_settle}"
        yield Statement(
            f"latency:{latency.mode}",
            CHANGE if is_decided else UNKNOWN,
            text,
            (metric,),
            Evidence.MEASURED,
            "; ".join((_latency_confidence(latency.decision), *latency.decision.warnings)),
            weight=1.0,
        )


def _unknown_change(sentence: str, inputs: tuple[MetricInput, ...], confidence: str) -> Statement:
    return Statement("change", UNKNOWN, sentence, inputs, Evidence.MEASURED, confidence)


def _confidence(pair: PairComparison) -> str:
    """What the verdict on the duration rests on: A/A pairs of the index, else one launch per side."""
    change, basis = pair.headline, _ONE_PAIR
    if change is not None and change.interval is not None and change.noise_share is not None:
        basis = f"{change.interval} {_BY_PAIRS}; {share_text(change.noise_share)} would have shown"
    return "; ".join(filter(None, (basis, pair.paired_by.words)))


def _is_judged_by_pairs(pair: PairComparison) -> bool:
    return pair.headline is not None and pair.headline.interval is not None


def _latency_confidence(decision: Decision) -> str:
    """What the verdict rests on: rounds of one run, or the A/A pairs of a floor; else the rule itself."""
    if decision.interval is None:
        return decision.rule
    if decision.rule == STORED_BASELINE:
        return f"two runs, by a floor of {decision.rounds} A/A pairs"
    return f"{decision.rule}, {decision.rounds} rounds"


def _headline(explanation: Explanation, metrics: LaunchMetrics) -> Statement:
    """The change of the launch as a whole."""
    split = explanation.split
    moved = explanation.moved.counters if explanation.moved else ()
    concepts = ("duration", *(split.inputs if split else ()), *(move.change.concept for move in moved))
    inputs = metrics.of(*dict.fromkeys(concepts))
    confidence = _confidence(explanation.pair)
    if split and split.flagged:
        confidence += f"; the terms are not to be trusted, the residue is {split.flagged}"
    elif split and split.reasons_flagged:
        skew = split.reasons_flagged
        confidence += f"; the single reasons of waiting are not to be trusted, their skew is {skew}"
    near = [stand_in.words for stand_in in split.stand_ins if stand_in.most_off_pct] if split else []
    if near:
        confidence += f"; computed: {', '.join(near)}"
    share = _share_of_time(explanation, explanation.delta_us) if explanation.verdict.traits.moved else None
    # The change comes before its own causes, so it ranks as high as the largest of them.
    causes = (_share_of_time(explanation, term.us) or 0.0 for term in explanation.causes)
    weight = max(causes, default=0.0) or _UNCHANGED_WEIGHT
    text = explanation.sentence
    return Statement(
        "change",
        CHANGE,
        text,
        inputs,
        Evidence.MEASURED,
        confidence,
        share=share,
        weight=weight,
        share_of=_OF_LONGER,
    )


def _causes(
    explanation: Explanation, metrics: LaunchMetrics, stalls: Mapping[str, Metric]
) -> Iterator[Statement]:
    """The largest cause, and the largest that adds time; none where the split cannot be trusted."""
    split = explanation.split
    if split is None or split.flagged or explanation.delta_us is None:
        return
    least = MIN_CAUSE_SHARE * abs(explanation.delta_us)
    terms = [
        term
        for term in explanation.causes
        if abs(term.us) >= least
        and not (split.reasons_flagged and term.cause.startswith(f"{WAITING}:"))
        and term.cause != CYCLES  # the change itself in other words
    ]
    terms.sort(key=lambda term: -abs(term.us))
    # If the launch got faster its main cause saved time; what to mend is the one that added most.
    adding = [term for term in terms if term.us > 0]
    is_whole = split.depth == FULL and not explanation.missing
    for term in dict.fromkeys((*terms[:1], *adding[:1])):
        yield _cause(term, explanation, metrics, stalls, is_whole=is_whole)


def _cause(
    term: Term,
    explanation: Explanation,
    metrics: LaunchMetrics,
    stalls: Mapping[str, Metric],
    *,
    is_whole: bool,
) -> Statement:
    """One cause with its counters; with a lever where it adds time and the split is complete."""
    pair = explanation.pair
    kind, _, reason = term.cause.partition(":")
    factors = [metrics[concept] for concept in _FACTORS[kind] if metrics[concept].valid]
    if reason in stalls:
        factors.insert(0, metrics[stalls[reason].concept])
    advice = _advice(kind, reason, pair, metrics) if term.us > 0 else Advice()
    words = _opcode_changes(pair) if kind == WORK else advice.words
    inputs = (*factors, *(metric for metric in advice.inputs if metric not in factors))
    # With counters missing, part of what this cause added may belong to another one.
    split = explanation.split
    is_noise = split is not None and split.is_noise(term.us)
    lever = advice.lever if is_whole and advice.lever and all_valid(inputs) and not is_noise else None
    details = f"{_factor_change(factors)}{f'; {words}' if words else ''}"
    text = f"{format_change(term.us)} from {_cause_words(term)}{details}."
    confidence = _ONE_PAIR
    if _is_judged_by_pairs(pair):
        confidence = f"the change {_BY_PAIRS}; its split of one launch per side"
    if split is not None and is_noise:
        confidence += f"; not certain: computed counters are off by up to {format_noise(split)}"
    return Statement(
        f"cause:{term.cause}",
        CHANGE,
        text,
        inputs,
        Evidence.MEASURED,
        confidence,
        lever,
        _share_of_time(explanation, term.us),
        share_of=_OF_LONGER,
    )


def _cause_words(term: Term) -> str:
    kind, _, reason = term.cause.partition(":")
    if kind != WAITING:
        return _CAUSE_WORDS[kind]
    more = "more" if term.us > 0 else "less"
    if reason in STALL_REASONS:
        return f"{more} waiting for {STALL_REASONS[reason].meaning}"
    return f"{more} waiting ({reason or 'stall reason unknown'})"


def _factor_change(factors: Sequence[MetricInput]) -> str:
    """How the first counter changed, if both sides have it."""
    first = factors[0] if factors else None
    if first is None or first.baseline is None or first.baseline_number is None:
        return ""
    return f" ({first.label.partition(':')[0]} {formatting.from_to(first.baseline, first.value)})"


def _advice(kind: str, reason: str, pair: PairComparison, metrics: LaunchMetrics) -> Advice:
    """What to do about a cause that adds time."""
    if kind == WAITING and reason:
        return advice_for_stall(reason, metrics)
    if kind == WORK:
        added = [change.opcode for change in _added_opcodes(pair)]
        lever = f"save what was added: {', '.join(added)}" if added else ""
        counts = tuple(metrics.opcodes(opcode) for opcode in added)
        return Advice(lever, "", counts or (metrics.every_opcode,))
    if kind == BALANCE:
        waves = metrics["waves"]
        return Advice(blocks_lever(waves.number) if waves.valid else "", "", (waves,))
    if kind == PARALLELISM:
        return _fewer_warps(metrics)
    if kind == CLOCK:
        return Advice("", "the GPU's, not the kernel's: compare cycles, or hold the clocks", ())
    return Advice()


def _fewer_warps(metrics: LaunchMetrics) -> Advice:
    """A lever only if the theoretical occupancy fell and a block takes more of the SM than before."""
    inputs = metrics.of("occupancy_theoretical", "registers", "shared_dynamic", "shared_static", "block_size")
    if not all_valid(inputs) or not all(_has_valid_baseline(metric) for metric in inputs):
        return Advice("", "", inputs)
    occupancy, registers, dynamic, static, _ = inputs
    # Fewer warps were active although as many would fit: no resource of the block is to blame.
    if occupancy.number >= _before(occupancy):
        return Advice("", "as many warps fit as before: the grid or its balance leaves them out", inputs)
    words, levers = [f"theoretical occupancy {_from_to(occupancy)}"], []
    if registers.number > _before(registers):
        words.append(f"registers {_from_to(registers)}")
        levers.append(FEWER_REGISTERS)
    if dynamic.number + static.number > _before(dynamic) + _before(static):
        words.append(f"dynamic shared memory {_from_to(dynamic)}")
        levers.append(LESS_SHARED)
    return Advice("; ".join(levers), ", ".join(words), inputs)


def _has_valid_baseline(metric: MetricInput) -> bool:
    """Whether the baseline has a plausible number."""
    return (
        metric.baseline is not None and metric.baseline.number is not None and is_plausible(metric.baseline)
    )


def _from_to(metric: MetricInput) -> str:
    assert metric.baseline is not None
    return formatting.from_to(metric.baseline, metric.value)


def _before(metric: MetricInput) -> float:
    assert metric.baseline_number is not None
    return metric.baseline_number


def _opcode_changes(pair: PairComparison) -> str:
    """The opcodes that changed most, in words; or that the opcode mix is missing or the same."""
    if not pair.opcodes:
        return "which ones is unknown: no opcode mix on both sides"
    words = []
    for opcode_change in pair.opcodes[:_MAX_OPCODES]:
        change = opcode_change.b - opcode_change.a
        if change:
            sign = "+" if change > 0 else formatting.MINUS
            words.append(f"{opcode_change.opcode} {sign}{formatting.quantity(Value(abs(change)))}")
    return f"most of all {', '.join(words)}" if words else "the opcode mix is the same"


def _added_opcodes(pair: PairComparison) -> list[OpcodeChange]:
    """The opcodes of which most instructions were added."""
    return [change for change in pair.opcodes if change.b > change.a][:_MAX_OPCODES]


def _other_launches(explanation: Explanation, of_report: Sequence[Explanation]) -> Iterator[Statement]:
    """The other launches of the report that got better or worse, which are not examined here."""
    moved = [
        other
        for other in of_report
        if other is not explanation and other.verdict.traits.moved and other.delta_us is not None
    ]
    if not moved:
        return
    moved.sort(key=lambda other: -abs(other.delta_us or 0.0))
    named = moved[:_MAX_LAUNCHES]
    launches = ", ".join(
        f"{other.kernel} {format_time(other.a_us or 0.0)} → {format_time(other.b_us or 0.0)} "
        f"({other.verdict.value})"
        for other in named
    )
    more = f" and {len(moved) - len(named)} more" if len(moved) > len(named) else ""
    inputs = tuple(
        MetricInput(change.metric, change.concept, f"{change.label}, {other.kernel}", change.b, change.a)
        for other in named
        if (change := other.pair.headline)
    )
    largest = moved[0]
    weight = abs(largest.delta_us or 0.0) / max(largest.a_us or 1.0, largest.b_us or 1.0)
    text = f"Other launches moved: {launches}{more}. To look at one: --kernel."
    by_pairs = all(_is_judged_by_pairs(other.pair) for other in moved)
    confidence = _BY_PAIRS if by_pairs else _ONE_PAIR
    yield Statement("change:elsewhere", CHANGE, text, inputs, Evidence.MEASURED, confidence, weight=weight)


def _share_of_time(explanation: Explanation, us: float | None) -> float | None:
    """The change as a share of the longer side's time."""
    # Of the longer side, so that no share exceeds 1 whichever way the time went.
    longer = max(explanation.a_us or 0.0, explanation.b_us or 0.0)
    return min(abs(us) / longer, 1.0) if us is not None and longer else None


def _missing_baseline(duration: MetricInput) -> tuple[MetricInput, ...]:
    """The baseline's duration as an input of its own, if it is missing."""
    if duration.baseline is None or duration.baseline.number is not None:
        return ()
    return (_baseline_input(duration, duration.baseline),)


def _missing_input(concept: str, metrics: LaunchMetrics) -> MetricInput:
    """An input that the full split lacks: B's value, or the baseline's where only that is missing."""
    metric = metrics[concept]
    if not metric.valid:
        return metric
    if metric.baseline is None or metric.baseline.number is not None:
        return _baseline_input(metric, NOT_COLLECTED)
    return _baseline_input(metric, metric.baseline)


def _baseline_input(metric: MetricInput, value: Value) -> MetricInput:
    """The baseline's value of a metric as an input of its own."""
    return MetricInput(metric.name, metric.concept, f"{metric.label}, baseline", value, None, metric.line)
