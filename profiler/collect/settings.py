"""The settings of a collection: which versions on which workloads, how often, and with which tools."""

from __future__ import annotations

import shlex
from collections.abc import Collection as Names
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from profiler.catalog.cases import flops_of
from profiler.catalog.catalog import Catalog
from profiler.catalog.problem import Problem, acceptance_workloads
from profiler.catalog.sources import load_object, load_problem
from profiler.catalog.version import Version
from profiler.collect.sample_schedule import ROUNDS, SAMPLES
from profiler.errors import CannotJudge, ProfilerError, UnknownName

Json = dict[str, Any]
ALL = "all"  # in the place of version names


@dataclass(frozen=True)
class Settings:
    """What a collection measures, and how. Kept with the run, so that a resumed run does the same."""

    versions: tuple[str, ...]
    workloads: tuple[Json, ...]  # sizes, the most important first
    rounds: int = ROUNDS
    samples: int = SAMPLES
    processes: int = 3  # fresh processes that share the rounds: see plan.fresh_processes
    clock_control: str = "none"
    cache_control: str = "none"
    full: tuple[str, ...] = ()
    full_on: tuple[str, ...] = ()  # workload labels; empty: all
    sanitize: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    counters: bool = True
    keep_session: bool = False  # reports keep host names, users and paths
    seed: int = 0  # of the inputs, and of the order of versions in each round
    command_line: str = ""
    pairs: int = 0  # A/A pairs of a noise run, two sessions (processes) of `rounds` each; 0: no noise run

    def as_json(self) -> Json:
        """For the plan of the staging folder."""
        return asdict(self)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Settings:
        """The inverse of as_json. Raises TypeError for the settings of another version of this program."""
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in content.items()
        }
        return Settings(**fields)

    def select(self, catalog: Catalog) -> Selection:
        """The versions and workloads that the settings name."""
        problem: Problem = load_object(catalog, catalog.problem)
        workloads = [problem.workload(**sizes) for sizes in self.workloads]
        return Selection(
            problem,
            {workload.label: workload for workload in workloads},
            {name: catalog.by_id[name] for name in self.versions},
        )


@dataclass(frozen=True)
class Selection:
    """The versions and workloads of a collection, by id and by label."""

    problem: Problem
    workloads: Mapping[str, Any]
    versions: Mapping[str, Version]

    def taking(self, label: str) -> list[str]:
        """The versions that take a workload's dtype and head dim."""
        sizes = self.workloads[label].sizes()
        return [
            name
            for name, version in self.versions.items()
            if sizes.get("dtype", version.dtype) in version.dtypes
            and sizes.get("head_dim", version.head_dims[0]) in version.head_dims
        ]


# ---------------------------------------------------------------- from what a person asks for


def collection_settings(
    catalog: Catalog,
    versions: Sequence[str],
    *,
    against: Sequence[str] = (),
    workloads: Sequence[str] = (),
    full: Sequence[str] = (),
    sanitize: Sequence[str] = (),
    model: bool = True,
) -> Settings:
    """The settings of `profiler collect`; what has no argument here is left at its default.

    versions: none means all. against: further versions beside them. workloads: labels, none means all.
    full: versions to capture in full, on the first workload. sanitize: versions, or ALL alone. model: check
    on the CPU as well. Raises UnknownName, CannotJudge or ProfilerError.
    """
    names = [*versions, *against] if versions else []
    chosen = [version for version in catalog.pick(names) if version.state != "planned"]
    if not chosen:
        raise CannotJudge(f"nothing to measure: {catalog.why_none_built(names)}")
    measured = {version.id for version in chosen}
    sizes = workload_sizes(catalog, chosen, workloads)
    headline = load_problem(catalog).workload(**sizes[0]).label
    buildable = tuple(version.id for version in chosen if version.buildable)
    sanitized = measured if list(sanitize) == [ALL] else _measured("--sanitize", sanitize, measured, catalog)
    return Settings(
        versions=tuple(version.id for version in chosen),
        workloads=tuple(sizes),
        full=_measured("--full", full, measured, catalog),
        full_on=(headline,),
        sanitize=tuple(name for name in buildable if name in sanitized),
        model=buildable if model else (),
    )


def noise_settings(
    catalog: Catalog, versions: Sequence[str], *, workloads: Sequence[str] = (), pairs: int = 50
) -> Settings:
    """The settings of `profiler collect --noise`: A/A pairs of correct versions.

    workloads: labels; none means three of the first dtype: the headline, one of middle size and the largest.
    Raises UnknownName, CannotJudge or ProfilerError.
    """
    chosen = catalog.pick(versions)
    if planned := [version.id for version in chosen if version.state == "planned"]:
        raise CannotJudge(catalog.why_none_built(planned))
    if rejected := [version.id for version in chosen if version.state == "rejected"]:
        raise ProfilerError(f"{', '.join(rejected)}: only a correct version has a latency, and so a floor")
    sizes = workload_sizes(catalog, chosen, workloads)
    if not workloads:
        problem: Problem = load_object(catalog, catalog.problem)
        sizes = [size for size in sizes if size.get("dtype") == sizes[0].get("dtype")]
        by_flops = sorted(sizes, key=lambda size: flops_of(problem, problem.workload(**size)))
        sizes = [size for size in sizes if size in (sizes[0], by_flops[len(sizes) // 2], by_flops[-1])]
    return Settings(
        versions=tuple(version.id for version in chosen),
        workloads=tuple(sizes),
        processes=1,
        counters=False,
        pairs=pairs,
    )


def workload_sizes(
    catalog: Catalog, versions: Sequence[Version], labels: Sequence[str] = ()
) -> list[dict[str, object]]:
    """The acceptance workloads in every dtype that a version takes, the headline first in each.

    labels: these alone, in their order. Raises UnknownName for one that there is not.
    """
    dtypes = list(dict.fromkeys(dtype for version in versions for dtype in version.dtypes))
    head_dims = sorted({size for version in catalog.versions for size in version.head_dims})
    acceptance = acceptance_workloads(load_problem(catalog), dtypes, head_dims)
    by_label = {workload.label: workload for workload in acceptance}
    for label in labels:
        if label not in by_label:
            raise UnknownName(f"no workload {label}: there are {', '.join(by_label)}")
    return [dict(by_label[label].sizes()) for label in labels or by_label]


def _measured(option: str, names: Sequence[str], measured: Names[str], catalog: Catalog) -> tuple[str, ...]:
    """The names that an option lists. Raises UnknownName, or ProfilerError for one that is not measured."""
    catalog.pick(names)
    if others := [name for name in names if name not in measured]:
        raise ProfilerError(f"{option} {others[0]}: it is not measured; name it among the versions too")
    return tuple(names)


def publishable_command_line(argv: Sequence[str]) -> str:
    """A command line as it may be published: file names without their folders."""

    def without_folder(word: str) -> str:
        option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
        return f"{option}{equals}{Path(value).name if value.startswith('/') else value}"

    return shlex.join(without_folder(word) for word in argv)
