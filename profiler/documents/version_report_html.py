"""A report on versions as one HTML file: every text escaped, no script, no other file, no network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from profiler import __version__
from profiler.documents.comparison_text import (
    NOT_LATENCY,
    change_numbers,
    latency_notes,
    latency_rows,
    warnings,
)
from profiler.documents.facts_comparison import FACTS_HEAD, facts_sections
from profiler.documents.svg_charts import TimeLine, WaterfallBar, time_lines, waterfall
from profiler.documents.version_table import (
    TableCell,
    TableColumn,
    TablePlace,
    TableRow,
    VersionTableDocument,
    cell_change,
    sorted_rows,
)
from profiler.evidence import Evidence, Value, formatting
from profiler.explain.time_identity import waterfall_steps
from profiler.statistics import Verdict

if TYPE_CHECKING:
    from datetime import datetime

    from profiler.compare import PairComparison
    from profiler.documents.version_report_parts import ChosenDiff, TimeHistory
    from profiler.explain import Explanation

_CHANGES_SHOWN = 24  # of a pair, largest verdicts first
_PAIRS_SHOWN = 3


def report_html(
    table: VersionTableDocument,
    histories: Sequence[TimeHistory],
    diffs: Sequence[ChosenDiff],
    created: datetime,
) -> str:
    """The whole page."""
    parts = [
        f"<h1>{escape(table.title)}</h1>",
        f'<p class="m">{escape(formatting.timestamp(created))} · profiler {escape(__version__)} · '
        "numbers of static, modelled and measured evidence are never mixed</p>",
        f'<p class="strip"><b>In one sentence</b>{_verdicts_coloured(table.headline)}</p>',
        _tiles(table),
        *_overview(table),
        "<h2>Compared</h2>",
        '<p class="m">All verdicts are judged as one table. Bars of latency are logarithmic.</p>',
        _many(table),
        *(f'<p class="m">{_with_code(note)}</p>' for note in table.notes),
        *_trends(table, histories),
        *_diffs(table, diffs),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(table.title)}</title><style>{_style()}</style>"
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{"".join(parts)}\n</body></html>\n'


@cache
def _style() -> str:
    return Path(__file__).with_name("version_report.css").read_text(encoding="utf-8")


def _verdicts_coloured(sentence: str) -> str:
    text = escape(sentence)
    for verdict in Verdict:
        text = text.replace(escape(verdict.label), _verdict(verdict))
    return text


def _verdict(verdict: Verdict, change: str = "", title: str = "") -> str:
    css = verdict.traits.colour or "m"
    words = escape(f"{verdict.label} {change}".strip())
    return f'<span class="{css}" title="{escape(title, quote=True)}">{words}</span>'


def _with_code(text: str) -> str:
    """Words in which what stands in backticks is code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner is a backtick
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))


def _tiles(table: VersionTableDocument) -> str:
    """Better, worse, wrong and not measured: how many versions of each."""
    judged = [(row, table.verdict_counts(row)) for row in table.table_rows if not row.is_baseline]
    better = [row for row, counts in judged if counts.get(Verdict.BETTER) and not counts.get(Verdict.WORSE)]
    worse = [row for row, counts in judged if counts.get(Verdict.WORSE)]
    wrong = [row for row, _ in judged if row.is_wrong]
    unmeasured = [row for row in table.table_rows if row.command and not row.is_wrong]
    what = "somewhere" if table.time_columns else "in a fact"
    tiles = (
        (f"better {what}, worse nowhere", better),
        (f"worse {what}", worse),
        ("wrong or rejected", wrong),
        ("not measured", unmeasured),
    )
    return f'<div class="tiles">{"".join(_tile(label, rows) for label, rows in tiles)}</div>'


def _tile(label: str, rows: Sequence[TableRow]) -> str:
    names = ", ".join(row.short_name for row in rows[:6]) + (" …" if len(rows) > 6 else "")
    return (
        f'<div><span class="m">{escape(label)}</span><b>{len(rows)}</b><small>{escape(names)}</small></div>'
    )


def _overview(table: VersionTableDocument) -> Iterable[str]:
    """The best correct version on each workload, beside the baseline and the fastest kernel of others."""
    if not table.time_columns:
        commands = list(dict.fromkeys(row.command for row in table.table_rows if row.command))[:1]
        yield "<h2>Nothing is measured</h2>"
        yield "<p>What follows is static and modelled: from the compiler, and from a run on the CPU. "
        yield f"{f'On a GPU: <code>{escape(commands[0])}</code>' if commands else ''}</p>"
        return
    yield "<h2>Best correct version</h2>"
    rows = []
    for at in table.time_columns:
        column = table.table_columns[at]
        own = [row for row in table.table_rows if not (row.is_of_others or row.is_wrong)]
        others = [row for row in table.table_rows if row.is_of_others]
        best, other = _fastest(own, at), _fastest(others, at)
        cells = [
            escape(column.place_words),
            _named_time(best, at),
            _against(best, at),
            _named_time(other, at),
        ]
        rows.append(cells)
    yield _table(("workload", "version", f"against {table.baseline.short_name}", "fastest of others"), rows)


def _fastest(rows: Sequence[TableRow], position: int) -> TableRow | None:
    timed = [row for row in rows if row.cells[position].number is not None]
    return min(timed, key=lambda row: row.cells[position].number or math.inf, default=None)


def _named_time(row: TableRow | None, position: int) -> str:
    if row is None:
        return '<span class="m">not measured</span>'
    value = row.cells[position].value
    time = formatting.quantity(value) if value else ""
    return f"<code>{escape(row.short_name)}</code> {escape(str(time))}"


def _against(row: TableRow | None, position: int) -> str:
    if row is None or row.is_baseline:
        return '<span class="m">the baseline</span>' if row else ""
    cell = row.cells[position]
    change = cell_change(cell)
    return (
        _verdict(cell.verdict, change, cell.reason)
        if cell.verdict
        else f'<span class="m">{escape(change)}</span>'
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table; the cells are HTML already, the heads are not."""

    def cells(name: str, texts: Sequence[str]) -> str:
        return "".join(
            f"<{name}{' class=r' if at in right else ''}>{text}</{name}>" for at, text in enumerate(texts)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    heads = f"<thead><tr>{cells('th', [escape(text) for text in head])}</tr></thead>"
    return f'<div class="box"><table>{heads}<tbody>{body}</tbody></table></div>'


def _many(table: VersionTableDocument) -> str:
    """The table of all versions: a group of columns a place."""
    groups = list(table.positions_by_place.items())
    heads = ['<th rowspan="2">version</th>']
    columns = []
    for place, positions in groups:
        heads.append(
            f'<th class="grp" colspan="{_span(table, positions)}">{_group_head(table, place, positions)}</th>'
        )
        for nth, at in enumerate(positions):
            columns += _column_heads(table, table.table_columns[at], "grp" if nth == 0 else "")
    position = table.time_columns[0] if table.time_columns else None
    body, is_headed = [], False
    width = 1 + sum(_span(table, positions) for _, positions in groups)
    for row in sorted_rows(table, position):
        if row.is_of_others and not is_headed:
            is_headed = True
            words = "external baselines <small>not judged</small>"
            body.append(f'<tr class="g"><td colspan="{width}">{words}</td></tr>')
        cells = "".join(_row_cells(table, row, [positions for _, positions in groups]))
        body.append(f"<tr{' class=base' if row.is_baseline else ''}><td>{_row_name(row)}</td>{cells}</tr>")
    return (
        f'<div class="box many"><table><thead><tr>{"".join(heads)}</tr><tr>{"".join(columns)}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _span(table: VersionTableDocument, positions: Sequence[int]) -> int:
    return sum(2 if table.table_columns[at].is_time else 1 for at in positions)


def _group_head(table: VersionTableDocument, place: TablePlace, positions: Sequence[int]) -> str:
    badge = f'<span class="ev {place.evidence.value}">{place.evidence.value}</span>'
    return f"<b>{escape(place.workload or 'any workload')}</b> {escape(place.gpu)} {badge}"


def _column_heads(table: VersionTableDocument, column: TableColumn, css: str) -> list[str]:
    label = escape(column.label)
    if not column.is_time:
        return [f'<th class="r {css}" title="{escape(column.unit, quote=True)}">{label}</th>']
    mode = escape(column.mode, quote=True)
    baseline = escape(table.baseline.short_name)
    return [f'<th class="{css}" title="{mode}">{label}</th>', f"<th>against {baseline}</th>"]


def _row_name(row: TableRow) -> str:
    name = f'<code title="{escape(row.name, quote=True)}">{escape(row.short_name)}</code>'
    if row.is_wrong:
        return (
            f'{name} <span class="tag" title="{escape(row.reason, quote=True)}">⊘ {escape(row.state)}</span>'
        )
    return f'{name} <span class="m">baseline</span>' if row.is_baseline else name


def _row_cells(table: VersionTableDocument, row: TableRow, groups: Sequence[Sequence[int]]) -> Iterable[str]:
    """The cells of a row; groups side by side without any number are one hatch with the reason."""

    def is_gap(positions: Sequence[int]) -> bool:
        return all(row.cells[at].number is None for at in positions)

    for gap, side_by_side in groupby(groups, key=is_gap):
        some = list(side_by_side)
        if not gap:
            for positions in some:
                for nth, at in enumerate(positions):
                    yield _cell(table, row, at, "grp" if nth == 0 else "")
            continue
        first = some[0][0]
        is_measured = table.table_columns[first].evidence is Evidence.MEASURED
        span = sum(_span(table, positions) for positions in some)
        why = _gap(row, row.cells[first], is_measured)
        yield f'<td class="gap grp" colspan="{span}"><span>{why}</span></td>'


def _gap(row: TableRow, cell: TableCell, is_measured: bool) -> str:
    if row.is_wrong:
        return escape(row.reason or row.state)
    if row.is_planned:
        return f"planned: {escape(row.reason)}"
    if is_measured and row.command:
        return f"{escape(cell.state)} · <code>{escape(row.command)}</code>"
    return escape(cell.state)


def _cell(table: VersionTableDocument, row: TableRow, position: int, css: str) -> str:
    column, cell = table.table_columns[position], row.cells[position]
    if cell.value is None or cell.number is None:
        span = ' colspan="2"' if column.is_time else ""
        title, state = escape(cell.reason, quote=True), escape(cell.state)
        return f'<td class="gap {css}"{span} title="{title}"><span>{state}</span></td>'
    if column.is_time:
        text = escape(str(formatting.quantity(cell.value)))
        share = 100 * table.bar_share(position, cell.number)
        bar = f'<span class="len"><i style="width:{share:.1f}%"></i></span>'
        against = "baseline" if row.is_baseline else _against(row, position)
        return f'<td class="{css}">{text}{bar}</td><td>{against}</td>'
    text = escape(formatting.without_word_unit(cell.value))
    change = "" if row.is_baseline or row.is_wrong else cell_change(cell)
    if change and not change.startswith("±"):
        colour = cell.verdict.traits.colour if cell.verdict else ""
        sign = f"{cell.verdict.traits.sign} " if cell.verdict and colour else ""
        text += f' <small class="{colour or "m"}">{escape(sign + change)}</small>'
    return f'<td class="r {css}" title="{escape(cell.reason, quote=True)}">{text}</td>'


def _trends(table: VersionTableDocument, histories: Sequence[TimeHistory]) -> Iterable[str]:
    """Latency over the runs on each workload: the baseline in ink."""
    yield "<h2>Over the runs</h2>"
    several = [history for history in histories if len(history.points) > 1]
    if not several:
        words = "each version was timed once" if histories else "not measured: no calls were timed"
        yield f'<p class="m">{words}.</p>'
        return
    yield (
        '<p class="m">Median latency of each run; the baseline in ink. Versions whose times lie far apart '
        "have a chart of their own.</p>"
    )
    yield '<div class="charts">'
    for column, group in groupby(several, key=lambda history: history.column):
        on_workload = list(group)
        yield f"<div><h3>{escape(column.place_words)}</h3>"
        for some in _by_size(on_workload):
            lines = [
                TimeLine(
                    _short(table, history.name),
                    tuple((c, ns) for c, _, ns in history.points),
                    history.name == table.baseline.name,
                )
                for history in some
            ]
            yield time_lines(lines, column.unit, f"latency on {column.place_words}")
        yield "</div>"
    yield "</div>"


def _by_size(histories: Sequence[TimeHistory]) -> list[list[TimeHistory]]:
    """Groups whose last numbers lie within a factor of three, so that a step of a few per cent is seen."""
    groups: list[list[TimeHistory]] = []
    for history in sorted(histories, key=lambda history: history.points[-1][2]):
        if groups and history.points[-1][2] <= 3 * groups[-1][0].points[-1][2]:
            groups[-1].append(history)
        else:
            groups.append([history])
    return groups


def _short(table: VersionTableDocument, name: str) -> str:
    return next(row.short_name for row in table.table_rows if row.name == name)


def _diffs(table: VersionTableDocument, diffs: Sequence[ChosenDiff]) -> Iterable[str]:
    for diff in diffs:
        baseline = escape(table.baseline.short_name)
        yield f"<h2><code>{baseline}</code> → <code>{escape(_short(table, diff.name))}</code></h2>"
        yield from _diff(diff)


def _diff(diff: ChosenDiff) -> Iterable[str]:
    if diff.comparison is None:
        yield f"<p>{escape(diff.refusal)}</p>"
        return
    yield f"<p>{_verdicts_coloured(diff.comparison.sentence)}</p>"
    if not diff.comparison.is_measured:
        yield from _facts(diff)
        return
    comparison = diff.comparison.comparison
    place = " on ".join(filter(None, (comparison.b.workload, comparison.b.gpu)))
    yield f'<p class="m"><span class="ev measured">measured</span> {escape(place)}</p>'
    if comparison.latency:
        rows = [[_verdicts_coloured(text) for text in row] for row in latency_rows(comparison)]
        yield _table(("latency", "A", "B", "change", "verdict"), rows, right=(1, 2, 3))
        yield from (f'<p class="m">{_with_code(note)}</p>' for note in latency_notes(comparison))
    for line in warnings(comparison):
        yield f'<p class="m">{escape(line)}</p>'
    if diff.explanation is not None:
        first, *others = diff.explanation.explanations
        yield f"<h3>{escape(first.kernel)}</h3><p>{escape(first.sentence)}</p>"
        yield _waterfall(first)
        yield f'<p class="m">{escape(NOT_LATENCY)}.</p>'
        for explanation in others[: _PAIRS_SHOWN - 1]:
            yield f"<p><code>{escape(explanation.kernel)}</code>: {escape(explanation.sentence)}</p>"
    for pair in comparison.pairs[:_PAIRS_SHOWN]:
        yield _changes(pair)


def _waterfall(explanation: Explanation) -> str:
    """Old time, causes, new time; nothing where there is no split."""
    split, a_us, b_us = explanation.split, explanation.a_us, explanation.b_us
    if split is None or not split.terms or a_us is None or b_us is None:
        return ""
    bars = [WaterfallBar("A", 0.0, a_us, _us(a_us), "quiet")]
    at = a_us
    is_judged = explanation.verdict.traits.moved
    for step in waterfall_steps(a_us, split):
        css = "quiet" if not is_judged or step.kind == "residue" else "worse" if step.us > 0 else "better"
        bars.append(WaterfallBar(step.label, at, at + step.us, _us(step.us, signed=True), css))
        at += step.us
    bars.append(WaterfallBar("B", 0.0, b_us, _us(b_us), "strong"))
    return waterfall(bars, f"why the time of {explanation.kernel} changed")


def _us(us: float, *, signed: bool = False) -> str:
    text = str(formatting.quantity(Value(1e3 * us, "ns"))) if us else "0"
    return f"+{text}" if signed and us > 0 else text


def _changes(pair: PairComparison) -> str:
    """The counters of a pair that moved, folded."""
    moved = [
        change for change in pair.metrics if not change.verdict.traits.quiet and change is not pair.headline
    ]
    if not moved:
        return ""
    moved.sort(key=lambda change: not change.verdict.traits.moved)
    rows = [
        [
            escape(change.group),
            escape(change.label),
            *map(escape, change_numbers(change)),
            _verdict(change.verdict, "", change.reason),
        ]
        for change in moved[:_CHANGES_SHOWN]
    ]
    more = f" ({len(moved) - _CHANGES_SHOWN} more in the dashboard)" if len(moved) > _CHANGES_SHOWN else ""
    head = ("group", "metric", "A", "B", "change", "verdict")
    summary = f"{escape(pair.kernel)}: {len(moved)} metrics changed{more}"
    return f"<details open><summary>{summary}</summary>{_table(head, rows, right=(2, 3, 4))}</details>"


def _facts(diff: ChosenDiff) -> Iterable[str]:
    """What moved in static or modelled facts, a table for each group of equal places."""
    if diff.comparison is None:
        return
    for heading, tables in facts_sections(diff.comparison.shown(), everything=False):
        kind, _, origin = map(escape, heading.partition(":"))
        yield f'<p class="m"><span class="ev {kind}">{kind}</span>{origin}</p>'
        for table in tables:
            yield f"<h3>{escape(table.cells)}</h3>"
            rows = [[_verdicts_coloured(text) for text in row] for row in table.rows]
            yield _table(FACTS_HEAD, rows, right=(1, 2, 3)) if rows else "<p>nothing moved</p>"
