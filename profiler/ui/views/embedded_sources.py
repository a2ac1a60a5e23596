"""The source files that reports embed: one with what its lines cost, or two side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from profiler.reports.source_text import source_lines
from profiler.sass.hotspots import CodeLocation, HotSpot, spots_by_line
from profiler.sass.listing import Listing
from profiler.sass.source_diff import SourceRow, side_by_side
from profiler.ui import markup
from profiler.ui.markup import Html
from profiler.ui.views import code_grid
from profiler.ui.views.code_grid import Cell, GridColumn
from profiler.ui.views.code_listing import COUNT_COLUMNS, EXCESS_COLUMN, main_stall

CONTEXT = 3  # lines kept around each change, and around each that instructions come from
LINES = ("used", "all")
_SITES_COLUMN = GridColumn("SASS", 56, right=True)  # instructions of a line, where nothing was run
_NO_SPOT = HotSpot(CodeLocation(), None, ())  # what a line costs that no instruction comes from
_SIGNS = {"changed": "≠", "removed": "−", "added": "+", "flag": "Δ"}


@dataclass(frozen=True)
class SourcePair:
    """One source file of either side, by its name."""

    name: str
    a: str | None  # the full name in the report
    b: str | None
    cost: float  # samples of both sides; instructions where nothing was run
    different: bool


def files(a: Listing, b: Listing | None = None) -> list[SourcePair]:
    """The source files that are embedded: those that differ first, then those with most samples."""
    short_a, short_b = _short_names(a), _short_names(b) if b else {}
    costs = _costs(a, short_a)
    for name, cost in (_costs(b, short_b) if b else {}).items():
        costs[name] = costs.get(name, 0) + cost
    full_a, full_b = ({short: full for full, short in names.items()} for names in (short_a, short_b))
    if b and not a.counts and not b.counts:
        _pair_kernel_sources(full_a, full_b, costs)
    pairs = []
    for name in dict.fromkeys((*full_a, *full_b)):
        in_a, in_b = full_a.get(name), full_b.get(name)
        text_a = a.texts[in_a] if in_a else None
        text_b = b.texts[in_b] if b and in_b else None
        different = b is not None and (text_a is None or text_b is None or text_a != text_b)
        pairs.append(SourcePair(name, in_a, in_b, costs.get(name, 0), different))
    return sorted(pairs, key=lambda pair: (not pair.different, -pair.cost, pair.name))


def _costs(listing: Listing, short_names: Mapping[str, str]) -> dict[str, float]:
    """The samples of each file by its short name; its instructions where nothing was run."""
    costs: dict[str, float] = {}
    for spot in spots_by_line(listing):
        if name := short_names.get(spot.location.file or ""):
            cost = (spot.samples or 0) if listing.counts else len(spot.lines)
            costs[name] = costs.get(name, 0) + cost
    return costs


def _pair_kernel_sources(a: dict[str, str], b: dict[str, str], costs: dict[str, float]) -> None:
    """Let the one .cu of A alone and the one of B alone stand beside each other: the versions' sources."""
    only_a = [name for name in a if name.endswith(".cu") and name not in b]
    only_b = [name for name in b if name.endswith(".cu") and name not in a]
    if len(only_a) == len(only_b) == 1:
        name_a, name_b = only_a[0], only_b[0]
        pair_name = f"{name_a} → {name_b}"
        costs[pair_name] = costs.get(name_a, 0) + costs.get(name_b, 0)
        a[pair_name], b[pair_name] = a.pop(name_a), b.pop(name_b)


def _short_names(listing: Listing) -> dict[str, str]:
    """The embedded files' full names with as much of each as tells it from the others."""
    full_names_by_ending: dict[str, list[str]] = {}
    for name in listing.texts:
        parts = PurePath(name).parts
        for length in range(1, len(parts) + 1):
            full_names_by_ending.setdefault("/".join(parts[-length:]), []).append(name)
    return {
        name: min(
            (ending for ending, names in full_names_by_ending.items() if names == [name]),
            key=len,
            default=name,
        )
        for name in listing.texts
    }


def section(
    pairs: Sequence[SourcePair], name: str, listings: Sequence[Listing], *, whole: bool, mark: int = 0
) -> Html:
    """The chosen file: its lines with their cost, or those of both sides; without one, why there is none.

    Of one side it begins near the line that is marked.
    """
    pair = next((pair for pair in pairs if pair.name == name), None)
    if pair is None:
        return markup.note(markup.state("no source text in the report: collect with --import-source yes"))
    head = markup.section_head(pair.name, _caption(pairs, len(listings)))
    if len(listings) == 1:
        return Html(head + _one_file(listings[0], pair.a or "", whole, mark))
    return Html(head + _two_files(listings[0], listings[1], pair, whole))


def _caption(pairs: Sequence[SourcePair], sides: int) -> str:
    """How many files there are, how many differ, and how many only one side embeds."""
    words = [f"{len(pairs)} file{'s' * (len(pairs) != 1)} embedded"]
    if sides == 1:
        return words[0]
    in_both = [pair for pair in pairs if pair.a is not None and pair.b is not None]
    if in_both:
        changed = sum(pair.different for pair in in_both)
        words.append(f"{changed or 'none'} of them differ{'s' * (changed == 1)}")
    only_a = sum(pair.b is None for pair in pairs)
    only_b = sum(pair.a is None for pair in pairs)
    words += [f"{count} only in {label}" for label, count in (("A", only_a), ("B", only_b)) if count]
    return ", ".join(words)


def _one_file(listing: Listing, name: str, whole: bool, mark: int = 0) -> Html:
    """One source file with what its lines cost; of a file not whole the lines near instructions."""
    spots = _spots_of_file(listing, name)
    has_excess = any(spot.excess for spot in spots.values())
    samples = code_grid.heat(spot.samples for spot in spots.values())
    executed = code_grid.heat(spot.executed for spot in spots.values())
    sites = code_grid.heat(len(spot.lines) for spot in spots.values())
    excess = code_grid.heat(spot.excess for spot in spots.values())
    lines = []
    marks = []
    last = 0
    for number, text in enumerate(source_lines(listing.texts[name]), 1):
        if not whole and number != mark and not _is_near(number, spots):
            continue
        if number > last + 1:
            lines.append(code_grid.head(_lines_without_code(number - last - 1)))
            marks.append(False)
        last = number
        spot = spots.get(number, _NO_SPOT)
        cells = [code_grid.cell(str(number), "m r")]
        if listing.counts:
            cells.append(samples(spot.samples))
            cells += [code_grid.cell(main_stall(spot), "w m"), executed(spot.executed, " w")]
        else:
            cells.append(sites(len(spot.lines) or None))
        if has_excess:
            cells.append(excess(spot.excess, " w"))
        cells.append(code_grid.cell(text.expandtabs(4), "" if spot.lines else "m"))
        lines.append(code_grid.row(cells, marked=number == mark))
        marks.append(number == mark)
    counts = COUNT_COLUMNS if listing.counts else (_SITES_COLUMN,)
    columns = [GridColumn("line", 48), *counts, *[EXCESS_COLUMN] * has_excess]
    text_column = GridColumn(PurePath(name).name, 300, grows=True)
    return code_grid.table([*columns, text_column], lines, code_grid.rows_above(marks))


def _spots_of_file(listing: Listing, name: str | None) -> dict[int | None, HotSpot]:
    """What the lines of a file cost, by line number."""
    return {spot.location.line: spot for spot in spots_by_line(listing) if spot.location.file == name}


def _is_near(number: int, spots: Mapping[int | None, HotSpot]) -> bool:
    return any(near in spots for near in range(number - CONTEXT, number + CONTEXT + 1))


def _lines_without_code(lines: int) -> str:
    return f"⋯ {code_grid.count(lines)} line{'s' * (lines != 1)} without instructions"


def _two_files(a: Listing, b: Listing, pair: SourcePair, whole: bool) -> Html:
    """Both texts of one file side by side, with the samples of each line, or its instructions."""
    if pair.a is None or pair.b is None:
        return _file_of_one_side(pair, a if pair.b is None else b)
    text_a, text_b = a.texts[pair.a], b.texts[pair.b]
    spots_a, spots_b = _spots_of_file(a, pair.a), _spots_of_file(b, pair.b)
    rows = side_by_side(text_a, text_b, context=None if whole else CONTEXT)
    if all(row.kind == "gap" for row in rows):
        if not whole:
            return markup.note("No line differs.")
        rows = _rows_near_code(text_a, {**spots_a, **spots_b})
    has_counts = bool(a.counts or b.counts)
    amount = _samples if has_counts else _sites
    heat = code_grid.heat(amount(spot) for spot in (*spots_a.values(), *spots_b.values()))

    def cost(is_b: bool, line: int | None) -> Cell:
        return heat(amount((spots_b if is_b else spots_a).get(line or 0, _NO_SPOT)))

    return grid(rows, (pair.name, pair.name), (COUNT_COLUMNS[0] if has_counts else _SITES_COLUMN, cost))


def grid(
    rows: Sequence[SourceRow],
    names: tuple[str, str],
    cost: tuple[GridColumn, Callable[[bool, int | None], Cell]] | None = None,
) -> Html:
    """Two sources side by side, line beside line; lines that a side does not compile are grey.

    `cost` is a column of either side with its cell, by whether it is B and by the line's number.
    """
    lines = []
    for row in rows:
        if row.kind == "gap":
            words = f"⋯ {code_grid.count(row.skipped)} equal line{'s' * (row.skipped != 1)}"
            lines.append(code_grid.head(words))
            continue
        left, right = (
            [
                code_grid.cell(str(number or ""), "m r"),
                *([cost[1](is_b, number)] if cost else ()),
                code_grid.cell(text.expandtabs(4), "" if is_compiled else "m"),
            ]
            for is_b, number, text, is_compiled in (
                (False, row.a_line, row.a, row.a_compiled),
                (True, row.b_line, row.b, row.b_compiled),
            )
        )
        sign = _SIGNS.get(row.kind, "")
        lines.append(code_grid.row([*left, code_grid.sign(sign), *right], bool(sign)))
    costs = [cost[0]] if cost else []
    left_columns, right_columns = (
        [GridColumn(label, 44), *costs, GridColumn(name, 260, grows=True)]
        for label, name in zip("AB", names, strict=True)
    )
    return code_grid.table([*left_columns, code_grid.BETWEEN, *right_columns], lines)


def _rows_near_code(text: str, spots: Mapping[int | None, HotSpot]) -> tuple[SourceRow, ...]:
    """A file that both sides share: the lines near those that instructions come from on either."""
    rows: list[SourceRow] = []
    last = 0
    for number, line in enumerate(source_lines(text), 1):
        if _is_near(number, spots):
            if number > last + 1:
                rows.append(SourceRow("gap", skipped=number - last - 1))
            rows.append(SourceRow("same", number, line, number, line))
            last = number
    return tuple(rows)


def _file_of_one_side(pair: SourcePair, listing: Listing) -> Html:
    """A file that only one side embeds, with what its lines cost there."""
    here, other = "AB" if pair.b is None else "BA"
    words = f"{pair.name} is embedded only in {here}: what {other} was built from is not in its report"
    if not listing.counts:
        words = f"no instruction of {other} comes from {pair.name}"
    return Html(markup.note(markup.state(words)) + _one_file(listing, pair.a or pair.b or "", whole=False))


def _samples(spot: HotSpot) -> float | None:
    return spot.samples


def _sites(spot: HotSpot) -> float | None:
    return len(spot.lines) or None
