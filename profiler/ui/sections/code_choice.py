"""Which code the Code page shows: launches of reports, or what a compiler made of versions; one or two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from profiler.sass import CodeNotStored, StoredCode
from profiler.ui import addresses, controls, markup
from profiler.ui.addresses import CompiledPlace
from profiler.ui.data import code_listings, comparisons, index
from profiler.ui.data.code_listings import Place
from profiler.ui.markup import Html
from profiler.ui.views import code_listing, compiled_code

Address = addresses.Code | addresses.Compiled


@dataclass(frozen=True)
class Choice:
    """What was chosen, with what stands above it."""

    places: Sequence[Place]
    context: Sequence[str]  # beside the title: the GPUs, or the architecture
    address: Callable[[str], Address]  # of a view
    lines: Sequence[Html] = field(default_factory=tuple)


def launches(now: index.Stamp, pick: controls.View, boxes: Sequence[Any]) -> Choice:
    """One or two launches of reports."""
    reports = code_listings.reports(now)
    asked = [st.query_params.get(name, "") for name in ("report", "b")]
    wanted = [st.query_params.get(name, "") for name in ("launch", "b_launch")]
    lost = []
    chosen: list[tuple[str, str]] = []
    for side, name in enumerate(("report", "b")):
        titles = code_listing.report_titles(reports, optional=side == 1)
        with boxes[2 * side]:
            opened = None if side else code_listings.first(now)
            report = pick.choose(f"report {'AB'[side]}", list(titles), name, opened, titles.__getitem__)
        if not report:
            break
        there = code_listings.launches(now, report)
        if not there:
            lost.append(code_listing.no_launch(titles[report]))
            break
        labels = code_listing.launch_labels(there)
        like = code_listings.launches(now, chosen[0][0])[chosen[0][1]] if side else None
        with boxes[2 * side + 1]:
            first = code_listing.first_launch(there, like)
            launch = pick.choose(
                "launch", list(labels), ("launch", "b_launch")[side], first, labels.__getitem__
            )
        chosen.append((report, launch))
        if asked[side] in ("", report):
            lost.append(code_listing.unknown_launch(wanted[side], launch, there, "AB"[side]))
    lines = [*code_listing.unknown(asked, reports), *filter(None, lost)]
    first_one = chosen[0] if chosen else ("", "")
    second_one = chosen[1] if len(chosen) == 2 else ("", "")
    return Choice(
        chosen,
        [reports[report].gpu for report, _ in chosen],
        lambda view: addresses.Code(*first_one, *second_one, view),
        lines,
    )


def compiled(now: index.Stamp, pick: controls.View, boxes: Sequence[Any]) -> Choice:
    """What a compiler made of one or two versions, on one architecture; of all functions or of one."""
    there = code_listings.compiled_versions(now)
    with boxes[0]:
        first = comparisons.first_pair(now)[1]
        a = pick.choose("version A", _offered(there, "version"), "version", first)
    with boxes[1]:
        b = pick.choose(
            "version B", ["", *_offered(there, "against")], "against", "", lambda one: one or "none"
        )
    names = [a, b] if b else [a]
    arches = code_listings.architectures(now, names)
    if not arches:
        words = f"{' and '.join(names)}: no architecture that all of them were compiled for"
        return _nothing(names, markup.note(markup.state(words)))
    with boxes[2]:
        arch = pick.choose("architecture", arches, "arch")
    kept: list[StoredCode] = []
    try:
        kept = [code_listings.kept(now, name, arch) for name in names]
    except CodeNotStored as error:
        return _nothing(names, compiled_code.not_kept(str(error)), arch)
    kernels = compiled_code.kernels([one.listing for one in kept])
    with boxes[3]:
        offered = ["", *kernels] if len(kernels) > 1 else [""]
        kernel = pick.choose("function", offered, "kernel", "", lambda one: one or compiled_code.ALL)
    functions = kernels[kernel] if kernel else [""] * len(names)
    places = [CompiledPlace(name, arch, one) for name, one in zip(names, functions, strict=True)]
    return Choice(
        places,
        [arch],
        lambda view: addresses.Compiled(a, arch, b, kernel, view),
        compiled_code.origins(kept),
    )


def _offered(there: Sequence[str], name: str) -> list[str]:
    """Every version, and the version as one run has it where the address asks for that."""
    asked = st.query_params.get(name, "")
    version, run_id = addresses.parts(asked)
    return [asked, *there] if run_id and version in there else list(there)


def _nothing(names: Sequence[str], line: Html, arch: str = "") -> Choice:
    return Choice([], [arch] if arch else [], lambda view: addresses.Compiled(names[0], arch), [line])
