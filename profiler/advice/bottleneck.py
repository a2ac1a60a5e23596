"""Where a measured launch's time goes by its own counters: what limits it, what waits, what stands idle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from profiler.advice import stall_levers
from profiler.advice.stall_levers import ISSUING_REASONS, PEAK_PCT, STALL_REASONS
from profiler.advice.statement import (
    BOTTLENECK,
    LEVER,
    MOST_PART,
    NO_ACTION,
    LaunchInputs,
    MetricInput,
    OpenQuestion,
    Statement,
    doubted,
    valid,
)
from profiler.build.occupancy import occupancy
from profiler.compare import SHORT_NS
from profiler.evidence import ARCHITECTURES, Evidence, Metric, Value, find_architecture, formatting

Finding = Statement | OpenQuestion

ISSUE_PCT = 80.0  # of cycles with an issue: from here on fewer instructions count, not shorter waits
WAIT_SHARE = 0.15  # of the latency of an issue: a reason below it is not worth a statement of its own
IDLE_SHARE = 0.1  # of the SMs' cycles
EXCESS_SHARE = 0.05  # of sectors
SCALAR_SHARE = 0.2  # of warp instructions: fused multiply-adds outside the tensor cores
FULL_WARPS = 24.0  # threads of 32 that an instruction works for, below which divergence is worth a word
OCCUPANCY_PCT, NO_ELIGIBLE_PCT = 50.0, 40.0
_WAITS_SAID = 2
_SLACK = 0.1  # of the latency: how far the stalls' sum and the latency may lie apart
_MOST_STALLS = 1.2  # times the latency: 1.14 was seen, of a launch of 11 µs
_LANES = 32.0  # of a warp
_ROSE = 1.05  # times the baseline
_NEAR_PP = 5.0  # a pipe this near to the compute throughput is what makes it


def find_bottlenecks(reading: LaunchInputs, stalls: Mapping[str, Metric]) -> tuple[Finding, ...]:
    """Every statement that the launch's own counters carry, and every question that they leave open.

    `stalls` are the stall reasons that metrics.txt declares and the chip has. Taking a counter away never
    adds a lever: each rule runs on all the counters that it chooses by, or becomes a Gap.
    """
    rules: tuple[Callable[[LaunchInputs], Iterator[Finding]], ...] = (
        _limit,
        _idle,
        _occupancy,
        _shared,
        _tensor,
        _local,
        _sectors,
        _divergence,
    )
    return tuple(chain(_waiting(reading, stalls), *(rule(reading) for rule in rules)))


def _say(
    reading: LaunchInputs,
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
    """A statement on one measured launch; the lever falls where an input is not valid."""
    known = lever if lever and valid(inputs) else None
    sure = f"{confidence}; " if confidence else ""
    short = reading["duration"].value
    small = short.number is not None and short.number < SHORT_NS
    sure += "one launch under the profiler" + (
        ", shorter than 50 µs: its start and end weigh" if small else ""
    )
    bounded = None if share is None else min(max(share, 0.0), 1.0)
    return Statement(name, kind, text, inputs, Evidence.MEASURED, sure, known, bounded, weight)


def _limit(reading: LaunchInputs) -> Iterator[Finding]:
    """The unit nearest to its peak, or none."""
    names = ("sol_compute", "sol_memory", "sol_dram", "sol_l2", "sol_l1")
    compute, memory, dram, l2, l1 = inputs = reading.of(*names)
    if not valid(inputs):
        yield OpenQuestion("limit", "which unit limits the time", inputs, main=True)
        return
    shown = f"compute at {compute.shown}, memory at {memory.shown} of peak"
    share = max(compute.number, memory.number) / 100
    if share * 100 < PEAK_PCT:
        text = f"No unit is near its peak ({shown}): the time goes into waiting."
        yield _say(reading, "limit:latency", BOTTLENECK, text, inputs, share=1 - share)
    elif memory.number >= compute.number:
        levels = {"DRAM": dram, "L2": l2, "L1/TEX and shared memory": l1}
        level = max(("DRAM", "L2"), key=lambda name: levels[name].number)
        if levels[level].number < memory.number - _NEAR_PP:  # L1's share is one of active time, not of all
            level = "L1/TEX and shared memory"
        wide = "fewer and wider accesses (ldmatrix, 128 bits), more reuse in registers"
        lever = {"DRAM": stall_levers.LESS_DRAM, "L2": stall_levers.LESS_L2}.get(level, wide)
        text = f"{level} limits it: {levels[level].shown} of its peak ({shown})."
        yield _say(reading, "limit:memory", BOTTLENECK, text, inputs, share=share, lever=lever)
    else:
        yield _compute_limit(reading, inputs, f"Compute limits it: {shown}", share)


def _compute_limit(
    reading: LaunchInputs, inputs: tuple[MetricInput, ...], text: str, share: float
) -> Statement:
    """A lever only where the busiest pipe is known: one that metrics.txt counts, all of them being there."""
    pipes = reading.of("tensor_busy", "pipe_fma", "pipe_alu", "pipe_xu", "pipe_lsu")
    if not valid(pipes):
        text += "; which pipe it is, is unknown."
        return _say(reading, "limit:compute", BOTTLENECK, text, (*inputs, *pipes), share=share)
    busiest = max(pipes, key=lambda one: one.number)
    if busiest.number < inputs[0].number - _NEAR_PP:
        text += f"; by none of the pipes in metrics.txt (the busiest: {busiest.label}, {busiest.shown})."
        return _say(reading, "limit:compute", BOTTLENECK, text, (*inputs, *pipes), share=share)
    told = {
        "tensor_busy": "skip work that is masked away; fewer tensor instructions are left to save",
        "pipe_fma": "move multiply-adds to the tensor cores, or do fewer",
        "pipe_alu": "fewer integer, compare and conversion instructions: hoist address arithmetic",
        "pipe_xu": "fewer exp and rcp: exp2 on scaled scores, one division a row, some by polynomial",
        "pipe_lsu": "fewer and wider memory instructions (ldmatrix, 128 bits)",
    }
    text += f"; the busiest pipe: {busiest.label}, {busiest.shown}."
    lever, used = told[busiest.concept], (*inputs, *pipes)
    return _say(reading, "limit:compute", BOTTLENECK, text, used, share=share, lever=lever)


def _waiting(reading: LaunchInputs, stalls: Mapping[str, Metric]) -> Iterator[Finding]:
    """What warps wait for. A missing reason may be the largest: the others are held against what is left."""
    latency, issue = reading.of("warp_latency", "issue_active")
    known = {reason: reading[metric.concept] for reason, metric in stalls.items()}
    bad = tuple(one for one in known.values() if not one.valid)
    sums = sum(one.number for one in known.values() if one.valid)
    if not (latency.valid and issue.valid and latency.number and known):
        yield OpenQuestion("waiting", "what warps wait for", (latency, issue, *bad), main=True)
        return
    if sums > latency.number * _MOST_STALLS:
        against = doubted(latency, *(one for one in known.values() if one.valid and one.number))
        yield OpenQuestion(
            "waiting", "what warps wait for: the stalls are more than the latency", against, main=True
        )
        return
    rest = max(latency.number * (1 + _SLACK) - sums, 0.0) if bad else 0.0
    waits = sorted(
        (
            (one.number, reason)
            for reason, one in known.items()
            if one.valid and reason not in ISSUING_REASONS
        ),
        reverse=True,
    )
    if not waits or waits[0][0] <= rest:
        yield OpenQuestion("waiting", "what warps wait for", (latency, issue, *bad), main=True)
        return
    if issue.number >= ISSUE_PCT:
        text = f"Schedulers issue in {issue.shown} of their cycles: instructions are the limit, not waiting."
        lever = "fewer instructions: tensor cores, wider accesses, address arithmetic out of the loop"
        yield _say(reading, "issue", BOTTLENECK, text, (issue,), share=issue.number / 100, lever=lever)
        return
    for place, (cycles, reason) in enumerate(waits[:_WAITS_SAID]):
        share = cycles / latency.number
        if (place and share < WAIT_SHARE) or cycles <= rest:
            return
        yield _wait(reading, reason, known[reason], latency, issue, share)


def _wait(
    reading: LaunchInputs,
    reason: str,
    stall: MetricInput,
    latency: MetricInput,
    issue: MetricInput,
    share: float,
) -> Statement:
    means = STALL_REASONS[reason].means if reason in STALL_REASONS else reason
    advice = stall_levers.advice_for_stall(reason, reading)
    cycles = f"{formatting.digits(stall.number)} of {latency.shown}s between two issues"
    text = f"Warps wait for {means} ({reason}): {cycles}; schedulers issue in {issue.shown} of cycles"
    text += f"; {advice.words}." if advice.words else "."
    inputs = (stall, latency, issue, *advice.inputs)
    at_most = min(share, 1 - issue.number / 100)
    name, sure = f"waiting:{reason}", "the share is the most that less waiting could save"
    return _say(reading, name, BOTTLENECK, text, inputs, share=at_most, lever=advice.lever, confidence=sure)


def _idle(reading: LaunchInputs) -> Iterator[Finding]:
    """SMs without work: a grid too small, or blocks that do not come out even."""
    names = ("sm_cycles_active", "sm_cycles_elapsed", "waves", "grid_size", "sm_count")
    active, elapsed, waves, grid, sms = inputs = reading.of(*names)
    if not valid(inputs) or not elapsed.number:
        yield OpenQuestion("idle", "whether SMs stand idle", inputs)
        return
    never = not all(one.number for one in (active, waves, grid, sms))  # a launch that ran has all of them
    if never or active.number > MOST_PART * elapsed.number:
        yield OpenQuestion("idle", "whether SMs stand idle", doubted(*inputs))
        return
    share = 1 - active.number / elapsed.number
    if share < IDLE_SHARE:
        return
    of = f"{grid.shown} blocks on {sms.shown} SMs, {waves.shown} waves"
    text = f"SMs are without work for {share:.0%} of the time: {of}.".replace("%", " %")
    lever = stall_levers.MORE_BLOCKS if waves.number < 1 else stall_levers.EVEN_BLOCKS
    yield _say(reading, "idle", BOTTLENECK, text, inputs, share=share, lever=lever)


def _occupancy(reading: LaunchInputs) -> Iterator[Finding]:
    """Too few warps to hide latency, and what limits them; where no unit is at its peak and blocks wait."""
    limits = {
        "registers": reading["limit_registers"],
        "shared memory": reading["limit_shared"],
        "warps": reading["limit_warps"],
        "blocks": reading["limit_blocks"],
    }
    architecture = find_architecture(reading.chip)
    if architecture is not None and architecture.limits_barriers:
        limits["barriers"] = reading["limit_barriers"]
    names = ("occupancy_theoretical", "occupancy", "no_eligible", "waves", "sol_compute", "sol_memory")
    theory, achieved, none, waves, compute, memory = facts = reading.of(*names)
    inputs = (*facts, *limits.values())
    if not valid(inputs):
        yield OpenQuestion("occupancy", "whether more warps would hide latency, and what limits them", inputs)
        return
    if nothing_fits := doubted(*(one for one in limits.values() if not one.number)):  # but it ran
        yield OpenQuestion(
            "occupancy", "whether more warps would hide latency, and what limits them", nothing_fits
        )
        return
    hidden = theory.number > OCCUPANCY_PCT or none.number < NO_ELIGIBLE_PCT
    if hidden or waves.number < 1 or max(compute.number, memory.number) >= PEAK_PCT:
        return
    blocks = min(one.number for one in limits.values())
    binding = [name for name, one in limits.items() if one.number == blocks]
    text = (
        f"{' and '.join(binding).capitalize()} limit an SM to {blocks:.0f} blocks, {theory.shown} occupancy "
        f"({achieved.shown} achieved), and in {none.shown} of cycles no warp can issue."
    )
    known = {"registers": stall_levers.FEWER_REGISTERS, "shared memory": stall_levers.LESS_SHARED}
    lever = "; ".join(known[name] for name in binding if name in known) or "a block of another size"
    step, used = _register_step(reading, binding, blocks), inputs
    if step:
        used = (*inputs, *reading.of("registers", "block_size"))
        text += f" {step}"
    share = min(none.number, 100 - theory.number) / 100
    sure = "a guess: more warps help only where latency is what is left"
    yield _say(reading, "occupancy", LEVER, text, used, share=share, lever=lever, confidence=sure)


def _register_step(reading: LaunchInputs, binding: list[str], blocks: float) -> str:
    """From how many registers on one block more fits; "" where our limits do not give ncu's own number."""
    registers, threads = reading.of("registers", "block_size")
    if (
        binding != ["registers"]
        or reading.chip not in ARCHITECTURES
        or not (registers.valid and threads.valid)
    ):
        return ""
    now, block = int(registers.number), int(threads.number)
    if occupancy(reading.chip, now, block, 0).blocks != blocks:
        return ""
    fit = (less for less in range(now - 1, 0, -1) if occupancy(reading.chip, less, block, 0).blocks > blocks)
    step = next(fit, None)
    return f"With {step} registers in place of {now} one block more fits." if step else ""


def _shared(reading: LaunchInputs) -> Iterator[Finding]:
    """Bank conflicts: the excess is the access pattern's, the rest of the counter is arbitration."""
    conflicts, excess, every = reading.of("shared_conflicts", "shared_excess", "shared_wavefronts_source")
    if not (excess.valid and every.valid):
        yield OpenQuestion("shared", "whether shared memory is accessed without conflicts", (excess, every))
        return
    if excess.number > MOST_PART * every.number:
        yield OpenQuestion(
            "shared", "whether shared memory is accessed without conflicts", doubted(excess, every)
        )
        return
    if excess.number > 0 and every.number:
        latency, *stalls = reading.of("warp_latency", "stall_short_scoreboard", "stall_mio_throttle")
        inputs: tuple[MetricInput, ...] = (excess, every)
        part, share = excess.number / every.number, None
        if latency.valid and latency.number and valid(tuple(stalls)):
            inputs = (*inputs, latency, *stalls)
            share = part * sum(one.number for one in stalls) / latency.number
        text = f"{excess.shown} of {every.shown} shared-memory wavefronts are excess, by access pattern"
        text = f"{text} ({part:.0%}).".replace("%", " %")
        yield _say(reading, "shared:excess", LEVER, text, inputs, share=share, lever=stall_levers.SWIZZLE)
    elif conflicts.valid and conflicts.number:
        rose = conflicts.baseline is not None and conflicts.number > (conflicts.baseline.number or 0) * _ROSE
        weight = 0.5 if rose else 0.0  # somebody is about to chase it
        before = "" if conflicts.before is None else f" (baseline {conflicts.before})"
        text = (
            f"{conflicts.shown} hardware bank conflicts{before}, but no excess wavefront: that is lost "
            "arbitration, not the access pattern. Nothing to mend."
        )
        yield _say(reading, "shared:arbitration", NO_ACTION, text, (conflicts, excess, every), weight=weight)


def _tensor(reading: LaunchInputs) -> Iterator[Finding]:
    """Multiply-adds outside the tensor cores, by the opcodes alone: HFMA2 keeps the tensor pipe busy too."""
    matrix, fused, every = reading.opcodes(), reading.opcodes("FFMA", "HFMA2"), reading.every_opcode
    if not every.valid:
        yield OpenQuestion("tensor", "whether the tensor cores are used", (every,))
        return
    if matrix.number or fused.number < SCALAR_SHARE * every.number:
        return
    share = fused.number / every.number
    text = f"No tensor-core instruction ran; FFMA and HFMA2 are {share:.0%} of all.".replace("%", " %")
    sure, inputs, lever = "the share is that of the instructions", (matrix, fused, every), stall_levers.MATRIX
    yield _say(reading, "tensor:unused", LEVER, text, inputs, share=share, lever=lever, confidence=sure)


def _local(reading: LaunchInputs) -> Iterator[Finding]:
    """Local memory: spills only where a counter of spills says so; else it may be a local array."""
    spills, loads, stores = reading.of("spill_insts", "local_load_sectors", "local_store_sectors")
    executed = reading["inst_executed"]
    if spills.valid and executed.valid and executed.number:
        if spills.number > MOST_PART * executed.number:
            yield OpenQuestion("local", "whether registers spill", doubted(spills, executed))
        elif spills.number:
            share = spills.number / executed.number
            text = f"{spills.shown} instructions spill registers, {share:.1%} of all.".replace("%", " %")
            inputs, lever = (spills, executed), stall_levers.FEWER_REGISTERS
            yield _say(reading, "spills", LEVER, text, inputs, share=share, lever=lever)
        return
    if not (loads.valid and stores.valid):
        yield OpenQuestion("local", "whether registers spill", (spills, loads, stores))
    elif loads.number + stores.number:
        text = (
            f"Local memory is used ({loads.shown}s loaded, {stores.shown}s stored): spills or local arrays, "
            "which these counters do not tell apart; the compiler does (`profiler static`)."
        )
        yield _say(reading, "local", BOTTLENECK, text, (loads, stores, spills))


def _sectors(reading: LaunchInputs) -> Iterator[Finding]:
    """Sectors that coalesced accesses would not have touched."""
    excess, loads, stores = inputs = reading.of(
        "global_excess", "global_load_sectors", "global_store_sectors"
    )
    latency, *stalls = waits = reading.of("warp_latency", "stall_long_scoreboard", "stall_lg_throttle")
    if not valid((*inputs, *waits)) or not latency.number:
        yield OpenQuestion("sectors", "whether global memory is accessed coalesced", (*inputs, *waits))
        return
    every = loads.number + stores.number
    waited = sum(one.number for one in stalls)
    if excess.number > MOST_PART * every or waited > _MOST_STALLS * latency.number:
        yield OpenQuestion("sectors", "whether global memory is accessed coalesced", doubted(*inputs, *waits))
        return
    if not every or excess.number < EXCESS_SHARE * every:
        return
    part = excess.number / every
    count = str(formatting.quantity(Value(excess.number)))
    text = f"{count} global sectors are excess, {part:.0%} of those moved".replace("%", " %")
    share = part * waited / latency.number
    lever = "coalesce global accesses: neighbouring lanes at neighbouring addresses, 16 bytes a lane"
    yield _say(reading, "sectors", LEVER, f"{text}.", (*inputs, *waits), share=share, lever=lever)


def _divergence(reading: LaunchInputs) -> Iterator[Finding]:
    """Lanes that an instruction is not executed for."""
    threads = reading["threads_per_inst_on"]
    if not threads.valid:
        yield OpenQuestion("divergence", "whether warps diverge", (threads,))
    elif not 0 < threads.number <= _LANES * MOST_PART:
        yield OpenQuestion("divergence", "whether warps diverge", doubted(threads))
    elif threads.number < FULL_WARPS:
        text = f"An instruction works for {formatting.digits(threads.number)} of 32 threads."
        lever = "keep the lanes of a warp together: bounds outside the loop, rows of one length in a warp"
        share = 1 - threads.number / 32
        yield _say(reading, "divergence", LEVER, text, (threads,), share=share, lever=lever)
