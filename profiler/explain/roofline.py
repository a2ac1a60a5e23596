"""Where a launch stands under the roofs of its GPU, at its own clocks, from its report's metrics alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from profiler.evidence import (
    ARCHITECTURES,
    CounterRates,
    Launch,
    MetricTable,
    NcuRelease,
    Rate,
    TensorPath,
    find_architecture,
    ncu_release,
    tensor_pipes,
)

LEVELS = ("L1", "L2", "DRAM")
USED, UNUSED, UNKNOWN = "used", "not used", "unknown"

# Operations of one thread instruction, the first also of the peak, and the opcodes that do them.
# Source: the roofline sections of ncu 2024.1 (SpeedOfLight_Hierarchical*RooflineChart.section).
_SCALAR = {
    "fp64": ({"dfma": 2, "dadd": 1, "dmul": 1}, {"DFMA", "DADD", "DMUL"}),
    "fp32": ({"ffma": 2, "fadd": 1, "fmul": 1}, {"FFMA", "FADD", "FMUL", "FFMA2", "FADD2", "FMUL2"}),
    "fp16": ({"hfma": 2, "hadd": 1, "hmul": 1}, {"HFMA2", "HADD2", "HMUL2"}),
}
_THREADS = "__sass_thread_inst_executed_op_{}_pred_on"
# Bytes of one unit of each counter, the sections' own first. L2: what a slice sends to the SMs, else every
# sector looked up. L1: what loads write back, by the architecture's own counter.
_L2 = {"lts__lts2xbar_cycles_active": 32, "lts__t_sectors": 32}
_L1_BYTES = 128
_SECTORS = (
    "L2 counts every sector looked up (`lts__t_sectors`), writes and other units too: ncu's own roofline "
    "counts `lts__lts2xbar_cycles_active`, which this report lacks"
)
_TIMES_512 = (
    "ncu {} took 512 operations for each tensor instruction, of any type: such a point would not compare "
    "with one of a newer ncu, and is not drawn"
)
_TENSOR_BUSY = ("sm__pipe_tensor_cycles_active", "sm__inst_executed_pipe_tensor.")


@dataclass(frozen=True)
class Roof:
    """One ceiling: the most operations or bytes a second, and what the launch reached of it."""

    name: str  # fp32, tensor fp16 → fp32, DRAM
    unit: str  # FLOP/s, op/s or byte/s
    peak: Rate
    rate: Rate
    state: str = USED  # of a precision: used, not used or unknown
    seen: str = ""  # the opcodes that say it is used, where no counter does
    note: str = ""  # what a reader has to know of it

    @property
    def share(self) -> float | None:
        """How much of the peak was reached, from 0 to 1; None where either is missing."""
        return _over(self.rate.number, self.peak.number)

    @property
    def missing(self) -> tuple[tuple[str, str], ...]:
        """Metric and state of each that would complete it."""
        return () if self.state == UNUSED else tuple(dict.fromkeys((*self.rate.missing, *self.peak.missing)))


@dataclass(frozen=True)
class RooflinePoint:
    """One precision seen from one level of memory. None where a roof is missing."""

    precision: str
    level: str
    intensity: float  # operations per byte
    work: float  # operations a second
    unit: str
    knee: float | None  # the intensity from which on arithmetic is the limit
    attainable: float | None  # operations a second under both roofs

    @property
    def bound(self) -> str | None:
        """Which of the two roofs hangs lower here: memory or arithmetic."""
        if self.knee is None:
            return None
        return "memory" if self.intensity < self.knee else "arithmetic"

    @property
    def share(self) -> float | None:
        """The work as a share of what is attainable here."""
        return _over(self.work, self.attainable)


@dataclass(frozen=True)
class Roofline:
    """The roofs of one launch and its points under them."""

    precisions: tuple[Roof, ...]
    levels: tuple[Roof, ...]  # in the order of LEVELS
    points: tuple[RooflinePoint, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader has to know of the roofs."""
        told = (roof.note for roof in (*self.precisions, *self.levels) if roof.note)
        return tuple(dict.fromkeys(told))

    @property
    def leading(self) -> Roof | None:
        """The precision with most work."""
        used = [roof for roof in self.precisions if roof.rate.number]
        return max(used, key=lambda roof: roof.rate.number or 0.0, default=None)

    @property
    def nearest(self) -> Roof | None:
        """The roof of which most was reached."""
        known = [roof for roof in (*self.precisions, *self.levels) if roof.share is not None]
        return max(known, key=lambda roof: roof.share or 0.0, default=None)

    @property
    def missing(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """By roof: metric and state of each that it lacks."""
        return {roof.name: roof.missing for roof in (*self.precisions, *self.levels) if roof.missing}


def roofline_of(launch: Launch, table: MetricTable, chip: str | None, ncu: str | None = None) -> Roofline:
    """The roofline of a measured launch. A missing metric is named with its state and counts as nothing."""
    rates = CounterRates(launch.values)
    levels = tuple(_levels(rates, chip))
    paths = tensor_pipes.tensor_paths(launch.values)
    scalar = [_scalar(rates, name, launch) for name in _SCALAR]
    release = NcuRelease.parse(ncu)
    tensor = [_tensor(rates, path, chip, release) for path in paths]
    lacking = _tensor_lacking(
        launch, rates, tensor, paths, tensor_pipes.DeclaredTensorMetrics(table, chip), release
    )
    precisions = (*scalar, *tensor, *lacking)
    points = tuple(
        point for roof in precisions for level in levels if (point := _point(roof, level)) is not None
    )
    return Roofline(precisions, levels, points)


def collect_command(chip: str | None) -> str:
    """The command that collects all that a roofline needs."""
    return f"ncu --metrics $(profiler metrics --chip {chip or 'sm_NN'}) PROGRAM"


def _levels(rates: CounterRates, chip: str | None) -> Iterator[Roof]:
    yield _level(rates, "L1", {_l1_counter(rates, chip): _L1_BYTES})
    yield _level(rates, "L2", _L2)
    yield _level(rates, "DRAM", {"dram__bytes": 1})


def _l1_counter(rates: CounterRates, chip: str | None) -> str:
    """The chip's counter of L1; of an unknown chip the newest counter that the report carries."""
    if architecture := find_architecture(chip):
        return architecture.l1_counter
    newest_first = [architecture.l1_counter for architecture in reversed(ARCHITECTURES.values())]
    return next((counter for counter in newest_first if rates.carries(counter)), newest_first[0])


def _level(rates: CounterRates, name: str, bases: dict[str, int]) -> Roof:
    """The level by its first counter that is there as a whole; else by the first, with what it lacks."""
    found = []
    for base, size in bases.items():
        rate, note = rates.rate(base) * size, ""
        if base == "lts__t_sectors":
            note = _SECTORS
        elif rate.number == 0:
            note = f"no {name} traffic was counted: no intensity there"
        found.append(Roof(name, "byte/s", rates.peak(base) * size, rate, note=note))
    whole = [roof for roof in found if roof.rate.number is not None and roof.peak.number is not None]
    return (whole or [roof for roof in found if roof.rate.number is not None] or found)[0]


def _scalar(rates: CounterRates, name: str, launch: Launch) -> Roof:
    operations, opcodes = _SCALAR[name]
    fused = next(iter(operations))
    parts = [rates.rate("smsp" + _THREADS.format(op)) * factor for op, factor in operations.items()]
    rate, peak = Rate.total(parts), rates.peak("sm" + _THREADS.format(fused)) * operations[fused]
    if rate.number is not None:
        return Roof(name, "FLOP/s", peak, rate, USED if rate.number else UNUSED)
    seen = ", ".join(sorted(opcode for opcode in launch.opcodes if _root(opcode) in opcodes))
    state = USED if seen else UNUSED if launch.opcodes else UNKNOWN
    return Roof(name, "FLOP/s", peak, rate, state, seen)


def _tensor(rates: CounterRates, path: TensorPath, chip: str | None, release: NcuRelease | None) -> Roof:
    """A tensor path by its counter of dense work, under the dense roof: the sparse one is twice that."""
    base = path.dense if rates.carries(path.dense) or not rates.carries(path.base) else path.base
    rate, peak = rates.rate(base), rates.peak(base if not path.has_sparsity(chip) else path.dense)
    note = ncu_release.wrong_tensor_peaks(release, chip) if rate.number else ""
    if rates.rate(path.sparse).number:
        note = f"{path.label} also ran with structured sparsity, which is in no point"
    state = UNKNOWN if rate.number is None else USED if rate.number else UNUSED
    return Roof(path.label, path.unit, peak, rate, state, note=note)


def _tensor_lacking(
    launch: Launch,
    rates: CounterRates,
    tensor: list[Roof],
    paths: list[TensorPath],
    collected: tensor_pipes.DeclaredTensorMetrics,
    release: NcuRelease | None,
) -> Iterator[Roof]:
    """Tensor work that the launch did, or may have done, and that no counter of the report has."""
    counted = [path for path, roof in zip(paths, tensor, strict=True) if roof.state != UNUSED]
    if launch.opcodes:
        asked = sorted({_root(opcode) for opcode in launch.opcodes} & tensor_pipes.TENSOR_OPCODES.keys())
        lacking = [opcode for opcode in asked if not any(path.covers(opcode) for path in counted)]
    else:
        idle = any(name.startswith(_TENSOR_BUSY) and rates.values.number(name) == 0 for name in rates.values)
        lacking = [] if paths or idle else [""]
    for opcode in lacking:
        missing = tuple((name, rates.state(name)) for name in collected.names(opcode))
        note = ""
        if opcode and release and release < ncu_release.TENSOR_OPERATIONS:
            note = _TIMES_512.format(release)
        name = f"tensor ({opcode})" if opcode else "tensor"
        lost = Rate(None, (), missing)
        yield Roof(name, "op/s", lost, lost, USED if opcode else UNKNOWN, opcode, note)


def _point(roof: Roof, level: Roof) -> RooflinePoint | None:
    work, traffic = roof.rate.number, level.rate.number
    if not work or not traffic:
        return None
    intensity, peak, slope = work / traffic, roof.peak.number, level.peak.number
    knee = _over(peak, slope)
    reachable = None if peak is None or slope is None else min(peak, intensity * slope)
    return RooflinePoint(roof.name, level.name, intensity, work, roof.unit, knee, reachable)


def _root(opcode: str) -> str:
    return opcode.partition(".")[0]


def _over(number: float | None, whole: float | None) -> float | None:
    return None if number is None or not whole else number / whole
