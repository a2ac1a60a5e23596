"""How full an SM is and why, as tables and one small chart a resource."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.evidence import Evidence, Value, formatting
from profiler.explain import OccupancyAnalysis, OccupancyCurve
from profiler.store import ResultInfo
from profiler.ui import markup
from profiler.ui.charts import style
from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.style import FONT, Figure, annotation
from profiler.ui.markup import Column, Html, Row
from profiler.ui.theme import light

_HEIGHT_PX = 210


def table(found: OccupancyAnalysis) -> Html:
    """Achieved and theoretical occupancy, then the limit of each resource; what binds is said."""
    rows = [
        Row(("achieved", _achieved(found), "")),
        Row(("theoretical", markup.value(found.theoretical), _warps(found))),
        markup.group_row("blocks per SM that each resource allows"),
    ]
    tied = len(found.binding) > 1
    for limiter in found.limiters:
        word = ("limits, tied" if tied else "limits") if limiter.binds else ""
        if limiter.blocks.number is None:
            word = "may limit as well" if found.binding else ""
        name = markup.tag("span", limiter.name, title=limiter.metric)
        rows.append(Row((name, markup.value(limiter.blocks), markup.tag("b", word) if word else "")))
    return markup.table("occupancy", (Column(""), Column("", right=True), Column("")), rows)


def sentence(found: OccupancyAnalysis) -> str:
    """What limits, and the nearest change of one resource that would let more warps in."""
    if not found.binding:
        return "What limits is not known: no limit is in the report."
    limits = "Limited by " + " and ".join(found.binding)
    gains = []
    for curve in found.curves:
        gain = curve.next_gain()
        if gain is None or curve.own_amount is None:
            continue
        step, warps = gain
        value = formatting.quantity(Value(step, curve.unit))
        gains.append(f"{formatting.digits(warps)} warps at {value} {curve.name}")
    if not gains:
        return f"{limits}; no single resource alone would let more warps in."
    return f"{limits}. More with one change alone: {'; '.join(gains)}."


def curve(one: OccupancyCurve, most: float | None) -> tuple[Figure, str]:
    """Active warps per SM over one resource, the launch's own value marked; and the same in words."""
    layout = style.layout(_HEIGHT_PX)
    layout["margin"] = {"l": 8, "r": 12, "t": 26, "b": 40, "pad": 0}
    layout["hovermode"] = "x"
    divisor = 1024.0 if one.unit == "byte" else 1.0
    unit = ", KiB" if one.unit == "byte" else ""
    steps = [step / divisor for step in one.amounts]
    top = max((warps for warps in one.warps if warps is not None), default=0.0)
    layout["xaxis"] = {**style.axis(one.name + unit), "range": [0, max(steps, default=1.0)], "nticks": 7}
    layout["xaxis"]["showline"] = True
    layout["yaxis"] = {
        **style.axis(""),
        "range": [0, 1.18 * max(most or 0.0, top, 1.0)],
        "showgrid": True,
        "automargin": True,
        "nticks": 5,
    }
    layout["annotations"] = [
        annotation("<b>warps per SM</b>", 0, 1, xanchor="left", yanchor="bottom", yshift=4)
    ]
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": steps,
        "y": list(one.warps),
        "line": {"color": light("neutral"), "width": 1.5, "shape": "vh"},
        "connectgaps": False,
        "hovertemplate": "%{x:,}: %{y} warps<extra></extra>",
    }
    traces: list[Figure] = [line]
    now = one.own_warps
    words = f"warps per SM over {one.name}"
    if now is not None and one.own_amount is not None:
        here = formatting.quantity(Value(one.own_amount, one.unit))
        words += f"; now {formatting.digits(now)} at {here}"
        traces.append(
            _here(one.own_amount / divisor, now, f"{here}: {formatting.digits(now)} warps", max(steps))
        )
    return {"data": traces, "layout": layout}, words


def notes(found: OccupancyAnalysis) -> list[Html]:
    """The curves that are not there, each by name."""
    by_state: dict[str, list[str]] = {}
    for metric, state in found.missing:
        by_state.setdefault(state, []).append(metric)
    return [
        markup.note(markup.join((markup.state(state), markup.join(map(markup.code, names), ", "))))
        for state, names in by_state.items()
    ]


def functions(facts: Sequence[ResultInfo]) -> dict[str, ResultInfo]:
    """The kernel functions with static facts, by what they are called in a choice."""
    found: dict[str, ResultInfo] = {}
    for one in facts:
        if one.evidence is Evidence.STATIC:
            part = "" if one.part in ("main", "total") else one.part
            words = " · ".join(filter(None, (one.version, part, one.gpu, one.workload)))
            found.setdefault(words, one)
    return found


def _achieved(found: OccupancyAnalysis) -> Html:
    if found.evidence is Evidence.STATIC:
        return markup.state("not measured")
    return markup.value(found.achieved)


def _warps(found: OccupancyAnalysis) -> Html:
    share, most = found.theoretical.number, found.max_warps
    if share is None or most is None:
        return Html("")
    return markup.muted(f"{formatting.digits(share * most / 100)} of {formatting.digits(most)} warps")


def _here(x: float, y: float, text: str, most: float) -> Figure:
    side = "top right" if x < 0.35 * most else "top left" if x > 0.65 * most else "top center"
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [x],
        "y": [y],
        "text": [plotly_text(text)],
        "textposition": side,
        "textfont": FONT,
        "marker": {"size": 9, "color": light("ink")},
        "cliponaxis": False,
        "hoverinfo": "skip",
    }
