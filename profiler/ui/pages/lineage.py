"""How the versions of a family descend from one another, how each stands, and what is known of it."""

import streamlit as st

from profiler.statistics import Verdict
from profiler.ui import controls, markup
from profiler.ui.data import index, lineages
from profiler.ui.views import lineage_table

now = index.stamp()
found = lineages.lineages_by_family(now)
if not found:
    st.html(markup.page_head("Lineage"))
    st.html(
        markup.empty_page(
            "No lineage yet: no run keeps a catalogue. Make one, with no GPU:", "profiler dissect"
        )
    )
    st.stop()

pick = controls.View("lineage")
boxes = st.columns([3, 1, 1, 1], vertical_alignment="bottom", gap="medium")
family = pick.any_of("family", list(found), "family")
lineage = found[family]
with index.errors_shown():
    boxes[0].html(markup.page_head(f"Lineage of {family}", lineage_table.context(lineage)))
    with boxes[1]:
        arch = pick.any_of("architecture", lineage.architectures[::-1], "arch")
    with boxes[2]:
        size = pick.any_of("static facts of", lineage.static_workloads, "size")
    with boxes[3]:
        workload = pick.any_of("workload", lineage.run_workloads, "workload")
    gpu = pick.any_of("GPU", lineage.gpus, "gpu")
    choice = lineage_table.Choice(arch, size, workload, gpu)
    st.html(lineage_table.caption(lineage, choice))
    table = lineage_table.table(lineage, choice, lineages.speed_ups(now, family, workload, gpu))
    st.markdown(table, unsafe_allow_html=True)
    if words := lineages.apart(now, family):
        st.html(markup.note(markup.join((markup.verdict(Verdict.CHANGED, ""), words))))
pick.write()
