"""The results of a version that need no GPU: static facts by head dim, modelled facts by workload."""

from __future__ import annotations

from dataclasses import replace

from profiler.build.facts import static_facts
from profiler.build.resources import FunctionResources, VersionResources
from profiler.bundles.run import Result
from profiler.catalog.catalog import Catalog
from profiler.catalog.problem import Problem, Workload
from profiler.catalog.sources import source_sha256
from profiler.catalog.version import Version
from profiler.emulator import facts
from profiler.emulator.cpu_check import CheckRun, VersionCheck


def bare_result(catalog: Catalog, version: Version) -> Result:
    """A result that says which version it is about and no more."""
    return Result(
        version.family, version.id, source_sha256=source_sha256(catalog, version), flags=version.flags
    )


def failed_result(catalog: Catalog, version: Version, reason: str) -> Result:
    """The result of a version that could not be built or checked."""
    return replace(bare_result(catalog, version), status="failed", reason=reason)


def static_results(catalog: Catalog, resources: VersionResources) -> list[Result]:
    """What the compiler says of a version's functions: a result a head dim, one for those that have none."""
    version = resources.version
    by_head_dim: dict[int | None, list[FunctionResources]] = {}
    for function in resources.functions:
        by_head_dim.setdefault(function.head_dim, []).append(function)
    return [
        replace(
            bare_result(catalog, version),
            workload=None if head_dim is None else f"head dim {head_dim}",
            problem={} if head_dim is None else {"head_dim": head_dim, "dtype": version.dtype},
            facts=tuple(static_facts(function) for function in functions),
        )
        for head_dim, functions in by_head_dim.items()
    ]


def modelled_results(
    catalog: Catalog, version: Version, check: VersionCheck, problem: Problem
) -> list[Result]:
    """What the CPU saw of a version: a result a workload."""
    by_workload: dict[Workload, list[CheckRun]] = {}
    for run in check.runs:
        by_workload.setdefault(run.workload, []).append(run)
    results = []
    for workload, runs in by_workload.items():
        contract = check.contract if check.contract and check.contract.workload == workload else None
        status, reason = facts.result_status(runs, contract)
        results.append(
            replace(
                bare_result(catalog, version),
                workload=workload.label,
                problem=workload.sizes(),
                status=status,
                reason=reason,
                check=facts.check_outcome(runs, problem, contract),
                facts=(facts.modelled_facts(runs),),
            )
        )
    left_out = {cell.workload: cell.reason for cell in check.not_run if cell.workload not in by_workload}
    for workload, reason in left_out.items():
        bare = failed_result(catalog, version, f"not run: {reason}")
        results.append(replace(bare, workload=workload.label, problem=workload.sizes()))
    return results
