"""The top of the Launch page: which launch it is, its facts in tiles, and what its numbers say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from profiler.documents.launch import LaunchDocument
from profiler.evidence import formatting
from profiler.evidence.values import Evidence, State, Value
from profiler.explain.launch_numbers import LaunchNumber
from profiler.store.rows import ResultInfo
from profiler.ui import addresses, markup
from profiler.ui.markup import Html, Tile

_TILES = 7


def page_head(document: LaunchDocument, view: addresses.LaunchView, labels: Sequence[str]) -> Html:
    """The kernel; at its right which launch of which version, and the ways to its neighbours."""
    launch, side = document.subject.launch, document.subject.side
    place = labels.index(document.subject.label)
    noun = "launch" if side.evidence is Evidence.MEASURED else "function"
    made = side.launch_session.created
    parts = [
        f"{noun} {place + 1} of {len(labels)}",
        markup.link(addresses.run(view.run), markup.code(side.label), "its run"),
        side.workload or "",
        side.gpu or ("GPU not in the report" if side.evidence is Evidence.MEASURED else ""),
        f"{made.astimezone(UTC):%Y-%m-%d}" if made else "",
        markup.evidence_badge(side.evidence.value) if side.evidence is not Evidence.MEASURED else "",
    ]
    title = markup.tag("span", _name(document), "c", launch.demangled)
    context = markup.join((part for part in parts if part), " · ")
    return markup.page_head(title, markup.join((context, neighbours(view, labels, place))))


def neighbours(view: addresses.LaunchView, labels: Sequence[str], place: int) -> Html:
    """The launch before and the one after, in the order of the report; `[` and `]` press these links."""
    links = []
    for key, words, at in (("[", "‹ previous", place - 1), ("]", "next ›", place + 1)):
        if 0 <= at < len(labels):
            links.append(markup.link(view.at(labels[at]).href, words, labels[at], key=key))
    return markup.join(links, "")


def tab_title(document: LaunchDocument) -> str:
    """What the browser's tab is called."""
    return f"{_name(document)} · {document.subject.side.label}"


def _name(document: LaunchDocument) -> str:
    """The kernel; of what was not measured the version, since its parts have names of ours."""
    side = document.subject.side
    is_measured = side.evidence is Evidence.MEASURED
    return document.subject.launch.base_name if is_measured else side.version or side.label


def tiles(document: LaunchDocument, info: ResultInfo) -> Html:
    """The facts of the launch, each with the baseline's and what belongs to it."""
    sections = document.sections
    if sections.evidence is not Evidence.MEASURED:
        facts = sections.facts[:_TILES]
        return markup.tiles([_tile(fact.label, fact.value, _was(fact)) for fact in facts], "facts")
    nearest = sections.nearest_peak
    clock, memory_clock = sections.fact("sm_clock"), sections.fact("memory_clock")
    registers, shared = sections.fact("registers"), sections.shared_memory
    cells = [
        _duration(document),
        _tile("nearest its peak", Value(None, text=_unit_name(nearest)), _share(nearest))
        if nearest
        else _tile("nearest its peak", Value(None, state=State.NOT_COLLECTED), ""),
        _tile("schedulers issue", sections.fact("issue_active").value, _was(sections.fact("issue_active"))),
        _tile("instructions", sections.fact("inst_executed").value, _was(sections.fact("inst_executed"))),
        _tile(
            "SM clock",
            clock.value,
            markup.join((_was(clock), _beside("memory", memory_clock)), ", "),
        ),
        _tile(
            f"grid {formatting.TIMES} block",
            Value(None, text=formatting.dimensions(info.grid)),
            _beside("", sections.fact("waves"), "waves"),
            f"{formatting.TIMES} {formatting.dimensions(info.block)}",
        ),
        _tile("registers", registers.value, markup.join((_was(registers), _beside("shared", shared)), ", ")),
    ]
    return markup.tiles(cells, "facts")


def beside(document: LaunchDocument) -> str:
    """What the tick is, for a caption; "" without a baseline."""
    return f"; ┃ {document.baseline_name}" if document.baseline else ""


def _duration(document: LaunchDocument) -> Tile:
    """ncu's duration with the verdict of the pair, where there is one."""
    duration = document.sections.fact("duration")
    pair = document.comparison.pairs[0] if document.comparison and document.comparison.pairs else None
    verdict, below = "", "one launch under ncu"
    if document.subject.side.wrong:
        verdict, below = markup.status_tag("wrong"), document.subject.side.wrong
    elif duration.baseline is not None:
        below = f"was {formatting.quantity(duration.baseline)}"
        if pair and pair.headline:
            change = formatting.change(pair.headline.a, pair.headline.b)
            verdict = markup.verdict(pair.verdict, change, pair.headline.reason)
            below += f" · {pair.headline.reason}" if pair.headline.reason else ""
    return _tile("ncu duration", duration.value, below, verdict)


def _tile(label: str, value: Value, below: object, beside: object = "") -> Tile:
    shown: object = markup.state(formatting.state_words(value))
    unit = ""
    if value.state is State.PRESENT:
        shown, unit = formatting.quantity(_short(value))
    small = markup.join((markup.escaped(unit), beside))
    if not isinstance(below, Html):  # it may be cut: the pointer reads all of it
        below = markup.tag("span", below, title=str(below)) if below else "\N{NO-BREAK SPACE}"
    return Tile(label, shown, small, below or "\N{NO-BREAK SPACE}")


def _was(number: LaunchNumber) -> Html:
    """The baseline's number; "" without one."""
    if number.baseline is None:
        return Html("")
    return markup.escaped(f"was {formatting.quantity(_short(number.baseline))}")


def _short(value: Value) -> Value:
    """The value without the word of its unit, which the tile's label says."""
    unit = value.unit.partition("/b")[0]
    return value._replace(unit="" if unit in ("inst", "register/thread", "block", "cycle") else unit)


def _unit_name(number: LaunchNumber) -> str:
    """The unit of a throughput, without what it counts: `XU pipe`, not `XU pipe (MUFU, I2F, POPC …)`."""
    return number.label.partition(" (")[0].partition(",")[0]


def _share(number: LaunchNumber) -> Html:
    words = f"{formatting.quantity(number.value)} of peak"
    return markup.join((words, _was(number)), ", ")


def _beside(before: str, number: LaunchNumber, after: str = "") -> Html:
    """A second number of a tile; "" where the report has none."""
    if number.number is None:
        return Html("")
    shown = str(formatting.quantity(_short(number.value)))
    return markup.escaped(" ".join(filter(None, (before, shown, after))))
