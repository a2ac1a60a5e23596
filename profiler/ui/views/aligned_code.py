"""Two listings: instruction beside instruction, with the counts of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profiler.sass.alignment import (
    CHANGED,
    EQUAL,
    ONLY_A,
    ONLY_B,
    RENAMED,
    UNCHANGED,
    UNREAD,
    AlignedRow,
    Alignment,
)
from profiler.sass.hotspots import HotSpot, spots_by_instruction
from profiler.sass.listing import Listing
from profiler.ui import markup
from profiler.ui.data.named_code import function_labels
from profiler.ui.markup import Html
from profiler.ui.views import code_grid
from profiler.ui.views.code_grid import Cell, GridColumn, Heat
from profiler.ui.views.code_listing import source_words

ROWS = ("differences", "all")
VIEWS = ("sass", "diff", "source")
ROWS_A_PAGE = 3_000
CONTEXT = 4  # equal rows around each difference
_SIGNS = {EQUAL: "", RENAMED: "≈", CHANGED: "≠", ONLY_A: "−", ONLY_B: "+"}
_BY_TEXT = "text"  # how rows are paired unless a report holds no text


def rows(alignment: Alignment, a: Listing, b: Listing, which: str, words: str) -> list[AlignedRow | str]:
    """The rows to show under a head for each function; a line counts what is left out between them."""
    parts = words.lower().split()
    labels = function_labels((*a.functions, *b.functions))
    result: list[AlignedRow | str] = []

    def fits(row: AlignedRow) -> bool:
        text = _text_of_both(row, a, b)
        return all(part in text for part in parts)

    for function in alignment.functions:
        if len(alignment.functions) > 1 or function.by != _BY_TEXT:
            names = [
                "no such function" if index is None else labels[side.functions[index]]
                for index, side in ((function.a, a), (function.b, b))
            ]
            by = "" if function.by == _BY_TEXT else f", paired by {function.by}"
            result.append(" → ".join(dict.fromkeys(names)) + by)
        stop = 0  # of what is in the result already
        for position in _positions_to_show(function.rows, which, fits):
            if position > stop:
                result.append(_left_out(function.rows[stop:position]))
            result.append(function.rows[position])
            stop = position + 1
        if stop < len(function.rows):
            result.append(_left_out(function.rows[stop:]))
    return result


def table(rows: Sequence[AlignedRow | str], a: Listing, b: Listing, window: code_grid.Window) -> Html:
    """Both listings, instruction beside instruction, with samples and executions where any are counted."""
    spots_a, spots_b = spots_by_instruction(a), spots_by_instruction(b)
    heats = None
    if a.counts or b.counts:
        # One scale for both sides, so that equal colours are equal counts.
        spots = (*spots_a, *spots_b)
        heats = (
            code_grid.heat(spot.samples for spot in spots),
            code_grid.heat(spot.executed for spot in spots),
        )
    lines = []
    for row in rows[window.start : window.stop]:
        if isinstance(row, str):
            lines.append(code_grid.head(row))
            continue
        left = _cells_of_side(a, None if row.a is None else spots_a[row.a], heats)
        right = _cells_of_side(b, None if row.b is None else spots_b[row.b], heats)
        cells = [*left, code_grid.sign(_SIGNS.get(row.kind, "?")), *right]
        lines.append(code_grid.row(cells, row.kind not in UNCHANGED))
    left_columns, right_columns = (_columns_of_side(label, heats is not None) for label in "AB")
    return code_grid.table([*left_columns, code_grid.BETWEEN, *right_columns], lines)


def caption(alignment: Alignment) -> Html:
    """How the two compare, in one line."""
    counts = code_grid.row_counts(alignment)
    if alignment.counts[UNREAD]:
        words = f"{counts}: without text it is unknown whether they are equal"
        return markup.grey_strip(("Instructions", words))
    if not alignment.different:
        return markup.grey_strip(("No difference", f"{counts}; addresses of code are left out"))
    if alignment.counts[RENAMED]:
        counts += f"; {_about_renamed(alignment)}"
    return markup.grey_strip(("Instructions", counts))


def _about_renamed(alignment: Alignment) -> str:
    """What ≈ says of a row, and what it leaves open."""
    words = "≈ renamed: only register numbers differ"
    if not alignment.reassigned:
        return f"{words}, one to one"
    count = code_grid.count(alignment.reassigned)
    return f"{words}; {count} do not fit one consistent register mapping: they may read other values"


def _columns_of_side(label: str, has_counts: bool) -> list[GridColumn]:
    counts = [GridColumn("samples", 64, right=True), GridColumn("executed", 70, wide=True, right=True)]
    return [
        GridColumn(f"{label} at", 78),
        *(counts if has_counts else ()),
        GridColumn(label, 210, grows=True),
    ]


def _cells_of_side(listing: Listing, spot: HotSpot | None, heats: tuple[Heat, Heat] | None) -> list[Cell]:
    if spot is None:
        return [code_grid.cell("")] * (4 if heats else 2)
    counts = [heats[0](spot.samples), heats[1](spot.executed, " w")] if heats else []
    text = code_grid.instruction(spot.text, source_words(listing, spot))
    return [code_grid.cell(f"+{spot.location.offset:#06x}", "m"), *counts, text]


def _left_out(skipped: Sequence[AlignedRow]) -> str:
    renamed = sum(row.kind == RENAMED for row in skipped)
    if all(row.kind == UNREAD for row in skipped):
        return f"⋯ {_count_rows(len(skipped))} paired by place"
    words = []
    if same := len(skipped) - renamed:
        words.append(f"{_count_rows(same)} that {'does' if same == 1 else 'do'} not differ")
    if renamed:
        words.append(f"{_count_rows(renamed)} renamed")
    return f"⋯ {', '.join(words)}"


def _count_rows(count: int) -> str:
    return "1 row" if count == 1 else f"{code_grid.count(count)} rows"


def _positions_to_show(
    rows: Sequence[AlignedRow], which: str, fits: Callable[[AlignedRow], bool]
) -> list[int]:
    """Of the rows that fit the words: all, or those that differ, with the rows near them."""
    if which == "all":
        return [position for position, row in enumerate(rows) if fits(row)]
    different = [position for position, row in enumerate(rows) if row.kind not in UNCHANGED and fits(row)]
    near = {position + step for position in different for step in range(-CONTEXT, CONTEXT + 1)}
    return sorted(position for position in near if 0 <= position < len(rows))


def _text_of_both(row: AlignedRow, a: Listing, b: Listing) -> str:
    texts = [
        None if position is None else listing.lines[position].text
        for position, listing in ((row.a, a), (row.b, b))
    ]
    return " ".join(filter(None, texts)).lower()
