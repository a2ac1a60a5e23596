"""The code of launches, cached: which reports hold it, the listing of a launch, two of them aligned."""

from __future__ import annotations

import streamlit as st

from profiler import alignment, disassembly, hotspots
from profiler.compare import Comparison, PairComparison
from profiler.disassembly import Listing
from profiler.store import LaunchInfo
from profiler.ui import addresses, data, parts
from profiler.values import Launch, Side


@st.cache_resource(show_spinner=False, max_entries=2)
def reports(now: data.Stamp) -> dict[str, addresses.CodeReport]:
    """Every report of every run by the first digits of its sha256, newest first; CSV holds no code."""
    found: dict[str, addresses.CodeReport] = {}
    for run in data.runs(now):
        for file in run.reports:
            if file.name.endswith(".csv"):
                continue
            name = f"{run.family or 'several'}/{run.version or run.run_id}"
            title = name if len(run.reports) == 1 else f"{name}: {file.name}"
            gpu = run.gpu or "unknown GPU"
            known = addresses.CodeReport(run.run_id, file.sha256, title, gpu, run.family)
            found.setdefault(file.sha256[: addresses.DIGITS], known)
    return found


def first(now: data.Stamp) -> str | None:
    """The newest report of a family whose launches carry samples per instruction."""
    for key, known in reports(now).items():
        if known.family and hotspots.SAMPLES in data.metric_names(now, known.family):
            return key
    return None


def catalogued(now: data.Stamp) -> tuple[str, ...]:
    """Two versions of a catalogue that follow each other, the newest last; none without one."""
    if not data.versions(now):
        return ()
    pair = data.first_pair(now)
    held = data.lineage(now, pair[1].rpartition("/")[0])
    return tuple(dict.fromkeys(pair)) if held else ()


@st.cache_resource(show_spinner=False, max_entries=64)
def launches(now: data.Stamp, report: str) -> dict[str, LaunchInfo]:
    """The launches of a report by their place in it, which is how an address names them."""
    place = reports(now)[report]
    known = sorted(data.launches(now, place.run_id), key=lambda launch: launch.ordinal)
    return {str(one.ordinal): one for one in known if one.report_sha256 == place.sha256}


@st.cache_resource(show_spinner="Reading the instructions …", max_entries=8)
def listing(now: data.Stamp, report: str, launch: str) -> Listing:
    """The machine code of one launch with its counts."""
    place, one = reports(now)[report], launches(now, report)[launch]
    held = data.detail(place.run_id, place.sha256, int(launch))
    names = parts.short_names(other.part for other in launches(now, report).values())
    return disassembly.of_detail(held, f"{place.title.rpartition('/')[2]} {names[one.part]}")


@st.cache_resource(show_spinner=False, max_entries=8)
def aligned(now: data.Stamp, a: tuple[str, str], b: tuple[str, str]) -> alignment.Alignment:
    """The code of two launches (report, place in it), instruction by instruction."""
    return alignment.align(listing(now, *a), listing(now, *b))


@st.cache_resource(show_spinner=False, max_entries=8)
def places(now: data.Stamp, report: str, launch: str) -> tuple[hotspots.Hot, ...]:
    """The counts of every instruction of a launch."""
    return hotspots.by_instruction(listing(now, report, launch))


def of_pair(now: data.Stamp, found: Comparison, pair: PairComparison) -> list[tuple[str, str] | None]:
    """The report and place of both launches of a pair."""
    return [code_of(now, found.a, pair.a), code_of(now, found.b, pair.b)]


def code_of(now: data.Stamp, side: Side, launch: Launch) -> tuple[str, str] | None:
    """The report and place of a launch of a side; None where its run keeps no report of it, or a CSV."""
    known = {one.result_id: one for one in data.launches(now, side.run_id)} if side.run_id else {}
    for one, result in zip(side.launches, side.result_ids, strict=False):
        if one is launch and result in known:
            return place_of(now, known[result])
    return None


def place_of(now: data.Stamp, launch: LaunchInfo) -> tuple[str, str] | None:
    """The report and place of a launch, as an address names them; None where no code came with it."""
    digits = (launch.report_sha256 or "")[: addresses.DIGITS]
    if launch.kind != "launch" or digits not in reports(now):
        return None
    return digits, str(launch.ordinal)
