"""How latencies and the verdicts on them read, on a terminal and in a pull request."""

from __future__ import annotations

from profiler.compare import Comparison, latency_words
from profiler.evidence import Value, formatting
from profiler.statistics import change_text, share_text

LATENCY_HEAD = ("mode", "A", "B", "change", "interval", "verdict")


def latency_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row a mode: mode, both latencies, the change with its interval, the verdict."""
    rows: list[tuple[str, ...]] = []
    for one in comparison.latency:
        numbers = [number for number in (one.a_ns, one.b_ns) if number is not None]
        scale = formatting.scale_for("ns", max(numbers)) if numbers else None
        a, b = (
            "–" if number is None else str(formatting.quantity(Value(number, "ns"), scale))
            for number in (one.a_ns, one.b_ns)
        )
        decision = one.decision
        change = "" if decision.effect is None else change_text(decision.effect)
        interval = "" if decision.interval is None else str(decision.interval)
        rows.append((one.mode, a, b, change, interval, decision.verdict.label))
    return rows


def latency_notes(comparison: Comparison) -> list[str]:
    """Why each verdict is what it is, what it could have seen, what to doubt, and what would settle it."""
    by_words: dict[str, list[str]] = {}
    for one in comparison.latency:
        seen = one.decision.detectable
        could = f"; a change of {share_text(seen)} would have shown" if seen is not None else ""
        warnings = (f"note: {warning}" for warning in one.decision.warnings)
        for words in (one.decision.reason + could, *warnings):
            by_words.setdefault(words, []).append(one.mode)
    found = [words if len(modes) > 1 else f"{modes[0]}: {words}" for words, modes in by_words.items()]
    commands = dict.fromkeys(one.settle for one in comparison.latency if one.settle)
    return [*found, *(f"to settle it: {command}" for command in commands), *floor_notes(comparison)]


def floor_notes(comparison: Comparison) -> list[str]:
    """How far equal builds lie apart in each mode, or the command that makes that known."""
    by_words: dict[str, list[str]] = {}
    version, workload = comparison.b.version, comparison.b.workload
    for one in comparison.latency:
        if one.floor or one.floor_command:
            by_words.setdefault(latency_words.aa_floor(one.floor, version, workload), []).append(one.mode)
    return [words if len(modes) > 1 else f"{modes[0]}: {words}" for words, modes in by_words.items()]
