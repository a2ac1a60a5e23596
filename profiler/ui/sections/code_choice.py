"""Which code the Code page shows: launches of reports, or what a compiler made of versions; one or two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from profiler.sass.stored_code import CodeNotStored
from profiler.ui import addresses, controls, markup
from profiler.ui.addresses import CodeKey, CompiledKey, LaunchKey
from profiler.ui.data import comparisons, machine_code
from profiler.ui.data.index import DataVersion
from profiler.ui.data.named_code import pairs_by_label
from profiler.ui.markup import Html
from profiler.ui.views import code_listing, compiled_code

_SIDES = (("A", "a", "launch"), ("B", "b", "b_launch"))  # label, and the parameters of the address


@dataclass(frozen=True)
class ChosenCode:
    """What was chosen, with what stands above it."""

    keys: Sequence[CodeKey]  # none where nothing can be shown
    context: Sequence[str]  # beside the title: the GPUs, or the architecture
    address: Callable[[str], addresses.LaunchCode | addresses.CompiledCode]  # of a view
    lines: Sequence[Html] = ()


def choose_launches(data_version: DataVersion, filters: controls.Filters, boxes: Sequence[Any]) -> ChosenCode:
    """One or two launches of reports; `boxes` for report and launch of A, then of B."""
    reports = machine_code.reports(data_version)
    keys: list[LaunchKey] = []
    family = st.query_params.get("family", "")
    lines = code_listing.unknown_reports(
        [st.query_params.get(parameter, "") for _, parameter, _ in _SIDES], reports
    )
    for index, (side, report_parameter, launch_parameter) in enumerate(_SIDES):
        titles = code_listing.report_titles(reports, optional=index == 1)
        asked_report = st.query_params.get(report_parameter, "")
        asked_launch = st.query_params.get(launch_parameter, "")
        default = None if index else machine_code.newest_sampled_report(data_version, family)
        with boxes[2 * index]:
            report = filters.select(
                f"report {side}",
                list(titles),
                report_parameter,
                default,
                titles.__getitem__,
                is_said=True,
            )
        if not report:
            break
        launches = machine_code.launches_of_report(data_version, report)
        if not launches:
            lines.append(code_listing.no_launch(titles[report]))
            break
        labels = code_listing.launch_labels(launches)
        other = None  # the launch of A, whose kernel B opens with
        if keys:
            other = machine_code.launches_of_report(data_version, keys[0].report)[keys[0].launch]
        default_launch = code_listing.default_launch(launches, other)
        with boxes[2 * index + 1]:
            launch = filters.select(
                "launch",
                list(labels),
                launch_parameter,
                default_launch,
                labels.__getitem__,
                is_said=True,
            )
        keys.append(LaunchKey(report, launch))
        # A launch of the address belongs to its report: another report chosen since says nothing of it.
        if asked_report in ("", report):
            lines += code_listing.unknown_launch(asked_launch, launch, launches, side)
    a, b = (*keys, LaunchKey("", ""), LaunchKey("", ""))[:2]
    return ChosenCode(
        keys,
        [reports[key.report].gpu for key in keys],
        lambda view: addresses.LaunchCode(*a, *b, view),
        lines,
    )


def choose_compiled(data_version: DataVersion, filters: controls.Filters, boxes: Sequence[Any]) -> ChosenCode:
    """What a compiler made of one or two versions, on one architecture; of all functions or of one."""
    versions = machine_code.compiled_versions(data_version)
    with boxes[0]:
        default = comparisons.default_pair(data_version, st.query_params.get("family", ""))[1]
        a = filters.select("version A", _versions_to_offer(versions, "a"), "a", default)
    with boxes[1]:
        options = ["", *_versions_to_offer(versions, "b")]
        b = filters.select("version B", options, "b", "", lambda version: version or "none")
    names = [a, b] if b else [a]
    arches = machine_code.shared_architectures(data_version, names)
    if not arches:
        words = f"{' and '.join(names)}: there is no architecture that all were compiled for"
        return _nothing_to_show(a, "", markup.note(markup.state(words)))
    with boxes[2]:
        arch = filters.select("architecture", arches, "arch")
    try:
        stored = [machine_code.stored_code(data_version, name, arch) for name in names]
    except CodeNotStored as error:
        return _nothing_to_show(a, arch, compiled_code.not_stored(str(error)))
    functions = pairs_by_label([code.listing for code in stored])
    with boxes[3]:
        options = ["", *functions] if len(functions) > 1 else [""]
        kernel = filters.select(
            "function", options, "kernel", "", lambda label: label or compiled_code.ALL_FUNCTIONS
        )
    pair = functions[kernel] if kernel else [""] * len(names)
    keys = [CompiledKey(name, arch, function) for name, function in zip(names, pair, strict=True)]
    return ChosenCode(
        keys,
        [arch],
        lambda view: addresses.CompiledCode(a, arch, b, kernel, view),
        compiled_code.origins(stored),
    )


def _versions_to_offer(versions: Sequence[str], parameter: str) -> list[str]:
    """Every version, and first the version as one run has it where the address asks for that."""
    in_address = st.query_params.get(parameter, "")
    name = addresses.parse_version(in_address)
    return [in_address, *versions] if name.run_id and name.without_run in versions else list(versions)


def _nothing_to_show(version: str, arch: str, reason: Html) -> ChosenCode:
    return ChosenCode(
        [], [arch] if arch else [], lambda view: addresses.CompiledCode(version, arch), [reason]
    )
