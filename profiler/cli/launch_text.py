"""One launch in a terminal, section by section."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.output import print_lines, print_table, printable, say

if TYPE_CHECKING:
    from profiler.documents import LaunchDocument
    from profiler.explain import LaunchNumber

_WIDTH = 110
_OPCODES_SHOWN = 12
_TEXT_SHOWN = 70  # letters of a source line


def print_sections(document: LaunchDocument, _: argparse.Namespace) -> None:
    """Print what the launch says, then each section that has numbers, then what was not collected."""
    from profiler.documents.insights import kind_words, share_words

    sections = document.sections
    say(document.title)
    for number, statement in enumerate(document.statements, 1):
        say(f"\n{number}. {kind_words(statement)}{share_words(statement)}, {statement.evidence}")
        _print_wrapped(statement.text)
        if statement.lever:
            _print_wrapped(f"→ {statement.lever}")
    _print_numbers(document, "facts", sections.facts)
    _print_numbers(document, "speed of light", sections.speed_of_light)
    if sections.memory.is_collected:
        _print_memory(document)
    states = sections.warp_states
    if states.states:
        words = "samples by warp state" if states.is_sampled else "warp states, cycles an issue"
        _print_numbers(document, words, (states.total, *states.states))
    mix = sections.instruction_mix
    _print_numbers(document, "instruction mix", mix[:_OPCODES_SHOWN])
    if len(mix) > _OPCODES_SHOWN:
        say(f"  and {len(mix) - _OPCODES_SHOWN} opcodes that are executed less")
    _print_occupancy(document)
    _print_numbers(document, "schedulers, a scheduler and cycle", sections.schedulers)
    _print_inside(document)
    _print_rules(document)
    if sections.missing:
        say("\nnot here")
        rows = [(section.what, section.state, section.command, section.note) for section in sections.missing]
        print_table(("what", "state", "what collects it", ""), rows)


def _print_numbers(document: LaunchDocument, name: str, numbers: Sequence[LaunchNumber]) -> None:
    from profiler.documents.launch import number_row
    from profiler.evidence import State

    shown = [number for number in numbers if number.value.state is State.PRESENT]
    if not shown:
        return
    has_baseline = document.baseline is not None
    beside = ("baseline", "change") if has_baseline else ()
    say(f"\n{name}")
    rows = [number_row(number, has_baseline=has_baseline) for number in shown]
    rows = [
        (f"  {label}" if number.is_part else label, *rest)
        for (label, *rest), number in zip(rows, shown, strict=True)
    ]
    print_table(("", "value", *beside, "ncu metric"), rows, right=(1, 2, 3)[: 1 + len(beside)])


def _print_memory(document: LaunchDocument) -> None:
    from profiler.documents.launch import memory_numbers

    _print_numbers(document, "memory", tuple(memory_numbers(document.sections.memory)))


def _print_occupancy(document: LaunchDocument) -> None:
    from profiler.evidence import formatting

    occupancy = document.sections.occupancy
    if occupancy is None:
        return
    say("\noccupancy")
    rows = [
        ("achieved", str(formatting.quantity(occupancy.achieved)), ""),
        ("theoretical", str(formatting.quantity(occupancy.theoretical)), ""),
        *(
            (f"limit: {limiter.name}", str(formatting.quantity(limiter.blocks)), "binds" * limiter.binds)
            for limiter in occupancy.limiters
        ),
    ]
    print_table(("", "value", ""), rows, right=(1,))


def _print_inside(document: LaunchDocument) -> None:
    """Hot places and timelines, which are read from the report's file."""
    from profiler.documents.launch import dominant_stall
    from profiler.evidence import formatting

    inside = document.inside
    if inside.reason:
        say(f"\nnot read from the report: {inside.reason}")
    if inside.timelines:
        points = max(len(timeline.values) for timeline in inside.timelines.values())
        say(f"\ntimeline: {len(inside.timelines)} metrics, up to {points} points (--json has them)")
    if inside.hot is None:
        return
    say(f"\nhot places, of {formatting.digits(inside.hot.samples)} samples")
    rows = []
    for spot in inside.hot.places:
        stall = dominant_stall(spot)
        waits = f"{stall[0]} {100 * stall[1]:.0f} %" if stall else "–"
        text = textwrap.shorten(printable(spot.text or ""), _TEXT_SHOWN, placeholder=" …")
        share = f"{100 * (spot.samples or 0) / inside.hot.samples:.1f} %"
        rows.append((spot.location.words, share, waits, text))
    print_table(("place", "samples", "waits for", "text"), rows, right=(1,))
    if inside.hot.hidden:
        say(f"  and {inside.hot.hidden} places with fewer: profiler sass")


def _print_rules(document: LaunchDocument) -> None:
    from profiler.documents.launch import RULES_SHOWN
    from profiler.reports import rank_rules
    from profiler.reports.rule_changes import plain_message, rule_title

    rules = rank_rules(document.subject.launch.rules)
    if not rules:
        return
    say("\nNVIDIA's rules")
    for rule in rules[:RULES_SHOWN]:
        gain = "" if rule.speedup_pct is None else f", {rule.speedup_pct:.1f} % {rule.speedup_scope or ''}"
        say(f"  {rule.kind}: {rule_title(rule)}{gain.rstrip()}")
        _print_wrapped(plain_message(rule.message))
    if len(rules) > RULES_SHOWN:
        say(f"  and {len(rules) - RULES_SHOWN} more: --json")


def _print_wrapped(text: str) -> None:
    print_lines(
        textwrap.wrap(text, _WIDTH, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False)
    )
