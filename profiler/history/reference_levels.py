"""The levels that a history is read against: lower bound, baseline of others, goal, budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from profiler.history.lineage import BASELINE, Lineage, workload_without_dtype
from profiler.history.trend import LATENCY
from profiler.history.version_latency import lower_bound_of

if TYPE_CHECKING:
    from profiler.catalog.version import Version

FLOOR, GOAL, BUDGET = "floor", "goal", "budget"
_BUDGETED = {  # by concept of metrics.txt: the limit of a version's budget
    "static_registers": "registers",
    "static_shared": "shared_bytes",
    "static_spills": "spill_bytes",
    "static_stack": "stack_bytes",
}
_HEAD_DIM = "head dim "


@dataclass(frozen=True)
class ReferenceLevel:
    """One level, in the base unit of its metric."""

    kind: str  # floor, baseline, goal, budget
    name: str  # of the baseline; else the kind
    number: float
    source: str  # where it is from


def latency_levels(
    lineage: Lineage | None,
    version: str | None,
    workload: str,
    gpu: str,
    mode: str,
    newest_run: Mapping[str, Any],
) -> list[ReferenceLevel]:
    """The levels of timed calls on one workload and GPU; `newest_run` is the provenance of the newest run.

    `version` is the one that is looked at: a goal is that of its catalogue's entry. None: of no version.
    """
    levels = []
    bound, binding = lower_bound_of(newest_run, workload, mode)
    if bound is not None:
        source = f"lower bound of the newest run{f': {binding}' if binding else ''}"
        levels.append(ReferenceLevel(FLOOR, FLOOR, bound, source))
    if lineage is None:
        return levels
    baselines = [
        (status.version.id, status.latencies[row, gpu])
        for status in lineage.statuses
        if status.state == BASELINE
        and (row := workload_without_dtype(workload, status.version), gpu) in status.latencies
    ]
    same_mode = [(name, latency) for name, latency in baselines if latency.mode == mode]
    if same_mode:
        name, latency = min(same_mode, key=lambda pair: pair[1].ns)
        levels.append(
            ReferenceLevel(BASELINE, name, latency.ns, f"fastest external kernel, {latency.run_id}")
        )
    status = lineage.by_id.get(version or "")
    return levels + (_goals(status.version, workload, gpu) if status else [])


def budget_levels(
    lineage: Lineage | None, version: str | None, concept: str, workload: str
) -> list[ReferenceLevel]:
    """The budget of a version for a static metric; none where the catalogue sets none, or it is no such."""
    status = lineage.by_id.get(version or "") if lineage else None
    fact = _BUDGETED.get(concept)
    if status is None or fact is None:
        return []
    head_dim = int(text) if (text := workload.removeprefix(_HEAD_DIM)).isdecimal() else None
    limit = status.version.budget.limits(head_dim)[fact]
    if limit is None:
        return []
    return [ReferenceLevel(BUDGET, BUDGET, float(limit), f"the catalogue's budget of {status.version.id}")]


def _goals(version: Version, workload: str, gpu: str) -> list[ReferenceLevel]:
    """The latencies that the catalogue aims at there; one without a workload counts on every one."""
    row = workload_without_dtype(workload, version)
    return [
        ReferenceLevel(GOAL, GOAL, claim.value, f"{claim.source}, for {claim.gpu}")
        for claim in version.claims
        if claim.fact == LATENCY
        and claim.kind == GOAL
        and claim.workload in (None, row, workload)
        and claim.gpu == gpu
    ]
