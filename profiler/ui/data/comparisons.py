"""Two sides and what differs between them, cached as all data."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches

import streamlit as st

from profiler.bundles import IMPORT
from profiler.compare import Comparison, compare
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence import Evidence, Side, brief_list
from profiler.ui import addresses
from profiler.ui.data import index, lineages
from profiler.ui.views import version_sources

_CELLS = 20  # workloads and GPUs of one pair compared for one page


def first_pair(now: index.Stamp) -> tuple[str, str]:
    """What a diff opens with: good versions where a catalogue tells them, else the newest two."""
    newest = addresses.newest_pair(lineages.versions(now))
    with suppress(ProfilerError):
        found = lineages.lineage(now, newest[1].rpartition("/")[0])
        return (found and addresses.good_pair(lineages.versions(now), found)) or newest
    return newest


@st.cache_resource(show_spinner=False, max_entries=index.KEPT)
def side(now: index.Stamp, name: str, workload: str, gpu: str, evidence: Evidence) -> Side:
    """The launches of a run id or family/version; never of a path, since an address comes from outside."""
    if any(run.run_id == name for run in index.runs(now)):
        return index.store().side(run_id=name)
    known, run_id = addresses.parts(name)
    for version in lineages.versions(now):
        if known == addresses.name(version):
            wanted = _cell(now, name, workload, gpu, evidence)
            return index.store().side(
                run_id=run_id,
                family=version.family,
                version=version.version,
                workload=wanted[0],
                gpu=wanted[1],
                evidence=evidence,
            )
    there = [addresses.name(version) for version in lineages.versions(now)]
    near = get_close_matches(name, there, n=3, cutoff=0.4) or there
    raise UnknownName(f"{name}: no such run or version in the index; there are {brief_list(near)}")


def _cell(
    now: index.Stamp, name: str, workload: str, gpu: str, evidence: Evidence
) -> tuple[str | None, str | None]:
    """The cell asked for, or the version's only one that comes near: two GPUs can be held together."""
    own = addresses.cells(index.cells_of(now, (name,)), (name,), evidence)
    if (workload, gpu) in own:
        return workload, gpu
    near = [cell for cell in own if cell[0] == workload]
    near = near or [cell for cell in own if _shape(cell[0]) == _shape(workload) and cell[1] == gpu] or own
    return near[0] if len(near) == 1 else (None, None)


def _shape(workload: str) -> list[str]:
    """A workload's words without the dtype: fp8 and fp16 stand side by side, not comparable."""
    return [word for word in workload.split() if word not in ("fp8", "fp16", "bf16")]


@st.cache_resource(show_spinner=False, max_entries=index.KEPT)
def comparison(
    now: index.Stamp, a: str, b: str, workload: str, gpu: str, kernel: str | None, evidence: Evidence
) -> Comparison:
    """B against A."""
    sides = [side(now, name, workload, gpu, evidence) for name in (a, b)]
    return compare(
        sides[0],
        sides[1],
        index.table(now),
        kernel=kernel or None,
        noise=index.noise(now),
    )


def imported(now: index.Stamp, found: Comparison) -> bool:
    """Whether both sides come from reports that somebody imported."""
    kinds = {run.run_id: run.kind for run in index.runs(now)}
    return all(kinds.get(side.run_id or "") == IMPORT for side in (found.a, found.b))


def elsewhere(
    now: index.Stamp, a: str, b: str, cells: Sequence[tuple[str, str]], kernels: str, evidence: Evidence
) -> dict[tuple[str, str], Comparison]:
    """The same pair on each workload and GPU, where both were measured there and have such a kernel."""
    found = {}
    for workload, gpu in cells[:_CELLS]:
        with suppress(UnknownName):
            found[workload, gpu] = comparison(now, a, b, workload, gpu, kernels, evidence)
    return found


def sources(now: index.Stamp, found: Comparison) -> tuple[version_sources.Kept, version_sources.Kept] | None:
    """What the runs keep of both sides, where both are versions of a catalogue."""
    kept_of = [
        lineages.source(now, side.family, side.run_id, side.version) if side.family and side.version else None
        for side in (found.a, found.b)
    ]
    if kept_of[0] is None or kept_of[1] is None:
        return None
    return kept_of[0], kept_of[1]
