"""What the numbers of a judged candidate suggest, in the words and levers of the advice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from profiler.advice.levers import (
    INDEPENDENT_WORK,
    LESS_DRAM,
    LESS_L2,
    LOCAL_ARRAYS,
    SWIZZLE,
    WIDER_ACCESSES,
    tensor_cores_lever,
)
from profiler.advice.techniques import techniques_of
from profiler.evidence import Evidence
from profiler.model.prediction import BALANCED, WAITING

_CONFLICTS = 0.10  # of the wavefronts of shared memory, from which a swizzle is worth a word
_LEVERS = {
    "DRAM": LESS_DRAM,
    "L2": LESS_L2,
    "L1 data": SWIZZLE,
    "load/store": WIDER_ACCESSES,
    WAITING: INDEPENDENT_WORK,
}
_MOST = 6


def insights_of_launch(launch: Mapping[str, Any], facts: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """At most six statements on the longest launch of a call, each with a lever and the numbers behind it."""
    return tuple(_insights(launch, facts))[:_MOST]


def _insights(launch: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    limiter, saves = str(launch["limiter"]), float(launch["limiter_saves"])
    if limiter != BALANCED and (lever := _LEVERS.get(limiter)):
        text = f"it waits for {limiter}" if limiter != WAITING else "warps wait, and no unit is busy"
        text += f": {100 * saves:.0f} % of the modelled time without it" if saves > 0 else ""
        yield _row("limiter", text, lever, Evidence.MODELLED, {"limiter_saves": saves}, saves)
    conflicts, wavefronts = float(launch["bank_conflicts"]), float(launch["shared_wavefronts"])
    if wavefronts and conflicts / wavefronts >= _CONFLICTS:
        share = conflicts / wavefronts
        text = f"{100 * share:.0f} % of the wavefronts of shared memory are conflicts"
        numbers = {"bank_conflicts": conflicts, "shared_wavefronts": wavefronts}
        yield _row("conflicts", text, SWIZZLE, Evidence.MODELLED, numbers, None)
    if facts.get("spill_bytes"):
        spilled = float(facts["spill_bytes"])
        text = f"{spilled:.0f} bytes of registers are spilled"
        yield _row("spills", text, LOCAL_ARRAYS, Evidence.STATIC, {"spill_bytes": spilled}, None)
    if not facts.get("tensor_opcodes"):
        text = "no product runs on the tensor cores"
        lever = tensor_cores_lever(str(facts.get("arch", "")))
        yield _row("tensor:unused", text, lever, Evidence.STATIC, {"tensor_opcodes": 0.0}, None)


def _row(
    name: str, text: str, lever: str, evidence: Evidence, numbers: Mapping[str, float], share: float | None
) -> dict[str, Any]:
    return {
        "id": name,
        "text": text,
        "lever": lever,
        "techniques": list(techniques_of(lever)),
        "evidence": str(evidence),
        "metrics": [{"name": key, "value": value} for key, value in numbers.items()],
        "share_of_time": share,
    }
