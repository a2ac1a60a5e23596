"""How much a counter counts a second, and at most can: from whichever of its rollups a report carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.evidence.formatting import state_words
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import NCU_DURATION, State, Value, Values

_SECONDS = {"ns": 1e-9, "nsecond": 1e-9}
_TWINS = {"sm": ("sm", "smsp"), "smsp": ("smsp", "sm")}  # one counter, seen from the SM or its partitions


@dataclass(frozen=True)
class Rate:
    """Something a second, with the metrics that it comes from; where it is unknown, those that it lacks."""

    number: float | None
    names: tuple[str, ...] = ()  # of the metrics that the number is made from
    missing: tuple[tuple[str, str], ...] = ()  # name and state, in words, of each metric that it would take
    derived: tuple[str, ...] = ()  # which of its metrics the report does not carry, and how they are computed

    def __mul__(self, factor: float) -> Rate:
        number = None if self.number is None else self.number * factor
        return Rate(number, self.names, self.missing, self.derived)

    @staticmethod
    def total(parts: Sequence[Rate]) -> Rate:
        """The sum; no number where one of them has none."""
        missing = tuple(metric for part in parts for metric in part.missing)
        numbers = [part.number for part in parts if part.number is not None]
        names = tuple(dict.fromkeys(name for part in parts for name in part.names))
        derived = tuple(dict.fromkeys(words for part in parts for words in part.derived))
        return (
            Rate(None, (), missing) if len(numbers) < len(parts) else Rate(sum(numbers), names, (), derived)
        )


class CounterRates:
    """The counters of one launch a second. Base names carry no suffix: `dram__bytes`.

    With a table, what the launch lacks is read by the derived forms of the concepts that have the name.
    """

    def __init__(self, values: Values, table: MetricTable | None = None, chip: str | None = None) -> None:
        self.values = values
        self._table = table
        self._chip = chip
        self._bases = {name.partition(".")[0] for name in values}

    def carries(self, base: str) -> bool:
        """Whether the report has any rollup of the counter, with a number or without."""
        return base in self._bases

    def state(self, name: str) -> str:
        """Why a metric has no usable number, in words."""
        value = self.values.value(name)
        if value.state is State.PRESENT:
            return f"is {value.number:g}" if value.number is not None else "a text"
        return state_words(value)

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
        value = self._value(name)
        if value.number is None or (clock is not None and clock.number is None):
            return Rate(None)
        clock = Rate(1.0) if clock is None else clock
        derived = () if value.derivation is None else (f"{name}: {value.derivation.words}",)
        number = value.number * (clock.number or 0.0)
        # What is derived is told apart by how: rates by one counter and one form are comparable, others not.
        name = name if value.derivation is None else value.derivation.name
        return Rate(number, (name, *clock.names), (), (*derived, *clock.derived))

    def _value(self, name: str) -> Value:
        """A metric as the launch has it; where it has none, by the derived form of a concept of that name."""
        value = self.values.value(name)
        if value.state is not State.NOT_COLLECTED or self._table is None:
            return value
        for metric in self._table.by_name.get(name, ()):
            if name in metric.names_for(self._chip):
                for form in metric.forms_for(self._chip):
                    if (derived := form.read(self.values, metric.unit)) is not None:
                        return derived
        return value

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
        return Rate(100 * rate.number / share, (name, *rate.names), (), rate.derived)
