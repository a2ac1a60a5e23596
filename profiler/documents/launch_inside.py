"""What a report holds within a launch: timelines, and the places where its samples are."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

from profiler.documents.blocks import Hinted, Name, Share, Table
from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.reports.instances import LaunchDetail, Timeline
from profiler.sass.hotspots import HotSpot, hottest, spots_by_line
from profiler.sass.listing import listing_of_launch

HOT_PLACES = 8  # source lines, or instructions where the report knows no lines
_PM_SAMPLING = "pmsampling:"
_TEXT_SHOWN = 70  # letters of a source line


@dataclass(frozen=True)
class HotPlaces:
    """Where the samples of a launch are: source lines, or instructions."""

    places: tuple[HotSpot, ...]  # those with most samples
    samples: float  # of all places
    hidden: int  # places with samples that are left out


@dataclass(frozen=True)
class InsideLaunch:
    """What a report holds within a launch, which is read from its file; empty where nobody read it."""

    timelines: Mapping[str, Timeline] = field(default_factory=dict)  # by metric, without `pmsampling:`
    hot: HotPlaces | None = None
    reason: str = ""  # why the file was not read


def inside_launch(detail: LaunchDetail) -> InsideLaunch:
    """Timelines and hot places of a launch."""
    timelines = {
        name.removeprefix(_PM_SAMPLING): line
        for name, line in detail.timelines.items()
        if name.startswith(_PM_SAMPLING)  # others are marks of ncu's own
    }
    if not len(detail.pcs):
        return InsideLaunch(timelines)
    spots = spots_by_line(listing_of_launch(detail))
    sampled = [spot for spot in spots if spot.samples]
    if not sampled:
        return InsideLaunch(timelines)
    samples = sum(spot.samples or 0.0 for spot in sampled)
    places = tuple(hottest(sampled, HOT_PLACES))
    return InsideLaunch(timelines, HotPlaces(places, samples, len(sampled) - len(places)))


def dominant_stall(spot: HotSpot) -> tuple[str, float] | None:
    """The reason with most waiting samples at a place, and its share of them from 0 to 1."""
    if not spot.waiting:
        return None
    reason = max(spot.reasons, key=lambda name: spot.reasons[name])
    return reason, spot.reasons[reason] / spot.waiting


def sampling_words(inside: InsideLaunch, duration: Value) -> str:
    """How often a timeline was sampled, and whether that is less than once in the launch."""
    longest = max(inside.timelines.values(), key=lambda line: len(line.values), default=None)
    if longest is None or len(longest.times_ns) < 2:
        return ""
    span = float(longest.times_ns[-1] - longest.times_ns[0])
    interval = Value(span / (len(longest.times_ns) - 1), "ns")
    words = f"a sample every {formatting.quantity(interval)}"
    if duration.number is not None and duration.number < 2 * float(interval.number or 0):
        words += f", of a launch of {formatting.quantity(duration)}: too few to see its phases"
    return words


def hot_table(hot: HotPlaces) -> Table:
    """The places with most samples, each with what its warps wait for."""
    rows = []
    for spot in hot.places:
        stall = dominant_stall(spot)
        waits = f"{stall[0]} {100 * stall[1]:.0f} %" if stall else "–"
        text = textwrap.shorten(spot.text or "", _TEXT_SHOWN, placeholder=" …")
        place = Hinted(Name(spot.location.words), spot.location.file or "")
        rows.append((place, Share((spot.samples or 0) / hot.samples), waits, Name(text)))
    return Table(("place", "samples", "waits for", "text"), rows, right=(1,), wide=(3,))
