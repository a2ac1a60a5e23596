"""The sections of the Launch page, from what is known at once to what is read from the report's file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import streamlit as st

from profiler.documents.launch import LaunchDocument, missing_table
from profiler.errors import ProfilerError
from profiler.evidence.launch import RuleResult
from profiler.evidence.values import Evidence
from profiler.reports.rule_places import address_of, place_of, stall_of
from profiler.sass.hotspots import CodeLocation
from profiler.ui import addresses, controls, markup
from profiler.ui.charts import launch_timeline
from profiler.ui.data import launches, lineages, machine_code, predictions, results
from profiler.ui.data.index import DataVersion
from profiler.ui.errors import errors_shown
from profiler.ui.markup import Html
from profiler.ui.sections import draw
from profiler.ui.sections.launch_choice import LaunchChoice
from profiler.ui.views import (
    advice,
    answer,
    launch_bars,
    launch_head,
    launch_inside,
    launch_memory,
    modelled_launch,
    rule_results,
    run_list,
)


def show(data_version: DataVersion, document: LaunchDocument, choice: LaunchChoice, title_box: Any) -> None:
    """Everything that is known of the launch, section by section."""
    title_box.html(launch_head.page_head(document, choice.address, choice.labels))
    controls.name_tab(launch_head.tab_title(document))
    st.html(launch_head.tiles(document, choice.info))
    draw.section(
        "What it says",
        "what to try, and what suggests it; hover over it for the numbers",
        advice.table(document.statements, document.subject.chip, with_changes=True),
    )
    is_measured = document.sections.evidence is Evidence.MEASURED
    key = machine_code.launch_key(data_version, choice.info) if is_measured else None
    code = None if key is None else addresses.LaunchCode(*key)
    if is_measured:
        _show_measured(document, code)
        _show_inside(data_version, document, choice, code)
        _show_rules(data_version, document, choice, code)
    else:
        _show_modelled(data_version, choice, document.subject.launch.function)
        _show_unmeasured(document)
    if document.sections.missing:
        draw.section(
            "What is missing",
            "with the command that collects it",
            answer.table(missing_table(document), "what is missing"),
        )


def _show_measured(document: LaunchDocument, code: addresses.LaunchCode | None) -> None:
    sections, beside = document.sections, launch_head.beside(document)
    short = "; ┃ was" if document.baseline else ""
    light_box, memory_box = st.columns([480, 876], gap="medium")
    with light_box:
        draw.section("Speed of light", f"% of peak, elapsed{beside}", launch_bars.speed_of_light(document))
    with memory_box:
        st.html(markup.section_head("Memory", f"line width: bytes; %: of that link's peak{beside}"))
        with st.container(key="launch_diagram"):  # its height is kept free: Markdown comes after the rest
            st.markdown(launch_memory.diagram(document), unsafe_allow_html=True)
        draw.html(launch_memory.rows(document), launch_memory.notes(document, code))
    states_box, mix_box, occupancy_box = st.columns(3, gap="medium")
    with states_box:
        caption = launch_bars.warp_states_caption(document)
        _section_or_hatch(
            "Warp states",
            caption,
            bool(sections.warp_states.states),
            partial(launch_bars.warp_states, code=code),
            document,
        )
    with mix_box:
        caption = markup.escaped(f"warp instructions{short}")
        is_there = bool(sections.instruction_mix)
        _section_or_hatch(
            "Instruction mix", caption, is_there, partial(launch_bars.instruction_mix, code=code), document
        )
    with occupancy_box:
        draw.section("Occupancy", f"warps per SM{short}", launch_bars.occupancy(document))
        draw.section("Schedulers", f"warps per scheduler and cycle{short}", launch_bars.schedulers(document))


def _show_modelled(data_version: DataVersion, choice: LaunchChoice, role: str) -> None:
    """Time, use of the pipes and warp states by the model, where the family's newest run keeps them."""
    info = choice.info
    stored, lineage = None, None
    with errors_shown():
        stored = predictions.predictions(data_version, info.family)
        lineage = lineages.lineage(data_version, info.family)
    status = lineage.by_id.get(info.version) if lineage else None
    roles = status.version.roles if status else {}
    found = (
        modelled_launch.predictions_of(stored, info.version, info.gpu or "", info.workload or "", role, roles)
        if stored
        else []
    )
    if stored is None or not found:
        return
    badge = markup.evidence_badge("modelled")
    place = f"{found[0].workload} on {found[0].gpu}"
    times_box, light_box, states_box = st.columns([2, 1.3, 1.3], gap="medium")
    with times_box:
        draw.section(
            "Time",
            markup.join((badge, "from the machine code, not measured")),
            modelled_launch.times(found),
            markup.note(stored.note),
        )
    with light_box:
        caption = markup.join((badge, f"% of what each can do, {place}"))
        draw.section("Utilisation", caption, modelled_launch.utilisation(found[0]))
    with states_box:
        caption = markup.join((badge, "% of the time that warps spend"))
        draw.section("Warp states", caption, modelled_launch.warp_states(found[0]))


def _show_unmeasured(document: LaunchDocument) -> None:
    """What a compiler or a model says, and how to measure the rest."""
    mix_box, occupancy_box = st.columns(2, gap="medium")
    with mix_box:
        if document.sections.instruction_mix:
            caption = f"places in the code{launch_head.beside(document)}"
            draw.section("Instruction mix", caption, launch_bars.instruction_mix(document))
    with occupancy_box:
        if document.sections.occupancy is not None:
            caption = "theoretical: from registers, threads and shared memory"
            draw.section("Occupancy", caption, launch_bars.occupancy(document))
    if command := launch_inside.measure_command(document):
        words = f"Speed of light, memory traffic, stalls: not measured; `{command}` on a GPU"
        st.html(markup.note(markup.backticks_as_code(words)))


def _show_inside(
    data_version: DataVersion,
    document: LaunchDocument,
    choice: LaunchChoice,
    code: addresses.LaunchCode | None,
) -> None:
    """Timeline and hot places, which are read from the report: after all that is known at once."""
    info = choice.info
    if info.report_sha256 is None or code is None:
        return
    inside = None
    with errors_shown():
        inside = launches.inside(info.run_id, info.report_sha256, document.subject.launch.ordinal)
    if inside is None:
        return
    if inside.hot is not None:
        caption = launch_inside.samples_caption(inside.hot)
        draw.section(launch_inside.hot_title(inside.hot), caption, launch_inside.hot_places(inside.hot, code))
    if inside.timelines:
        lines = launch_inside.timeline_lines(inside.timelines)
        caption = launch_inside.timeline_caption(document, inside, len(lines))
        st.html(markup.section_head("Timeline", caption))
        if not lines:
            names = ", ".join(inside.timelines)
            st.html(markup.note(f"nothing to draw: 0 throughout, or too few samples: {names}"))
            return
        draw.chart(
            launch_timeline.figure(lines),
            key="launch_timeline",
            alt=f"{len(lines)} metrics over the time of the launch: {', '.join(lines)}",
        )


def _show_rules(
    data_version: DataVersion,
    document: LaunchDocument,
    choice: LaunchChoice,
    code: addresses.LaunchCode | None,
) -> None:
    run = next((run for run in results.runs(data_version) if run.run_id == choice.info.run_id), None)
    report = run_list.report_of(run, choice.info.report_sha256) if run else None
    rules = document.subject.launch.rules
    links = _links_of_rules(rules, document, choice, code) if code else {}
    count = len(rules)
    with st.expander(f"NVIDIA's rules ({count})", expanded=False, key="launch_rules"):
        st.html(rule_results.ranked(rules, report.name if report else None, links))


def _links_of_rules(
    rules: Sequence[RuleResult], document: LaunchDocument, choice: LaunchChoice, code: addresses.LaunchCode
) -> dict[RuleResult, Html]:
    """The way from a rule result to the instruction or the lines that it is about, where that is known."""
    reasons = {state.label for state in document.sections.warp_states.states}
    starts: Sequence[int] = ()
    info = choice.info
    if info.report_sha256 is not None and any(address_of(rule) is not None for rule in rules):
        with suppress(ProfilerError):  # that the report cannot be read stands above
            ordinal = document.subject.launch.ordinal
            starts = launches.function_starts(info.run_id, info.report_sha256, ordinal)
    links = {}
    for rule in rules:
        address, stall = address_of(rule), stall_of(rule, reasons)
        place = None if address is None else place_of(address, starts)
        if place is not None:
            words = CodeLocation(function=place[0], offset=place[1]).words
            links[rule] = markup.link(code.at(view="sass", rows="address", mark=words), words)
        elif stall:
            links[rule] = markup.link(code.at(view="lines", find=stall), "its lines")
    return links


def _section_or_hatch(
    title: str,
    caption: Html,
    is_there: bool,
    view: Callable[[LaunchDocument], Html],
    document: LaunchDocument,
) -> None:
    """A section, or the hatch with the word where the launch has no number for it."""
    draw.section(
        title,
        caption if is_there else "",
        view(document) if is_there else launch_inside.not_collected(document, title.lower()),
    )
