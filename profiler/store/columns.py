"""The values of some metrics over the points of a series as arrays: slots, and what each slot means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.evidence.values import NOT_COLLECTED, SLOT, State, Value

MARK = np.dtype("<u2")
_KEY = np.dtype("<i8")
_INDEX = np.dtype("<u4")
_FLOAT = np.dtype(np.float64)
_PRESENT = int(State.PRESENT)
_new_value = partial(tuple.__new__, Value)  # from a tuple of its fields: Value() takes four times as long

Shape = tuple[int, ...]  # grid and block of a launch, x y z each; zeros: unknown


class Form(NamedTuple):
    """Everything about a value except its number."""

    state: int  # a State
    unit: str
    kind: str  # f, u or s, as in MetricSet
    text: str | None = None  # of a value that is a text


ABSENT = Form(State.NOT_COLLECTED, "", "f")  # where a launch does not carry the metric


@dataclass(frozen=True)
class Head:
    """The points of a series without their values, oldest first.

    Versions and launch shapes repeat from point to point: each is kept once, and points hold its index.
    """

    result: NDArray[np.int64]  # keys of rows, as the next one
    run: NDArray[np.int64]
    created: NDArray[np.int64]  # microseconds since 1970, UTC
    version: NDArray[np.uint32]  # index into versions
    shape: NDArray[np.uint32]  # index into shapes
    versions: tuple[int, ...]
    shapes: tuple[Shape, ...]

    def __len__(self) -> int:
        return len(self.result)

    @staticmethod
    def of(rows: Sequence[tuple[int, int, int, int, Shape]]) -> Head:
        """The head of points, each a tuple of result, run, version, created and shape."""
        results, runs, versions, created, shapes = zip(*rows, strict=True) if rows else ((),) * 5
        distinct_versions, distinct_shapes = tuple(dict.fromkeys(versions)), tuple(dict.fromkeys(shapes))
        return Head(
            np.array(results, _KEY),
            np.array(runs, _KEY),
            np.array(created, _KEY),
            _indices(distinct_versions, versions),
            _indices(distinct_shapes, shapes),
            distinct_versions,
            distinct_shapes,
        )

    def packed(self) -> bytes:
        """As bytes: three counts, the distinct versions and shapes, then a column a field."""
        counts = np.array((len(self), len(self.versions), len(self.shapes)), _KEY)
        lists = (np.array(self.versions, _KEY), np.array(self.shapes, _INDEX).reshape(-1, 6))
        columns = (self.result, self.run, self.created, self.version, self.shape)
        return b"".join(part.tobytes() for part in (counts, *lists, *columns))

    @staticmethod
    def unpacked(content: bytes) -> Head:
        """The head that `packed` wrote as bytes."""
        point_count, version_count, shape_count = np.frombuffer(content, _KEY, 3).tolist()
        offset = 3 * _KEY.itemsize

        def take(kind: np.dtype[Any], count: int) -> NDArray[Any]:
            nonlocal offset
            array = np.frombuffer(content, kind, count, offset)
            offset += array.nbytes
            return array

        versions = tuple(take(_KEY, version_count).tolist())
        shapes = tuple(map(tuple, take(_INDEX, 6 * shape_count).reshape(-1, 6).tolist()))
        result, run, created = (take(_KEY, point_count) for _ in range(3))
        return Head(
            result, run, created, take(_INDEX, point_count), take(_INDEX, point_count), versions, shapes
        )

    def points(self, selection: Any) -> Head:
        """Some of the points: by a slice, or by a mask with one element a point."""
        return Head(
            self.result[selection],
            self.run[selection],
            self.created[selection],
            self.version[selection],
            self.shape[selection],
            self.versions,
            self.shapes,
        )

    def followed_by(self, later: Head) -> Head:
        """These points and then the later ones."""
        versions = tuple(dict.fromkeys(self.versions + later.versions))
        shapes = tuple(dict.fromkeys(self.shapes + later.shapes))
        return Head(
            np.concatenate((self.result, later.result)),
            np.concatenate((self.run, later.run)),
            np.concatenate((self.created, later.created)),
            np.concatenate((self.version, _indices(versions, later.versions)[later.version])),
            np.concatenate((self.shape, _indices(shapes, later.shapes)[later.shape])),
            versions,
            shapes,
        )

    def latest(self) -> NDArray[np.bool_]:
        """Which points come from the newest run of their version."""
        newest = np.zeros(len(self.versions), _KEY)
        newest[self.version] = self.run  # points are oldest first: the last assignment wins
        is_latest: NDArray[np.bool_] = self.run == newest[self.version]
        return is_latest


class MetricColumn(NamedTuple):
    """The values of one metric, one a point."""

    slots: NDArray[np.uint64]  # the bits of a float64, or an integer: the form says which
    marks: NDArray[np.uint16] | None  # index into forms; None: all points have the first
    forms: tuple[Form, ...]

    @staticmethod
    def absent(points: int) -> MetricColumn:
        """The column of points that do not carry the metric."""
        return MetricColumn(np.zeros(points, SLOT), None, (ABSENT,))

    @staticmethod
    def of(slots: NDArray[np.uint64], marks: NDArray[np.uint16], forms: Sequence[Form]) -> MetricColumn:
        """A column that keeps only the forms that occur, and marks only where several do."""
        if len(marks) and (marks == marks[0]).all():
            return MetricColumn(np.ascontiguousarray(slots), None, (forms[int(marks[0])],))
        marks_present, new_marks = np.unique(marks, return_inverse=True)
        forms_present = tuple(forms[mark] for mark in marks_present.tolist())
        return MetricColumn(
            np.ascontiguousarray(slots),
            None if len(forms_present) < 2 else new_marks.astype(MARK),
            forms_present,
        )

    @staticmethod
    def joined(pieces: Sequence[MetricColumn]) -> MetricColumn:
        """The values of all pieces, one after the other."""
        if len(pieces) == 1:
            return pieces[0]
        slots = np.concatenate([piece.slots for piece in pieces])
        forms = tuple(dict.fromkeys(form for piece in pieces for form in piece.forms))
        if len(forms) == 1:
            return MetricColumn(slots, None, forms)
        index_of_form = {form: index for index, form in enumerate(forms)}
        return MetricColumn(slots, np.concatenate([piece._marked(index_of_form) for piece in pieces]), forms)

    def points(self, selection: Any) -> MetricColumn:
        """Some of the points: by a slice, or by a mask."""
        return MetricColumn(
            self.slots[selection], None if self.marks is None else self.marks[selection], self.forms
        )

    def every_mark(self) -> NDArray[np.uint16]:
        """The marks, written out also where all points have the first form."""
        return np.zeros(len(self.slots), MARK) if self.marks is None else self.marks

    def _marked(self, index_of_form: dict[Form, int]) -> NDArray[np.uint16]:
        """A mark for every point, as an index into another list of forms."""
        if self.marks is None:
            return np.full(len(self.slots), index_of_form[self.forms[0]], MARK)
        return np.array([index_of_form[form] for form in self.forms], MARK)[self.marks]

    @property
    def carried(self) -> bool:
        """Whether any point carries the metric."""
        if self.marks is None:
            return len(self.slots) > 0 and self.forms[0] != ABSENT
        carries = np.array([form != ABSENT for form in self.forms])
        return bool(carries[self.marks].any())

    @property
    def unit(self) -> str:
        """The unit of the newest point that has a value; "" where none has."""
        marks = [0] if self.marks is None else self.marks[::-1].tolist()
        forms = (self.forms[mark] for mark in marks)
        return next((form.unit for form in forms if form.state == State.PRESENT), "")

    def arrays(self, present: NDArray[np.uint8]) -> tuple[str, NDArray[np.float64], NDArray[np.uint8]] | None:
        """Unit, numbers and states; None where no point carries the metric.

        `present` is an array of PRESENT for every point, shared by all columns that need nothing else.
        """
        slots, marks, forms = self
        if marks is None:
            state, unit, kind, _ = forms[0]
            if kind == "f" and state == _PRESENT:
                # Nearly all columns, of thousands, end here: this path is kept short.
                return unit, slots.view(_FLOAT), present
        return (self.unit, self.numbers(), self.states()) if self.carried else None

    def numbers(self) -> NDArray[np.float64]:
        """The values as float64; NaN where there is no number, and `states` says why."""
        if self.marks is None:
            return _numbers(self.slots, self.forms[0])
        numbers = np.full(len(self.slots), np.nan)
        for mark, form in enumerate(self.forms):
            has_form = self.marks == mark
            numbers[has_form] = _numbers(self.slots[has_form], form)
        return numbers

    def states(self) -> NDArray[np.uint8]:
        """The State of each point. A text is PRESENT although it has no number."""
        states = np.array([form.state for form in self.forms], np.uint8)
        return np.full(len(self.slots), states[0]) if self.marks is None else states[self.marks]

    def values(self) -> list[Value]:
        """The values one by one."""
        if self.marks is None:
            return _values(self.slots, self.forms[0])
        by_form = [_values(self.slots, form) for form in self.forms]
        return [by_form[mark][point] for point, mark in enumerate(self.marks.tolist())]


@dataclass(frozen=True)
class Columns:
    """The values of some metrics over the points of one series."""

    head: Head
    columns: dict[str, MetricColumn]

    def points(self, selection: Any) -> Columns:
        """Some of the points: by a slice, or by a mask."""
        columns = {name: column.points(selection) for name, column in self.columns.items()}
        return Columns(self.head.points(selection), columns)

    def followed_by(self, later: Columns) -> Columns:
        """These points and then the later ones; both have the same metrics."""
        joined = {
            name: MetricColumn.joined((column, later.columns[name])) for name, column in self.columns.items()
        }
        return Columns(self.head.followed_by(later.head), joined)


def _indices(distinct: Sequence[Any], keys: Sequence[Any]) -> NDArray[np.uint32]:
    """The index of each key in the list of distinct ones."""
    index_of = {key: index for index, key in enumerate(distinct)}
    return np.array([index_of[key] for key in keys], _INDEX)


def _numbers(slots: NDArray[np.uint64], form: Form) -> NDArray[np.float64]:
    if form.state != State.PRESENT or form.kind == "s":
        return np.full(len(slots), np.nan)
    return slots.view(np.float64) if form.kind == "f" else slots.astype(np.float64)


def _values(slots: NDArray[np.uint64], form: Form) -> list[Value]:
    """A value for every slot, as if all had this form."""
    if form == ABSENT:
        return [NOT_COLLECTED] * len(slots)
    if form.state != State.PRESENT:
        return [Value(None, form.unit, None, State(form.state))] * len(slots)
    if form.kind == "s":
        return [Value(None, form.unit, form.text or "")] * len(slots)
    numbers = (slots.view(np.float64) if form.kind == "f" else slots).tolist()
    others = map(repeat, Value(None, form.unit)[1:])  # the other fields, the same of all
    return list(map(_new_value, zip(numbers, *others, strict=False)))
