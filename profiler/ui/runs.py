"""Where the numbers come from: runs, their launches with every metric, the reports, and the import."""

import streamlit as st

from profiler.bundles.run import COLLECT
from profiler.ui import (
    advice_view,
    cells_view,
    code_data,
    controls,
    data,
    instructions_view,
    launch_view,
    limits,
    lineage_data,
    markup,
    rules_view,
    runs_view,
)

now = data.stamp()
every = data.runs(now)
title_box, family_box, words_box = st.columns([3, 1, 1], vertical_alignment="bottom", gap="medium")
title_box.html(markup.head("Runs", runs_view.count(every)))
table_box, import_box = st.container(key="runs_top").columns([5, 3], gap="medium")

with import_box:
    st.html(markup.section("Import", "reports (.ncu-rep, .csv) and bundles (.zip)"))
    with st.form("runs_import", clear_on_submit=True, border=False):
        # No list of types: the browser refuses endings with a hyphen (Streamlit 1.67).
        files = st.file_uploader("reports", accept_multiple_files=True, label_visibility="collapsed")
        family_field, version_field, send_field = st.columns([4, 4, 2], vertical_alignment="bottom")
        into = family_field.text_input("family", placeholder=runs_view.DEFAULT_FAMILY)
        label = version_field.text_input("version", placeholder="the file's name")
        sent = send_field.form_submit_button("Import", width="stretch")
    if sent:
        with st.spinner("Importing …"), data.errors_shown():
            data.take_in(files, into or runs_view.DEFAULT_FAMILY, label or None)
            st.rerun()
    for line in (*runs_view.outcome(data.last_import()), *runs_view.refused(data.unreadable())):
        st.html(line)
if not every:
    table_box.html(markup.empty("No run yet. Drop a report on this page, or:", "profiler import PATH"))
    st.stop()

pick = controls.View("runs")
with family_box:
    family = pick.choose("family", ["", *runs_view.families(every)], "family", shown=runs_view.named)
with words_box:
    search = pick.words("find a run", "find", "version, GPU, run id …")
found = runs_view.matching(every, family, search)
run = runs_view.chosen(every, found, st.query_params.get("run"))
table_box.html(runs_view.table(found, run))
pick.write()
if run is None:
    st.stop()
if "run" in st.query_params:
    controls.name_tab(f"Run of {runs_view.short_name(run)}")

provenance_box, launches_box = st.columns([2, 3], gap="medium")
with provenance_box:
    st.html(markup.section("Provenance", runs_view.links(every, run)))
    listed: list[tuple[object, object]] = []
    with data.errors_shown():
        listed = cells_view.files(data.kept(now, run.run_id).files if run.kind == COLLECT else ())
    st.html(runs_view.provenance(run, listed))
    for report in run.reports:
        content = data.report_content(run.run_id, report.sha256)
        st.download_button(f"Download {report.name}", content, report.name, on_click="ignore")
launches = data.launches(now, run.run_id)
if run.kind == COLLECT and not launches:
    with launches_box, data.errors_shown():
        bundled = data.kept(now, run.run_id)
        st.html(markup.section("Cells", cells_view.caption(bundled)))
        st.html(cells_view.table(bundled))
    limits.show_static_occupancy(now, data.facts(now, run.run_id), pick)
    pick.write()
    st.stop()
with launches_box:
    head, kernels_box = st.columns([3, 2], vertical_alignment="center")
    with kernels_box:
        kernels = pick.words("kernels", "kernels", "kernels: all, or a part", labelled=False)
    chosen = launch_view.select_launches(launches, kernels)
    launch = launch_view.chosen(chosen, st.query_params.get("launch"), launches)
    head.html(markup.section("Launches", launch_view.cut_note(chosen, launches)))
    st.html(launch_view.table(chosen, launch, launches))
    if launch and not lineage_data.is_wrong(now, launch.family, launch.version):
        title = markup.join(("What next", markup.code(launch_view.name(launch, launches))))
        st.html(markup.section(title, advice_view.CAPTION_ONE))
        own = data.launch(now, launch.result_id)
        st.html(advice_view.answer_launch(own, run.compute_capability, data.table(now)))

if launch:
    whole = data.launch(now, launch.result_id)
    head, views_box, words_box = st.columns([3, 3, 2], vertical_alignment="center", gap="medium")
    told = launch_view.about(launch, code_data.place_of(now, launch))
    head.html(markup.section(markup.code(launch_view.name(launch, launches)), told))
    with views_box:
        view = pick.switch("view", launch_view.VIEWS, "view")
    if view == "metrics":
        with words_box:
            wanted = pick.words("find a metric", "metric", "find: stall, dram__ …", labelled=False)
        rows = launch_view.metric_columns(whole, data.table(now), wanted)
        st.dataframe(rows, height=launch_view.TABLE_PX, placeholder="", alt=f"{view} of {launch.part}")
    elif view == "rules":
        origin = runs_view.report_of(run, launch.report_sha256)
        st.html(rules_view.ranked(whole.rules, origin.name if origin else None))
    elif view == "roofline":
        limits.show_roofline(now, run, whole)
    elif view == "occupancy":
        detail = None
        if origin := runs_view.report_of(run, launch.report_sha256):
            with data.errors_shown():
                detail = data.detail(run.run_id, origin.sha256, whole.ordinal)
        limits.show_occupancy(whole, detail)
    elif view == "opcodes":
        st.html(launch_view.opcodes(whole))
    elif origin := runs_view.report_of(run, launch.report_sha256):
        with words_box:
            wanted = pick.words("find an instruction", "sass", "find: LDS, file.cu:12 …", labelled=False)
        with data.errors_shown():
            detail = data.detail(run.run_id, origin.sha256, whole.ordinal)
            st.html(markup.note(instructions_view.caption(detail)))
            rows = instructions_view.columns(detail, wanted)
            st.dataframe(rows, height=launch_view.TABLE_PX, placeholder="", alt=f"{view} of {launch.part}")
pick.write()
