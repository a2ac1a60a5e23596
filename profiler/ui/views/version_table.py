"""Many versions as one table: a group of columns a workload, the first column frozen, each row once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from profiler.documents.version_table import (
    LATENCY,
    LEAST_SPAN,
    MODELLED_TIME,
    TableCell,
    TableColumn,
    TableRow,
    VersionTableDocument,
    cell_change,
    sorted_rows,
)
from profiler.evidence import formatting
from profiler.evidence.cell import Cell
from profiler.evidence.values import Evidence
from profiler.statistics.verdict import Verdict
from profiler.ui import addresses, markup
from profiler.ui.charts import version_lines
from profiler.ui.charts.style import Figure
from profiler.ui.markup import Html

_EVIDENCE_WORDS = {
    Evidence.MEASURED: "one launch under ncu",
    Evidence.STATIC: "static",
    Evidence.MODELLED: "modelled",
}


@dataclass(frozen=True)
class Sorting:
    """By which column the rows stand, as the address says it: `latency 2x8x2048x64`, `-registers`."""

    text: str = ""

    @property
    def key(self) -> str:
        """The column, without its direction."""
        return self.text.removeprefix("-")

    @property
    def is_reversed(self) -> bool:
        """Whether the largest comes first."""
        return self.text.startswith("-")

    def after_click(self, key: str) -> str:
        """What a click on a head asks for: that column, or the other direction where it is that one."""
        return f"-{key}" if self.text == key else key


@dataclass(frozen=True)
class View:
    """The table, how it is sorted, which row is selected, and the addresses of other views."""

    table: VersionTableDocument
    sorting: Sorting
    selected: str = ""  # the name of a row
    address: Callable[..., str] = lambda **_choices: ""  # this view with other choices

    def rows(self) -> list[TableRow]:
        """The rows as they stand."""
        position = self.sorted_position
        by_change = self.sorting.key.startswith("change")
        return sorted_rows(self.table, position, reverse=self.sorting.is_reversed, by_change=by_change)

    @property
    def sorted_position(self) -> int | None:
        """The column by which the rows stand; None: as they were chosen."""
        for position, column in enumerate(self.table.table_columns):
            if self.sorting.key in sort_keys(column):
                return position
        return None


def sort_keys(column: TableColumn) -> list[str]:
    """What the address calls a column, and the change in it: readable, one word for a fact."""
    if column.concept == MODELLED_TIME:
        return [f"{column.concept} {column.workload}"]
    if not column.is_time:
        return [column.concept]
    return [" ".join(filter(None, (word, column.workload))) for word in (column.concept, "change")]


def sort_options(table: VersionTableDocument) -> list[str]:
    """Everything that the rows can be sorted by, each in both directions; first: the order of choice."""
    keys = [key for column in table.table_columns for key in sort_keys(column)]
    return ["", *(option for key in dict.fromkeys(keys) for option in (key, f"-{key}"))]


def sort_label(option: str) -> str:
    """An option of the sort control."""
    if not option:
        return "as chosen"
    sorting = Sorting(option)
    return f"{sorting.key} {'▼' if sorting.is_reversed else '▲'}"


def context(table: VersionTableDocument) -> str:
    """How many versions, workloads and metrics stand here."""
    versions = len(table.table_rows)
    workloads = len(table.time_columns)
    metrics = len({column.concept for column in table.table_columns if not column.is_time})
    parts = [
        f"{versions} version{'s' * (versions != 1)}",
        f"{workloads} workload{'s' * (workloads != 1)}" if workloads else "nothing measured",
        f"{metrics} metric{'s' * (metrics != 1)}",
    ]
    return ", ".join(parts)


def headline(table: VersionTableDocument) -> Html:
    """The strip above the table: the answer in one sentence."""
    return markup.grey_strip(("In one sentence", _coloured(table.headline)))


def _coloured(sentence: str) -> Html:
    """A sentence in which `✓ better` and the like have their colour."""
    text = markup.escaped(sentence)
    for verdict in Verdict:
        text = Html(text.replace(verdict.label, markup.verdict(verdict)))
    return text


def caption(view: View) -> Html:
    """How the rows are sorted, and what the signs mean."""
    parts = [f"sorted by {sort_label(view.sorting.text)}" if view.sorting.text else "in the order chosen"]
    parts.append("a click on a head sorts, a second reverses; wrong or unmeasured ones stay last")
    if view.table.time_columns:
        parts.append("bars of latency: logarithmic; of a change: from the centre line, capped at ±100 %")
        parts.append("latencies are what the verdict compares; Overview and Lineage show medians")
    return markup.note("; ".join(parts))


def notes(table: VersionTableDocument) -> list[Html]:
    """What has no column, and for which launch counters are of."""
    return [markup.note(markup.backticks_as_code(note)) for note in table.notes]


@dataclass(frozen=True)
class _Group:
    """The columns of one place, as the table heads them."""

    place: Cell
    positions: list[int]
    first: bool  # the group that a phone shows

    @property
    def css(self) -> str:
        return "" if self.first else "wide"


def table(view: View) -> Html:
    """The table in its own box, which alone scrolls sideways."""
    groups = _groups(view)
    scales = {at: _scale(view.table, at) for group in groups for at in group.positions}
    lines = [_group_heads(view, groups, scales), _column_heads(view, groups)]
    width = 1 + sum(_span(view.table, group) for group in groups)
    body = []
    is_headed = False
    for row in view.rows():
        if row.is_of_others and not is_headed:
            is_headed = True
            words = markup.join(("outside baselines", markup.muted("timed in the same run; not judged")))
            body.append(f'<tr class="g"><td colspan="{width}">{words}</td></tr>')
        body.append(_row(view, row, groups, scales))
    head = f"<thead>{''.join(lines)}</thead>"
    whole = f"{markup.table_start('versions')}{head}<tbody>{''.join(body)}</tbody></table>"
    return Html(f'<div class="k k-box many">{whole}</div>')


def _groups(view: View) -> list[_Group]:
    places = view.table.positions_by_place
    at = view.sorted_position
    first = view.table.table_columns[at].place if at is not None else next(iter(places), None)
    return [_Group(place, positions, place == first) for place, positions in places.items()]


def _span(table: VersionTableDocument, group: _Group) -> int:
    return sum(2 if table.table_columns[at].is_time else 1 for at in group.positions)


def _scale(table: VersionTableDocument, position: int) -> formatting.Scale | None:
    """One unit for a column of times; None where each number has its own."""
    column = table.table_columns[position]
    numbers = sorted(n for row in table.table_rows if (n := row.cells[position].number) is not None)
    if not column.is_time or not numbers:
        return None
    return formatting.scale_for(column.unit, numbers[len(numbers) // 2])


def _group_heads(view: View, groups: Sequence[_Group], scales: Mapping[int, formatting.Scale | None]) -> str:
    cells = ['<th rowspan="2">version</th>']
    for group in groups:
        time = next((at for at in group.positions if view.table.table_columns[at].is_time), None)
        place = group.place
        name = markup.tag("b", place.workload or ("all launches" if time is not None else "any workload"))
        if time is not None:
            column, scale = view.table.table_columns[time], scales[time]
            words = f"{column.label}, {scale.unit}" if scale else column.label
        else:
            kind = "" if place.is_modelled_time else _EVIDENCE_WORDS[place.evidence]  # as its column says
            words = ", ".join(filter(None, (kind, place.gpu)))
        cells.append(
            f'<th colspan="{_span(view.table, group)}" class="{f"grp {group.css}".strip()}">'
            f"{markup.join((name, markup.muted(words)))}</th>"
        )
    return f"<tr>{''.join(cells)}</tr>"


def _column_heads(view: View, groups: Sequence[_Group]) -> str:
    cells = []
    for group in groups:
        for nth, at in enumerate(group.positions):
            column = view.table.table_columns[at]
            edge = "grp" if nth == 0 else ""
            if column.is_time:
                time_key, change_key = sort_keys(column)
                words = column.concept if column.concept == LATENCY else "ncu duration"
                cells.append(_head(view, time_key, words, f"{edge} {group.css}"))
                against = f"against {view.table.baseline.short_name}"
                cells.append(_head(view, change_key, against, group.css))
            else:
                css = f"r {edge} {group.css}"
                cells.append(_head(view, sort_keys(column)[0], _short_label(column), css, column))
    return f"<tr>{''.join(cells)}</tr>"


def _short_label(column: TableColumn) -> str:
    """The label without what its group says: `registers`, not `registers, compiled`."""
    for suffix in (", compiled", ", modelled", " (static)", " instructions (static count)"):
        if column.label.endswith(suffix):
            return column.label.removesuffix(suffix)
    return column.label


def _head(view: View, key: str, words: str, css: str, column: TableColumn | None = None) -> Html:
    link = markup.link(view.address(sort=view.sorting.after_click(key)), words, "sort by it")
    title = ""
    if column is not None:
        title = ", ".join(filter(None, (column.label, column.unit, column.kernel)))
    if view.sorting.key == key:
        link = markup.tag("b", markup.join((link, "▼" if view.sorting.is_reversed else "▲")))
    title_attribute = f' title="{markup.escaped(title)}"' if title else ""
    return Html(f'<th class="{" ".join(css.split())}"{title_attribute}>{link}</th>')


def _row(
    view: View, row: TableRow, groups: Sequence[_Group], scales: Mapping[int, formatting.Scale | None]
) -> str:
    has_gap = any(_is_gap(view.table, row, group) for group in groups)  # which says why it is wrong
    cells = [f"<td>{_name(view, row, has_gap)}</td>"]
    waiting: list[_Group] = []  # groups side by side that one reason stands for
    for group in groups:
        if _is_gap(view.table, row, group):
            waiting.append(group)
            continue
        cells += _gap_cells(view, row, waiting)
        waiting = []
        for nth, at in enumerate(group.positions):
            css = " ".join(filter(None, ("grp" if nth == 0 else "", group.css)))
            cells += _cells(view, row, at, css, scales[at])
    cells += _gap_cells(view, row, waiting)
    css = "sel" if row.name == view.selected else "base" if row.is_baseline else ""
    return f'<tr class="{css}">{"".join(cells)}</tr>' if css else f"<tr>{''.join(cells)}</tr>"


def _is_gap(table: VersionTableDocument, row: TableRow, group: _Group) -> bool:
    """Whether a row has no number at all in a group."""
    return all(row.cells[at].number is None for at in group.positions)


def _gap_cells(view: View, row: TableRow, groups: Sequence[_Group]) -> list[str]:
    """One hatched cell over groups of which a row has nothing, with the reason; one more for a phone."""
    if not groups:
        return []
    span = sum(_span(view.table, group) for group in groups)
    first = row.cells[groups[0].positions[0]]
    reason = _gap_reason(row, first, any(g.place.evidence is Evidence.MEASURED for g in groups))
    css = "gap grp" if any(group.first for group in groups) else "gap grp wide"
    return [f'<td colspan="{span}" class="{css}"><span class="why">{reason}</span></td>']


def _gap_reason(row: TableRow, cell: TableCell, is_time: bool) -> Html:
    if row.is_wrong:
        return markup.join((markup.status_tag(row.state), row.reason))
    if row.is_planned:
        return markup.join(("planned:", row.reason))
    if is_time and row.command:
        return markup.join((cell.state, markup.tag("span", "·", "wide"), markup.code(row.command)))
    return markup.tag("span", cell.state, title=cell.reason)


def _name(view: View, row: TableRow, has_gap: bool) -> Html:
    """The name, which selects the row, and what it is."""
    is_selected = row.name == view.selected
    link = markup.link(
        view.address(row="" if is_selected else row.name),
        markup.code(row.short_name),
        f"{row.name}: {'leave' if is_selected else 'show'} it in the lines below",
    )
    if row.is_baseline:
        return markup.join((link, markup.muted("baseline")))
    if row.is_wrong and not has_gap:
        return markup.join((link, markup.tag("span", markup.status_tag(row.state), title=row.reason)))
    return link


def _cells(view: View, row: TableRow, position: int, css: str, scale: formatting.Scale | None) -> list[str]:
    column, cell = view.table.table_columns[position], row.cells[position]
    if not column.is_time:
        return [f'<td class="{f"r {css}".strip()}">{_fact(view, row, position)}</td>']
    if cell.value is None or cell.number is None:
        state = markup.state(cell.state)
        return [f'<td class="{css}" colspan="2" title="{markup.escaped(cell.reason)}">{state}</td>']
    number = markup.quantity(formatting.quantity(cell.value, scale).number)
    bar = _bar(view.table.bar_share(position, cell.number))
    value = f'<span class="num">{number}</span>{bar}'
    return [
        f'<td class="{css}">{value}</td>',
        f'<td class="{css.replace("grp", "").strip()}">{_against(view, row, column, cell)}</td>',
    ]


def _fact(view: View, row: TableRow, position: int) -> Html:
    """A counter or fact with its change; coloured only where it is judged better or worse."""
    cell = row.cells[position]
    if cell.value is None or cell.number is None:
        return markup.tag("span", markup.state(cell.state), title=cell.reason)
    shown = markup.escaped(formatting.without_word_unit(cell.value))
    if not any(_fact_change(other, other.cells[position]) for other in view.table.table_rows):
        return shown
    change, css = _fact_change(row, cell), "d m"
    if change and cell.verdict is not None and (cell.verdict.traits.moved or cell.verdict is Verdict.UNCLEAR):
        change, css = f"{cell.verdict.traits.sign} {change}", f"d {cell.verdict.traits.colour or 'm'}"
    # Also where nothing changed, so that the numbers of a column stand below each other.
    return Html(f"{shown}{_span_with_title(css, change, cell.reason)}")


def _fact_change(row: TableRow, cell: TableCell) -> str:
    """The change of a fact as text; "" where there is none."""
    change = "" if row.is_baseline or row.is_wrong else cell_change(cell)
    return "" if change.startswith("±") else change


def _span_with_title(css: str, text: str, title: str) -> Html:
    return Html(f'<span class="{css}" title="{markup.escaped(title)}">{markup.escaped(text)}</span>')


def _against(view: View, row: TableRow, column: TableColumn, cell: TableCell) -> Html:
    """Verdict and change against the baseline, a link to the diff of the two, and a bar."""
    if row.is_baseline:
        return markup.muted("baseline")
    change = cell_change(cell)
    share = None if cell.change_pct is None else cell.change_pct / 100
    hint = "; ".join(filter(None, (cell.reason, str(cell.interval or ""), cell.command)))
    if cell.verdict is None:
        words, colour = markup.tag("span", change, "m", hint), ""
    else:
        words, colour = markup.verdict(cell.verdict, change, hint), cell.verdict.traits.colour
    diff = addresses.Diff(
        view.table.baseline.name,
        row.name,
        row.workloads.get(column.place, column.workload),
        column.gpu,
        evidence=column.evidence.value,
    )
    return Html(
        f"{markup.link(diff.href, words, 'why: the diff of the two')}{markup.change_bar(share, colour)}"
    )


def _bar(share: float) -> Html:
    return Html(f'<span class="len"><i style="width:{100 * share:.1f}%"></i></span>')


def chart_caption(view: View, chart: str) -> Html:
    """What the chart below the table shows."""
    baseline = markup.join((markup.code(view.table.baseline.short_name), "the baseline"))
    if chart == "bars":
        return markup.join(
            ("in the order of the table;", baseline, "is drawn dark; a hatch where there is no number")
        )
    selected = next((row.short_name for row in view.table.table_rows if row.name == view.selected), "")
    chosen = f"{selected} selected," if selected else "a click on a name in the table selects it;"
    words = "is drawn dark; lines stop where a value is missing"
    return markup.join(("one line per version;", chosen, baseline, words))


def chart(view: View, kind: str) -> tuple[Figure, str]:
    """The rows of the table as lines over parallel axes or as bars, and what a screen reader says of it.

    A column in which all have one number has no axis.
    """
    rows = [row for row in view.rows() if any(cell.number is not None for cell in row.cells)]
    positions = [
        at
        for at in range(len(view.table.table_columns))
        if len({row.cells[at].number for row in rows} - {None}) > 1
    ]
    metrics = [_axis(view.table.table_columns[at]) for at in positions]
    chosen = [
        version_lines.VersionLine(
            row.short_name,
            tuple(row.cells[at].number for at in positions),
            tuple(_colour(row.cells[at]) for at in positions),
            row.name == view.selected,
            row.is_baseline,
        )
        for row in rows
    ]
    draw = version_lines.bars if kind == "bars" else version_lines.lines
    names = ", ".join(version.name for version in chosen)
    shown = ", ".join(metric.label for metric in metrics[: version_lines.MOST_AXES])
    return draw(metrics, chosen), f"{kind} of {shown} for {names}"


def _colour(cell: TableCell) -> str:
    return cell.verdict.traits.colour if cell.verdict else ""


def _axis(column: TableColumn) -> version_lines.MetricAxis:
    if column.is_time:
        label = column.workload or column.label
        return version_lines.MetricAxis(label, f"{column.concept}, log", column.unit, True, LEAST_SPAN)
    if column.concept == MODELLED_TIME:
        return version_lines.MetricAxis(column.workload, "modelled, log", column.unit, True, LEAST_SPAN)
    unit = column.unit.partition("/")[0] or column.evidence.value
    caption = column.evidence.value if column.evidence is not Evidence.MEASURED else unit
    return version_lines.MetricAxis(_short_label(column), caption, column.unit, is_log=False)
