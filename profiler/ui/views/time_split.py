"""Why a pair differs in time, as markup and as a waterfall: the old time, the causes, the new time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from profiler.compare import Comparison, PairComparison
from profiler.evidence import MetricTable, formatting
from profiler.explain import Explanation, WaterfallStep, counters_to_collect, explain
from profiler.explain.sentence import format_change, format_side, split_notes
from profiler.explain.time_identity import RESIDUE, WAITING, largest_step_us, waterfall_steps
from profiler.statistics import Verdict
from profiler.ui import markup
from profiler.ui.charts import style
from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.style import FONT, TRANSPARENT, Figure
from profiler.ui.markup import Column, Html, Row
from profiler.ui.theme import HATCH, light

CAPTION = "ncu duration split by cause; measured"
_ROW_PX, _AXIS_PX, _VALUES_PX = 23, 34, 78
_THICK = 0.66  # of a row
_WITH_UNIT = re.compile(r"[+−]?[\d.]+ (?:ns|µs|ms|s|%)(?!\w)")
_COLUMNS = (
    Column("metrics.txt"),
    Column("metric", wrap=True, wide=True),
    Column("ncu metric", wrap=True),
    Column("missing", wide=True),
)


def of(comparison: Comparison, pair: PairComparison, table: MetricTable) -> Explanation:
    """Why the chosen pair differs."""
    return explain(replace(comparison, pairs=(pair,)), table)[0]


def answer(told: Explanation) -> Html:
    """The one sentence, and what a reader should know before believing it."""
    words = markup.join((told.sentence_parts.answer, markup.muted(told.sentence_parts.remainder)))
    whole = _WITH_UNIT.sub(r'<span class="nw">\g<0></span>', words)  # a number keeps its unit beside it
    lines = [markup.paragraph(Html(whole))]
    if told.split:
        lines += [markup.note(note) for note in split_notes(told.split, bool(told.causes))]
    return markup.join(lines, "")


def lacking(told: Explanation) -> Html:
    """Which lines of metrics.txt a deeper split needs; empty where nothing is missing or nothing changed."""
    rows = [
        Row((one.lines, one.label, markup.code(one.names), markup.muted(one.why)))
        for one in counters_to_collect([told])
    ]
    if not rows or told.verdict is Verdict.SAME:
        return Html("")
    depth = "no split" if told.split is None else "only a coarser split"
    words = f"{depth} from what these reports carry. Collect:"
    return markup.join(
        (markup.note(markup.state(words)), markup.table("counters to collect", _COLUMNS, rows)), ""
    )


@dataclass(frozen=True)
class _Bar:
    label: str
    start_us: float
    us: float
    text: str
    role: str  # of the palette; "" for the hatch of the residue

    @property
    def strong(self) -> bool:
        """A side, and no cause."""
        return self.label in ("A", "B")


def waterfall(told: Explanation) -> Figure | None:
    """The split as bars in one unit, values in a column at the right; None where there is none.

    Coloured where the terms are causes that no flag doubts: what takes time away is better, what adds worse.
    """
    if told.split is None or told.a_us is None or told.b_us is None:
        return None
    bars = list(_bars(told, told.a_us, told.b_us))
    scale = formatting.scale_for("us", max(told.a_us, told.b_us))
    layout = style.layout(_ROW_PX * len(bars) + _AXIS_PX)
    layout["margin"] = {"l": 8, "r": _VALUES_PX, "t": 4, "b": _AXIS_PX, "pad": 0}
    reach = max(max(bar.start_us, bar.start_us + bar.us) for bar in bars)
    end = 1.02 * reach / scale.divisor
    layout["xaxis"] = {**style.axis(""), "showgrid": True, "range": [0, end], "nticks": 6}
    layout["yaxis"] = {
        **style.axis(""),
        "range": [len(bars) - 0.4, -0.6],
        "tickvals": list(range(len(bars))),
        "ticktext": [plotly_text(bar.label) for bar in bars],
        "tickfont": FONT,
        "automargin": True,
    }
    layout["annotations"] = [_value(row, bar) for row, bar in enumerate(bars)]
    return {"data": [_trace(row, bar, scale.divisor) for row, bar in enumerate(bars)], "layout": layout}


def _bars(told: Explanation, a_us: float, b_us: float) -> Iterator[_Bar]:
    largest, reached = max(a_us, b_us), a_us
    yield _Bar("A", 0.0, a_us, format_side(a_us, largest), "muted")
    found = waterfall_steps(a_us, told.split) if told.split else ()
    for step in found:
        text = format_change(step.us, largest, largest_step_us(found))
        yield _Bar(step.label, reached, step.us, text, _role(step, text, judged=_trusted(step, told)))
        reached += step.us
    yield _Bar("B", 0.0, b_us, format_side(b_us, largest), "ink")


def _trusted(step: WaterfallStep, told: Explanation) -> bool:
    """Whether the step is a cause: the verdict says that the time moved, and no flag is on the step."""
    if not told.causes or told.split is None or told.split.flagged:
        return False
    return not (told.split.reasons_flagged and step.label.startswith(f"{WAITING}: "))


def _role(step: WaterfallStep, text: str, *, judged: bool) -> str:
    """A cause has the colour of its direction; what nobody judged, or what rounds to nothing, is grey."""
    if step.label == RESIDUE:
        return ""
    if not judged or text == "±0":
        return "neutral"
    return "better" if step.us < 0 else "worse"


def _value(row: int, bar: _Bar) -> Figure:
    text = plotly_text(bar.text)
    colour = "ink" if bar.strong else bar.role if bar.role in ("better", "worse") else "muted"
    return style.annotation(
        f"<b>{text}</b>" if bar.strong else text,
        1.0,
        row,
        yref="y",
        xanchor="right",
        xshift=_VALUES_PX - 4,
        font={**FONT, "color": light(colour)},
    )


def _trace(row: int, bar: _Bar, divisor: float) -> Figure:
    if bar.role:
        marker: Figure = {"color": light(bar.role), "line": {"width": 1, "color": light(bar.role)}}
    else:
        pattern = {"shape": "/", "fgcolor": HATCH[0], "bgcolor": TRANSPARENT, "size": 6, "solidity": 0.3}
        marker = {"color": TRANSPARENT, "line": {"width": 1, "color": HATCH[0]}, "pattern": pattern}
    return {
        "type": "bar",
        "orientation": "h",
        "y": [row],
        "x": [bar.us / divisor],
        "base": [bar.start_us / divisor],
        "width": _THICK,
        "marker": marker,
        "hovertext": [f"<b>{plotly_text(bar.label)}</b><br>{plotly_text(bar.text)}"],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
