"""The numbers of one launch, each read beside the same number of a baseline launch."""

from __future__ import annotations

from dataclasses import dataclass

from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import NOT_COLLECTED, Derivation, State, Value


@dataclass(frozen=True)
class LaunchNumber:
    """One number of a launch, and the baseline's by the same name.

    `baseline` is None where there is no baseline launch, or its number is of another counter.
    """

    label: str
    metric: str  # exact ncu name, or how it is derived
    value: Value
    baseline: Value | None = None
    concept: str = ""  # "" for what metrics.txt does not declare
    is_part: bool = False  # of the number above it

    @property
    def number(self) -> float | None:
        """The number in base units; None where there is none."""
        return None if self.value.number is None else float(self.value.number)

    @property
    def baseline_number(self) -> float | None:
        """The baseline's number; None where it has none."""
        if self.baseline is None or self.baseline.number is None:
            return None
        return float(self.baseline.number)


@dataclass(frozen=True)
class LaunchReader:
    """Reads numbers of a launch and of its baseline; chips are names such as "sm_90", None where unknown."""

    launch: Launch
    table: MetricTable
    chip: str | None = None
    baseline: Launch | None = None
    baseline_chip: str | None = None

    def concept(self, concept: str, label: str = "", *, is_part: bool = False) -> LaunchNumber:
        """The number of a concept of metrics.txt."""
        metric = self.table.by_concept.get(concept)
        if metric is None:
            return LaunchNumber(label or concept, concept, NOT_COLLECTED, None, concept, is_part)
        label = label or metric.label
        if self.baseline is None:
            name, value = metric.resolve(self.launch.values, self.chip)
            return LaunchNumber(label, name, value, None, concept, is_part)
        (baseline_name, baseline), (name, value) = self.table.resolve_pair(
            metric, self.baseline.values, self.baseline_chip, self.launch.values, self.chip
        )
        same = baseline if baseline_name == name else None
        return LaunchNumber(label, name, value, same, concept, is_part)

    def named(self, label: str, *names: str, is_part: bool = False) -> LaunchNumber:
        """The number by the first of several ncu names of one meaning that the launch has a number for."""
        values = self.launch.values
        with_number = (name for name in names if values.number(name) is not None)
        name = next(with_number, next((name for name in names if name in values), names[0]))
        baseline = None if self.baseline is None else self.baseline.values.value(name)
        return LaunchNumber(label, name, values.value(name), baseline, "", is_part)

    def total(self, label: str, unit: str, scale: float, *names: str) -> LaunchNumber:
        """`scale` times the sum of counters of this launch, and of the baseline's.

        A counter that the launch lacks is left out of both sums, and the derivation says which are in them;
        without the first there is no sum.
        """
        values = self.launch.values
        first = values.value(names[0])
        if first.number is None:
            return LaunchNumber(label, names[0], first, None if self.baseline is None else NOT_COLLECTED)
        present = tuple(name for name in names if values.number(name) is not None)
        total = self._sum(self.launch, unit, scale, present)
        baseline = None if self.baseline is None else self._sum(self.baseline, unit, scale, present)
        return LaunchNumber(label, _formula(scale, present), total, baseline)

    def rate(self, moved: LaunchNumber, label: str) -> LaunchNumber:
        """What a number of bytes is in a second of each launch."""
        duration = self.concept("duration")
        baseline = None
        if moved.baseline is not None and duration.baseline is not None:
            baseline = _per_second(moved.baseline, duration.baseline)
        metric = f"{moved.metric} / {duration.metric}"
        return LaunchNumber(label, metric, _per_second(moved.value, duration.value), baseline)

    @staticmethod
    def _sum(launch: Launch, unit: str, scale: float, names: tuple[str, ...]) -> Value:
        values = [launch.values.value(name) for name in names]
        missing = next((value for value in values if value.number is None), None)
        if missing is not None:
            return Value(None, unit, state=missing.state)
        total = scale * sum(float(value.number or 0) for value in values)
        return Value(total, unit, derivation=Derivation(_formula(scale, names)))


def _formula(scale: float, names: tuple[str, ...]) -> str:
    total = " + ".join(names)
    if scale == 1:
        return total
    return f"{scale:g} * ({total})" if len(names) > 1 else f"{scale:g} * {total}"


def _per_second(moved: Value, duration: Value) -> Value:
    """Bytes over nanoseconds; the state of what is missing."""
    if moved.number is None or not duration.number:
        state = moved.state if moved.number is None else duration.state or State.NOT_COLLECTED
        return Value(None, "byte/s", state=state)
    return Value(1e9 * float(moved.number) / float(duration.number), "byte/s")
