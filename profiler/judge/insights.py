"""What the numbers of a judged candidate suggest: by the rules of the advice, and by the simulated launch."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from profiler.advice.insights import find_insights
from profiler.advice.levers import INDEPENDENT_WORK, LESS_DRAM, LESS_L2, SWIZZLE, WIDER_ACCESSES
from profiler.advice.statement import BOTTLENECK, LEVER
from profiler.advice.subject import ComparedSide, Subject
from profiler.advice.techniques import techniques_of
from profiler.build.occupancy import occupancy
from profiler.build.opcode_counts import OPCODE_CLASSES
from profiler.errors import CannotJudge
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence, Value, pack_values
from profiler.judge.compilation import Kernel
from profiler.model.prediction import BALANCED, WAITING

_LEVERS = {
    "DRAM": LESS_DRAM,
    "L2": LESS_L2,
    "L1 data": SWIZZLE,
    "load/store": WIDER_ACCESSES,
    WAITING: INDEPENDENT_WORK,
}
_MOST = 6


def insights_of_launch(
    launch: Mapping[str, Any], kernel: Kernel, arch: str, workload: str
) -> tuple[dict[str, Any], ...]:
    """At most six statements on the longest launch of a call, each with the numbers behind it.

    launch: as machine_worker.py predicts it. What limits it comes first, then what the rules on static and
    modelled facts say, the weightiest first.
    """
    rows = [*_limiter(launch), *_advice(launch, kernel, arch, workload)]
    return tuple(rows[:_MOST])


def _limiter(launch: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    limiter, saves = str(launch["limiter"]), float(launch["limiter_saves"])
    if limiter != BALANCED and (lever := _LEVERS.get(limiter)):
        text = f"it waits for {limiter}" if limiter != WAITING else "warps wait, and no unit is busy"
        text += f": {100 * saves:.0f} % of the modelled time without it" if saves > 0 else ""
        yield {
            "id": "limiter",
            "kind": LEVER,
            "text": text,
            "lever": lever,
            "techniques": list(techniques_of(lever)),
            "evidence": str(Evidence.MODELLED),
            "metrics": [{"name": "limiter_saves", "value": saves}],
            "share_of_time": saves,
        }


def _advice(launch: Mapping[str, Any], kernel: Kernel, arch: str, workload: str) -> Sequence[dict[str, Any]]:
    """The statements of the advice that ask for a change; what is open the judgement says itself."""
    static = Side(
        kernel.function,
        (_static_launch(launch, kernel, arch),),
        arch,
        None,
        workload,
        evidence=Evidence.STATIC,
    )
    modelled = Side(
        kernel.function, (_modelled_launch(launch, kernel),), arch, None, workload, evidence=Evidence.MODELLED
    )
    subject = Subject(kernel.function, facts=(ComparedSide(static), ComparedSide(modelled)))
    found = find_insights(subject, load_metrics())
    return [row.to_dict() for row in found.statements if row.kind in (LEVER, BOTTLENECK)]


def _launch(kernel: Kernel, values: Mapping[str, Value], opcodes: Mapping[str, float]) -> Launch:
    return Launch(kernel.function, "", kernel.function, None, None, None, (), 0, pack_values(values), opcodes)


def _static_launch(launch: Mapping[str, Any], kernel: Kernel, arch: str) -> Launch:
    """What the compiler says of a kernel, and of its block in this launch."""
    inputs, usage = launch["inputs"], kernel.usage
    threads, shared = int(inputs["threads"]), int(inputs["shared_bytes"])
    numbers: dict[str, tuple[float | None, str]] = {
        "static__registers": (usage.registers, "register/thread"),
        "static__spill_bytes": (usage.spill_bytes, "byte"),
        "static__stack_bytes": (usage.stack_bytes, "byte"),
        "static__shared_bytes": (shared, "byte/block"),
        "static__threads": (threads, "thread"),
        "static__instructions": (sum(kernel.opcodes.values()), "inst"),
    }
    with contextlib.suppress(CannotJudge):  # of an architecture whose limits nobody knows: rules are silent
        fits = occupancy(arch, usage.registers, threads, shared)
        numbers |= {"static__occupancy_pct": (fits.pct, "%"), "static__blocks_per_sm": (fits.blocks, "block")}
    by_base: dict[str, float] = {}
    for opcode, count in kernel.opcodes.items():
        base = opcode.partition(".")[0]
        by_base[base] = by_base.get(base, 0) + count
    for name, pattern in OPCODE_CLASSES.items():
        sites = sum(count for opcode, count in kernel.opcodes.items() if re.match(pattern, opcode))
        numbers[f"static__opcode_{name}"] = (sites, "inst")
    return _launch(kernel, {name: Value(*number) for name, number in numbers.items()}, by_base)


def _modelled_launch(launch: Mapping[str, Any], kernel: Kernel) -> Launch:
    """What its accesses of shared memory cost, counted over the whole launch."""
    wavefronts, conflicts = float(launch["shared_wavefronts"]), float(launch["bank_conflicts"])
    values = {
        "modelled__bank_conflicts": Value(conflicts, ""),
        "modelled__shared_wavefronts": Value(wavefronts, ""),
        "modelled__shared_wavefronts_ideal": Value(wavefronts - conflicts, ""),
    }
    return _launch(kernel, values, {})
