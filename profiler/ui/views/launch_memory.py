"""The memory hierarchy of a launch: the diagram, and the same as rows where a phone has no room for it."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.documents.blocks import Hinted, Number, Phrase, Table
from profiler.documents.launch import LaunchDocument
from profiler.evidence import formatting
from profiler.evidence.values import State, Value
from profiler.explain.launch_numbers import LaunchNumber
from profiler.explain.memory_traffic import MemoryLevel, MemoryLink
from profiler.ui import addresses, markup
from profiler.ui.charts import memory_diagram
from profiler.ui.charts.memory_diagram import Box, Flow
from profiler.ui.markup import Html
from profiler.ui.views import answer


def diagram(document: LaunchDocument) -> Html:
    """Levels and links of the launch; for Markdown that keeps SVG."""
    memory = document.sections.memory
    widest = max((link.moved.number or 0.0 for link in memory.links if link.is_counted_in_bytes), default=0.0)
    flows = [_flow(link, widest) for link in memory.links]
    boxes = [_box(level) for level in memory.levels]
    return Html(f'<div class="k mem-box">{memory_diagram.svg(boxes, flows, alt(document))}</div>')


def rows(document: LaunchDocument) -> Html:
    """A row a link: bytes, rate, share of the link's peak, and the baseline's bytes."""
    beside = ("change",) if document.baseline is not None else ()
    rows: list[Sequence[Phrase]] = []
    for link in document.sections.memory.links:
        moved = link.moved
        change = formatting.change(moved.baseline, moved.value) if moved.baseline else ""
        rows.append(
            (
                Hinted(f"{link.source} → {link.target}", moved.metric),
                Number(moved.value),
                *(Number(number.value) if number else "–" for number in (link.rate, link.share)),
                *((change or "–",) if beside else ()),
            )
        )
    head = ("link", "moved", "rate", "of peak", *beside)
    return answer.table(Table(head, rows, right=(1, 2, 3, 4)), "memory traffic", css="mem-rows")


def notes(document: LaunchDocument, code: addresses.LaunchCode | None) -> Html:
    """What leaves this GPU, what was moved in vain, and the lines that ask for it."""
    memory = document.sections.memory
    parts = [_note(number) for number in (*memory.notes, *memory.beyond) if number.number is not None]
    missing = [number for number in (*memory.notes, *memory.beyond) if number.number is None]
    if missing:
        states = dict.fromkeys(formatting.state_words(number.value) for number in missing)
        names = ", ".join(number.label for number in missing)
        parts.append(markup.join((markup.state(", ".join(states) + ":"), markup.muted(names))))
    if code is not None:
        parts.append(markup.link(code.at(view="source"), "lines that ask for memory"))
    return markup.note(markup.join(parts, " · "))


def alt(document: LaunchDocument) -> str:
    """The diagram in words."""
    return "memory hierarchy: " + "; ".join(
        f"{link.source} to {link.target} {formatting.quantity(link.moved.value)}"
        for link in document.sections.memory.links
    )


def _flow(link: MemoryLink, widest: float) -> Flow:
    moved = link.moved
    missing = "" if moved.value.state is State.PRESENT else formatting.state_words(moved.value)
    share = None
    if link.is_counted_in_bytes and moved.number is not None and widest:
        share = moved.number / widest
    return Flow(
        link.name,
        missing or _amount(link),
        _below(link),
        share,
        missing,
        moved.number == 0,
        _title(link),
    )


def _amount(link: MemoryLink) -> str:
    """What stands above the line: what was moved, and by what where its ends do not say it."""
    shown = str(formatting.quantity(link.moved.value))
    if not link.is_counted_in_bytes:
        words = "loads" if link.name.endswith("loads") else "stores"
        return f"{words} {shown}" + (" wavefronts" if link.moved.number else "")
    if link.name in ("loads", "stores"):
        return f"{shown} {link.name}"
    return shown + {"DRAM read": " read", "DRAM write": " write"}.get(link.name, "")


def _below(link: MemoryLink) -> str:
    """What stands below the line: rate and share of its peak, or sectors."""
    if not link.is_counted_in_bytes:
        return ""
    shown = [
        str(formatting.quantity(number.value))
        for number in (link.rate, link.share)
        if number is not None and number.number is not None
    ]
    if link.rate is None:  # between the kernel and L1
        sectors, per_request = link.details
        if sectors.number:
            shown = [f"{formatting.quantity(Value(sectors.value.number))} sectors"]
            if per_request.number is not None:
                shown.append(f"{formatting.digits(per_request.number)} per request")
        return ", ".join(shown)
    if link.moved.number is None and shown:
        return f"{shown[-1]} of its peak"
    return " · ".join(shown)


def _title(link: MemoryLink) -> str:
    """Every number of a link by its metric, with the baseline's."""
    numbers = [link.moved, link.rate, link.share, *link.details]
    return "; ".join(_named(number) for number in numbers if number is not None)


def _named(number: LaunchNumber) -> str:
    shown = str(formatting.quantity(number.value))
    if number.baseline is not None:
        shown += f", was {formatting.quantity(number.baseline)}"
    derivation = number.value.derivation
    how = derivation.words if derivation and derivation.is_stand_in else number.metric
    return f"{number.label}: {shown} ({how})"


def _box(level: MemoryLevel) -> Box:
    lines: list[tuple[str, bool]] = []
    meter = tick = None
    title = "; ".join(
        _named(number) for number in (level.hit, level.throughput, *level.details) if number is not None
    )
    if level.hit is not None:
        lines.append(_line(level.hit, "hit {}"))
        meter, tick = _part(level.hit.number), _part(level.hit.baseline_number)
    formats: dict[str, Sequence[str]] = {
        "kernel": ("{} inst", "{} requests"),
        "L1/TEX": ("loads {}", "stores {}"),
        "L2": ("{} sectors",),
        "shared": ("{} per block", "{} conflicts"),
        "DRAM": ("{}",),
    }
    for number, words in zip(level.details, formats[level.name], strict=False):
        if number.number is not None:
            lines.append(_line(number, words))
    if level.name == "shared":
        lines += [
            _line(number, f"{number.label.split(' ')[0]} {{}}")
            for number in level.details
            if _is_copy(number)
        ]
    if level.name in ("L2", "DRAM") and level.throughput:
        lines.append(_line(level.throughput, "{} of peak"))
    if level.name == "DRAM" and level.throughput:
        meter, tick = _part(level.throughput.number), _part(level.throughput.baseline_number)
    if tick is not None:
        baseline = level.hit or level.throughput
        if baseline is not None and baseline.baseline is not None:
            was = "hit was" if level.hit else "was"
            lines.append((f"{was} {formatting.quantity(baseline.baseline)}", False))
    return Box(level.name, lines, meter, tick, title)


def _is_copy(number: LaunchNumber) -> bool:
    """A copy past L1 that happened: it explains what of the L2 link L1 never holds."""
    return number.label in ("cp.async past L1", "TMA loads") and bool(number.number)


def _line(number: LaunchNumber, words: str) -> tuple[str, bool]:
    if number.number is None:
        name = words.partition("{")[0].strip() or number.label
        return f"{name} {formatting.state_words(number.value)}", True
    unit = number.value.unit
    shown = number.value._replace(unit="byte" if unit.startswith("byte/b") else unit)
    if unit in ("inst", "sector", "sectors"):
        shown = shown._replace(unit="")
    return words.format(formatting.quantity(shown)), False


def _part(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _note(number: LaunchNumber) -> Html:
    value = number.value
    if value.unit in ("sector", "sectors") or "sectors" in number.label:
        value = value._replace(unit="")
    shown = markup.tag("b", markup.value(value)) if number.number else markup.value(value)
    words = markup.join((number.label, shown))
    if number.baseline_number is not None and number.baseline:
        change = formatting.change(number.baseline, number.value)
        words = markup.join((words, markup.muted(f"({change})" if change else "")))
    return markup.tag("span", words, title=_named(number))
