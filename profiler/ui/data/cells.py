"""Where results exist: the workloads and GPUs on which each version and run has evidence of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from profiler.evidence.cell import Cell
from profiler.evidence.naming import natural_key
from profiler.evidence.values import Evidence
from profiler.store.rows import RunInfo

# Workload and GPU (of static facts the architecture); an empty text stands for what no report says.
WorkloadOnGpu = tuple[str, str]
_MEASURED_FIRST = (Evidence.MEASURED, Evidence.STATIC, Evidence.MODELLED)


class NamedCell(NamedTuple):
    """A cell of which a version or run has evidence, by the name that pages call it."""

    name: str  # family/version, or a run id
    cell: Cell


def cells_of_versions_and_runs(cells: Sequence[Cell], runs: Sequence[RunInfo]) -> list[NamedCell]:
    """The cells of every version, and of every run."""
    named = [NamedCell(f"{cell.family}/{cell.version}", cell) for cell in cells]
    for run in runs:
        for workload in run.workloads or ("",):
            named += [
                NamedCell(run.run_id, Cell(workload=workload, gpu=gpu, evidence=kind))
                for gpu in run.gpu_names or ("",)
                for kind in run.evidence
            ]
    return named


def evidence_of_all(cells: Sequence[NamedCell], names: Sequence[str]) -> list[Evidence]:
    """The evidence that all of the named have, measured first; what any has where they share none."""
    kinds = [{cell.evidence for of, cell in cells if of == name} for name in names]
    present = (set.intersection(*kinds) or set.union(*kinds)) if kinds else set()
    return [kind for kind in _MEASURED_FIRST if kind in present]


def evidence_of_family(cells: Sequence[NamedCell], family: str) -> list[Evidence]:
    """The evidence that any version of a family has, measured first."""
    present = {cell.evidence for name, cell in cells if name.startswith(f"{family}/")}
    return [kind for kind in _MEASURED_FIRST if kind in present]


def why_nothing_shared(cells: Sequence[NamedCell], names: Sequence[str]) -> str:
    """Why the named cannot be compared: each has evidence, and none is of one kind. "" where they can."""
    kinds = {name: evidence_of_all(cells, (name,)) for name in names}
    if not all(kinds.values()) or set.intersection(*map(set, kinds.values())):
        return ""
    sides = ", ".join(f"{name} is {' and '.join(present)}" for name, present in kinds.items())
    return f"{sides}: no evidence of one kind, nothing to compare"


def workloads_on_gpus(
    cells: Sequence[NamedCell], names: Sequence[str], evidence: Evidence
) -> list[WorkloadOnGpu]:
    """Where any of the named has that evidence; what most of them have first."""
    counts = _count(cells, names, evidence)
    newest_first = evidence is Evidence.STATIC  # the newest architecture has the highest number
    by_gpu = sorted(counts, key=lambda pair: natural_key(pair[1]), reverse=newest_first)
    return sorted(by_gpu, key=lambda pair: (-counts[pair], natural_key(pair[0])))


def shared_workloads_on_gpus(
    cells: Sequence[NamedCell], names: Sequence[str], evidence: Evidence
) -> list[WorkloadOnGpu]:
    """Where all of the named have that evidence."""
    counts = _count(cells, names, evidence)
    return [pair for pair in workloads_on_gpus(cells, names, evidence) if counts[pair] == len(set(names))]


def _count(cells: Sequence[NamedCell], names: Sequence[str], evidence: Evidence) -> Counter[WorkloadOnGpu]:
    """How many of the named have each workload and GPU."""
    pairs_of: dict[str, set[WorkloadOnGpu]] = {name: set() for name in names}
    for name, cell in cells:
        if name in pairs_of and cell.evidence is evidence:
            pairs_of[name].add((cell.workload, cell.gpu))
    return Counter(pair for pairs in pairs_of.values() for pair in pairs)
