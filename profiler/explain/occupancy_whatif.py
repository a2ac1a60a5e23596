"""How full an SM is, what keeps it from being fuller, and how full it would be with other resources."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from profiler.build.occupancy import occupancy
from profiler.errors import CannotJudge
from profiler.evidence import NOT_COLLECTED, Evidence, State, Value, Values, find_architecture
from profiler.reports import LaunchDetail
from profiler.reports.instances import Instances

ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
THEORETICAL = "sm__maximum_warps_per_active_cycle_pct"
_MOST_WARPS = "device__attribute_max_warps_per_multiprocessor"
_LIMITS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
    "barriers": "launch__occupancy_limit_barriers",
}
_SINCE_90 = ("barriers",)  # names that ncu has from CC 9.0 on
_STEP = {"registers per thread": 1, "threads per block": 32, "shared memory per block": 1024}
_MOST_REGISTERS, _MOST_THREADS = 255, 1024
# Each curve's instances, and the launch's own value on it. Source: Occupancy.section of ncu 2024.1.
_CURVES = {
    "registers per thread": ("launch__occupancy_per_register_count", "launch__registers_per_thread", ""),
    "shared memory per block": (
        "launch__occupancy_per_shared_mem_size",
        "launch__shared_mem_per_block",
        "byte",
    ),
    "threads per block": ("launch__occupancy_per_block_size", "launch__block_size", ""),
}


@dataclass(frozen=True)
class Limiter:
    """How many blocks of the launch one resource lets stay on an SM."""

    name: str
    blocks: Value
    metric: str
    binds: bool  # none allows fewer


@dataclass(frozen=True)
class OccupancyCurve:
    """Active warps per SM as one resource varies and all others stay; None where ncu has no value."""

    name: str  # registers per thread
    unit: str
    steps: tuple[float, ...]  # ascending
    warps: tuple[float | None, ...]
    here: float | None  # the launch's own
    metric: str

    @property
    def now(self) -> float | None:
        """Active warps at the launch's own value, which may lie between two steps."""
        if self.here is None or not self.steps:
            return None
        return self.warps[min(bisect_left(self.steps, self.here), len(self.steps) - 1)]

    def next_gain(self) -> tuple[float, float] | None:
        """The nearest value, larger or smaller, with more warps than now: the value, and its warps."""
        now = self.now
        if now is None or self.here is None:
            return None
        better = [
            (step, warps)
            for step, warps in zip(self.steps, self.warps, strict=True)
            if warps is not None and warps > now
        ]
        return min(better, key=lambda one: abs(one[0] - (self.here or 0)), default=None)


@dataclass(frozen=True)
class OccupancyAnalysis:
    """Achieved and theoretical occupancy of one launch or kernel function, with its reasons."""

    evidence: Evidence
    achieved: Value  # per cent; not collected where nothing ran
    theoretical: Value
    most_warps: float | None  # that an SM holds
    limiters: tuple[Limiter, ...]
    curves: tuple[OccupancyCurve, ...]
    missing: tuple[tuple[str, str], ...]  # curves that are not there: metric and state

    @property
    def binding(self) -> tuple[str, ...]:
        """What limits; several where they tie, none where no limit is known."""
        return tuple(limiter.name for limiter in self.limiters if limiter.binds)

    @property
    def unknown(self) -> tuple[Limiter, ...]:
        """Limits without a number, each of which may bind as well."""
        return tuple(limiter for limiter in self.limiters if limiter.blocks.number is None)


def measured_occupancy(values: Values, detail: LaunchDetail | None) -> OccupancyAnalysis:
    """The occupancy of a measured launch; its curves come from the detail, where there is one."""
    told = {name: values.value(metric) for name, metric in _LIMITS.items()}
    told = {
        name: value
        for name, value in told.items()
        if name not in _SINCE_90 or value.state is not State.NOT_COLLECTED
    }
    instances = detail.instances if detail else {}
    curves = []
    missing = []
    for name, (metric, own, unit) in _CURVES.items():
        found = instances.get(metric)
        if found is None:
            words = "no instances in the report" if metric in values else NOT_COLLECTED.state.words
            missing.append((metric, words))
        else:
            curves.append(_curve(name, unit, found, values.number(own), metric))
    return OccupancyAnalysis(
        Evidence.MEASURED,
        values.value(ACHIEVED),
        values.value(THEORETICAL),
        values.number(_MOST_WARPS),
        _limiters(told, _LIMITS),
        tuple(curves),
        tuple(missing),
    )


def static_occupancy(values: Values, arch: str) -> OccupancyAnalysis:
    """The theoretical occupancy of a kernel function from its static facts alone, with curves by the model.

    It takes the largest carve-out of shared memory, where ncu takes the one that the launch had.

    Raises CannotJudge where a fact is missing, or the architecture's limits are not known.
    """
    names = ("static__registers", "static__threads", "static__shared_bytes")
    told = [values.number(name) for name in names]
    lacking = [name for name, one in zip(names, told, strict=True) if one is None]
    if lacking:
        raise CannotJudge(f"no theoretical occupancy: {', '.join(lacking)} not collected: `profiler static`")
    registers, threads, shared = (int(one or 0) for one in told)
    now, limits = occupancy(arch, registers, threads, shared), find_architecture(arch)
    assert limits is not None  # occupancy has refused what the table lacks
    max_warps = limits.max_warps

    def warps(registers: int, threads: int, shared: int) -> float:
        return occupancy(arch, registers, threads, shared).pct * max_warps / 100

    ways: dict[str, tuple[str, int, int, int, Callable[[int], float]]] = {
        "registers per thread": ("", registers, 1, _MOST_REGISTERS, lambda x: warps(x, threads, shared)),
        "shared memory per block": (
            "byte",
            shared,
            0,
            limits.block_shared_bytes,
            lambda x: warps(registers, threads, x),
        ),
        "threads per block": ("", threads, 32, _MOST_THREADS, lambda x: warps(registers, x, shared)),
    }
    curves = []
    for name, (unit, here, low, high, at) in ways.items():
        steps = sorted({*range(low, high + 1, _STEP[name]), here})
        curves.append(
            OccupancyCurve(
                name, unit, tuple(map(float, steps)), tuple(map(at, steps)), float(here), "model of the SM"
            )
        )
    return OccupancyAnalysis(
        Evidence.STATIC,
        NOT_COLLECTED,
        Value(now.pct, "%"),
        float(max_warps),
        _limiters({name: Value(count, "block") for name, count in now.fits.items()}, {}),
        tuple(curves),
        (),
    )


def _limiters(told: dict[str, Value], metrics: dict[str, str]) -> tuple[Limiter, ...]:
    numbers = [value.number for value in told.values() if value.number is not None]
    least = min(numbers, default=None)
    return tuple(
        Limiter(name, value, metrics.get(name, ""), value.number is not None and value.number == least)
        for name, value in told.items()
    )


def _curve(name: str, unit: str, found: Instances, here: float | None, metric: str) -> OccupancyCurve:
    pairs = sorted(
        (float(key), _number(value))
        for key, value in zip(found.keys, found.values, strict=True)
        if isinstance(key, int)
    )
    return OccupancyCurve(name, unit, _first(pairs), tuple(warps for _, warps in pairs), here, metric)


def _first(pairs: Sequence[tuple[float, float | None]]) -> tuple[float, ...]:
    return tuple(step for step, _ in pairs)


def _number(value: str | float | int | None) -> float | None:
    return float(value) if isinstance(value, int | float) else None
