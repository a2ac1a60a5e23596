"""Under which names and units the static facts of a kernel function are stored."""

from __future__ import annotations

from profiler.build.opcode_counts import OPCODE_CLASSES
from profiler.build.resources import FunctionResources
from profiler.bundles.run import Facts
from profiler.evidence.values import Evidence, State, Value


def static_facts(function: FunctionResources) -> Facts:
    """What the compiler and the machine code say of one kernel function."""
    usage, code, occupancy = function.usage, function.code, function.occupancy
    pool = function.register_pool
    unknown = Value(None, state=State.NOT_COLLECTED)
    values = {
        "static__registers": Value(usage.registers, "register/thread"),
        "static__spill_bytes": Value(usage.spill_bytes, "byte"),
        "static__stack_bytes": Value(usage.stack_bytes, "byte"),
        "static__shared_bytes": _number(function.most_shared_bytes, "byte/block"),
        "static__shared_static_bytes": Value(usage.static_shared_bytes, "byte/block"),
        "static__threads": _number(function.threads, "thread"),
        "static__barriers": Value(usage.barriers),
        "static__occupancy_pct": _number(occupancy.pct if occupancy else None, "%"),
        "static__blocks_per_sm": _number(occupancy.blocks if occupancy else None, "block"),
        "static__limiter": Value(None, text=", ".join(occupancy.limiters)) if occupancy else unknown,
        "static__code_bytes": _number(code.code_bytes if code else None, "byte"),
        "static__instructions": _number(code.instructions if code else None, "inst"),
        "static__sass_sha256": Value(None, text=code.sha256) if code else unknown,
        "static__serialized_wgmma": Value(len(usage.serialized_wgmma)),
        "static__register_pool": Value(None, text=pool.words if pool else "not shared") if code else unknown,
        "static__ptxas": Value(None, text=usage.line),
        "static__over_budget": Value(None, text="; ".join(function.over_budget) or "nothing"),
    }
    for name in OPCODE_CLASSES:
        values[f"static__opcode_{name}"] = _number(code.classes[name] if code else None, "inst")
    return Facts(
        Evidence.STATIC,
        function.role,
        values,
        target=function.arch,
        mode="",
        opcodes=dict(code.opcodes) if code else {},
    )


def _number(number: float | None, unit: str) -> Value:
    return Value(None, unit, state=State.NOT_COLLECTED) if number is None else Value(number, unit)
