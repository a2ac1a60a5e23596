"""The end of the Launch page: hot places in the code, and what is not there with what collects it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from profiler.documents import LaunchDocument
from profiler.documents.launch_inside import HotPlaces, InsideLaunch, dominant_stall, sampling_words
from profiler.evidence import formatting
from profiler.reports.instances import Timeline
from profiler.ui import addresses, markup
from profiler.ui.charts import launch_timeline
from profiler.ui.markup import Column, Html, Row

_LEAST_SAMPLES = 2  # of a timeline
# What a reader asks for first; the others follow in the report's order.
_FIRST_TIMELINES = (
    "sm__inst_executed_realtime.avg.per_cycle_active",
    "sm__pipe_tensor_cycles_active",
    "dramc__throughput",
    "l1tex__t_sector_hit_rate",
    "sm__cycles_active",
)


def hot_places(hot: HotPlaces, code: addresses.LaunchCode | None) -> Html:
    """The places with most samples, each with what its warps wait for."""
    rows = []
    for spot in hot.places:
        stall = dominant_stall(spot)
        waits = markup.join((stall[0], markup.muted(f"{100 * stall[1]:.0f} %"))) if stall else "–"
        is_line = spot.location.file is not None
        place: object = markup.cut_name(spot.location.words, spot.location.file or "")
        if code is not None:
            place = markup.link(code.at(view="source" if is_line else "sass"), place)
        share = (spot.samples or 0.0) / hot.samples
        rows.append(
            Row(
                (
                    place,
                    _share_bar(share),
                    markup.quantity(f"{100 * share:.1f}", "%"),
                    waits,
                    markup.code(spot.text) if spot.text else markup.state("text not in the report"),
                )
            )
        )
    if hot.hidden:
        words = f"{hot.hidden} places with fewer samples"
        shown: object = markup.link(code.href, words) if code else words
        rows.append(markup.closing_row(markup.muted(shown)))
    columns = (
        Column("place", cut=1),
        Column("", wide=True),
        Column("samples", right=True),
        Column("waits for"),
        Column("text", cut=3, wide=True),
    )
    return markup.table("hot places", columns, rows, "hot")


def missing(document: LaunchDocument) -> Html:
    """What the page has no numbers for, why, and the command that collects it."""
    rows = []
    for section in document.sections.missing:
        parts = [markup.code(section.command)] if section.command else []
        parts += [markup.muted(section.note)] if section.note else []
        takes = markup.join(parts, " · ")
        rows.append(Row((section.what, markup.state(section.state), takes)))
    columns = (Column("not shown", wrap=True), Column("state"), Column("what it takes", wrap=True))
    return markup.table("what is missing", columns, rows)


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


def _share_bar(share: float) -> Html:
    return Html(f'<span class="lbar"><i style="width:{100 * min(share, 1.0):.2f}%"></i></span>')


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
