"""The steps of a history on the Trends page: marks on the chart, a table, and what could not be judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from profiler.documents.history import step_table
from profiler.evidence.naming import brief_list
from profiler.history import step_words
from profiler.history.change_points import VERSIONS, History, LevelStep, describe_too_few
from profiler.history.shared_steps import find_shared_steps
from profiler.statistics.changepoint import LevelKind
from profiler.ui import markup
from profiler.ui.charts import step_marks
from profiler.ui.charts.panel_overlays import Callout
from profiler.ui.charts.small_multiples import Panel, PanelLine
from profiler.ui.charts.style import Figure
from profiler.ui.data.part_names import line_names
from profiler.ui.data.run_axis import RunAxis
from profiler.ui.markup import Html
from profiler.ui.views import answer
from profiler.ui.views.trend_panels import LineKey, Picture

ROWS_SHOWN = 30
CALLOUTS_SHOWN = 3  # steps named on the chart; the table has all


def with_callouts(
    picture: Picture, histories: Sequence[History], axis: RunAxis, isolated: str = ""
) -> Picture:
    """The picture whose first panel names its weightiest steps to a new level.

    Those of the isolated line come first, then those for better or worse, then the surest.
    """
    if not picture.panels:
        return picture
    panel = picture.panels[0]
    placed = [
        (line, step, place)
        for history, line in _with_lines(picture, histories, panel)
        if _has_place(history, axis)
        for step in history.steps
        if step.level is LevelKind.NEW and (place := _place(step, line, axis)) is not None
    ]
    placed.sort(
        key=lambda found: (
            found[0].label != isolated,
            not found[1].is_alarm,
            -abs(found[1].change_point.t),
        )
    )
    highest = max(
        (point.y for line in panel.lines for point in line.points if point.y is not None), default=0
    )
    several = len(panel.lines) > 1
    callouts = tuple(
        Callout(
            *place,
            title=" ".join(
                filter(
                    None,
                    (
                        step_words.verdict_words(step),
                        step_words.brief_size_words(step),
                        line.label if several else "",
                        step_words.place_words(step, over_runs=axis.is_over_runs),
                    ),
                )
            ),
            detail=step_words.brief_circumstances(step),
            role=(step.verdict.traits.colour if step.equal is None else "") or "muted",
            above=step.change_point.direction > 0 or place[1] > highest / 2,
        )
        for line, step, place in placed[:CALLOUTS_SHOWN]
    )
    return replace(picture, panels=(replace(panel, callouts=callouts), *picture.panels[1:]))


def mark(picture: Picture, histories: Sequence[History], axis: RunAxis) -> Figure:
    """The chart with a triangle at each step and a bar over the runs in which it can lie.

    Over versions, a step between runs of one version has no place.
    """
    traces: list[Figure] = []
    for index, panel in enumerate(picture.panels):
        for history, line in _with_lines(picture, histories, panel):
            if _has_place(history, axis):
                for step in history.steps:
                    traces += _traces(step, line, f"y{index + 1 if index else ''}", axis)
    figure = picture.figure
    return {**figure, "data": [*figure["data"], *traces]}


def table(histories: Sequence[History]) -> Html:
    """One row per step, the newest first."""
    names = line_names([history.series for history in histories])
    return answer.table(step_table(histories, names, ROWS_SHOWN), "steps")


def caption(histories: Sequence[History]) -> str:
    """What the rows are, and how many."""
    count = sum(len(history.steps) for history in histories)
    cut = f"the newest {ROWS_SHOWN} of {count}; " if count > ROWS_SHOWN else ""
    return f"{cut}where a level changed, with 95 % intervals; {step_words.LAST_POINT}"


def shared_notes(histories: Sequence[History]) -> list[Html]:
    """A line for each alarm that many series share on one run; its rows are in the table below."""
    return [markup.note(f"{step_words.shared_words(shared)}.") for shared in find_shared_steps(histories)]


def notes(histories: Sequence[History]) -> list[Html]:
    """That nothing stepped, and which series are too short to say so."""
    lines = []
    has_steps = any(history.steps for history in histories)
    names = line_names([history.series for history in histories])
    lines += [
        f"{_series_name(history, names[history.series.part, history.series.mode])} "
        f"{step_words.drift_words(drift, history.series.unit)}."
        for history in histories
        for drift in history.drifts
    ]
    if not has_steps and any(not history.not_judged for history in histories):
        lines.append("No step in these series.")
    too_short = [history for history in histories if history.not_judged]
    if too_short:
        # Those of one length stand together, in the order in which the lengths are met.
        lengths = list(dict.fromkeys(history.points for history in too_short))
        series = dict.fromkeys(
            _series_name(history, names[history.series.part, history.series.mode])
            for length in lengths
            for history in too_short
            if history.points == length
        )
        reason = describe_too_few(min(lengths), max(lengths))
        lines.append(f"Steps not judged, {reason}: {brief_list(list(series))}.")
    return [markup.note(line) for line in lines]


def alt(histories: Sequence[History]) -> str:
    """The marks in words, for who cannot see them."""
    count = sum(len(history.steps) for history in histories)
    return f"; {count} step{'s' * (count != 1)} marked" if count else ""


def _with_lines(
    picture: Picture, histories: Sequence[History], panel: Panel
) -> Iterator[tuple[History, PanelLine]]:
    """The histories that have a line in the panel, each with it."""
    lines = {line.label: line for line in panel.lines}
    for history in histories:
        line = next((lines.get(picture.labels[key]) for key in _keys(history, picture)), None)
        if line is not None and history.series.label == panel.title:
            yield history, line


def _has_place(history: History, axis: RunAxis) -> bool:
    return axis.is_over_runs or history.version is None


def _keys(history: History, picture: Picture) -> list[LineKey]:
    """The lines on which the history's steps may lie: of its version, else of all versions."""
    series = history.series
    keys: list[LineKey] = [(series.part, series.mode, version) for version in (history.version, None)]
    return [key for key in keys if key in picture.labels]


def _place(step: LevelStep, line: PanelLine, axis: RunAxis) -> tuple[float, float] | None:
    """Where the step lies on its line; None where it has no place there."""
    x = axis.x_of(step.likeliest)
    y = next((point.y for point in line.points if point.x == x and point.y is not None), None)
    return None if x is None or y is None else (x, y)


def _traces(step: LevelStep, line: PanelLine, y_axis: str, axis: RunAxis) -> list[Figure]:
    """The marks of one step, at the height where its line stands; none where it has no place there."""
    place = _place(step, line, axis)
    if place is None:
        return []
    return step_marks.traces(
        *place,
        [position for position in map(axis.x_of, step.possible) if position is not None],
        y_axis,
        rises=step.change_point.direction > 0,
        role=step.verdict.traits.colour or "muted",
        hover=(
            f"{step.verdict.words if step.equal is None else step.level} {step_words.size_words(step)}",
            f"can lie in {step_words.where_words(step)}",
            f"due to: {step_words.due_to_words(step)}",
        ),
    )


def _series_name(history: History, line: str) -> str:
    if history.version:
        return f"{history.version} {line}"
    return f"the newest of each version, {line}" if history.over == VERSIONS else line
