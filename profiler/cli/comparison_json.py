"""A comparison as JSON: numbers in base units, and what a reader should know before believing a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence

from profiler.compare import Comparison, LatencyComparison, MetricChange, PairComparison
from profiler.evidence import NCU_DURATION, Latency, Launch, Side, State, Value, formatting


def document(comparison: Comparison) -> dict[str, object]:
    """The comparison for JSON: numbers in base units, null with `a_state`/`b_state` where there is none."""
    return {
        "comparable": comparison.comparable,
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "differences": [
            {"field": d.field, "a": d.a, "b": d.b, "kind": d.kind, "blocks": d.blocks}
            for d in comparison.differences
        ],
        "same": dict(comparison.same),
        "warnings": warnings(comparison),
        "latency": [latency_document(one) for one in comparison.latency],
        "launches": [_pair(pair) for pair in comparison.pairs],
        "hidden_launches": comparison.hidden_pairs,
        "only_in_a": [_launch(comparison, launch) for launch in comparison.only_in_a],
        "only_in_b": [_launch(comparison, launch) for launch in comparison.only_in_b],
        "ambiguous": [
            {
                "kernel": group.base_name,
                "why": group.why,
                "a": [_launch(comparison, launch) for launch in group.a],
                "b": [_launch(comparison, launch) for launch in group.b],
            }
            for group in comparison.ambiguous
        ],
    }


def documents(comparisons: Sequence[Comparison]) -> dict[str, object]:
    """One comparison as it is; several, of facts on several workloads, as a list."""
    if len(comparisons) == 1:
        return document(comparisons[0])
    return {"comparisons": [document(one) for one in comparisons]}


def warnings(comparison: Comparison) -> list[str]:
    """What a reader should know before believing a verdict, one sentence each."""
    found = [difference.words for difference in comparison.differences if difference.kind == "differs"]
    both = [d.field for d in comparison.unknown if d.a is None and d.b is None]
    if both:
        found.append(f"unknown on both sides: {', '.join(both)}")
    found += [d.words for d in comparison.unknown if d.a is not None or d.b is not None]
    found += [f"{group.base_name} is ambiguous: {group.why}" for group in comparison.ambiguous]
    return found


def _side(side: Side) -> dict[str, object]:
    session = side.session
    return {
        "label": side.label,
        "family": side.family,
        "version": side.version,
        "run_id": side.run_id,
        "gpu": side.gpu,
        "compute_capability": side.compute_capability,
        "workload": side.workload,
        "wrong": side.wrong,
        "dtype": side.dtype,
        "evidence": side.evidence.value,
        "ncu_version": session.ncu_version,
        "driver": session.driver,
        "cuda": session.cuda,
        "created": session.created.isoformat() if session.created else None,
        "clock_control": session.clock_control,
        "cache_control": session.cache_control,
        "replay_mode": session.replay_mode,
    }


def _launch(comparison: Comparison, launch: Launch) -> dict[str, object]:
    return {
        "kernel": launch.base_name,
        "part": comparison.label(launch),
        "demangled": launch.demangled,
        "duration": formatting.as_json(launch.values.value(NCU_DURATION)),
        "grid": launch.grid,
        "block": launch.block,
        "nvtx": launch.nvtx,
    }


def latency_document(one: LatencyComparison) -> dict[str, object]:
    """Changes are shares of A: 0.03 is 3 % more. `command` would settle what is unclear, `floor_command`
    collect the A/A pairs of a floor.
    """
    decision = one.decision
    return {
        "mode": one.mode,
        "verdict": decision.verdict.value,
        "reason": decision.reason,
        "rule": decision.rule,
        "a": _timed(one.a, one.a_ns),
        "b": _timed(one.b, one.b_ns),
        "effect": decision.effect,
        "interval": decision.interval,
        "gate_interval": decision.gate_interval,
        "detectable": decision.detectable,
        "p": decision.p,
        "rounds": decision.rounds,
        "rounds_needed": decision.rounds_needed,
        "fails_gate": decision.fails_gate,
        "warnings": decision.warnings,
        "command": one.settle or None,
        "floor": one.floor and {"pairs": one.floor.pairs, "limit": math.expm1(one.floor.limit)},
        "floor_command": one.floor_command or None,
    }


def _timed(one: Latency | None, level_ns: float | None) -> dict[str, object] | None:
    if one is None:
        return None
    return {"run_id": one.run_id, "samples": len(one.ns), "latency_ns": level_ns, "build": one.build}


def _pair(pair: PairComparison) -> dict[str, object]:
    return {
        "kernel": pair.b.base_name,
        "part": pair.kernel,
        "verdict": pair.verdict.value,
        "differs": pair.differs,
        "grid": pair.b.grid,
        "block": pair.b.block,
        "a": {"ordinal": pair.a.ordinal, "grid": pair.a.grid, "block": pair.a.block, "nvtx": pair.a.nvtx},
        "b": {"ordinal": pair.b.ordinal, "grid": pair.b.grid, "block": pair.b.block, "nvtx": pair.b.nvtx},
        "metrics": [_change(change) for change in pair.metrics],
        "opcodes": [{"opcode": o.opcode, "a": o.a, "b": o.b} for o in pair.opcodes],
    }


def _change(change: MetricChange) -> dict[str, object]:
    found: dict[str, object] = {
        "concept": change.concept,
        "label": change.label,
        "group": change.group,
        "metric": change.metric,
        "unit": change.unit,
        "a": change.a.number,
        "b": change.b.number,
        "change_pct": change.change_pct,
        "verdict": change.verdict.value,
        "reason": change.reason,
        "unreplicated": change.unreplicated,
    }
    if change.noise_share is not None:
        found |= {"interval": change.interval, "detectable": change.noise_share}
    found.update(_state_of("a", change.a))
    found.update(_state_of("b", change.b))
    return found


def _state_of(side: str, value: Value) -> dict[str, object]:
    return {} if value.state is State.PRESENT else {f"{side}_state": value.state.words}
