"""The hottest lines and instructions of one kernel in one table; of compiled code what is known by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from profiler.model.stored_predictions import StoredPrediction
from profiler.sass import hotspots
from profiler.sass.hotspots import CodeLocation, HotSpot
from profiler.sass.hottest_places import HotPlace, StaticLine
from profiler.sass.listing import Listing
from profiler.ui import markup
from profiler.ui.addresses import CompiledCode, LaunchCode
from profiler.ui.markup import Html
from profiler.ui.views import code_grid
from profiler.ui.views.code_grid import Cell, GridColumn
from profiler.ui.views.code_listing import main_stall, source_words

ROWS_A_PAGE = 400
BY_TIME, BY_CONFLICTS = ORDERS = ("modelled time", "conflicts")  # of code that nobody ran
_TO_SASS = "SASS\N{NO-BREAK SPACE}›"
_MISSING = "Not available for code that was not run: samples, stall reasons, executions, excess sectors."
_NO_TRAFFIC = (
    "no modelled traffic of this version is kept; bank conflicts by line come from "
    "`profiler static --check {}`"
)


def _wavefronts(spot: HotSpot) -> float | None:
    return spot.excess


def _sectors(spot: HotSpot) -> float | None:
    return spot.excess_sectors


_EXCESS = (
    ("excess wavefronts", hotspots.EXCESS, _wavefronts),
    ("excess sectors", hotspots.EXCESS_SECTORS, _sectors),
)
_TRAFFIC_COLUMNS = (
    GridColumn("conflicts", 78, right=True),
    GridColumn("wavefronts", 84, right=True),
    GridColumn("ideal", 64, wide=True, right=True),
    GridColumn("access", 90, wide=True),
)


class CodeLinks:
    """The ways from a place to the source and to the machine code there."""

    def __init__(self, address: Callable[[str], LaunchCode | CompiledCode], files: Mapping[str, str]) -> None:
        self._address = address
        self._files = files  # what the page calls each embedded file, by its full name

    def source(self, location: CodeLocation) -> str:
        """The line in its file; "" where that is not embedded."""
        if location.file is None or location.file not in self._files:
            return ""
        address = self._address("source")
        return address.at(file=self._files[location.file], mark=str(location.line))

    def sass(self, words: str) -> str:
        """The instructions of a line, or one instruction, by `file.cu:12` or `+0x01a0`."""
        rows = "address" if words.startswith(("+", "[")) else "line"
        return self._address("sass").at(rows=rows, mark=words)


def measured(
    listing: Listing, places: Sequence[HotPlace], window: code_grid.Window, links: CodeLinks
) -> Html:
    """A row a place: where, how many samples, what they wait for, what it costs, and its code."""
    if not places:
        return markup.note("No place has any, or none contains these words.")
    excess = [(head, amount) for head, name, amount in _EXCESS if name in listing.counts]
    columns = [
        GridColumn("at", 190),
        GridColumn("samples", 64, right=True),
        GridColumn("share", 58, right=True),
        GridColumn("waits for", 190, wide=True),
        *(GridColumn(head, 124, wide=True, right=True) for head, _ in excess),
        GridColumn("executed", 74, wide=True, right=True),
        GridColumn("code", 280, grows=True, below=True),
        GridColumn("", 76, wide=True),
    ]
    spots = [place.spot for place in places]
    samples = code_grid.heat(spot.samples for spot in spots)
    executed = code_grid.heat(spot.executed for spot in spots)
    heats = [code_grid.heat(amount(spot) for spot in spots) for _, amount in excess]
    lines = []
    for place in places[window.start : window.stop]:
        spot = place.spot
        cells = [
            _place_cell(listing, spot, links, is_part=place.is_part),
            samples(spot.samples),
            ("r m", "" if place.share is None else f"{100 * place.share:.1f}\N{NO-BREAK SPACE}%"),
            code_grid.cell(main_stall(spot), "w m"),
            *(heat(amount(spot), " w") for heat, (_, amount) in zip(heats, excess, strict=True)),
            executed(spot.executed, " w"),
            _code_cell(listing, spot, is_part=place.is_part),
            ("w m", "" if place.is_part else markup.link(links.sass(spot.location.words), _TO_SASS)),
        ]
        lines.append(code_grid.row(cells))
    return code_grid.table(columns, lines)


def static(listing: Listing, lines: Sequence[StaticLine], window: code_grid.Window, links: CodeLinks) -> Html:
    """A row a source line: modelled conflicts and wavefronts, instructions of the machine code, its text."""
    if not lines:
        return markup.note("No line contains these words.")
    has_traffic = any(line.wavefronts is not None for line in lines)
    has_times = any(line.time_share is not None for line in lines)
    columns = [
        GridColumn("at", 150),
        *([GridColumn("modelled time", 100, right=True)] if has_times else ()),
        *(_TRAFFIC_COLUMNS if has_traffic else ()),
        GridColumn("SASS", 60, right=True, wide=has_traffic),
        GridColumn("code", 280, grows=True, below=True),
        GridColumn("", 76, wide=True),
    ]
    conflicts = code_grid.heat(line.conflicts for line in lines)
    wavefronts = code_grid.heat(line.wavefronts for line in lines)
    sites = code_grid.heat(line.instructions or None for line in lines)
    times = code_grid.heat(None if line.time_share is None else 100 * line.time_share for line in lines)
    rows = []
    for line in lines[window.start : window.stop]:
        words = line.location.words
        text = line.text or ""
        traffic: list[Cell] = []
        if has_traffic:
            ideal = "" if line.ideal is None else code_grid.count(line.ideal)
            traffic = [
                conflicts(line.conflicts),
                wavefronts(line.wavefronts),
                ("r w", ideal),
                code_grid.cell(", ".join(line.kinds), "w m"),
            ]
        rows.append(
            code_grid.row(
                [
                    ("", _linked(words, links.source(line.location))),
                    *([_time_cell(line, times)] if has_times else ()),
                    *traffic,
                    sites(line.instructions or None, " w" * has_traffic),
                    code_grid.cell(text.strip(), "below"),
                    ("w m", markup.link(links.sass(words), _TO_SASS) if line.instructions else ""),
                ]
            )
        )
    return code_grid.table(columns, rows)


def static_notes(version: str, workload: str, *, has_traffic: bool) -> list[Html]:
    """What the numbers are, what is not known, and where what is missing comes from."""
    badge = markup.join((markup.evidence_badge("static"), "instructions of the machine code"))
    if not has_traffic:
        short = version.rpartition("/")[2]
        command = markup.backticks_as_code(_NO_TRAFFIC.format(short))
        return [markup.note(badge), markup.note(markup.state(command)), markup.note(markup.state(_MISSING))]
    model = markup.join(
        (
            markup.evidence_badge("modelled"),
            f"wavefronts of shared memory on {workload}, by the model of the banks",
        )
    )
    return [markup.note(markup.join((model, badge), " · ")), markup.note(markup.state(_MISSING))]


def _time_cell(line: StaticLine, times: code_grid.Heat) -> Cell:
    """The line's share of the modelled time."""
    if line.time_share is None:
        return "r", ""
    css, _ = times(100 * line.time_share)
    return css, f"{100 * line.time_share:.1f}\N{NO-BREAK SPACE}%"


def time_note(prediction: StoredPrediction, note: str) -> Html:
    """What the shares of modelled time are of."""
    words = (
        f"share of the time that warps spend, {prediction.workload} on {prediction.gpu}: an SM simulated "
        f"from the machine code and counts of a run on the CPU. {note}"
    )
    return markup.note(markup.join((markup.evidence_badge("modelled"), words)))


def without_excess(listing: Listing) -> Html:
    """Which of the excess counts the report lacks; nothing where it has both."""
    lacking = [head for head, name, _ in _EXCESS if name not in listing.counts]
    if not lacking:
        return Html("")
    words = f"{' and '.join(lacking)}: not collected; --set full or --section SourceCounters has them"
    return markup.note(markup.state(words))


def _place_cell(listing: Listing, spot: HotSpot, links: CodeLinks, *, is_part: bool) -> Cell:
    words = spot.location.words
    href = links.sass(words) if spot.location.file is None else links.source(spot.location)
    return ("part" if is_part else "", _linked(words, href))


def _linked(words: str, href: str) -> Html:
    return markup.link(href, words) if href else markup.escaped(words)


def _code_cell(listing: Listing, spot: HotSpot, *, is_part: bool) -> Cell:
    if spot.location.file is None:
        css, text = code_grid.instruction(spot.text, source_words(listing, spot))
        return f"{css} below{' part' * is_part}".strip(), text
    return code_grid.cell((spot.text or "").strip(), "below")
