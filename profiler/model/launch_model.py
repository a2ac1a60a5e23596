"""How long a launch takes, from its machine code and counts: bounds, Little's law, and a simulated SM."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from profiler.build.instruction_text import split_instruction
from profiler.build.occupancy import occupancy
from profiler.evidence.gpu_parts import GpuPart
from profiler.evidence.opcodes import base_opcode
from profiler.model import pipes
from profiler.model.control_words import NO_SCOREBOARD, ControlWords
from profiler.model.cycle_simulation import Finish, Simulated, SimulatedCode, SmShare, Stall, Unit, simulate
from profiler.model.pipes import Pipe, opcode_of
from profiler.model.warp_trace import ExecutedCode, WarpTrace

# Fitted on the reports that docs/predictions.md names as tuned on.
DRAM_EFFICIENCY = 0.92  # of the rate of the memory clock
CONSTANT_MISS_CYCLES = 200.0
# Fitted on the development set: blocks that do next to nothing, of 8 warps on sm_75 and of 16 on sm_89.
WARP_START_CYCLES = 9.0  # from the start of a warp on an SM to that of the next one
BARRIER_CYCLES = 20.0  # source: arXiv 2503.20481
QUEUED_LOADS = 8
L2_BYTES_PER_CLOCK_SM = 64.0  # that one SM can take. Source: arXiv 2402.13499
TRACE = 6000  # instructions of a warp that are simulated; and twice as many, where loops were cut
MOST_TRACES = 8  # warps of a block that execute something of their own where counts are no whole numbers
SPECIAL_LATENCY, SPECIAL_REGISTER_LATENCY = 16.0, 22.0  # cycles. Source: arXiv 1804.06826, 2402.13499
_FULL_WAVES = 4  # from so many waves on, blocks do not march in step
_SIMULATED_WAVES = 3
_ALWAYS_TOLD = frozenset(["issue", "load/store", "L1 data", "L2", "DRAM"])
_BUSY_SHARE = 0.6  # of a resource below which no resource is the limit

_READS_REGISTERS = frozenset(
    [
        "FFMA",
        "FADD",
        "FMUL",
        "IMAD",
        "IADD3",
        "LOP3",
        "SHF",
        "LEA",
        "ISETP",
        "FSETP",
        "SEL",
        "FMNMX",
        "IMNMX",
        "PRMT",
        "HFMA2",
        "HMUL2",
        "HADD2",
        "MOV",
        "FSEL",
    ]
)
_GENERIC = frozenset(["LD", "ST"])
# Members of an enumeration are looked up slowly on Python 3.11: longer than an instruction is then looked at.
_FINISH = SimpleNamespace(**{member.name: int(member) for member in Finish})
_PIPE = SimpleNamespace(**{member.name: int(member) for member in Pipe})
_SHORT_LOADS = frozenset(["LDS", "LDSM", "ATOMS", "LDC", "SHFL", "STSM", "MATCH"])
_LOADS = frozenset(["LDG", "LD", "LDL", "ATOM", "ATOMG", "TEX", "TLD", "SULD"])
_STORES = frozenset(["STG", "ST", "STL", "RED", "REDG", "SUST"])
_SPECIAL_REGISTERS = frozenset(["S2R", "S2UR", "B2R", "VOTEU", "R2UR"])
_SHARED = frozenset(["LDS", "STS", "LDSM", "ATOMS"])
_SOURCE = re.compile(r"(?<![A-Z0-9_])[-|~!]*R(\d+)(\.reuse)?")
_PREDICATE = re.compile(r"!?U?P(\d|T)")
_CONSTANT = re.compile(r"c\[(0x[0-9a-f]+)\]\[(0x[0-9a-f]+)\]")
_COPIES_LEFT = re.compile(r"SB\d, (0x[0-9a-f]+)")
_CONSTANT_LINE_BYTES = 64
_KEPT = 64  # kernels whose texts are looked at once: the launches of a report are mostly of a few
_Rest = TypeVar("_Rest")


@dataclass(frozen=True)
class HitRates:
    """Where accesses are served, shares from 0 to 1."""

    l1: float  # of the sectors that loads ask for
    l2: float  # of the loaded sectors that miss L1
    stores: float  # of the stored sectors, those that do not go on to DRAM
    merged: float = 0.0  # of the stored sectors, those that join another one on the way to L2


ALL_IN_L2 = HitRates(0.0, 1.0, 1.0)
ALL_FROM_DRAM = HitRates(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class LaunchInputs:
    """All that the model reads of a launch. What is None or NaN is not known."""

    gpu: GpuPart
    blocks: int
    threads: int  # of a block
    registers: int  # of a thread
    shared_bytes: int  # of a block, static and dynamic
    code: ExecutedCode
    controls: ControlWords | None  # of shape [instructions]; None: the binary is not at hand
    # A request's cost, of shape [instructions]: sectors of 32 bytes of global and local memory; passes of
    # the L1 data stage; and how many of these another layout of shared memory needs. NaN: not known.
    sectors: NDArray[np.float64]
    wavefronts: NDArray[np.float64]
    ideal_wavefronts: NDArray[np.float64]
    without_lanes: NDArray[np.bool_]  # no lane ever takes part: the instruction only passes through issue
    resident: int | None = None  # blocks on an SM; None: by the architecture's limits

    @property
    def block_warps(self) -> int:
        """Warps of a block."""
        return -(-self.threads // 32)

    @cached_property
    def resident_blocks(self) -> int:
        """Blocks that one SM has at a time, at least one."""
        if self.resident is not None:
            return max(1, self.resident)
        fit = occupancy(self.gpu.arch, self.registers, self.threads, self.shared_bytes)
        return max(1, fit.blocks)


@dataclass(frozen=True)
class LevelOutcome:
    """What one level of the model says of a launch."""

    cycles: float  # of the whole launch, at the SMs' clock
    limiter: str  # the resource that is busiest, "latency" where none is busy
    utilisation: Mapping[str, float]  # by resource, from 0 to 1
    stalls: Mapping[str, float] = field(default_factory=dict)  # shares of warp-cycles by ncu's stall reason
    by_instruction: NDArray[np.float64] | None = None  # shares of warp-cycles, of shape [instructions]


class LaunchModel:
    """The model of one launch. Raises nothing: what cannot be modelled is refused where inputs are made."""

    def __init__(self, inputs: LaunchInputs) -> None:
        self.inputs = inputs
        self.architecture = inputs.gpu.architecture
        texts = inputs.code.texts
        opcodes = [opcode_of(text) for text in texts]
        use_of = {opcode: pipes.pipe_use(opcode, inputs.gpu) for opcode in set(opcodes)}
        uses = [use_of[opcode] for opcode in opcodes]
        self.pipe = np.array([use.pipe for use in uses], np.int64)
        self.pipe_cycles = np.array([use.cycles for use in uses])
        self.finish = np.zeros(len(texts), np.int64)
        self.latency = np.zeros(len(texts))
        self.wavefronts = np.ones(len(texts))
        self.sectors = np.zeros(len(texts))
        self.packets = np.zeros(len(texts))
        self.is_global = np.zeros(len(texts), bool)
        # Loads that must see what other SMs wrote: L1 is never asked. Source: PTX ISA, "Scope".
        self.is_strong = np.zeros(len(texts), bool)
        self.copy_groups = np.zeros(len(texts), np.int64)
        for position, (opcode, text) in enumerate(zip(opcodes, texts, strict=True)):
            self._set_instruction(position, opcode, text)
        self.dram_bytes_per_clock = inputs.gpu.dram_bytes_per_s / inputs.gpu.clock_hz

    def altered(self, **attributes: NDArray[np.float64] | float) -> LaunchModel:
        """The same launch with other attributes: costs of instructions, of shape [instructions], or rates."""
        other = copy(self)
        vars(other).pop("_code", None)  # is made of them
        vars(other).update(attributes)
        return other

    def _set_instruction(self, position: int, opcode: str, text: str) -> None:
        """How an instruction finishes, and what its request costs."""
        inputs, architecture = self.inputs, self.architecture
        base = base_opcode(opcode)
        modifiers = opcode[len(base) :]
        pipe = self.pipe[position]
        if inputs.without_lanes[position]:
            self.pipe[position], self.pipe_cycles[position] = _PIPE.NONE, 1.0
            return
        finish, latency = _FINISH.FIXED, 0.0
        if base in _SHORT_LOADS:
            finish, latency = _FINISH.SHORT, architecture.shared_latency
        elif base in _LOADS:
            finish, latency = _FINISH.LOAD, architecture.l2_latency
        elif base in _STORES:
            finish = _FINISH.STORE
        elif base == "LDGSTS":
            finish = _FINISH.COPY
        elif base == "LDGDEPBAR":
            finish = _FINISH.COPY_COMMIT
        elif base == "DEPBAR" and ".LE" in modifiers and "SB" in text:
            finish = _FINISH.COPY_WAIT
            left = _COPIES_LEFT.search(text)
            self.copy_groups[position] = int(left[1], 16) if left else 0
        elif base == "BAR" and ("SYNC" in modifiers or "RED" in modifiers):
            finish = _FINISH.BARRIER
        elif base == "EXIT" and inputs.code.counts[position] > 0:
            finish = _FINISH.EXIT
        elif pipe == _PIPE.XU or (pipe == _PIPE.FP64 and architecture.fp64_operations < 32):
            finish, latency = _FINISH.SHORT, SPECIAL_LATENCY
        elif base in _SPECIAL_REGISTERS:
            finish, latency = _FINISH.SHORT, SPECIAL_REGISTER_LATENCY
        self.finish[position], self.latency[position] = finish, latency
        wavefronts = inputs.wavefronts[position]
        if base in _GENERIC and inputs.sectors[position] == 0:
            # Counted, and none of them went to global or local memory: it is shared memory.
            self.finish[position] = _FINISH.SHORT if base == "LD" else _FINISH.FIXED
            self.latency[position] = architecture.shared_latency if base == "LD" else 0.0
            least = _words_a_lane(modifiers)
            self.wavefronts[position] = least if np.isnan(wavefronts) else max(1.0, wavefronts)
            return
        if np.isnan(wavefronts):
            wavefronts = _least_wavefronts(base, modifiers) if pipe == _PIPE.LSU else 1.0
        if base in pipes.GLOBAL_ACCESSES:
            self.is_global[position] = True
            self.is_strong[position] = modifiers.endswith((".STRONG.SYS", ".STRONG.GPU"))
            sectors = inputs.sectors[position]
            if np.isnan(sectors) or sectors == 0:
                sectors = 4.0 * _words_a_lane(modifiers)
            self.sectors[position] = sectors
            lines = max(1.0, sectors / 4.0 if np.isnan(inputs.wavefronts[position]) else wavefronts)
            # A packet asks for a line, or brings a sector; two for what is no whole line.
            self.packets[position] = max(2.0 * lines, sectors) if finish == _FINISH.STORE else lines
            wavefronts = max(1.0 if base == "LDGSTS" else wavefronts, sectors / 4.0)
        self.wavefronts[position] = wavefronts

    def block_cycles(self, hits: HitRates | None = None) -> dict[str, float]:
        """Cycles that a block keeps each resource of an SM busy at least; L2 and DRAM with hit rates only."""
        executed = self.inputs.code.counts * self.inputs.block_warps
        cycles: dict[str, float] = {}
        for name, taken in self._demands(hits):
            amount = float((executed * taken).sum())
            if amount > 0 or name in _ALWAYS_TOLD:
                cycles[name] = max(cycles.get(name, 0.0), amount)
        return cycles

    def _demands(self, hits: HitRates | None) -> list[tuple[str, NDArray[np.float64]]]:
        """Resources of an SM, and the cycles of each that an instruction takes when a warp executes it.

        A resource that two things can fill is there twice: the fuller of them counts.
        """
        inputs = self.inputs
        partitions = self.architecture.partitions
        demands = [("issue", np.full(len(self.pipe), 1.0 / partitions))]
        for pipe in Pipe:
            if pipe not in (Pipe.NONE, Pipe.LSU, Pipe.FMA_HEAVY):
                own = np.where(self.pipe == pipe, self.pipe_cycles, 0.0) / partitions
                demands.append((pipe.label, own))
        heavy = self.pipe == Pipe.FMA_HEAVY
        plain = np.where(self.pipe == Pipe.FMA, self.pipe_cycles, 0.0)
        demands.append((Pipe.FMA.label, (plain + heavy) / partitions))
        demands.append((Pipe.FMA.label, np.where(heavy, self.pipe_cycles, 0.0) / partitions))
        memory = self.pipe == Pipe.LSU
        demands.append((Pipe.LSU.label, np.where(memory, self.pipe_cycles, 0.0)))
        passes = self.wavefronts * self.architecture.wavefront_cycles
        demands.append(("L1 data", np.where(memory, passes, 0.0)))
        if hits is not None:
            active = min(inputs.gpu.sms, inputs.blocks)
            stores = self.finish == Finish.STORE
            sent = np.where(stores, 1 - hits.merged, 1 - hits.l1)
            sizes = np.where(self.is_global, self.sectors * 32, 0.0) * sent
            to_dram = sizes * np.where(stores, 1 - hits.stores, 1 - hits.l2)
            demands.append(("L2", sizes / self._l2_rate(active)))
            demands.append(("L2", self.packets * sent / self._packet_rate(active)))
            demands.append(("DRAM", to_dram * active / (self.dram_bytes_per_clock * DRAM_EFFICIENCY)))
        return demands

    @property
    def _l2_slices(self) -> float:
        """Slices of the chip's L2, from its size; as many as the largest chip's rate asks for without one."""
        architecture, size = self.architecture, self.inputs.gpu.l2_bytes
        if size:
            return size / architecture.l2_slice_bytes
        return architecture.l2_bytes_per_clock / architecture.l2_slice_bytes_per_clock

    def _l2_rate(self, active_sms: int) -> float:
        """Bytes a cycle that L2 gives one SM: what the SM can take, or its share of what the slices give."""
        architecture = self.architecture
        all_slices = self._l2_slices * architecture.l2_slice_bytes_per_clock
        chip = min(architecture.l2_bytes_per_clock, all_slices)
        return min(L2_BYTES_PER_CLOCK_SM, chip / active_sms)

    def _packet_rate(self, active_sms: int) -> float:
        """Packets a cycle from one SM to L2: what its port sends, or its share of one a slice and cycle."""
        return min(1.0 / self.architecture.wavefront_cycles, self._l2_slices / active_sms)

    def requested_bytes(self) -> tuple[float, float]:
        """Bytes of sectors that global and local loads and stores ask for, of the whole launch."""
        inputs = self.inputs
        sizes = inputs.code.counts * inputs.block_warps * inputs.blocks * self.sectors * 32
        stores = self.finish == Finish.STORE
        return float(sizes[self.is_global & ~stores].sum()), float(sizes[self.is_global & stores].sum())

    def bounds(self, hits: HitRates | None = None) -> LevelOutcome:
        """Level 0: the busiest resource, full all the time, and every SM with the same number of blocks."""
        blocks = self.inputs.blocks / self.inputs.gpu.sms
        cycles = {name: amount * blocks for name, amount in self.block_cycles(hits).items()}
        limiter = max(cycles, key=lambda name: cycles[name])
        longest = max(cycles[limiter], 1e-9)
        return LevelOutcome(
            cycles[limiter], limiter, {name: amount / longest for name, amount in cycles.items()}
        )

    def littles_law(self, hits: HitRates) -> LevelOutcome:
        """Level 1: a closed queueing network of the blocks on an SM, one wave after another.

        Warps that go round a loop drift apart: a wave takes as long as one of them alone, or its busiest
        resource. Those that start together or leave a barrier are in step: what keeps one of them waiting
        keeps the whole block waiting, and blocks queue for the busiest resource (Denning and Buzen 1978;
        Reiser and Lavenberg 1980). Of an iteration each, the first one after a start or a barrier is in step.
        """
        inputs = self.inputs
        alone, _ = self._whole(lambda trace: self._alone(trace, hits), 1)
        cycles = self.block_cycles(hits)
        limiter = max(cycles, key=lambda name: cycles[name])
        bound, resident = cycles[limiter], inputs.resident_blocks
        bound = max(bound, WARP_START_CYCLES * inputs.block_warps)
        busy = max(bound, self._cycles_in_step(hits))
        warps = inputs.block_warps
        block = busy + max(0.0, alone - busy / warps)
        share = self._share_in_step

        def wave(blocks: int) -> float:
            in_step = _closed_network(blocks, block - bound, bound)
            apart = _closed_network(blocks * warps, max(0.0, alone - bound / warps), bound / warps)
            return share * in_step + (1 - share) * apart

        waves, tail = divmod(-(-inputs.blocks // inputs.gpu.sms), resident)
        if waves >= _FULL_WAVES:
            total = inputs.blocks / inputs.gpu.sms / resident * wave(resident)
        else:
            total = waves * wave(resident) + (wave(tail) if tail else 0.0)
        used = {name: amount * inputs.blocks / inputs.gpu.sms / total for name, amount in cycles.items()}
        name = limiter if used[limiter] > _BUSY_SHARE else "latency"
        return LevelOutcome(self.architecture.launch_cycles + total, name, used)

    @property
    def _share_in_step(self) -> float:
        """What of their instructions the warps of a block execute in step: an iteration between barriers."""
        counts = self.inputs.code.counts
        iterations = float(counts.sum()) / max(float(np.minimum(counts, 1.0).sum()), 1e-9)
        barriers = float(counts[self.finish == Finish.BARRIER].sum())
        return min(1.0, (1 + barriers) / max(iterations, 1e-9))

    def _cycles_in_step(self, hits: HitRates) -> float:
        """Cycles that a block is busy whose warps go in step from a wait for memory or a barrier to the next.

        Between two waits the resource counts that is busiest there, which need not be that of the whole.
        """
        demands = self._demands(hits)
        taken = np.array([amounts for _, amounts in demands])

        def run(trace: WarpTrace) -> tuple[float, None]:
            total = 0.0
            for row, length in zip(trace.positions, trace.lengths, strict=True):
                positions = row[:length]
                if length:
                    phases = np.add.reduceat(taken[:, positions], self._phase_starts(positions), axis=1)
                    total += float(phases.max(axis=0).sum())
            return total / len(trace.lengths), None

        cycles, _ = self._whole(run, self._traced_warps)
        return cycles * self.inputs.block_warps

    def _phase_starts(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where in a trace a warp waits for memory or for other warps; the first place is its start."""
        controls = self.inputs.controls or _default_controls(len(self.pipe))
        meets = np.isin(self.finish, (Finish.BARRIER, Finish.COPY_WAIT))
        # A bit for the scoreboard of each load.
        loads = np.where(self.finish == Finish.LOAD, 1 << controls.write_scoreboard, 0) & ~(
            1 << NO_SCOREBOARD
        )
        steps = np.stack((controls.waits, meets, loads))[:, positions].T.tolist()
        starts, in_flight = [0], 0
        for place, (waits, is_meeting, loaded) in enumerate(steps):
            if place and (in_flight & waits or is_meeting):
                starts.append(place)
            in_flight = 0 if is_meeting else in_flight & ~waits
            in_flight |= loaded
        return np.array(starts, np.int64)

    def simulation(self, hits: HitRates) -> LevelOutcome:
        """Level 2: one SM simulated cycle by cycle."""
        total, simulated = self._whole(lambda trace: self._grid(trace, hits), self._traced_warps)
        used = self._utilisation(simulated)
        limiter = max(used, key=lambda name: used[name])
        all_stalls = max(float(simulated.stalls.sum()), 1e-9)
        waited = max(float(simulated.by_instruction.sum()), 1e-9)
        return LevelOutcome(
            self.architecture.launch_cycles + total,
            limiter if used[limiter] > _BUSY_SHARE else "latency",
            used,
            {stall.name.lower(): float(simulated.stalls[stall]) / all_stalls for stall in Stall},
            simulated.by_instruction / waited,
        )

    def _utilisation(self, simulated: Simulated) -> dict[str, float]:
        partitions, cycles = self.architecture.partitions, max(simulated.cycles, 1e-9)
        used = {"issue": simulated.issued / cycles / partitions}
        for pipe in Pipe:
            if pipe not in (Pipe.NONE, Pipe.BRANCH, Pipe.FMA_HEAVY):
                ports = 1 if pipe == Pipe.LSU else partitions
                used[pipe.label] = float(simulated.busy[pipe]) / cycles / ports
        heavy = float(simulated.busy[Pipe.FMA_HEAVY]) / cycles / partitions
        used[Pipe.FMA.label] = max(used[Pipe.FMA.label], heavy)
        for name, unit in (("L1 data", Unit.L1_DATA), ("L2", Unit.L2), ("DRAM", Unit.DRAM)):
            used[name] = float(simulated.busy[unit]) / cycles
        used["L2"] = max(used["L2"], float(simulated.busy[Unit.REQUESTS]) / cycles)
        return used

    @property
    def _traced_warps(self) -> int:
        """How many warps of a block have a trace of their own."""
        return min(self.inputs.block_warps, MOST_TRACES)

    def _whole(self, run: Callable[[WarpTrace], tuple[float, _Rest]], warps: int) -> tuple[float, _Rest]:
        """The cycles of uncut loops: two traces with loops cut differently, drawn out to the true number."""
        short = self.inputs.code.trace(TRACE, warps)
        cycles, rest = run(short)
        if short.shortened < 1.02:
            return cycles * short.shortened, rest
        long = self.inputs.code.trace(2 * TRACE, warps)
        length = float(short.lengths.mean())
        more = float(long.lengths.mean()) - length
        if more < 0.2 * length:
            return cycles * short.shortened, rest
        longer, rest = run(long)
        left = length * (short.shortened - 1)
        return cycles + (longer - cycles) * left / more, rest

    def _alone(self, trace: WarpTrace, hits: HitRates) -> tuple[float, Simulated]:
        """Cycles of one warp that has an SM for itself."""
        simulated = self._simulate(trace, hits, 1, 1, 1, self.inputs.gpu.sms)
        return simulated.cycles, simulated

    def _grid(self, trace: WarpTrace, hits: HitRates) -> tuple[float, Simulated]:
        """Cycles of the whole grid, all warps of which run the trace."""
        inputs = self.inputs
        sms, blocks = inputs.gpu.sms, inputs.blocks
        each_sm = -(-blocks // sms)
        resident, active = min(inputs.resident_blocks, each_sm), min(sms, blocks)
        warps = inputs.block_warps
        if each_sm <= _SIMULATED_WAVES * resident:
            simulated = self._simulate(trace, hits, warps, resident, each_sm, active)
            return simulated.cycles, simulated
        two = self._simulate(trace, hits, warps, resident, 2 * resident, active)
        four = self._simulate(trace, hits, warps, resident, 4 * resident, active)
        a_block = (four.cycles - two.cycles) / (2 * resident)
        return four.cycles + (blocks / sms - 4 * resident) * a_block, four

    def _simulate(
        self, trace: WarpTrace, hits: HitRates, warps: int, resident: int, blocks: int, active_sms: int
    ) -> Simulated:
        architecture = self.architecture
        machine = SmShare(
            self._weak_hits(hits),
            float(hits.l2),
            float(hits.stores),
            float(hits.merged),
            self._l2_rate(active_sms),
            self.dram_bytes_per_clock * DRAM_EFFICIENCY / active_sms,
            L2_BYTES_PER_CLOCK_SM,
            self._packet_rate(active_sms),
            architecture.wavefront_cycles,
            float(architecture.l1_latency),
            float(architecture.l2_latency),
            float(architecture.dram_latency),
            BARRIER_CYCLES,
            CONSTANT_MISS_CYCLES,
            QUEUED_LOADS,
            WARP_START_CYCLES,
            self._first_misses(trace, hits, warps),
        )
        return simulate(trace, self._code, machine, warps, resident, blocks)

    def _first_misses(self, trace: WarpTrace, hits: HitRates, warps: int) -> float:
        """Bytes that a block misses before it hits; negative where hits have no such order.

        Threads that hand data on through global memory load what their block has touched before: L1 keeps
        it, and only first touches miss.
        """
        if not self._exchanges_through_memory:
            return -1.0
        sizes = np.where(self._loads & ~self.is_strong, self.sectors * 32, 0.0)
        traces = [
            float(sizes[row[:length]].sum())
            for row, length in zip(trace.positions, trace.lengths, strict=True)
        ]
        loaded = sum(traces[warp % len(traces)] for warp in range(warps))
        return (1 - self._weak_hits(hits)) * loaded

    @property
    def _loads(self) -> NDArray[np.bool_]:
        loads: NDArray[np.bool_] = self.is_global & np.isin(self.finish, (Finish.LOAD, Finish.COPY))
        return loads

    def _weak_hits(self, hits: HitRates) -> float:
        """How often loads hit L1 that may: those of `is_strong` never do."""
        asked = self.inputs.code.counts * np.where(self._loads, self.sectors, 0.0)
        share = float(asked[self.is_strong].sum()) / max(float(asked.sum()), 1e-9)
        return min(1.0, hits.l1 / max(1 - share, 1e-9))

    @cached_property
    def _exchanges_through_memory(self) -> bool:
        """Whether a loop stores to global memory, meets at a barrier and loads, all without shared memory."""
        code = self.inputs.code
        bases = [
            "" if count <= 0 or ".CONSTANT" in text else base_opcode(opcode_of(text))
            for text, count in zip(code.texts, code.counts, strict=True)
        ]
        return any(
            bases[end] == "BRA"
            and 0 <= start < end
            and {"STG", "LDG", "BAR"} <= set(bases[start:end])
            and "STS" not in bases[start:end]
            for end, start in enumerate(code.targets)
        )

    @cached_property
    def _code(self) -> SimulatedCode:
        texts = self.inputs.code.texts
        controls = self.inputs.controls or _default_controls(len(texts))
        reuse = None if controls.reuse is None else tuple(controls.reuse.tolist())
        constant_line = _constant_lines(tuple(texts))
        even, odd = _bank_reads(tuple(texts), reuse)
        return SimulatedCode(
            self.pipe,
            self.pipe_cycles,
            self.finish,
            self.latency,
            self.wavefronts,
            self.sectors,
            self.packets,
            self.is_global,
            self.is_strong,
            constant_line,
            self.copy_groups,
            even,
            odd,
            controls.stall,
            controls.write_scoreboard,
            controls.read_scoreboard,
            controls.waits,
        )


def _closed_network(customers: int, delay: float, service: float) -> float:
    """Cycles in which each of some customers goes once through a delay and a queue for one server."""
    queue, cycles = 0.0, delay + service
    for count in range(1, customers + 1):
        response = service * (1 + queue)
        cycles = delay + response
        queue = count * response / max(cycles, 1e-9)
    return cycles


def _default_controls(count: int) -> ControlWords:
    """No dependence that a scoreboard tells, and a cycle or two between instructions."""
    none = np.full(count, NO_SCOREBOARD, np.int64)
    return ControlWords(np.full(count, 2, np.int64), none, none, np.zeros(count, np.int64))


def _words_a_lane(modifiers: str) -> float:
    """How many 32-bit words a lane moves."""
    width = re.search(r"\.(128|64)\b", modifiers)
    return {"128": 4.0, "64": 2.0}[width[1]] if width else 1.0


def _least_wavefronts(base: str, modifiers: str) -> float:
    """The passes of an access that nothing is known of: those without a conflict."""
    if base in ("LDSM", "STSM"):
        return 4.0 if modifiers.endswith(".4") else 2.0 if modifiers.endswith(".2") else 1.0
    if base in _SHARED or base in pipes.GLOBAL_ACCESSES:
        return _words_a_lane(modifiers)
    return 1.0


@lru_cache(_KEPT)
def _constant_lines(texts: tuple[str, ...]) -> NDArray[np.int64]:
    """Which line of the constant banks each instruction reads, counted from 0; -1: none."""
    lines: dict[tuple[str, int], int] = {}
    constant_line = np.full(len(texts), -1, np.int64)
    for position, text in enumerate(texts):
        if match := _CONSTANT.search(text):
            line = (match[1], int(match[2], 16) // _CONSTANT_LINE_BYTES)
            constant_line[position] = lines.setdefault(line, len(lines))
    return constant_line


@lru_cache(_KEPT)
def _bank_reads(
    texts: tuple[str, ...], reuse: tuple[int, ...] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The registers that each instruction reads from the even and the odd bank.

    What an instruction's operand keeps for the next one is not read again: by the control word (`reuse`, a
    bit an operand), or by the text (`.reuse`).
    """
    reads = np.zeros((2, len(texts)))
    kept: dict[int, int] = {}
    for position, text in enumerate(texts):
        opcode = opcode_of(text)
        base = base_opcode(opcode)
        now: dict[int, int] = {}
        if base in _READS_REGISTERS and ".WIDE" not in opcode and ".X" not in opcode:
            words = instruction.operands.split(", ") if (instruction := split_instruction(text)) else []
            operands = [word for word in words if not _PREDICATE.fullmatch(word)]
            for slot, word in enumerate(operands[0 if base in ("ISETP", "FSETP") else 1 :]):
                if match := _SOURCE.search(word):
                    register = int(match[1])
                    if kept.get(slot) != register:
                        reads[register & 1, position] += 1
                    if match[2] or (reuse is not None and reuse[position] >> slot & 1):
                        now[slot] = register
        kept = now
    return reads[0], reads[1]
