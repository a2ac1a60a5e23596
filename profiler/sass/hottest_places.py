"""The hottest lines and instructions over all files of a listing; what is known by line of code not run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from profiler.sass.hotspots import CodeLocation, HotSpot, spots_by_instruction, spots_by_line
from profiler.sass.listing import FileLine, Listing
from profiler.sass.source_diff import TrafficRow

LINES_AND_INSTRUCTIONS, LINES, INSTRUCTIONS = KINDS = ("lines and instructions", "lines", "instructions")
_PARTS_SHOWN = 3  # instructions under their line
_LEAST_PART = 0.05  # of its line's amount: less is no hot instruction


def _samples(spot: HotSpot) -> float | None:
    return spot.samples


def _executed(spot: HotSpot) -> float | None:
    return spot.executed


def _wavefronts(spot: HotSpot) -> float | None:
    return spot.excess


def _sectors(spot: HotSpot) -> float | None:
    return spot.excess_sectors


# What the places can be ordered by.
AMOUNTS: Mapping[str, Callable[[HotSpot], float | None]] = {
    "samples": _samples,
    "excess wavefronts": _wavefronts,
    "excess sectors": _sectors,
    "executed": _executed,
}


@dataclass(frozen=True)
class HotPlace:
    """A line or instruction with its share of all samples of the listing; None where nothing was sampled."""

    spot: HotSpot
    share: float | None
    is_part: bool = False  # an instruction of the line above it


@dataclass(frozen=True)
class StaticLine:
    """What is known of a line without a GPU. Wavefronts are modelled, None where no traffic is known."""

    location: CodeLocation
    text: str | None
    instructions: int  # places in the machine code, not how often they run
    kinds: tuple[str, ...] = ()  # load, store
    requests: int | None = None
    wavefronts: int | None = None
    ideal: int | None = None
    time_share: float | None = None  # of the launch's modelled time, from 0 to 1

    @property
    def conflicts(self) -> int | None:
        """Wavefronts over the ideal."""
        return None if self.wavefronts is None or self.ideal is None else self.wavefronts - self.ideal


def present_amounts(spots: Iterable[HotSpot]) -> tuple[str, ...]:
    """Of AMOUNTS those that any place has more than 0 of."""
    spots = list(spots)
    return tuple(name for name, amount in AMOUNTS.items() if any(amount(spot) for spot in spots))


def hot_places(
    listing: Listing,
    kind: str = LINES_AND_INSTRUCTIONS,
    order: str = "samples",
    words: str = "",
    spots: Sequence[HotSpot] | None = None,
) -> tuple[HotPlace, ...]:
    """The places with most of the amount that `order` names, of all files; those with none of it left out.

    With lines and instructions a line is followed by its hottest instructions. Without line info there are
    instructions alone. `words`: all must be in a place's location, text or stall reasons. `spots` are those
    by instruction, where the caller has them already.
    """
    amount = AMOUNTS[order]
    instructions = spots_by_instruction(listing) if spots is None else spots
    total = sum(spot.samples or 0.0 for spot in instructions)
    is_by_line = kind != INSTRUCTIONS and listing.has_sources
    parts = words.lower().split()
    hot = [spot for spot in (spots_by_line(listing) if is_by_line else instructions) if amount(spot)]
    hot = [spot for spot in hot if all(part in _searched(listing, spot) for part in parts)]
    hot.sort(key=lambda spot: (-(amount(spot) or 0.0), -(spot.samples or 0.0)))
    places = []
    for spot in hot:
        places.append(_place(spot, total))
        if kind == LINES_AND_INSTRUCTIONS and spot.location.file is not None:
            own = sorted((instructions[at] for at in spot.lines), key=lambda part: -(amount(part) or 0.0))
            least = _LEAST_PART * (amount(spot) or 0.0)
            hottest = [part for part in own if (amount(part) or 0.0) > least][:_PARTS_SHOWN]
            places += [_place(part, total, is_part=True) for part in hottest]
    return tuple(places)


def static_lines(
    listing: Listing,
    traffic: Sequence[TrafficRow] = (),
    words: str = "",
    times: Mapping[FileLine, float] | None = None,
    *,
    by_time: bool = True,
) -> tuple[StaticLine, ...]:
    """Every source line with instructions or traffic, by its modelled time where that is known and wanted.

    Else most conflicts first, then wavefronts, instructions. A file of the traffic or the times (shares by
    line) is that of the listing with the same name; the folders of two machines differ.
    `words`: all must be in a line's location, text or access.
    """
    parts = words.lower().split()
    by_line: dict[FileLine, list[TrafficRow]] = {}
    for row in traffic:
        by_line.setdefault((row.file, row.line), []).append(row)
    lines = []
    for spot in spots_by_line(listing) if listing.has_sources else ():
        if spot.location.file is not None:
            rows = by_line.pop((PurePath(spot.location.file).name, spot.location.line), [])
            lines.append(_static_line(spot.location, spot.text, len(spot.lines), rows))
    embedded = {PurePath(name).name: name for name in listing.texts}
    for (name, number), rows in by_line.items():  # the compiler gave its instructions to other lines
        source = (embedded.get(name, name), number)
        lines.append(_static_line(CodeLocation(*source), listing.source_text(source), 0, rows))
    if parts:
        lines = [
            line
            for line in lines
            if all(
                part in f"{line.location.words} {line.text or ''} {' '.join(line.kinds)}".lower()
                for part in parts
            )
        ]
    if times:
        by_name = {(PurePath(name).name, number): share for (name, number), share in times.items()}
        lines = [replace(line, time_share=_time_share(line, by_name)) for line in lines]
    return tuple(
        sorted(
            lines,
            key=lambda line: (
                -(line.time_share or 0.0) if by_time else 0.0,
                -(line.conflicts or 0),
                -(line.wavefronts or 0),
                -line.instructions,
            ),
        )
    )


def _time_share(line: StaticLine, times: Mapping[FileLine, float]) -> float | None:
    if line.location.file is None:
        return None
    return times.get((PurePath(line.location.file).name, line.location.line))


def _place(spot: HotSpot, total: float, *, is_part: bool = False) -> HotPlace:
    share = None if spot.samples is None or not total else spot.samples / total
    return HotPlace(spot, share, is_part)


def _searched(listing: Listing, spot: HotSpot) -> str:
    texts = [listing.lines[position].text or "" for position in spot.lines]
    return " ".join((spot.location.words, spot.text or "", *spot.reasons, *texts)).lower()


def _static_line(
    location: CodeLocation, text: str | None, instructions: int, rows: Sequence[TrafficRow]
) -> StaticLine:
    if not rows:
        return StaticLine(location, text, instructions)
    return StaticLine(
        location,
        text,
        instructions,
        tuple(dict.fromkeys(row.kind for row in rows)),
        sum(row.requests for row in rows),
        sum(row.wavefronts for row in rows),
        sum(row.ideal_wavefronts for row in rows),
    )
