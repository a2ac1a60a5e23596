"""Shares of a whole as stacked grey areas over runs or versions, labelled at the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from profiler.ui.charts import line_gutter, small_multiples, style
from profiler.ui.charts.labels import plotly_text, spread_apart
from profiler.ui.charts.line_gutter import LEADER_PX
from profiler.ui.charts.small_multiples import LEFT_PX, Axis
from profiler.ui.charts.style import HOVER_TEXT, MUTED_FONT, TRANSPARENT, Figure, annotation
from profiler.ui.theme import RAMP, light

_HEIGHT_PX, _TITLE_PX, _AXIS_PX, _SWATCH_PX = 110, 30, 40, 14
MOST_PLACES = 150  # of six areas with two edges each: within what a chart draws smoothly


@dataclass(frozen=True)
class Mix:
    """The shares at one place of the axis in per cent, from the bottom up, or why there are none."""

    x: float
    shares: Mapping[str, float]
    words: str  # what stands under the pointer
    gap: str = ""
    joined: bool = True  # False: nothing leads here from the place before


def figure(
    title: str, caption: str, mixes: Sequence[Mix], axis: Axis, gutter: int, plot_px: int = _HEIGHT_PX
) -> Figure:
    """The areas, broken and hatched where there are no shares; at least `gutter` is left at the right."""
    height = _TITLE_PX + plot_px + _AXIS_PX
    layout = style.layout(height)
    names = list(dict.fromkeys(name for mix in mixes for name in mix.shares))
    gutter = max(gutter, _labels_px(names))
    layout["margin"] = {"l": LEFT_PX, "r": gutter, "t": _TITLE_PX, "b": _AXIS_PX, "pad": 0}
    layout["hovermode"] = "closest"
    layout["yaxis"] = {**style.axis(""), "range": [0, 100], "tickvals": [0, 50, 100], "automargin": True}
    layout["xaxis"] = small_multiples.shared_axis(axis, "y")
    head = f'<b>{plotly_text(title)}</b>  <span style="fill:{light("muted")}">{plotly_text(caption)}</span>'
    notes = [annotation(head, 0.0, 1.0, xanchor="left", yanchor="bottom", yshift=4)]
    gaps = [mix for mix in mixes if mix.gap]
    reasons = [mix.gap for mix in gaps]
    traces = [style.hatch([mix.x for mix in gaps], [100] * len(gaps), reasons, width=axis.column)]
    if axis.holes:
        traces.append(small_multiples.hole_hatch(axis, 0.0, 100.0))
        notes += small_multiples.hole_notes(axis, 0.5)
    traces += _areas(_stretches(mixes, axis), names, axis)
    traces.append(_hover_points([mix for mix in mixes if mix.shares]))
    last = next((mix for mix in reversed(mixes) if mix.shares), None)
    if last:
        shares = {name: last.shares.get(name, 0.0) for name in names}
        notes += _swatch_labels(shares, plot_px)
    layout["annotations"] = notes
    return {"data": traces, "layout": layout}


def _stretches(mixes: Sequence[Mix], axis: Axis) -> list[list[Mix]]:
    """The places that are joined: between two gaps or stretches without a run; of very many some."""
    step = -(-len(mixes) // MOST_PLACES) or 1
    stretches: list[list[Mix]] = [[]]
    for index, mix in enumerate(mixes):
        before = mixes[index - 1].x if index else mix.x
        if mix.gap or not mix.joined or any(before <= begin and end <= mix.x for begin, end in axis.holes):
            stretches.append([])
        if mix.gap:
            continue
        if index % step == 0 or index == len(mixes) - 1:
            stretches[-1].append(mix)
    return [stretch for stretch in stretches if stretch]


def _areas(stretches: Sequence[Sequence[Mix]], names: Sequence[str], axis: Axis) -> list[Figure]:
    """The polygons of each name, one a stretch; a lone place is as wide as a column."""
    x: dict[str, list[float | None]] = {name: [] for name in names}
    y: dict[str, list[float | None]] = {name: [] for name in names}
    for stretch in stretches:
        places = [mix.x for mix in stretch]
        sums = [[0.0, *accumulate(mix.shares.get(name, 0.0) for name in names)] for mix in stretch]
        if len(places) == 1:
            places, sums = [places[0] - axis.column / 2, places[0] + axis.column / 2], sums * 2
        for at, name in enumerate(names):
            between = [None] * bool(x[name])  # parts it from the stretch before
            x[name] += [*between, *places, *reversed(places)]
            y[name] += [*between, *(row[at] for row in sums), *(row[at + 1] for row in reversed(sums))]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": plotly_text(name),
            "x": x[name],
            "y": y[name],
            "fill": "toself",
            "fillcolor": RAMP[at % len(RAMP)][0],
            "line": {"color": light("page"), "width": 1},
            "hoverinfo": "skip",
        }
        for at, name in enumerate(names)
    ]


def _hover_points(mixes: Sequence[Mix]) -> Figure:
    """An unseen point at each place that says all shares there."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [mix.x for mix in mixes],
        "y": [50 for _ in mixes],
        "marker": {"color": TRANSPARENT, "size": 14},
        "hovertext": ["<br>".join(map(plotly_text, mix.words.split("\n"))) for mix in mixes],
        "hovertemplate": HOVER_TEXT,
    }


def _swatch_labels(shares: Mapping[str, float], plot_px: int) -> list[Figure]:
    """The names right of the last place, from the bottom up, with the grey and share of each."""
    tops = accumulate(shares.values())
    middles = [(top - share / 2) / 100 for top, share in zip(tops, shares.values(), strict=True)]
    heights = spread_apart(middles, _SWATCH_PX / plot_px, 0.0, 1.0)
    return [
        annotation(
            f'<span style="fill:{RAMP[at % len(RAMP)][0]};font-size:16px">■</span> {plotly_text(words)}',
            1.0,
            height,
            xanchor="left",
            yanchor="middle",
            xshift=LEADER_PX + 2,
            font=MUTED_FONT,
        )
        for at, (words, height) in enumerate(zip(_words(shares), heights, strict=True))
    ]


def _labels_px(names: Sequence[str]) -> int:
    """How much room these labels need."""
    return line_gutter.width_px(["■ " + words for words in _words(dict.fromkeys(names, 99.0))])


def _words(shares: Mapping[str, float]) -> list[str]:
    return [f"{name} {share:.0f}" for name, share in shares.items()]
