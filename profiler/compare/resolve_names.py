"""Resolves a name of the command line to a side: a report file, else a run, else a version."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from profiler.errors import CannotJudge, ProfilerError, UnknownName, UnreadableReport
from profiler.evidence.launch import Report
from profiler.evidence.naming import brief_list, natural_key, nearest_first
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.reports.read import read_reports
from profiler.timings.read import timings_form

if TYPE_CHECKING:
    from profiler.store.index import Store
    from profiler.store.rows import ResultInfo, RunInfo

# It is called only for a name that is no file: comparing two files needs no index.
StoreOpener = Callable[[], "Store"]

_EMPTY_NAME = "an empty name: name a report file, a run id, family/version, or a version"
RUN_MARK = "~"  # between a version and the run that is meant
RESULT_KINDS = ("launch", "facts", "latency")  # kinds of rows that can be compared
_RUN_ID = re.compile(r"(^|~)\d{8}T\d{6}-")  # how the id of a run begins
_REPORT_SUFFIXES = (".ncu-rep", ".ncu-repz", ".csv")


class NothingShared(UnknownName):
    """Both sides exist, but share no workload, GPU and evidence of those asked for."""


class VersionRef(NamedTuple):
    """A version: by its newest results, or by those of one run."""

    family: str
    version: str
    run_id: str | None = None  # None: the newest results

    @property
    def name(self) -> str:
        """The name that the command line and the dashboard's addresses accept: `family/version~run`."""
        name = f"{self.family}/{self.version}"
        return name if self.run_id is None else f"{name}{RUN_MARK}{self.run_id}"


def resolve(
    name: str,
    store_opener: StoreOpener,
    workload: str | None = None,
    gpu: str | None = None,
    metrics: Collection[str] | None = None,
) -> Side:
    """The side that a name stands for: a path, a run id, `family/version`, or a `version` that is unique.

    metrics: what is read of a file, as `read_reports` has it.
    """
    return resolve_all([name], store_opener, workload, gpu, metrics=metrics)[0]


def resolve_all(
    names: Sequence[str],
    store_opener: StoreOpener,
    workload: str | None = None,
    gpu: str | None = None,
    evidence: Evidence | None = None,
    *,
    metrics: Collection[str] | None = None,
) -> list[Side]:
    """Resolve several names at once, so that one process reads all report files.

    workload, gpu and evidence choose among a version's results, gpu also among the launches of a file. The
    name of a folder is looked for in the index. Raises UnreadableReport for a damaged file, UnknownName with
    the candidates for a name that stands for nothing or for several things, and NothingShared where a side
    has nothing of that evidence.
    """
    if not all(name.strip() for name in names):
        raise UnknownName(_EMPTY_NAME)
    # A file comes before a run or version of the same name. os.path answers False where the methods of Path
    # raise: for a name that no file can have, too long or with a NUL.
    files = [name for name in names if os.path.exists(name) and not os.path.isdir(name)]
    if files and evidence not in (None, Evidence.MEASURED):
        raise NothingShared(f"{files[0]} is a report, which is measured: it has nothing {evidence}")
    for name in files:
        if form := timings_form(Path(name)):
            raise UnknownName(
                f"{name} has times ({form}) and is no report: compare or gate it with another file of times, "
                f"or `profiler import {name}`"
            )
    reports: dict[str, Report] = {}
    read = read_reports(map(Path, files), metrics=metrics) if files else ()
    for name, report in zip(files, read, strict=True):
        if isinstance(report, UnreadableReport):
            raise _note_hidden_name(report, name, store_opener)
        reports[name] = report
    store: Store | None = None
    sides = []
    for name in names:
        if name in reports:
            sides.append(side_of_report(reports[name], name).on_gpu(gpu))
            continue
        # No run or version is meant by the name of a report that is missing.
        if name.endswith(_REPORT_SUFFIXES) and not os.path.isdir(name):
            raise UnknownName(f"{name}: no such file")
        if _is_folder_path(name):
            raise UnknownName(_folder_message(name))
        store = store or store_opener()
        sides.append(_from_store(store, name, workload, gpu, evidence))
    return sides


def resolve_measured(
    name: str, store_opener: StoreOpener, workload: str | None = None, gpu: str | None = None
) -> Side:
    """The measured side of a name. Raises CannotJudge, with a command that measures, where there is none."""
    if not is_file_name(name) and not find_run(store := store_opener(), name):
        family, version = resolve_family_version(store, name)
        if all(
            kind is not Evidence.MEASURED
            for _, _, kind in _cells_of_version(store, VersionRef(family, version))
        ):
            raise CannotJudge(
                f"{family}/{version} is not measured: `profiler collect {version} --full {version}` on a GPU"
            )
    side = resolve(name, store_opener, workload, gpu)
    if side.evidence is not Evidence.MEASURED:
        raise CannotJudge(
            f"{name} is not measured: it has {side.evidence} facts; `profiler collect` on a GPU"
        )
    return side


def find_fact_pairs(
    names: tuple[str, str],
    store_opener: StoreOpener,
    workload: str | None = None,
    gpu: str | None = None,
    evidence: Evidence | None = None,
) -> list[tuple[Side, Side]]:
    """Pairs of the static and then the modelled facts of two versions, one for every cell that both have.

    A cell is a workload, a GPU or architecture, and evidence. Empty where a name is a file, and, without
    `evidence`, where the versions share measured results, were both measured but share no cell, or share no
    cell and one is a single run. Raises NothingShared where they share no cell that was asked for.
    """
    if evidence is Evidence.MEASURED or any(is_file_name(name) for name in names):
        return []
    store = store_opener()
    a, b = (resolve_version(store, name) for name in names)
    cells_a, cells_b = _cells_of_version(store, a), _cells_of_version(store, b)
    common = cells_a & cells_b
    if evidence is None and any(kind is Evidence.MEASURED for _, _, kind in common):
        return []
    measured_both = all(
        any(kind is Evidence.MEASURED for _, _, kind in cells) for cells in (cells_a, cells_b)
    )
    if evidence is None and not common and (measured_both or a.run_id or b.run_id):
        return []
    kinds = (Evidence.STATIC, Evidence.MODELLED) if evidence is None else (evidence,)
    matching = [
        cell
        for cell in sorted(common, key=lambda cell: (natural_key(cell[0]), natural_key(cell[1])))
        if workload in (None, cell[0]) and gpu in (None, cell[1])
    ]
    selected = [cell for kind in kinds for cell in matching if cell[2] is kind]
    if not selected:
        requested = ", ".join(filter(None, (" or ".join(kinds), workload, gpu)))
        shared = brief_list(
            [
                f"{kind} {workload_name} {gpu_name}".rstrip()
                for workload_name, gpu_name, kind in sorted(common)
            ]
        )
        raise NothingShared(
            f"{names[0]} and {names[1]} share nothing that is {requested}; they share {shared or 'nothing'}"
        )
    return [(_load_side(store, a, cell), _load_side(store, b, cell)) for cell in selected]


def find_facts(
    name: str, store_opener: StoreOpener, workload: str | None = None, gpu: str | None = None
) -> list[Side]:
    """The static and modelled facts of one version, one side a cell; none of a file or a run."""
    if is_file_name(name):
        return []
    store = store_opener()
    if find_run(store, name):
        return []
    version = VersionRef(*resolve_family_version(store, name))
    kinds = (Evidence.STATIC, Evidence.MODELLED)
    return [
        _load_side(store, version, cell)
        for cell in sorted(
            _cells_of_version(store, version), key=lambda cell: (natural_key(cell[0]), natural_key(cell[1]))
        )
        if cell[2] in kinds and workload in (None, cell[0]) and gpu in (None, cell[1])
    ]


def find_measured(name: str, store_opener: StoreOpener, workload: str | None, gpu: str | None) -> Side | None:
    """The measured side of a name, or a run's side of any evidence; None for a version not measured there."""
    if not is_file_name(name):
        store = store_opener()
        if not find_run(store, name):
            cells = _cells_of_version(store, VersionRef(*resolve_family_version(store, name)))
            matches = (
                workload in (None, workload_name) and gpu in (None, gpu_name)
                for workload_name, gpu_name, kind in cells
                if kind is Evidence.MEASURED
            )
            if not any(matches):
                return None
    return resolve(name, store_opener, workload, gpu)


def forgotten_runs(names: Iterable[str], store_opener: StoreOpener) -> Iterator[str]:
    """The ids of forgotten runs among these names.

    The index is opened only where a name contains the id of a run.
    """
    for name in filter(_RUN_ID.search, names):
        match = None if is_file_name(name) else find_run(store_opener(), name)
        run = store_opener().run(match.run_id or name) if match else None
        if run is not None and run.hidden:
            yield run.run_id


def check_name(name: str, store_opener: StoreOpener) -> None:
    """Raise UnknownName for a name that stands for nothing, UnreadableReport for a file that is damaged."""
    if not name.strip() or is_file_name(name):
        resolve(name, store_opener)
    elif not find_run(store := store_opener(), name):
        resolve_family_version(store, name)


def is_file_name(name: str) -> bool:
    """Whether a name stands for a report file, whether or not that exists."""
    return os.path.isfile(name) or name.endswith(_REPORT_SUFFIXES)


def refuse_unused_filters(names: Iterable[str], workload: str | None) -> None:
    """Raise UnknownName for a workload to choose by where all names are of files, which name none."""
    if workload is not None and all(map(is_file_name, names)):
        raise UnknownName(
            f"--workload {workload}: it selects among the results of a version; a report has none",
            option="--workload",
        )


def resolve_version(store: Store, name: str) -> VersionRef:
    """The version that a name in the index means. Raises UnknownName where a run has several."""
    run = find_run(store, name)
    if run is None:
        return VersionRef(*resolve_family_version(store, name))
    if isinstance(run, VersionRef):
        return run
    versions = _versions_of_run(store, name)
    if len(versions) != 1:
        raise UnknownName(
            _several_versions(name, sorted(versions)) if versions else f"run {name} holds no results"
        )
    return VersionRef(*versions.pop(), name)


def find_run(store: Store, name: str) -> RunInfo | VersionRef | None:
    """The run whose id a name is, or for `version~run` the version of that run; None where it is neither.

    Raises UnknownName for a version that the run does not have.
    """
    if run := store.run(name):
        return run
    # From the right: a run id has no mark in it, a version's name may.
    version, mark, run_id = name.rpartition(RUN_MARK)
    if not mark or not store.run(run_id):
        return None
    versions = _versions_of_run(store, run_id)
    matches = _matching_versions(version, versions)
    if len(matches) != 1:
        listed = brief_list(["/".join(match) for match in matches or sorted(versions)])
        problem = f"has several that are called {version}" if matches else f"has no {version}"
        raise UnknownName(f"run {run_id} {problem}; there are {listed or 'no results'}")
    return VersionRef(*matches[0], run_id)


def _versions_of_run(store: Store, run_id: str) -> set[tuple[str, str]]:
    """Family and version of every version that a run has results of."""
    return {(row.family, row.version) for row in store.results(run_id=run_id)}


def _several_versions(run_id: str, versions: Sequence[tuple[str, str]]) -> str:
    first = VersionRef(*versions[0], run_id).name
    listed = brief_list([version for _, version in versions])
    return f"{run_id} has several versions: {listed}; choose one, as in {first}"


def _cells_of_version(store: Store, version: VersionRef) -> set[tuple[str, str, Evidence]]:
    """Workload, GPU or architecture, and evidence of the version's newest results, or of those of its run."""
    if version.run_id is None:
        cells = store.cells(version.family)
        return {(cell.workload, cell.gpu, cell.evidence) for cell in cells if cell.version == version.version}
    rows = store.results(run_id=version.run_id, family=version.family, version=version.version)
    return {(row.workload or "", row.gpu or "", row.evidence) for row in rows if row.kind in RESULT_KINDS}


def _load_side(
    store: Store, version: VersionRef, cell: tuple[str | None, str | None, Evidence | None], label: str = ""
) -> Side:
    workload, gpu, evidence = cell
    return store.side(
        run_id=version.run_id,
        family=version.family,
        version=version.version,
        workload=workload,
        gpu=gpu,
        evidence=evidence,
        label=label or version.name,
    )


def side_of_report(report: Report, label: str) -> Side:
    """A report file as one side. Its workload and dtype are unknown: the file does not contain them."""
    return Side(
        label,
        report.launches,
        gpu=report.gpu,
        compute_capability=report.compute_capability,
        session=report.session,
        report_path=report.path,
        report_sha256=report.sha256,
    )


def _is_folder_path(name: str) -> bool:
    """Whether a name is a folder's and written as no version is: then the index is not asked for it."""
    written_as_path = Path(name).is_absolute() or name.startswith(".") or name.endswith(os.sep)
    return written_as_path and os.path.isdir(name)


def _folder_message(name: str) -> str:
    return f"{name} is a folder: name one report in it, or `profiler import {name}`"


def _note_hidden_name(refusal: UnreadableReport, name: str, store_opener: StoreOpener) -> UnreadableReport:
    """The error of a damaged file; it adds that the index knows a run or version by the same name."""
    if not name.endswith(_REPORT_SUFFIXES):
        with contextlib.suppress(ProfilerError):  # no trouble with the index may hide the file's
            store = store_opener()
            if store.run(name) or _matching_versions(name, _versions(store)):
                return UnreadableReport(
                    f"{refusal}; the index has {name} too, but a file comes first: ask from another folder"
                )
    return refusal


def _from_store(
    store: Store, name: str, workload: str | None, gpu: str | None, evidence: Evidence | None = None
) -> Side:
    # A run that the index refused would otherwise be an unknown name.
    if find_run(store, name) is None and (reason := dict(store.refused()).get(name)):
        raise UnknownName(f"run {name} cannot be read: {reason}")
    version = resolve_version(store, name)
    label = name if name == version.run_id else version.name
    if workload or gpu:
        launches = store.results(family=version.family, version=version.version, run_id=version.run_id)
        _check_filters(label, launches, workload, gpu)
    if evidence is not None and all(kind is not evidence for _, _, kind in _cells_of_version(store, version)):
        raise NothingShared(f"{label} has nothing {evidence}")
    return _load_side(store, version, (workload, gpu, evidence), label)


def resolve_family_version(store: Store, name: str) -> tuple[str, str]:
    """The family and version that a name means. Raises UnknownName with the candidates."""
    if not name.strip():
        raise UnknownName(_EMPTY_NAME)
    versions = _versions(store)
    matches = _matching_versions(name, versions)
    if not matches:
        if os.path.isdir(name):
            raise UnknownName(f"{_folder_message(name)}; no run or version is called that either")
        raise UnknownName(
            f"{name}: neither a file nor a run or version in the index{_nearest_words(name, versions)}"
        )
    if len(matches) > 1:
        raise UnknownName(
            f"{name} names {len(matches)} versions: {brief_list(['/'.join(match) for match in matches])}"
        )
    return matches[0]


def _versions(store: Store) -> set[tuple[str, str]]:
    return {(info.family, info.version) for info in store.versions()}


def _matching_versions(name: str, versions: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The versions with the name `family/version`, else those whose version alone is the name."""
    whole = sorted(pair for pair in versions if "/".join(pair) == name)
    return whole or sorted(pair for pair in versions if pair[1] == name)


def _check_filters(name: str, launches: Iterable[ResultInfo], workload: str | None, gpu: str | None) -> None:
    """Raise UnknownName for a workload or GPU that none of the results has; "" means one nobody named."""
    cells = {(launch.workload, launch.gpu) for launch in launches}
    for kind, requested, position in (("workload", workload, 0), ("GPU", gpu, 1)):
        available = sorted({value for cell in cells if (value := cell[position])})
        if requested and requested not in available:
            hint = (
                f"there are {brief_list(nearest_first(requested, available))}"
                if available
                else "none was given"
            )
            on = f" on {workload}" if workload and position else ""
            raise UnknownName(f"{name} has no {kind} {requested!r}{on}; {hint}")
        # The GPU is looked for among the cells of that workload alone.
        cells = {cell for cell in cells if not requested or cell[position] == requested}


def _nearest_words(name: str, versions: set[tuple[str, str]]) -> str:
    # The user may have mistyped either form of a name.
    names = {"/".join(pair): pair for pair in sorted(versions)}
    near = get_close_matches(name, [*names, *(version for _, version in versions)], n=3, cutoff=0.5)
    if near:
        return f"; near: {brief_list(near)}"
    return (
        "; `profiler list versions` lists them"
        if versions
        else "; the index is empty: `profiler import PATH`"
    )
