"""What an index holds: its runs, versions and workloads, each list as a document."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.bundles.run import FOLDER
from profiler.documents.blocks import Block, Line, Name, Notes, Phrase, Table
from profiler.documents.document import Document
from profiler.errors import UnknownName
from profiler.evidence import formatting
from profiler.evidence.naming import brief_list, nearest_first
from profiler.store.family_mix import family_mixes

if TYPE_CHECKING:
    from profiler.store.family_mix import FamilyMix
    from profiler.store.index import Store
    from profiler.store.rows import RunInfo, VersionInfo, WorkloadInfo

EMPTY = "nothing yet: `profiler import PATH` takes reports, folders and bundles"
RUNS_SHOWN = 200  # newest runs, of which `runs --all` lists the others
_NONE = "–"  # not known, or none: what never ran on a GPU has no GPU


class _Listing(Document):
    """A list out of the index, which holds back rows beyond a limit."""

    @property
    @abstractmethod
    def items(self) -> Sequence[object]:
        """What is listed."""

    @property
    def is_truncated(self) -> bool:
        """Whether the index has more than these."""
        return bool(getattr(self.items, "truncated", False))

    @property
    def sentences(self) -> Sequence[str]:
        """How many there are, and whether that is all."""
        if not self.items:
            return (EMPTY,)
        return (f"only the first {len(self.items)}",) if self.is_truncated else ()

    def _table(
        self, head: Sequence[str], rows: Sequence[Sequence[Phrase]], right: int, notes: Sequence[str] = ()
    ) -> Iterator[Block]:
        """The rows as a table whose column `right` holds numbers, with what is to be known below."""
        if not rows:
            yield Line(EMPTY)
            return
        yield Table(head, rows, right=(right,))
        is_cut = self.is_truncated and len(rows) == len(self.items)
        cut = [f"only the first {len(rows)}: narrow it with --family"] if is_cut else []
        yield Notes([*cut, *notes])


@dataclass(frozen=True, repr=False)
class RunsDocument(_Listing):
    """Runs, newest first."""

    runs: Sequence[RunInfo]
    mixes: Sequence[FamilyMix] = ()  # families of these runs that mix several folders

    title = "Runs"
    columns = (
        "run_id",
        "family",
        "version",
        "workload",
        "kind",
        "created",
        "gpu",
        "driver",
        "ncu_version",
        "cuda",
        "launches",
        "hidden",
    )

    @property
    def items(self) -> Sequence[RunInfo]:
        """The runs."""
        return self.runs

    def rows(self) -> list[tuple[object, ...]]:
        """A row a run; of several families, versions or workloads the names, comma-separated."""
        return [
            (
                run.run_id,
                run.family or _names(run.families),
                run.version or _names(run.versions),
                run.workload or _names(run.workloads),
                run.kind,
                run.created,
                ", ".join(run.gpu_names) or None,
                run.driver,
                run.ncu_version,
                run.cuda,
                run.launches,
                run.hidden,
            )
            for run in self.runs
        ]

    def _content(self) -> dict[str, object]:
        """Each run with its environment and its reports, and the families that mix several folders."""
        return {
            "runs": [_run_dict(run) for run in self.runs],
            "mixed_families": [_mix_dict(mix) for mix in self.mixes],
        }

    @property
    def sentences(self) -> Sequence[str]:
        """How many there are, and what is to be corrected about their families."""
        return (*super().sentences, *(sentence for mix in self.mixes for sentence in mix_sentences(mix)))

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """The newest runs, with `everything` all, and what is to be corrected about their families."""
        shown = self.runs if everything else self.runs[:RUNS_SHOWN]
        rows = [
            (
                Name(run.run_id),
                _of_versions(run),
                run.workload or _several(run.workloads, "workloads"),
                formatting.timestamp(run.created),
                ", ".join(run.gpu_names) or _NONE,
                run.ncu_version or _NONE,
                str(run.launches),
                "forgotten" if run.hidden else "",
            )
            for run in shown
        ]
        notes = [sentence for mix in self.mixes for sentence in mix_sentences(mix)]
        if earlier := len(self.runs) - len(rows):
            more = "at least " if self.is_truncated else ""
            notes.insert(0, f"and {more}{earlier:,} earlier: --all, --family, or --json for all")
        head = ("run", "family/version", "workload", "made", "GPU", "ncu", "launches", "")
        yield from self._table(head, rows, 6, notes)


@dataclass(frozen=True, repr=False)
class VersionsDocument(_Listing):
    """Versions by family, in each in the order in which they first appeared."""

    versions: Sequence[VersionInfo]

    title = "Versions"
    columns = ("family", "version", "first_created", "last_created", "runs", "workloads", "gpus")

    @property
    def items(self) -> Sequence[VersionInfo]:
        """The versions."""
        return self.versions

    def rows(self) -> list[tuple[object, ...]]:
        """A row a version, with the number of its runs."""
        return [
            (
                version.family,
                version.version,
                version.first_created,
                version.last_created,
                version.runs,
                _names(version.workloads),
                _names(version.gpus),
            )
            for version in self.versions
        ]

    def _content(self) -> dict[str, object]:
        """Each version with when and where it was run."""
        return {
            "versions": [
                {
                    "family": version.family,
                    "version": version.version,
                    "first_created": version.first_created.isoformat(),
                    "last_created": version.last_created.isoformat(),
                    "runs": version.runs,
                    "gpus": version.gpus,
                    "workloads": version.workloads,
                }
                for version in self.versions
            ]
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A row a version."""
        rows = [
            (
                version.family,
                Name(version.version),
                formatting.timestamp(version.first_created),
                formatting.timestamp(version.last_created),
                str(version.runs),
                version.workloads[0] if len(version.workloads) == 1 else str(len(version.workloads)),
                ", ".join(version.gpus) or _NONE,
            )
            for version in self.versions
        ]
        head = ("family", "version", "first made", "last made", "runs", "workloads", "GPUs")
        several = any(len(version.workloads) > 1 for version in self.versions)
        yield from self._table(head, rows, 4, ["the names of the workloads: --json"] if several else [])


@dataclass(frozen=True, repr=False)
class WorkloadsDocument(_Listing):
    """Workloads of each family."""

    workloads: Sequence[WorkloadInfo]

    title = "Workloads"
    columns = ("family", "workload", "versions", "gpus")

    @property
    def items(self) -> Sequence[WorkloadInfo]:
        """The workloads."""
        return self.workloads

    def rows(self) -> list[tuple[object, ...]]:
        """A row a workload, with the number of its versions."""
        return [
            (workload.family, workload.workload, workload.versions, _names(workload.gpus))
            for workload in self.workloads
        ]

    def _content(self) -> dict[str, object]:
        """Each workload with its GPUs and the number of its versions."""
        return {
            "workloads": [
                {
                    "family": workload.family,
                    "workload": workload.workload,
                    "versions": workload.versions,
                    "gpus": workload.gpus,
                }
                for workload in self.workloads
            ]
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A row a workload."""
        rows = [
            (
                workload.family,
                workload.workload or _NONE,
                str(workload.versions),
                ", ".join(workload.gpus) or _NONE,
            )
            for workload in self.workloads
        ]
        yield from self._table(("family", "workload", "versions", "GPUs"), rows, 2)


def list_runs(store: Store, *, family: str | None = None, hidden: bool = False) -> RunsDocument:
    """List the runs of the index, newest first.

    At most 200 are shown, and below them the families that mix the reports of several folders.

    Arguments:
        hidden: also list hidden (forgotten) runs

    Raises UnknownName for a family that is not there.

        profiler.list_runs(family="attention").to_frame()
    """
    runs = store.runs(family, hidden=hidden)
    if not runs:
        _check_family(store, family)
    return RunsDocument(runs, family_mixes(runs, store.import_folders()))


def mix_sentences(mix: FamilyMix) -> list[str]:
    """Which folders a family mixes, and the command that tells them apart."""
    if not mix.folders:
        return [
            f"{mix.family}: {mix.unknown} runs do not record the folder of their reports, and may mix "
            f"several: `{mix.way_out}` makes each folder a family"
        ]
    folders = ", ".join(f"{folder} ({runs}) → {family}" for folder, family, runs in mix.folders)
    mixed = f"{mix.family} mixes the reports of {len(mix.folders)} folders: {folders}"
    return [f"{mixed}; `{mix.way_out}` gives each its own family"]


def list_versions(store: Store, *, family: str | None = None) -> VersionsDocument:
    """List the versions of each family, in the order they first appeared.

    Raises UnknownName for a family that is not there.

        profiler.list_versions().to_frame()
    """
    _check_family(store, family)
    return VersionsDocument(store.versions(family))


def list_workloads(store: Store, *, family: str | None = None) -> WorkloadsDocument:
    """List the workloads of each family.

    Raises UnknownName for a family that is not there.

        profiler.list_workloads().to_frame()
    """
    _check_family(store, family)
    return WorkloadsDocument(store.workloads(family))


def _check_family(store: Store, family: str | None) -> None:
    """Refuse a family that the index does not have, rather than list nothing."""
    families = store.families()
    if family is not None and family not in families:
        present = brief_list(nearest_first(family, families))
        way_out = f"there are {present}" if present else "the index is empty: `profiler import PATH`"
        raise UnknownName(f"no family {family!r} in the index; {way_out}")


def _run_dict(run: RunInfo) -> dict[str, object]:
    return {
        "run_id": run.run_id,
        "family": run.family,
        "version": run.version,
        "workload": run.workload,
        "families": run.families,
        "versions": run.versions,
        "workloads": run.workloads,
        "kind": run.kind,
        "created": run.created.isoformat(),
        "gpu": run.gpu,
        "gpus": list(run.gpu_names),
        "compute_capability": run.compute_capability,
        "driver": run.driver,
        "ncu_version": run.ncu_version,
        "cuda": run.cuda,
        "command_line": run.command_line,
        "clock_control": run.clock_control,
        "cache_control": run.cache_control,
        "launches": run.launches,
        "evidence": sorted(run.evidence),
        "hidden": run.hidden,
        "folder": run.provenance.get(FOLDER),
        "reports": [
            {"name": file.name, "sha256": file.sha256, "size_bytes": file.size_bytes, "path": file.path}
            for file in run.reports
        ],
    }


def _mix_dict(mix: FamilyMix) -> dict[str, object]:
    return {
        "family": mix.family,
        "folders": [
            {"folder": folder, "new_family": family, "runs": runs} for folder, family, runs in mix.folders
        ],
        "runs_of_unknown_folders": mix.unknown,
        "way_out": mix.way_out,
    }


def _names(names: Sequence[str]) -> str | None:
    return ", ".join(names) or None


def _several(names: Sequence[str], what: str) -> str:
    """The only name, or how many there are: `20 workloads`."""
    return f"{len(names)} {what}" if len(names) > 1 else next(iter(names), _NONE)


def _of_versions(run: RunInfo) -> str:
    """What a run is of: `attention/v1`, or `attention (26 versions)`."""
    family = run.family or _several(run.families, "families")
    if run.version or len(run.versions) < 2:
        return f"{family}/{run.version or next(iter(run.versions), _NONE)}"
    return f"{family} ({len(run.versions)} versions)"
