"""Occupancy: how full an SM is, what limits it, and how full it would be with other resources."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from profiler.build.occupancy import occupancy
from profiler.errors import CannotJudge
from profiler.evidence.gpu_arch import find_architecture
from profiler.evidence.values import NOT_COLLECTED, Evidence, State, Value, Values
from profiler.reports.instances import Instances, LaunchDetail

ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
THEORETICAL = "sm__maximum_warps_per_active_cycle_pct"
_MAX_WARPS = "device__attribute_max_warps_per_multiprocessor"
_LIMIT_METRICS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
    "barriers": "launch__occupancy_limit_barriers",
}
_LIMITS_SINCE_CC_90 = ("barriers",)  # ncu has no such metric on older chips: nothing is missing there
_MAX_REGISTERS, _MAX_THREADS = 255, 1024  # of a thread, of a block
_MODEL = "model of the SM"


class _Resource(NamedTuple):
    """A resource that a block takes. Source of the metrics: Occupancy.section of ncu 2024.1."""

    name: str
    unit: str
    step: int  # between two points of a modelled curve
    curve_metric: str  # its instances are the warps by amount of the resource
    own_metric: str  # what the launch itself takes


_REGISTERS = _Resource(
    "registers per thread", "", 1, "launch__occupancy_per_register_count", "launch__registers_per_thread"
)
_SHARED_MEMORY = _Resource(
    "shared memory per block",
    "byte",
    1024,
    "launch__occupancy_per_shared_mem_size",
    "launch__shared_mem_per_block",
)
_THREADS = _Resource("threads per block", "", 32, "launch__occupancy_per_block_size", "launch__block_size")
RESOURCES = (_REGISTERS, _SHARED_MEMORY, _THREADS)


@dataclass(frozen=True)
class Limiter:
    """How many blocks of the launch one resource allows on an SM."""

    name: str
    blocks: Value
    metric: str
    binds: bool  # none allows fewer


@dataclass(frozen=True)
class OccupancyCurve:
    """Active warps per SM while one resource varies and the others stay; None where ncu has no value."""

    name: str  # registers per thread
    unit: str
    amounts: tuple[float, ...]  # of the resource, ascending
    warps: tuple[float | None, ...]
    own_amount: float | None  # the launch's own
    metric: str

    @property
    def own_warps(self) -> float | None:
        """Active warps at the launch's own amount, which may lie between two points."""
        if self.own_amount is None or not self.amounts:
            return None
        return self.warps[min(bisect_left(self.amounts, self.own_amount), len(self.amounts) - 1)]

    def next_gain(self) -> tuple[float, float] | None:
        """The nearest amount, larger or smaller, with more warps than now: amount and warps."""
        own_amount, own_warps = self.own_amount, self.own_warps
        if own_amount is None or own_warps is None:
            return None
        gains = [
            (amount, warps)
            for amount, warps in zip(self.amounts, self.warps, strict=True)
            if warps is not None and warps > own_warps
        ]
        return min(gains, key=lambda gain: abs(gain[0] - own_amount), default=None)


@dataclass(frozen=True)
class OccupancyAnalysis:
    """Achieved and theoretical occupancy of one launch or kernel function, and what limits it."""

    evidence: Evidence
    achieved: Value  # per cent; not collected where nothing ran
    theoretical: Value
    max_warps: float | None  # that an SM holds
    limiters: tuple[Limiter, ...]
    curves: tuple[OccupancyCurve, ...]
    missing: tuple[tuple[str, str], ...]  # curves that the report lacks: metric and state

    @property
    def binding(self) -> tuple[str, ...]:
        """The limits that bind: several if they are equal, none if no limit is known."""
        return tuple(limiter.name for limiter in self.limiters if limiter.binds)

    @property
    def unknown(self) -> tuple[Limiter, ...]:
        """The limits without a number, each of which may bind as well."""
        return tuple(limiter for limiter in self.limiters if limiter.blocks.number is None)


def measured_occupancy(values: Values, detail: LaunchDetail | None) -> OccupancyAnalysis:
    """The occupancy of a measured launch; curves come from the report's detail, if it is given."""
    blocks = {name: values.value(metric) for name, metric in _LIMIT_METRICS.items()}
    for name in _LIMITS_SINCE_CC_90:
        if blocks[name].state is State.NOT_COLLECTED:
            del blocks[name]
    instances = detail.instances if detail else {}
    curves = []
    missing = []
    for resource in RESOURCES:
        metric = resource.curve_metric
        if metric in instances:
            curves.append(_measured_curve(resource, instances[metric], values.number(resource.own_metric)))
        else:
            state = "no instances in the report" if metric in values else NOT_COLLECTED.state.words
            missing.append((metric, state))
    return OccupancyAnalysis(
        Evidence.MEASURED,
        values.value(ACHIEVED),
        values.value(THEORETICAL),
        values.number(_MAX_WARPS),
        _limiters(blocks, _LIMIT_METRICS),
        tuple(curves),
        tuple(missing),
    )


def static_occupancy(values: Values, arch: str) -> OccupancyAnalysis:
    """The theoretical occupancy of a kernel function from static facts alone, with modelled curves.

    It assumes the largest carve-out of shared memory, where ncu uses that of the launch. Raises CannotJudge
    where a fact is missing, or the architecture's limits are unknown.
    """
    names = ("static__registers", "static__threads", "static__shared_bytes")
    numbers = {name: values.number(name) for name in names}
    missing = [name for name, number in numbers.items() if number is None]
    if missing:
        raise CannotJudge(f"no theoretical occupancy: {', '.join(missing)} not collected: `profiler static`")
    registers, threads, shared = (int(number or 0) for number in numbers.values())
    own = occupancy(arch, registers, threads, shared)
    architecture = find_architecture(arch)
    assert architecture is not None  # occupancy has refused what the table lacks
    max_warps = architecture.max_warps

    def warps(registers: int = registers, threads: int = threads, shared: int = shared) -> float:
        """Active warps with one resource changed."""
        return occupancy(arch, registers, threads, shared).pct * max_warps / 100

    register_counts = _amounts(_REGISTERS, 1, _MAX_REGISTERS, registers)
    shared_sizes = _amounts(_SHARED_MEMORY, 0, architecture.block_shared_bytes, shared)
    thread_counts = _amounts(_THREADS, 32, _MAX_THREADS, threads)
    curves = (
        _modelled_curve(
            _REGISTERS, {amount: warps(registers=amount) for amount in register_counts}, registers
        ),
        _modelled_curve(_SHARED_MEMORY, {amount: warps(shared=amount) for amount in shared_sizes}, shared),
        _modelled_curve(_THREADS, {amount: warps(threads=amount) for amount in thread_counts}, threads),
    )
    return OccupancyAnalysis(
        Evidence.STATIC,
        NOT_COLLECTED,
        Value(own.pct, "%"),
        float(max_warps),
        _limiters({name: Value(count, "block") for name, count in own.fits.items()}, {}),
        curves,
        (),
    )


def _limiters(blocks: Mapping[str, Value], metrics: Mapping[str, str]) -> tuple[Limiter, ...]:
    """The limit of each resource. The lowest binds; equal ones bind together."""
    least = min((value.number for value in blocks.values() if value.number is not None), default=None)
    return tuple(
        Limiter(name, value, metrics.get(name, ""), value.number is not None and value.number == least)
        for name, value in blocks.items()
    )


def _measured_curve(resource: _Resource, instances: Instances, own_amount: float | None) -> OccupancyCurve:
    points = sorted(
        (float(key), float(value) if isinstance(value, int | float) else None)
        for key, value in zip(instances.keys, instances.values, strict=True)
        if isinstance(key, int)
    )
    amounts, warps = tuple(amount for amount, _ in points), tuple(warps for _, warps in points)
    return OccupancyCurve(resource.name, resource.unit, amounts, warps, own_amount, resource.curve_metric)


def _amounts(resource: _Resource, low: int, high: int, own: int) -> list[int]:
    """The amounts of a modelled curve, always including the launch's own."""
    return sorted({*range(low, high + 1, resource.step), own})


def _modelled_curve(
    resource: _Resource, warps_by_amount: Mapping[int, float], own_amount: int
) -> OccupancyCurve:
    amounts, warps = tuple(map(float, warps_by_amount)), tuple(warps_by_amount.values())
    return OccupancyCurve(resource.name, resource.unit, amounts, warps, float(own_amount), _MODEL)
