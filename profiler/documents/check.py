"""Whether versions are right: names to versions, their runs on the CPU, and the answer as a document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiler.catalog import Catalog, Problem, Version, load_catalog, load_problem, sources
from profiler.catalog.problem import ALL_STAGES
from profiler.documents.document import Document
from profiler.emulator import CheckRun, VersionCheck, check_versions
from profiler.emulator.facts import describe_failure, summary_line
from profiler.errors import CannotJudge, Exit, UnknownName


@dataclass(frozen=True, repr=False)
class CheckDocument(Document):
    """The runs of each version, and whether they are as its catalogue entry expects."""

    checks: tuple[VersionCheck, ...]

    columns = (
        "version",
        "state",
        "workload",
        "stage",
        "seed",
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
        """The versions that do not compile."""
        return tuple(check for check in self.checks if check.error)

    @property
    def idle(self) -> tuple[str, ...]:
        """The versions whose problem has no workload to check them on."""
        return tuple(check.version for check in self.checks if not check.runs)

    @property
    def exit_code(self) -> Exit:
        """0 all as expected, 1 something is not, 2 one does not compile, 3 one has no workload."""
        if self.failed:
            return Exit.UNUSABLE_INPUT
        if not all(check.as_expected for check in self.checks if check.runs):
            return Exit.REGRESSION
        return Exit.UNJUDGED if self.idle else Exit.PASS

    def rows(self) -> list[tuple[object, ...]]:
        """A row a run: a version on one workload under one schedule."""
        return [_row(run) for check in self.checks for run in check.runs]

    def _content(self) -> dict[str, object]:
        """Every run with its defects and the traffic of each line, and the versions that do not compile."""
        return {
            "cells": [run.as_json() for check in self.checks for run in check.runs],
            "failed": [{"version": check.version, "error": str(check.error)} for check in self.failed],
        }


def check_names(
    names: Sequence[str] = (),
    *,
    catalog: Path | None = None,
    stage: str | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    progress: Callable[[str, str], None] = lambda _version, _what: None,
    warn: Callable[[str], None] = lambda _words: None,
) -> CheckDocument:
    """Run the named versions of a catalogue, else all; for one `stage` the good ones that have it.

    `seeds` is the number of schedules, `jobs` of processes; `progress` is told of each version that is done,
    `warn` of what does not fit together in the catalogue. Raises BadCatalog, UnknownName, and CannotJudge
    where there is nothing to check, or no compiler.
    """
    lineage = load_catalog(catalog)
    problem: Problem = load_problem(lineage)
    versions, stages = _choose(lineage, problem, names, stage)
    for words in sources.inconsistencies(lineage):
        warn(words)
    schedules = range(seeds) if seeds else None
    checks = check_versions(versions, problem, seeds=schedules, stages=stages, jobs=jobs, progress=progress)
    return CheckDocument(tuple(checks))


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
    failure = None if run.passed else describe_failure(run)
    place = (run.version, run.state, run.workload.label, run.stage, run.seed)
    return (*place, run.passed, run.as_expected, *numbers, failure)
