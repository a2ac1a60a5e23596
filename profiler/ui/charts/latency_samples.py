"""Timed calls as plain Plotly dictionaries: every sample in time order by round, and the shares below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.evidence import Latency, Value, formatting
from profiler.statistics import typical_ns
from profiler.statistics.ratios import SHORT_NS
from profiler.ui.charts import style
from profiler.ui.charts.scales import plotly_text
from profiler.ui.charts.style import FONT, MUTED_FONT, Figure, annotation
from profiler.ui.theme import light

MAX_DOTS = 1000  # dots of a side that are drawn; more are thinned evenly
_HEIGHT_PX, _RIGHT_PX, _TOP_PX, _AXIS_PX = 268, 78, 8, 44
_APART = 6.0  # times the larger spread that both sides may take together on one axis
_FENCE = 4.0  # interquartile ranges beyond the quartiles at which the axis ends
_DOMAINS = ((0.54, 1.0), (0.0, 0.46))

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Side:
    """One side's samples in the unit of the chart."""

    name: str
    numbers: Floats  # in time order
    at: Floats  # the place of each on the axis of rounds
    rounds: NDArray[np.int64]
    throttled: NDArray[np.bool_]
    middle: float
    shown: str  # the middle with its unit
    unit: str


def dot_figure(sides: Sequence[tuple[str, Latency]]) -> Figure:
    """A panel a side, one above the other on the same axes: each sample a dot, where its round stood.

    Where the sides lie so far apart that each would be a line, each has its own axis, of one span.

    What lies far out stands at the edge; its number is in the hover box. A line at the median
    (the mean of short calls) carries its value, and that of the first side stands dashed in the others.
    """
    numbers, unit = _in_one_unit(sides)
    ranges, apart = _ranges(numbers), have_own_axes(sides)
    layout = style.layout(_HEIGHT_PX)
    layout["margin"] = {"l": 8, "r": _RIGHT_PX, "t": _TOP_PX, "b": _AXIS_PX, "pad": 0}
    every = np.unique(np.concatenate([one.rounds for one in numbers]))
    notes: list[Figure] = []
    traces: list[Figure] = []
    for row, one in enumerate(numbers):
        suffix = str(row + 1) if row else ""
        domain, (low, high) = _DOMAINS[row], ranges[row]
        layout[f"yaxis{suffix}"] = _value_axis(unit, domain, (low, high))
        if row and not apart:
            traces.append(_level(numbers[0].middle, len(every), f"y{suffix}", dashed=True))
        traces += _dots(one, f"y{suffix}", low, high)
        traces.append(_level(one.middle, len(every), f"y{suffix}"))
        place = domain[0] + (domain[1] - domain[0]) * (one.middle - low) / (high - low)
        text = f"<b>{plotly_text(one.name)}</b> {plotly_text(one.shown)}"
        notes.append(annotation(text, 1.0, place, xanchor="left", yanchor="middle", xshift=6))
    layout["xaxis"] = {
        **style.axis("round, in time order"),
        **_round_ticks(every),
        "range": [-0.3, len(every) + 0.3],
        "anchor": f"y{len(numbers)}" if len(numbers) > 1 else "y",
        "showline": True,
    }
    layout["annotations"] = notes
    return {"data": traces, "layout": layout}


def ecdf_figure(sides: Sequence[tuple[str, Latency]]) -> Figure:
    """The share of the samples that took no longer, a step line a side; the last side in ink."""
    numbers, unit = _in_one_unit(sides)
    low, high = _limits([one.numbers for one in numbers])
    layout = style.layout(_HEIGHT_PX)
    layout["margin"] = {"l": 8, "r": 8, "t": _TOP_PX, "b": _AXIS_PX, "pad": 0}
    layout["xaxis"] = {**style.axis(f"latency, {unit}"), "range": [low, high], "showgrid": True}
    layout["yaxis"] = {
        **style.axis("samples that took no longer, %"),
        "range": [0, 103],
        "tickvals": [0, 25, 50, 75, 100],
        "showgrid": True,
        "automargin": True,
    }
    traces, notes = [], []
    first = min(one.middle for one in numbers)
    for row, one in enumerate(numbers):
        x, y = _shares(one.numbers)
        last = row == len(numbers) - 1
        traces.append(
            {
                "type": "scatter",
                "name": plotly_text(one.name),
                "mode": "lines",
                "x": x,
                "y": y,
                "line": {
                    "shape": "hv",
                    "width": 2 if last else 1.5,
                    "color": light("ink" if last else "muted"),
                    "dash": "solid" if last else "4px,2px",
                },
                "hovertemplate": f"<b>{plotly_text(one.name)}</b> %{{y:.0f}} % up to %{{x:.4~g}} {unit}"
                "<extra></extra>",
            }
        )
        left = one.middle == first and (row == 0 or numbers[0].middle != first)
        notes.append(
            annotation(
                f"<b>{plotly_text(one.name)}</b> {plotly_text(one.shown)}",
                one.middle,
                50,
                xref="x",
                yref="y",
                xanchor="right" if left else "left",
                yanchor="bottom" if left else "top",
                xshift=-6 if left else 6,
                font=FONT if last else MUTED_FONT,
            )
        )
    layout["annotations"] = notes
    return {"data": traces, "layout": layout}


def count_beyond_axis(sides: Sequence[tuple[str, Latency]]) -> int:
    """How many samples lie beyond the axis of `dots`."""
    numbers, _ = _in_one_unit(sides)
    return sum(
        int(((one.numbers < low) | (one.numbers > high)).sum())
        for one, (low, high) in zip(numbers, _ranges(numbers), strict=True)
    )


def have_own_axes(sides: Sequence[tuple[str, Latency]]) -> bool:
    """Whether the sides lie so far apart that `dots` gives each an axis of its own."""
    ranges = _ranges(_in_one_unit(sides)[0])
    return len(set(ranges)) > 1


def center_word(one: Latency) -> str:
    """What stands for a side's samples: the median, or the mean of calls too short for the timer's tick."""
    return "mean" if float(np.median(one.ns)) < SHORT_NS else "median"


def _in_one_unit(sides: Sequence[tuple[str, Latency]]) -> tuple[list[_Side], str]:
    levels = [float(typical_ns(one.ns)) for _, one in sides]
    scale = formatting.scale_for("ns", max(levels))
    every = np.unique(np.concatenate([np.asarray(one.rounds, np.int64) for _, one in sides]))
    found = []
    for (name, one), middle in zip(sides, levels, strict=True):
        rounds = np.asarray(one.rounds, np.int64)
        throttled = np.zeros(len(rounds), np.bool_)
        throttled[np.asarray(one.throttled, np.int64)] = True
        found.append(
            _Side(
                name,
                np.asarray(one.ns, np.float64) / scale.divisor,
                np.searchsorted(every, rounds) + _within(rounds),
                rounds,
                throttled,
                middle / scale.divisor,
                str(formatting.quantity(Value(middle, "ns"), scale)),
                scale.unit,
            )
        )
    return found, scale.unit


def _within(rounds: NDArray[np.int64]) -> Floats:
    """How far into its round each sample stands, 0 to 1, by its turn among the round's samples."""
    places = np.zeros(len(rounds))
    for number in np.unique(rounds):
        own = np.flatnonzero(rounds == number)
        places[own] = (np.arange(len(own)) + 0.5) / len(own)
    return places


def _limits(several: Sequence[Floats]) -> tuple[float, float]:
    """Where the axis ends: at the last sample, or nearer where a few lie so far out that the rest is flat."""
    ends = []
    for numbers in several:
        first, last = np.quantile(numbers, (0.25, 0.75))
        far = _FENCE * max(last - first, 1e-3 * float(last))
        ends.append((max(float(numbers.min()), first - far), min(float(numbers.max()), last + far)))
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    room = 0.06 * (high - low) or 0.01 * high
    return low - room, high + room


def _ranges(numbers: Sequence[_Side]) -> list[tuple[float, float]]:
    """The axis of each side: one for all, or of one span where they lie many times their spread apart."""
    whole = _limits([one.numbers for one in numbers])
    own = [_limits([one.numbers]) for one in numbers]
    span = max(high - low for low, high in own)
    if whole[1] - whole[0] < _APART * span:
        return [whole] * len(numbers)
    return [((low + high - span) / 2, (low + high + span) / 2) for low, high in own]


def _dots(one: _Side, axis: str, low: float, high: float) -> list[Figure]:
    """Plain samples, throttled ones as crosses, others beyond the axis as triangles; both at its edge."""
    out = (one.numbers < low) | (one.numbers > high)
    step = -(-len(one.numbers) // MAX_DOTS)
    drawn = np.zeros(len(one.numbers), np.bool_)
    drawn[::step] = True
    kinds = (
        ("circle", 4, drawn & ~one.throttled & ~out, ""),
        ("x-thin", 6, one.throttled, ", throttled"),
        ("triangle-up", 7, out & ~one.throttled & (one.numbers > high), ", beyond the axis"),
        ("triangle-down", 7, out & ~one.throttled & (one.numbers < low), ", beyond the axis"),
    )
    traces = []
    for symbol, size, which, words in kinds:
        if not which.any():
            continue
        cross = symbol == "x-thin"
        colour = light("ink" if cross else "neutral")
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": one.at[which].tolist(),
                "y": np.clip(one.numbers[which], low, high).tolist(),
                "yaxis": axis,
                "cliponaxis": False,
                "marker": {
                    "symbol": symbol,
                    "size": size,
                    "color": colour,
                    "line": {"width": 1.5 if cross else 0, "color": colour},
                },
                "customdata": [
                    [int(number), formatting.digits(float(value), whole=False)]
                    for number, value in zip(one.rounds[which], one.numbers[which], strict=True)
                ],
                "hovertemplate": f"<b>{plotly_text(one.name)}</b> %{{customdata[1]}} "
                f"{plotly_text(one.unit)}, round %{{customdata[0]}}{words}<extra></extra>",
            }
        )
    return traces


def _level(middle: float, rounds: int, axis: str, *, dashed: bool = False) -> Figure:
    line = {"color": light("muted" if dashed else "ink"), "width": 1 if dashed else 2}
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [-0.3, rounds + 0.3],
        "y": [middle, middle],
        "yaxis": axis,
        "line": {**line, "dash": "3px,3px"} if dashed else line,
        "hoverinfo": "skip",
    }


def _shares(numbers: Floats) -> tuple[list[float], list[float]]:
    """The steps of the empirical distribution, at most MOST of them."""
    ordered = np.sort(numbers)
    shares = 100 * np.arange(1, len(ordered) + 1) / len(ordered)
    kept = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), MAX_DOTS)).astype(int))
    return [float(ordered[0]), *ordered[kept].tolist()], [0.0, *shares[kept].tolist()]


def _round_ticks(every: NDArray[np.int64]) -> Figure:
    """The number of about six rounds, each at the middle of its place."""
    step = max(1, -(-len(every) // 6))
    places = range(0, len(every), step)
    return {
        "tickvals": [place + 0.5 for place in places],
        "ticktext": [str(every[place]) for place in places],
    }


def _value_axis(unit: str, domain: tuple[float, float], limits: tuple[float, float]) -> Figure:
    return {
        **style.axis(unit),
        "domain": list(domain),
        "range": list(limits),
        "showgrid": True,
        "automargin": True,
        "nticks": 4,
    }
