"""Two versions of a catalogue: their entries, sources side by side, shared-memory conflicts by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from profiler.catalog.version import Version
from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.sass.source_diff import LineTraffic, SourceRow, compare_traffic, flag_changes
from profiler.sass.source_diff import side_by_side as rows_side_by_side
from profiler.ui import markup
from profiler.ui.data.version_source import VersionSource
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import embedded_sources

LINES_SHOWN = 14  # lines with most conflicts


def entries(a: VersionSource, b: VersionSource) -> Html:
    """What the catalogue says of the two: one value where both agree."""
    facts: list[tuple[object, object]] = []
    for label, describe, is_code in _FACTS:
        text_a, text_b = describe(a), describe(b)
        shown_a, shown_b = (
            markup.code(text) if is_code else markup.escaped(text) for text in (text_a, text_b)
        )
        change = markup.join((shown_a, markup.muted("→"), shown_b))
        facts.append((label, shown_a if text_a == text_b else change))
    return markup.fact_table("catalogue", facts)


def flags(a: VersionSource, b: VersionSource) -> Html:
    """The flags that differ, each with both values; nothing where none does."""
    changes = flag_changes(a.version.flags, b.version.flags)
    if not changes:
        return Html("")
    words = [
        markup.join(
            (markup.code(change.name), _flag_value(change.a), markup.muted("→"), _flag_value(change.b))
        )
        for change in changes
    ]
    return markup.grey_strip(["Flags that differ", *words])


def caption(a: VersionSource, b: VersionSource) -> str:
    """What the side-by-side shows."""
    changes = flag_changes(a.version.flags, b.version.flags)
    if a.text is not None and a.text == b.text:
        if not changes:
            return f"{a.name}: the same source and flags"
        flags = ", ".join(change.name for change in changes)
        words = f"Δ marks the lines that read {flags}, grey ones are not compiled on that side"
        return f"both are builds of {a.name}: the text is the same, {words}"
    rows = _rows(a, b)
    gone = sum(row.kind in ("changed", "removed") for row in rows)
    new = sum(row.kind in ("changed", "added") for row in rows)
    names = a.name if a.name == b.name else f"{a.name} → {b.name}"
    return f"{names}: −{gone} +{new} lines" + (", Δ reads a flag that differs" if changes else "")


def side_by_side(a: VersionSource, b: VersionSource) -> Html:
    """Both sources side by side, without the long stretches that are equal."""
    lost = [
        f"{label}: {side.name or 'no source'}" for label, side in (("A", a), ("B", b)) if side.text is None
    ]
    if lost:
        return markup.note(markup.state(f"the run keeps no source of {', '.join(lost)}"))
    rows = _rows(a, b)
    if all(row.kind == "gap" for row in rows):  # only stretches that are equal
        return markup.note("No line differs, and no line reads a flag that does.")
    return embedded_sources.grid(rows, (a.name, b.name))


def conflicts(a: VersionSource, b: VersionSource, workloads: tuple[str, str]) -> Html:
    """Shared-memory conflicts by source line, each side on its workload, most first."""
    accesses = [side.traffic.get(workload, ()) for side, workload in zip((a, b), workloads, strict=True)]
    if not any(accesses):
        return markup.note(markup.state("no traffic of this workload is kept for either side"))
    lines = compare_traffic(accesses[0], accesses[1], (a.files, b.files))
    with_conflicts = [line for line in lines if any(line.conflicts)]
    if not with_conflicts:
        return markup.note("No bank conflict on either side.")
    rows = [_conflict_row(line) for line in with_conflicts[:LINES_SHOWN]]
    if len(with_conflicts) > LINES_SHOWN:
        more = f"{len(with_conflicts) - LINES_SHOWN} more lines with fewer conflicts"
        rows.append(markup.closing_row(markup.muted(more)))
    if without := len(lines) - len(with_conflicts):
        use = "s use" if without != 1 else " uses"
        words = f"{without} more line{use} shared memory without a conflict on either side"
        rows.append(markup.closing_row(markup.muted(words)))
    columns = (
        Column("line in A"),
        Column("line in B", wide=True),
        Column("", wide=True),
        Column("code", wrap=True, wide=True),
        Column("A", right=True),
        Column("B", right=True),
        Column("change", right=True),
    )
    return markup.table("conflicts by source line", columns, rows)


def _rows(a: VersionSource, b: VersionSource) -> tuple[SourceRow, ...]:
    return rows_side_by_side(a.text or "", b.text or "", (a.version.flags, b.version.flags))


def _conflict_row(line: LineTraffic) -> Row:
    a, b = (Value(count) if count is not None else None for count in line.conflicts)
    sides = (side for side in (line.a, line.b) if side is not None)
    hint = " → ".join(f"{wavefronts} wavefronts, {ideal} ideal" for _, wavefronts, ideal in sides)
    return Row(
        (
            markup.code(line.a_line or "–"),
            markup.code(line.b_line or "–"),
            markup.muted(line.kind),
            markup.tag("span", markup.code(line.text), title=hint),
            markup.value(a) if a else markup.muted("–"),
            markup.value(b) if b else markup.muted("–"),
            formatting.change(a, b) if a and b else f"only in {'A' if a else 'B'}",
        )
    )


def _flag_value(value: str | None) -> Html:
    return markup.muted("not set") if value is None else markup.code(value)


def _state(version: Version) -> str:
    return f"{version.state}: {version.reason}" if version.reason else version.state


def _budget(version: Version) -> str:
    limits = {f"head dim {size}": version.budget.limits(size) for size in version.head_dims}
    first, *others = limits.values()
    if all(other == first for other in others):
        return _limits(first)
    return "; ".join(f"{size}: {_limits(size_limits)}" for size, size_limits in limits.items())


def _limits(limits: Mapping[str, int | None]) -> str:
    """`registers ≤ 128, shared ≤ 48.0 kB`: the budget's fields with their limits, none of those unset."""
    words = []
    for field, limit in limits.items():
        if limit is not None:
            unit = "byte" if field.endswith("_bytes") else ""
            label = field.removesuffix("_bytes").replace("_", " ")
            words.append(f"{label} ≤ {formatting.quantity(Value(limit, unit))}")
    return ", ".join(words) or "none"


# What an entry says: the label, how it reads, and whether it is code.
_FACTS: tuple[tuple[str, Callable[[VersionSource], str], bool], ...] = (
    ("parent", lambda side: side.version.parent or "none", True),
    ("idea", lambda side: side.version.technique, False),
    ("state", lambda side: _state(side.version), False),
    ("source", lambda side: side.name, True),
    ("flags", lambda side: " ".join(side.version.flags) or "none", True),
    ("dtypes", lambda side: ", ".join(side.version.dtypes), False),
    ("budget", lambda side: _budget(side.version), False),
)
