"""What a metric value, a launch and a report are: numbers that never travel without unit and state."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SLOT = np.dtype("<u8")  # 8 bytes a value: float64 bits, or an unsigned integer, by the position's kind


class State(IntEnum):
    """Why a position holds no number. PRESENT is the only state that carries one."""

    PRESENT = 0
    NOT_COLLECTED = 1
    NOT_AVAILABLE = 2
    FAILED = 3
    INSTANCES_ONLY = 4

    @property
    def words(self) -> str:
        """The state in the words every output uses."""
        return _STATE_WORDS[self]


_STATE_WORDS = {
    State.PRESENT: "present",
    State.NOT_COLLECTED: "not collected",
    State.NOT_AVAILABLE: "not available on this GPU",
    State.FAILED: "failed",
    State.INSTANCES_ONLY: "instances only",
}


class Evidence(StrEnum):
    """Where a value comes from; two kinds are never joined in one line or one verdict."""

    STATIC = "static"
    MODELLED = "modelled"
    MEASURED = "measured"


class Value(NamedTuple):
    """A number or a text with its unit (ncu's base unit, "" for none), or the state that stands in its place.

    An infinity or NaN is never a number here: it is the state FAILED.
    """

    number: float | int | None
    unit: str = ""
    text: str | None = None
    state: State = State.PRESENT


NOT_COLLECTED = Value(None, state=State.NOT_COLLECTED)
DURATION = "gpu__time_duration.sum"  # how long a launch took under ncu; not its latency
_TIME = "gpu__time_duration."


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
    """The values of one launch by exact ncu metric name, packed: a slot and a state each, texts apart."""

    __slots__ = ("metric_set", "slots", "states", "texts")

    def __init__(
        self,
        metric_set: MetricSet,
        slots: NDArray[np.uint64],
        states: NDArray[np.uint8],
        texts: Mapping[int, str],
    ) -> None:
        self.metric_set = metric_set
        self.slots = slots
        self.states = states
        self.texts = texts

    def __getitem__(self, name: str) -> Value:
        position = self.metric_set.position[name]
        unit = self.metric_set.units[position]
        state = State(int(self.states[position]))
        if state is not State.PRESENT:
            return Value(None, unit, state=state)
        kind = self.metric_set.kinds[position]
        if kind == "s":
            return Value(None, unit, text=self.texts.get(position, ""))
        if kind == "u":
            return Value(int(self.slots[position]), unit)
        return Value(float(self.slots[position : position + 1].view(np.float64)[0]), unit)

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


def is_time(name: str) -> bool:
    """Whether the metric says how long a launch took: whatever ran took some time, so 0 or less is FAILED."""
    return name.startswith(_TIME)


def pack(values: Mapping[str, Value]) -> Values:
    """Pack loose values, keeping their order. A non-finite number becomes FAILED."""
    names, units, kinds, texts = [], [], [], {}
    slots = np.zeros(len(values), SLOT)
    states = np.zeros(len(values), np.uint8)
    for index, (name, value) in enumerate(values.items()):
        names.append(name)
        units.append(value.unit)
        states[index] = value.state
        if value.text is not None:
            kinds.append("s")
            texts[index] = value.text
        elif isinstance(value.number, int) and 0 <= value.number < 2**64:
            kinds.append("u")
            slots[index] = value.number
        else:
            kinds.append("f")
            if value.number is None or not math.isfinite(value.number):
                states[index] = value.state or State.FAILED
            else:
                slots[index] = np.float64(value.number).view(np.uint64)
    return Values(MetricSet(tuple(names), tuple(units), "".join(kinds)), slots, states, texts)


@dataclass(frozen=True)
class Rule:
    """One result of one of NVIDIA's rules, in the report's own words."""

    identifier: str
    name: str
    section: str
    kind: str  # ok, optimization, warning or error
    title: str
    message: str
    speedup_pct: float | None = None  # NVIDIA's estimate; older reports carry none
    speedup_scope: str | None = None  # local or global
    focus_metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One execution of a kernel, as a report holds it.

    `base_name` is its identity; template arguments, grid and block are attributes.
    """

    function: str  # ncu's function name
    demangled: str
    mangled: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    stream: int | None
    nvtx: tuple[str, ...]  # push/pop ranges around the launch, outermost first
    ordinal: int  # place in the report, from 0
    values: Values
    opcodes: Mapping[str, float] = field(default_factory=dict)  # warp instructions executed, by opcode
    rules: tuple[Rule, ...] = ()

    @property
    def base_name(self) -> str:
        """The kernel's name without return type, template arguments and parameters."""
        return base_name(self.function or self.demangled)


@dataclass(frozen=True)
class Session:
    """What the report file says of its own making; None where it does not say."""

    ncu_version: str | None = None
    driver: str | None = None
    cuda: str | None = None
    created: datetime | None = None  # always UTC
    command_line: str | None = None
    clock_control: str | None = None  # base, boost, none: only when the command line says so
    cache_control: str | None = None
    replay_mode: str | None = None


@dataclass(frozen=True)
class Report:
    """One report file, read whole."""

    name: str  # the file's name as the user gave it
    sha256: str
    size_bytes: int
    form: str  # ncu-rep, csv-raw or csv-details
    session: Session
    launches: tuple[Launch, ...]

    @property
    def gpu(self) -> str | None:
        """The GPU's display name, from the device attributes of the first launch that has one."""
        for launch in self.launches:
            text = launch.values.value("device__attribute_display_name").text
            if text:
                return text
        return None


@dataclass(frozen=True, eq=False)
class Latency:
    """Timed calls of one version in one mode and run, in time order."""

    run_id: str
    mode: str  # timer, cache and clock: "events; cache warm; clock none"
    ns: NDArray[np.float32]
    rounds: NDArray[np.uint16]  # equal numbers of one run are one round of A B B A
    clocks_mhz: NDArray[np.float32]  # one a sample, or none
    throttled: NDArray[np.uint32]  # positions of the samples taken while the GPU throttled
    created: datetime | None = None  # when the run was made
    build: str | None = None  # source and flags: equal ones are one build; None where nobody said


@dataclass(frozen=True)
class Side:
    """One side of a comparison: launches that belong together, and where they come from.

    Every field that is None is unknown, which is a warning and never a match.
    """

    label: str  # what the user called it: a path, a run id, family/version
    launches: tuple[Launch, ...]
    gpu: str | None = None
    compute_capability: str | None = None  # "9.0"
    workload: str | None = None
    dtype: str | None = None
    evidence: Evidence = Evidence.MEASURED
    session: Session = field(default_factory=Session)
    family: str | None = None
    version: str | None = None
    run_id: str | None = None
    result_ids: tuple[int, ...] = ()  # index rows, in the order of launches; empty for a bare file
    wrong: str | None = None  # why the version's results are wrong, which leaves it without a speed
    latencies: tuple[
        Latency, ...
    ] = ()  # of its newest runs, newest first; of the one run where a run is meant


def base_name(name: str) -> str:
    """The kernel name without return type, template arguments and parameters.

    `void cutlass::Kernel<A<B>>(C)` and `cutlass::Kernel` give `cutlass::Kernel`; what stands inside the
    parameters falls away with them.
    """
    depth, kept = 0, []
    for character in name.replace("(anonymous namespace)", "{anonymous}"):
        if character == "<":
            depth += 1
        elif character == ">":
            depth = max(0, depth - 1)
        elif depth == 0:
            if character == "(":
                break
            kept.append(character)
    text = "".join(kept).strip()
    return (text.split(" ")[-1] or name.strip()).replace("{anonymous}", "(anonymous namespace)")


def nearest_first(name: str, there: Iterable[str]) -> list[str]:
    """The names that there are, for a message: those most like `name` first, then the others as they come."""
    names = list(dict.fromkeys(there))
    near = get_close_matches(name, names, n=3, cutoff=0.4)
    return [*near, *(one for one in names if one not in near)]


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers inside names by size: sm_80, sm_89, sm_120; head dim 64, head dim 128."""
    parts = re.split(r"(\d+)", text)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def spread(names: Sequence[str]) -> str:
    """A short list of names for a message: at most three, then how many more."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
