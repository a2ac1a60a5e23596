"""The shared libraries of versions: what was compiled and what was not, as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiler.build.library import BuiltLibrary, FailedBuild, build, why_not_compiled
from profiler.catalog.catalog import Catalog, load_catalog
from profiler.catalog.sources import load_problem
from profiler.documents.blocks import Block, Heading, Name, Notes, Table
from profiler.documents.document import Document
from profiler.errors import Exit, UnknownName


@dataclass(frozen=True, repr=False)
class BuildDocument(Document):
    """The outcome of a build, a library or a compiler's message for each version."""

    outcomes: tuple[BuiltLibrary | FailedBuild, ...]
    not_built: Mapping[str, str]  # why, by version

    title = "Libraries"
    columns = ("version", "built", "arches", "library", "cached", "seconds", "error")

    @property
    def failures(self) -> list[FailedBuild]:
        """The versions that do not compile."""
        return [outcome for outcome in self.outcomes if isinstance(outcome, FailedBuild)]

    @property
    def sentences(self) -> Sequence[str]:
        """What does not compile, and what was not built and why."""
        return [
            *(failure.error for failure in self.failures),
            *(f"{version} is not built: {why}" for version, why in self.not_built.items()),
        ]

    @property
    def exit_code(self) -> Exit:
        """2 where a version does not compile, 3 where nothing was built."""
        if self.failures:
            return Exit.UNUSABLE_INPUT
        return Exit.PASS if self.outcomes else Exit.UNJUDGED

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A row a version, with its library or why there is none."""
        yield Heading(self.title, 1)
        rows = [*map(_cells, self.outcomes)]
        rows += [(Name(version), "not built", why, "") for version, why in self.not_built.items()]
        yield Table(("version", "", "architectures", "library"), rows)
        yield Notes([failure.error for failure in self.failures])

    def rows(self) -> list[tuple[object, ...]]:
        """A row a version that was compiled, or was to be."""
        return [_row(outcome) for outcome in self.outcomes]

    def _content(self) -> dict[str, object]:
        """Each library with its command, warnings and what ptxas says; or why there is none."""
        versions = [_outcome_dict(outcome) for outcome in self.outcomes]
        return {"versions": versions, "not_built": dict(self.not_built)}


def build_versions(
    names: Sequence[str],
    *,
    catalog: Path | None = None,
    arches: Sequence[str] | None = None,
    stage: str | None = None,
    jobs: int | None = None,
    progress: Callable[[str, str], None] | None = None,
) -> BuildDocument:
    """Compile versions of a catalogue, all where none is named; `stage` alone where one is named.

    Raises UnknownName, and CannotJudge where there is no nvcc.
    """
    loaded = load_catalog(catalog)
    versions = loaded.pick(names)
    flags = _stage_flags(loaded, stage)
    outcomes = build(loaded, versions, arches, extra_flags=flags, jobs=jobs, progress=progress)
    return BuildDocument(tuple(outcomes), why_not_compiled(versions, arches))


def _stage_flags(catalog: Catalog, stage: str | None) -> tuple[str, ...]:
    if stage is None:
        return ()
    problem = load_problem(catalog)
    if stage not in problem.stages:
        raise UnknownName(
            f"{catalog.family} has no stage {stage}: it has {', '.join(problem.stages) or 'none'}"
        )
    return tuple(problem.stage_flags(stage))


def _cells(outcome: BuiltLibrary | FailedBuild) -> tuple[str, str, str, str]:
    if isinstance(outcome, FailedBuild):
        return Name(outcome.version), "does not compile", "", ""
    time = "cached" if outcome.cached else f"{outcome.seconds:.1f} s"
    return Name(outcome.version), time, " ".join(outcome.arches), str(outcome.library)


def _row(outcome: BuiltLibrary | FailedBuild) -> tuple[object, ...]:
    if isinstance(outcome, FailedBuild):
        return (outcome.version, False, None, None, None, None, outcome.error)
    arches, library = " ".join(outcome.arches), str(outcome.library)
    return (outcome.version, True, arches, library, outcome.cached, outcome.seconds, None)


def _outcome_dict(outcome: BuiltLibrary | FailedBuild) -> dict[str, object]:
    if isinstance(outcome, FailedBuild):
        return {
            "version": outcome.version,
            "built": False,
            "error": outcome.error,
            "output": outcome.output,
        }
    return {
        "version": outcome.version,
        "built": True,
        "library": str(outcome.library),
        "arches": list(outcome.arches),
        "cached": outcome.cached,
        "seconds": outcome.seconds,
        "source_sha256": outcome.source_sha256,
        "compiler": outcome.compiler,
        "command": list(outcome.command),
        "warnings": outcome.warnings,
        "ptxas": [
            {"function": usage.function, "arch": usage.arch, "line": usage.line}
            for usage in outcome.resources
        ],
    }
