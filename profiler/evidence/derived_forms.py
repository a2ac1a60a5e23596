"""Derived forms of metrics.txt: how a concept is computed where a report has none of its names."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from profiler.evidence.gpu_arch import holds_on
from profiler.evidence.values import Derivation, Value

# Counters that are above zero whenever a kernel ran: a zero says that they were not counted.
_NEVER_ZERO = re.compile(
    r"gpu__time_duration\..*|\w+__cycles_elapsed\..*|(sm|smsp|gpc|l1tex)__cycles_active\..*"
    r"|device__attribute_\w+|.*\.peak_sustained"
)
# No base units of ncu: what it prints where nobody asked for those.
_SCALED_UNIT = re.compile(r"[um]?s|[um]?second|[KMGTkmgt]i?(byte|B|hz|Hz).*|.*/[num]s(econd)?")
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_Step = str | float | Callable[[float, float], float]  # of a computation: an ncu name, a number, an operator
# A counter of an SM or of one of its schedulers. Both count elapsed cycles alike, and a sum is of all.
_OF_SM_OR_SCHEDULER = re.compile(r"(?P<unit>smsp|sm)__(?!cycles_elapsed)(?!.*\.(sum|peak_sustained)$).*")
_BLOCK_SIZE, _BLOCKS, _SMS = (
    "launch__block_size",
    "launch__grid_size",
    "device__attribute_multiprocessor_count",
)
_WARP_SIZE, _SCHEDULERS_PER_SM = 32, 4
_MOST_LENGTH = 1000  # characters of a formula: a sum of thousands is nested deeper than Python can go
_ALLOWED = "write ncu names and numbers with + - * / and parentheses"


@dataclass(frozen=True)
class DerivedForm:
    """One way to compute a concept's number; `chips` limits it, empty means every chip."""

    derivation: Derivation
    names: tuple[str, ...]  # the ncu metrics that it needs
    chips: frozenset[str]
    line: int  # of metrics.txt
    steps: tuple[_Step, ...] = field(repr=False, compare=False)  # what it computes, operands before operators
    # Whether an SM's counter stands for a scheduler's or the other way, which takes work for every scheduler.
    between_units: bool = False

    @property
    def size_names(self) -> tuple[str, ...]:
        """The ncu metrics that tell whether the form holds for a launch; without them it is taken to hold."""
        return (_BLOCK_SIZE, _BLOCKS, _SMS) if self.between_units else ()

    @property
    def name(self) -> str:
        """What stands for an ncu name wherever the number is shown; two numbers compare under equal names."""
        return self.derivation.name

    def allowed(self, chip: str | None) -> bool:
        """Whether the form holds on the chip; a chip that no table knows excludes nothing."""
        return holds_on(self.chips, chip)

    def read(self, values: Mapping[str, Value], unit: str) -> Value | None:
        """The number with its derivation, from values in base units; None where a needed number is missing.

        Also None where a number that cannot be zero is, where the result is negative or not finite, and where
        a scheduler's counter and its SM's would stand for each other though some schedulers have no warp.
        """
        if self.between_units and _has_idle_schedulers(values):
            return None
        numbers: dict[str, float] = {}
        for name in self.names:
            if name not in values:
                return None
            value = values[name]
            if value.number is None or _SCALED_UNIT.fullmatch(value.unit):
                return None
            if not value.number and _NEVER_ZERO.fullmatch(name):
                return None
            numbers[name] = float(value.number)
        try:
            number = _evaluate(self.steps, numbers)
        except (ZeroDivisionError, OverflowError):
            return None
        if not math.isfinite(number) or number < 0:
            return None
        return Value(number, unit, derivation=self.derivation)


def parse_form(formula: str, most_off_pct: float | None, chips: frozenset[str], line: int) -> DerivedForm:
    """A form from its formula. Raises ValueError where that is no arithmetic on names and numbers."""
    text = " ".join(formula.split())
    if len(text) > _MOST_LENGTH:
        raise ValueError(f"a formula of {len(text):,} characters, and {_MOST_LENGTH:,} are read: write less")
    expression = _parse(text)
    names = tuple(dict.fromkeys(_names(expression)))
    if not names:
        raise ValueError(f"{text!r} names no ncu metric: {_ALLOWED}")
    return DerivedForm(Derivation(text, most_off_pct), names, chips, line, tuple(_steps(expression)))


@lru_cache
def formula_names(formula: str) -> frozenset[str]:
    """The ncu names in a derivation's formula."""
    return frozenset(_names(_parse(formula)))


def is_between_units(own_names: Iterable[str], form: DerivedForm) -> bool:
    """Whether a form stands in for counters of SMs by counters of their schedulers, or the other way."""
    own, needed = (
        {match["unit"] for name in names if (match := _OF_SM_OR_SCHEDULER.fullmatch(name))}
        for names in (own_names, form.names)
    )
    return form.derivation.is_stand_in and bool(own and needed) and not needed <= own


def _has_idle_schedulers(values: Mapping[str, Value]) -> bool:
    """Whether a launch has fewer warps than schedulers in the SMs that it runs on; False where nobody knows.

    A block of one warp keeps one of four schedulers busy: its SM counts four times what they do on average.
    """
    sizes = [values[name].number if name in values else None for name in (_BLOCK_SIZE, _BLOCKS, _SMS)]
    threads, blocks, sms = (size or 0 for size in sizes)
    if not threads or not blocks or not sms:
        return False
    warps_per_block = math.ceil(threads / _WARP_SIZE)
    return warps_per_block < _SCHEDULERS_PER_SM and warps_per_block * blocks / sms < _SCHEDULERS_PER_SM


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{text!r} is no formula: {_ALLOWED}") from None


def _names(node: ast.expr) -> list[str]:
    """The ncu names in an expression. Raises ValueError where it has anything but arithmetic."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return [*_names(node.left), *_names(node.right)]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return []
    return [_dotted(node)]


def _dotted(node: ast.expr) -> str:
    """The ncu name that an expression is: `sm__cycles_active.avg` parses as an attribute of a name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    raise ValueError(f"{ast.unparse(node)!r} in a formula: {_ALLOWED}")


def _steps(node: ast.expr) -> Iterator[_Step]:
    """What an expression computes."""
    if isinstance(node, ast.BinOp):
        yield from _steps(node.left)
        yield from _steps(node.right)
        yield _OPERATORS[type(node.op)]
    elif isinstance(node, ast.Constant):
        yield float(node.value)  # type: ignore[arg-type]  # _names let numbers alone through
    else:
        yield _dotted(node)


def _evaluate(steps: Iterable[_Step], numbers: Mapping[str, float]) -> float:
    operands: list[float] = []
    for step in steps:
        if isinstance(step, str):
            operands.append(numbers[step])
        elif isinstance(step, float):
            operands.append(step)
        else:
            right = operands.pop()
            operands[-1] = step(operands[-1], right)
    return operands[0]
