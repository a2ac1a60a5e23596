"""The end of the Launch page: hot places in the code, timelines, and what was not collected."""

from __future__ import annotations

import math
from collections.abc import Mapping

from profiler.documents.launch import LaunchDocument
from profiler.documents.launch_inside import HotPlaces, InsideLaunch, hot_table, sampling_words
from profiler.evidence import formatting
from profiler.reports.instances import Timeline
from profiler.ui import addresses, markup
from profiler.ui.charts import launch_timeline
from profiler.ui.markup import Html
from profiler.ui.views import answer

_LEAST_SAMPLES = 2  # of a timeline
# What a reader asks for first; the others follow in the report's order.
_FIRST_TIMELINES = (
    "sm__inst_executed_realtime.avg.per_cycle_active",
    "sm__pipe_tensor_cycles_active",
    "dramc__throughput",
    "l1tex__t_sector_hit_rate",
    "sm__cycles_active",
)


def hot_places(hot: HotPlaces, code: addresses.LaunchCode) -> Html:
    """The places with most samples, each with what its warps wait for and the way to the code."""
    links = {
        spot.location.words: code.at(view="sass" if spot.location.file is None else "source")
        for spot in hot.places
    }
    table = answer.table(hot_table(hot), "hot places", links, css="hot")
    if not hot.hidden:
        return table
    words = f"{hot.hidden} places with fewer samples"
    return markup.join((table, markup.note(markup.link(code.href, words))), "")


def measure_command(document: LaunchDocument) -> str:
    """The command that measures a version that was only compiled or modelled; "" for what was measured."""
    return f"profiler collect {document.subject.side.version}" if document.subject.side.version else ""


def hot_title(hot: HotPlaces) -> str:
    """What the hot places are: source lines, or instructions where the report knows no lines."""
    return "Hot source lines" if any(spot.location.file for spot in hot.places) else "Hot instructions"


def not_collected(document: LaunchDocument, what: str) -> Html:
    """The hatch in the place of a section, with the command that collects it."""
    section = document.sections.missing_section(what)
    if section is None:
        return markup.paragraph(markup.state("not in the report"))
    return markup.paragraph(markup.join((markup.state(section.state), markup.code(section.command)), " "))


def samples_caption(hot: HotPlaces) -> str:
    """How many samples all places have."""
    return f"of {formatting.digits(hot.samples)} samples of warps"


def timeline_lines(timelines: Mapping[str, Timeline]) -> dict[str, launch_timeline.Line]:
    """The metrics that vary within the launch, as many as the chart has room for."""
    lines: dict[str, launch_timeline.Line] = {}
    for name, timeline in sorted(timelines.items(), key=lambda item: _timeline_rank(item[0])):
        if len(timeline.times_ns) < _LEAST_SAMPLES:
            continue
        values = [value if math.isfinite(value) else None for value in timeline.values.tolist()]
        if any(values) and len(lines) < launch_timeline.MAX_PANELS:
            # Metrics of different passes have clocks of their own.
            times = (timeline.times_ns - timeline.times_ns[0]).tolist()
            lines[name] = (times, values, timeline.unit)
    return lines


def _timeline_rank(name: str) -> int:
    ranks = (rank for rank, first in enumerate(_FIRST_TIMELINES) if name.startswith(first))
    return next(ranks, len(_FIRST_TIMELINES))


def timeline_caption(document: LaunchDocument, inside: InsideLaunch, shown: int) -> str:
    """How many metrics are shown, and how often they were sampled."""
    hidden = len(inside.timelines) - shown
    parts = [
        f"{shown} metrics sampled within the launch",
        sampling_words(inside, document.sections.fact("duration").value),
        f"{hidden} more are 0 or left out" if hidden else "",
    ]
    return "; ".join(filter(None, parts))
