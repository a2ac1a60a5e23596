"""Numbers of a launch as bars in ink and grey, a tick for the baseline: nobody judges a share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profiler.documents.launch import LaunchDocument, occupancy_table
from profiler.evidence import formatting
from profiler.evidence.values import State, Value
from profiler.explain.launch_numbers import LaunchNumber
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import answer

_STATES_SHOWN, _OPCODES_SHOWN, _PIPES_SHOWN = 10, 10, 7
_OTHERS = "others"  # in the place of a concept: the row of all that have none of their own
_NO_CHANGE = 0.005  # of the larger number: three digits show no difference


def speed_of_light(document: LaunchDocument) -> Html:
    """Memory and compute in % of their peaks, each above its parts."""
    numbers = document.sections.speed_of_light
    wholes = [place for place, number in enumerate(numbers) if not number.is_part]
    rows: list[LaunchNumber] = []
    idle: list[LaunchNumber] = []
    for start, end in zip(wholes, [*wholes[1:], len(numbers)], strict=True):
        parts = [number for number in numbers[start + 1 : end] if number.number is not None]
        rows += [numbers[start], *parts[:_PIPES_SHOWN]]
        idle += parts[_PIPES_SHOWN:]
    table = _bars(document, "speed of light", rows, 100.0)
    if not idle:
        return table
    most = max((number.value for number in idle), key=lambda value: value.number or 0)
    words = f"at {formatting.quantity(most)}" + " at most" * bool(most.number)
    names = ", ".join(number.label for number in idle)
    return markup.join((table, markup.note(f"{words}: {names}")), "")


def warp_states(document: LaunchDocument, code: addresses.LaunchCode | None = None) -> Html:
    """Cycles a warp waits for each instruction, by reason; samples where only those were collected.

    A reason leads to the lines of `code` at which warps wait for it.
    """
    states = document.sections.warp_states
    shown, others = states.states[:_STATES_SHOWN], states.states[_STATES_SHOWN:]
    links = {} if code is None else {state.label: code.at(view="lines", find=state.label) for state in shown}
    return _bars(document, "warp states", [*shown, *_together(others)], links=links)


def warp_states_caption(document: LaunchDocument) -> Html:
    """What the bars of the warp states are, and their sum."""
    states = document.sections.warp_states
    if not states.states:
        return Html("")
    total = states.total
    words = "samples" if states.is_sampled else "cycles per issue"
    if total.number is not None:
        words += f", sum {formatting.quantity(Value(total.value.number))}"
    if total.baseline_number is not None and total.baseline:
        words += f" (was {formatting.quantity(Value(total.baseline.number))})"
    return markup.escaped(words)


def instruction_mix(document: LaunchDocument, code: addresses.LaunchCode | None = None) -> Html:
    """Warp instructions by opcode, most first; an opcode leads to its places in `code`."""
    mix = document.sections.instruction_mix
    shown, others = mix[:_OPCODES_SHOWN], mix[_OPCODES_SHOWN:]
    links = {} if code is None else {row.label: code.at(view="sass", find=row.label) for row in shown}
    return _bars(document, "instruction mix", [*shown, *_together(others)], links=links)


def schedulers(document: LaunchDocument) -> Html:
    """Warps of one scheduler in one cycle: active, eligible, issued."""
    return _bars(document, "schedulers", document.sections.schedulers)


def occupancy(document: LaunchDocument) -> Html:
    """Active warps under their ceiling, and how many blocks each resource allows."""
    analysis, before = document.sections.occupancy, document.sections.baseline_occupancy
    if analysis is None:
        return markup.note(markup.state("not in this evidence"))
    tick = before.achieved.number if before else None
    strip = _bar(analysis.achieved.number, 100.0, tick, is_largest=True, ceiling=analysis.theoretical.number)
    was = f"<div>was {formatting.quantity(before.achieved)}</div>" if before and tick is not None else ""
    table = answer.table(occupancy_table(analysis), "limits of occupancy", css="dense")
    return Html(f'<div class="k warps">{strip}{was}</div>{table}')


def _bars(
    document: LaunchDocument,
    name: str,
    numbers: Sequence[LaunchNumber],
    scale: float | None = None,
    links: Mapping[str, str] | None = None,
) -> Html:
    return bars(name, numbers, scale, links, has_baseline=document.baseline is not None)


def bars(
    name: str,
    numbers: Sequence[LaunchNumber],
    scale: float | None = None,
    links: Mapping[str, str] | None = None,
    *,
    has_baseline: bool = False,
) -> Html:
    """A row a number; the largest is in ink, and so is each whole above its parts.

    `scale` is the number of a whole bar, the largest where None. `links` are addresses by label; a number
    that is 0 or missing leads nowhere.
    """
    own = [number.number for number in numbers if number.number is not None]
    before = [number.baseline_number for number in numbers if number.baseline_number is not None]
    most = scale or max((*own, *before), default=1.0) or 1.0
    largest = max(
        (number.number for number in numbers if number.number and number.concept != _OTHERS), default=None
    )
    has_parts = any(number.is_part for number in numbers)
    rows = []
    for number in numbers:
        is_strong = (
            not number.is_part if has_parts else number.number == largest and number.concept != _OTHERS
        )
        label = markup.tag("span", number.label, "part" if number.is_part else "", number.metric)
        href = (links or {}).get(number.label)
        if href and number.number:
            label = markup.link(href, label, "where in the code")
        bar = (
            markup.state(formatting.state_words(number.value))
            if number.value.state is not State.PRESENT
            else _bar(number.number, most, number.baseline_number, is_largest=is_strong)
        )
        value = markup.tag("b" if is_strong else "span", _shown(number))
        rows.append(Row((label, bar, value, *([_change(number)] if has_baseline else []))))
    columns = (
        Column(""),
        Column(""),
        Column("", right=True),
        *([Column("", right=True)] if has_baseline else []),
    )
    return markup.table(name, columns, rows, "bars")


def _bar(
    number: float | None,
    most: float,
    tick: float | None,
    *,
    is_largest: bool = False,
    ceiling: float | None = None,
) -> Html:
    """A bar from 0; ┃ is the baseline's number, a paler bar behind it how far it could have gone."""

    def percent(part: float) -> float:
        return min(max(100 * part / most, 0.0), 100.0)

    pieces = []
    if ceiling is not None:
        pieces.append(f'<i class="ceiling" style="width:{percent(ceiling):.2f}%"></i>')
    if number is not None:
        css = ' class="ink"' if is_largest else ""
        pieces.append(f'<i{css} style="width:{percent(number):.2f}%"></i>')
    if tick is not None:
        pieces.append(f'<b style="left:{percent(tick):.2f}%"></b>')
    return Html(f'<span class="lbar">{"".join(pieces)}</span>')


def _shown(number: LaunchNumber) -> Html:
    """The number with a short unit: what is counted stands in the section's caption."""
    value = number.value
    if value.state is not State.PRESENT:
        return markup.muted("–")
    unit = value.unit if value.unit in ("%", "byte") else ""
    return markup.value(value._replace(unit=unit))


def _change(number: LaunchNumber) -> Html:
    """How it differs from the baseline, in points or by count."""
    before, now = number.baseline, number.value
    if before is None or before.number is None or now.number is None:
        return markup.muted("–")
    if now.unit == "%":
        return markup.muted(formatting.change(before, now))
    difference = float(now.number) - float(before.number)
    largest = max(abs(float(now.number)), abs(float(before.number)))
    if abs(difference) < _NO_CHANGE * largest or not difference:
        return markup.muted("±0")
    shown, unit = formatting.quantity(Value(abs(difference)), formatting.scale_for("", largest))
    sign = "+" if difference > 0 else formatting.MINUS
    return markup.muted(markup.quantity(sign + shown, unit))


def _together(numbers: Sequence[LaunchNumber]) -> list[LaunchNumber]:
    """The last row: what the others sum up to."""
    if not numbers:
        return []
    unit = numbers[0].value.unit
    names = ", ".join(number.label for number in numbers)
    befores = [number.baseline_number for number in numbers]
    known = [before for before in befores if before is not None]
    baseline = Value(sum(known), unit) if known and len(known) == len(befores) else None
    total = Value(sum(number.number or 0.0 for number in numbers), unit)
    return [LaunchNumber(f"{len(numbers)} others", names, total, baseline, _OTHERS)]
