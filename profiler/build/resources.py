"""What a version's kernel functions cost on each architecture, and whether its budget allows it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from profiler.build import library, opcode_counts
from profiler.build.library import BuiltLibrary, FailedBuild, Progress, ResourceUsage
from profiler.build.occupancy import Occupancy, occupancy
from profiler.build.opcode_counts import CodeSummary
from profiler.catalog import Catalog, Problem, Version, load_problem
from profiler.emulator import cpu_check
from profiler.errors import ProfilerError

LAUNCHES_FILE = "launches.json"  # beside the library: what the CPU saw the launcher ask for


class BlockConfig(NamedTuple):
    """What a launch asks for, as the CPU check saw it."""

    kernel: str  # without template arguments
    threads: int  # a block
    shared_bytes: int  # dynamic, a block


@dataclass(frozen=True)
class FunctionResources:
    """One kernel function of a version on one architecture. None where a tool that would tell is missing."""

    version: Version
    name: str
    role: str  # what it is in the version, the same word across versions: main, combine
    head_dim: int | None  # None: the function is the same for all
    usage: ResourceUsage
    code: CodeSummary | None
    threads: int | None
    shared_bytes: Mapping[int, int | None]  # by head dim: static and dynamic, a block
    occupancy: Occupancy | None

    @property
    def arch(self) -> str:
        """The architecture."""
        return self.usage.arch

    @property
    def most_shared_bytes(self) -> int | None:
        """Of the head dim that takes most."""
        known = [size for size in self.shared_bytes.values() if size is not None]
        return max(known) if known and len(known) == len(self.shared_bytes) else None

    @property
    def over_budget(self) -> tuple[str, ...]:
        """What exceeds the version's budget, in words."""
        return tuple(name for name, known in self._judged() if known)

    @property
    def unjudged(self) -> tuple[str, ...]:
        """What has a budget and is not known: it cannot pass."""
        return tuple(name for name, known in self._judged() if not known)

    def _judged(self) -> list[tuple[str, bool]]:
        facts = {
            "registers": self.usage.registers,
            "shared_bytes": self.most_shared_bytes,
            "spill_bytes": self.usage.spill_bytes,
            "stack_bytes": self.usage.stack_bytes,
        }
        return opcode_counts.over_budget(facts, self.version.budget.limits(self.head_dim))

    def as_json(self) -> dict[str, Any]:
        """The function as `static --json` prints it."""
        fits = self.occupancy
        return {
            "version": self.version.id,
            "state": self.version.state,
            "evidence": "static",
            "arch": self.arch,
            "function": self.name,
            "role": self.role,
            "head_dim": self.head_dim,
            "registers": self.usage.registers,
            "spill_bytes": self.usage.spill_bytes,
            "stack_bytes": self.usage.stack_bytes,
            "shared_bytes": {str(head_dim): size for head_dim, size in self.shared_bytes.items()},
            "static_shared_bytes": self.usage.static_shared_bytes,
            "barriers": self.usage.barriers,
            "threads": self.threads,
            "opcodes": dict(self.code.classes) if self.code else None,
            "instructions": self.code.instructions if self.code else None,
            "code_bytes": self.code.code_bytes if self.code else None,
            "occupancy_pct": fits.pct if fits else None,
            "blocks_per_sm": fits.blocks if fits else None,
            "limiter": ", ".join(fits.limiters) if fits else None,
            "over_budget": list(self.over_budget),
            "unjudged": list(self.unjudged),
            "ptxas": self.usage.line,
        }


@dataclass(frozen=True)
class VersionResources:
    """All functions of one version, and why something about them is not known."""

    version: Version
    built: BuiltLibrary
    functions: tuple[FunctionResources, ...]
    missing: tuple[str, ...] = ()


def version_resources(
    catalog: Catalog,
    versions: Sequence[Version],
    arches: Sequence[str] | None = None,
    *,
    progress: Progress | None = None,
    jobs: int | None = None,
    limit_s: float = library.TIME_LIMIT_S,
) -> Iterator[VersionResources | FailedBuild]:
    """Build versions and take them apart, in the order given. Raises CannotJudge where there is no nvcc.

    limit_s: of the compiler for one version, which has failed after it.
    """
    problem = load_problem(catalog)
    with ThreadPoolExecutor(
        jobs or os.cpu_count() or 1
    ) as pool:  # a version is taken apart while the next one compiles
        waiting: list[FailedBuild | Future[VersionResources]] = [
            made
            if isinstance(made, FailedBuild)
            else pool.submit(_take_apart, catalog.by_id[made.version], made, problem)
            for made in library.build(
                catalog, versions, arches, progress=progress, jobs=jobs, limit_s=limit_s
            )
        ]
        for one in waiting:
            yield one if isinstance(one, FailedBuild) else one.result()


def _take_apart(version: Version, built: BuiltLibrary, problem: Problem) -> VersionResources:
    missing: dict[str, None] = {}
    geometry: Mapping[int, Sequence[BlockConfig]] = {}
    codes: dict[tuple[str, str], CodeSummary] = {}
    try:
        geometry = _geometry(version, built.library.with_name(LAUNCHES_FILE), problem)
    except ProfilerError as error:
        missing[f"{version.id}: block size and shared memory unknown: {_first_line(error)}"] = None
    for arch in built.arches:
        try:
            for found in opcode_counts.summarize_code(opcode_counts.dump_sass(built.library, arch), arch):
                codes[found.function, arch] = found
        except ProfilerError as error:
            missing[f"{version.id}: machine code unknown: {_first_line(error)}"] = None
    names = {opcode_counts.function_name(one.function) for one in built.resources}
    functions = []
    for resources in sorted(built.resources, key=lambda one: (built.arches.index(one.arch), _order(one))):
        head_dim = opcode_counts.template_integer(resources.function)
        if head_dim is None or head_dim in version.head_dims:
            name = opcode_counts.function_name(resources.function)
            role = version.roles.get(name, "main" if len(names) == 1 else name)
            code = codes.get((resources.function, resources.arch))
            functions.append(_function(version, name, role, head_dim, resources, code, geometry))
    return VersionResources(version, built, tuple(functions), tuple(missing))


def _function(
    version: Version,
    name: str,
    role: str,
    head_dim: int | None,
    resources: ResourceUsage,
    code: CodeSummary | None,
    geometry: Mapping[int, Sequence[BlockConfig]],
) -> FunctionResources:
    threads: set[int] = set()
    shared: dict[int, int | None] = {}
    for size in version.head_dims if head_dim is None else (head_dim,):
        launches = [one for one in geometry.get(size, ()) if one.kernel == name]
        threads.update(one.threads for one in launches)
        dynamic = max((one.shared_bytes for one in launches), default=None)
        shared[size] = None if dynamic is None else resources.static_shared_bytes + dynamic
    block = max(threads, default=None)
    fits = None
    if block is not None:
        most = max(size for size in shared.values() if size is not None)
        fits = occupancy(resources.arch, resources.registers, block, most)
    return FunctionResources(version, name, role, head_dim, resources, code, block, shared, fits)


def _geometry(version: Version, kept: Path, problem: Problem) -> dict[int, tuple[BlockConfig, ...]]:
    """The launches by head dim, on the smallest workload that the problem checks."""
    if kept.is_file():
        rows = json.loads(kept.read_text(encoding="utf-8"))
        return {int(size): tuple(BlockConfig(*row) for row in found) for size, found in rows.items()}
    checked = {size: problem.check_workloads(version.dtype, (size,)) for size in version.head_dims}
    workloads = {size: found[0] for size, found in checked.items() if found}
    shapes = cpu_check.launch_shapes(version, problem, list(workloads.values()))
    found = {
        size: tuple(
            BlockConfig(one.kernel.partition("<")[0].split("::")[-1], one.threads, one.shared_bytes)
            for one in shapes[workload]
        )
        for size, workload in workloads.items()
    }
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def _order(resources: ResourceUsage) -> tuple[str, int]:
    return opcode_counts.function_name(resources.function), opcode_counts.template_integer(
        resources.function
    ) or 0


def _first_line(error: ProfilerError) -> str:
    return str(error).splitlines()[0]
