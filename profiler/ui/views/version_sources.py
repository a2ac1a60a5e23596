"""Two catalogued versions as markup: entries, sources side by side, conflicts by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from profiler.catalog import Version
from profiler.evidence import Value, formatting
from profiler.sass import LineTraffic, SourceRow, compare_traffic, side_by_side
from profiler.sass.source_diff import TrafficRow, flag_changes
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row

LINES_SHOWN = 14  # lines with most conflicts
_SIGNS = {"changed": ("−", "+"), "removed": ("−", ""), "added": ("", "+"), "flag": ("Δ", "Δ")}


@dataclass(frozen=True)
class Kept:
    """What a run keeps of one version."""

    version: Version
    text: str | None  # of its source
    traffic: Mapping[str, Sequence[TrafficRow]]  # shared-memory traffic by workload
    files: Mapping[str, str]  # the text of each file that the traffic names

    @property
    def name(self) -> str:
        """The source's file name."""
        return self.version.source.name if self.version.source else self.version.callable or ""


def entries(a: Kept, b: Kept) -> Html:
    """What the catalogue says of the two: one value where both agree."""
    rows = [
        ("parent", *(one.version.parent or "none" for one in (a, b))),
        ("idea", *(one.version.technique for one in (a, b))),
        ("state", *(_state(one.version) for one in (a, b))),
        ("source", *(one.name for one in (a, b))),
        ("flags", *(" ".join(one.version.flags) or "none" for one in (a, b))),
        ("dtypes", *(", ".join(one.version.dtypes) for one in (a, b))),
        ("budget", *(_budget(one.version) for one in (a, b))),
    ]
    return markup.fact_table("catalogue", ((label, _both(label, x, y)) for label, x, y in rows))


def flags(a: Kept, b: Kept) -> Html:
    """The flags that differ, each with both values; nothing where none does."""
    changes = flag_changes(a.version.flags, b.version.flags)
    if not changes:
        return Html("")
    words = [
        markup.join((markup.code(change.name), _set(change.a), markup.muted("→"), _set(change.b)))
        for change in changes
    ]
    return markup.grey_strip(["Flags that differ", *words])


def source_caption(a: Kept, b: Kept) -> str:
    """What the side-by-side shows."""
    changes = flag_changes(a.version.flags, b.version.flags)
    if a.text is not None and a.text == b.text:
        if not changes:
            return f"{a.name}: the same source and flags"
        names = ", ".join(change.name for change in changes)
        words = f"Δ marks the lines that read {names}, grey ones are not compiled on that side"
        return f"both are builds of {a.name}: the text is the same, {words}"
    rows = side_by_side(a.text or "", b.text or "", (a.version.flags, b.version.flags))
    gone = sum(row.kind in ("changed", "removed") for row in rows)
    new = sum(row.kind in ("changed", "added") for row in rows)
    names = a.name if a.name == b.name else f"{a.name} → {b.name}"
    return f"{names}: −{gone} +{new} lines" + (", Δ reads a flag that differs" if changes else "")


def sources(a: Kept, b: Kept) -> Html:
    """Both sources side by side, without the long stretches that are equal."""
    lost = [f"{side}: {one.name or 'no source'}" for side, one in (("A", a), ("B", b)) if one.text is None]
    if lost:
        return markup.note(markup.state(f"the run keeps no source of {', '.join(lost)}"))
    rows = side_by_side(a.text or "", b.text or "", (a.version.flags, b.version.flags))
    if all(row.kind == "gap" for row in rows):
        return markup.note("No line differs, and no line reads a flag that does.")
    body = "".join(map(_source_row, rows))
    head = (
        f"<tr><th></th><th></th><th>A {escape(a.name)}</th><th></th><th></th><th>B {escape(b.name)}</th></tr>"
    )
    columns = '<colgroup><col class="n"><col class="s"><col><col class="n"><col class="s"><col></colgroup>'
    whole = f"{columns}<thead>{head}</thead><tbody>{body}</tbody></table>"
    return Html(f'<div class="k src">{markup.table_start("source of A and B")}{whole}</div>')


def conflicts(a: Kept, b: Kept, workloads: tuple[str, str]) -> Html:
    """Shared-memory conflicts by source line, each side on its workload, most first."""
    sides = [one.traffic.get(workload, ()) for one, workload in zip((a, b), workloads, strict=True)]
    if not any(sides):
        return markup.note(markup.state("no traffic of this workload is kept for either side"))
    rows = compare_traffic(sides[0], sides[1], (a.files, b.files))
    shown = [row for row in rows if any(row.conflicts)]
    if not shown:
        return markup.note("No bank conflict on either side.")
    body = [_conflict_row(row) for row in shown[:LINES_SHOWN]]
    quiet = len(rows) - len(shown)
    if len(shown) > LINES_SHOWN:
        body.append(
            markup.closing_row(markup.muted(f"{len(shown) - LINES_SHOWN} more lines with fewer conflicts"))
        )
    if quiet:
        body.append(
            markup.closing_row(
                markup.muted(
                    f"{quiet} more line{'s use' if quiet != 1 else ' uses'} shared memory without a conflict "
                    "on either side"
                )
            )
        )
    columns = (
        Column("line in A"),
        Column("line in B", wide=True),
        Column("", wide=True),
        Column("code", cut=2, wide=True),
        Column("A", right=True),
        Column("B", right=True),
        Column("change", right=True),
    )
    return markup.table("conflicts by source line", columns, body)


def _conflict_row(row: LineTraffic) -> Row:
    a, b = (Value(count) if count is not None else None for count in row.conflicts)
    hint = " → ".join(f"{side[1]} wavefronts, {side[2]} ideal" for side in (row.a, row.b) if side is not None)
    change = formatting.change(a, b) if a and b else f"only in {'A' if a else 'B'}"
    return Row(
        (
            markup.code(row.a_line or "–"),
            markup.code(row.b_line or "–"),
            markup.muted(row.kind),
            markup.tag("span", markup.code(row.text), title=hint),
            markup.value(a) if a else markup.muted("–"),
            markup.value(b) if b else markup.muted("–"),
            change,
        )
    )


def _source_row(row: SourceRow) -> str:
    if row.kind == "gap":
        words = "equal line" if row.skipped == 1 else "equal lines"
        return f'<tr class="gap"><td colspan="6">⋯ {row.skipped} {words}</td></tr>'
    left, right = _SIGNS.get(row.kind, ("", ""))
    a = _half(row.a_line, left, row.a, row.a_compiled)
    b = _half(row.b_line, right, row.b, row.b_compiled)
    return f"<tr>{a}{b}</tr>"


def _half(number: int | None, sign: str, text: str, compiled: bool) -> str:
    names = ["c" if sign else "e" if number is None else "", "" if compiled else "off"]
    css = f' class="{" ".join(filter(None, names))}"' if any(names) else ""
    return f"<td{css}>{number or ''}</td><td{css}>{sign}</td><td{css}>{escape(text.expandtabs(4))}</td>"


def _both(label: str, a: str, b: str) -> Html:
    shown = [
        markup.code(text) if label in ("parent", "source", "flags") else markup.escaped(text)
        for text in (a, b)
    ]
    if a == b:
        return shown[0]
    return markup.join((shown[0], markup.muted("→"), shown[1]))


def _set(value: str | None) -> Html:
    return markup.muted("not set") if value is None else markup.code(value)


def _state(version: Version) -> str:
    return f"{version.state}: {version.reason}" if version.reason else version.state


def _budget(version: Version) -> str:
    limits = {f"head dim {size}": version.budget.limits(size) for size in version.head_dims}
    first, *others = limits.values()
    if all(other == first for other in others):
        return _limits(first)
    return "; ".join(f"{size}: {_limits(found)}" for size, found in limits.items())


def _limits(found: Mapping[str, int | None]) -> str:
    words = []
    for name, most in found.items():
        if most is not None:
            unit = "byte" if name.endswith("_bytes") else ""
            words.append(
                f"{name.removesuffix('_bytes').replace('_', ' ')} ≤ {formatting.quantity(Value(most, unit))}"
            )
    return ", ".join(words) or "none"
