"""How the values of some metrics over the points of a series lie side by side, as numbers and their forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.evidence import NOT_COLLECTED, State, Value
from profiler.evidence.values import SLOT

MARK = np.dtype("<u2")
_KEY = np.dtype("<i8")
_PLACE = np.dtype("<u4")
_FLOAT = np.dtype(np.float64)
_PRESENT = int(State.PRESENT)

Shape = tuple[int, ...]  # grid and block of a launch, x y z each; zeros: unknown


class Form(NamedTuple):
    """All of a value but its number."""

    state: int
    unit: str
    kind: str  # f, u or s, as in MetricSet
    text: str | None = None


ABSENT = Form(State.NOT_COLLECTED, "", "f")  # of a launch that does not carry the name


@dataclass(frozen=True)
class Head:
    """All of the points of a series but their values, oldest first; what repeats is kept once."""

    result: NDArray[np.int64]
    run: NDArray[np.int64]
    created: NDArray[np.int64]
    version: NDArray[np.uint32]  # place in versions
    shape: NDArray[np.uint32]  # place in shapes
    versions: tuple[int, ...]
    shapes: tuple[Shape, ...]

    def __len__(self) -> int:
        return len(self.result)

    @staticmethod
    def of(rows: Sequence[tuple[int, int, int, int, Shape]]) -> Head:
        """The head of points given as result, run, version, created, shape."""
        results, runs, versions, created, shapes = zip(*rows, strict=True) if rows else ((),) * 5
        known, sizes = tuple(dict.fromkeys(versions)), tuple(dict.fromkeys(shapes))
        return Head(
            np.array(results, _KEY),
            np.array(runs, _KEY),
            np.array(created, _KEY),
            _places(known, versions),
            _places(sizes, shapes),
            known,
            sizes,
        )

    def packed(self) -> bytes:
        """As bytes: how much of everything, then everything."""
        counts = np.array((len(self), len(self.versions), len(self.shapes)), _KEY)
        lists = (np.array(self.versions, _KEY), np.array(self.shapes, _PLACE).reshape(-1, 6))
        columns = (self.result, self.run, self.created, self.version, self.shape)
        return b"".join(part.tobytes() for part in (counts, *lists, *columns))

    @staticmethod
    def unpacked(content: bytes) -> Head:
        """What `packed` made of a head."""
        points, versions, shapes = np.frombuffer(content, _KEY, 3).tolist()
        place = 3 * _KEY.itemsize

        def take(kind: np.dtype[Any], count: int) -> NDArray[Any]:
            nonlocal place
            taken = np.frombuffer(content, kind, count, place)
            place += taken.nbytes
            return taken

        known = tuple(take(_KEY, versions).tolist())
        sizes = tuple(map(tuple, take(_PLACE, 6 * shapes).reshape(-1, 6).tolist()))
        result, run, created = (take(_KEY, points) for _ in range(3))
        return Head(result, run, created, take(_PLACE, points), take(_PLACE, points), known, sizes)

    def points(self, kept: Any) -> Head:
        """Some of the points."""
        return Head(
            self.result[kept],
            self.run[kept],
            self.created[kept],
            self.version[kept],
            self.shape[kept],
            self.versions,
            self.shapes,
        )

    def followed_by(self, later: Head) -> Head:
        """The points of both."""
        versions = tuple(dict.fromkeys(self.versions + later.versions))
        shapes = tuple(dict.fromkeys(self.shapes + later.shapes))
        return Head(
            np.concatenate((self.result, later.result)),
            np.concatenate((self.run, later.run)),
            np.concatenate((self.created, later.created)),
            np.concatenate((self.version, _places(versions, later.versions)[later.version])),
            np.concatenate((self.shape, _places(shapes, later.shapes)[later.shape])),
            versions,
            shapes,
        )

    def latest(self) -> NDArray[np.bool_]:
        """Which points come from the newest run of their version."""
        newest = np.zeros(len(self.versions), _KEY)
        newest[self.version] = self.run  # of several points the last one stays
        found: NDArray[np.bool_] = self.run == newest[self.version]
        return found


class Column(NamedTuple):
    """The values of one name, one a point."""

    slots: NDArray[np.uint64]
    marks: NDArray[np.uint16] | None  # which form; None: the first for all of them
    forms: tuple[Form, ...]

    @staticmethod
    def absent(points: int) -> Column:
        """Of points that do not carry the name."""
        return Column(np.zeros(points, SLOT), None, (ABSENT,))

    @staticmethod
    def of(slots: NDArray[np.uint64], marks: NDArray[np.uint16], forms: Sequence[Form]) -> Column:
        """With the forms that occur, and marks only where there are several."""
        if len(marks) and (marks == marks[0]).all():
            return Column(np.ascontiguousarray(slots), None, (forms[int(marks[0])],))
        found, places = np.unique(marks, return_inverse=True)
        held = tuple(forms[mark] for mark in found.tolist())
        return Column(np.ascontiguousarray(slots), None if len(held) < 2 else places.astype(MARK), held)

    @staticmethod
    def joined(pieces: Sequence[Column]) -> Column:
        """The values of all pieces, one after the other."""
        if len(pieces) == 1:
            return pieces[0]
        slots = np.concatenate([piece.slots for piece in pieces])
        forms = tuple(dict.fromkeys(form for piece in pieces for form in piece.forms))
        if len(forms) == 1:
            return Column(slots, None, forms)
        place = {form: index for index, form in enumerate(forms)}
        return Column(slots, np.concatenate([piece._marked(place) for piece in pieces]), forms)

    def points(self, kept: Any) -> Column:
        """Some of the points."""
        return Column(self.slots[kept], None if self.marks is None else self.marks[kept], self.forms)

    def every_mark(self) -> NDArray[np.uint16]:
        """A mark for every point."""
        return np.zeros(len(self.slots), MARK) if self.marks is None else self.marks

    def _marked(self, place: dict[Form, int]) -> NDArray[np.uint16]:
        """A mark for every point, by another list of forms."""
        if self.marks is None:
            return np.full(len(self.slots), place[self.forms[0]], MARK)
        return np.array([place[form] for form in self.forms], MARK)[self.marks]

    @property
    def carried(self) -> bool:
        """Whether any point carries the name at all."""
        if self.marks is None:
            return len(self.slots) > 0 and self.forms[0] != ABSENT
        there = np.array([form != ABSENT for form in self.forms])
        return bool(there[self.marks].any())

    @property
    def unit(self) -> str:
        """Of the newest point that has a value; "" where none has."""
        marks = [0] if self.marks is None else self.marks[::-1].tolist()
        forms = (self.forms[mark] for mark in marks)
        return next((form.unit for form in forms if form.state == State.PRESENT), "")

    def arrays(self, present: NDArray[np.uint8]) -> tuple[str, NDArray[np.float64], NDArray[np.uint8]] | None:
        """Unit, numbers and states (the given where all are PRESENT); None: no point carries the name."""
        slots, marks, forms = self
        if marks is None:
            state, unit, kind, _ = forms[0]
            if kind == "f" and state == _PRESENT:
                return unit, slots.view(_FLOAT), present  # nearly all of thousands: no call more
        return (self.unit, self.numbers(), self.states()) if self.carried else None

    def numbers(self) -> NDArray[np.float64]:
        """The values as float64; NaN where there is no number, of which `states` says why."""
        if self.marks is None:
            return _numbers(self.slots, self.forms[0])
        found = np.full(len(self.slots), np.nan)
        for mark, form in enumerate(self.forms):
            here = self.marks == mark
            found[here] = _numbers(self.slots[here], form)
        return found

    def states(self) -> NDArray[np.uint8]:
        """The State of each point. A text is PRESENT, and no number."""
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
    """The values of some names over the points of one series."""

    head: Head
    columns: dict[str, Column]

    def points(self, kept: Any) -> Columns:
        """Some of the points."""
        kept_columns = {name: column.points(kept) for name, column in self.columns.items()}
        return Columns(self.head.points(kept), kept_columns)

    def followed_by(self, later: Columns) -> Columns:
        """The points of both; they hold the same names."""
        joined = {name: Column.joined((column, later.columns[name])) for name, column in self.columns.items()}
        return Columns(self.head.followed_by(later.head), joined)


def _places(known: Sequence[Any], keys: Sequence[Any]) -> NDArray[np.uint32]:
    place = {one: index for index, one in enumerate(known)}
    return np.array([place[one] for one in keys], _PLACE)


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
    return [Value(number, form.unit) for number in numbers]
