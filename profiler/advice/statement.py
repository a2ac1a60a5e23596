"""What one statement about a kernel is: its words, every number it rests on, and whether all of them hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from profiler.evidence import NOT_COLLECTED, Evidence, Launch, MetricTable, State, Value, formatting

CORRECTNESS, BOTTLENECK, CHANGE, LEVER, NO_ACTION, UNKNOWN = (
    "correctness",
    "bottleneck",
    "change",
    "lever",
    "no_action",
    "unknown",
)
KINDS = (CORRECTNESS, BOTTLENECK, CHANGE, LEVER, NO_ACTION, UNKNOWN)
OPCODES = "sass__inst_executed_per_opcode"  # ncu's opcode mix: one value an opcode
MOST_PCT = 102.0  # counters of one ratio may come from different replay passes; above it they disagree
MOST_PART = MOST_PCT / 100  # of a whole, for what is a part of it

_WORDS = ("inst", "warp", "block", "sector", "sectors", "cycle", "thread", "register/thread")

# Matrix instructions by opcode. HFMA2.MMA is none, though the tensor pipe counts it (nsight-facts, trap 2).
_MATRIX = re.compile(r"([HIBDQO]|F8)MMA|[HIQB]GMMA|UT[CX]\w*MMA")


@dataclass(frozen=True)
class MetricInput:
    """One number that a statement rests on, or why there is none; `baseline` None: there is no baseline."""

    name: str  # exact ncu name; an opcode mix adds [OPCODE]
    concept: str
    label: str
    value: Value
    baseline: Value | None = None
    line: int | None = None  # of metrics.txt, where it is declared
    doubted: bool = False  # another counter contradicts it

    @property
    def number(self) -> float:
        """The number; only of a valid input."""
        assert self.value.number is not None
        return float(self.value.number)

    @property
    def state(self) -> str:
        """`present`, why there is no number, or `implausible`."""
        if self.value.state is not State.PRESENT:
            return formatting.state_words(self.value)
        return "present" if self.valid else "implausible"

    @property
    def valid(self) -> bool:
        """Whether it holds a number that can be true: none negative, above its peak, or contradicted."""
        is_number = self.value.state is State.PRESENT and self.value.number is not None  # it may be a text
        return is_number and plausible(self.value) and not self.doubted

    @property
    def shown(self) -> str:
        """The number as text."""
        return str(formatting.quantity(self.value))

    @property
    def before(self) -> str | None:
        """The baseline's number as text; None where it has none."""
        known = self.baseline is not None and self.baseline.number is not None
        return str(formatting.quantity(self.baseline)) if known and self.baseline else None

    def to_dict(self) -> dict[str, Any]:
        """The input for JSON, in base units."""
        baseline = self.baseline
        return {
            "name": self.name,
            "concept": self.concept or None,
            "value": self.value.text if self.value.number is None else self.value.number,
            "unit": self.value.unit,
            "state": self.state,
            "baseline_value": None if baseline is None else baseline.text or baseline.number,
            "baseline_state": "no baseline"
            if baseline is None
            else formatting.state_words(baseline)
            if baseline.state is not State.PRESENT
            else "present",
        }


@dataclass(frozen=True)
class Statement:
    """One thing said of a version. A lever stands only where every input is valid."""

    id: str
    kind: str  # one of KINDS
    text: str
    inputs: tuple[MetricInput, ...]
    evidence: Evidence
    confidence: str  # how far it can be believed, in words
    lever: str | None = None
    share: float | None = None  # of the launch's time, 0 to 1, at most; None where no time is known
    weight: float = field(default=0.0, compare=False)  # its rank where that is higher than the share

    def __post_init__(self) -> None:
        if self.lever is not None and not self.valid:
            raise ValueError(f"{self.id}: a lever must not rest on {[one.name for one in self.bad]}")

    @property
    def bad(self) -> tuple[MetricInput, ...]:
        """The inputs that are missing or cannot be true."""
        return tuple(one for one in self.inputs if not one.valid)

    @property
    def valid(self) -> bool:
        """Whether every input was valid."""
        return not self.bad

    @property
    def rank(self) -> float:
        """What it concerns of the time; a weight stands in where that is not known, or not what counts."""
        return max(self.weight, self.share or 0.0)

    def to_dict(self) -> dict[str, Any]:
        """The statement for JSON."""
        return {
            "id": self.id,
            "kind": self.kind,
            "text": self.text,
            "metrics": [one.to_dict() for one in self.inputs],
            "evidence": self.evidence.value,
            "valid": self.valid,
            "lever": self.lever,
            "share_of_time": self.share,
            "confidence": self.confidence,
        }


@dataclass(frozen=True)
class OpenQuestion:
    """A question that the data do not carry, and the inputs that are missing for it."""

    id: str
    asks: str  # in words that follow "unknown:"
    inputs: tuple[MetricInput, ...]
    main: bool = False  # what anybody would ask first: it gets a statement of its own

    @property
    def bad(self) -> tuple[MetricInput, ...]:
        """The inputs that are missing or cannot be true."""
        return tuple(one for one in self.inputs if not one.valid)


@dataclass(frozen=True)
class LaunchInputs:
    """One launch by the concepts of metrics.txt, beside the same counters of the baseline's launch."""

    launch: Launch
    table: MetricTable
    chip: str | None = None
    baseline: Launch | None = None
    mix: str = OPCODES  # what its opcodes are called: executed, or sites in the code

    def __getitem__(self, concept: str) -> MetricInput:
        metric = self.table.by_concept.get(concept)
        if metric is None:
            return MetricInput(concept, concept, concept, NOT_COLLECTED)
        name, value = self.table.resolve(metric, self.launch.values, self.chip)
        return MetricInput(name, concept, metric.label, value, self._before(name), metric.line)

    def named(self, name: str, label: str = "") -> MetricInput:
        """A value by its exact name, for what metrics.txt does not declare."""
        return MetricInput(name, "", label or name, self.launch.values.value(name), self._before(name))

    def of(self, *concepts: str) -> tuple[MetricInput, ...]:
        """Several concepts."""
        return tuple(self[concept] for concept in concepts)

    def _before(self, name: str) -> Value | None:
        return None if self.baseline is None else self.baseline.values.value(name)

    def opcodes(self, *names: str) -> MetricInput:
        """Instructions of these opcodes together; 0 is a real 0, since a mix names all that is there.

        Without names: matrix instructions of every kind.
        """
        total, shown = _sum(self.launch.opcodes, names), "+".join(names) or "*MMA"
        before = None if self.baseline is None else _sum(self.baseline.opcodes, names)
        return MetricInput(f"{self.mix}[{shown}]", "", f"{shown} instructions", total, before)

    @property
    def every_opcode(self) -> MetricInput:
        """All instructions of the opcode mix."""
        before = None if self.baseline is None else _all(self.baseline.opcodes)
        return MetricInput(f"{self.mix}[*]", "", "instructions", _all(self.launch.opcodes), before)


def doubted(*inputs: MetricInput) -> tuple[MetricInput, ...]:
    """The same inputs where they contradict each other: nothing may rest on them."""
    return tuple(replace(one, doubted=True) for one in inputs)


def valid(inputs: tuple[MetricInput, ...]) -> bool:
    """Whether all of them hold numbers that can be true."""
    return all(one.valid for one in inputs)


def is_matrix(opcode: str) -> bool:
    """Whether an opcode is a tensor-core instruction."""
    return _MATRIX.fullmatch(opcode.partition(".")[0]) is not None


def between(a: Value, b: Value) -> str:
    """Two values as `A → B`, the unit once; units that are words go, since the label says what is counted."""
    if not a.number or not b.number or a.unit != b.unit:
        return (
            f"{_bare(a)} → {_bare(b)}"
            if a.unit == b.unit
            else f"{formatting.quantity(a)} → {formatting.quantity(b)}"
        )
    scale = formatting.scale_for(a.unit, max(abs(a.number), abs(b.number)))
    first, second = (formatting.quantity(value, scale) for value in (a, b))
    return f"{first.number} → {second.number} {_unit(second.unit, b)}".rstrip()


def _bare(value: Value) -> str:
    number, unit = formatting.quantity(value)
    return f"{number} {_unit(unit, value)}".rstrip()


def _unit(shown: str, value: Value) -> str:
    """The unit without its word: `k` of `k inst`, `kB` of `kB/block`."""
    if value.unit in _WORDS:
        return shown.removesuffix(value.unit).strip()
    return shown if value.unit.startswith("byte/s") else shown.partition("/")[0]


def listed(lines: list[int]) -> str:
    """Line numbers in order, runs of them as `113–117`."""
    runs: list[list[int]] = []
    for line in sorted(set(lines)):
        if runs and line == runs[-1][-1] + 1:
            runs[-1][1:] = [line]
        else:
            runs.append([line])
    return ", ".join("–".join(map(str, run)) for run in runs)


def _all(mix: Mapping[str, float]) -> Value:
    return Value(sum(mix.values()), "inst") if mix else NOT_COLLECTED


def _sum(mix: Mapping[str, float], names: tuple[str, ...]) -> Value:
    if not mix:
        return NOT_COLLECTED
    if not names:
        return Value(sum(count for name, count in mix.items() if is_matrix(name)), "inst")
    return Value(sum(count for name, count in mix.items() if name.partition(".")[0] in names), "inst")


def plausible(value: Value) -> bool:
    """Whether a value by itself can be true: a text, or a number that is not negative nor above its peak."""
    if value.number is None:
        return value.text is not None
    return value.number >= 0 and not (value.unit == "%" and value.number > MOST_PCT)
