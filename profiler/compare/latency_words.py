"""How a decision on latencies reads: the change, its interval and of what kind, what would have shown."""

from __future__ import annotations

import math

from profiler.compare.latency import LatencyComparison, noise_command
from profiler.statistics import (
    MIN_FLOOR_PAIRS,
    STORED_BASELINE,
    Decision,
    NoiseFloor,
    change_text,
    share_text,
)


def change(decision: Decision) -> str:
    """The effect in per cent; empty where nothing was compared."""
    return "" if decision.effect is None else change_text(decision.effect)


def interval(decision: Decision, *, brief: bool = False) -> str:
    """The interval and its kind: 99 % of a live pair, or the noise floor of two runs; empty without one."""
    if decision.interval is None:
        return ""
    if brief:
        return str(decision.interval)
    if decision.rule == STORED_BASELINE:
        return f"{decision.interval} by the noise floor"
    return f"99 %: {decision.interval}"


def interval_kind(decision: Decision) -> str:
    """What kind of interval it is."""
    return "noise floor" if decision.rule == STORED_BASELINE else "99 %"


def rests_on(decision: Decision) -> str:
    """How much the verdict rests on."""
    if decision.rule == STORED_BASELINE:
        return f"two runs, {decision.rounds} A/A pairs"
    return f"live pair, {decision.rounds} rounds"


def basis(one: LatencyComparison) -> str:
    """What the verdict rests on: the rounds of a live pair, or two runs and their A/A pairs."""
    decision = one.decision
    if one.a is None or one.b is None:
        return "not timed on both sides"
    if decision.interval is None:
        return "one run" if one.live else "two runs"
    return rests_on(decision)


def detectable(decision: Decision) -> str:
    """The smallest change that would have been found; empty where nothing says so."""
    seen = decision.detectable
    return "" if seen is None else f"a change of {share_text(seen)} would have shown"


def aa_floor(here: NoiseFloor | None, version: str | None, workload: str | None) -> str:
    """How far equal builds lie apart there, or the command that finds out, in backticks."""
    if here is not None and here.pairs >= MIN_FLOOR_PAIRS:
        return f"A/A floor here ±{share_text(math.expm1(here.limit))} ({here.pairs} pairs)"
    command = f"`{noise_command(version or 'VERSION', workload)}`"
    if here is None:
        return f"no A/A floor here: {command}"
    return f"A/A floor of {here.pairs} pairs, {MIN_FLOOR_PAIRS} are needed: {command}"


def short_floor(here: NoiseFloor | None) -> str:
    """The same where there is little room."""
    judges = here is not None and here.pairs >= MIN_FLOOR_PAIRS
    return f"A/A ±{share_text(math.expm1(here.limit))}" if here is not None and judges else "no A/A floor"
