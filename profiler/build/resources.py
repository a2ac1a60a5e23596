"""What a version's kernel functions cost on each architecture, and whether its budget allows it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from profiler.build import library, opcode_counts
from profiler.build.kernel_names import function_name, template_integer
from profiler.build.library import BuiltLibrary, FailedBuild, Progress, ResourceUsage
from profiler.build.occupancy import Occupancy, no_block_words, occupancy
from profiler.build.opcode_counts import CodeSummary
from profiler.catalog.cases import own_workloads
from profiler.catalog.catalog import Catalog
from profiler.catalog.problem import Problem, Workload
from profiler.catalog.sources import load_problem
from profiler.catalog.version import Version
from profiler.errors import ProfilerError

WARPGROUP = 128  # threads
LAUNCHES_FILE = "launches.json"  # beside the library: what the CPU saw the launcher ask for


class LaunchConfig(NamedTuple):
    """What a launch of one kernel function asks for."""

    kernel: str  # without template arguments
    threads: int  # a block
    shared_bytes: int  # dynamic, a block


# The launches of a version on each of some workloads. Block size and dynamic shared memory are not in the
# binary: somebody has to run the launcher, and this room comes before the one that can.
LaunchConfigs = Callable[[Version, Problem, Sequence[Workload]], Mapping[Workload, Sequence[LaunchConfig]]]


@dataclass(frozen=True)
class RegisterPool:
    """How the warpgroups of a block share the registers of its launch, by setmaxnreg."""

    declared: tuple[int, ...]  # a thread of each warpgroup, by the catalogue
    moved: tuple[int, ...]  # a thread, by the machine code
    launch_registers: int  # a thread
    threads: int | None  # of a block

    @property
    def available(self) -> int:
        """A thread of each warpgroup, added: registers are given in steps of 8."""
        return -(-self.launch_registers // 8) * 8 * len(self.declared)

    @property
    def words(self) -> str:
        """`24 + 240 + 240 of 504`."""
        return f"{' + '.join(map(str, self.declared)) or 'not declared'} of {self.available}"

    @property
    def exceeded(self) -> list[tuple[str, bool]]:
        """What does not hold, in words, and whether that is known: see over_budget."""
        moved = ", ".join(map(str, sorted(set(self.moved))))
        if not self.declared:
            return [(f"register pool unknown: setmaxnreg to {moved}, no warpgroup_registers", False)]
        found = []
        if self.threads is not None and self.threads != WARPGROUP * len(self.declared):
            found.append((f"warpgroup_registers of {len(self.declared)} in a block of {self.threads}", True))
        if not self.moved:
            found.append(("no setmaxnreg in the machine code: ptxas has ignored it", True))
        elif not set(self.moved) <= set(self.declared):
            found.append((f"setmaxnreg to {moved}, warpgroup_registers {list(self.declared)}", True))
        if sum(self.declared) > self.available:
            found.append((f"register pool {self.words}: a claim waits for ever", True))
        return found


@dataclass(frozen=True)
class FunctionResources:
    """One kernel function of a version on one architecture; None where a tool that would say is missing."""

    version: Version
    name: str
    role: str  # what it is in the version, the same word across versions: main, combine
    head_dim: int | None  # None: the function is the same for all
    usage: ResourceUsage
    code: CodeSummary | None
    threads: int | None  # of a block
    shared_bytes: Mapping[int, int | None]  # by head dim, of a block: static and dynamic
    occupancy: Occupancy | None

    @property
    def arch(self) -> str:
        """The architecture."""
        return self.usage.arch

    @property
    def most_shared_bytes(self) -> int | None:
        """Of the head dim that takes most; None where one of them is unknown."""
        sizes = [size for size in self.shared_bytes.values() if size is not None]
        return max(sizes) if sizes and len(sizes) == len(self.shared_bytes) else None

    @property
    def over_budget(self) -> tuple[str, ...]:
        """What exceeds the version's budget, in words."""
        return tuple(words for words, is_known in self._exceeded() if is_known)

    @property
    def unjudged(self) -> tuple[str, ...]:
        """What has a budget and is not known, in words: it cannot pass."""
        return tuple(words for words, is_known in self._exceeded() if not is_known)

    @property
    def register_pool(self) -> RegisterPool | None:
        """How its warpgroups share the registers of its launch; None where none moves any or nobody knows."""
        declared = self.version.warpgroup_registers
        if self.code is None:
            return None
        moved = self.code.released_registers + self.code.claimed_registers
        if not (moved or declared):
            return None
        return RegisterPool(declared, moved, self.usage.registers, self.threads)

    def _exceeded(self) -> list[tuple[str, bool]]:
        facts: dict[str, int | None] = {
            "registers": self.usage.registers,
            "shared_bytes": self.most_shared_bytes,
            "spill_bytes": self.usage.spill_bytes,
            "stack_bytes": self.usage.stack_bytes,
            "serialized_wgmma": len(self.usage.serialized_wgmma),
            "barriers": self.usage.barriers,
        }
        exceeded = over_budget(facts, self.version.budget.limits(self.head_dim))
        if self.register_pool is not None:
            exceeded += self.register_pool.exceeded
        elif self.code is None and self.version.warpgroup_registers:
            exceeded.append(("register pool unknown: no machine code", False))
        if self.occupancy is not None and not self.occupancy.blocks and self.threads is not None:
            shared = max(size for size in self.shared_bytes.values() if size is not None)
            why = no_block_words(self.arch, self.usage.registers, self.threads, shared)
            exceeded.append((f"fits no SM: {why}", True))
        return exceeded


@dataclass(frozen=True)
class VersionResources:
    """All functions of one version on all its architectures."""

    version: Version
    built: BuiltLibrary
    functions: tuple[FunctionResources, ...]
    missing: tuple[str, ...] = ()  # what is not known about them, and why


def version_resources(
    catalog: Catalog,
    versions: Sequence[Version],
    arches: Sequence[str] | None = None,
    *,
    launch_configs: LaunchConfigs,
    progress: Progress | None = None,
    jobs: int | None = None,
    limit_s: float = library.TIME_LIMIT_S,
) -> Iterator[VersionResources | FailedBuild]:
    """Build versions and say what their functions cost, in the order given.

    launch_configs runs a version's launcher (cpu_check.launch_configs does); called once for each library.
    limit_s: of the compiler for one version, which has failed after it. Raises CannotJudge where there is no
    nvcc.
    """
    problem = load_problem(catalog)

    def examine(built: BuiltLibrary) -> VersionResources:
        return _examine(catalog.by_id[built.version], built, problem, launch_configs)

    # One version is taken apart while the next one compiles.
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        pending: list[FailedBuild | Future[VersionResources]] = [
            outcome if isinstance(outcome, FailedBuild) else pool.submit(examine, outcome)
            for outcome in library.build(
                catalog, versions, arches, progress=progress, jobs=jobs, limit_s=limit_s
            )
        ]
        for result in pending:
            yield result if isinstance(result, FailedBuild) else result.result()


def _examine(
    version: Version, built: BuiltLibrary, problem: Problem, launch_configs: LaunchConfigs
) -> VersionResources:
    missing: dict[str, None] = {}
    launches: Mapping[int, Sequence[LaunchConfig]] = {}
    codes: dict[tuple[str, str], CodeSummary] = {}
    try:
        launches = _launches(version, built.library.with_name(LAUNCHES_FILE), problem, launch_configs)
    except ProfilerError as error:
        missing[f"{version.id}: block size and shared memory unknown: {_first_line(error)}"] = None
    for arch in built.arches:
        try:
            for code in opcode_counts.summarize_code(opcode_counts.dump_sass(built.library, arch), arch):
                codes[code.function, arch] = code
        except ProfilerError as error:
            missing[f"{version.id}: machine code unknown: {_first_line(error)}"] = None
    names = {function_name(usage.function) for usage in built.resources}
    functions = []
    for usage in sorted(built.resources, key=lambda usage: _by_arch_and_name(usage, built.arches)):
        head_dim = template_integer(usage.function)
        if head_dim is None or head_dim in version.head_dims:
            name = function_name(usage.function)
            role = version.roles.get(name, "main" if len(names) == 1 else name)
            code_summary = codes.get((usage.function, usage.arch))
            functions.append(_function(version, name, role, head_dim, usage, code_summary, launches))
    return VersionResources(version, built, tuple(functions), tuple(missing))


def _function(
    version: Version,
    name: str,
    role: str,
    head_dim: int | None,
    usage: ResourceUsage,
    code: CodeSummary | None,
    launches: Mapping[int, Sequence[LaunchConfig]],
) -> FunctionResources:
    threads: set[int] = set()
    shared: dict[int, int | None] = {}
    for size in version.head_dims if head_dim is None else (head_dim,):
        own = [launch for launch in launches.get(size, ()) if launch.kernel == name]
        threads.update(launch.threads for launch in own)
        dynamic = max((launch.shared_bytes for launch in own), default=None)
        shared[size] = None if dynamic is None else usage.static_shared_bytes + dynamic
    block = max(threads, default=None)
    fits = None
    if block is not None:
        most = max(size for size in shared.values() if size is not None)
        fits = occupancy(usage.arch, usage.registers, block, most)
    return FunctionResources(version, name, role, head_dim, usage, code, block, shared, fits)


def _launches(
    version: Version, path: Path, problem: Problem, launch_configs: LaunchConfigs
) -> dict[int, tuple[LaunchConfig, ...]]:
    """The launches by head dim, on the smallest workload that the problem checks; stored at `path`.

    And on the workloads of the version's own entry, which it has since its launcher chooses by size.
    """
    own = own_workloads(problem, version)
    workloads = {
        size: [
            *problem.check_workloads(version.dtype, (size,))[:1],
            *(w for w in own if _head_dim(w) == size),
        ]
        for size in version.head_dims
    }
    labels = [workload.label for group in workloads.values() for workload in group]
    if path.is_file():
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored.get("workloads") == labels:
            return {
                int(size): tuple(LaunchConfig(*row) for row in launches)
                for size, launches in stored["launches"].items()
            }
    by_workload = launch_configs(version, problem, [w for group in workloads.values() for w in group])
    by_head_dim = {
        size: tuple(dict.fromkeys(launch for workload in group for launch in by_workload[workload]))
        for size, group in workloads.items()
        if group
    }
    path.write_text(json.dumps({"workloads": labels, "launches": by_head_dim}), encoding="utf-8")
    return by_head_dim


def _head_dim(workload: Workload) -> int | str | bool | None:
    return workload.sizes().get("head_dim")


def over_budget(facts: Mapping[str, int | None], limits: Mapping[str, int | None]) -> list[tuple[str, bool]]:
    """What does not keep its limit, in words (`registers 80 over 72`), and whether that is known.

    A fact that is None keeps no limit; a limit that is None is not judged.
    """
    exceeded = []
    for name, limit in limits.items():
        value = facts.get(name)
        if limit is None or (value is not None and value <= limit):
            continue
        words = name.replace("_", " ")
        if value is None:
            exceeded.append((f"{words} unknown, budget {limit}", False))
        else:
            exceeded.append((f"{words} {value} over {limit}", True))
    return exceeded


def _by_arch_and_name(usage: ResourceUsage, arches: Sequence[str]) -> tuple[int, str, int]:
    return arches.index(usage.arch), function_name(usage.function), template_integer(usage.function) or 0


def _first_line(error: ProfilerError) -> str:
    return str(error).splitlines()[0]
