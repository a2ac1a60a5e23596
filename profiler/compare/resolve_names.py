"""What a name on the command line means: a report file, a run, or a version, in that order."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from profiler.errors import CannotJudge, ProfilerError, UnknownName, UnreadableReport
from profiler.evidence import Evidence, Report, Side, brief_list, natural_key, nearest_first
from profiler.reports import read_reports

if TYPE_CHECKING:
    from profiler.store import ResultInfo, RunInfo, Store

StoreOpener = Callable[
    [], "Store"
]  # called only for a name that is no file: a diff of two files needs no store

_EMPTY = "an empty name: name a report file, a run id, family/version, or a version"
RUN_MARK = "~"  # between a version and the run that is meant
RESULT_KINDS = ("launch", "facts", "latency")  # kinds of rows that can be compared
_RUN_ID = re.compile(r"(^|~)\d{8}T\d{6}-")  # how the id of a run begins
_REPORT_SUFFIXES = (".ncu-rep", ".ncu-repz", ".csv")


class NothingShared(UnknownName):
    """Two sides that are there and have nothing in common that was asked for."""


class VersionRef(NamedTuple):
    """A version, as its newest runs have it or as one run has it."""

    family: str
    version: str
    run_id: str | None = None

    @property
    def name(self) -> str:
        """What the command line and the dashboard's addresses take for it."""
        name = f"{self.family}/{self.version}"
        return name if self.run_id is None else f"{name}{RUN_MARK}{self.run_id}"


def resolve(
    name: str, store_opener: StoreOpener, workload: str | None = None, gpu: str | None = None
) -> Side:
    """The launches that a name stands for: a path, a run id, `family/version`, or `version` where unique."""
    return resolve_all([name], store_opener, workload, gpu)[0]


def resolve_all(
    names: Sequence[str],
    store_opener: StoreOpener,
    workload: str | None = None,
    gpu: str | None = None,
    evidence: Evidence | None = None,
) -> list[Side]:
    """Several names at once, so that all report files are read by one process.

    workload, gpu and evidence choose among what a version has; a file, which is measured, is taken as it is.
    A folder is no report: its name is looked for in the index. Raises
    UnreadableReport, and UnknownName with the candidates for what does not exist or means several things.
    """
    if not all(name.strip() for name in names):
        raise UnknownName(_EMPTY)
    files = [name for name in names if Path(name).exists() and not Path(name).is_dir()]
    if files and evidence not in (None, Evidence.MEASURED):
        raise NothingShared(f"{files[0]} is a report, which is measured: it has nothing {evidence}")
    reports: dict[str, Report] = {}
    for name, found in zip(files, read_reports(map(Path, files)) if files else (), strict=True):
        if isinstance(found, UnreadableReport):
            raise _hiding(found, name, store_opener)
        reports[name] = found
    store: Store | None = None
    sides = []
    for name in names:
        if name in reports:
            sides.append(side_of_report(reports[name], name))
            continue
        if name.endswith(_REPORT_SUFFIXES) and not Path(name).is_dir():
            raise UnknownName(f"{name}: no such file")
        if _is_plainly_a_folder(name):
            raise UnknownName(_folder(name))
        store = store or store_opener()
        sides.append(_from_store(store, name, workload, gpu, evidence))
    return sides


def resolve_measured(
    name: str, store_opener: StoreOpener, workload: str | None = None, gpu: str | None = None
) -> Side:
    """The launches of a name on a GPU; CannotJudge, with what would measure it, where it never ran on one."""
    if not is_file_name(name) and not find_run(store := store_opener(), name):
        family, version = resolve_family_version(store, name)
        if all(kind is not Evidence.MEASURED for _, _, kind in _cells(store, VersionRef(family, version))):
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
    """Two versions on every cell that both have, of what needs no GPU: static first, then modelled.

    Empty where a name is a file, where both were measured and no other evidence is asked for, and where they
    share nothing and each says by itself what it is. Raises NothingShared.
    """
    if evidence is Evidence.MEASURED or any(is_file_name(name) for name in names):
        return []
    store = store_opener()
    a, b = (resolve_version(store, name) for name in names)
    of_a, of_b = _cells(store, a), _cells(store, b)
    common = of_a & of_b
    if evidence is None and any(kind is Evidence.MEASURED for _, _, kind in common):
        return []
    measured_both = all(any(kind is Evidence.MEASURED for _, _, kind in held) for held in (of_a, of_b))
    if evidence is None and not common and (measured_both or a.run_id or b.run_id):
        return []
    kinds = (Evidence.STATIC, Evidence.MODELLED) if evidence is None else (evidence,)
    found = [
        cell
        for cell in sorted(common, key=lambda cell: (natural_key(cell[0]), natural_key(cell[1])))
        if workload in (None, cell[0]) and gpu in (None, cell[1])
    ]
    chosen = [cell for kind in kinds for cell in found if cell[2] is kind]
    if not chosen:
        asked = ", ".join(filter(None, (" or ".join(kinds), workload, gpu)))
        there = brief_list([f"{kind} {at} {place}".rstrip() for at, place, kind in sorted(common)])
        raise NothingShared(
            f"{names[0]} and {names[1]} share nothing that is {asked}; they share {there or 'nothing'}"
        )
    return [(_held(store, a, cell), _held(store, b, cell)) for cell in chosen]


def find_facts(
    name: str, store_opener: StoreOpener, workload: str | None = None, gpu: str | None = None
) -> list[Side]:
    """What static and modelled evidence says of one version, a side a cell; none of a file or a run."""
    if is_file_name(name):
        return []
    store = store_opener()
    if find_run(store, name):
        return []
    pair = VersionRef(*resolve_family_version(store, name))
    kinds = (Evidence.STATIC, Evidence.MODELLED)
    return [
        _held(store, pair, cell)
        for cell in sorted(_cells(store, pair), key=lambda cell: (natural_key(cell[0]), natural_key(cell[1])))
        if cell[2] in kinds and workload in (None, cell[0]) and gpu in (None, cell[1])
    ]


def find_measured(name: str, store_opener: StoreOpener, workload: str | None, gpu: str | None) -> Side | None:
    """What a GPU says of a name, or all that a run says; None for a version that never ran on one there."""
    if not is_file_name(name):
        store = store_opener()
        if not find_run(store, name):
            there = _cells(store, VersionRef(*resolve_family_version(store, name)))
            fits = (
                workload in (None, at) and gpu in (None, place)
                for at, place, kind in there
                if kind is Evidence.MEASURED
            )
            if not any(fits):
                return None
    return resolve(name, store_opener, workload, gpu)


def forgotten_runs(names: Iterable[str], store_opener: StoreOpener) -> Iterator[str]:
    """The ids of the runs among these names that were forgotten.

    No index is opened for a name without the id of a run.
    """
    for name in filter(_RUN_ID.search, names):
        match = None if is_file_name(name) else find_run(store_opener(), name)
        run = store_opener().run(match.run_id or name) if match else None
        if run is not None and run.hidden:
            yield run.run_id


def check_name(name: str, store_opener: StoreOpener) -> None:
    """Raise for a name that stands for nothing, and for a file that cannot be read."""
    if not name.strip() or is_file_name(name):
        resolve(name, store_opener)
    elif not find_run(store := store_opener(), name):
        resolve_family_version(store, name)


def is_file_name(name: str) -> bool:
    """Whether a name stands for a report file, be it there or not."""
    return Path(name).is_file() or name.endswith(_REPORT_SUFFIXES)


def resolve_version(store: Store, name: str) -> VersionRef:
    """The one version that a name of the index means; raises UnknownName where a run has several."""
    found = find_run(store, name)
    if found is None:
        return VersionRef(*resolve_family_version(store, name))
    if isinstance(found, VersionRef):
        return found
    there = _of_run(store, name)
    if len(there) != 1:
        raise UnknownName(_several(name, sorted(there)) if there else f"run {name} holds no results")
    return VersionRef(*there.pop(), name)


def find_run(store: Store, name: str) -> RunInfo | VersionRef | None:
    """The run that a name is the id of, or the version of a run that it means: `version~run`.

    None where it is neither. Raises UnknownName for a version that the run does not have.
    """
    if run := store.run(name):
        return run
    version, mark, run_id = name.rpartition(RUN_MARK)
    if not mark or not store.run(run_id):
        return None
    there = _of_run(store, run_id)
    found = _named(version, there)
    if len(found) != 1:
        listed = brief_list(["/".join(pair) for pair in found or sorted(there)])
        said = f"has several that are called {version}" if found else f"has no {version}"
        raise UnknownName(f"run {run_id} {said}; there are {listed or 'no results'}")
    return VersionRef(*found[0], run_id)


def _of_run(store: Store, run_id: str) -> set[tuple[str, str]]:
    """Family and version of all that a run has results of."""
    return {(one.family, one.version) for one in store.results(run_id=run_id)}


def _several(run_id: str, there: Sequence[tuple[str, str]]) -> str:
    first = VersionRef(*there[0], run_id).name
    return (
        f"{run_id} has several versions: {brief_list([name for _, name in there])}; choose one, as in {first}"
    )


def _cells(store: Store, one: VersionRef) -> set[tuple[str, str, Evidence]]:
    """Workload, GPU or architecture, and evidence of a version's results: the newest, or those of a run."""
    if one.run_id is None:
        held = store.cells(one.family)
        return {(cell.workload, cell.gpu, cell.evidence) for cell in held if cell.version == one.version}
    rows = store.results(run_id=one.run_id, family=one.family, version=one.version)
    return {(row.workload or "", row.gpu or "", row.evidence) for row in rows if row.kind in RESULT_KINDS}


def _held(
    store: Store, one: VersionRef, cell: tuple[str | None, str | None, Evidence | None], label: str = ""
) -> Side:
    workload, gpu, evidence = cell
    return store.side(
        run_id=one.run_id,
        family=one.family,
        version=one.version,
        workload=workload,
        gpu=gpu,
        evidence=evidence,
        label=label or one.name,
    )


def side_of_report(report: Report, label: str) -> Side:
    """A report file as one side: what the file does not say (workload, dtype) stays unknown."""
    return Side(
        label,
        report.launches,
        gpu=report.gpu,
        compute_capability=_compute_capability(report),
        session=report.session,
    )


def _compute_capability(report: Report) -> str | None:
    for launch in report.launches:
        major = launch.values.number("device__attribute_compute_capability_major")
        minor = launch.values.number("device__attribute_compute_capability_minor")
        if major is not None and minor is not None:
            return f"{major:.0f}.{minor:.0f}"
    return None


def _is_plainly_a_folder(name: str) -> bool:
    """A folder, and written as no version is: no index is asked about it."""
    written_as_path = Path(name).is_absolute() or name.startswith(".") or name.endswith(os.sep)
    return written_as_path and Path(name).is_dir()


def _folder(name: str) -> str:
    return f"{name} is a folder: name one report in it, or `profiler import {name}`"


def _hiding(refusal: UnreadableReport, name: str, store_opener: StoreOpener) -> UnreadableReport:
    """The refusal of a file, which also says where the index knows something else by the file's name."""
    if not name.endswith(_REPORT_SUFFIXES):
        with contextlib.suppress(ProfilerError):  # the file's own trouble comes first
            store = store_opener()
            if store.run(name) or _named(name, _versions(store)):
                return UnreadableReport(
                    f"{refusal}; the index has {name} too, but a file comes first: ask from another folder"
                )
    return refusal


def _from_store(
    store: Store, name: str, workload: str | None, gpu: str | None, evidence: Evidence | None = None
) -> Side:
    if find_run(store, name) is None and (reason := dict(store.refused()).get(name)):
        raise UnknownName(f"run {name} cannot be read: {reason}")
    one = resolve_version(store, name)
    label = name if name == one.run_id else one.name
    if workload or gpu:
        there = store.results(family=one.family, version=one.version, run_id=one.run_id)
        _check_filters(label, there, workload, gpu)
    if evidence is not None and all(kind is not evidence for _, _, kind in _cells(store, one)):
        raise NothingShared(f"{label} has nothing {evidence}")
    return _held(store, one, (workload, gpu, evidence), label)


def resolve_family_version(store: Store, name: str) -> tuple[str, str]:
    """Family and version that a name means; raises UnknownName with the candidates."""
    if not name.strip():
        raise UnknownName(_EMPTY)
    versions = _versions(store)
    found = _named(name, versions)
    if not found:
        if Path(name).is_dir():
            raise UnknownName(f"{_folder(name)}; no run or version is called that either")
        raise UnknownName(
            f"{name}: neither a file nor a run or version in the index{_nearest(name, versions)}"
        )
    if len(found) > 1:
        raise UnknownName(
            f"{name} names {len(found)} versions: {brief_list(['/'.join(pair) for pair in found])}"
        )
    return found[0]


def _versions(store: Store) -> set[tuple[str, str]]:
    return {(one.family, one.version) for one in store.versions()}


def _named(name: str, versions: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The versions that a name can mean: `family/version`, else the version alone."""
    whole = sorted(pair for pair in versions if "/".join(pair) == name)
    return whole or sorted(pair for pair in versions if pair[1] == name)


def _check_filters(name: str, launches: Iterable[ResultInfo], workload: str | None, gpu: str | None) -> None:
    """Refuse a workload or GPU that none of the launches has; "" asks for what nobody named."""
    cells = {(one.workload, one.gpu) for one in launches}
    for kind, wanted, place in (("workload", workload, 0), ("GPU", gpu, 1)):
        there = sorted({known for cell in cells if (known := cell[place])})
        if wanted and wanted not in there:
            listed = f"there are {brief_list(nearest_first(wanted, there))}" if there else "nobody named one"
            on = f" on {workload}" if workload and place else ""
            raise UnknownName(f"{name} has no {kind} {wanted!r}{on}; {listed}")
        cells = {cell for cell in cells if not wanted or cell[place] == wanted}


def _nearest(name: str, versions: set[tuple[str, str]]) -> str:
    names = {"/".join(pair): pair for pair in sorted(versions)}
    near = get_close_matches(name, [*names, *(version for _, version in versions)], n=3, cutoff=0.5)
    if near:
        return f"; near: {brief_list(near)}"
    return "; `profiler versions` lists them" if versions else "; the index is empty: `profiler import PATH`"
