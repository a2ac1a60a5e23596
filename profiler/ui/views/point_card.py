"""The card of one point of a history: number with interval, what changed before it, where to go."""

from __future__ import annotations

from collections.abc import Callable

from profiler.compare.same_code import CHANGED
from profiler.evidence import formatting
from profiler.evidence.values import Evidence, Value
from profiler.history import step_words
from profiler.history.trend import TrendPoint
from profiler.statistics.order_statistics import MIN_ROUNDS
from profiler.ui import addresses, markup
from profiler.ui.data.trend_point import PointOfLine
from profiler.ui.markup import Html

NO_CODE = "no code in this run"


def card(found: PointOfLine, label: str, address: Callable[[TrendPoint | None], str]) -> Html:
    """`address` gives the address of the view with another point chosen, or with none."""
    trend, point = found.trend, found.point
    head = markup.join(
        (
            markup.tag("b", markup.code(label)),
            markup.muted(formatting.timestamp(point.created)),
            markup.tag("span", markup.link(address(None), "close"), "x"),
        )
    )
    lines = [
        markup.tag("span", markup.join((_number(found), *_changes(found)), " · ")),
        _circumstances(found),
        _links(found, address),
    ]
    body = "".join(f"<div>{line}</div>" for line in lines if line)
    name = markup.escaped(f"{trend.label} of {label}, {formatting.timestamp(point.created)}")
    return Html(f'<div class="k k-card" role="region" aria-label="{name}"><div>{head}</div>{body}</div>')


def _number(found: PointOfLine) -> Html:
    value = found.point.value
    shown = markup.tag("b", markup.quantity(*formatting.quantity(value)))
    if found.spread is None:
        return shown
    if found.spread.interval is None:
        return markup.join((shown, markup.muted(f"no interval: fewer than {MIN_ROUNDS} rounds")))
    low, high = (formatting.quantity(Value(end, value.unit)) for end in found.spread.interval)
    words = f"95 % {low} to {high}, {len(found.spread.ns)} calls"
    return markup.join((shown, markup.muted(words)))


def _changes(found: PointOfLine) -> list[str]:
    """How far it is from the first number of its line and from the one before."""
    numbers = [point for point in found.trend.points if point.on_line]
    lines = []
    if numbers[0] != found.point:
        lines.append(f"{formatting.change(numbers[0].value, found.point.value)} since the first")
    if found.before is not None and found.before != numbers[0]:
        lines.append(f"{formatting.change(found.before.value, found.point.value)} since the one before")
    return lines


def _circumstances(found: PointOfLine) -> Html:
    """What changed since the number before."""
    changes = found.changes
    if changes is None:
        return markup.muted("the first number of this line")
    words = [f"{change.field} {change.before} → {change.after}" for change in changes.environment]
    environment = "; ".join(words) or "environment: nothing known changed"
    code = step_words.CODE_WORDS.get(changes.code.word, changes.code.word)
    machine_code = f"machine code {code}" + (f" ({changes.code.why})" if changes.code.word == CHANGED else "")
    return markup.escaped(f"since the one before: {environment}; {machine_code}")


def _links(found: PointOfLine, address: Callable[[TrendPoint | None], str]) -> Html:
    trend, point, before = found.trend, found.point, found.before
    name = addresses.version_of_run(f"{trend.family}/{point.version}", point.run_id)
    links: list[object] = [markup.link(addresses.run(point.run_id), "run")]
    if before is not None:
        other = addresses.version_of_run(f"{trend.family}/{before.version}", before.run_id)
        view = addresses.Diff(
            other, name, workload=trend.workload, gpu=trend.gpu, evidence=trend.evidence.value
        )
        words = f"{before.created:%m-%d}" if before.version == point.version else before.version
        links.append(markup.link(view.href, f"diff with {words}"))
    if found.launch is not None:
        links.append(markup.link(found.launch.href, "launch"))
    match found.code:
        case addresses.LaunchKey() as launch:
            links.append(markup.link(addresses.LaunchCode(*launch).href, "code"))
        case addresses.CompiledKey() as compiled:
            links.append(markup.link(addresses.CompiledCode(compiled.version, compiled.arch).href, "code"))
        case None if trend.evidence is not Evidence.MODELLED:
            links.append(markup.state(NO_CODE))
    links.append(markup.link(address(point), "link to this point"))
    neighbours = [
        markup.link(address(other), words)
        for other, words in ((before, "‹ previous point"), (found.after, "next point ›"))
        if other is not None
    ]
    return markup.join((*links, markup.tag("span", markup.join(neighbours), "x")), " ")
