"""Machine code as blocks: a row a place, or two sides aligned around what differs or is hot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

from profiler.documents.blocks import Block, Gap, Heading, Line, Name, Preformatted, Table
from profiler.evidence import formatting
from profiler.sass.alignment import (
    CHANGED,
    EQUAL,
    KINDS,
    ONLY_A,
    ONLY_B,
    RENAMED,
    UNCHANGED,
    UNREAD,
    AlignedRow,
    Alignment,
)
from profiler.sass.hotspots import HotRow, HotSpot, HotSpotChange
from profiler.sass.listing import Listing

_WAITING_FOR = "waiting for"
_COUNTS = ("samples", _WAITING_FOR, "executed", "excess wavefronts")
_CONTEXT = 3  # rows printed around each that differs or is hot
_MOVED = 10  # places printed that moved
_REASONS_NAMED = 3  # of a place
_SIGNS = {EQUAL: " ", RENAMED: "≈", ONLY_A: "-", ONLY_B: "+", UNREAD: "?"}  # by a row's kind

_Hot = Mapping[int, tuple[int, HotRow]]  # rank and counts by the position of a function's row


def diff_blocks(
    a: Listing, b: Listing, aligned: Alignment, hot_rows: Sequence[HotRow] | None, *, everything: bool
) -> Iterator[Block]:
    """The rows that differ with some around them, as a unified diff; of `hot_rows` those around them."""
    unseen = 0  # rows that differ and are left out
    for index, pair in enumerate(aligned.functions):
        hot = {row.row: (rank, row) for rank, row in enumerate(hot_rows or (), 1) if row.function == index}
        differing = [position for position, row in enumerate(pair.rows) if row.kind not in UNCHANGED]
        if everything:
            positions = list(range(len(pair.rows)))
        else:
            positions = _near(differing if hot_rows is None else hot, len(pair.rows))
        unseen += len(set(differing).difference(positions))
        if positions:
            name_a = "none" if pair.a is None else a.functions[pair.a]
            name_b = "none" if pair.b is None else b.functions[pair.b]
            yield Heading(f"{' → '.join(dict.fromkeys((name_a, name_b)))}  (paired by {pair.by})")
            yield Preformatted([*_lines(pair.rows, positions, hot, a, b)])
    if unseen:
        yield Line(f"{formatting.digits(unseen)} rows that differ elsewhere: drop --hot to see all")


def place_table(places: Sequence[HotSpot]) -> Table:
    """A row a place; what a report does not count has no column."""
    counts = [
        (count_words(spot.samples), _main_reason(spot), count_words(spot.executed), count_words(spot.excess))
        for spot in places
    ]
    counted = [index for index in range(len(_COUNTS)) if any(row[index] for row in counts)]
    rows = [
        (spot.location.words, *(row[index] for index in counted), (spot.text or "???").strip())
        for spot, row in zip(places, counts, strict=True)
    ]
    head = ("at", *(_COUNTS[index] for index in counted), "code")
    right = [column for column, name in enumerate(head) if name in _COUNTS and name != _WAITING_FOR]
    return Table(head, rows, right=right)


def _main_reason(spot: HotSpot) -> str:
    if not spot.reasons:
        return ""
    reason = max(spot.reasons, key=lambda name: spot.reasons[name])
    return f"{reason} {100 * spot.reasons[reason] / (spot.samples or 1):.0f} %"


def count_words(number: float | None) -> str:
    """A count as it is printed; "" for none."""
    return "" if number is None else formatting.digits(round(number))


def _near(positions: Iterable[int], count: int) -> list[int]:
    """The positions and those near them, of so many rows."""
    near = {n for position in positions for n in range(position - _CONTEXT, position + _CONTEXT + 1)}
    return sorted(position for position in near if 0 <= position < count)


def _lines(
    rows: Sequence[AlignedRow], positions: Sequence[int], hot: _Hot, a: Listing, b: Listing
) -> Iterator[str]:
    """The rows at positions of a function, and for each stretch between them what is left out."""
    if not positions:
        return
    start = 0  # of what is not printed yet
    for position in [*positions, len(rows)]:
        if skipped := Counter(row.kind for row in rows[start:position]):
            yield "  ⋯ " + ", ".join(f"{skipped[kind]} {kind}" for kind in KINDS if skipped[kind])
        if position < len(rows):
            yield from _unified(rows[position], hot.get(position), a, b)
        start = position + 1


def _unified(row: AlignedRow, hot: tuple[int, HotRow] | None, a: Listing, b: Listing) -> Iterator[str]:
    """A row as it stands in a diff: both sides where it changed, else in one line."""
    line_a = "" if row.a is None else _line(a, row.a)
    line_b = "" if row.b is None else _line(b, row.b)
    if row.kind == CHANGED:
        yield f"- {line_a}{_mark(hot, with_b=False)}"
        yield f"+ {line_b}{_mark(hot, with_a=False)}"
        return
    other = f"  →  {b.lines[row.b].text}" if row.kind == RENAMED and row.b is not None else ""
    yield f"{_SIGNS[row.kind]} {line_a or line_b}{other}{_mark(hot)}"


def _mark(hot: tuple[int, HotRow] | None, *, with_a: bool = True, with_b: bool = True) -> str:
    """The rank of a hot row and its samples, or where it has none, how often it ran."""
    if hot is None:
        return ""
    rank, row = hot
    has_samples = row.samples_a is not None or row.samples_b is not None
    counts = (row.samples_a, row.samples_b) if has_samples else (row.executed_a, row.executed_b)
    known = [
        count_words(count)
        for count, is_wanted in zip(counts, (with_a, with_b), strict=True)
        if is_wanted and count is not None
    ]
    unit = "samples" if has_samples else "executed"
    return f"  ← hot {rank}: {' → '.join(known)} {unit}" if known else f"  ← difference {rank}"


def _line(listing: Listing, index: int) -> str:
    line = listing.lines[index]
    where = f"{PurePath(line.source[0]).name}:{line.source[1]}" if line.source else ""
    return f"{line.offset:#06x}  {line.text or f'??? {where}'.rstrip()}"


def moved_blocks(changes: Sequence[HotSpotChange]) -> Iterator[Block]:
    """The places whose waiting samples moved most."""
    if not changes:
        return
    yield Heading("waiting samples that moved")
    yield moved_table(changes[:_MOVED])
    if len(changes) > _MOVED:
        yield Line(f"and {len(changes) - _MOVED} more places: --json has all")


def moved_table(changes: Sequence[HotSpotChange], reason: str = "") -> Table:
    """A row a place: its samples of waiting warps on both sides, and the reasons that moved most.

    `reason` is the stall that these samples waited for, which is then not named.
    """
    places = [
        [Name(location.words) if location else "–" for location in (change.location_a, change.location_b)]
        for change in changes
    ]
    rows = [
        (
            a,
            b if a != b else "same",
            Name(change.text.strip()) if change.text else Gap("no text in the report"),
            count_words(change.a) or "–",
            count_words(change.b) or "–",
            _signed(change.change),
            _reasons(change, reason),
        )
        for (a, b), change in zip(places, changes, strict=True)
    ]
    head = ("A at", "B at", "code", "A", "B", "change", "" if reason else "by reason")
    return Table(head, rows, right=(3, 4, 5), wide=(1,))


def _reasons(change: HotSpotChange, reason: str) -> str:
    largest = [item for item in change.by_reason.items() if item[0] != reason][:_REASONS_NAMED]
    words = [f"{name} {_signed(count)}" for name, count in largest]
    return ", ".join([*words, *(["within counting noise"] if change.is_counting_noise else [])])


def _signed(count: float) -> str:
    if not round(count):
        return "±0"
    return f"{'+' if count > 0 else formatting.MINUS}{count_words(abs(count))}"
