"""The source files that reports embed, as markup: one with what its lines cost, or two side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from profiler.reports import source_lines
from profiler.sass import CodeLocation, HotSpot, Listing, SourceRow, hotspots, side_by_side
from profiler.ui import markup
from profiler.ui.markup import Html
from profiler.ui.views import code_grid
from profiler.ui.views.code_listing import COUNTS, EXCESS, mostly

SITES = code_grid.Column("SASS", "56px", right=True)  # instructions of a line, where nothing was run
CONTEXT = 3  # lines kept around each change, and around each that instructions come from
LINES = ("used", "all")
WHOLE_FILE = 10**9
_NOTHING = HotSpot(CodeLocation(), None, ())  # what a line costs that no instruction comes from
_SIGNS = {"changed": "≠", "removed": "−", "added": "+"}


@dataclass(frozen=True)
class SourcePair:
    """One source file of either side, by its name."""

    name: str
    a: str | None  # the full name in the report
    b: str | None
    samples: float  # of both sides; instructions where nothing was run
    different: bool


def files(a: Listing, b: Listing | None = None) -> list[SourcePair]:
    """The source files that are embedded: those that differ first, then those with most samples."""
    sides = [_short_names(one) if one else {} for one in (a, b)]
    counts: dict[str, float] = {}
    for one, names in zip((a, b), sides, strict=True):
        for hot in hotspots.spots_by_line(one) if one else ():
            if key := names.get(hot.location.file or ""):
                cost = (hot.samples or 0) if one and one.counts else len(hot.lines)
                counts[key] = counts.get(key, 0) + cost
    named = [{short: full for full, short in names.items()} for names in sides]
    if b and not a.counts and not b.counts:
        _pair_kernels(named, counts)
    found = []
    for name in dict.fromkeys((*named[0], *named[1])):
        left, right = (side.get(name) for side in named)
        texts = [one.texts[full] for one, full in ((a, left), (b, right)) if one and full]
        different = b is not None and (len(texts) < 2 or texts[0] != texts[1])
        found.append(SourcePair(name, left, right, counts.get(name, 0), different))
    return sorted(found, key=lambda one: (not one.different, -one.samples, one.name))


def _pair_kernels(named: Sequence[dict[str, str]], counts: dict[str, float]) -> None:
    """Let the one .cu of A alone and the one of B alone stand beside each other: the versions' sources."""
    a, b = (
        [name for name in one if name.endswith(".cu") and name not in other]
        for one, other in (named, named[::-1])
    )
    if len(a) == len(b) == 1:
        both = f"{a[0]} → {b[0]}"
        counts[both] = sum(counts.get(name, 0) for name in (a[0], b[0]))
        for one, name in zip(named, (a[0], b[0]), strict=True):
            one[both] = one.pop(name)


def _short_names(listing: Listing) -> dict[str, str]:
    """The embedded files' full names with as much of each as tells it from the others."""
    ends: dict[str, list[str]] = {}
    for name in listing.texts:
        parts = PurePath(name).parts
        for length in range(1, len(parts) + 1):
            ends.setdefault("/".join(parts[-length:]), []).append(name)
    return {
        name: min((end for end, names in ends.items() if names == [name]), key=len, default=name)
        for name in listing.texts
    }


def section(found: Sequence[SourcePair], name: str, code: Sequence[Listing], *, whole: bool) -> Html:
    """The chosen file: its lines with their cost, or those of both sides; without one, why there is none."""
    pair = next((one for one in found if one.name == name), None)
    if pair is None:
        return markup.note(markup.state("no source text in the report: collect with --import-source yes"))
    caption = markup.section_head(pair.name, _caption(found, len(code)))
    if len(code) == 1:
        return Html(caption + _one(code[0], pair.a or "", whole))
    return Html(caption + _two(code[0], code[1], pair, WHOLE_FILE if whole else CONTEXT))


def _caption(found: Sequence[SourcePair], sides: int) -> str:
    """How many files there are, how many differ, and how many only one side embeds."""
    words = f"{len(found)} file{'s' * (len(found) != 1)} embedded"
    both = [one for one in found if one.a is not None and one.b is not None]
    changed = sum(one.different for one in both)
    told = [f"{changed or 'none'} of them differ{'s' * (changed == 1)}"] if both else []
    for side, lost in (
        ("A", [one for one in found if one.b is None]),
        ("B", [one for one in found if one.a is None]),
    ):
        told += [f"{len(lost)} in {side} alone"] if lost else []
    return ", ".join([words, *told]) if sides == 2 else words


def _one(listing: Listing, name: str, whole: bool) -> Html:
    """One source file with what its lines cost; of a file not whole the lines near instructions."""
    places = {hot.location.line: hot for hot in hotspots.spots_by_line(listing) if hot.location.file == name}
    samples, executed = (
        code_grid.heat(getattr(hot, what) for hot in places.values()) for what in ("samples", "executed")
    )
    sites = code_grid.heat(len(hot.lines) for hot in places.values())
    excess = any(hot.excess for hot in places.values())
    lost = code_grid.heat(hot.excess for hot in places.values())
    lines = []
    last = 0
    for number, text in enumerate(source_lines(listing.texts[name]), 1):
        hot = places.get(number, _NOTHING)
        if not whole and not any(near in places for near in range(number - CONTEXT, number + CONTEXT + 1)):
            continue
        if number > last + 1:
            lines.append(code_grid.head(_without(number - last - 1)))
        last = number
        cells = [code_grid.cell(str(number), "m r")]
        if listing.counts:
            cells += [samples(hot.samples), code_grid.cell(mostly(hot), "w m"), executed(hot.executed, " w")]
        else:
            cells.append(sites(len(hot.lines) or None))
        if excess:
            cells.append(lost(hot.excess, " w"))
        cells.append(code_grid.cell(text.expandtabs(4), "" if hot.lines else "m"))
        lines.append(code_grid.row(cells))
    counts = COUNTS if listing.counts else (SITES,)
    columns = [code_grid.Column("line", "48px"), *counts, *[EXCESS] * excess]
    return code_grid.table([*columns, code_grid.Column(PurePath(name).name, "minmax(300px,1fr)")], lines)


def _without(lines: int) -> str:
    return f"⋯ {code_grid.count(lines)} line{'s' * (lines != 1)} without instructions"


def _two(a: Listing, b: Listing, pair: SourcePair, context: int) -> Html:
    """Both texts of one file side by side, with the samples of each line, or its instructions."""
    texts = [one.texts.get(name or "", "") for one, name in ((a, pair.a), (b, pair.b))]
    if pair.a is None or pair.b is None:
        return _only(pair, a if pair.b is None else b)
    rows = side_by_side(texts[0], texts[1], context=context)
    places = [
        {hot.location.line: hot for hot in hotspots.spots_by_line(one) if hot.location.file == name}
        for one, name in ((a, pair.a), (b, pair.b))
    ]
    if all(row.kind == "gap" for row in rows):
        if context < WHOLE_FILE:
            return markup.note("No line differs.")
        rows = _used(texts[0], set(places[0]) | set(places[1]))
    counted = bool(a.counts or b.counts)
    amount = _samples if counted else _sites
    heat = code_grid.heat(amount(hot) for side in places for hot in side.values())
    lines = [_source_row(row, places, heat, amount) for row in rows]
    name = code_grid.Column(pair.name, "minmax(260px,1fr)")
    samples_column = COUNTS[0] if counted else SITES
    left, right = ([code_grid.Column(side, "44px"), samples_column, name] for side in "AB")
    return code_grid.table([*left, code_grid.BETWEEN, *right], lines)


def _used(text: str, used: set[int]) -> tuple[SourceRow, ...]:
    """A file that both sides share: the lines near those that instructions come from on either."""
    rows: list[SourceRow] = []
    last = 0
    for number, line in enumerate(source_lines(text), 1):
        if any(near in used for near in range(number - CONTEXT, number + CONTEXT + 1)):
            if number > last + 1:
                rows.append(SourceRow("gap", skipped=number - last - 1))
            rows.append(SourceRow("same", number, line, number, line))
            last = number
    return tuple(rows)


def _only(pair: SourcePair, holder: Listing) -> Html:
    """A file that one side embeds, with what its lines cost there; nobody knows what it is on the other."""
    here, there = "AB" if pair.b is None else "BA"
    words = f"{pair.name} is embedded in {here} alone: what {there} was built from is not in its report"
    if not holder.counts:
        words = f"no instruction of {there} comes from {pair.name}"
    return Html(markup.note(markup.state(words)) + _one(holder, pair.a or pair.b or "", False))


def _samples(hot: HotSpot) -> float | None:
    return hot.samples


def _sites(hot: HotSpot) -> float | None:
    return len(hot.lines) or None


def _source_row(
    row: SourceRow,
    places: Sequence[dict[int, HotSpot]],
    heat: code_grid.Heat,
    amount: Callable[[HotSpot], float | None],
) -> str:
    if row.kind == "gap":
        return code_grid.head(f"⋯ {code_grid.count(row.skipped)} equal line{'s' * (row.skipped != 1)}")
    cells = []
    for side, number, text in ((places[0], row.a_line, row.a), (places[1], row.b_line, row.b)):
        hot = side.get(number or 0, _NOTHING)
        cells += [
            code_grid.cell(str(number or ""), "m r"),
            heat(amount(hot)),
            code_grid.cell(text.expandtabs(4)),
        ]
    sign = _SIGNS.get(row.kind, "")
    cells.insert(len(cells) // 2, code_grid.sign(sign))
    return code_grid.row(cells, bool(sign))
