"""What differs within a pair of launches: metrics by group, opcodes, the environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from profiler.compare.comparison import Comparison
from profiler.compare.match_launches import template_arguments
from profiler.compare.metric_groups import MetricGroup, group_metrics, largest_first
from profiler.compare.pair_comparison import MetricChange, OpcodeChange, PairComparison
from profiler.evidence import formatting
from profiler.evidence.values import Evidence, Value
from profiler.statistics.verdict import Verdict
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row

CHANGED, ALL = SHOWN = ("changed", "all")
BY_GROUP, BY_CHANGE, BY_NAME = ORDERS = ("group", "change", "name")
OPCODES_SHOWN = 12
OPCODE_CAPTIONS = {
    Evidence.MEASURED: "warp instructions, largest change first",
    Evidence.STATIC: "static: places in the code, not how often they run; largest change first",
}
_ENVIRONMENT = ("GPU", "driver", "CUDA", "ncu", "dtype", "clock control", "cache control", "replay mode")


def table(
    pair: PairComparison,
    shown: str = ALL,
    order: str = BY_GROUP,
    words: str = "",
    *,
    with_names: bool = True,
) -> Html:
    """The metrics that hold every word: the changed ones, what did not change folded, or all of them open.

    Every label, and `with_names` every ncu name, is in the page as a whole, folded or not.
    """
    groups = group_metrics(pair.metrics, words)
    if not groups:
        return markup.note(markup.join(("No metric holds", markup.code(words))))
    columns = _columns(with_names)
    if order != BY_GROUP:
        parts = [_flat_table(groups, shown, order, columns)]
    elif shown == ALL:
        parts = [_group_fold(group, columns, everything=True) for group in groups]
    else:
        moved = [group for group in groups if _with_both_numbers(group)]
        parts = [_group_fold(group, columns, everything=False) for group in moved]
        if not moved:
            parts.append(markup.note("Of the metrics that both sides have, none changed."))
        others = [group for group in groups if group not in moved]
        one_sided = [group for group in others if group.changed]
        parts += _folded_groups("Only one side has a number in", one_sided, columns)
        unchanged = [group for group in others if not group.changed]
        parts += _folded_groups("Nothing changed in", unchanged, columns)
    css = "mets named" if with_names else "mets"
    # One head over the tables of all groups, which have heads of their own for a screen reader.
    heads = "".join(f'<th class="{column.css}">{markup.escaped(column.head)}</th>' for column in columns)
    head = f'<table class="heads" aria-hidden="true"><tr>{heads}</tr></table>'
    return Html(f'<div class="k {css}">{head}{"".join(parts)}</div>')


def rows_of(changes: Sequence[MetricChange]) -> Html:
    """A few metrics in one table, with their ncu names."""
    return Html(f'<div class="k mets named plain">{_table("metrics", changes, _columns(True))}</div>')


def caption(comparison: Comparison) -> str:
    """What the numbers are."""
    kinds = " and ".join(dict.fromkeys(side.evidence.value for side in (comparison.a, comparison.b)))
    source = ", ncu" if comparison.a.evidence is Evidence.MEASURED else ""
    return f"{kinds}{source}"


def opcodes(changes: Sequence[OpcodeChange]) -> Html:
    """The opcodes whose count moved most, with bars against the largest move."""
    moved = [change for change in changes if change.a != change.b]
    if not moved:
        return markup.note("The same count of every opcode." if changes else markup.state("not collected"))
    largest = max(abs(change.b - change.a) for change in moved)
    rows = [
        Row(
            (
                markup.code(change.opcode),
                _count(change.a),
                _count(change.b),
                markup.change_bar((change.b - change.a) / largest),
                _signed_count(change.b - change.a),
            )
        )
        for change in moved[:OPCODES_SHOWN]
    ]
    columns = (
        Column("opcode"),
        Column("A", right=True),
        Column("B", right=True),
        Column("", wide=True),
        Column("change", right=True),
    )
    return markup.table("opcode mix", columns, rows)


def environment(comparison: Comparison, pair: PairComparison | None) -> Html:
    """What ran where, and how the launch itself differs: one value where both sides agree."""
    same = dict(comparison.same)
    differences = {difference.field: difference for difference in comparison.differences}
    rows: list[tuple[object, object]] = []
    for field in _ENVIRONMENT:
        if field in same:
            rows.append((field, same[field]))
        elif field in differences:
            rows.append((field, _both(differences[field].a, differences[field].b)))
    times = [formatting.timestamp(side.session.created) for side in (comparison.a, comparison.b)]
    rows.append(("made", " → ".join(dict.fromkeys(times))))
    if pair is not None:
        rows += _launch_attributes(pair)
    return markup.fact_table("environment", rows)


def excerpt(a: str, b: str, limit: int = 60) -> tuple[str, str]:
    """Two long texts cut to where they begin to differ; both from their start where they do not."""
    pairs = enumerate(zip(a, b, strict=False))
    first_difference = next((index for index, (x, y) in pairs if x != y), 0)
    start = max(0, first_difference - limit // 3)  # with some of what is still the same

    def cut(text: str) -> str:
        head, tail = "…" if start else "", "…" if len(text) > start + limit else ""
        return f"{head}{text[start : start + limit]}{tail}"

    return cut(a), cut(b)


def _columns(with_names: bool) -> tuple[Column, ...]:
    return (
        Column("metric"),
        *((Column("ncu", wide=True, wrap=True),) if with_names else ()),
        Column("A", right=True),
        Column("B", right=True),
        Column("change", right=True),
        Column(markup.tag("span", "±100", "m", "the change as a bar, capped at 100 % or 100 pp"), wide=True),
        Column("verdict"),
    )


def _group_fold(group: MetricGroup, columns: Sequence[Column], *, everything: bool) -> Html:
    """A group under its head; what did not change in a fold of its own unless everything is to be seen."""
    name = _capitalised(group.name)
    head = markup.join((markup.tag("b", name), markup.tag("small", _tally(group))))
    if everything:
        rows = [*group.changed, *group.unchanged]
        parts = [_table(name, rows, columns, _closing_rows(group))]
    else:
        parts = [_table(name, _with_both_numbers(group), columns)]
        if rest := _rest_words(group):
            rows = [*_with_one_number(group), *group.unchanged]
            table = _table(f"{name}, not changed", rows, columns, _closing_rows(group))
            parts.append(markup.fold(rest, [table], css="rest"))
    return markup.fold(head, parts, is_open=True)


def _with_both_numbers(group: MetricGroup) -> list[MetricChange]:
    """What changed and has a number on both sides."""
    return [change for change in group.changed if change.verdict is not Verdict.MISSING]


def _with_one_number(group: MetricGroup) -> list[MetricChange]:
    """What only one side has: of reports with other sections it would be most of the page."""
    return [change for change in group.changed if change.verdict is Verdict.MISSING]


def _folded_groups(words: str, groups: Sequence[MetricGroup], columns: Sequence[Column]) -> list[Html]:
    """The groups without a row of their own, in one fold that says why."""
    if not groups:
        return []
    tables = []
    for group in groups:
        name = _capitalised(group.name)
        tables.append(markup.tag("div", name, "gh"))
        rows = [*group.changed, *group.unchanged]
        tables.append(_table(name, rows, columns, _closing_rows(group)))
    names = ", ".join(group.name for group in groups)
    head = markup.join((markup.tag("b", words), markup.tag("small", names)))
    return [markup.fold(head, tables)]


def _flat_table(groups: Sequence[MetricGroup], shown: str, order: str, columns: Sequence[Column]) -> Html:
    """The metrics of all groups in one table, by change or by name; without those that have no number."""
    rows = [change for group in groups for change in group.changed]
    if shown == ALL:
        rows += [change for group in groups for change in group.unchanged]
    rows.sort(key=largest_first if order == BY_CHANGE else lambda change: change.label.lower())
    if not rows:
        return markup.note("No metric changed.")
    return _table("metrics", rows, columns)


def _table(
    name: str, changes: Sequence[MetricChange], columns: Sequence[Column], closing: Sequence[Row] = ()
) -> Html:
    with_names = len(columns) == len(_columns(True))
    rows = [_metric_row(change, with_names) for change in changes]
    return markup.table(name, columns, [*rows, *closing])


def _metric_row(change: MetricChange, with_names: bool) -> Row:
    hint = f"{change.metric} [{change.unit}]" if change.unit else change.metric
    cells = (
        markup.tag("span", change.label, title=hint),
        *((markup.code(change.metric),) if with_names else ()),
        markup.short_value(change.a, with_long_unit=with_names),  # without them the table has half the page
        markup.short_value(change.b, with_long_unit=with_names),
        markup.change(change.a, change.b),
        markup.change_bar(_bar_share(change), change.verdict.traits.colour),
        markup.verdict(change.verdict, reason=change.reason),
    )
    return Row(cells)


def _tally(group: MetricGroup) -> str:
    """How many of the group's rows have each verdict."""
    counts = Counter(change.verdict for change in (*group.changed, *group.unchanged))
    return " · ".join(f"{counts[verdict]} {verdict.words}" for verdict in Verdict if counts[verdict])


def _rest_words(group: MetricGroup) -> str:
    """What of a group is folded: `1 on one side only, 6 same, 2 also in another row, 8 not collected`."""
    counts = Counter(change.verdict.words for change in group.unchanged)
    one_sided = len(_with_one_number(group))
    words = [f"{one_sided} on one side only"] if one_sided else []
    words += [f"{count} {verdict}" for verdict, count in counts.items()]
    words += [
        f"{len(changes)} {what}"
        for changes, what in ((group.repeats, "also in another row"), (group.zero, "at 0 on both sides"))
        if changes
    ]
    words += [f"{len(changes)} {why}" for why, changes in group.absent.items()]
    return ", ".join(words)


def _capitalised(name: str) -> str:
    return name[:1].upper() + name[1:]


def _bar_share(change: MetricChange) -> float | None:
    """How far the bar reaches: the change, where 100 % or 100 pp is all of it; None where there is none."""
    if change.a.number is None or change.b.number is None or change.a.unit != change.b.unit:
        return None
    if change.unit == "%":
        return (change.b.number - change.a.number) / 100
    return None if change.change_pct is None else change.change_pct / 100


def _closing_rows(group: MetricGroup) -> list[Row]:
    """What needs no row of its own: also in another row, zero on both sides, or no number on either."""
    heads = (
        (markup.muted("also in another row:"), group.repeats),
        *((markup.state(f"{why}:"), changes) for why, changes in group.absent.items()),
        (markup.muted("0 on both sides:"), group.zero),
    )
    return [
        markup.closing_row(markup.join((head, markup.muted(markup.join(map(_label, changes), " · ")))))
        for head, changes in heads
        if changes
    ]


def _label(change: MetricChange) -> Html:
    return markup.tag("span", change.label, title=change.metric)


def _launch_attributes(pair: PairComparison) -> list[tuple[object, object]]:
    a, b = pair.a, pair.b
    rows: list[tuple[object, object]] = [
        ("grid", _both(_size(a.grid), _size(b.grid))),
        ("block", _both(_size(a.block), _size(b.block))),
    ]
    whole_a, whole_b = template_arguments(a), template_arguments(b)
    if whole_a or whole_b:
        cut = excerpt(whole_a, whole_b)
        code_a, code_b = (markup.code(text or "none") for text in cut)
        shown = _one_or_both(code_a, code_b)
        if cut != (whole_a, whole_b):
            whole = (markup.tag("div", markup.code(text)) for text in dict.fromkeys((whole_a, whole_b)))
            shown = markup.join((shown, markup.fold("whole", whole)))
        rows.append(("template", shown))
    if a.nvtx or b.nvtx:
        rows.append(("NVTX range", _both("/".join(a.nvtx) or "none", "/".join(b.nvtx) or "none")))
    return rows


def _size(extent: tuple[int, int, int] | None) -> str | None:
    return formatting.dimensions(extent) if extent else None


def _both(a: str | None, b: str | None) -> Html:
    shown_a, shown_b = (
        markup.state("not in the report") if text is None else markup.escaped(text) for text in (a, b)
    )
    return _one_or_both(shown_a, shown_b)


def _one_or_both(a: Html, b: Html) -> Html:
    """One value where both are the same, else both with the word for it."""
    return a if a == b else markup.join((a, "→", b, markup.verdict(Verdict.CHANGED)))


def _count(number: float) -> Html:
    return markup.value(Value(number))


def _signed_count(difference: float) -> Html:
    sign = "+" if difference > 0 else formatting.MINUS
    return markup.join((sign, markup.quantity(*formatting.quantity(Value(abs(difference))))), "")
