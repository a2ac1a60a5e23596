"""The sections of Nsight Compute for one launch, from whatever its report holds, beside a baseline launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from profiler.evidence import formatting
from profiler.evidence.gpu_arch import find_architecture
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import NOT_COLLECTED, Derivation, Evidence, State, Value
from profiler.explain.explanation import stall_metrics
from profiler.explain.launch_numbers import LaunchNumber, LaunchReader
from profiler.explain.memory_traffic import MemoryTraffic, memory_traffic
from profiler.explain.occupancy_whatif import OccupancyAnalysis, measured_occupancy, static_occupancy

_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
# Pipes that metrics.txt does not declare, with ncu's counters of them; sections of 2021 and later carry those
# that the chip has as the breakdown of the compute throughput.
_PIPES = {
    "FP64 pipe": f"sm__pipe_fp64_cycles_active{_ELAPSED}",
    "FP16 pipe": f"sm__inst_executed_pipe_fp16{_ELAPSED}",
    "uniform pipe": f"sm__inst_executed_pipe_uniform{_ELAPSED}",
    "ADU pipe (LDC, BAR, BRX …)": f"sm__inst_executed_pipe_adu{_ELAPSED}",
    "CBU pipe (branches)": f"sm__inst_executed_pipe_cbu_pred_on_any{_ELAPSED}",
    "TEX pipe": f"sm__inst_executed_pipe_tex{_ELAPSED}",
    "TMA pipe": f"sm__pipe_tma_cycles_active{_ELAPSED}",
}
_DECLARED_PIPES = {
    "pipe_fma": "FMA pipe",
    "pipe_alu": "ALU pipe",
    "pipe_xu": "XU pipe (MUFU, I2F, POPC …)",
    "pipe_lsu": "LSU pipe",
    "tensor_busy": "tensor pipe",
}
_SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
_NOT_ISSUED = "_not_issued"
_OPCODE_MIX = "sass__inst_executed_per_opcode"
_SHARED = "launch__shared_mem_per_block"
_PM_SAMPLING = "pmsampling:"  # before the metrics of a timeline
_PER_INSTRUCTION = "inst_executed"  # what every report with counts by instruction has
PROGRAM = "PROGRAM"  # what a command profiles


@dataclass(frozen=True)
class MissingSection:
    """What a launch has no numbers for, and the command that collects it; "" where none can."""

    what: str
    state: str
    command: str
    note: str = ""


@dataclass(frozen=True)
class WarpStates:
    """Why warps waited: cycles an issue by counters, or samples where only those were collected."""

    states: tuple[LaunchNumber, ...]  # largest first; without those that have no number
    total: LaunchNumber  # the latency of an issue in cycles, or all samples
    is_sampled: bool
    state: str = ""  # why there are none


@dataclass(frozen=True)
class LaunchSections:
    """One launch, section by section. A section without numbers is empty, and `missing` says why."""

    evidence: Evidence
    launch: Launch
    baseline: Launch | None
    facts: tuple[LaunchNumber, ...]  # of a launch that was not measured all that is known
    speed_of_light: tuple[LaunchNumber, ...]  # memory and compute, each before its parts, the largest first
    memory: MemoryTraffic
    warp_states: WarpStates
    instruction_mix: tuple[LaunchNumber, ...]  # by opcode, most first
    occupancy: OccupancyAnalysis | None
    baseline_occupancy: OccupancyAnalysis | None
    schedulers: tuple[LaunchNumber, ...]
    missing: tuple[MissingSection, ...]

    @property
    def nearest_peak(self) -> LaunchNumber | None:
        """The unit that came nearest to its peak; None where no share of a peak was collected."""
        parts = [number for number in self.speed_of_light if number.is_part and number.number is not None]
        return max(parts, key=lambda number: number.number or 0.0, default=None)

    @property
    def shared_memory(self) -> LaunchNumber:
        """Shared memory of a block, static and dynamic."""
        return next((fact for fact in self.facts if fact.metric == _SHARED), _no_number(_SHARED))

    def missing_section(self, what: str) -> MissingSection | None:
        """What is said of a section that has no number; None where it has."""
        return next((section for section in self.missing if section.what == what), None)

    def fact(self, concept: str) -> LaunchNumber:
        """The fact of a concept; one without a number where the launch has none."""
        found = (number for number in self.facts if number.concept == concept)
        return next(found, _no_number(concept))


def launch_sections(
    launch: Launch,
    table: MetricTable,
    chip: str | None,
    *,
    baseline: Launch | None = None,
    baseline_chip: str | None = None,
    evidence: Evidence = Evidence.MEASURED,
    architecture: str | None = None,
) -> LaunchSections:
    """The sections of a launch.

    `chip` and `baseline_chip` are "sm_90" or None; `architecture` is what static facts were compiled for.
    """
    reader = LaunchReader(launch, table, chip, baseline, baseline_chip)
    is_measured = evidence is Evidence.MEASURED
    occupancy = _occupancy(launch, evidence, architecture)
    memory = memory_traffic(reader)
    warp_states = _warp_states(reader)
    speed_of_light = _speed_of_light(reader) if is_measured else ()
    schedulers = _schedulers(reader) if is_measured else ()
    mix = _instruction_mix(launch, baseline, evidence)
    missing = (
        _missing(launch, memory, warp_states, speed_of_light, schedulers, mix, occupancy, chip)
        if is_measured
        else _unmeasured(evidence)
    )
    return LaunchSections(
        evidence,
        launch,
        baseline,
        tuple(_facts(reader) if is_measured else _every_fact(reader, evidence)),
        speed_of_light,
        memory,
        warp_states,
        mix,
        occupancy,
        None if baseline is None else _occupancy(baseline, evidence, architecture),
        schedulers,
        tuple(missing),
    )


def _no_number(name: str) -> LaunchNumber:
    return LaunchNumber(name, name, NOT_COLLECTED)


def _facts(reader: LaunchReader) -> Iterator[LaunchNumber]:
    """What a launch is, and how long it took."""
    yield reader.concept("duration")
    for concept in ("issue_active", "inst_executed", "sm_clock", "memory_clock", "registers"):
        yield reader.concept(concept)
    yield reader.named("shared memory", _SHARED)
    for concept in ("grid_size", "block_size", "waves", "sm_count"):
        yield reader.concept(concept)


def _every_fact(reader: LaunchReader, evidence: Evidence) -> Iterator[LaunchNumber]:
    """What compiler or model say of a kernel function; what they do not say is no fact of it."""
    for metric in reader.table.of(evidence):
        number = reader.concept(metric.concept)
        if number.number is not None:
            yield number


def _speed_of_light(reader: LaunchReader) -> tuple[LaunchNumber, ...]:
    memory = [
        reader.concept(concept, label, is_part=True)
        for concept, label in (("sol_dram", "DRAM"), ("sol_l2", "L2"), ("sol_l1", "L1/TEX (active cycles)"))
    ]
    pipes = [reader.concept(concept, label, is_part=True) for concept, label in _DECLARED_PIPES.items()]
    # A pipe that the report does not mention is one that the chip does not have.
    pipes += [
        reader.named(label, name, is_part=True)
        for label, name in _PIPES.items()
        if name in reader.launch.values
    ]
    compute = [pipe for pipe in pipes if pipe.value.state is not State.NOT_AVAILABLE]
    return (
        reader.concept("sol_memory", "memory"),
        *sorted(memory, key=_largest_first),
        reader.concept("sol_compute", "compute (SM)"),
        *sorted(compute, key=_largest_first),
    )


def _warp_states(reader: LaunchReader) -> WarpStates:
    """By the counters where they were collected; else by the samples of warps, issuing ones included."""
    counted = [
        reader.concept(metric.concept, reason)
        for reason, metric in stall_metrics(reader.table, reader.chip).items()
    ]
    with_number = [number for number in counted if number.number is not None]
    latency = reader.concept("warp_latency")
    if with_number:
        return WarpStates(tuple(sorted(with_number, key=_largest_first)), latency, False)
    names = [
        name for name in reader.launch.values if name.startswith(_SAMPLES) and not name.endswith(_NOT_ISSUED)
    ]
    sampled = [reader.named(name.removeprefix(_SAMPLES), name) for name in names]
    sampled = [number for number in sampled if number.number is not None]
    if not sampled:
        return WarpStates((), latency, False, _state(counted))
    total = reader.total("samples", "", 1, *(number.metric for number in sampled))
    return WarpStates(tuple(sorted(sampled, key=_largest_first)), total, True)


def _schedulers(reader: LaunchReader) -> tuple[LaunchNumber, ...]:
    """Warps of one scheduler in one cycle."""
    issued = reader.named("issued", "smsp__issue_active.avg.per_cycle_active")
    if issued.number is None:
        issued = _per_cycle(reader.concept("issue_active", "issued"))
    return (
        reader.concept("warps_active", "active warps"),
        reader.concept("warps_eligible", "eligible"),
        issued,
    )


def _per_cycle(share: LaunchNumber) -> LaunchNumber:
    """Instructions a cycle of a scheduler, from the share of cycles in which it issued one."""
    formula = f"{share.metric} / 100"

    def per_cycle(value: Value) -> Value:
        if value.number is None:
            return value
        return Value(float(value.number) / 100, "inst/cycle", derivation=Derivation(formula))

    baseline = None if share.baseline is None else per_cycle(share.baseline)
    return LaunchNumber(share.label, formula, per_cycle(share.value), baseline)


def _instruction_mix(launch: Launch, baseline: Launch | None, evidence: Evidence) -> tuple[LaunchNumber, ...]:
    """Each opcode with its count; one that only the baseline has counts 0 where a mix was collected."""
    if not launch.opcodes:
        return ()
    before: Mapping[str, float] = baseline.opcodes if baseline else {}
    unit = "inst"
    prefix = _OPCODE_MIX if evidence is Evidence.MEASURED else "static__opcode"
    numbers = [
        LaunchNumber(
            opcode,
            f"{prefix}[{opcode}]",
            Value(launch.opcodes.get(opcode, 0.0), unit),
            Value(before.get(opcode, 0.0), unit) if before else None,
        )
        for opcode in dict.fromkeys((*launch.opcodes, *before))
    ]
    return tuple(sorted(numbers, key=_largest_first))


def _occupancy(launch: Launch, evidence: Evidence, architecture: str | None) -> OccupancyAnalysis | None:
    if evidence is Evidence.MEASURED:
        return measured_occupancy(launch.values, None)
    if evidence is Evidence.STATIC and find_architecture(architecture) and architecture:
        needed = ("static__registers", "static__threads", "static__shared_bytes")
        if all(launch.values.number(name) is not None for name in needed):
            return static_occupancy(launch.values, architecture)
    return None


def _missing(
    launch: Launch,
    memory: MemoryTraffic,
    warp_states: WarpStates,
    speed_of_light: tuple[LaunchNumber, ...],
    schedulers: tuple[LaunchNumber, ...],
    mix: tuple[LaunchNumber, ...],
    occupancy: OccupancyAnalysis | None,
    chip: str | None,
) -> Iterator[MissingSection]:
    """What a measured launch lacks, in the order of the sections."""
    wholes = [number for number in speed_of_light if not number.is_part]
    yield from _lacking("speed of light", wholes, "--section SpeedOfLight")
    links = [link.moved for link in memory.links if link.is_counted_in_bytes or link.moved.number is None]
    hits = [level.hit for level in memory.levels if level.hit]
    both = "--section MemoryWorkloadAnalysis_Tables --section MemoryWorkloadAnalysis_Chart"
    yield from _lacking("memory traffic", [*links, *hits], both)
    if not warp_states.states:
        yield MissingSection("warp states", warp_states.state, _ncu("--section WarpStateStats"))
    elif warp_states.is_sampled:
        words = "samples stand for the counters here"
        state = State.NOT_COLLECTED.words
        yield MissingSection("stall counters", state, _ncu("--section WarpStateStats"), words)
    yield from _lacking("schedulers", schedulers, "--section SchedulerStats")
    if not mix:
        state = formatting.state_words(launch.values.value(_OPCODE_MIX))
        yield MissingSection("instruction mix", state, _ncu("--section InstructionStats"))
    if occupancy is not None and occupancy.achieved.number is None:
        state = formatting.state_words(occupancy.achieved)
        yield MissingSection("achieved occupancy", state, _ncu("--section Occupancy"))
    if not any(name.startswith(_PM_SAMPLING) for name in launch.values):
        words = "a recent ncu and GPU"
        yield MissingSection("timeline", State.NOT_COLLECTED.words, _ncu("--section PmSampling"), words)
    if _PER_INSTRUCTION not in launch.values:
        options = "--section SourceCounters --import-source yes"
        yield MissingSection("source lines", State.NOT_COLLECTED.words, _ncu(options))
    if not launch.rules:
        yield MissingSection("rules", State.NOT_COLLECTED.words, _ncu("--set full --apply-rules yes"))
    architecture = find_architecture(chip)
    if architecture is not None and architecture.matrix_instruction == "mma.sync" and not _has_tma(launch):
        yield MissingSection("wgmma, TMA, clusters", f"not available on {chip}", "")


def _lacking(what: str, numbers: Sequence[LaunchNumber], options: str) -> Iterator[MissingSection]:
    """Nothing where every number is there; what is missing by name where some are."""
    absent = [number for number in numbers if number.number is None]
    if not absent:
        return
    some = len(absent) < len(numbers)
    words = ", ".join(dict.fromkeys(number.label for number in absent)) if some else ""
    yield MissingSection(what, _state(absent), _ncu(options), words)


def _has_tma(launch: Launch) -> bool:
    return _PIPES["TMA pipe"] in launch.values


def _unmeasured(evidence: Evidence) -> Iterator[MissingSection]:
    """What no compiler and no model says."""
    words = f"{evidence.value} evidence: nothing ran on a GPU"
    yield MissingSection("time, traffic, stalls, achieved occupancy", "not measured", "", words)


def _state(numbers: Sequence[LaunchNumber]) -> str:
    """The states of what is missing, each once."""
    return ", ".join(dict.fromkeys(formatting.state_words(number.value) for number in numbers))


def _ncu(options: str) -> str:
    return f"ncu {options} {PROGRAM}"


def _largest_first(number: LaunchNumber) -> float:
    return float("inf") if number.number is None else -number.number
