"""What changed in a measured launch against its baseline, by its causes, and what undoes the worst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from profiler.advice import stall_levers
from profiler.advice.stall_levers import STALL_REASONS, Advice
from profiler.advice.statement import (
    CHANGE,
    UNKNOWN,
    LaunchInputs,
    MetricInput,
    OpenQuestion,
    Statement,
    between,
    plausible,
    valid,
)
from profiler.compare import Comparison, OpcodeChange, PairComparison
from profiler.evidence import NOT_COLLECTED, Evidence, Metric, Value, formatting
from profiler.explain import Explanation, Term
from profiler.explain.sentence import format_change, format_time
from profiler.explain.time_identity import BALANCE, CLOCK, CONCEPTS, CYCLES, FULL, PARALLELISM, WAITING, WORK
from profiler.statistics import STORED_BASELINE, Decision, Verdict, share_text

WORTH = 0.1  # of the change: a cause below it gets no statement
_QUIET = 0.05  # the rank of what did not change
_ONE_PAIR = "unreplicated: one launch a side, under the profiler"
_BY_PAIRS = "by A/A pairs, under the profiler"
_OPCODES_SAID = 3
_FACTORS = {  # what of a launch each cause is read from
    WORK: ("inst_issued",),
    PARALLELISM: ("warps_active", "occupancy_theoretical"),
    BALANCE: ("sm_cycles_active", "sm_cycles_elapsed", "waves", "grid_size"),
    CLOCK: ("sm_clock",),
    CYCLES: ("cycles",),
    WAITING: ("warp_latency",),
}


def change_statements(
    told: Explanation, reading: LaunchInputs, stalls: Mapping[str, Metric], others: Sequence[Explanation]
) -> Iterator[Statement | OpenQuestion]:
    """What changed in the launch, its main cause, what went against it, and which other launches moved."""
    duration = reading["duration"]
    inputs = (duration, *_before(duration))
    if told.verdict is Verdict.MISSING:
        yield OpenQuestion("change", "whether it got faster", inputs, main=True)
    elif told.verdict is Verdict.NOT_COMPARABLE:
        yield Statement("change", UNKNOWN, told.sentence, inputs, Evidence.MEASURED, "not comparable")
    elif told.verdict is Verdict.UNCLEAR:
        yield Statement("change", UNKNOWN, told.sentence, (duration,), Evidence.MEASURED, _sure(told.pair))
    else:
        yield _headline(told, reading)
        yield from _causes(told, reading, stalls)
    if told.verdict.traits.moved and told.missing:
        wanted = tuple(_wanted(one.concept, reading) for one in told.missing)
        yield OpenQuestion("split", "all causes of the change", wanted)
    yield from _elsewhere(told, others)


def latency_statements(comparison: Comparison) -> Iterator[Statement]:
    """What timed calls say, a mode each: they decide, and counters explain."""
    for one in comparison.latency:
        a, b = (NOT_COLLECTED if ns is None else Value(ns, "ns") for ns in (one.a_ns, one.b_ns))
        metric = MetricInput(f"latency ({one.mode})", "latency", "latency", b, a)
        decided = one.verdict.traits.decided
        settled = f" To settle it: `{one.settle}`." if one.settle else ""
        word = one.verdict.words
        text = f"Latency {between(a, b)} ({one.mode}): {word}, {one.decision.reason}.{settled}"
        sure = "; ".join((_rests_on(one.decision), *one.decision.warnings))
        kind = CHANGE if decided else UNKNOWN
        yield Statement(f"latency:{one.mode}", kind, text, (metric,), Evidence.MEASURED, sure, weight=1.0)


def _sure(pair: PairComparison) -> str:
    """What the verdict on the duration rests on: A/A pairs of the index, else one launch a side."""
    change = pair.headline
    if change is None or change.interval is None or change.noise_share is None:
        return _ONE_PAIR
    return f"{change.interval} {_BY_PAIRS}; {share_text(change.noise_share)} would have shown"


def _judged_by_pairs(pair: PairComparison) -> bool:
    return pair.headline is not None and pair.headline.interval is not None


def _rests_on(decision: Decision) -> str:
    """The rounds of one run, or the A/A pairs behind a floor; where nothing judged, the rule."""
    if decision.interval is None:
        return decision.rule
    if decision.rule == STORED_BASELINE:
        return f"two runs, by a floor of {decision.rounds} A/A pairs"
    return f"{decision.rule}, {decision.rounds} rounds"


def _headline(told: Explanation, reading: LaunchInputs) -> Statement:
    used = ("duration", *(_known(reading, CONCEPTS) if told.split else ()))
    inputs = reading.of(*dict.fromkeys(used))
    sure = _sure(told.pair)
    if told.split and told.split.flagged:
        sure += f"; the terms are not to be trusted, the residue is {told.split.flagged}"
    elif told.split and told.split.reasons_flagged:
        skew = told.split.reasons_flagged
        sure += f"; the single reasons of waiting are not to be trusted, their skew is {skew}"
    part = _share(told, told.delta_us) if told.verdict.traits.moved else None
    first = max((_share(told, term.us) or 0.0 for term in told.causes), default=0.0)  # before its own causes
    return Statement(
        "change", CHANGE, told.sentence, inputs, Evidence.MEASURED, sure, share=part, weight=first or _QUIET
    )


def _known(reading: LaunchInputs, concepts: Sequence[str]) -> list[str]:
    """Those that the launch carries: the identity has several forms of some."""
    return [one for one in concepts if reading[one].valid]


def _causes(told: Explanation, reading: LaunchInputs, stalls: Mapping[str, Metric]) -> Iterator[Statement]:
    """The largest cause, and the largest that adds time; none that is not to be trusted."""
    if told.split is None or told.split.flagged or told.delta_us is None:
        return
    worth = [
        term
        for term in told.causes
        if abs(term.us) >= WORTH * abs(told.delta_us)
        and not (told.split.reasons_flagged and term.cause.startswith(f"{WAITING}:"))
    ]
    largest = sorted(worth, key=lambda term: -abs(term.us))
    adding = [term for term in largest if term.us > 0]
    sure = told.split.depth == FULL and not told.missing
    for term in dict.fromkeys((*largest[:1], *adding[:1])):
        yield _cause(term, told, reading, stalls, sure=sure)


def _cause(
    term: Term, told: Explanation, reading: LaunchInputs, stalls: Mapping[str, Metric], *, sure: bool
) -> Statement:
    """One cause with its counters; a lever where it adds time and the whole split is there."""
    kind, _, reason = term.cause.partition(":")
    inputs = [reading[one] for one in _FACTORS[kind] if reading[one].valid]
    if reason in stalls:
        inputs.insert(0, reading[stalls[reason].concept])
    advice = _advice(kind, reason, told.pair, reading) if term.us > 0 else Advice("", "", ())
    if term.us > 0 or kind == WORK:
        words = _drilled(told.pair) if kind == WORK else advice.words
    else:
        words = ""
    used = (*inputs, *(one for one in advice.inputs if one not in inputs))
    lever = advice.lever if sure and advice.lever and valid(used) else None
    text = (
        f"{format_change(term.us)} by {_words(kind, reason)}{_factor(inputs)}{f'; {words}' if words else ''}."
    )
    return Statement(
        f"cause:{term.cause}",
        CHANGE,
        text,
        used,
        Evidence.MEASURED,
        f"the change {_BY_PAIRS}; its split of one launch a side"
        if _judged_by_pairs(told.pair)
        else _ONE_PAIR,
        lever,
        _share(told, term.us),
    )


def _words(kind: str, reason: str) -> str:
    if kind == WAITING:
        return (
            f"waiting for {STALL_REASONS[reason].means}"
            if reason in STALL_REASONS
            else f"waiting ({reason or 'the rest'})"
        )
    return {
        WORK: "the number of instructions",
        PARALLELISM: "the number of active warps",
        BALANCE: "the share of time in which SMs have work",
        CLOCK: "the clock",
        CYCLES: "the number of cycles",
    }[kind]


def _factor(inputs: Sequence[MetricInput]) -> str:
    """The first counter on both sides."""
    first = inputs[0] if inputs else None
    if first is None or first.baseline is None or first.before is None:
        return ""
    return f" ({first.label.partition(':')[0]} {between(first.baseline, first.value)})"


def _advice(kind: str, reason: str, pair: PairComparison, reading: LaunchInputs) -> Advice:
    if kind == WAITING and reason:
        return stall_levers.advice_for_stall(reason, reading)
    if kind == WORK:
        added = [one.opcode for one in _added(pair)]
        lever = f"save what was added: {', '.join(added)}" if added else ""
        return Advice(lever, "", tuple(reading.opcodes(name) for name in added) or (reading.every_opcode,))
    if kind == BALANCE:
        waves = reading["waves"]
        if waves.valid:
            return Advice(
                stall_levers.MORE_BLOCKS if waves.number < 1 else stall_levers.EVEN_BLOCKS, "", (waves,)
            )
        return Advice("", "", (waves,))
    if kind == PARALLELISM:
        return _fewer_warps(reading)
    if kind == CLOCK:
        return Advice("", "the GPU's, not the kernel's: compare cycles, or hold the clocks", ())
    return Advice("", "", ())


def _fewer_warps(reading: LaunchInputs) -> Advice:
    """A lever only where the theoretical occupancy fell and what its block takes of the SM grew."""
    inputs = reading.of("occupancy_theoretical", "registers", "shared_dynamic", "shared_static", "block_size")
    if not valid(inputs) or not all(_known_before(one) for one in inputs):
        return Advice("", "", inputs)
    theory, registers, dynamic, static, _ = inputs
    if theory.number >= _was(theory):
        return Advice("", "as many warps fit as before: the grid or its balance leaves them out", inputs)
    grown, lever = [], []
    if registers.number > _was(registers):
        grown.append(f"registers {_both(registers)}")
        lever.append(stall_levers.FEWER_REGISTERS)
    if dynamic.number + static.number > _was(dynamic) + _was(static):
        grown.append(f"dynamic shared memory {_both(dynamic)}")
        lever.append(stall_levers.LESS_SHARED)
    words = f"theoretical occupancy {_both(theory)}"
    return Advice("; ".join(lever), ", ".join((words, *grown)), inputs)


def _known_before(one: MetricInput) -> bool:
    """Whether the baseline has a number that can be true."""
    return one.baseline is not None and one.baseline.number is not None and plausible(one.baseline)


def _both(one: MetricInput) -> str:
    assert one.baseline is not None
    return between(one.baseline, one.value)


def _was(one: MetricInput) -> float:
    assert one.baseline is not None
    assert one.baseline.number is not None
    return float(one.baseline.number)


def _drilled(pair: PairComparison) -> str:
    """The opcodes that changed most, or that the mix is not there."""
    if not pair.opcodes:
        return "which ones is unknown: no opcode mix on both sides"
    told = []
    for one in pair.opcodes[:_OPCODES_SAID]:
        change = one.b - one.a
        if change:
            sign = "+" if change > 0 else formatting.MINUS
            told.append(f"{one.opcode} {sign}{formatting.quantity(Value(abs(change)))}")
    return f"most of all {', '.join(told)}" if told else "the opcode mix is the same"


def _added(pair: PairComparison) -> list[OpcodeChange]:
    """The opcodes of which most were added; only where there are more instructions in all."""
    return [one for one in pair.opcodes if one.b > one.a][:_OPCODES_SAID]


def _elsewhere(told: Explanation, others: Sequence[Explanation]) -> Iterator[Statement]:
    """The other launches of the report that got better or worse: they are not looked at here."""
    moved = [
        one for one in others if one is not told and one.verdict.traits.moved and one.delta_us is not None
    ]
    if not moved:
        return
    moved.sort(key=lambda one: -abs(one.delta_us or 0.0))
    said = ", ".join(
        f"{one.kernel} {format_time(one.a_us or 0.0)} → {format_time(one.b_us or 0.0)} ({one.verdict.value})"
        for one in moved[:3]
    )
    more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
    headlines = [one.pair.headline for one in moved[:3]]
    inputs = tuple(
        MetricInput(one.metric, one.concept, f"{one.label}, {of.kernel}", one.b, one.a)
        for one, of in zip(headlines, moved, strict=False)
        if one
    )
    part = abs(moved[0].delta_us or 0.0) / max(moved[0].a_us or 1.0, moved[0].b_us or 1.0)
    text = f"Other launches moved: {said}{more}. To look at one: --kernel."
    sure = _BY_PAIRS if all(_judged_by_pairs(one.pair) for one in moved) else _ONE_PAIR
    yield Statement("change:elsewhere", CHANGE, text, inputs, Evidence.MEASURED, sure, weight=part)


def _share(told: Explanation, us: float | None) -> float | None:
    """Of the longer side's time."""
    longest = max(told.a_us or 0.0, told.b_us or 0.0)
    return min(abs(us) / longest, 1.0) if us is not None and longest else None


def _before(duration: MetricInput) -> tuple[MetricInput, ...]:
    """The baseline's duration as an input of its own, where it is what is missing."""
    if duration.baseline is None or duration.baseline.number is not None:
        return ()
    return (
        MetricInput(
            duration.name,
            duration.concept,
            f"{duration.label}, baseline",
            duration.baseline,
            None,
            duration.line,
        ),
    )


def _wanted(concept: str, reading: LaunchInputs) -> MetricInput:
    """What the full split lacks: B's own value, or a missing one where only A lacks it."""
    one = reading[concept]
    if not one.valid:
        return one
    before = one.baseline if one.baseline is not None and one.baseline.number is None else NOT_COLLECTED
    return MetricInput(one.name, concept, f"{one.label}, baseline", before, None, one.line)
