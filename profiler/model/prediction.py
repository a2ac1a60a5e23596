"""How long a launch takes on a GPU that is not here, in which range, what limits it, and what would help."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.build.occupancy import next_block
from profiler.evidence.gpu_parts import GpuPart
from profiler.evidence.opcodes import base_opcode
from profiler.model import pipes
from profiler.model.control_words import decode
from profiler.model.error_table import ErrorTable
from profiler.model.instructions import NoModel
from profiler.model.launch_model import (
    ALL_FROM_DRAM,
    ALL_IN_L2,
    HitRates,
    LaunchInputs,
    LaunchModel,
    LevelOutcome,
)
from profiler.model.pipes import Pipe, opcode_of
from profiler.model.traffic import Traffic
from profiler.model.version_run import LaunchRun
from profiler.model.warp_trace import ExecutedCode
from profiler.sass.listing import FileLine

BALANCED, WAITING = "balanced", "waiting"  # in the place of a limiter: no resource is one
LIMITS_FROM = 0.10  # of the time that a launch would save without a resource, for it to be the limiter
_PROBED = 3  # of the busiest resources
_LEAST_BUSY = 0.35  # of the time, for a resource to be probed
_BUSY = 0.6  # of the time, for a launch without a limiter to be balanced and not waiting
_SAME_CYCLES = 0.02  # a range of traffic that moves the time by less is none
_SHARED_OPCODES = frozenset(("LDS", "STS", "LDSM", "STSM", "ATOMS"))
_UNLIMITED = 1e6  # times the true rate


@dataclass(frozen=True)
class WhatIf:
    """A change of the launch, and what the model says of it."""

    change: str  # "no bank conflicts"
    time_ratio: float  # time with the change over time without it
    needs: str = ""  # what the change asks for: "95 registers a thread instead of 128"


@dataclass(frozen=True)
class LaunchPrediction:
    """What the model says of one launch. Times in nanoseconds, at the GPU's clock of its data sheet."""

    kernel: str
    function: str  # mangled
    inputs: LaunchInputs
    traffic: Traffic | None  # None: of a launch whose accesses are not known, or counted by a report
    hits: HitRates | None  # where accesses are served, as the likely time assumes
    likely_ns: float
    low_ns: float  # eight of ten launches lie between low and high, by the validation table
    high_ns: float
    bounds: LevelOutcome
    littles_law: LevelOutcome
    simulation: LevelOutcome
    limiter: str  # a resource, BALANCED or WAITING
    limiter_saves: float  # share of the time that the launch would save without its limiter
    imbalance: float  # time of unequal blocks over that of equal ones; 1: equal
    sources: tuple[FileLine | None, ...]  # by instruction
    exact_counts: bool  # whether counts are those of all blocks, or of a sample

    @property
    def utilisation(self) -> Mapping[str, float]:
        """How busy each resource is over the simulated time, from 0 to 1."""
        return self.simulation.utilisation

    @property
    def instruction_shares(self) -> NDArray[np.float64]:
        """The share of the warps' time by instruction, of shape [instructions]."""
        shares = self.simulation.by_instruction
        return np.zeros(len(self.inputs.code.texts)) if shares is None else shares

    @property
    def line_shares(self) -> dict[FileLine, float]:
        """The share of the warps' time by source line, largest first; nothing where no line is known."""
        shares: dict[FileLine, float] = {}
        for source, share in zip(self.sources, self.instruction_shares.tolist(), strict=False):
            if source is not None:
                shares[source] = shares.get(source, 0.0) + share
        return dict(sorted(shares.items(), key=lambda item: -item[1]))

    @property
    def time_factors(self) -> dict[str, Any]:
        """The factors of the time, T = I·L / (W·S·a·f), as counters of a measured launch give them.

        By the names of explain.TimeIdentity. Warps are those that fit, all the time; what that and the start
        of a launch leave is in the active share, so that the identity is exact.
        """
        inputs = self.inputs
        partitions = inputs.gpu.architecture.partitions
        on_an_sm = min(inputs.resident_blocks, -(-inputs.blocks // inputs.gpu.sms))
        warps = on_an_sm * inputs.block_warps / partitions
        schedulers = float(inputs.gpu.sms * partitions)
        instructions = float(inputs.code.counts.sum()) * inputs.blocks * inputs.block_warps
        issued_a_cycle = max(self.utilisation["issue"], 1e-9)  # of a scheduler
        latency = warps / issued_a_cycle
        cycles = self.likely_ns / 1e9 * inputs.gpu.clock_hz
        return {
            "time_us": self.likely_ns / 1e3,
            "clock_hz": inputs.gpu.clock_hz,
            "instructions": instructions,
            "latency": latency,
            "warps": warps,
            "schedulers": schedulers,
            "active_share": instructions / (schedulers * cycles * issued_a_cycle),
            "cycles": cycles,
            "stalls": {reason: share * latency for reason, share in self.simulation.stalls.items()},
        }

    def as_json(self) -> dict[str, Any]:
        """The prediction with what it was computed from. Times in nanoseconds, shares from 0 to 1."""
        inputs, traffic = self.inputs, self.traffic
        clock = inputs.gpu.clock_hz / 1e9
        hits = self.hits
        return {
            "kernel": self.kernel,
            "time_ns": self.likely_ns,
            "low_ns": self.low_ns,
            "high_ns": self.high_ns,
            "limiter": self.limiter,
            "limiter_saves": self.limiter_saves,
            "utilisation": dict(self.utilisation),
            "stalls": dict(self.simulation.stalls),
            "levels": {
                "bounds_ns": self.bounds.cycles / clock,
                "littles_law_ns": self.littles_law.cycles / clock,
                "simulation_ns": self.simulation.cycles / clock,
            },
            "imbalance": self.imbalance,
            "inputs": {
                "blocks": inputs.blocks,
                "threads": inputs.threads,
                "registers": inputs.registers,
                "shared_bytes": inputs.shared_bytes,
                "resident_blocks": inputs.resident_blocks,
                "warp_instructions": float(inputs.code.counts.sum()) * inputs.blocks * inputs.block_warps,
                "has_control_words": inputs.controls is not None,
                "exact_counts": self.exact_counts,
                "hit_rates": hits and {"l1": hits.l1, "l2": hits.l2, "stores": hits.stores},
                "traffic": traffic
                and {
                    "l2_load_bytes": traffic.l2_load_bytes,
                    "l2_store_bytes": traffic.l2_store_bytes,
                    "dram_read_bytes": traffic.dram_read_bytes,
                    "dram_read_range": list(traffic.dram_read_range),
                    "dram_write_bytes": traffic.dram_write_bytes,
                },
            },
        }


class CallTimes:
    """The times of a call from those of its launches, in nanoseconds; None where there is no model."""

    launches: tuple[LaunchPrediction, ...]

    @property
    def likely_ns(self) -> float | None:
        """Of all launches of the call."""
        return sum(launch.likely_ns for launch in self.launches) if self.launches else None

    @property
    def low_ns(self) -> float | None:
        """The lower end of the range."""
        return sum(launch.low_ns for launch in self.launches) if self.launches else None

    @property
    def high_ns(self) -> float | None:
        """The upper end of the range."""
        return sum(launch.high_ns for launch in self.launches) if self.launches else None

    @property
    def longest(self) -> LaunchPrediction | None:
        """The launch that takes most of the time."""
        return max(self.launches, key=lambda launch: launch.likely_ns, default=None)


def launch_inputs(
    run: LaunchRun,
    words: NDArray[np.uint64] | None,
    registers: int,
    static_shared_bytes: int,
    gpu: GpuPart,
) -> LaunchInputs:
    """The model's inputs of a launch that was run from its machine code.

    words: the upper halves of its instructions; None where the binary is not at hand. registers: of a thread;
    static_shared_bytes: of a block, without what the system takes. Raises NoModel for instructions whose time
    has no model.
    """
    execution = run.execution
    texts = [instruction.text for instruction in execution.instructions]
    warps = execution.warps.astype(float)
    for text, count in zip(texts, warps, strict=True):
        if count and base_opcode(opcode_of(text)) in pipes.NO_MODEL:
            raise NoModel(f"no model of the time of `{text}`: neither atomics nor asynchronous units")
    position_of = {instruction.offset: i for i, instruction in enumerate(execution.instructions)}
    targets = [
        position_of.get(instruction.operands[-1].number, -1)
        if instruction.base == "BRA" and instruction.operands and instruction.operands[-1].kind == "number"
        else -1
        for instruction in execution.instructions
    ]
    grid, block = run.launch.grid, run.launch.block
    blocks, threads = int(np.prod(grid)), int(np.prod(block))
    size = len(texts)
    sectors, wavefronts, ideal = (np.full(size, np.nan) for _ in range(3))
    for position, access in execution.accesses.items():
        executed = max(warps[position], 1.0)
        if access.sectors:
            sectors[position] = access.sectors / executed
        if access.wavefronts:
            wavefronts[position] = access.wavefronts / executed
            ideal[position] = access.ideal_wavefronts / executed
        elif access.lines:
            wavefronts[position] = access.lines / executed
    controls = decode(words[:size]) if words is not None and len(words) >= size else None
    return LaunchInputs(
        gpu=gpu,
        blocks=blocks,
        threads=threads,
        registers=registers,
        shared_bytes=static_shared_bytes + run.launch.shared_bytes,
        code=ExecutedCode(texts, targets, warps / (blocks * -(-threads // 32)), (0,)),
        controls=controls,
        sectors=sectors,
        wavefronts=wavefronts,
        ideal_wavefronts=ideal,
        without_lanes=(warps > 0) & (execution.threads == 0),
    )


def predict_run(run: LaunchRun, inputs: LaunchInputs, errors: ErrorTable) -> LaunchPrediction:
    """The prediction of a launch that was run from its machine code, with the traffic of its own accesses."""
    gpu = inputs.gpu
    traffic = run.traffic(gpu.sms, inputs.resident_blocks, gpu.architecture.l1_bytes, gpu.l2_bytes or 0)
    model = LaunchModel(inputs)
    imbalance = _imbalance(run.block_instructions, gpu.sms * inputs.resident_blocks)
    return _predict(
        run.launch.kernel,
        run.function.name,
        model,
        _hit_rates(traffic, traffic.dram_read_bytes, model),
        tuple(_hit_rates(traffic, read, model) for read in traffic.dram_read_range),
        errors,
        traffic=traffic,
        imbalance=imbalance,
        sources=run.function.sources,
        exact_counts=run.is_exact,
    )


def predict_counted(
    kernel: str,
    model: LaunchModel,
    hits: HitRates | None,
    errors: ErrorTable,
    sources: Sequence[FileLine | None] = (),
) -> LaunchPrediction:
    """The prediction of a launch whose counts a report has; hits: where its accesses are served, if known."""
    bracket = () if hits else (ALL_IN_L2, ALL_FROM_DRAM)
    return _predict(kernel, "", model, hits, bracket, errors, sources=tuple(sources))


def _predict(
    kernel: str,
    function: str,
    model: LaunchModel,
    hits: HitRates | None,
    bracket: Sequence[HitRates],
    errors: ErrorTable,
    *,
    traffic: Traffic | None = None,
    imbalance: float = 1.0,
    sources: tuple[FileLine | None, ...] = (),
    exact_counts: bool = True,
) -> LaunchPrediction:
    inputs = model.inputs
    ns = imbalance * 1e9 / inputs.gpu.clock_hz
    likely = hits or bracket[0]
    simulated = model.simulation(likely)
    ends = [
        simulated.cycles
        if end == likely or (hits is not None and not _matters(model, hits, end))
        else model.simulation(end).cycles
        for end in dict.fromkeys(bracket)
    ]
    # Between the ends, in the middle by factors: which of them is right is not known.
    cycles = simulated.cycles if hits is not None else float(np.sqrt(min(ends) * max(ends)))
    has = {
        "has_traffic": hits is not None,
        "has_controls": inputs.controls is not None,
        "has_addresses": _knows_addresses(inputs, model),
    }
    # Without traffic the table's errors are those of the middle: they hold both ends already.
    around = (*ends, cycles) if hits is not None else (cycles,)
    low = min(errors.cycles_range(end, **has)[0] for end in around)
    high = max(errors.cycles_range(end, **has)[1] for end in around)
    limiter, saves = find_limiter(model, likely, simulated)
    return LaunchPrediction(
        kernel=kernel,
        function=function,
        inputs=inputs,
        traffic=traffic,
        hits=hits,
        likely_ns=cycles * ns,
        low_ns=low * ns,
        high_ns=high * ns,
        bounds=model.bounds(likely),
        littles_law=model.littles_law(likely),
        simulation=simulated,
        limiter=limiter,
        limiter_saves=saves,
        imbalance=imbalance,
        sources=sources,
        exact_counts=exact_counts,
    )


def _knows_addresses(inputs: LaunchInputs, model: LaunchModel) -> bool:
    """Whether the cost of every executed access on global or shared memory is known."""
    is_memory = (model.pipe == Pipe.LSU) & (inputs.code.counts > 0)
    bases = [base_opcode(opcode_of(text)) for text in inputs.code.texts]
    is_global = np.array([base in pipes.GLOBAL_ACCESSES for base in bases])
    is_shared = np.array([base in _SHARED_OPCODES for base in bases])
    unknown = (is_global & np.isnan(inputs.sectors)) | (is_shared & np.isnan(inputs.wavefronts))
    return not bool((is_memory & unknown).any())


def _matters(model: LaunchModel, hits: HitRates, end: HitRates) -> bool:
    """Whether other hit rates can move the time: by the bounds, which cost nothing."""
    likely, other = (model.block_cycles(rates) for rates in (hits, end))
    longest = max(likely.values())
    change = max(abs(other[name] - likely[name]) for name in ("L2", "DRAM"))
    return change > _SAME_CYCLES * longest


def _hit_rates(traffic: Traffic, dram_read_bytes: float, model: LaunchModel) -> HitRates:
    """Hit rates that give the model the traffic's bytes."""
    loaded, stored = model.requested_bytes()
    l1 = min(1.0, max(0.0, 1 - traffic.l2_load_bytes / loaded)) if loaded else 0.0
    missed = loaded * (1 - l1)
    l2 = min(1.0, max(0.0, 1 - dram_read_bytes / missed)) if missed else 1.0
    stores = min(1.0, max(0.0, 1 - traffic.dram_write_bytes / stored)) if stored else 1.0
    return HitRates(l1, l2, stores)


def _imbalance(block_instructions: NDArray[Any], places: int) -> float:
    """How much longer unequal blocks take than equal ones, when each free place takes the next block."""
    work = np.asarray(block_instructions, float)
    if len(work) < 2 or work.max() - work.min() <= 1e-9 * work.max():
        return 1.0
    equal = -(-len(work) // places) * float(work.mean())
    ends = [0.0] * min(places, len(work))
    for amount in work.tolist():
        heapq.heappush(ends, heapq.heappop(ends) + amount)
    # Below one where short blocks make room for long ones: the last wave is then no whole one.
    return max(ends) / equal


def find_limiter(model: LaunchModel, hits: HitRates, simulated: LevelOutcome) -> tuple[str, float]:
    """The resource without which the launch would save most, if that is LIMITS_FROM of its time at least."""
    busiest = sorted(simulated.utilisation.items(), key=lambda item: -item[1])
    best, saves = "", 0.0
    for name, share in [(name, share) for name, share in busiest if name != "issue"][:_PROBED]:
        if share < _LEAST_BUSY:
            break
        saved = 1 - _without(model, name).simulation(hits).cycles / simulated.cycles
        if saved > saves:
            best, saves = name, saved
    if saves >= LIMITS_FROM:
        return best, saves
    return (BALANCED if busiest and busiest[0][1] > _BUSY else WAITING), max(saves, 0.0)


def _without(model: LaunchModel, resource: str) -> LaunchModel:
    """The same launch on a GPU on which one resource is never busy."""
    if resource == "DRAM":
        gpu = model.inputs.gpu
        return model.altered(dram_bytes_per_clock=gpu.dram_bytes_per_s * _UNLIMITED / gpu.clock_hz)
    if resource == "L1 data":
        return model.altered(wavefronts=np.full_like(model.wavefronts, 1 / _UNLIMITED))
    if resource == "L2":
        return model.altered(sectors=model.sectors / _UNLIMITED, packets=model.packets / _UNLIMITED)
    pipe = next(pipe for pipe in Pipe if pipe.label == resource)
    chosen = (model.pipe == pipe) | ((pipe == Pipe.FMA) & (model.pipe == Pipe.FMA_HEAVY))
    return model.altered(pipe_cycles=np.where(chosen, 1 / _UNLIMITED, model.pipe_cycles))


def what_ifs(prediction: LaunchPrediction) -> Iterator[WhatIf]:
    """What changes of the launch alone would do: conflicts, shared traffic, one more block on the SM."""
    inputs = prediction.inputs
    hits = prediction.hits or ALL_IN_L2
    now = prediction.simulation.cycles

    def ratio(changed: LaunchInputs) -> float:
        return LaunchModel(changed).simulation(hits).cycles / now

    is_shared = np.array(
        [base_opcode(opcode_of(text)) in _SHARED_OPCODES for text in inputs.code.texts]
    ) & ~np.isnan(inputs.wavefronts)
    executed = inputs.code.counts
    conflicts = float(((inputs.wavefronts - inputs.ideal_wavefronts) * executed)[is_shared].sum())
    if conflicts > 0:
        ideal = np.where(is_shared, inputs.ideal_wavefronts, inputs.wavefronts)
        share = conflicts / float((inputs.wavefronts * executed)[is_shared].sum())
        needs = f"{100 * share:.0f} % of the shared wavefronts are conflicts"
        yield WhatIf("no bank conflicts", ratio(replace(inputs, wavefronts=ideal)), needs)
    if is_shared.any():
        half = np.where(is_shared, inputs.wavefronts / 2, inputs.wavefronts)
        yield WhatIf("half the shared-memory wavefronts", ratio(replace(inputs, wavefronts=half)))
    more = next_block(inputs.gpu.arch, inputs.registers, inputs.threads, inputs.shared_bytes)
    if more is not None and inputs.blocks > inputs.gpu.sms * inputs.resident_blocks:
        change = f"{more.blocks} blocks on an SM instead of {more.blocks - 1}"
        yield WhatIf(change, ratio(replace(inputs, resident=more.blocks)), more.needs)
