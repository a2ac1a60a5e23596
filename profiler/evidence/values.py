"""What a metric value is: a number that never travels without unit and state, and many of them packed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from struct import Struct
from typing import NamedTuple

SLOT = "<u8"  # numpy's word for the 8 bytes of a value: float64 bits, or an unsigned integer, by its kind
SLOT_BYTES = 8
# One slot, as its kind says. Without numpy, which takes longer to import than most reports take to read.
_FLOAT, _UNSIGNED = Struct("<d"), Struct("<Q")


class State(IntEnum):
    """Why a position holds no number. PRESENT is the only state that carries one."""

    PRESENT = 0
    NOT_COLLECTED = 1
    NOT_AVAILABLE = 2
    FAILED = 3
    INSTANCES_ONLY = 4
    NO_DATA = 5
    INFINITE = 6

    @property
    def words(self) -> str:
        """The state in the words every output uses."""
        return _STATE_WORDS[self]

    @property
    def meaning(self) -> str:
        """What ncu did that left no number; "" where the words say it."""
        return _STATE_MEANINGS.get(self, "")


_STATES = tuple(State)  # by their numbers, which begin with 0: calling State takes twice as long
_STATE_WORDS = {
    State.PRESENT: "present",
    State.NOT_COLLECTED: "not collected",
    State.NOT_AVAILABLE: "not available on this GPU",
    State.FAILED: "failed",
    State.INSTANCES_ONLY: "instances only",
    State.NO_DATA: "no data",
    State.INFINITE: "infinite",
}
# ncu's formulas give NaN (0 hits of 0 look-ups) and infinities (bytes over 0 requests); NaN is also what it
# writes for every counter of a pass that failed.
_STATE_MEANINGS = {
    State.FAILED: "a pass of ncu failed, or 0 was divided by 0",
    State.INSTANCES_ONLY: "values per instance without a total",
    State.NO_DATA: "ncu names the metric and wrote no value",
    State.INFINITE: "ncu divided by 0",
}


class Evidence(StrEnum):
    """Where a value comes from; two kinds are never joined in one line or one verdict."""

    STATIC = "static"
    MODELLED = "modelled"
    MEASURED = "measured"


class Derivation(NamedTuple):
    """How a number was computed that the report does not carry itself."""

    formula: str  # of exact ncu names
    most_off_pct: float | None = None  # the farthest that it was seen from the counter; None: they are equal

    @property
    def is_stand_in(self) -> bool:
        """Whether it is of another meaning than the counter, and only near it."""
        return self.most_off_pct is not None

    @property
    def name(self) -> str:
        """The name by which the number may be compared."""
        if self.most_off_pct is None:
            return self.words
        return f"stand-in: {self.formula}, seen up to {self.most_off_pct:g} % off"

    @property
    def words(self) -> str:
        """What is said wherever the number is shown."""
        if self.most_off_pct is None:
            return f"derived from {self.formula}"
        return f"approximated by {self.formula}, error up to {self.most_off_pct:g} % seen"


class Value(NamedTuple):
    """A number or a text with its unit (ncu's base unit, "" for none), or the state that stands in its place.

    An infinity or NaN is never a number here: they are the states INFINITE and FAILED.
    """

    number: float | int | None
    unit: str = ""
    text: str | None = None
    state: State = State.PRESENT
    derivation: Derivation | None = None  # None: the report has the number as it is


NOT_COLLECTED = Value(None, state=State.NOT_COLLECTED)
NCU_DURATION = "gpu__time_duration.sum"  # how long a launch took under ncu; not its latency
_TIME = "gpu__time_duration."
_PEAK, _OF_A_BLOCK = ".peak_sustained", "__maximum_warps_"  # what a unit can sustain; the occupancy
_WHOLE_PCT = 100.05  # as it is shown, 100.0 %


@dataclass(frozen=True)
class MetricSet:
    """The metric names that one launch carries, in the report's order; many launches share one set.

    kinds has one letter a position: f = float64, u = unsigned 64-bit integer, s = text.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    kinds: str

    @cached_property
    def position(self) -> dict[str, int]:
        """Position of each name."""
        return {name: index for index, name in enumerate(self.names)}


class Values(Mapping[str, Value]):
    """The values of one launch by exact ncu metric name, packed: texts apart.

    slots: SLOT_BYTES a metric; states: a byte a metric, one of State.
    """

    __slots__ = ("metric_set", "slots", "states", "texts")

    def __init__(
        self,
        metric_set: MetricSet,
        slots: bytes,
        states: bytes,
        texts: Mapping[int, str],
    ) -> None:
        self.metric_set = metric_set
        self.slots = slots
        self.states = states
        self.texts = texts

    def __getitem__(self, name: str) -> Value:
        position = self.metric_set.position[name]
        unit = self.metric_set.units[position]
        state = _STATES[self.states[position]]
        if state is not State.PRESENT:
            return Value(None, unit, state=state)
        kind = self.metric_set.kinds[position]
        if kind == "s":
            return Value(None, unit, text=self.texts.get(position, ""))
        slot = _UNSIGNED if kind == "u" else _FLOAT
        return Value(slot.unpack_from(self.slots, position * SLOT_BYTES)[0], unit)

    def __contains__(self, name: object) -> bool:
        return name in self.metric_set.position

    def __iter__(self) -> Iterator[str]:
        return iter(self.metric_set.names)

    def __len__(self) -> int:
        return len(self.metric_set.names)

    def value(self, name: str) -> Value:
        """The value, or NOT_COLLECTED where the launch does not carry the name."""
        return self[name] if name in self.metric_set.position else NOT_COLLECTED

    def number(self, name: str) -> float | None:
        """The number as float, or None where there is none; for code that has already shown the state."""
        number = self.value(name).number
        return None if number is None else float(number)


def is_placeholder(name: str, number: float, has_block: bool) -> bool:
    """Whether a number stands for one that ncu does not have.

    That is 0 as a time or as the peak that a unit can sustain, and the occupancy of what is launched without
    a block, of which ncu writes one warp (2025.3, for a build of OptiX).
    """
    if _OF_A_BLOCK in name:
        return not has_block
    return number <= 0 and may_be_placeholder(name)


def may_be_placeholder(name: str) -> bool:
    """Whether `is_placeholder` may say so of a metric."""
    return is_duration(name) or name.endswith(_PEAK) or _OF_A_BLOCK in name


def is_duration(name: str) -> bool:
    """Whether the metric says how long a launch took: whatever ran took some time, so 0 or less is FAILED."""
    return name.startswith(_TIME)


def is_over_peak(name: str, value: Value) -> bool:
    """Whether a share of a peak, or a hit rate, is over 100 %: its counters come from different passes."""
    if value.unit != "%" or value.number is None or value.number <= _WHOLE_PCT:
        return False
    return ".pct_of_peak_sustained_" in name or name.endswith("hit_rate.pct")


def pack_values(values: Mapping[str, Value]) -> Values:
    """Pack loose values, keeping their order. NaN becomes FAILED, an infinity INFINITE."""
    names, units, kinds, texts = [], [], [], {}
    slots: list[bytes] = []
    states = bytearray()
    for index, (name, value) in enumerate(values.items()):
        names.append(name)
        units.append(value.unit)
        kind, slot, state = "f", bytes(SLOT_BYTES), value.state
        if value.text is not None:
            kind = "s"
            texts[index] = value.text
        elif isinstance(value.number, int) and 0 <= value.number < 2**64:
            kind, slot = "u", _UNSIGNED.pack(value.number)
        elif value.number is None or not math.isfinite(value.number):
            is_infinite = value.number is not None and math.isinf(value.number)
            state = value.state or (State.INFINITE if is_infinite else State.FAILED)
        else:
            slot = _FLOAT.pack(value.number)
        kinds.append(kind)
        slots.append(slot)
        states.append(state)
    metric_set = MetricSet(tuple(names), tuple(units), "".join(kinds))
    return Values(metric_set, b"".join(slots), bytes(states), texts)
