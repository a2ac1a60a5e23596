"""The code of launches, cached: which reports hold it, the listing of a launch, two of them aligned."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from profiler.bundles import location
from profiler.compare import Comparison, PairComparison
from profiler.evidence import Evidence, Launch, Side, natural_key
from profiler.sass import Listing, StoredCode, alignment, from_runs, hotspots
from profiler.sass import listing as sass_listing
from profiler.store import ResultInfo
from profiler.ui import addresses
from profiler.ui.addresses import CompiledPlace
from profiler.ui.data import index, lineages
from profiler.ui.views import compiled_code, part_names

Place = tuple[str, str] | CompiledPlace  # a report with the launch's place in it, or what a compiler made


@st.cache_resource(show_spinner=False, max_entries=2)
def reports(now: index.Stamp) -> dict[str, addresses.CodeReport]:
    """Every report of every run by the first digits of its sha256, newest first; CSV holds no code."""
    found: dict[str, addresses.CodeReport] = {}
    for run in index.runs(now):
        for file in run.reports:
            if file.name.endswith(".csv"):
                continue
            name = f"{run.family or 'several'}/{run.version or run.run_id}"
            title = name if len(run.reports) == 1 else f"{name}: {file.name}"
            gpu = run.gpu or "unknown GPU"
            known = addresses.CodeReport(run.run_id, file.sha256, title, gpu, run.family)
            found.setdefault(file.sha256[: addresses.DIGITS], known)
    return found


def first(now: index.Stamp) -> str | None:
    """The newest report of a family whose launches carry samples per instruction."""
    for key, known in reports(now).items():
        if known.family and hotspots.SAMPLES in index.metric_names(now, known.family):
            return key
    return None


def measurable(now: index.Stamp, chosen: Sequence[Place]) -> list[str]:
    """The versions among what was chosen that a catalogue names and nobody found wrong."""
    found = []
    for place in chosen:
        if isinstance(place, CompiledPlace):
            family, version, _ = _parts(place.version)
            held = lineages.lineage(now, family)
            if held and version in held.by_id and not held.by_id[version].is_wrong:
                found.append(version)
    return list(dict.fromkeys(found))


@st.cache_resource(show_spinner=False, max_entries=64)
def launches(now: index.Stamp, report: str) -> dict[str, ResultInfo]:
    """The launches of a report by their place in it, which is how an address names them."""
    place = reports(now)[report]
    known = sorted(index.launches(now, place.run_id), key=lambda launch: launch.ordinal)
    return {str(one.ordinal): one for one in known if one.report_sha256 == place.sha256}


@st.cache_resource(show_spinner="Reading the instructions …", max_entries=8)
def listing(now: index.Stamp, report: str, launch: str) -> Listing:
    """The machine code of one launch with its counts."""
    place, one = reports(now)[report], launches(now, report)[launch]
    held = index.detail(place.run_id, place.sha256, int(launch))
    names = part_names.short_names(other.part for other in launches(now, report).values())
    return sass_listing.listing_of_launch(held, f"{place.title.rpartition('/')[2]} {names[one.part]}")


def compiled_versions(now: index.Stamp) -> list[str]:
    """Every version (family/version) that a compiler made something of, in the order of all pages."""
    there = {cell.name for cell in index.cells(now) if cell.evidence is Evidence.STATIC}
    return [name for name in map(addresses.name, lineages.versions(now)) if name in there]


def architectures(now: index.Stamp, names: Sequence[str]) -> list[str]:
    """What all of the named were compiled for, the newest first."""
    shared = [
        set(from_runs.compiled_architectures(index.store(), *_parts(name))) for name in dict.fromkeys(names)
    ]
    return sorted(set.intersection(*shared), key=natural_key, reverse=True) if shared else []


@st.cache_resource(show_spinner=False, max_entries=16)
def kept(now: index.Stamp, name: str, arch: str) -> StoredCode:
    """The code that a run keeps of a version; NotKept where none does."""
    family, version, run_id = _parts(name)
    return from_runs.find_code(location.open_root(), index.store(), family, version, arch, run_id)


def _parts(name: str) -> tuple[str, str, str | None]:
    """Family, version and run of a name in an address."""
    pair, run_id = addresses.parts(name)
    family, _, version = pair.rpartition("/")
    return family, version, run_id


@st.cache_resource(show_spinner=False, max_entries=8)
def _compiled(now: index.Stamp, name: str, arch: str, function: str) -> Listing:
    found = kept(now, name, arch)
    return compiled_code.of_function(found.listing, found.version, function)


def code(now: index.Stamp, place: Place) -> Listing:
    """The machine code of a launch with its counts, or what a compiler made, without any."""
    return _compiled(now, *place) if isinstance(place, CompiledPlace) else listing(now, *place)


@st.cache_resource(show_spinner=False, max_entries=8)
def aligned(now: index.Stamp, a: Place, b: Place) -> alignment.Alignment:
    """Two pieces of code, instruction by instruction."""
    return alignment.align(code(now, a), code(now, b))


@st.cache_resource(show_spinner=False, max_entries=8)
def places(now: index.Stamp, place: Place) -> tuple[hotspots.HotSpot, ...]:
    """The counts of every instruction of a launch; none of what was not run."""
    return hotspots.spots_by_instruction(code(now, place))


def compiled_pair(now: index.Stamp, found: Comparison, names: tuple[str, str]) -> list[CompiledPlace]:
    """The code of the two functions that two static sides are of; NotKept where no run keeps one."""
    sides = [
        name if "/" in name else addresses.of_run(f"{side.family}/{side.version}", name)
        for name, side in zip(names, (found.a, found.b), strict=True)
    ]
    arches = (found.a.gpu or "", found.b.gpu or "")
    both = [kept(now, name, arch).listing for name, arch in zip(sides, arches, strict=True)]
    functions = compiled_code.functions_of_size(both, found.a.workload or "")
    return [
        CompiledPlace(name, arch, function)
        for name, arch, function in zip(sides, arches, functions, strict=True)
    ]


def of_pair(now: index.Stamp, found: Comparison, pair: PairComparison) -> list[tuple[str, str] | None]:
    """The report and place of both launches of a pair."""
    return [code_of(now, found.a, pair.a), code_of(now, found.b, pair.b)]


def code_of(now: index.Stamp, side: Side, launch: Launch) -> tuple[str, str] | None:
    """The report and place of a launch of a side; None where its run keeps no report of it, or a CSV."""
    known = {one.result_id: one for one in index.launches(now, side.run_id)} if side.run_id else {}
    for one, result in zip(side.launches, side.result_ids, strict=False):
        if one is launch and result in known:
            return place_of(now, known[result])
    return None


def place_of(now: index.Stamp, launch: ResultInfo) -> tuple[str, str] | None:
    """The report and place of a launch, as an address names them; None where no code came with it."""
    digits = (launch.report_sha256 or "")[: addresses.DIGITS]
    if launch.kind != "launch" or digits not in reports(now):
        return None
    return digits, str(launch.ordinal)
