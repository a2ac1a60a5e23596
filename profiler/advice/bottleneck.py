"""Rules on a launch's own counters: which unit limits it, what its warps wait for, which SMs are idle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from profiler.advice.levers import FEWER_INSTRUCTIONS_LEVER, MORE_BYTES_IN_FLIGHT, next_register_step
from profiler.advice.quantities import Reading, quantity_text, read_quantity
from profiler.advice.rules import (
    DEBUG_BUILD,
    LEFT_IDLE,
    LIMIT_PCT,
    NEAR_PP,
    Advised,
    UnitLoad,
    apply_rules,
    busiest_unit,
    known_steps_words,
    unit_loads,
)
from profiler.advice.stall_levers import NOT_STALLED, STALL_REASONS, advice_for_stall
from profiler.advice.statement import (
    BOTTLENECK,
    LEVER,
    NO_ACTION,
    LaunchMetrics,
    MetricInput,
    OpenQuestion,
    Statement,
    all_valid,
    doubted,
    format_share,
)
from profiler.advice.techniques import FEWER_INSTRUCTIONS, PREFETCH, techniques_of
from profiler.compare.metric_verdict import SHORT_NS
from profiler.evidence import formatting
from profiler.evidence.metric_table import Metric
from profiler.evidence.values import Evidence

_Answers = Iterator[Statement | OpenQuestion]

ISSUE_PCT = 80.0  # of cycles with an issue: from here on fewer instructions count, not shorter waits
WAIT_SHARE = 0.15  # of the latency of an issue: a reason below it is not worth a statement of its own
ROOF_PCT = 88.0  # of DRAM's peak: good kernels reach 88 to 92 %
EXCESS_SHARE = 0.05  # of sectors: below it none is worth a word
LOCAL_SHARE, _LITTLE_LOCAL = 0.1, 0.01  # of local and global sectors: with a lever, and worth a word
_DRAM_LIMIT_PCT = 85.0  # of its peak: below it more bytes in flight help
_NO_BOUND = "no upper bound: removing the cause also removes its instructions and their latency"
_WAITING_ALONE = "no upper bound: removing instructions along with the waiting saves more"
# Stall reasons whose levers change instructions, and leave what L2 and DRAM move.
_LEAVE_TRAFFIC = ("barrier", "membar", "sleeping", "branch_resolving", "no_instruction", "imc_miss")
# Units whose work is traffic; that of all others is instructions.
_OF_TRAFFIC = ("sol_memory", "sol_dram", "sol_l2", "sol_l1", "l1_requests", "l1_wavefronts", "l2_atomics")
# What a share is of, in words that follow "of".
_OF_PEAK = "peak"
_OF_LATENCY, _NO_ISSUE = "the cycles between two issues", "the cycles (those without an issue)"
_MAX_WAITS = 2  # stall reasons with a statement
_STALL_SLACK = 0.1  # of the latency: how far the stalls' sum and the latency may lie apart
_MAX_STALL_RATIO = 1.2  # of the stalls' sum to the latency: 1.14 was seen, of a launch of 11 µs
_MORE_CONFLICTS = 1.05  # times the baseline's conflicts: from here on the rise deserves an explanation
_L1 = "L1/TEX and shared memory"
_MAIN_QUESTIONS = ("limit", "waiting")
_COMPUTE_PARTS = (
    "issue_slots",
    "pipe_fp64",
    "pipe_fma",
    "pipe_alu",
    "pipe_xu",
    "pipe_lsu",
    "pipe_adu",
    "tensor_busy",
)


def find_bottlenecks(
    metrics: LaunchMetrics, stalls: Mapping[str, Metric]
) -> tuple[Statement | OpenQuestion, ...]:
    """Every statement that the launch's own counters support, and every question that they leave open.

    `stalls` are the stall reasons that metrics.txt declares and the chip has. Removing a counter never adds a
    lever: a rule runs on all the counters that it decides by, or becomes an open question.
    """
    answers: list[Statement | OpenQuestion] = [
        _advised(answer, metrics) if isinstance(answer, Advised) else answer
        for answer in apply_rules(metrics)
    ]
    advised = {answer.id for answer in answers if isinstance(answer, Statement)}
    answers += chain.from_iterable(rule(metrics) for rule in (_hardware_conflicts, _at_the_roof))
    if not advised & {"local", "local:limit"}:
        answers += _local_memory(metrics)
    if "debug:local" not in advised:
        answers += _debug_build(metrics)
    answers += _waiting(metrics, stalls)
    # Where there is something to try, what else is unknown is no main question.
    is_main = not any(isinstance(answer, Statement) and answer.lever for answer in answers)
    answers = [*_limiting_unit(metrics), *answers]
    if is_main:
        answers = [
            replace(answer, main=True)
            if isinstance(answer, OpenQuestion) and answer.id in _MAIN_QUESTIONS
            else answer
            for answer in answers
        ]
    return tuple(answers)


def _statement(
    metrics: LaunchMetrics,
    name: str,
    kind: str,
    text: str,
    inputs: tuple[MetricInput, ...],
    *,
    share: float | None = None,
    saves_at_most: float | None = None,
    taken: float | None = None,
    weight: float = 0.0,
    lever: str = "",
    confidence: str = "",
    techniques: tuple[str, ...] = (),
    refuted_by: str = "",
    share_of: str = "",
) -> Statement:
    """A statement on one measured launch; it has no lever where an input is invalid."""
    duration = metrics["duration"].value
    is_short = duration.number is not None and duration.number < SHORT_NS
    reservations = (
        f"{confidence}; " if confidence else "",
        "one launch under the profiler",
        ", shorter than 50 µs, so launch overhead counts" if is_short else "",
    )
    return Statement(
        name,
        kind,
        text,
        inputs,
        Evidence.MEASURED,
        "".join(reservations),
        lever if lever and all_valid(inputs) else None,
        None if share is None else min(max(share, 0.0), 1.0),
        saves_at_most,
        taken,
        weight,
        techniques=techniques,
        refuted_by=refuted_by,
        share_of=share_of,
    )


def _limiting_unit(metrics: LaunchMetrics) -> _Answers:
    """The unit nearest to its peak, or that none is near and latency limits the time."""
    compute, memory, *levels = metrics.of("sol_compute", "sol_memory", "sol_dram", "sol_l2")
    if not all_valid((compute, memory)):
        yield OpenQuestion("limit", "which unit limits the time", (compute, memory, *levels))
        return
    inputs = (compute, memory, *(level for level in levels if level.valid))
    shares = f"compute at {compute.text}, memory at {memory.text} of peak"
    share = max(compute.number, memory.number) / 100
    where_active = read_quantity("compute_of_active", metrics)
    if share * 100 < LIMIT_PCT and (where_active.number or 0.0) >= LIMIT_PCT:
        yield _limit_of_active(metrics, inputs, where_active)
    elif share * 100 < LIMIT_PCT:
        yield _latency_or_one_unit(metrics, inputs, shares, share)
    elif memory.number >= compute.number:
        yield from _limiting_level(metrics, memory, levels, inputs, shares)
    else:
        text, pipes = _busiest_pipe(metrics, compute.number)
        yield _statement(
            metrics,
            "limit:compute",
            BOTTLENECK,
            f"Compute limits this launch: {shares}{text}",
            (*inputs, *pipes),
            share=share,
            share_of=_OF_PEAK,
        )


def _limit_of_active(
    metrics: LaunchMetrics, inputs: tuple[MetricInput, ...], where_active: Reading
) -> Statement:
    """That compute limits the SMs that have work, which the average over all SMs and the time hides."""
    assert where_active.number is not None
    compute, memory = inputs[:2]
    text, pipes = _busiest_pipe(metrics, compute.number)
    busy = quantity_text("compute_of_active", where_active.number)
    active, elapsed = metrics.of("sm_cycles_active", "cycles")
    working = format_share(min(active.number / elapsed.number, 1.0))
    return _statement(
        metrics,
        "limit:compute",
        BOTTLENECK,
        f"Compute limits the SMs that have work: {busy} of peak there. They have work for {working} of the "
        f"time; over all SMs and the whole time "
        f"compute is at {compute.text}, memory at {memory.text} of peak{text}",
        tuple({metric.name: metric for metric in (*inputs, active, elapsed, *pipes)}.values()),
        share=where_active.number / 100,
        share_of="peak where SMs have work",
    )


def _latency_or_one_unit(
    metrics: LaunchMetrics, inputs: tuple[MetricInput, ...], shares: str, share: float
) -> Statement:
    """That latency limits, unless a unit's own counter says that it is near its peak."""
    busiest = max(unit_loads(metrics), key=lambda load: load.share)
    own = [*(load.inputs[0] for load in unit_loads(metrics)), metrics["sol_l1"]]
    most = max((metric for metric in own if metric.valid), key=lambda metric: metric.number)
    inputs = tuple({metric.name: metric for metric in (*inputs, most, *busiest.inputs)}.values())
    if most.number >= LIMIT_PCT:
        text = f"The busiest unit, by a counter of its own: {most.label}, {most.text} of its peak ({shares})."
        return _statement(
            metrics, "limit:unit", BOTTLENECK, text, inputs, share=busiest.share, share_of=_OF_PEAK
        )
    if most.number > share * 100:
        shares += f", {most.label} at {most.text}"
    text = f"No unit is near its peak ({shares}): the time goes into waiting."
    return _statement(
        metrics, "limit:latency", BOTTLENECK, text, inputs, share=busiest.leaves, share_of=LEFT_IDLE
    )


def _limiting_level(
    metrics: LaunchMetrics,
    memory: MetricInput,
    levels: Sequence[MetricInput],
    inputs: tuple[MetricInput, ...],
    shares: str,
) -> _Answers:
    """The level of memory whose throughput is the memory's; a question where a level was not counted."""
    dram, l2 = levels
    l1 = tuple(metric for metric in metrics.of("l1_requests", "l1_wavefronts") if metric.valid)
    known = {"DRAM": (dram,) if dram.valid else (), "L2": (l2,) if l2.valid else ()}
    near = {
        name: metric
        for name, metrics_of_level in (*known.items(), (_L1, l1))
        for metric in metrics_of_level
        if metric.number >= memory.number - NEAR_PP
    }
    name = max(near, key=lambda one: near[one].number, default="")
    if all_valid(levels) and name in ("", _L1):
        # What remains of the memory throughput is that of L1, whose own share is one of active time.
        name, number = _L1, memory.text
    elif name:
        number = near[name].text
        inputs = tuple({metric.name: metric for metric in (*inputs, near[name])}.values())
    else:
        text = f"Memory limits this launch: {memory.text} of its peak ({shares}); which level is unknown."
        yield _limited_by_memory(metrics, memory, text, inputs)
        missing = tuple(level for level in (*levels, *metrics.of("l1_wavefronts")) if not level.valid)
        yield OpenQuestion("level", "which level of memory limits the launch", missing)
        return
    verb = "limit this launch" if name == _L1 else "limits this launch"
    if name == "DRAM" and dram.number < _DRAM_LIMIT_PCT:
        verb = "is the busiest unit"
    text = f"{name} {verb}: {number} of {'their' if name == _L1 else 'its'} peak ({shares})."
    yield _limited_by_memory(metrics, memory, text, inputs)


def _limited_by_memory(
    metrics: LaunchMetrics, memory: MetricInput, text: str, inputs: tuple[MetricInput, ...]
) -> Statement:
    """That memory limits the time, by the share of its peak."""
    share = memory.number / 100
    return _statement(metrics, "limit:memory", BOTTLENECK, text, inputs, share=share, share_of=_OF_PEAK)


def _busiest_pipe(metrics: LaunchMetrics, compute_pct: float) -> tuple[str, tuple[MetricInput, ...]]:
    """What makes the compute throughput, in words: a pipe, or the issue slots."""
    parts = tuple(part for part in metrics.of(*_COMPUTE_PARTS) if part.valid)
    busiest = max(parts, key=lambda part: part.number, default=None)
    if busiest is None or busiest.number < compute_pct - NEAR_PP:
        return ", by none of the parts that were counted.", parts
    return f"; the busiest part: {busiest.label}, {busiest.text}.", (busiest,)


def _waiting(metrics: LaunchMetrics, stalls: Mapping[str, Metric]) -> _Answers:
    """What warps wait for.

    A stall reason without a number may be the largest. Where some are missing, the others count only as far
    as they exceed the latency that is left for those.
    """
    latency, issue = metrics.of("warp_latency", "issue_active")
    by_reason = {reason: metrics[metric.concept] for reason, metric in stalls.items()}
    valid_stalls = [stall for stall in by_reason.values() if stall.valid]
    invalid = tuple(stall for stall in by_reason.values() if not stall.valid)
    total = sum(stall.number for stall in valid_stalls)
    if not (latency.valid and issue.valid and latency.number and by_reason):
        yield OpenQuestion("waiting", "what warps wait for", (latency, issue, *invalid))
        return
    if total > latency.number * _MAX_STALL_RATIO:
        contradicting = doubted(latency, *(stall for stall in valid_stalls if stall.number))
        question = "what warps wait for: the stalls are more than the latency"
        yield OpenQuestion("waiting", question, contradicting)
        return
    # What the missing stalls may account for, with a slack since the sum never matches exactly.
    unaccounted = max(latency.number * (1 + _STALL_SLACK) - total, 0.0) if invalid else 0.0
    waits = sorted(
        (
            (stall.number, reason)
            for reason, stall in by_reason.items()
            if stall.valid and reason not in NOT_STALLED
        ),
        reverse=True,
    )
    if not waits or waits[0][0] <= unaccounted:
        yield OpenQuestion("waiting", "what warps wait for", (latency, issue, *invalid))
        return
    if issue.number >= ISSUE_PCT:
        text = f"Schedulers issue in {issue.text} of their cycles: instructions are the limit, not waiting."
        share = issue.number / 100
        refuted_by = "the instructions fall and the time does not"
        yield _statement(
            metrics,
            "issue",
            BOTTLENECK,
            text,
            (issue,),
            share=share,
            lever=FEWER_INSTRUCTIONS_LEVER,
            confidence=_known("issue", refuted_by),
            techniques=(FEWER_INSTRUCTIONS,),
            refuted_by=refuted_by,
            share_of="cycles of the schedulers",
        )
        return
    for rank, (cycles, reason) in enumerate(waits[:_MAX_WAITS]):
        share = cycles / latency.number
        if (rank and share < WAIT_SHARE) or cycles <= unaccounted:
            return
        yield _wait(metrics, reason, by_reason[reason], latency, issue, share)


def _wait(
    metrics: LaunchMetrics,
    reason: str,
    stall: MetricInput,
    latency: MetricInput,
    issue: MetricInput,
    share: float,
) -> Statement:
    meaning = STALL_REASONS[reason].meaning if reason in STALL_REASONS else reason
    advice = advice_for_stall(reason, metrics)
    cycles = (
        f"{formatting.digits(stall.number)} of {latency.text}s between two issues ({format_share(share)})"
    )
    text = f"Warps wait for {meaning} ({reason}): {cycles}; schedulers issue in {issue.text} of cycles"
    text += f"; {advice.words}." if advice.words else "."
    refuted_by = f"the cycles of {reason} fall and the time does not"
    known = f"{_known(f'waiting:{reason}', refuted_by)}; " if advice.lever else ""
    waiting, share_of = min((share, _OF_LATENCY), (1 - issue.number / 100, _NO_ISSUE))
    waiting = min(waiting, advice.at_most)
    techniques = techniques_of(advice.lever)
    bounding = None
    if advice.lever == MORE_BYTES_IN_FLIGHT or PREFETCH in techniques:
        bounding = busiest_unit(metrics)
    elif advice.lever and reason in _LEAVE_TRAFFIC:
        bounding = busiest_unit(metrics, ("sol_dram", "sol_l2"))
    bound, words = _bound(bounding, _WAITING_ALONE)
    inputs = (stall, latency, issue, *advice.inputs, *(bounding.inputs if bounding else ()))
    return _statement(
        metrics,
        f"waiting:{reason}",
        BOTTLENECK,
        text,
        tuple({metric.name: metric for metric in inputs}.values()),
        share=waiting if bound is None else min(waiting, bound),
        saves_at_most=bound,
        lever=advice.lever,
        confidence=f"{known}{words}",
        techniques=techniques,
        refuted_by=refuted_by,
        share_of=share_of,
    )


def _bound(load: UnitLoad | None, otherwise: str) -> tuple[float | None, str]:
    """What a lever that leaves the unit's work saves of the time at most, and why; else `otherwise`."""
    if load is None:
        return None, otherwise
    throughput = load.inputs[0]
    work = "traffic" if throughput.concept in _OF_TRAFFIC else "instructions"
    name = throughput.label.partition(" (")[0].removesuffix(" busy")
    words = f"the lever does not reduce {work}, and {name} is already at {throughput.text} of peak"
    return load.leaves, f"upper bound: {words}"


def _known(name: str, refuted_by: str) -> str:
    """How often the lever of a statement helped, and what would refute it."""
    return f"{known_steps_words(name)}; refuted if {refuted_by}"


def _advised(advised: Advised, metrics: LaunchMetrics) -> Statement:
    """What a rule advises, as a statement."""
    rule = advised.rule
    text, inputs = advised.finding, advised.inputs
    if rule.id == "occupancy:room":
        step, step_inputs = next_register_step(metrics)
        text, inputs = " ".join(filter(None, (text, step))), (*inputs, *step_inputs)
    bound, words = _bound(advised.at_most, _NO_BOUND)
    return _statement(
        metrics,
        rule.id,
        LEVER,
        text,
        tuple({metric.name: metric for metric in inputs}.values()),
        share=advised.share,
        saves_at_most=bound,
        taken=advised.taken,
        lever=advised.lever,
        confidence=f"{_known(rule.id, rule.refuted_by)}; {words}",
        techniques=rule.techniques,
        refuted_by=rule.refuted_by,
        share_of=advised.share_of,
    )


def _hardware_conflicts(metrics: LaunchMetrics) -> _Answers:
    """Bank conflicts that no access pattern makes: the counter also counts lost arbitration."""
    conflicts, excess = metrics.of("shared_conflicts", "shared_excess")
    inputs = (conflicts, excess)
    if not all_valid(inputs) or excess.number or not conflicts.number:
        return
    has_more = (
        conflicts.baseline is not None
        and conflicts.number > (conflicts.baseline_number or 0) * _MORE_CONFLICTS
    )
    weight = 0.5 if has_more else 0.0  # a reader would look for their cause in the code
    before = "" if conflicts.baseline_text is None else f" (baseline {conflicts.baseline_text})"
    text = (
        f"{conflicts.text} hardware bank conflicts{before}, but no excess wavefronts: lost "
        "arbitration, not the access pattern. Nothing to fix."
    )
    yield _statement(metrics, "shared:arbitration", NO_ACTION, text, inputs, weight=weight)


def _at_the_roof(metrics: LaunchMetrics) -> _Answers:
    """A kernel that DRAM limits and that moves nothing in vain is done, as long as it has to move this."""
    dram, excess = metrics["sol_dram"], read_quantity("excess_sectors", metrics)
    if not dram.valid or dram.number < ROOF_PCT or excess.number is None or excess.number >= EXCESS_SHARE:
        return
    text = (
        f"DRAM is at {dram.text} of its peak and no sector is wasted: stop here, unless fewer bytes "
        "can be moved."
    )
    yield _statement(metrics, "roof", NO_ACTION, text, (dram, *excess.inputs), weight=dram.number / 100)


def _local_memory(metrics: LaunchMetrics) -> _Answers:
    """Local memory that no rule advises against: it is little, or neither waited for nor what limits."""
    reading = read_quantity("local_sectors", metrics)
    if reading.number is None or reading.number < _LITTLE_LOCAL:
        return
    share = format_share(reading.number)
    if reading.number < LOCAL_SHARE:
        text = (
            f"{share} of the local and global sectors are local: spills or local arrays, which these "
            "counters do not tell apart; the compiler does (`profiler static`)."
        )
        yield _statement(metrics, "local", BOTTLENECK, text, reading.inputs, weight=reading.number)
        return
    waiting = read_quantity("wait_for_memory", metrics)
    memory = metrics["sol_memory"]
    if waiting.number is None or not memory.valid or memory.number >= LIMIT_PCT:
        return
    text = (
        f"{share} of the local and global sectors are local, but warps wait for memory only "
        f"{format_share(waiting.number)} of their time, with memory at {memory.text} of its peak."
    )
    inputs = (*reading.inputs, *waiting.inputs, memory)
    yield _statement(metrics, "local", NO_ACTION, text, inputs, share=waiting.number)


def _debug_build(metrics: LaunchMetrics) -> _Answers:
    """A note before all levers: an optimised build changes what the counters of instructions say."""
    readings = {condition.quantity: read_quantity(condition.quantity, metrics) for condition in DEBUG_BUILD}
    numbers = {name: reading.number for name, reading in readings.items() if reading.number is not None}
    if not all(
        condition.quantity in numbers and condition.holds(numbers[condition.quantity])
        for condition in DEBUG_BUILD
    ):
        return
    words = {name: quantity_text(name, number) for name, number in numbers.items()}
    text = (
        f"This looks like a debug build: {words['moves']} of the instructions are MOV, with "
        f"{words['fixed_latency']} of fixed latency. Build without -G (and with -O3) before you go by "
        "what follows: access patterns, divergence and barriers stay, what concerns instructions does not."
    )
    inputs = chain.from_iterable(reading.inputs for reading in readings.values())
    yield _statement(metrics, "debug", BOTTLENECK, text, tuple(inputs), weight=1.0)
