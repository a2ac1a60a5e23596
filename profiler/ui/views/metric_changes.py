"""What moved within a pair of launches, as markup: metrics by group, opcodes, environment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from profiler.compare import Comparison, MetricChange, OpcodeChange, PairComparison, template_arguments
from profiler.evidence import Evidence, Side, State, Value, formatting
from profiler.statistics import Verdict
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row

OPCODES_SHOWN = 12
ENVIRONMENT = ("GPU", "driver", "CUDA", "ncu", "dtype", "clock control", "cache control", "replay mode")


def metrics(pair: PairComparison) -> Html:
    """Metrics by group, largest change first; zeros and missing ones are named in closing lines."""
    rows: list[Row] = []
    groups: dict[str, list[MetricChange]] = defaultdict(list)
    for change in pair.metrics:
        groups[change.group].append(change)
    for name, changes in groups.items():
        shown = [change for change in changes if _has_a_row(change)]
        rows.append(markup.group_row(name[:1].upper() + name[1:]))
        rows += [_metric(change) for change in sorted(shown, key=_largest_first)]
        rows += _closing([change for change in changes if not _has_a_row(change)])
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
    kinds = " and ".join(dict.fromkeys(side.evidence.value for side in sides(comparison)))
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
    differences = {item.field: item for item in comparison.differences}
    rows: list[tuple[object, object]] = []
    for name in ENVIRONMENT:
        if name in same:
            rows.append((name, same[name]))
        elif name in differences:
            rows.append((name, _both(differences[name].a, differences[name].b)))
    made = [formatting.timestamp(side.session.created) for side in sides(comparison)]
    rows.append(("made", " → ".join(dict.fromkeys(made))))
    if pair is not None:
        rows += _launch_attributes(pair)
    return markup.fact_table("environment", rows)


def excerpt(a: str, b: str, limit: int = 60) -> tuple[str, str]:
    """Two long texts cut to where they begin to differ; both from their start where they do not."""
    same = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0)
    start = max(0, same - limit // 3)
    cut = [("…" if start else "") + text[start : start + limit] for text in (a, b)]
    ends = ["…" if len(text) > start + limit else "" for text in (a, b)]
    return cut[0] + ends[0], cut[1] + ends[1]


def sides(comparison: Comparison) -> tuple[Side, Side]:
    """A and B, for what is said of each."""
    return comparison.a, comparison.b


def short(value: Value) -> Html:
    """A value for a narrow column: the state without its swatch's long words where they would not fit."""
    if value.state is State.PRESENT:
        return markup.value(value)
    return markup.tag("span", markup.state(formatting.state_words(value).replace(" on this GPU", "")))


def _metric(change: MetricChange) -> Row:
    text = formatting.change(change.a, change.b)
    share = None
    if change.a.number is not None and change.b.number is not None:
        share = (change.b.number - change.a.number if change.unit == "%" else change.change_pct or 0.0) / 100
    hint = f"{change.metric} [{change.unit}]" if change.unit else change.metric
    cells = (
        markup.tag("span", change.label, title=hint),
        short(change.a),
        short(change.b),
        _change_text(text),
        markup.change_bar(share if text and text != "from 0" else None, change.verdict.traits.colour),
        markup.verdict(change.verdict, reason=change.reason),
    )
    return Row(cells)


def _change_text(text: str) -> Html:
    number, _, unit = text.rpartition(" ")
    if unit == "pp":
        return markup.quantity(number, unit)
    return markup.escaped(text)


def _closing(changes: Sequence[MetricChange]) -> list[Row]:
    """What needs no row of its own: zero on both sides, or no number on either, by reason."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for change in changes:
        a, b = (formatting.state_words(value) for value in (change.a, change.b))
        reasons["" if change.a.number == 0 else a if a == b else f"{a} in A, {b} in B"].append(change.label)
    lines = []
    for words, labels in reasons.items():
        shown = markup.state(f"{words}:") if words else markup.muted("0 on both sides:")
        lines.append(markup.closing_row(markup.join((shown, markup.muted(" · ".join(labels))))))
    return lines


def _has_a_row(change: MetricChange) -> bool:
    numbers = (change.a.number, change.b.number)
    return numbers not in ((None, None), (0, 0))


def _largest_first(change: MetricChange) -> float:
    if change.a.number is None or change.b.number is None:
        return 0.0
    if change.unit == "%":
        return -abs(change.b.number - change.a.number)
    return -abs(change.change_pct) if change.change_pct is not None else float("-inf")


def _launch_attributes(pair: PairComparison) -> list[tuple[object, object]]:
    a, b = pair.a, pair.b
    rows: list[tuple[object, object]] = [
        ("grid", _both(_size(a.grid), _size(b.grid))),
        ("block", _both(_size(a.block), _size(b.block))),
    ]
    if template_arguments(a) or template_arguments(b):
        cut_a, cut_b = excerpt(template_arguments(a), template_arguments(b))
        shown = _pair(
            markup.code(cut_a or "none", template_arguments(a)),
            markup.code(cut_b or "none", template_arguments(b)),
        )
        rows.append(("template", shown))
    if a.nvtx or b.nvtx:
        rows.append(("NVTX range", _both("/".join(a.nvtx) or "none", "/".join(b.nvtx) or "none")))
    return rows


def _size(extent: tuple[int, int, int] | None) -> str | None:
    return formatting.dimensions(extent) if extent else None


def _both(a: str | None, b: str | None) -> Html:
    return _pair(
        *(markup.state("not in the report") if text is None else markup.escaped(text) for text in (a, b))
    )


def _pair(a: Html, b: Html) -> Html:
    """One value where both are the same, else both with the word for it."""
    return a if a == b else markup.join((a, "→", b, markup.verdict(Verdict.CHANGED)))


def _count(number: float) -> Html:
    return markup.value(Value(number))


def _signed_count(difference: float) -> Html:
    sign = "+" if difference > 0 else formatting.MINUS
    return markup.join((sign, _count(abs(difference))), "")
