"""How the numbers of one line of a history become heights: in a unit, or relative to another number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.history.reference_levels import ReferenceLevel
from profiler.history.run_spread import RunSpread
from profiler.history.trend import ABSENT, TrendPoint
from profiler.ui import addresses
from profiler.ui.charts.panel_overlays import Reference
from profiler.ui.charts.small_multiples import PanelPoint

_DASHES = {"floor": "solid", "baseline": "dash", "goal": "dot", "budget": "longdash"}
_LEAST_SHOWN = 0.05  # smaller differences would read as 0.0


def relative_unit(unit: str) -> str:
    """The unit of differences: percentages differ by percentage points."""
    return "pp" if unit == "%" else "%"


@dataclass(frozen=True)
class LineReading:
    """How the numbers of one line become heights: in the panel's unit, or relative to a number."""

    unit: str
    scale: formatting.Scale
    is_relative: bool = False
    first: float | None = None  # what relative numbers are compared with
    why_not: str = ""  # why there is none

    @property
    def can_show(self) -> bool:
        """Whether numbers have a height."""
        return not self.is_relative or self.first is not None

    def height(self, number: float) -> float:
        """Where a number of the metric lies."""
        if not self.is_relative or self.first is None:
            return number / self.scale.divisor
        if self.unit == "%":
            return number - self.first
        return 100 * (number / self.first - 1)

    def words(self, height: float) -> str:
        """A height as text, with its sign where it is relative."""
        if not self.is_relative:
            return f"{height:g}"
        text = f"{height:+.1f}".replace("-", formatting.MINUS) if abs(height) >= _LEAST_SHOWN else "±0"
        return f"{text}{formatting.THIN}{relative_unit(self.unit)}"

    def point(self, point: TrendPoint, x: float, spreads: Mapping[int, RunSpread]) -> PanelPoint:
        """A point of the line, with the scatter of its run where that was loaded."""
        if not point.on_line or point.value.number is None:
            reason = point.gap if point.gap == ABSENT or point.wrong else formatting.state_words(point.value)
            return PanelPoint(
                x,
                None,
                hover=f"{point.version}: {reason}",
                gap=reason,
                at=addresses.version_of_run(point.version, point.run_id),
            )
        if not self.can_show:
            return PanelPoint(
                x,
                None,
                hover=f"{point.version}: {self.why_not}",
                gap=self.why_not,
                at=addresses.version_of_run(point.version, point.run_id),
            )
        quantity = formatting.quantity(point.value, self.scale)
        height = self.height(float(point.value.number))
        hover = f"{point.version}: {quantity}"
        if self.is_relative:
            hover += f" · {self.words(height)}"
        if point.grid:
            grid, block = formatting.dimensions(point.grid), formatting.dimensions(point.block)
            hover += f" · {grid} blocks of {block}"
        hover += f" · {formatting.timestamp(point.created)}"
        if point.value.derivation:
            hover += f" · {point.value.derivation.words}"
        if point.breaks:
            hover += f" · not joined: {point.breaks}"
        label = self.words(height) if self.is_relative else quantity.number
        spread = spreads.get(point.result_id) if point.result_id is not None else None
        low = high = None
        if spread is not None and spread.interval is not None:
            low, high = map(self.height, spread.interval)
        return PanelPoint(
            x,
            height,
            hover=hover,
            label=label,
            joined=not point.breaks,
            at=addresses.version_of_run(point.version, point.run_id),
            low=low,
            high=high,
            samples=tuple(map(self.height, spread.ns.tolist())) if spread is not None else (),
        )

    def end(self, points: Sequence[PanelPoint]) -> str:
        """The last number of a line, for its label."""
        last = next((point for point in reversed(points) if point.y is not None), None)
        return last.label if last is not None and self.is_relative else ""

    def reference(self, level: ReferenceLevel) -> Reference:
        """A level that the line is read against."""
        value = Value(level.number, self.unit)
        quantity = formatting.quantity(value, None if self.is_relative else self.scale)
        return Reference(f"{level.name} {quantity}", self.height(level.number), _DASHES[level.kind])
