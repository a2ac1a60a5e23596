"""Where the numbers come from: runs, their launches with every metric, the reports, and the import."""

import streamlit as st

from profiler.bundles import COLLECT
from profiler.ui import controls, markup
from profiler.ui.data import code_listings, index, lineages
from profiler.ui.sections import limits
from profiler.ui.views import advice, instruction_columns, launch_list, rule_results, run_list, run_results

now = index.stamp()
every = index.runs(now)
title_box, family_box, words_box = st.columns([3, 1, 1], vertical_alignment="bottom", gap="medium")
title_box.html(markup.page_head("Runs", run_list.count(every)))
table_box, import_box = st.container(key="runs_top").columns([5, 3], gap="medium")

with import_box:
    st.html(markup.section_head("Import", "reports (.ncu-rep, .csv) and bundles (.zip)"))
    with st.form("runs_import", clear_on_submit=True, border=False):
        # No list of types: the browser refuses endings with a hyphen (Streamlit 1.67).
        files = st.file_uploader("reports", accept_multiple_files=True, label_visibility="collapsed")
        family_field, version_field, send_field = st.columns([4, 4, 2], vertical_alignment="bottom")
        into = family_field.text_input("family", placeholder=run_list.DEFAULT_FAMILY)
        label = version_field.text_input("version", placeholder="the file's name")
        sent = send_field.form_submit_button("Import", width="stretch")
    if sent:
        with st.spinner("Importing …"), index.errors_shown():
            index.take_in(files, into or run_list.DEFAULT_FAMILY, label or None)
            st.rerun()
    for line in (*run_list.outcome(index.last_import()), *run_list.refused(index.unreadable())):
        st.html(line)
if not every:
    table_box.html(markup.empty_page("No run yet. Drop a report on this page, or:", "profiler import PATH"))
    st.stop()

pick = controls.View("runs")
with family_box:
    family = pick.choose("family", ["", *run_list.families(every)], "family", shown=run_list.named)
with words_box:
    search = pick.words("find a run", "find", "version, GPU, run id …")
found = run_list.matching(every, family, search)
run = run_list.chosen(every, found, st.query_params.get("run"))
table_box.html(run_list.table(found, run))
pick.write()
if run is None:
    st.stop()
if "run" in st.query_params:
    controls.name_tab(f"Run of {run_list.short_name(run)}")

provenance_box, launches_box = st.columns([2, 3], gap="medium")
with provenance_box:
    st.html(markup.section_head("Provenance", run_list.links(every, run)))
    listed: list[tuple[object, object]] = []
    with index.errors_shown():
        listed = run_results.files(index.kept(now, run.run_id).files if run.kind == COLLECT else ())
    st.html(run_list.provenance(run, listed))
    for report in run.reports:
        content = index.report_content(run.run_id, report.sha256)
        st.download_button(f"Download {report.name}", content, report.name, on_click="ignore")
launches = index.launches(now, run.run_id)
if run.kind == COLLECT and not launches:
    with launches_box, index.errors_shown():
        bundled = index.kept(now, run.run_id)
        st.html(markup.section_head("Cells", run_results.caption(bundled)))
        st.html(run_results.table(bundled))
    limits.show_static_occupancy(now, index.facts(now, run.run_id), pick)
    pick.write()
    st.stop()
with launches_box:
    head, kernels_box = st.columns([3, 2], vertical_alignment="center")
    with kernels_box:
        kernels = pick.words("kernels", "kernels", "kernels: all, or a part", labelled=False)
    chosen = launch_list.select_launches(launches, kernels)
    launch = launch_list.chosen(chosen, st.query_params.get("launch"), launches)
    head.html(markup.section_head("Launches", launch_list.cut_note(chosen, launches)))
    st.html(launch_list.table(chosen, launch, launches))
    if launch and not lineages.is_wrong(now, launch.family, launch.version):
        title = markup.join(("What next", markup.code(launch_list.name(launch, launches))))
        st.html(markup.section_head(title, advice.CAPTION_ONE))
        own = index.launch(now, launch.result_id)
        st.html(advice.answer_launch(own, run.compute_capability, index.table(now)))

if launch:
    whole = index.launch(now, launch.result_id)
    head, views_box, words_box = st.columns([3, 3, 2], vertical_alignment="center", gap="medium")
    told = launch_list.about(launch, code_listings.place_of(now, launch))
    head.html(markup.section_head(markup.code(launch_list.name(launch, launches)), told))
    with views_box:
        view = pick.switch("view", launch_list.VIEWS, "view")
    if view == "metrics":
        with words_box:
            wanted = pick.words("find a metric", "metric", "find: stall, dram__ …", labelled=False)
        rows = launch_list.metric_columns(whole, index.table(now), wanted)
        st.dataframe(rows, height=launch_list.TABLE_PX, placeholder="", alt=f"{view} of {launch.part}")
    elif view == "rules":
        origin = run_list.report_of(run, launch.report_sha256)
        st.html(rule_results.ranked(whole.rules, origin.name if origin else None))
    elif view == "roofline":
        limits.show_roofline(now, run, whole)
    elif view == "occupancy":
        detail = None
        if origin := run_list.report_of(run, launch.report_sha256):
            with index.errors_shown():
                detail = index.detail(run.run_id, origin.sha256, whole.ordinal)
        limits.show_occupancy(whole, detail)
    elif view == "opcodes":
        st.html(launch_list.opcodes(whole))
    elif origin := run_list.report_of(run, launch.report_sha256):
        with words_box:
            wanted = pick.words("find an instruction", "sass", "find: LDS, file.cu:12 …", labelled=False)
        with index.errors_shown():
            detail = index.detail(run.run_id, origin.sha256, whole.ordinal)
            st.html(markup.note(instruction_columns.caption(detail)))
            rows = instruction_columns.columns(detail, wanted)
            st.dataframe(rows, height=launch_list.TABLE_PX, placeholder="", alt=f"{view} of {launch.part}")
pick.write()
