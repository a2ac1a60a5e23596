"""Whether versions are right: names to versions, their runs on the CPU, and the answer as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiler.catalog import sources
from profiler.catalog.cases import call_problem, refuse_weak_checks, version_workloads
from profiler.catalog.catalog import Catalog, load_catalog
from profiler.catalog.problem import ALL_STAGES, Problem
from profiler.catalog.sources import load_problem
from profiler.catalog.version import Version
from profiler.documents.blocks import Block
from profiler.documents.check_blocks import check_blocks
from profiler.documents.document import Document
from profiler.emulator.cpu_check import CheckRun, VersionCheck, Workloads, check_versions
from profiler.emulator.emulator import Landing
from profiler.emulator.facts import findings, replay_command, summary_line
from profiler.emulator.failure import describe_failure
from profiler.errors import CannotJudge, Exit, UnknownName

ALL_LANDINGS = "all"  # of the policies, under each seed


@dataclass(frozen=True, repr=False)
class CheckDocument(Document):
    """The runs of each version, and whether they are as its catalogue entry expects."""

    checks: tuple[VersionCheck, ...]
    catalog: Path | None = None  # that was asked for: the commands name it

    columns = (
        "version",
        "state",
        "workload",
        "stage",
        "seed",
        "landing",
        "passed",
        "as_expected",
        "max_abs_error",
        "shared_wavefronts",
        "bank_conflicts",
        "failure",
    )

    @property
    def title(self) -> str:
        """How many versions were run."""
        return f"{len(self.checks)} version{'s' * (len(self.checks) != 1)} run on the CPU"

    @property
    def sentences(self) -> Sequence[str]:
        """A line a version."""
        return [summary_line(check) for check in self.checks]

    @property
    def failed(self) -> tuple[VersionCheck, ...]:
        """The versions that do not compile or cannot be called, or on which the problem fails."""
        return tuple(check for check in self.checks if check.error)

    @property
    def idle(self) -> tuple[str, ...]:
        """The versions whose problem has no workload to check them on."""
        return tuple(check.version for check in self.checks if not check.runs and not check.contract)

    @property
    def exit_code(self) -> Exit:
        """0 all as expected, 1 something is not, 2 one cannot be built or called, 3 one has no workload."""
        if self.failed:
            return Exit.UNUSABLE_INPUT
        if not all(check.as_expected for check in self.checks if check.version not in self.idle):
            return Exit.REGRESSION
        return Exit.UNJUDGED if self.idle else Exit.PASS

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A row a version, what stands against those not as expected, and what was not checked."""
        yield from check_blocks(self.title, self.checks, self.catalog, everything=everything)

    def rows(self) -> list[tuple[object, ...]]:
        """A row a run: a version on one workload under one schedule."""
        return [_row(run) for check in self.checks for run in check.runs]

    def _content(self) -> dict[str, object]:
        """Every run with its defects and the traffic of each line, and the versions that do not compile.

        `findings`: what stands against versions that are not as expected, each on the smallest workload that
        shows it, with the command that makes this run again.
        """
        return {
            "cells": [run.as_json() for check in self.checks for run in check.runs],
            "failed": [{"version": check.version, "error": str(check.error)} for check in self.failed],
            "findings": [
                {
                    "version": check.version,
                    **finding.as_json(),
                    "command": replay_command(check.version, finding, self.catalog),
                }
                for check in self.checks
                for finding in findings(check)
            ],
            "not_run": [
                {
                    "version": check.version,
                    "workload": cell.workload.label,
                    "seed": cell.seed,
                    "landing": cell.landing.label if cell.landing is not None else None,
                    "stage": cell.stage,
                    "reason": cell.reason,
                }
                for check in self.checks
                for cell in check.not_run
            ],
            "contract": [
                {
                    "version": check.version,
                    "workload": check.contract.workload.label,
                    "calls": check.contract.calls,
                    "broken": [defect.text for defect in check.contract.defects],
                }
                for check in self.checks
                if check.contract
            ],
            "gpu_only": [
                {"version": check.version, "file": lines.file, "first": lines.first, "last": lines.last}
                for check in self.checks
                for lines in check.gpu_only
            ],
        }


def check_names(
    names: Sequence[str] = (),
    *,
    catalog: Path | None = None,
    stage: str | None = None,
    seeds: int | None = None,
    workload: str | None = None,
    seed: int | None = None,
    landing: str | None = None,
    contract: bool = False,
    jobs: int | None = None,
    progress: Callable[[str, str], None] = lambda _version, _what: None,
    warn: Callable[[str], None] = lambda _words: None,
) -> CheckDocument:
    """Run the named versions of a catalogue, else all; for one `stage` the good ones that have it.

    `seeds` is the number of schedules and `seed` one of them alone, `workload` the label of one alone;
    `landing` (late, rows, at-once; all: each of them under every seed) says when asynchronous work takes
    effect, else the seed does;
    `contract` asks for the calls of the contract and nothing else, with `workload` on that one. `jobs` is the
    number of processes; `progress` is told of each version that is done, `warn` of what does not fit
    together in the catalogue.
    Raises BadCatalog, UnknownName, and CannotJudge where there is nothing to check, or no compiler.
    """
    lineage = load_catalog(catalog)
    problem: Problem = load_problem(lineage)
    order = {"stage": stage, "seed": seed, "seeds": seeds, "landing": landing}
    if contract and any(value is not None for value in order.values()):
        option = next(f"--{name}" for name, value in order.items() if value is not None)
        raise UnknownName(
            f"--contract makes its calls of the whole problem in order, seed 0: leave out {option}"
        )
    if contract and not hasattr(problem, "contract_calls"):
        raise CannotJudge(f"nothing to check: the problem of {lineage.family} has no contract_calls")
    versions, stages = _choose(lineage, problem, names, stage)
    if contract:
        versions = [version for version in versions if version.state == "good"]
        if not versions:
            raise CannotJudge("nothing to check: the calls of the contract are made for good versions only")
    for words in sources.inconsistencies(lineage):
        warn(words)
    if seeds and seed is not None:
        raise UnknownName("--seeds is a number of schedules and --seed one of them: give one of the two")
    refuse_weak_checks(problem, versions)
    schedules = [seed] if seed is not None else range(seeds) if seeds else None
    chosen = None if workload is None else _with_label(workload, versions, problem)
    workloads: Workloads = () if contract else chosen
    contract_on = {name: found[0] for name, found in (chosen or {}).items() if found}
    checks = check_versions(
        versions,
        problem,
        workloads,
        schedules,
        landings=_landings(landing),
        stages=stages,
        contract=contract or (workload is None and seed is None),
        contract_on=None if chosen is None else contract_on,
        jobs=jobs,
        progress=progress,
    )
    return CheckDocument(tuple(checks), catalog)


def _landings(label: str | None) -> Sequence[Landing | None]:
    """The policies that an option names; None: the seed's. Raises UnknownName."""
    if label is None:
        return (None,)
    policies = [policy for policy in Landing if label in (policy.label, ALL_LANDINGS)]
    if not policies:
        known = ", ".join(policy.label for policy in Landing)
        raise UnknownName(f"no landing is called {label!r}: there are {known} and {ALL_LANDINGS}")
    return policies


def _with_label(label: str, versions: Sequence[Version], problem: Problem) -> dict[str, list[Any]]:
    """The workload of that label, by version: of those it is checked or measured on."""
    by_version: dict[str, list[Any]] = {}
    labels: dict[str, None] = {}
    for version in versions:
        checked = version_workloads(problem, version)
        measured = []
        if hasattr(problem, "acceptance_workloads"):
            measured = call_problem(problem, "acceptance_workloads", version.dtype, of=version.dtype)
        labels.update(dict.fromkeys(workload.label for workload in checked))
        wanted = " ".join(label.split())
        matches = [workload for workload in (*checked, *measured) if workload.label == wanted]
        by_version[version.id] = matches[:1]
    if not any(by_version.values()):
        raise UnknownName(f"no workload has the label {label!r}: they are checked on {', '.join(labels)}")
    return by_version


def _choose(
    lineage: Catalog, problem: Problem, names: Sequence[str], stage: str | None
) -> tuple[list[Version], tuple[str, ...]]:
    """The versions to check and their stages; for one stage the good versions that can be built for it."""
    chosen = [version for version in lineage.pick(names) if version.buildable]
    if not chosen:
        raise CannotJudge(f"nothing to check: {lineage.why_none_built(names)}")
    if stage is None:
        return chosen, (ALL_STAGES,)
    if stage not in problem.stages:
        raise UnknownName(
            f"{lineage.family} has no stage {stage}: it has {', '.join(problem.stages) or 'none'}"
        )
    able = [version for version in chosen if version.state == "good" and stage in version.stages]
    if not able:
        raise CannotJudge(f"nothing to check: none of these versions of {lineage.path} has a source for it")
    return able, (stage,)


def _row(run: CheckRun) -> tuple[object, ...]:
    numbers = (run.max_abs_error, run.shared_wavefronts, run.bank_conflicts)
    failure = None if run.passed else describe_failure(run.result)
    landing = run.landing.label if run.landing is not None else None
    place = (run.version, run.state, run.workload.label, run.stage, run.seed, landing)
    return (*place, run.passed, run.as_expected, *numbers, failure)
