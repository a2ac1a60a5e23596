"""How the values of some metrics over the points of a series lie side by side, as numbers and their forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.values import NOT_COLLECTED, SLOT, State, Value

HEAD = np.dtype(
    [
        ("result", "<i8"),
        ("run", "<i8"),
        ("version", "<i8"),
        ("created", "<i8"),
        ("grid", "<u4", (3,)),  # zeros: unknown
        ("block", "<u4", (3,)),
    ]
)
MARK = np.dtype("<u2")


class Form(NamedTuple):
    """All of a value but its number."""

    state: int
    unit: str
    kind: str  # f, u or s, as in MetricSet
    text: str | None = None


ABSENT = Form(State.NOT_COLLECTED, "", "f")  # of a launch that does not carry the name


@dataclass
class Columns:
    """The values of some names over the points of a series: a row a name, a column a point, oldest first."""

    names: tuple[str, ...]
    head: NDArray[Any]  # of HEAD
    slots: NDArray[np.uint64]
    marks: NDArray[np.uint16]  # which form
    forms: list[Form] = field(default_factory=lambda: [ABSENT])  # ABSENT is always the first

    @staticmethod
    def blank(names: tuple[str, ...], points: int) -> Columns:
        """Points that carry none of the names."""
        shape = (len(names), points)
        return Columns(names, np.zeros(points, HEAD), np.zeros(shape, SLOT), np.zeros(shape, MARK))

    def mark(self, form: Form) -> int:
        """The mark of a form; a new one where there is none yet."""
        if form not in self.forms:
            self.forms.append(form)
        return self.forms.index(form)

    def rows(self, names: Sequence[str]) -> Columns:
        """Some of the names."""
        places = [self.names.index(name) for name in names]
        return Columns(tuple(names), self.head, self.slots[places], self.marks[places], self.forms)

    def points(self, kept: Any) -> Columns:
        """Some of the points."""
        return Columns(self.names, self.head[kept], self.slots[:, kept], self.marks[:, kept], self.forms)

    def followed_by(self, later: Columns) -> Columns:
        """The points of both; they carry the same names."""
        joined = Columns(
            self.names,
            np.concatenate((self.head, later.head)),
            np.hstack((self.slots, later.slots)),
            self.marks,
            list(self.forms),
        )
        moved = np.array([joined.mark(form) for form in later.forms], MARK)
        joined.marks = np.hstack((self.marks, moved[later.marks]))
        return joined

    def latest(self) -> list[bool]:
        """Which points come from the newest run of their version."""
        versions, runs = self.head["version"].tolist(), self.head["run"].tolist()
        newest = dict(zip(versions, runs, strict=True))  # the last one stays
        return [newest[version] == run for version, run in zip(versions, runs, strict=True)]

    def carries(self, row: int) -> bool:
        """Whether any point carries the name at all."""
        return bool(self.marks[row].any())

    def values(self, row: int) -> list[Value]:
        """The values of one name."""
        slots = np.ascontiguousarray(self.slots[row])
        floats, wholes = slots.view(np.float64).tolist(), slots.tolist()
        # A form without a number is one value for all its points; the others are told apart by their kind.
        fixed = [_without_number(form) for form in self.forms]
        values = []
        for point, mark in enumerate(self.marks[row].tolist()):
            value, form = fixed[mark], self.forms[mark]
            if value is None:
                value = Value(floats[point] if form.kind == "f" else wholes[point], form.unit)
            values.append(value)
        return values


def _without_number(form: Form) -> Value | None:
    if form == ABSENT:
        return NOT_COLLECTED
    if form.state != State.PRESENT:
        return Value(None, form.unit, None, State(form.state))
    return Value(None, form.unit, form.text or "") if form.kind == "s" else None
