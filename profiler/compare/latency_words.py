"""Words for decisions on latencies: the change, its interval, its basis, what could have been detected."""

from __future__ import annotations

import math

from profiler.compare.latency import LatencyComparison, noise_command
from profiler.statistics.decision import Decision, change_text, share_text
from profiler.statistics.noise_floor import MIN_FLOOR_PAIRS, STORED_BASELINE, NoiseFloor


def change(decision: Decision) -> str:
    """The effect in per cent; "" where nothing was compared."""
    return "" if decision.effect is None else change_text(decision.effect)


def interval(decision: Decision, *, brief: bool = False) -> str:
    """The interval, 99 % for a live pair or by the noise floor for two runs; "" where there is none."""
    if decision.interval is None:
        return ""
    if brief:
        return str(decision.interval)
    if decision.rule == STORED_BASELINE:
        return f"{decision.interval} by the noise floor"
    return f"99 %: {decision.interval}"


def interval_kind(decision: Decision) -> str:
    """The kind of the decision's interval."""
    return "noise floor" if decision.rule == STORED_BASELINE else "99 %"


def gate_interval_name(decision: Decision) -> str:
    """What the interval is that a gate shows, which is not that of the verdict where rounds decide."""
    return "95 % interval" if decision.gate_interval is not None else "interval by the noise floor"


def rests_on(decision: Decision) -> str:
    """How much data the verdict rests on."""
    if decision.rule == STORED_BASELINE:
        return f"two runs, {decision.rounds} A/A pairs"
    processes = f" of {decision.processes} processes" if decision.processes > 1 else ""
    return f"live pair, {decision.rounds} rounds{processes}"


def basis(comparison: LatencyComparison) -> str:
    """The data that the verdict rests on: rounds of a live pair, or two runs and their A/A pairs."""
    decision = comparison.decision
    if comparison.a is None or comparison.b is None:
        return "not timed on both sides"
    if decision.interval is None:
        return "one run" if comparison.a.run_id == comparison.b.run_id else "two runs"
    return rests_on(decision) + process_spread(decision)


def process_spread(decision: Decision) -> str:
    """How far the processes of a live pair lie apart: `, which differ by 0.3 % (sd)`; "" where not known."""
    spread = decision.process_sd
    return "" if spread is None else f", which differ by {share_text(spread)} (sd)"


def detectable(decision: Decision) -> str:
    """The smallest change that would have been detected; "" where that is unknown."""
    smallest = decision.detectable
    return "" if smallest is None else f"a change of {share_text(smallest)} would have shown"


def aa_floor(floor: NoiseFloor | None, version: str | None, workload: str | None, mode: str) -> str:
    """How far equal builds lie apart, or a command that measures it, in backticks."""
    if floor is not None and floor.judges:
        return f"A/A floor here ±{share_text(math.expm1(floor.limit))} ({floor.pairs} pairs)"
    command = f"`{noise_command(version or 'VERSION', workload, mode)}`"
    if floor is None:
        return f"no A/A floor here: {command}"
    if floor.differs_in:
        return f"no A/A floor here but of {floor.differs_in}: {command}"
    return f"A/A floor of {floor.pairs} pairs, {MIN_FLOOR_PAIRS} are needed: {command}"


def short_floor(floor: NoiseFloor | None) -> str:
    """As `aa_floor`, for narrow places."""
    judges = floor is not None and floor.judges
    return f"A/A ±{share_text(math.expm1(floor.limit))}" if floor is not None and judges else "no A/A floor"
