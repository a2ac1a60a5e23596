"""What makes the next candidate: a command, a Python function, or one of the two that ship."""

from __future__ import annotations

import random
import shutil
import tomllib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from profiler.bundles.scratch import scratch_folder
from profiler.catalog.catalog import Catalog
from profiler.catalog.search_space import SearchSpace
from profiler.catalog.version import Version
from profiler.errors import ProfilerError
from profiler.judge.manifest import FILE
from profiler.search.archive import Archive
from profiler.search.insights import Insight
from profiler.search.record import SearchRecord

_WHY_LINES, _WHY_CHARACTERS = 5, 1000


class GeneratorFailed(ProfilerError):
    """It left no candidate: an iteration is spent, and the reason recorded."""


class NothingLeft(ProfilerError):
    """There is no candidate that was not tried: the search is at its end."""


@dataclass(frozen=True)
class Request:
    """What a generator is asked for: one child of a candidate."""

    number: int
    prompt: str
    parent: SearchRecord
    parent_folder: Path
    archive: Archive
    insights: Sequence[Insight]  # those in the prompt; none in the control arm
    rng: random.Random
    catalog: Catalog
    version: Version  # that the search began with
    space: SearchSpace | None
    taken: Collection[str] = ()  # content ids that are there, or that another worker has in hand
    folder_of: Callable[[SearchRecord], Path] = field(default=lambda record: Path(record.content_id))


@dataclass(frozen=True)
class CandidateProposal:
    """What a generator says of the candidate that it left."""

    levers: tuple[str, ...] = ()
    why: str = ""
    macros: dict[str, str] = field(default_factory=dict)
    parent: SearchRecord | None = None  # where it took another one than it was given


class Generator(Protocol):
    """Makes one candidate."""

    name: str

    def propose(self, request: Request, folder: Path) -> CandidateProposal:
        """Leave a candidate in the folder, which is empty. Raises GeneratorFailed or NothingLeft."""


class CallableGenerator:
    """A Python function of the prompt, the parent's folder and the candidate's, which begins as a copy of it.

    It runs in this process, without a limit of time: profiler.search.command has one.
    """

    def __init__(self, function: Callable[[str, Path, Path], object], name: str = "") -> None:
        self._function = function
        self.name = name or getattr(function, "__name__", "callable")

    def propose(self, request: Request, folder: Path) -> CandidateProposal:
        """See Generator."""
        shutil.copytree(request.parent_folder, folder, dirs_exist_ok=True)
        try:
            with scratch_folder() as scratch:  # a copy: what is in the archive stays as it was judged
                shutil.copytree(request.parent_folder, scratch / "parent")
                answer = self._function(request.prompt, scratch / "parent", folder)
        except Exception as error:
            raise GeneratorFailed(f"{type(error).__name__}: {error}") from error
        return CandidateProposal(read_levers(folder), short_why(answer if isinstance(answer, str) else ""))


def read_levers(folder: Path) -> tuple[str, ...]:
    """What a manifest says was changed; none where it cannot be read, which the judge says."""
    try:
        levers = tomllib.loads((folder / FILE).read_text("utf-8")).get("levers", [])
    except (OSError, ValueError, RecursionError):
        return ()
    return tuple(str(lever)[:80] for lever in levers[:8]) if isinstance(levers, list) else ()


def short_why(text: str) -> str:
    """The last five lines of what a generator says."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return "\n".join(lines[-_WHY_LINES:])[-_WHY_CHARACTERS:]
