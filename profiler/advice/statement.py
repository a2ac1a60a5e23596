"""What one statement about a kernel is: its words, every number it rests on, and whether all of them hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from profiler.evidence import formatting
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.opcodes import is_matrix_multiply, operation
from profiler.evidence.values import NOT_COLLECTED, Evidence, State, Value

CORRECTNESS, BOTTLENECK, CHANGE, LEVER, NO_ACTION, UNKNOWN = (
    "correctness",
    "bottleneck",
    "change",
    "lever",
    "no_action",
    "unknown",
)
NO_DATA = "no data"  # the confidence of what nothing was measured of
KINDS = (CORRECTNESS, BOTTLENECK, CHANGE, LEVER, NO_ACTION, UNKNOWN)
OPCODE_MIX = "sass__inst_executed_per_opcode"  # ncu's: one value an opcode
MAX_PCT = 102.0  # counters of one ratio may come from different replay passes; above it they disagree
MAX_PART = MAX_PCT / 100  # of a whole, for what is a part of it


@dataclass(frozen=True)
class MetricInput:
    """One number that a statement rests on, or why it is missing."""

    name: str  # exact ncu name, or how it is derived; an opcode mix adds [OPCODE]
    concept: str  # "" for what metrics.txt does not declare
    label: str
    value: Value
    baseline: Value | None = None  # None: there is no baseline
    line: int | None = None  # of metrics.txt, where it is declared
    doubted: bool = False  # another counter contradicts it

    @property
    def number(self) -> float:
        """The number; None for an invalid input."""
        assert self.value.number is not None
        return float(self.value.number)

    @property
    def state(self) -> str:
        """`present`, the reason why there is no number, or `implausible`."""
        if self.value.state is not State.PRESENT:
            return formatting.state_words(self.value)
        return "present" if self.valid else "implausible"

    @property
    def valid(self) -> bool:
        """Whether it has a number that can be true: not negative, above its peak, or contradicted."""
        is_number = self.value.state is State.PRESENT and self.value.number is not None  # it may be a text
        return is_number and is_plausible(self.value) and not self.doubted

    @property
    def count(self) -> str:
        """The number alone, for a sentence that says what is counted; some ncu call wavefronts `sectors`."""
        return str(formatting.quantity(Value(self.value.number)))

    @property
    def text(self) -> str:
        """The number with its unit."""
        return str(formatting.quantity(self.value))

    @property
    def baseline_number(self) -> float | None:
        """The baseline's number; None where it has none, or there is no baseline."""
        if self.baseline is None or self.baseline.number is None:
            return None
        return float(self.baseline.number)

    @property
    def baseline_text(self) -> str | None:
        """The baseline's number with its unit; None where it has none."""
        has_number = self.baseline is not None and self.baseline.number is not None
        return str(formatting.quantity(self.baseline)) if has_number and self.baseline else None

    def to_dict(self) -> dict[str, Any]:
        """The input for JSON, in base units."""
        baseline = self.baseline
        if baseline is None:
            baseline_state = "no baseline"
        elif baseline.state is State.PRESENT:
            baseline_state = "present"
        else:
            baseline_state = formatting.state_words(baseline)
        return {
            "name": self.name,
            "concept": self.concept or None,
            "value": self.value.text if self.value.number is None else self.value.number,
            "unit": self.value.unit,
            **formatting.derivation_json(self.value),
            "state": self.state,
            "baseline_value": None if baseline is None else baseline.text or baseline.number,
            "baseline_state": baseline_state,
        }


@dataclass(frozen=True)
class Statement:
    """One statement about a version. It has a lever only if every input is valid."""

    id: str
    kind: str  # one of KINDS
    text: str
    inputs: tuple[MetricInput, ...]
    evidence: Evidence
    confidence: str  # how far it can be believed, in words
    lever: str | None = None
    # Of the launch's time, 0 to 1: what it concerns. No bound of what a lever saves: an instruction or an
    # access that goes takes its latency with it. None where no time is known.
    share: float | None = None
    saves_at_most: float | None = (
        None  # of the launch's time: a bound of what the lever saves; None without one
    )
    taken: float | None = field(default=None, compare=False)  # what the lever is taken to save, for its rank
    weight: float = field(default=0.0, compare=False)  # its rank where that is higher than the share
    question: str = ""  # of an unknown one: what stays open, in words that follow "unknown:"
    to_collect: tuple[str, ...] = ()  # of an unknown one: what would answer it, a sentence a state
    techniques: tuple[
        str, ...
    ] = ()  # of profiler.advice.techniques: what the lever asks for, where a rule says
    refuted_by: str = ""  # what would show that the lever is wrong
    share_of: str = ""  # what `share` is of, in words: "the cycles between two issues"; "": the time

    def __post_init__(self) -> None:
        if self.lever is not None and not self.valid:
            names = [metric.name for metric in self.invalid_inputs]
            raise ValueError(f"{self.id}: a lever must not rest on {names}")

    @property
    def invalid_inputs(self) -> tuple[MetricInput, ...]:
        """The inputs that are missing or implausible."""
        return tuple(metric for metric in self.inputs if not metric.valid)

    @property
    def valid(self) -> bool:
        """Whether every input is valid."""
        return not self.invalid_inputs

    @property
    def rank(self) -> float:
        """The share of time that it is taken to save, or concerns; its weight, where that is higher."""
        share = self.share if self.taken is None else self.taken
        return max(self.weight, share or 0.0)

    def to_dict(self) -> dict[str, Any]:
        """The statement for JSON."""
        return {
            "id": self.id,
            "kind": self.kind,
            "text": self.text,
            "metrics": [metric.to_dict() for metric in self.inputs],
            "evidence": self.evidence.value,
            "valid": self.valid,
            "lever": self.lever,
            "techniques": list(self.techniques) if self.lever else [],
            "refuted_by": self.refuted_by or None if self.lever else None,
            "share_of_time": self.share,
            "saves_at_most": self.saves_at_most,
            "confidence": self.confidence,
        }


class SpecificLever(NamedTuple):
    """A lever that is made for the launch, with the metrics that it was chosen by."""

    lever: str
    inputs: tuple[MetricInput, ...] = ()


@dataclass(frozen=True)
class OpenQuestion:
    """A question that the data do not answer, with the inputs that are missing for it."""

    id: str
    question: str  # in words that follow "unknown:"
    inputs: tuple[MetricInput, ...]
    main: bool = False  # what anybody would ask first: it gets a statement of its own

    @property
    def invalid_inputs(self) -> tuple[MetricInput, ...]:
        """The inputs that are missing or implausible."""
        return tuple(metric for metric in self.inputs if not metric.valid)


@dataclass(frozen=True)
class LaunchMetrics:
    """The metrics of one launch by concept, beside those of the baseline's launch."""

    launch: Launch
    table: MetricTable
    chip: str | None = None
    baseline: Launch | None = None
    opcode_mix: str = OPCODE_MIX  # the name of its opcodes' counts: executed, or places in the code

    def __getitem__(self, concept: str) -> MetricInput:
        metric = self.table.by_concept.get(concept)
        if metric is None:
            return MetricInput(concept, concept, concept, NOT_COLLECTED)
        name, value = self.table.resolve(metric, self.launch.values, self.chip)
        if value.derivation and value.derivation.is_stand_in:
            # A stand-in may lie on the other side of a rule's limit: no advice rests on it.
            name, value = metric.names_for(self.chip)[0], NOT_COLLECTED
        baseline = None if self.baseline is None else metric.read(name, self.baseline.values, self.chip)
        return MetricInput(name, concept, formatting.label(metric.label, value), value, baseline, metric.line)

    def named(self, name: str, label: str = "") -> MetricInput:
        """A metric by its exact name, for those that metrics.txt does not declare."""
        value = self.launch.values.value(name)
        return MetricInput(name, "", label or name, value, self._baseline_value(name))

    def of(self, *concepts: str) -> tuple[MetricInput, ...]:
        """The metrics of several concepts."""
        return tuple(self[concept] for concept in concepts)

    def opcodes(self, *names: str) -> MetricInput:
        """Instructions of these opcodes together, whatever the architecture calls them (RED: REDG too).

        0 means none: the mix lists all that were executed.
        """
        wanted = {operation(name) for name in names}
        return self._opcode_input("+".join(names), lambda opcode: operation(opcode) in wanted)

    @property
    def matrix_opcodes(self) -> MetricInput:
        """Matrix instructions of every kind together."""
        return self._opcode_input("*MMA", is_matrix_multiply)

    @property
    def every_opcode(self) -> MetricInput:
        """All instructions of the opcode mix together."""
        return replace(self._opcode_input("*", lambda _: True), label="instructions")

    def _opcode_input(self, name: str, matches: Callable[[str], bool]) -> MetricInput:
        before = None if self.baseline is None else _opcode_count(self.baseline.opcodes, matches)
        count = _opcode_count(self.launch.opcodes, matches)
        return MetricInput(f"{self.opcode_mix}[{name}]", "", f"{name} instructions", count, before)

    def _baseline_value(self, name: str) -> Value | None:
        return None if self.baseline is None else self.baseline.values.value(name)


def doubted(*inputs: MetricInput) -> tuple[MetricInput, ...]:
    """The same inputs marked as contradicting each other, so that nothing may rest on them."""
    return tuple(replace(metric, doubted=True) for metric in inputs)


def all_valid(inputs: Iterable[MetricInput]) -> bool:
    """Whether all inputs have a plausible number."""
    return all(metric.valid for metric in inputs)


def is_plausible(value: Value) -> bool:
    """Whether a value alone can be true: a text, or a number that is not negative and not above its peak."""
    if value.number is None:
        return value.text is not None
    return value.number >= 0 and not (value.unit == "%" and value.number > MAX_PCT)


def format_share(share: float, decimals: int = 0) -> str:
    """A share from 0 to 1 in per cent: `12 %`."""
    return f"{share:.{decimals}%}".replace("%", " %")


def _opcode_count(mix: Mapping[str, float], matches: Callable[[str], bool]) -> Value:
    if not mix:
        return NOT_COLLECTED
    return Value(sum(count for opcode, count in mix.items() if matches(opcode)), "inst")
