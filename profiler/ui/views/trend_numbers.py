"""The numbers behind a family's history: one metric, one row per kernel, one column per version."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.evidence import formatting
from profiler.history.trend import ABSENT, Trend, TrendPoint
from profiler.ui import addresses, markup
from profiler.ui.charts.labels import shorten
from profiler.ui.data.part_names import line_names
from profiler.ui.markup import Column, Html, Row

ROWS_SHOWN = 30
COLUMNS_SHOWN = 12  # the newest versions


def table(trends: Sequence[Trend], versions: Sequence[str], family: str, ranking: Sequence[Trend]) -> Html:
    """One metric; each version's name links to the diff with the one before."""
    versions = list(versions)
    newest = versions[-COLUMNS_SHOWN:]
    columns = [Column("kernel")]
    for version in newest:
        head = markup.code(shorten(version, 18), title=version)
        if index := versions.index(version):
            before = versions[index - 1]
            view = addresses.Diff(f"{family}/{before}", f"{family}/{version}")
            head = markup.link(view.href, head, title=f"diff with {before}")
        columns.append(Column(head, right=True))
    names = line_names((*ranking, *trends))
    rank = {part_and_mode: index for index, part_and_mode in enumerate(names)}
    rows = []
    ranked = sorted(_with_a_cell(trends, newest), key=lambda trend: rank[trend.part, trend.mode])
    for trend in ranked[:ROWS_SHOWN]:
        by_version = {point.version: point for point in trend.points}
        cells = [_cell(by_version.get(version)) for version in newest]
        rows.append(Row((markup.code(names[trend.part, trend.mode]), *cells)))
    if absent := len(trends) - len(ranked):
        words = "1 kernel is" if absent == 1 else f"{absent} kernels are"
        rows.append(markup.closing_row(markup.muted(f"{words} not in the newest runs of these versions")))
    return markup.table("numbers", columns, rows)


def caption(trends: Sequence[Trend], versions: Sequence[str]) -> str:
    """What the table holds, and what it leaves out."""
    unit = trends[0].unit if trends else ""
    parts = []
    if len(versions) > COLUMNS_SHOWN:
        parts.append(f"the newest {COLUMNS_SHOWN} of {len(versions)} versions")
    kernels = len(_with_a_cell(trends, versions[-COLUMNS_SHOWN:]))
    if kernels > ROWS_SHOWN:
        parts.append(f"the {ROWS_SHOWN} longest of {kernels} kernels")
    if formatting.is_long_unit(unit):
        parts.append(unit)
    return "; ".join([*parts, "a version's name leads to the diff with the one before"])


def _with_a_cell(trends: Sequence[Trend], versions: Sequence[str]) -> list[Trend]:
    """The trends whose kernel ran in any of the versions."""
    return [
        trend
        for trend in trends
        if any(point.version in versions and point.gap != ABSENT for point in trend.points)
    ]


def _cell(point: TrendPoint | None) -> Html:
    if point is None or point.gap == ABSENT:
        return markup.muted("–")
    value = point.value
    if formatting.is_long_unit(value.unit):  # it stands in the caption
        value = value._replace(unit="")
    if point.wrong:
        return markup.tag("span", markup.muted(f"⊘ {formatting.quantity(value)}"), title=point.gap)
    return markup.value(value)
