"""The sections of one launch as blocks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from profiler.documents.blocks import Block, Findings, Fold, Heading, Item, Line, Notes, Table
from profiler.documents.insights import kind_words, share_words
from profiler.documents.launch import InsideLaunch, LaunchDocument, dominant_stall, memory_numbers
from profiler.evidence import State, formatting
from profiler.explain import LaunchNumber
from profiler.reports import rank_rules
from profiler.reports.rule_changes import plain_message, rule_title

_OPCODES_SHOWN = 12
_RULES_SHOWN = 12  # JSON has all
_TEXT_SHOWN = 70  # letters of a source line


def launch_blocks(document: LaunchDocument, *, everything: bool) -> Iterator[Block]:
    """What the launch says, then each section that has numbers, then what was not collected."""
    yield Heading(document.heading, 1)
    for number, statement in enumerate(document.statements, 1):
        yield Heading(f"{number}. {kind_words(statement)}{share_words(statement)}, {statement.evidence}")
        yield Line(statement.text)
        if statement.lever:
            yield Line(f"→ {statement.lever}")
    yield Fold("sections", [*_section_blocks(document, everything)])
    if missing := document.sections.missing:
        yield Heading("not here")
        rows = [(section.what, section.state, section.command, section.note) for section in missing]
        yield Table(("what", "state", "what collects it", ""), rows)


def _section_blocks(document: LaunchDocument, everything: bool) -> Iterator[Block]:
    sections = document.sections
    yield from _number_blocks(document, "facts", sections.facts)
    yield from _number_blocks(document, "speed of light", sections.speed_of_light)
    if sections.memory.is_collected:
        yield from _number_blocks(document, "memory", tuple(memory_numbers(sections.memory)))
    states = sections.warp_states
    if states.states:
        words = "samples by warp state" if states.is_sampled else "warp states, cycles an issue"
        yield from _number_blocks(document, words, (states.total, *states.states))
    mix = sections.instruction_mix
    shown = len(mix) if everything else _OPCODES_SHOWN
    yield from _number_blocks(document, "instruction mix", mix[:shown])
    if hidden := len(mix[shown:]):
        yield Notes([f"and {hidden} opcodes that are executed less"])
    yield from _occupancy_blocks(document)
    yield from _number_blocks(document, "schedulers, a scheduler and cycle", sections.schedulers)
    yield from _inside_blocks(document.inside)
    yield from _rule_blocks(document, everything)


def _number_blocks(document: LaunchDocument, name: str, numbers: Sequence[LaunchNumber]) -> Iterator[Block]:
    shown = [number for number in numbers if number.value.state is State.PRESENT]
    if not shown:
        return
    has_baseline = document.baseline is not None
    beside = ("baseline", "change") if has_baseline else ()
    yield Heading(name)
    rows = [_number_row(number, has_baseline=has_baseline) for number in shown]
    yield Table(("", "value", *beside, "ncu metric"), rows, right=(1, 2, 3)[: 1 + len(beside)])


def _number_row(number: LaunchNumber, *, has_baseline: bool) -> tuple[str, ...]:
    """Label, value, baseline and change where there is a baseline, and metric, for a table of text."""
    label = "  " * number.is_part + formatting.label(number.label, number.value)
    beside: tuple[str, ...] = ()
    if has_baseline:
        known = number.baseline is not None
        baseline = str(formatting.quantity(number.baseline)) if known and number.baseline else "–"
        change = formatting.change(number.baseline, number.value) if known and number.baseline else ""
        beside = (baseline, change)
    return (label, str(formatting.quantity(number.value)), *beside, number.metric)


def _occupancy_blocks(document: LaunchDocument) -> Iterator[Block]:
    occupancy = document.sections.occupancy
    if occupancy is None:
        return
    yield Heading("occupancy")
    rows = [
        ("achieved", str(formatting.quantity(occupancy.achieved)), ""),
        ("theoretical", str(formatting.quantity(occupancy.theoretical)), ""),
        *(
            (f"limit: {limiter.name}", str(formatting.quantity(limiter.blocks)), "binds" * limiter.binds)
            for limiter in occupancy.limiters
        ),
    ]
    yield Table(("", "value", ""), rows, right=(1,))


def _inside_blocks(inside: InsideLaunch) -> Iterator[Block]:
    """Hot places and timelines, which are read from the report's file."""
    if inside.reason:
        yield Line(f"not read from the report: {inside.reason}")
    if inside.timelines:
        points = max(len(timeline.values) for timeline in inside.timelines.values())
        yield Line(f"timeline: {len(inside.timelines)} metrics, up to {points} points (--json has them)")
    if inside.hot is None:
        return
    yield Heading(f"hot places, of {formatting.digits(inside.hot.samples)} samples")
    rows = []
    for spot in inside.hot.places:
        stall = dominant_stall(spot)
        waits = f"{stall[0]} {100 * stall[1]:.0f} %" if stall else "–"
        text = textwrap.shorten(spot.text or "", _TEXT_SHOWN, placeholder=" …")
        share = f"{100 * (spot.samples or 0) / inside.hot.samples:.1f} %"
        rows.append((spot.location.words, share, waits, text))
    yield Table(("place", "samples", "waits for", "text"), rows, right=(1,))
    if inside.hot.hidden:
        yield Notes([f"and {inside.hot.hidden} places with fewer: profiler sass"])


def _rule_blocks(document: LaunchDocument, everything: bool) -> Iterator[Block]:
    rules = rank_rules(document.subject.launch.rules)
    if not rules:
        return
    yield Heading("NVIDIA's rules")
    shown = len(rules) if everything else _RULES_SHOWN
    items = []
    for rule in rules[:shown]:
        gain = "" if rule.speedup_pct is None else f", {rule.speedup_pct:.1f} % {rule.speedup_scope or ''}"
        subject = f"{rule.kind}: {rule_title(rule)}{gain.rstrip()}"
        items.append(Item(subject, [plain_message(rule.message).strip()]))
    yield Findings(items)
    if hidden := len(rules[shown:]):
        yield Notes([f"and {hidden} more: --json"])
