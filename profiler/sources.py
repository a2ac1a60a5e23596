"""What a name on the command line means: a report file, a run, or a version, in that order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.errors import UnknownName, UnreadableReport
from profiler.report import read
from profiler.values import Evidence, Report, Side, natural, spread

if TYPE_CHECKING:
    from profiler.store import Store

StoreOpener = Callable[
    [], "Store"
]  # called only for a name that is no file: a diff of two files needs no store

_REPORT_SUFFIXES = (".ncu-rep", ".ncu-repz", ".csv")


def resolve(
    name: str, store_opener: StoreOpener, workload: str | None = None, gpu: str | None = None
) -> Side:
    """The launches that a name stands for: a path, a run id, `family/version`, or `version` where unique."""
    return resolve_all([name], store_opener, workload, gpu)[0]


def resolve_all(
    names: Sequence[str], store_opener: StoreOpener, workload: str | None = None, gpu: str | None = None
) -> list[Side]:
    """Several names at once, so that all report files are read by one process.

    workload and gpu choose among what a version was measured on; a file is taken as it is. Raises
    UnreadableReport, and UnknownName with the candidates for what does not exist or means several things.
    """
    files = [Path(name) for name in names if Path(name).exists()]
    for path in files:
        if path.is_dir():
            raise UnknownName(f"{path} is a folder: name one report in it, or `profiler import {path}`")
    reports: dict[Path, Report] = {}
    for path, found in zip(files, read(files) if files else (), strict=True):
        if isinstance(found, UnreadableReport):
            raise found
        reports[path] = found
    store: Store | None = None
    sides = []
    for name in names:
        if Path(name) in reports:
            sides.append(side_of(reports[Path(name)], name))
            continue
        if name.endswith(_REPORT_SUFFIXES):
            raise UnknownName(f"{name}: no such file")
        store = store or store_opener()
        sides.append(_from_store(store, name, workload, gpu))
    return sides


def facts_of(
    names: tuple[str, str],
    store_opener: StoreOpener,
    workload: str | None = None,
    gpu: str | None = None,
    evidence: Evidence | None = None,
) -> list[tuple[Side, Side]]:
    """Two versions on every cell that both have, of what needs no GPU: static first, then modelled.

    Empty where a name is a file or a run, or where both were measured and no other evidence is asked for.
    """
    if evidence is Evidence.MEASURED or any(_is_file(name) for name in names):
        return []
    store = store_opener()
    if any(store.run(name) for name in names):
        return []
    (a, of_a), (b, of_b) = (
        (pair, _cells(store, pair)) for pair in (_version_of(store, name) for name in names)
    )
    common = of_a & of_b
    if evidence is None and any(kind is Evidence.MEASURED for _, _, kind in common):
        return []
    kinds = (Evidence.STATIC, Evidence.MODELLED) if evidence is None else (evidence,)
    found = [
        cell
        for cell in sorted(common, key=lambda cell: (natural(cell[0]), natural(cell[1])))
        if workload in (None, cell[0]) and gpu in (None, cell[1])
    ]
    chosen = [cell for kind in kinds for cell in found if cell[2] is kind]
    if not chosen:
        asked = ", ".join(filter(None, (" or ".join(kinds), workload, gpu)))
        there = spread([f"{kind} {at} {place}".rstrip() for at, place, kind in sorted(common)])
        raise UnknownName(
            f"{names[0]} and {names[1]} share nothing that is {asked}; they share {there or 'nothing'}"
        )
    return [(_facts(store, a, cell), _facts(store, b, cell)) for cell in chosen]


def _is_file(name: str) -> bool:
    return Path(name).exists() or name.endswith(_REPORT_SUFFIXES)


def _cells(store: Store, pair: tuple[str, str]) -> set[tuple[str, str, Evidence]]:
    """Workload, GPU or architecture, and evidence of a version's newest results."""
    family, version = pair
    return {(one.workload, one.gpu, one.evidence) for one in store.cells(family) if one.version == version}


def _facts(store: Store, pair: tuple[str, str], cell: tuple[str, str, Evidence]) -> Side:
    (family, version), (workload, gpu, evidence) = pair, cell
    return store.side(
        family=family,
        version=version,
        workload=workload,
        gpu=gpu,
        evidence=evidence,
        label=f"{family}/{version}",
    )


def side_of(report: Report, label: str) -> Side:
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


def _from_store(store: Store, name: str, workload: str | None, gpu: str | None) -> Side:
    if store.run(name):
        return store.side(run_id=name, workload=workload, gpu=gpu, label=name)
    family, version = _version_of(store, name)
    return store.side(family=family, version=version, workload=workload, gpu=gpu, label=f"{family}/{version}")


def _version_of(store: Store, name: str) -> tuple[str, str]:
    versions = {(one.family, one.version) for one in store.versions()}
    found = sorted(pair for pair in versions if "/".join(pair) == name)
    found = found or sorted(pair for pair in versions if pair[1] == name)
    if not found:
        raise UnknownName(
            f"{name}: neither a file nor a run or version in the index{_nearest(name, versions)}"
        )
    if len(found) > 1:
        raise UnknownName(f"{name} names {len(found)} versions: {spread(['/'.join(pair) for pair in found])}")
    return found[0]


def _nearest(name: str, versions: set[tuple[str, str]]) -> str:
    names = {"/".join(pair): pair for pair in sorted(versions)}
    near = get_close_matches(name, [*names, *(version for _, version in versions)], n=3, cutoff=0.5)
    if near:
        return f"; near: {spread(near)}"
    return "; `profiler versions` lists them" if versions else "; the index is empty: `profiler import PATH`"
