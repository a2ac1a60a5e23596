"""How much a counter counts a second, and at most can: from whichever of its rollups a report carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.evidence.values import NCU_DURATION, State, Values

_SECONDS = {"ns": 1e-9, "nsecond": 1e-9}
_TWINS = {"sm": ("sm", "smsp"), "smsp": ("smsp", "sm")}  # one counter, seen from the SM or its partitions


@dataclass(frozen=True)
class Rate:
    """Something a second, with the metrics that it comes from; where it is unknown, those that it lacks."""

    number: float | None
    names: tuple[str, ...] = ()  # of the metrics that the number is made from
    missing: tuple[tuple[str, str], ...] = ()  # name and state, in words, of each metric that it would take

    def __mul__(self, factor: float) -> Rate:
        number = None if self.number is None else self.number * factor
        return Rate(number, self.names, self.missing)

    @staticmethod
    def total(parts: Sequence[Rate]) -> Rate:
        """The sum; no number where one of them has none."""
        missing = tuple(metric for part in parts for metric in part.missing)
        numbers = [part.number for part in parts if part.number is not None]
        names = tuple(dict.fromkeys(name for part in parts for name in part.names))
        return Rate(None, (), missing) if len(numbers) < len(parts) else Rate(sum(numbers), names)


class CounterRates:
    """The counters of one launch a second. Base names carry no suffix: `dram__bytes`."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self._bases = {name.partition(".")[0] for name in values}

    def carries(self, base: str) -> bool:
        """Whether the report has any rollup of the counter, with a number or without."""
        return base in self._bases

    def state(self, name: str) -> str:
        """Why a metric has no usable number, in words."""
        value = self.values.value(name)
        if value.state is State.PRESENT:
            return f"is {value.number:g}" if value.number is not None else "a text"
        return "failed (NaN)" if value.state is State.FAILED else value.state.words

    def rate(self, base: str) -> Rate:
        """What was counted a second: as reported, or from the count per cycle, or from sum and duration."""
        unit, _, rest = base.partition("__")
        for twin in _TWINS.get(unit, (unit,)):
            counter = f"{twin}__{rest}"
            for reading in (
                self._product(f"{counter}.sum.per_second"),
                self._product(f"{counter}.sum.per_cycle_elapsed", self._clock(twin)),
                self._product(f"{counter}.sum", self._per_second()),
            ):
                if reading.number is not None:
                    return reading
        rollups = (".sum.per_second", ".sum.per_cycle_elapsed", ".sum")
        name = self._first_reported(base, rollups) or self._usual(base)
        missing = [] if self.values.number(name) is not None else [(name, self.state(name))]
        return Rate(None, (), (*missing, *(() if name.endswith(".per_second") else self._no_clock(unit))))

    def peak(self, base: str) -> Rate:
        """The most that can be counted a second at the launch's own clock; a peak of zero counts as missing.

        Where the report has no peak, it is the rate over the share of the peak that the report gives for it.
        """
        unit, _, rest = base.partition("__")
        for twin in _TWINS.get(unit, (unit,)):
            counter = f"{twin}__{rest}"
            for reading in (
                self._product(f"{counter}.sum.peak_sustained", self._clock(twin)),
                self._product(f"{counter}.sum.peak_sustained_elapsed.per_second"),
                self._by_share(base, f"{counter}.sum.pct_of_peak_sustained_elapsed"),
                self._by_share(base, f"{counter}.avg.pct_of_peak_sustained_elapsed"),
            ):
                if reading.number:
                    return reading
        name = f"{base}.sum.peak_sustained"
        missing = [] if self.values.number(name) else [(name, self.state(name))]
        return Rate(None, (), (*missing, *self._no_clock(unit)))

    def _first_reported(self, base: str, suffixes: Sequence[str]) -> str | None:
        """The first rollup that the report mentions, be it as failed, or as lacking on the chip."""
        return next((base + suffix for suffix in suffixes if base + suffix in self.values), None)

    def _usual(self, base: str) -> str:
        """The rollup that NVIDIA's sections use for the rate of such a counter, and metrics.txt collects."""
        return f"{base}.sum.per_cycle_elapsed" if base.startswith("sm") else f"{base}.sum.per_second"

    def _no_clock(self, unit: str) -> tuple[tuple[str, str], ...]:
        clock = f"{'sm' if unit in _TWINS else unit}__cycles_elapsed.avg.per_second"
        return () if self._clock(unit).number else ((clock, self.state(clock)),)

    def _product(self, name: str, clock: Rate | None = None) -> Rate:
        number = self.values.number(name)
        if number is None or (clock is not None and clock.number is None):
            return Rate(None)
        factor, names = (1.0, ()) if clock is None else (clock.number or 0.0, clock.names)
        return Rate(number * factor, (name, *names))

    def _clock(self, unit: str) -> Rate:
        """Cycles a second of a unit. The SM's partitions and its L1 run at the SM's clock."""
        units = (unit, *(twin for twin in ("sm", "smsp", "gpc") if unit in ("sm", "smsp", "l1tex")))
        for name in dict.fromkeys(units):
            reading = self._product(f"{name}__cycles_elapsed.avg.per_second")
            if reading.number:
                return reading
        return self._product(f"{unit}__cycles_elapsed.avg", self._per_second())

    def _per_second(self) -> Rate:
        duration = self.values.value(NCU_DURATION)
        seconds = (duration.number or 0) * _SECONDS.get(duration.unit, 0.0)
        return Rate(1 / seconds, (NCU_DURATION,)) if seconds else Rate(None)

    def _by_share(self, base: str, name: str) -> Rate:
        share, rate = self.values.number(name), self.rate(base)
        if not share or not rate.number:
            return Rate(None)
        return Rate(100 * rate.number / share, (name, *rate.names))
