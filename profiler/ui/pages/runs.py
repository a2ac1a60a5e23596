"""Where the numbers come from: runs, their launches with every metric, the reports, and the import."""

import streamlit as st

from profiler.bundles.run import COLLECT
from profiler.ui import controls, markup
from profiler.ui.data import index, results
from profiler.ui.errors import errors_shown
from profiler.ui.sections import baseline_pin, import_form, launch_views, mixed_families, notes, occupancy
from profiler.ui.views import launch_list, run_list, run_results

data_version = index.current_version()
runs = results.runs(data_version)
title_box, family_box, words_box = st.columns([3, 1, 1], vertical_alignment="bottom", gap="medium")
title_box.html(markup.page_head("Runs", run_list.count(runs)))
table_box, import_box = st.container(key="runs_top").columns([5, 3], gap="medium")
if not runs:
    with import_box:
        import_form.show()
    table_box.html(markup.empty_page("No run yet. Drop a report on this page, or:", "profiler import PATH"))
    st.stop()

filters = controls.Filters("runs")
with family_box:
    options = ["", *run_list.families(runs)]
    family = filters.select("family", options, "family", format_option=run_list.family_label)
with words_box:
    words = filters.text("find a run", "find", "version, GPU, run id …")
matches = run_list.matching(runs, family, words)
run = run_list.choose(runs, matches, st.query_params.get("run"))
with table_box:  # above the runs, of which there may be a hundred
    mixed_families.show(data_version, family)
    # Its height stands before its rows do, so that they push nothing away; many scroll in it.
    st.container(height=run_list.table_height(matches), border=False).html(run_list.table(matches, run))
with import_box:  # after the runs, which stand above it on a phone
    import_form.show()
filters.write_url()
if run is None:
    st.stop()
if "run" in st.query_params:
    controls.name_tab(f"Run of {run_list.short_name(run)}")

provenance_box, launches_box = st.columns([2, 3], gap="medium")
with provenance_box:
    st.html(markup.section_head("Provenance", run_list.links(runs, run)))
    files: list[tuple[object, object]] = []
    with errors_shown():
        if run.kind == COLLECT:
            files = run_results.files(results.bundled_run(data_version, run.run_id).files)
    st.html(run_list.provenance(run, files))
    with errors_shown():
        baseline_pin.show_button(run.families[0], run.run_id, "this run", "runs")
        notes.show("runs_notes", {run.run_id: "this run"})
    dropped = ""
    with errors_shown():
        dropped = results.dropped_words(run)
    if dropped:
        st.html(markup.note(dropped))
    for report in () if dropped else run.reports:
        content = results.report_reader(run.run_id, report.sha256)
        st.download_button(f"Download {report.name}", content, report.name, on_click="ignore")
launches = results.launches(data_version, run.run_id)
if run.kind == COLLECT and not launches:  # nothing was profiled: its cells and static facts are shown
    with launches_box, errors_shown():
        bundled = results.bundled_run(data_version, run.run_id)
        is_timed = any(result.samples for result in bundled.results)
        table = run_results.timed_table(bundled) if is_timed else run_results.table(bundled)
        st.html(markup.long_section("Cells", run_results.caption(bundled), [table]))
    occupancy.show_static(data_version, results.facts(data_version, run.run_id), filters)
    filters.write_url()
    st.stop()
with launches_box:
    head, kernels_box = st.columns([3, 2], vertical_alignment="center")
    with kernels_box:
        kernels = filters.text("kernels", "kernels", "kernels: all, or a part", labelled=False)
    fitting = launch_list.matching(launches, kernels)
    launch = launch_list.choose(fitting, st.query_params.get("launch"), launches)
    head.html(markup.section_head("Launches", launch_list.caption(fitting, launches)))
    st.html(launch_list.table(fitting, launch, launches))
    if launch:
        launch_views.show_advice(data_version, run, launch, launches)
if launch:
    launch_views.show(data_version, run, launch, launches, filters)
filters.write_url()
