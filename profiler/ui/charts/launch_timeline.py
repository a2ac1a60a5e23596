"""Metrics over the time of one launch as small panels on one axis, as a plain Plotly dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profiler.evidence import formatting
from profiler.ui.charts import style
from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.style import Figure, annotation
from profiler.ui.theme import light

MAX_PANELS = 8
_POINTS = 250  # of a panel: about 2,000 SVG points a chart draw smoothly
_PANEL_PX, _TITLE_PX, _AXIS_PX = 46, 20, 40
Line = tuple[Sequence[int], Sequence[float | None], str]  # nanoseconds since its start, values, unit


def figure(lines: Mapping[str, Line]) -> Figure:
    """A panel a metric, in the order given; None is a gap."""
    shown = list(lines.items())[:MAX_PANELS]
    row = _PANEL_PX + _TITLE_PX
    height = len(shown) * row + _AXIS_PX
    layout = style.layout(height)
    layout["margin"] = {"l": 8, "r": 12, "t": 4, "b": _AXIS_PX, "pad": 0}
    layout["hovermode"] = "x"
    inner = height - 4 - _AXIS_PX
    end = max((_last_activity(times, values) for _, (times, values, _) in shown), default=1)
    scale = formatting.scale_for("ns", max(end, 1))
    layout["xaxis"] = {
        **style.axis(f"time since the first sample, {scale.unit}"),
        "range": [0, end / scale.divisor],
        "anchor": f"y{len(shown)}" if len(shown) > 1 else "y",
        "showline": True,
    }
    layout["annotations"], traces = [], []
    for place, (name, (times, values, unit)) in enumerate(shown):
        top = 1 - (place * row + _TITLE_PX) / inner
        bottom = 1 - (place + 1) * row / inner
        numbers = [value for value in values if value is not None]
        highest = max(numbers, default=0.0)
        layout[f"yaxis{place + 1}" if place else "yaxis"] = {
            **style.axis(""),
            "domain": [max(bottom, 0), top],
            "range": [0, highest * 1.08 or 1.0],
            "tickvals": [0, highest] if highest else [0],
            "ticktext": ["0", formatting.digits(highest)] if highest else ["0"],
            "automargin": True,
            "showgrid": True,
        }
        title = f"<b>{plotly_text(name)}</b>  {plotly_text(unit)}"
        layout["annotations"].append(annotation(title, 0, top, xanchor="left", yanchor="bottom", yshift=1))
        step = -(-len(times) // _POINTS) or 1
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": [time / scale.divisor for time in times[::step]],
                "y": list(values[::step]),
                "yaxis": f"y{place + 1}" if place else "y",
                "line": {"color": light("ink"), "width": 1, "shape": "hv"},
                "connectgaps": False,
                "hovertemplate": f"{plotly_text(name)}: %{{y:.3g}} {plotly_text(unit)}<extra></extra>",
            }
        )
    return {"data": traces, "layout": layout}


def _last_activity(times: Sequence[int], values: Sequence[float | None]) -> float:
    """When a metric was last not 0, and a little: sampling goes on after the launch."""
    active = [time for time, value in zip(times, values, strict=True) if value]
    return 1.03 * active[-1] if active else 1
