"""The steps of a history on the Trends page: marks on the chart, a row each, and what could not be judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profiler.evidence import brief_list, natural_key
from profiler.history import History, Step, Trend, TrendPoint, step_words
from profiler.history.change_points import VERSIONS
from profiler.ui import markup
from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.small_multiples import Line
from profiler.ui.charts.style import Figure
from profiler.ui.markup import Column, Html, Row
from profiler.ui.theme import light
from profiler.ui.views.trend_lines import Picture, line_names

ROWS_SHOWN = 30
_COLUMNS = (
    Column("line", cut=1),
    Column("metric", wide=True),
    Column("verdict"),
    Column("size (95 %)", right=True),
    Column("level", right=True, wide=True),
    Column("can lie in"),
    Column("machine code", wrap=True, wide=True),
    Column("environment", wrap=True, wide=True),
    Column("due to"),
)


def marked(
    picture: Picture,
    histories: Sequence[History],
    versions: Sequence[str],
    over: str,
) -> Figure:
    """The chart with a triangle at each step and a bar over the runs in which it can lie.

    Over versions, a step between runs of one version has no place.
    """
    places = {version: float(index) for index, version in enumerate(versions)}
    traces: list[Figure] = []
    for index, panel in enumerate(picture.panels):
        lines = {line.label: line for line in panel.lines}
        for one in histories:
            keys = [(one.series.part, one.series.mode, version) for version in (one.version, None)]
            line = next((lines.get(picture.labels[key]) for key in keys if key in picture.labels), None)
            on_axis = over == "time" or one.version is None
            if line is None or one.series.label != panel.title or not on_axis:
                continue
            for change in one.steps:
                traces += _traces(change, line, f"y{index + 1 if index else ''}", places, over)
    figure = picture.figure
    return {**figure, "data": [*figure["data"], *traces]}


def of(histories: Sequence[History], shown: Sequence[Trend]) -> list[History]:
    """Those of the kernels that are shown."""
    kept = {(one.part, one.mode) for one in shown}
    return [one for one in histories if (one.series.part, one.series.mode) in kept]


def table(histories: Sequence[History]) -> Html:
    """A row a step, the newest first."""
    steps = [(one, change) for one in histories for change in one.steps]
    steps.sort(key=lambda step: step[1].likeliest.created, reverse=True)
    names = line_names([one.series for one in histories])
    return markup.table(
        "steps",
        _COLUMNS,
        [_row(one, change, names[one.series.part, one.series.mode]) for one, change in steps[:ROWS_SHOWN]],
    )


def caption(histories: Sequence[History]) -> str:
    """What the rows are, and how many."""
    count = sum(len(one.steps) for one in histories)
    cut = f"the newest {ROWS_SHOWN} of {count}; " if count > ROWS_SHOWN else ""
    return f"{cut}where a level changed, with 95 % intervals; {step_words.LAST_POINT}"


def notes(histories: Sequence[History]) -> list[Html]:
    """That nothing stepped, and which series are too short to say so."""
    lines = []
    if not any(one.steps for one in histories) and any(not one.not_judged for one in histories):
        lines.append("No step in these series.")
    short: dict[str, list[str]] = {}
    names = line_names([one.series for one in histories])
    for one in histories:
        if one.not_judged:
            name = names[one.series.part, one.series.mode]
            of = one.version or ("the newest of each version," if one.over == VERSIONS else "")
            short.setdefault(one.not_judged, []).append(f"{of} {name}".strip())
    if short:
        fewest, most = min(short, key=natural_key), max(short, key=natural_key)
        words = most if fewest == most else f"{fewest.partition(' ')[0]} to {most}"
        parts = list(dict.fromkeys(part for several in short.values() for part in several))
        lines.append(f"Steps not judged, {words}: {brief_list(parts)}.")
    return [markup.note(line) for line in lines]


def alt(histories: Sequence[History]) -> str:
    """The marks in words, for who cannot see them."""
    count = sum(len(one.steps) for one in histories)
    return f"; {count} step{'s' * (count != 1)} marked" if count else ""


def _traces(change: Step, line: Line, axis: str, places: Mapping[str, float], over: str) -> list[Figure]:
    """The bar and the triangle of one step, at the height where its line stands."""

    def at(point: TrendPoint) -> float | None:
        return point.created.timestamp() * 1000 if over == "time" else places.get(point.version)

    x = at(change.likeliest)
    y = next((point.y for point in line.points if point.x == x and point.y is not None), None)
    ends = [place for place in map(at, change.possible) if place is not None]
    if x is None or y is None:
        return []
    colour = light(change.verdict.traits.colour or "muted")
    words = f"{change.verdict.words} {step_words.size_words(change)}"
    hover = "<br>".join(
        plotly_text(text)
        for text in (
            words,
            f"can lie in {step_words.where_words(change)}",
            f"due to: {change.circumstances.cause}",
        )
    )
    common = {
        "type": "scatter",
        "yaxis": axis,
        "cliponaxis": False,
        "hovertemplate": f"{hover}<extra></extra>",
    }
    bar = {"mode": "lines", "line": {"color": colour, "width": 6}, "opacity": 0.35}
    symbol = "triangle-up" if change.change_point.direction > 0 else "triangle-down"
    mark = {"mode": "markers", "marker": {"symbol": symbol, "size": 13, "color": colour}}
    traces: list[Figure] = [{**common, **mark, "x": [x], "y": [y]}]
    if len(set(ends)) > 1:
        traces.insert(0, {**common, **bar, "x": [min(ends), max(ends)], "y": [y, y]})
    return traces


def _row(one: History, change: Step, line: str) -> Row:
    name = markup.code(f"{one.version} {line}" if one.version else line, title=one.series.part)
    return Row(
        (
            name,
            one.series.label,
            markup.verdict(change.verdict, reason=change.reason),
            step_words.size_words(change),
            step_words.level_words(change),
            markup.tag("span", step_words.short_where_words(change), title=step_words.where_words(change)),
            step_words.code_words(change),
            step_words.environment_words(change),
            change.circumstances.cause,
        )
    )
