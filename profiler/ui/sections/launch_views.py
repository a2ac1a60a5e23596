"""One launch of a run as a whole: what to try next, and its metrics, rules, limits or instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.launch import Launch
from profiler.reports.instances import LaunchDetail
from profiler.store.rows import ResultInfo, RunInfo
from profiler.ui import controls, markup
from profiler.ui.data import index, lineages, machine_code, results
from profiler.ui.data import launches as launch_data
from profiler.ui.data.advice import statements_of_launch
from profiler.ui.data.index import DataVersion
from profiler.ui.errors import errors_shown
from profiler.ui.sections import occupancy, roofline
from profiler.ui.views import advice, instruction_columns, launch_list, rule_results, run_list

VIEWS = ("metrics", "rules", "roofline", "occupancy", "opcodes", "instructions")
_TABLE_PX = 520


def show_advice(
    data_version: DataVersion, run: RunInfo, info: ResultInfo, launches: Sequence[ResultInfo]
) -> None:
    """What the launch calls for by itself; nothing of a wrong version, which has no speed to improve."""
    if lineages.is_wrong(data_version, info.family, info.version):
        return
    title = markup.join(("What next", markup.code(launch_list.name(info, launches))))
    st.html(markup.section_head(title, advice.CAPTION_OF_LAUNCH))
    launch = results.launch(data_version, info.result_id)
    capability = run.capability_on(info.gpu)
    has_report = run_list.report_of(run, info.report_sha256) is not None
    statements = statements_of_launch(
        launch,
        capability,
        index.metric_table(data_version),
        lambda: _detail(run, info, launch) if has_report else None,
    )
    st.html(advice.table(statements, chip_of(capability) if capability else None))


def show(
    data_version: DataVersion,
    run: RunInfo,
    info: ResultInfo,
    launches: Sequence[ResultInfo],
    filters: controls.Filters,
) -> None:
    """The view of the launch that was chosen."""
    launch = results.launch(data_version, info.result_id)
    head, views_box, words_box = st.columns([3, 3, 2], vertical_alignment="center", gap="medium")
    sections = launch_data.view_of_result(data_version, info.run_id, info.result_id)
    caption = launch_list.about(info, machine_code.launch_key(data_version, info), sections)
    head.html(markup.section_head(markup.code(launch_list.name(info, launches)), caption))
    with views_box:
        view = filters.switch("view", VIEWS, "view")
    report = run_list.report_of(run, info.report_sha256)
    if view == "metrics":
        with words_box:
            words = filters.text("find a metric", "metric", "find: stall, dram__ …", labelled=False)
        chip = chip_of(run.capability_on(info.gpu))
        columns = launch_list.metric_columns(launch, index.metric_table(data_version), words, chip)
        _show_table(columns, view, info)
    elif view == "rules":
        st.html(rule_results.ranked(launch.rules, report.name if report else None))
    elif view == "roofline":
        roofline.show_launch(data_version, run, launch)
    elif view == "occupancy":
        detail = None
        if report:
            with errors_shown():
                detail = _detail(run, info, launch)
        occupancy.show_measured(launch, detail)
    elif view == "opcodes":
        st.html(launch_list.opcodes(launch))
    elif report:
        _show_instructions(run, info, launch, filters, words_box)


def _show_instructions(
    run: RunInfo, info: ResultInfo, launch: Launch, filters: controls.Filters, words_box: Any
) -> None:
    with words_box:
        words = filters.text("find an instruction", "sass", "find: LDS, file.cu:12 …", labelled=False)
    with errors_shown():
        detail = _detail(run, info, launch)
        st.html(markup.note(instruction_columns.caption(detail)))
        _show_table(instruction_columns.columns(detail, words), "instructions", info)


def _detail(run: RunInfo, info: ResultInfo, launch: Launch) -> LaunchDetail:
    return results.launch_detail(run.run_id, info.report_sha256 or "", launch.ordinal)


def _show_table(columns: dict[str, list[object]], view: str, info: ResultInfo) -> None:
    """A long table that sorts and searches; the browser draws only the rows in sight."""
    st.dataframe(columns, height=_TABLE_PX, placeholder="", alt=f"{view} of {info.part}")
