"""The progress of a search: times over iterations, the best so far, elites, what was refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from profiler.ui.charts import labels, scales
from profiler.ui.charts.style import (
    HOVER_TEXT,
    MUTED_FONT,
    TRANSPARENT,
    Figure,
    annotation,
    axis,
    hatch,
    hatch_pattern,
    layout,
)
from profiler.ui.theme import light

HEIGHT_PX = 300
_LANE = 0.11  # of the height: the lane of what was refused
_GAP = 0.05
_GUTTER_PX = 150
_LEAST_ITERATIONS = 12  # that the axis has room for


@dataclass(frozen=True)
class CandidateMark:
    """One candidate on the chart."""

    number: int
    name: str
    us: float | None  # its time in microseconds; None: it has none
    look: str  # candidate, elite or refused
    hover: Sequence[str]
    low_us: float | None = None  # of an elite
    high_us: float | None = None
    measured: bool = False


@dataclass(frozen=True)
class Level:
    """A horizontal line: a target, a bound, a version of the lineage."""

    name: str
    us: float
    dash: str  # solid, dot or dash


@dataclass(frozen=True)
class RecordStep:
    """Where the best time falls, and by what."""

    number: int
    us: float
    words: str


def figure(marks: Sequence[CandidateMark], steps: Sequence[RecordStep], levels: Sequence[Level]) -> Figure:
    """The chart: times on a logarithmic axis above, refused ones in a lane below."""
    last = max([_LEAST_ITERATIONS, *(mark.number for mark in marks)])
    timed = [mark for mark in marks if mark.us is not None and mark.look != "refused"]
    everything = [*(mark.us for mark in timed if mark.us), *(level.us for level in levels)]
    low, high = (min(everything) / 1.3, max(everything) * 1.3) if everything else (1.0, 10.0)
    ticks = [tick for tick in scales.log_ticks(low, high) if low <= tick <= high]
    bottom = _LANE + _GAP
    chart = layout(HEIGHT_PX)
    chart |= {
        "margin": {"l": 52, "r": _GUTTER_PX, "t": 8, "b": 34},
        "xaxis": {
            **axis(""),
            "range": [-0.5, last + 0.8],
            "anchor": "y2",
            "tickvals": _tick_numbers(last),
            "ticktext": ["seed" if number == 0 else f"c{number}" for number in _tick_numbers(last)],
        },
        "yaxis": {
            **axis(""),
            "type": "log",
            "range": [math.log10(low), math.log10(high)],
            "domain": [bottom, 1],
            "tickvals": ticks,
            "ticktext": [f"{tick:g}" for tick in ticks],
            "showgrid": True,
        },
        "yaxis2": {
            **axis(""),
            "range": [0, 1],
            "domain": [0, _LANE],
            "tickvals": [0.5],
            "ticktext": ["refused"],
        },
        "hovermode": "closest",
        "clickmode": "event+select",
    }
    data: list[Figure] = []
    if steps:
        x: list[float] = [steps[0].number]
        y = [steps[0].us]
        for step in steps[1:]:
            x += [step.number, step.number]
            y += [y[-1], step.us]
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": [*x, last + 0.8],
                "y": [*y, y[-1]],
                "line": {"color": light("ink"), "width": 2.2},
                "hoverinfo": "skip",
                "name": "best so far",
            }
        )
    for look in ("candidate", "elite"):
        chosen = [mark for mark in timed if mark.look == look]
        if chosen:
            data.append(_dots(chosen, look))
    refused = [mark for mark in marks if mark.look == "refused"]
    if refused:
        numbers = [mark.number for mark in refused]
        bars = hatch(numbers, [1.0] * len(refused), [], width=0.6, yaxis="y2", name="refused")
        bars["marker"] = {
            "color": TRANSPARENT,
            "line": {"color": light("neutral"), "width": 1},
            "pattern": hatch_pattern(size=6, solidity=0.2),
        }
        bars |= {"hovertext": list(map(_hover, refused)), "customdata": [mark.name for mark in refused]}
        data.append(bars)
    chart["shapes"] = [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": level.us,
            "y1": level.us,
            "line": {"color": light("neutral"), "width": 1, "dash": level.dash},
        }
        for level in levels
    ]
    chart["annotations"] = _gutter(levels, steps, low, high, bottom, len(refused))
    chart["annotations"] += [
        annotation(
            labels.plotly_text(labels.shorten(step.words, 40)),
            step.number,
            math.log10(step.us),
            xref="x",
            yref="y",
            xanchor="left",
            yanchor="top",
            xshift=5,
            yshift=-5,
            font=MUTED_FONT,
        )
        for step in _labelled(steps, last)
    ]
    return {"data": data, "layout": chart}


def _dots(marks: Sequence[CandidateMark], look: str) -> Figure:
    is_elite = look == "elite"
    trace: Figure = {
        "type": "scatter",
        "mode": "markers",
        "x": [mark.number for mark in marks],
        "y": [mark.us for mark in marks],
        "marker": {
            "size": 11 if is_elite else 8,
            "color": [light("ink") if is_elite or mark.measured else light("page") for mark in marks],
            "line": {"color": light("ink") if is_elite else light("muted"), "width": 1.4},
        },
        "hovertext": [_hover(mark) for mark in marks],
        "hovertemplate": HOVER_TEXT,
        "customdata": [mark.name for mark in marks],
        "name": look,
    }
    if is_elite:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [(mark.high_us or mark.us or 0) - (mark.us or 0) for mark in marks],
            "arrayminus": [(mark.us or 0) - (mark.low_us or mark.us or 0) for mark in marks],
            "color": light("neutral"),
            "thickness": 1,
            "width": 0,
        }
    return trace


def _hover(mark: CandidateMark) -> str:
    first, *rest = (labels.plotly_text(line) for line in (mark.name, *mark.hover))
    return "<br>".join([f"<b>{first}</b>", *(labels.wrap(line, 60) for line in rest)])


def _gutter(
    levels: Sequence[Level], steps: Sequence[RecordStep], low: float, high: float, bottom: float, refused: int
) -> list[Figure]:
    """The labels right of the chart."""
    span = math.log10(high) - math.log10(low)
    rows = [(f"{level.name} {level.us:.3g}", level.us, MUTED_FONT) for level in levels]
    if steps:
        rows.append((f"best {steps[-1].us:.3g}", steps[-1].us, {**MUTED_FONT, "color": light("ink")}))
    rows.sort(key=lambda row: row[1])
    shares = [bottom + (1 - bottom) * (math.log10(us) - math.log10(low)) / span for _, us, _ in rows]
    spread = labels.spread_apart(shares, 16 / HEIGHT_PX, bottom, 1)
    found = [
        annotation(
            labels.plotly_text(words), 1, height, xanchor="left", yanchor="middle", xshift=8, font=font
        )
        for (words, _, font), height in zip(rows, spread, strict=True)
    ]
    if refused:
        found.append(
            annotation(
                f"refused, {refused}",
                1,
                _LANE / 2,
                xanchor="left",
                yanchor="middle",
                xshift=8,
                font=MUTED_FONT,
            )
        )
    return found


def _labelled(steps: Sequence[RecordStep], last: int) -> list[RecordStep]:
    """The steps that have room for their words; the seed's are none."""
    room = last / 7
    found: list[RecordStep] = []
    for step in reversed(steps):
        if step.words and step.number <= last * 0.8 and (not found or found[-1].number - step.number >= room):
            found.append(step)
    return found


def _tick_numbers(last: int) -> list[int]:
    step = max(1, -(-last // 8))
    return list(range(0, last + 1, step))
