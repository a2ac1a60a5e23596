"""Rules on a launch's own counters: which unit limits it, what its warps wait for, which SMs are idle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from profiler.advice.levers import (
    FEWER_REGISTERS,
    LESS_DRAM,
    LESS_L2,
    LESS_SHARED,
    PEAK_PCT,
    SWIZZLE,
    blocks_lever,
    tensor_cores_lever,
)
from profiler.advice.stall_levers import NOT_STALLED, STALL_REASONS, advice_for_stall
from profiler.advice.statement import (
    BOTTLENECK,
    LEVER,
    MAX_PART,
    NO_ACTION,
    LaunchMetrics,
    MetricInput,
    OpenQuestion,
    Statement,
    all_valid,
    doubted,
    format_share,
)
from profiler.build.occupancy import occupancy
from profiler.compare import SHORT_NS
from profiler.evidence import ARCHITECTURES, Evidence, Metric, Value, find_architecture, formatting

_Answers = Iterator[Statement | OpenQuestion]

ISSUE_PCT = 80.0  # of cycles with an issue: from here on fewer instructions count, not shorter waits
WAIT_SHARE = 0.15  # of the latency of an issue: a reason below it is not worth a statement of its own
IDLE_SHARE = 0.1  # of the SMs' cycles
EXCESS_SHARE = 0.05  # of sectors
SCALAR_SHARE = 0.2  # of warp instructions: fused multiply-adds outside the tensor cores
FULL_WARPS = 24.0  # threads of 32 that an instruction works for, below which divergence is worth a word
OCCUPANCY_PCT, NO_ELIGIBLE_PCT = 50.0, 40.0
_MAX_WAITS = 2  # stall reasons with a statement
_STALL_SLACK = 0.1  # of the latency: how far the stalls' sum and the latency may lie apart
_MAX_STALL_RATIO = 1.2  # of the stalls' sum to the latency: 1.14 was seen, of a launch of 11 µs
_LANES = 32.0  # of a warp
_MORE_CONFLICTS = 1.05  # times the baseline's conflicts: from here on the rise deserves an explanation
_NEAR_PP = 5.0  # a pipe this near to the compute throughput is what makes it


def find_bottlenecks(
    metrics: LaunchMetrics, stalls: Mapping[str, Metric]
) -> tuple[Statement | OpenQuestion, ...]:
    """Every statement that the launch's own counters support, and every question that they leave open.

    `stalls` are the stall reasons that metrics.txt declares and the chip has. Removing a counter never adds a
    lever: a rule runs on all the counters that it decides by, or becomes an open question.
    """
    rules: tuple[Callable[[LaunchMetrics], _Answers], ...] = (
        _limiting_unit,
        _idle_sms,
        _occupancy,
        _bank_conflicts,
        _tensor_cores,
        _local_memory,
        _uncoalesced_sectors,
        _divergence,
    )
    return tuple(chain(_waiting(metrics, stalls), *(rule(metrics) for rule in rules)))


def _statement(
    metrics: LaunchMetrics,
    name: str,
    kind: str,
    text: str,
    inputs: tuple[MetricInput, ...],
    *,
    share: float | None = None,
    weight: float = 0.0,
    lever: str = "",
    confidence: str = "",
) -> Statement:
    """A statement on one measured launch; it has no lever where an input is invalid."""
    duration = metrics["duration"].value
    is_short = duration.number is not None and duration.number < SHORT_NS
    reservations = (
        f"{confidence}; " if confidence else "",
        "one launch under the profiler",
        ", shorter than 50 µs: its start and end weigh" if is_short else "",
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
        weight,
    )


def _limiting_unit(metrics: LaunchMetrics) -> _Answers:
    """The unit nearest to its peak, or that none is near and latency limits the time."""
    names = ("sol_compute", "sol_memory", "sol_dram", "sol_l2", "sol_l1")
    compute, memory, dram, l2, l1 = inputs = metrics.of(*names)
    if not all_valid(inputs):
        yield OpenQuestion("limit", "which unit limits the time", inputs, main=True)
        return
    shares = f"compute at {compute.text}, memory at {memory.text} of peak"
    share = max(compute.number, memory.number) / 100
    if share * 100 < PEAK_PCT:
        text = f"No unit is near its peak ({shares}): the time goes into waiting."
        yield _statement(metrics, "limit:latency", BOTTLENECK, text, inputs, share=1 - share)
    elif memory.number >= compute.number:
        levels = {"DRAM": dram, "L2": l2, "L1/TEX and shared memory": l1}
        level = max(("DRAM", "L2"), key=lambda name: levels[name].number)
        if levels[level].number < memory.number - _NEAR_PP:  # L1's share is one of active time, not of all
            level = "L1/TEX and shared memory"
        wider = "fewer and wider accesses (ldmatrix, 128 bits), more reuse in registers"
        lever = {"DRAM": LESS_DRAM, "L2": LESS_L2}.get(level, wider)
        text = f"{level} limits it: {levels[level].text} of its peak ({shares})."
        yield _statement(metrics, "limit:memory", BOTTLENECK, text, inputs, share=share, lever=lever)
    else:
        yield _compute_limit(metrics, inputs, f"Compute limits it: {shares}", share)


_PIPE_LEVERS = {
    "tensor_busy": "skip work that is masked away; fewer tensor instructions are left to save",
    "pipe_fma": "move multiply-adds to the tensor cores, or do fewer",
    "pipe_alu": "fewer integer, compare and conversion instructions: hoist address arithmetic",
    "pipe_xu": "fewer exp and rcp: exp2 on scaled scores, one division a row, some by polynomial",
    "pipe_lsu": "fewer and wider memory instructions (ldmatrix, 128 bits)",
}


def _compute_limit(
    metrics: LaunchMetrics, inputs: tuple[MetricInput, ...], text: str, share: float
) -> Statement:
    """The compute limit by its busiest pipe; a lever only if that explains the throughput.

    Every pipe of metrics.txt has to be counted, since the busiest may be one that was not.
    """
    pipes = metrics.of(*_PIPE_LEVERS)
    lever = ""
    if not all_valid(pipes):
        text += "; which pipe it is, is unknown."
    else:
        busiest = max(pipes, key=lambda pipe: pipe.number)
        if busiest.number < inputs[0].number - _NEAR_PP:
            text += f"; by none of the pipes in metrics.txt (the busiest: {busiest.label}, {busiest.text})."
        else:
            text += f"; the busiest pipe: {busiest.label}, {busiest.text}."
            lever = _PIPE_LEVERS[busiest.concept]
    return _statement(metrics, "limit:compute", BOTTLENECK, text, (*inputs, *pipes), share=share, lever=lever)


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
        yield OpenQuestion("waiting", "what warps wait for", (latency, issue, *invalid), main=True)
        return
    if total > latency.number * _MAX_STALL_RATIO:
        contradicting = doubted(latency, *(stall for stall in valid_stalls if stall.number))
        question = "what warps wait for: the stalls are more than the latency"
        yield OpenQuestion("waiting", question, contradicting, main=True)
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
        yield OpenQuestion("waiting", "what warps wait for", (latency, issue, *invalid), main=True)
        return
    if issue.number >= ISSUE_PCT:
        text = f"Schedulers issue in {issue.text} of their cycles: instructions are the limit, not waiting."
        lever = "fewer instructions: tensor cores, wider accesses, address arithmetic out of the loop"
        share = issue.number / 100
        yield _statement(metrics, "issue", BOTTLENECK, text, (issue,), share=share, lever=lever)
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
    cycles = f"{formatting.digits(stall.number)} of {latency.text}s between two issues"
    text = f"Warps wait for {meaning} ({reason}): {cycles}; schedulers issue in {issue.text} of cycles"
    text += f"; {advice.words}." if advice.words else "."
    return _statement(
        metrics,
        f"waiting:{reason}",
        BOTTLENECK,
        text,
        (stall, latency, issue, *advice.inputs),
        share=min(share, 1 - issue.number / 100),
        lever=advice.lever,
        confidence="the share is the most that less waiting could save",
    )


def _idle_sms(metrics: LaunchMetrics) -> _Answers:
    """SMs without work: the grid is too small, or its blocks do not divide evenly."""
    names = ("sm_cycles_active", "sm_cycles_elapsed", "waves", "grid_size", "sm_count")
    active, elapsed, waves, grid, sms = inputs = metrics.of(*names)
    if not all_valid(inputs) or not elapsed.number:
        yield OpenQuestion("idle", "whether SMs stand idle", inputs)
        return
    has_zero = not all(metric.number for metric in (active, waves, grid, sms))  # of what ran none can be 0
    if has_zero or active.number > MAX_PART * elapsed.number:
        yield OpenQuestion("idle", "whether SMs stand idle", doubted(*inputs))
        return
    share = 1 - active.number / elapsed.number
    if share < IDLE_SHARE:
        return
    grid_words = f"{grid.text} blocks on {sms.text} SMs, {waves.text} waves"
    text = f"SMs are without work for {format_share(share)} of the time: {grid_words}."
    lever = blocks_lever(waves.number)
    yield _statement(metrics, "idle", BOTTLENECK, text, inputs, share=share, lever=lever)


def _occupancy(metrics: LaunchMetrics) -> _Answers:
    """Too few warps to hide latency, and what limits them, where no unit is at its peak and warps wait."""
    limits = {
        "registers": metrics["limit_registers"],
        "shared memory": metrics["limit_shared"],
        "warps": metrics["limit_warps"],
        "blocks": metrics["limit_blocks"],
    }
    architecture = find_architecture(metrics.chip)
    if architecture is not None and architecture.limits_barriers:
        limits["barriers"] = metrics["limit_barriers"]
    names = ("occupancy_theoretical", "occupancy", "no_eligible", "waves", "sol_compute", "sol_memory")
    theoretical, achieved, no_eligible, waves, compute, memory = counters = metrics.of(*names)
    inputs = (*counters, *limits.values())
    question = "whether more warps would hide latency, and what limits them"
    if not all_valid(inputs):
        yield OpenQuestion("occupancy", question, inputs)
        return
    # A limit of 0 blocks says that nothing fits, but the launch ran.
    if impossible := doubted(*(limit for limit in limits.values() if not limit.number)):
        yield OpenQuestion("occupancy", question, impossible)
        return
    latency_is_hidden = theoretical.number > OCCUPANCY_PCT or no_eligible.number < NO_ELIGIBLE_PCT
    if latency_is_hidden or waves.number < 1 or max(compute.number, memory.number) >= PEAK_PCT:
        return
    blocks = min(limit.number for limit in limits.values())
    binding = [name for name, limit in limits.items() if limit.number == blocks]
    text = (
        f"{' and '.join(binding).capitalize()} limit an SM to {blocks:.0f} blocks, {theoretical.text} "
        f"occupancy ({achieved.text} achieved), and in {no_eligible.text} of cycles no warp can issue."
    )
    levers = {"registers": FEWER_REGISTERS, "shared memory": LESS_SHARED}
    lever = "; ".join(levers[name] for name in binding if name in levers) or "a block of another size"
    if gain := _next_register_step(metrics, binding, blocks):
        inputs = (*inputs, *metrics.of("registers", "block_size"))
        text += f" {gain}"
    # More warps can fill neither more cycles than are idle nor more than they add to the occupancy.
    share = min(no_eligible.number, 100 - theoretical.number) / 100
    confidence = "a guess: more warps help only where latency is what is left"
    yield _statement(
        metrics, "occupancy", LEVER, text, inputs, share=share, lever=lever, confidence=confidence
    )


def _next_register_step(metrics: LaunchMetrics, binding: Sequence[str], blocks: float) -> str:
    """The registers per thread with which one more block fits; "" where the model disagrees with ncu."""
    registers, threads = metrics.of("registers", "block_size")
    chip = metrics.chip
    if binding != ["registers"] or chip not in ARCHITECTURES or not all_valid((registers, threads)):
        return ""
    own, block_size = int(registers.number), int(threads.number)
    if occupancy(chip, own, block_size, 0).blocks != blocks:
        return ""
    for fewer in range(own - 1, 0, -1):
        if occupancy(chip, fewer, block_size, 0).blocks > blocks:
            return f"With {fewer} registers in place of {own} one block more fits."
    return ""


def _bank_conflicts(metrics: LaunchMetrics) -> _Answers:
    """Bank conflicts: the excess is due to the access pattern, the rest of the counter to arbitration."""
    conflicts, excess, wavefronts = metrics.of(
        "shared_conflicts", "shared_excess", "shared_wavefronts_source"
    )
    question = "whether shared memory is accessed without conflicts"
    if not all_valid((excess, wavefronts)):
        yield OpenQuestion("shared", question, (excess, wavefronts))
        return
    if excess.number > MAX_PART * wavefronts.number:
        yield OpenQuestion("shared", question, doubted(excess, wavefronts))
        return
    if excess.number > 0 and wavefronts.number:
        latency, *stalls = metrics.of("warp_latency", "stall_short_scoreboard", "stall_mio_throttle")
        inputs: tuple[MetricInput, ...] = (excess, wavefronts)
        part, share = excess.number / wavefronts.number, None
        if latency.valid and latency.number and all_valid(stalls):
            inputs = (*inputs, latency, *stalls)
            share = part * sum(stall.number for stall in stalls) / latency.number
        text = (
            f"{excess.count} of {wavefronts.count} shared-memory wavefronts are excess, by access pattern "
            f"({format_share(part)})."
        )
        yield _statement(metrics, "shared:excess", LEVER, text, inputs, share=share, lever=SWIZZLE)
    elif conflicts.valid and conflicts.number:
        has_more = (
            conflicts.baseline is not None
            and conflicts.number > (conflicts.baseline_number or 0) * _MORE_CONFLICTS
        )
        weight = 0.5 if has_more else 0.0  # a reader would look for their cause in the code
        before = "" if conflicts.baseline_text is None else f" (baseline {conflicts.baseline_text})"
        text = (
            f"{conflicts.text} hardware bank conflicts{before}, but no excess wavefront: that is lost "
            "arbitration, not the access pattern. Nothing to mend."
        )
        inputs = (conflicts, excess, wavefronts)
        yield _statement(metrics, "shared:arbitration", NO_ACTION, text, inputs, weight=weight)


def _tensor_cores(metrics: LaunchMetrics) -> _Answers:
    """Multiply-adds outside the tensor cores, by opcodes alone, since HFMA2 occupies the tensor pipe too."""
    matrix, fused, total = metrics.matrix_opcodes, metrics.opcodes("FFMA", "HFMA2"), metrics.every_opcode
    if not total.valid:
        yield OpenQuestion("tensor", "whether the tensor cores are used", (total,))
        return
    if matrix.number or fused.number < SCALAR_SHARE * total.number:
        return
    share = fused.number / total.number
    yield _statement(
        metrics,
        "tensor:unused",
        LEVER,
        f"No tensor-core instruction ran; FFMA and HFMA2 are {format_share(share)} of all.",
        (matrix, fused, total),
        share=share,
        lever=tensor_cores_lever(metrics.chip),
        confidence="the share is that of the instructions",
    )


def _local_memory(metrics: LaunchMetrics) -> _Answers:
    """Local memory: spills only if a counter of spills says so, for it may be a local array."""
    spills, loads, stores = metrics.of("spill_insts", "local_load_sectors", "local_store_sectors")
    executed = metrics["inst_executed"]
    question = "whether registers spill"
    if spills.valid and executed.valid and executed.number:
        if spills.number > MAX_PART * executed.number:
            yield OpenQuestion("local", question, doubted(spills, executed))
        elif spills.number:
            share = spills.number / executed.number
            text = f"{spills.text} instructions spill registers, {format_share(share, 1)} of all."
            inputs = (spills, executed)
            yield _statement(metrics, "spills", LEVER, text, inputs, share=share, lever=FEWER_REGISTERS)
        return
    if not all_valid((loads, stores)):
        yield OpenQuestion("local", question, (spills, loads, stores))
    elif loads.number + stores.number:
        text = (
            f"Local memory is used ({loads.text}s loaded, {stores.text}s stored): spills or local arrays, "
            "which these counters do not tell apart; the compiler does (`profiler static`)."
        )
        yield _statement(metrics, "local", BOTTLENECK, text, (loads, stores, spills))


def _uncoalesced_sectors(metrics: LaunchMetrics) -> _Answers:
    """Sectors that coalesced accesses would not have touched."""
    excess, loads, stores = sectors = metrics.of(
        "global_excess", "global_load_sectors", "global_store_sectors"
    )
    latency, *stalls = waits = metrics.of("warp_latency", "stall_long_scoreboard", "stall_lg_throttle")
    inputs = (*sectors, *waits)
    question = "whether global memory is accessed coalesced"
    if not all_valid(inputs) or not latency.number:
        yield OpenQuestion("sectors", question, inputs)
        return
    total = loads.number + stores.number
    waited = sum(stall.number for stall in stalls)
    if excess.number > MAX_PART * total or waited > _MAX_STALL_RATIO * latency.number:
        yield OpenQuestion("sectors", question, doubted(*inputs))
        return
    if not total or excess.number < EXCESS_SHARE * total:
        return
    part = excess.number / total
    count = formatting.quantity(Value(excess.number))
    yield _statement(
        metrics,
        "sectors",
        LEVER,
        f"{count} global sectors are excess, {format_share(part)} of those moved.",
        inputs,
        share=part * waited / latency.number,
        lever="coalesce global accesses: neighbouring lanes at neighbouring addresses, 16 bytes a lane",
    )


def _divergence(metrics: LaunchMetrics) -> _Answers:
    """Lanes for which an instruction is not executed."""
    threads = metrics["threads_per_inst_on"]
    if not threads.valid:
        yield OpenQuestion("divergence", "whether warps diverge", (threads,))
    elif not 0 < threads.number <= _LANES * MAX_PART:
        yield OpenQuestion("divergence", "whether warps diverge", doubted(threads))
    elif threads.number < FULL_WARPS:
        text = f"An instruction works for {formatting.digits(threads.number)} of 32 threads."
        lever = "keep the lanes of a warp together: bounds outside the loop, rows of one length in a warp"
        share = 1 - threads.number / _LANES
        yield _statement(metrics, "divergence", LEVER, text, (threads,), share=share, lever=lever)
