"""What differs within a pair of launches: metrics by group, opcodes, the environment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from profiler.compare import (
    Comparison,
    MetricChange,
    OpcodeChange,
    PairComparison,
    split_repeats,
    template_arguments,
)
from profiler.evidence import Evidence, Value, formatting
from profiler.statistics import Verdict
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row

OPCODES_SHOWN = 12
OPCODE_CAPTIONS = {
    Evidence.MEASURED: "warp instructions, largest change first",
    Evidence.STATIC: "static: places in the code, not how often they run; largest change first",
}
_ENVIRONMENT = ("GPU", "driver", "CUDA", "ncu", "dtype", "clock control", "cache control", "replay mode")


def table(pair: PairComparison) -> Html:
    """Metrics by group, largest change first; repeated, zero and missing ones are named in closing lines."""
    rows: list[Row] = []
    groups: dict[str, list[MetricChange]] = defaultdict(list)
    for change in pair.metrics:
        groups[change.group].append(change)
    for name, changes in groups.items():
        with_row, repeats = split_repeats(change for change in changes if _has_a_row(change))
        rows.append(markup.group_row(name[:1].upper() + name[1:]))
        rows += [_metric_row(change) for change in sorted(with_row, key=_largest_first)]
        if repeats:
            labels = (markup.tag("span", change.label, title=change.metric) for change in repeats)
            words = markup.join(
                (markup.muted("said by another row:"), markup.muted(markup.join(labels, " · ")))
            )
            rows.append(markup.closing_row(words))
        rows += _closing_rows([change for change in changes if not _has_a_row(change)])
    columns = (
        Column("metric", cut=2),
        Column("A", right=True),
        Column("B", right=True),
        Column("change", right=True),
        Column("", wide=True),
        Column("verdict"),
    )
    return markup.table("metrics", columns, rows)


def caption(comparison: Comparison) -> str:
    """What the numbers are and how they are ordered."""
    kinds = " and ".join(dict.fromkeys(side.evidence.value for side in (comparison.a, comparison.b)))
    source = ", ncu" if comparison.a.evidence is Evidence.MEASURED else ""
    return f"{kinds}{source}; largest change first within a group; bar: change, capped at ±100"


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


def _metric_row(change: MetricChange) -> Row:
    hint = f"{change.metric} [{change.unit}]" if change.unit else change.metric
    cells = (
        markup.tag("span", change.label, title=hint),
        markup.short_value(change.a),
        markup.short_value(change.b),
        markup.change(change.a, change.b),
        markup.change_bar(_bar_share(change), change.verdict.traits.colour),
        markup.verdict(change.verdict, reason=change.reason),
    )
    return Row(cells)


def _bar_share(change: MetricChange) -> float | None:
    """How far the bar reaches: the change, where 100 % or 100 pp is all of it; None where there is none."""
    if change.a.number is None or change.b.number is None or change.a.unit != change.b.unit:
        return None
    if change.unit == "%":
        return (change.b.number - change.a.number) / 100
    return None if change.change_pct is None else change.change_pct / 100


def _closing_rows(changes: Sequence[MetricChange]) -> list[Row]:
    """What needs no row of its own: zero on both sides, or no number on either, by reason."""
    labels_by_reason: dict[str, list[str]] = defaultdict(list)
    for change in changes:
        a, b = (formatting.state_words(value) for value in (change.a, change.b))
        reason = "" if change.a.number == 0 else a if a == b else f"{a} in A, {b} in B"
        labels_by_reason[reason].append(change.label)
    rows = []
    for reason, labels in labels_by_reason.items():
        head = markup.state(f"{reason}:") if reason else markup.muted("0 on both sides:")
        rows.append(markup.closing_row(markup.join((head, markup.muted(" · ".join(labels))))))
    return rows


def _has_a_row(change: MetricChange) -> bool:
    return (change.a.number, change.b.number) not in ((None, None), (0, 0))


def _largest_first(change: MetricChange) -> float:
    if change.a.number is None or change.b.number is None:
        return 0.0
    if change.unit == "%":
        return -abs(change.b.number - change.a.number)
    return -abs(change.change_pct) if change.change_pct is not None else float("-inf")  # from 0


def _launch_attributes(pair: PairComparison) -> list[tuple[object, object]]:
    a, b = pair.a, pair.b
    rows: list[tuple[object, object]] = [
        ("grid", _both(_size(a.grid), _size(b.grid))),
        ("block", _both(_size(a.block), _size(b.block))),
    ]
    whole_a, whole_b = template_arguments(a), template_arguments(b)
    if whole_a or whole_b:
        cut_a, cut_b = excerpt(whole_a, whole_b)
        code_a, code_b = markup.code(cut_a or "none", whole_a), markup.code(cut_b or "none", whole_b)
        rows.append(("template", _one_or_both(code_a, code_b)))
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
    return markup.join((sign, _count(abs(difference))), "")
