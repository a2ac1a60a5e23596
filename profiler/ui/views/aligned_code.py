"""Two listings as markup: instruction beside instruction, with the counts of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profiler.sass import AlignedRow, Alignment, HotSpot, Listing, alignment, hotspots
from profiler.ui import markup
from profiler.ui.markup import Html
from profiler.ui.views import code_grid
from profiler.ui.views.code_listing import function_labels, source_words

ROWS = ("differences", "all")
VIEWS = ("sass", "diff", "source")
PAGE = 3_000
CONTEXT = 4  # equal rows kept around each difference
_SIGNS = {alignment.EQUAL: "", alignment.CHANGED: "≠", alignment.ONLY_A: "−", alignment.ONLY_B: "+"}


def rows(found: Alignment, a: Listing, b: Listing, which: str, words: str) -> list[AlignedRow | str]:
    """The rows to show under a head for each function; what is left out between them is counted in a line."""
    wanted = words.lower().split()
    called = function_labels((*a.functions, *b.functions))
    shown: list[AlignedRow | str] = []
    for one in found.functions:
        names = [None if at is None else called[side.functions[at]] for at, side in ((one.a, a), (one.b, b))]
        kept = _kept(one.rows, which, lambda row: all(w in _both_texts(row, a, b) for w in wanted))
        if len(found.functions) > 1 or one.by != "text":
            by = "" if one.by == "text" else f", paired by {one.by}"
            shown.append(" → ".join(dict.fromkeys(name or "no such function" for name in names)) + by)
        last = 0
        for at in kept:
            if at > last:
                shown.append(_left_out(one.rows[last:at]))
            shown.append(one.rows[at])
            last = at + 1
        if last < len(one.rows):
            shown.append(_left_out(one.rows[last:]))
    return shown


def table(rows: Sequence[AlignedRow | str], a: Listing, b: Listing, shown: code_grid.Window) -> Html:
    """Both listings, instruction beside instruction, with samples and executions where any are counted."""
    places = [hotspots.spots_by_instruction(one) for one in (a, b)]
    both = [hot for side in places for hot in side]
    samples, executed = (
        code_grid.heat(hot.samples for hot in both),
        code_grid.heat(hot.executed for hot in both),
    )
    heats = (samples, executed) if a.counts or b.counts else None
    lines = []
    for row in rows[shown.start : shown.stop]:
        if isinstance(row, str):
            lines.append(code_grid.head(row))
            continue
        cells = []
        for listing, side, at in zip((a, b), places, (row.a, row.b), strict=True):
            cells += _half(listing, None if at is None else side[at], heats)
        cells.insert(len(cells) // 2, code_grid.sign(_SIGNS.get(row.kind, "?")))
        lines.append(code_grid.row(cells, row.kind not in (alignment.EQUAL, alignment.UNREAD)))
    columns = [column for side in "AB" for column in _columns(side, heats is not None)]
    columns.insert(len(columns) // 2, code_grid.BETWEEN)
    return code_grid.table(columns, lines)


def _columns(side: str, counted: bool) -> list[code_grid.Column]:
    counts = [
        code_grid.Column("samples", "64px", right=True),
        code_grid.Column("executed", "70px", wide=True, right=True),
    ]
    return [
        code_grid.Column(f"{side} at", "78px"),
        *(counts if counted else ()),
        code_grid.Column(side, "minmax(210px,1fr)"),
    ]


def caption(found: Alignment) -> Html:
    """How the two compare, in one line."""
    counts = found.counts
    told = ", ".join(f"{code_grid.count(count)} {kind}" for kind, count in counts.items() if count)
    if counts[alignment.UNREAD]:
        told += ": without text nobody knows whether they are equal"
    elif not found.different:
        return markup.grey_strip(("No difference", f"{told}; addresses of code are left out"))
    return markup.grey_strip(("Instructions", told))


def _half(
    listing: Listing, hot: HotSpot | None, heats: tuple[code_grid.Heat, code_grid.Heat] | None
) -> list[code_grid.Cell]:
    if hot is None:
        return [code_grid.cell("")] * (4 if heats else 2)
    counts = [heats[0](hot.samples), heats[1](hot.executed, " w")] if heats else []
    text = code_grid.text(hot.text, source_words(listing, hot))
    return [code_grid.cell(f"+{hot.location.offset:#06x}", "m"), *counts, text]


def _left_out(skipped: Sequence[AlignedRow]) -> str:
    unread = all(row.kind == alignment.UNREAD for row in skipped)
    return f"⋯ {code_grid.count(len(skipped))} rows " + (
        "paired by place" if unread else "that do not differ"
    )


def _kept(rows: Sequence[AlignedRow], which: str, fits: Callable[[AlignedRow], bool]) -> list[int]:
    """Positions of the rows to show: those near a difference, or all; of them those that fit the words."""
    quiet = (alignment.EQUAL, alignment.UNREAD)
    if which == "all":
        return [at for at, row in enumerate(rows) if fits(row)]
    hits = [at for at, row in enumerate(rows) if row.kind not in quiet and fits(row)]
    near = {at + step for at in hits for step in range(-CONTEXT, CONTEXT + 1)}
    return sorted(at for at in near if 0 <= at < len(rows))


def _both_texts(row: AlignedRow, a: Listing, b: Listing) -> str:
    texts = [None if at is None else one.lines[at].text for at, one in ((row.a, a), (row.b, b))]
    return " ".join(filter(None, texts)).lower()
