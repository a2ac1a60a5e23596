"""The roofline of a launch, at its own clocks, from the metrics of its report alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from profiler.evidence import ncu_release
from profiler.evidence.gpu_arch import ARCHITECTURES, find_architecture
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.ncu_release import NcuRelease
from profiler.evidence.opcodes import TENSOR_OPCODES, base_opcode
from profiler.evidence.rollups import CounterRates, Rate
from profiler.evidence.tensor_pipes import TensorPath, declared_tensor_metrics, tensor_paths

LEVELS = ("L1", "L2", "DRAM")
USED, UNUSED, UNKNOWN = "used", "not used", "unknown"


class _Instruction(NamedTuple):
    """One kind of scalar work, as ncu counts it."""

    name: str  # in ncu's counters
    operations: int  # of one thread instruction
    opcodes: tuple[str, ...]  # that it counts
    is_on_some_chips: bool = False  # counted apart where the table says so, nowhere else


# Source: the roofline sections of ncu 2024.1 and 2025.1 (SpeedOfLight_Hierarchical*RooflineChart.section).
# Half precision is packed: HFMA2 does two fused operations in a thread, HADD2 and HMUL2 two single ones.
# ncu's own derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x4 and …_hadd_pred_on_x2 count so. Packed
# fp32 (FFMA2 and its like) has counters of its own on some chips of Blackwell, and is in no other counter.
# The peak is that of the fused ones, FFMA and FFMA2: the higher of both.
_PRECISIONS = {
    "fp64": (
        _Instruction("dfma", 2, ("DFMA",)),
        _Instruction("dadd", 1, ("DADD",)),
        _Instruction("dmul", 1, ("DMUL",)),
    ),
    "fp32": (
        _Instruction("ffma", 2, ("FFMA", "FFMA32I")),
        _Instruction("fadd", 1, ("FADD", "FADD32I")),
        _Instruction("fmul", 1, ("FMUL", "FMUL32I")),
        _Instruction("ffma2", 4, ("FFMA2",), True),
        _Instruction("fadd2", 2, ("FADD2",), True),
        _Instruction("fmul2", 2, ("FMUL2",), True),
    ),
    "fp16": (
        _Instruction("hfma", 4, ("HFMA2", "HFMA2_32I")),
        _Instruction("hadd", 2, ("HADD2", "HADD2_32I")),
        _Instruction("hmul", 2, ("HMUL2", "HMUL2_32I")),
    ),
}
_OPCODE_MIX = "sass__inst_executed_per_opcode"  # lists every opcode that was executed
_THREAD_INSTRUCTIONS = "__sass_thread_inst_executed_op_{}_pred_on"
# Bytes of one unit of each counter, the sections' own first. L2: what a slice sends to the SMs, else every
# sector looked up. L1: what loads write back, by the architecture's own counter.
_L2_SECTORS = "lts__t_sectors"
_L2_COUNTERS = {"lts__lts2xbar_cycles_active": 32, _L2_SECTORS: 32}
_L1_BYTES = 128
_SECTORS_NOTE = (
    "L2 counts every sector looked up (`lts__t_sectors`), writes and other units too: ncu's own roofline "
    "counts `lts__lts2xbar_cycles_active`, which this report lacks"
)
_OPERATIONS_NOTE = (
    "ncu {} took 512 operations for each tensor instruction, of any type: such a point would not compare "
    "with one of a newer ncu, and is not drawn"
)
_TENSOR_BUSY = ("sm__pipe_tensor_cycles_active", "sm__inst_executed_pipe_tensor.")  # 0 says: no tensor work


@dataclass(frozen=True)
class Roof:
    """One ceiling: the highest rate of operations or bytes, and the rate that the launch reached."""

    name: str  # fp32, tensor fp16 → fp32, DRAM
    unit: str  # FLOP/s, op/s or byte/s
    peak: Rate
    rate: Rate
    state: str = USED  # of a precision: used, not used or unknown
    opcodes: str = ""  # the opcodes that say it is used, where no counter does
    note: str = ""  # what a reader has to know of it

    @property
    def share(self) -> float | None:
        """The share of the peak that was reached, from 0 to 1; None where either is missing."""
        return _ratio(self.rate.number, self.peak.number)

    @property
    def missing(self) -> tuple[tuple[str, str], ...]:
        """Name and state of each metric that would complete it."""
        return () if self.state == UNUSED else tuple(dict.fromkeys((*self.rate.missing, *self.peak.missing)))


@dataclass(frozen=True)
class RooflinePoint:
    """One precision with the traffic of one memory level. None where a roof is missing."""

    precision: str
    level: str
    intensity: float  # operations per byte
    reached: float  # operations a second
    unit: str
    knee: float | None  # the intensity from which on arithmetic is the limit
    attainable: float | None  # operations a second under both roofs

    @property
    def bound(self) -> str | None:
        """The lower of the two roofs at this intensity: memory or arithmetic."""
        if self.knee is None:
            return None
        return "memory" if self.intensity < self.knee else "arithmetic"

    @property
    def bound_words(self) -> str:
        """`memory-bound` or `compute-bound`; unknown without both roofs."""
        return {"memory": "memory-bound", "arithmetic": "compute-bound"}.get(self.bound or "", "unknown")

    @property
    def share(self) -> float | None:
        """The rate that was reached, as a share of what is attainable at this intensity."""
        return _ratio(self.reached, self.attainable)


@dataclass(frozen=True)
class Roofline:
    """The roofs of one launch, and its points under them."""

    precisions: tuple[Roof, ...]
    levels: tuple[Roof, ...]  # in the order of LEVELS
    points: tuple[RooflinePoint, ...]

    @property
    def roofs(self) -> tuple[Roof, ...]:
        """All roofs, precisions first."""
        return (*self.precisions, *self.levels)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader has to know about the roofs."""
        notes = [roof.note for roof in self.roofs if roof.note]
        derived = [words for roof in self.roofs for words in (*roof.rate.derived, *roof.peak.derived)]
        return tuple(dict.fromkeys((*notes, *derived)))

    @property
    def leading(self) -> Roof | None:
        """The precision with most work; None without any."""
        used = [roof for roof in self.precisions if roof.rate.number]
        return max(used, key=lambda roof: roof.rate.number or 0.0, default=None)

    @property
    def nearest(self) -> Roof | None:
        """The roof of which the largest share was reached; None where one that is unknown may be nearer."""
        return None if self.unknown else self.nearest_known

    @property
    def nearest_known(self) -> Roof | None:
        """The roof of which the largest share was reached, of those whose share is known."""
        complete = [roof for roof in self.roofs if roof.share is not None]
        return max(complete, key=lambda roof: roof.share or 0.0, default=None)

    @property
    def unknown(self) -> tuple[Roof, ...]:
        """The roofs that the launch has, as far as is known, and whose share is not."""
        return tuple(roof for roof in self.roofs if roof.share is None and roof.state != UNUSED)

    def rank_words(self, roof: Roof) -> str:
        """`closest roof`, or of the known ones alone; "" for all but that one."""
        if roof is not self.nearest_known:
            return ""
        return "closest of the known roofs" if self.unknown else "closest roof"

    @property
    def missing(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """By roof, name and state of each metric that it lacks."""
        return {roof.name: roof.missing for roof in self.roofs if roof.missing}


def roofline_of(launch: Launch, table: MetricTable, chip: str | None, ncu: str | None = None) -> Roofline:
    """The roofline of a measured launch. A missing metric is listed with its state and adds nothing.

    `ncu` is the version that made the report: old ones count tensor operations differently.
    """
    rates = CounterRates(launch.values, table, chip)
    release = NcuRelease.parse(ncu)
    levels = tuple(_level_roofs(rates, table, chip))
    scalar = [_scalar_roof(rates, name, launch, table, chip) for name in _PRECISIONS]
    paths = tensor_paths(launch.values)
    tensor = [_tensor_roof(rates, path, chip, release) for path in paths]
    counted = [path for path, roof in zip(paths, tensor, strict=True) if roof.state != UNUSED]
    uncounted = [
        _uncounted_tensor_roof(opcode, rates, declared_tensor_metrics(table, chip, opcode), release)
        for opcode in _uncounted_opcodes(launch, paths, counted)
    ]
    precisions = (*scalar, *tensor, *uncounted)
    points = tuple(
        point for roof in precisions for level in levels if (point := _point(roof, level)) is not None
    )
    return Roofline(precisions, levels, points)


def collect_command(chip: str | None) -> str:
    """The command that collects all metrics of a roofline."""
    return f"ncu --metrics $(profiler list metrics --chip {chip or 'sm_NN'}) PROGRAM"


def _level_roofs(rates: CounterRates, table: MetricTable, chip: str | None) -> Iterator[Roof]:
    yield _level_roof(rates, "L1", {_l1_counter(rates, chip): _L1_BYTES})
    yield _level_roof(rates, "L2", _L2_COUNTERS)
    dram = _level_roof(rates, "DRAM", {"dram__bytes": 1})
    concept = table.by_concept.get("dram_bandwidth")
    if dram.rate.number is None and find_architecture(chip) and concept and not concept.names_for(chip):
        note = f"{chip} has no counters of DRAM: GPU and CPU share one memory"
        dram = Roof("DRAM", "byte/s", Rate(None), Rate(None), UNUSED, note=note)
    yield dram


def _l1_counter(rates: CounterRates, chip: str | None) -> str:
    """The chip's counter of L1; for an unknown chip the newest counter that the report has."""
    if architecture := find_architecture(chip):
        return architecture.l1_counter
    newest_first = [architecture.l1_counter for architecture in reversed(ARCHITECTURES.values())]
    return next((counter for counter in newest_first if rates.carries(counter)), newest_first[0])


def _level_roof(rates: CounterRates, name: str, counters: Mapping[str, int]) -> Roof:
    """The level by its first counter with a rate and a peak; else by the first, with what is missing."""
    roofs = []
    for counter, bytes_per_unit in counters.items():
        rate, note = rates.rate(counter) * bytes_per_unit, ""
        if counter == _L2_SECTORS:
            note = _SECTORS_NOTE
        elif rate.number == 0:
            note = f"no {name} traffic was counted: no intensity there"
        roofs.append(Roof(name, "byte/s", rates.peak(counter) * bytes_per_unit, rate, note=note))
    with_rate = [roof for roof in roofs if roof.rate.number is not None]
    complete = [roof for roof in with_rate if roof.peak.number is not None]
    return (complete or with_rate or roofs)[0]


def _scalar_roof(
    rates: CounterRates, name: str, launch: Launch, table: MetricTable, chip: str | None
) -> Roof:
    instructions = [
        one
        for one in _PRECISIONS[name]
        if not one.is_on_some_chips or _is_counted_apart(rates, one, launch, table, chip)
    ]
    rate = Rate.total([_instruction_rate(rates, one, launch) * one.operations for one in instructions])
    peaks = [
        rates.peak("sm" + _THREAD_INSTRUCTIONS.format(one.name)) * one.operations
        for one in instructions
        if "fma" in one.name
    ]
    peak = max(peaks, key=lambda one: one.number or 0.0)
    if rate.number is not None:
        return Roof(name, "FLOP/s", peak, rate, USED if rate.number else UNUSED)
    opcodes = {opcode for one in _PRECISIONS[name] for opcode in one.opcodes}
    executed = sorted(opcode for opcode in launch.opcodes if base_opcode(opcode) in opcodes)
    state = USED if executed else UNUSED if launch.opcodes else UNKNOWN
    return Roof(name, "FLOP/s", peak, rate, state, ", ".join(executed))


def _is_counted_apart(
    rates: CounterRates, instruction: _Instruction, launch: Launch, table: MetricTable, chip: str | None
) -> bool:
    """Whether the chip has a counter of its own for it; for an unknown chip whether the launch has it."""
    if rates.carries("smsp" + _THREAD_INSTRUCTIONS.format(instruction.name)) or _has_run(instruction, launch):
        return True
    if find_architecture(chip) is None:
        return False
    concept = table.by_concept.get(f"flop_{instruction.name}")
    return concept is not None and bool(concept.names_for(chip))


def _has_run(instruction: _Instruction, launch: Launch) -> bool:
    return any(base_opcode(opcode) in instruction.opcodes for opcode in launch.opcodes)


def _instruction_rate(rates: CounterRates, instruction: _Instruction, launch: Launch) -> Rate:
    """Thread instructions per second; none where nobody counted them and the launch executed none of them."""
    rate = rates.rate("smsp" + _THREAD_INSTRUCTIONS.format(instruction.name))
    if rate.number is not None or not launch.opcodes or _has_run(instruction, launch):
        return rate
    words = f"{_OPCODE_MIX} has no {instruction.name.upper()}"
    return Rate(0.0, (words,), derived=(words,))


def _tensor_roof(rates: CounterRates, path: TensorPath, chip: str | None, release: NcuRelease | None) -> Roof:
    """A tensor path by its counter of dense work, under the dense roof: the sparse one is twice as high."""
    counter = path.dense if rates.carries(path.dense) or not rates.carries(path.base) else path.base
    rate = rates.rate(counter)
    peak = rates.peak(path.dense if path.has_sparsity(chip) else counter)
    note = ncu_release.wrong_tensor_peaks(release, chip) if rate.number else ""
    if rates.rate(path.sparse).number:
        note = f"{path.label} also ran with structured sparsity, which is in no point"
    state = UNKNOWN if rate.number is None else USED if rate.number else UNUSED
    return Roof(path.label, path.unit, peak, rate, state, note=note)


def _uncounted_opcodes(
    launch: Launch, paths: Sequence[TensorPath], counted: Sequence[TensorPath]
) -> list[str]:
    """The executed tensor opcodes that no counter of the report includes.

    [""] where the report has neither opcodes nor such counters, so that there may have been any.
    """
    if launch.opcodes:
        executed = {base_opcode(opcode) for opcode in launch.opcodes} & TENSOR_OPCODES.keys()
        return [opcode for opcode in sorted(executed) if not any(path.covers(opcode) for path in counted)]
    is_idle = any(name.startswith(_TENSOR_BUSY) and launch.values.number(name) == 0 for name in launch.values)
    return [] if paths or is_idle else [""]


def _uncounted_tensor_roof(
    opcode: str,
    rates: CounterRates,
    metrics: Sequence[str],
    release: NcuRelease | None,
) -> Roof:
    """The roof of tensor work without a counter: it lists the metrics that would count it."""
    missing = Rate(None, (), tuple((name, rates.state(name)) for name in metrics))
    note = ""
    if opcode and release and release < ncu_release.TENSOR_OPERATIONS:
        note = _OPERATIONS_NOTE.format(release)
    name = f"tensor ({opcode})" if opcode else "tensor"
    return Roof(name, "op/s", missing, missing, USED if opcode else UNKNOWN, opcode, note)


def _point(roof: Roof, level: Roof) -> RooflinePoint | None:
    reached, traffic = roof.rate.number, level.rate.number
    if not reached or not traffic:
        return None
    intensity, peak, bandwidth = reached / traffic, roof.peak.number, level.peak.number
    knee = _ratio(peak, bandwidth)
    attainable = None if peak is None or bandwidth is None else min(peak, intensity * bandwidth)
    return RooflinePoint(roof.name, level.name, intensity, reached, roof.unit, knee, attainable)


def _ratio(number: float | None, whole: float | None) -> float | None:
    return None if number is None or not whole else number / whole
