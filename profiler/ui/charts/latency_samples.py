"""The samples of timed calls as plain Plotly dictionaries: in time order by round, or their distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.evidence import formatting
from profiler.evidence.side import Latency
from profiler.evidence.values import Value
from profiler.statistics.noise_floor import shorter_ns, typical_pair_ns
from profiler.statistics.ratios import SHORT_NS
from profiler.ui.charts import style
from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.style import FONT, MUTED_FONT, Figure, annotation
from profiler.ui.theme import light

MAX_DOTS = 1000  # dots of a side that are drawn; of more samples, evenly spaced ones
_HEIGHT_PX, _RIGHT_PX, _TOP_PX, _AXIS_PX = 268, 78, 8, 44
_OWN_AXES_FROM = 6.0  # times the larger side's span: where both together take more, each has its own axis
_FENCE = 4.0  # interquartile ranges beyond the quartiles at which the axis ends
_DOMAINS = ((0.54, 1.0), (0.0, 0.46))  # of the panels, as shares of the height

Floats = NDArray[np.float64]
Range = tuple[float, float]
NamedSamples = Sequence[tuple[str, Latency]]  # the sides: name and samples


@dataclass(frozen=True)
class _Side:
    """One side's samples in the unit of the chart."""

    name: str
    numbers: Floats  # in time order
    positions: Floats  # of each on the axis of rounds
    rounds: NDArray[np.int64]
    throttled: NDArray[np.bool_]
    center: float  # the median, or the mean of short calls
    center_text: str  # with its unit
    unit: str


def dot_figure(sides: NamedSamples) -> Figure:
    """One panel per side, one above the other on the same axes: each sample a dot, where its round stood.

    Where the sides lie so far apart that each would be a line, each has its own axis, of one span. What lies
    far out stands at the edge; its number is in the hover box. A line at the median (the mean of short calls)
    carries its value, and that of the first side stands dashed in the others.
    """
    scaled, unit = _in_one_unit(sides)
    ranges, own_axes = _ranges(scaled), have_own_axes(sides)
    layout = style.layout(_HEIGHT_PX)
    layout["margin"] = {"l": 8, "r": _RIGHT_PX, "t": _TOP_PX, "b": _AXIS_PX, "pad": 0}
    rounds = np.unique(np.concatenate([side.rounds for side in scaled]))
    notes: list[Figure] = []
    traces: list[Figure] = []
    for index, side in enumerate(scaled):
        suffix = str(index + 1) if index else ""
        domain, (low, high) = _DOMAINS[index], ranges[index]
        layout[f"yaxis{suffix}"] = _value_axis(unit, domain, (low, high))
        if index and not own_axes:
            traces.append(_center_line(scaled[0].center, len(rounds), f"y{suffix}", dashed=True))
        traces += _dots(side, f"y{suffix}", low, high)
        traces.append(_center_line(side.center, len(rounds), f"y{suffix}"))
        height = domain[0] + (domain[1] - domain[0]) * (side.center - low) / (high - low)
        notes.append(annotation(_title(side), 1.0, height, xanchor="left", yanchor="middle", xshift=6))
    layout["xaxis"] = {
        **style.axis("round, in time order"),
        **_round_ticks(rounds),
        "range": [-0.3, len(rounds) + 0.3],
        "anchor": f"y{len(scaled)}" if len(scaled) > 1 else "y",
        "showline": True,
    }
    layout["annotations"] = notes
    return {"data": traces, "layout": layout}


def ecdf_figure(sides: NamedSamples) -> Figure:
    """The share of the samples that took no longer, one step line per side; the last side in ink."""
    scaled, unit = _in_one_unit(sides)
    low, high = _limits([side.numbers for side in scaled])
    layout = style.layout(_HEIGHT_PX)
    layout["margin"] = {"l": 8, "r": 8, "t": _TOP_PX, "b": _AXIS_PX, "pad": 0}
    layout["xaxis"] = {**style.axis(f"latency, {unit}"), "range": [low, high], "showgrid": True}
    layout["yaxis"] = {
        **style.axis("cumulative share of samples, %"),
        "range": [0, 103],
        "tickvals": [0, 25, 50, 75, 100],
        "showgrid": True,
        "automargin": True,
    }
    traces, notes = [], []
    fastest = min(side.center for side in scaled)
    for index, side in enumerate(scaled):
        is_last = index == len(scaled) - 1
        traces.append(_step_line(side, strong=is_last))
        # The faster side's label stands left of its line and the other's right: they point away from each
        # other. Of two equal sides only the first stands left.
        left = side.center == fastest and (index == 0 or scaled[0].center != fastest)
        notes.append(
            annotation(
                _title(side),
                side.center,
                50,
                xref="x",
                yref="y",
                xanchor="right" if left else "left",
                yanchor="bottom" if left else "top",
                xshift=-6 if left else 6,
                font=FONT if is_last else MUTED_FONT,
            )
        )
    layout["annotations"] = notes
    return {"data": traces, "layout": layout}


def count_beyond_axis(sides: NamedSamples) -> int:
    """How many samples lie beyond the axes of `dot_figure`."""
    scaled, _ = _in_one_unit(sides)
    return sum(
        int(((side.numbers < low) | (side.numbers > high)).sum())
        for side, (low, high) in zip(scaled, _ranges(scaled), strict=True)
    )


def have_own_axes(sides: NamedSamples) -> bool:
    """Whether the sides lie so far apart that `dot_figure` gives each an axis of its own."""
    return len(set(_ranges(_in_one_unit(sides)[0]))) > 1


def center_word(sides: NamedSamples) -> str:
    """What stands for the samples of both sides: the median, or the mean of calls too short for the tick."""
    return "mean" if shorter_ns(sides[0][1].ns, sides[-1][1].ns) < SHORT_NS else "median"


def _in_one_unit(sides: NamedSamples) -> tuple[list[_Side], str]:
    # One statistic for both sides: the one that the comparison judges by.
    first, last = (float(ns) for ns in typical_pair_ns(sides[0][1].ns, sides[-1][1].ns))
    centers = [first, last][: len(sides)]
    scale = formatting.scale_for("ns", max(centers))
    every_round = np.unique(np.concatenate([np.asarray(latency.rounds, np.int64) for _, latency in sides]))
    scaled = []
    for (name, latency), center in zip(sides, centers, strict=True):
        rounds = np.asarray(latency.rounds, np.int64)
        throttled = np.zeros(len(rounds), np.bool_)
        throttled[np.asarray(latency.throttled, np.int64)] = True
        scaled.append(
            _Side(
                name,
                np.asarray(latency.ns, np.float64) / scale.divisor,
                np.searchsorted(every_round, rounds) + _shares_of_round(rounds),
                rounds,
                throttled,
                center / scale.divisor,
                str(formatting.quantity(Value(center, "ns"), scale)),
                scale.unit,
            )
        )
    return scaled, scale.unit


def _shares_of_round(rounds: NDArray[np.int64]) -> Floats:
    """How far into its round each sample stands, 0 to 1, by its turn among the round's samples."""
    shares = np.zeros(len(rounds))
    for number in np.unique(rounds):
        indices = np.flatnonzero(rounds == number)
        shares[indices] = (np.arange(len(indices)) + 0.5) / len(indices)
    return shares


def _limits(samples: Sequence[Floats]) -> Range:
    """Where the axis ends: at the last sample, or nearer where a few lie so far out that the rest is flat."""
    ends = []
    for numbers in samples:
        lower, upper = np.quantile(numbers, (0.25, 0.75))
        # Equal samples have no spread: a thousandth of the value stands in its place.
        reach = _FENCE * max(upper - lower, 1e-3 * float(upper))
        ends.append((max(float(numbers.min()), lower - reach), min(float(numbers.max()), upper + reach)))
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    margin = 0.06 * (high - low) or 0.01 * high
    return low - margin, high + margin


def _ranges(sides: Sequence[_Side]) -> list[Range]:
    """The axis of each side: one for all, or of one span where they lie many times their spread apart."""
    whole = _limits([side.numbers for side in sides])
    own = [_limits([side.numbers]) for side in sides]
    span = max(high - low for low, high in own)
    if whole[1] - whole[0] < _OWN_AXES_FROM * span:
        return [whole] * len(sides)
    return [((low + high - span) / 2, (low + high + span) / 2) for low, high in own]


def _title(side: _Side) -> str:
    return f"<b>{plotly_text(side.name)}</b> {plotly_text(side.center_text)}"


def _step_line(side: _Side, *, strong: bool) -> Figure:
    x, y = _distribution(side.numbers)
    name = plotly_text(side.name)
    return {
        "type": "scatter",
        "name": name,
        "mode": "lines",
        "x": x,
        "y": y,
        "line": {
            "shape": "hv",
            "width": 2 if strong else 1.5,
            "color": light("ink" if strong else "muted"),
            "dash": "solid" if strong else "4px,2px",
        },
        "hovertemplate": f"<b>{name}</b> %{{y:.0f}} % up to %{{x:.4~g}} {side.unit}<extra></extra>",
    }


def _dots(side: _Side, axis: str, low: float, high: float) -> list[Figure]:
    """Plain samples, throttled ones as crosses, others beyond the axis as triangles; both at its edge."""
    outside = (side.numbers < low) | (side.numbers > high)
    step = -(-len(side.numbers) // MAX_DOTS)
    drawn = np.zeros(len(side.numbers), np.bool_)
    drawn[::step] = True
    kinds = (
        ("circle", 4, drawn & ~side.throttled & ~outside, ""),
        ("x-thin", 6, side.throttled, ", throttled"),
        ("triangle-up", 7, outside & ~side.throttled & (side.numbers > high), ", beyond the axis"),
        ("triangle-down", 7, outside & ~side.throttled & (side.numbers < low), ", beyond the axis"),
    )
    traces = []
    for symbol, size, mask, remark in kinds:
        if not mask.any():
            continue
        is_cross = symbol == "x-thin"  # which Plotly draws as an outline alone
        colour = light("ink" if is_cross else "neutral")
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": side.positions[mask].tolist(),
                "y": np.clip(side.numbers[mask], low, high).tolist(),
                "yaxis": axis,
                "cliponaxis": False,
                "marker": {
                    "symbol": symbol,
                    "size": size,
                    "color": colour,
                    "line": {"width": 1.5 if is_cross else 0, "color": colour},
                },
                "customdata": [
                    [int(number), formatting.digits(float(value), whole=False)]
                    for number, value in zip(side.rounds[mask], side.numbers[mask], strict=True)
                ],
                "hovertemplate": f"<b>{plotly_text(side.name)}</b> %{{customdata[1]}} "
                f"{plotly_text(side.unit)}, round %{{customdata[0]}}{remark}<extra></extra>",
            }
        )
    return traces


def _center_line(center: float, rounds: int, axis: str, *, dashed: bool = False) -> Figure:
    line = {"color": light("muted" if dashed else "ink"), "width": 1 if dashed else 2}
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [-0.3, rounds + 0.3],
        "y": [center, center],
        "yaxis": axis,
        "line": {**line, "dash": "3px,3px"} if dashed else line,
        "hoverinfo": "skip",
    }


def _distribution(numbers: Floats) -> tuple[list[float], list[float]]:
    """The steps of the empirical distribution in percent, at most MAX_DOTS of them."""
    ordered = np.sort(numbers)
    percents = 100 * np.arange(1, len(ordered) + 1) / len(ordered)
    steps = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), MAX_DOTS)).astype(int))
    return [float(ordered[0]), *ordered[steps].tolist()], [0.0, *percents[steps].tolist()]


def _round_ticks(rounds: NDArray[np.int64]) -> Figure:
    """The number of about six rounds, each at the middle of its place."""
    step = max(1, -(-len(rounds) // 6))
    positions = range(0, len(rounds), step)
    return {
        "tickvals": [position + 0.5 for position in positions],
        "ticktext": [str(rounds[position]) for position in positions],
    }


def _value_axis(unit: str, domain: Range, limits: Range) -> Figure:
    return {
        **style.axis(unit),
        "domain": list(domain),
        "range": list(limits),
        "showgrid": True,
        "automargin": True,
        "nticks": 4,
    }
