"""The machine code of one launch: a heat map of its instructions, and where the samples fall."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import PurePath
from string import hexdigits

from profiler.evidence import formatting
from profiler.sass import hotspots
from profiler.sass.hotspots import HotSpot
from profiler.sass.listing import Listing
from profiler.store.rows import ResultInfo
from profiler.ui import markup
from profiler.ui.addresses import SHA256_DIGITS
from profiler.ui.data.named_code import CodeReport, NamedCode, function_labels
from profiler.ui.data.part_names import short_names
from profiler.ui.markup import Html
from profiler.ui.views import code_grid
from profiler.ui.views.code_grid import GridColumn

BY_LINE, BY_ADDRESS, BY_HEAT = ORDERS = ("line", "address", "hottest")
HOTTEST, KNOWN_LINES = "hottest", "lines"  # of counts; of what nobody ran
SASS_AND_SOURCE = ("sass", "source")
ROWS_A_PAGE = 6_000  # a listing of 5,000 lines stands whole
BINS = 160  # of the strip over the whole listing
REASONS_NAMED = 5
_NO_TEXT = "The report holds no SASS text (it prints ???): the counts are still shown at their places."
_NO_CODE = "the report holds no instructions; collect with --set full or --section SourceCounters"
_NO_COUNTS = (
    "The report holds the code and counts nothing per instruction: collect with --set full or "
    "--section SourceCounters."
)
_LOCATION = GridColumn("at", 98)
COUNT_COLUMNS = (
    GridColumn("samples", 64, right=True),
    GridColumn("waiting for", 196, wide=True),
    GridColumn("executed", 74, wide=True, right=True),
)
EXCESS_COLUMN = GridColumn("excess", 62, wide=True, right=True)  # shared-memory wavefronts over the ideal


def report_titles(reports: Mapping[str, CodeReport], optional: bool = False) -> dict[str, str]:
    """What the reports are called; with an empty choice first where one need not be chosen."""
    titles = {digits: report.title for digits, report in reports.items()}
    return {"": "none", **titles} if optional else titles


def launch_labels(launches: Mapping[str, ResultInfo]) -> dict[str, str]:
    """What the launches of a report are called, longest first."""
    names = short_names(launch.part for launch in launches.values())
    return {
        ordinal: f"{names[launches[ordinal].part]} · {formatting.quantity(launches[ordinal].duration_ns)}"
        for ordinal in _longest_first(launches)
    }


def default_launch(launches: Mapping[str, ResultInfo], other: ResultInfo | None) -> str | None:
    """The launch to open with: the longest of the other side's part or kernel where there is one."""
    order = _longest_first(launches)
    same_part = [ordinal for ordinal in order if other and launches[ordinal].part == other.part]
    same_kernel = [ordinal for ordinal in order if other and launches[ordinal].base_name == other.base_name]
    return next(iter((*same_part, *same_kernel, *order)), None)


def unknown_reports(in_address: Sequence[str], reports: Mapping[str, CodeReport]) -> list[Html]:
    """A line for each report that an address names and no run holds."""
    return [
        markup.error_box(f"There is no report {digits} here: import it, or choose another above.")
        for digits in in_address
        if digits and digits not in reports
    ]


def is_of_report(in_address: str) -> bool:
    """Whether an address means a report, by the first digits of its hash, rather than a version."""
    return len(in_address) == SHA256_DIGITS and set(in_address) <= set(hexdigits)


def unknown_launch(in_address: str, opened: str, launches: Mapping[str, ResultInfo], side: str) -> list[Html]:
    """A line where an address names a launch that its report does not have; another one is shown then."""
    if not in_address or in_address in launches:
        return []
    last = max(map(int, launches))
    words = f"Report {side} has no launch {in_address}: it has 0 to {last}. Launch {opened} is shown instead."
    return [markup.error_box(words)]


def no_launch(title: str) -> Html:
    """That a report has no launches in the index: for example because its version was wrong."""
    words = f"{title}: no launch of this report is kept, so there is no code to show"
    return markup.note(markup.state(words))


def without_code(code: Sequence[NamedCode]) -> list[Html]:
    """A line for each launch of which the report holds no instructions."""
    return [
        markup.note(markup.state(f"{side.version} {side.kernel}: {_NO_CODE}"))
        for side in code
        if not side.listing.lines
    ]


def no_text(listings: Sequence[Listing]) -> Html:
    """A line that says so where a report has no text for its instructions."""
    if all(listing.has_text for listing in listings):
        return Html("")
    return markup.note(markup.state(_NO_TEXT))


def without_counts(listings: Sequence[Listing]) -> Html:
    """What reports of launches lack beside their code: counts per instruction, or metrics left out."""
    lines = [_NO_COUNTS] if any(listing.lines and not listing.counts for listing in listings) else []
    left_out = {name: reason for listing in listings for name, reason in listing.left_out.items()}
    lines += [f"Left out: {name}: {reason}" for name, reason in left_out.items()]
    derived = {name: source for listing in listings for name, source in listing.derived.items()}
    lines += [f"Derived: {name}: {source}" for name, source in derived.items()]
    return markup.join((markup.note(markup.state(line)) for line in lines), "")


def how_to_measure(versions: Sequence[str]) -> list[Html]:
    """The command that measures counts by instruction of these versions; nothing without a version."""
    if not versions:
        return []
    command = f"profiler collect {' '.join(versions)} --full {','.join(versions)}"
    words = f"Counts by instruction are measured on a GPU: `{command}`"
    return [markup.note(markup.backticks_as_code(words))]


def views(listing: Listing, *, is_compiled: bool) -> tuple[str, ...]:
    """The views of one side: first the hottest places, of compiled code what is known by line."""
    if is_compiled:
        return (KNOWN_LINES, *SASS_AND_SOURCE) if listing.has_sources else SASS_AND_SOURCE
    return (HOTTEST, *SASS_AND_SOURCE) if listing.counts else SASS_AND_SOURCE


def orders(listing: Listing) -> tuple[str, ...]:
    """The possible orders: by source line needs line info, by heat needs counts."""
    possible = ORDERS if listing.has_sources else ORDERS[1:]
    return possible if listing.counts else possible[:-1]


def page_head(code: Sequence[NamedCode], context: Sequence[str]) -> Html:
    """The title: one kernel, or A → B."""
    kernels = list(dict.fromkeys(side.kernel for side in code))
    has_one_kernel = len(kernels) == 1
    names = [side.version if has_one_kernel else f"{side.version} {side.kernel}" for side in code]
    if len(names) == 2:
        labelled = zip("AB", names, strict=True)
        sides = (markup.join((markup.muted(label), markup.code(name))) for label, name in labelled)
        title = markup.join(sides, " → ")
    else:
        title = markup.join(map(markup.code, names))
    words = [*kernels, *dict.fromkeys(context)] if has_one_kernel else dict.fromkeys(context)
    return markup.page_head(title or "Code", markup.join(words, " · "))


def tab_title(code: Sequence[NamedCode]) -> str:
    """What the browser's tab calls the view: `Code of v2d_a → v2d_b`."""
    return f"Code of {' → '.join(side.version for side in code)}"


def strip(listing: Listing, spots: Sequence[HotSpot]) -> Html:
    """How many instructions and samples there are, what the warps waited for, what the report lacks."""
    samples = sum(spot.samples or 0 for spot in spots)
    parts: list[object] = [f"{code_grid.count(len(listing.lines))} instructions"]
    if len(listing.functions) > 1:
        parts.append(f"{len(listing.functions)} code regions")
    if hotspots.SAMPLES in listing.counts:
        parts.append(f"{code_grid.count(samples)} samples")
    for reason, count in list(hotspots.stall_totals(spots).items())[:REASONS_NAMED]:
        parts.append(markup.muted(f"{reason} {100 * count / samples:.0f} %"))
    if not listing.has_sources:
        parts.append(markup.muted("no line info: compile with -lineinfo"))
    elif not listing.texts:
        parts.append(markup.muted("no source text: collect with --import-source yes"))
    return markup.grey_strip(parts)


def heat_strip(spots: Sequence[HotSpot]) -> Html:
    """Where in the listing, from its first to its last instruction, the samples fall."""
    if len(spots) < 2 or not any(spot.samples for spot in spots):
        return Html("")
    # As wide for a short listing as for a long one: a bin holds many instructions, or one.
    bins = min(BINS, len(spots))
    edges = [index * len(spots) // bins for index in range(bins + 1)]
    counts = [sum(spot.samples or 0 for spot in spots[start:stop]) for start, stop in pairwise(edges)]
    largest = max(counts)
    cells = "".join(
        f'<i class="{code_grid.level(count, largest)}" title="{spots[start].location.words} to '
        f'{spots[stop - 1].location.words}: {code_grid.count(count)} samples"></i>'
        for (start, stop), count in zip(pairwise(edges), counts, strict=True)
    )
    return Html(f'<div class="k heat" role="img" aria-label="samples over the listing">{cells}</div>')


def ordered(listing: Listing, spots: Sequence[HotSpot], order: str, words: str) -> list[HotSpot | str]:
    """The instructions that contain every word, under heads: functions or source lines."""
    parts = words.lower().split()
    matches = [spot for spot in spots if all(part in _searched_text(listing, spot) for part in parts)]
    if order == BY_HEAT:
        return list(hotspots.hottest(matches, len(matches)))
    if order == BY_LINE and listing.has_sources:
        matches.sort(key=lambda spot: _line_order(listing, spot))
        return _under_heads(matches, lambda spot: _line_head(listing, spot))
    if len(listing.functions) < 2:
        return list(matches)
    labels = function_labels(listing.functions)
    return _under_heads(matches, lambda spot: labels[listing.functions[spot.location.function]])


def is_marked(listing: Listing, row: HotSpot | str, mark: str) -> bool:
    """Whether an address means this row by `mark`: `file.cu:12`, or `+0x01a0`."""
    if isinstance(row, str):
        return bool(mark) and row.startswith(f"{mark} ")
    return bool(mark) and mark in (row.location.words, source_words(listing, row))


def table(
    listing: Listing, rows: Sequence[HotSpot | str], window: code_grid.Window, order: str, mark: str = ""
) -> Html:
    """The heat map: one row per instruction, its counts before its text; from near the marked row on."""
    spots = [row for row in rows if isinstance(row, HotSpot)]
    if not spots:
        return markup.note("No instruction contains these words.")
    has_counts = bool(listing.counts)
    has_excess = any(spot.excess for spot in spots)
    has_source = listing.has_sources and order != BY_LINE
    columns = [_LOCATION, *COUNT_COLUMNS] if has_counts else [_LOCATION]
    columns += [EXCESS_COLUMN] * has_excess
    columns.append(GridColumn("SASS", 300, grows=True))
    columns += [GridColumn("source", 220, wide=True)] * has_source
    samples = code_grid.heat(spot.samples for spot in spots)
    executed = code_grid.heat(spot.executed for spot in spots)
    excess = code_grid.heat(spot.excess for spot in spots)
    lines, last_source = [], ""
    marks = [is_marked(listing, row, mark) for row in rows[window.start : window.stop]]
    for row, marked in zip(rows[window.start : window.stop], marks, strict=True):
        if isinstance(row, str):
            lines.append(code_grid.head(row, marked))
            continue
        source = source_words(listing, row)
        cells = [code_grid.cell(row.location.words)]
        if has_counts:
            cells.append(samples(row.samples))
            cells += [code_grid.cell(main_stall(row), "w m"), executed(row.executed, " w")]
        if has_excess:
            cells.append(excess(row.excess, " w"))
        cells.append(code_grid.instruction(row.text, source))
        if has_source:
            cells.append(code_grid.cell(source if source != last_source else "", "w m"))  # where it changes
            last_source = source
        lines.append(code_grid.row(cells, marked=marked))
    return code_grid.table(columns, lines, code_grid.rows_above(marks))


def source_words(listing: Listing, spot: HotSpot) -> str:
    """The file and line that an instruction comes from: `v2d.cu:120`; "" without line info."""
    source = listing.lines[spot.lines[0]].source
    return f"{PurePath(source[0]).name}:{source[1]}" if source else ""


def main_stall(spot: HotSpot) -> str:
    """The stall reason with most samples and its share of all samples there; "" where no warp waited."""
    if not spot.reasons:
        return ""
    reason = max(spot.reasons, key=lambda name: spot.reasons[name])
    return f"{reason} {100 * spot.reasons[reason] / (spot.samples or 1):.0f}\N{NO-BREAK SPACE}%"


def _longest_first(launches: Mapping[str, ResultInfo]) -> list[str]:
    return sorted(launches, key=lambda ordinal: -(launches[ordinal].duration_ns.number or 0))


def _under_heads(spots: Sequence[HotSpot], head_of: Callable[[HotSpot], str]) -> list[HotSpot | str]:
    """The rows with a head before each group of them, which says how many samples fell into it."""
    rows: list[HotSpot | str] = []
    for head, neighbours in groupby(spots, head_of):
        group = list(neighbours)
        samples = sum(spot.samples or 0 for spot in group)
        rows.append(
            head + (f"  · {code_grid.count(samples)} sample{'s' * (samples != 1)}" if samples else "")
        )
        rows += group
    return rows


def _line_order(listing: Listing, spot: HotSpot) -> tuple[bool, str, int, int]:
    """By file and line, those without line info last; within a line by address."""
    position = spot.lines[0]
    file, line = listing.lines[position].source or ("", 0)
    return not file, file, line, position


def _line_head(listing: Listing, spot: HotSpot) -> str:
    source = listing.lines[spot.lines[0]].source
    if source is None:
        return f"no line info: {listing.functions[spot.location.function]}"
    text = (listing.source_text(source) or "").strip()
    return f"{source_words(listing, spot)}  {text}"


def _searched_text(listing: Listing, spot: HotSpot) -> str:
    source, reasons = source_words(listing, spot), " ".join(spot.reasons)
    return f"{spot.location.words} {spot.text or ''} {source} {reasons}".lower()
