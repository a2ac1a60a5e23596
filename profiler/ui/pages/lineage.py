"""How the versions of a family descend from one another, how each stands, and what is known of it."""

import streamlit as st

from profiler.evidence.gpu_parts import part_of_device
from profiler.statistics.verdict import Verdict
from profiler.ui import controls, markup
from profiler.ui.data import index, lineages, predictions
from profiler.ui.errors import errors_shown
from profiler.ui.sections import baseline_pin, draw, notes
from profiler.ui.views import lineage_table

data_version = index.current_version()
by_family = lineages.lineages_by_family(data_version)
if not by_family:
    draw.empty_page(
        "Lineage",
        "No lineage yet: no run has a catalogue. Make one, without a GPU:",
        "profiler static --check",
    )

filters = controls.Filters("lineage")
boxes = st.columns([2, 1.2, 1.3, 1.3, 1.4], vertical_alignment="bottom", gap="small")
family = filters.select_if_several("family", list(by_family), "family")
lineage = by_family[family]
stored = None
with errors_shown():
    stored = predictions.predictions(data_version, family)
with errors_shown():
    boxes[0].html(markup.page_head(f"Lineage of {family}", lineage_table.context(lineage)))
    with boxes[1]:
        arch = filters.select_if_several("architecture", lineage.architectures[::-1], "arch")
    with boxes[2]:
        size = filters.select_if_several("static facts of", lineage.static_workloads, "size")
    with boxes[3]:
        workload = filters.select_if_several("workload", lineage.run_workloads, "workload")
    gpu = filters.select_if_several("GPU", lineage.gpus, "gpu")
    choice = lineage_table.FactChoice(arch, size, workload, gpu)
    st.html(lineage_table.caption(lineage, choice))
    predicted, is_measured_too = {}, False
    if stored is not None:
        modelled_workload = workload if workload in stored.workloads else stored.workloads[0]
        measured_on = part_of_device(gpu)
        same = measured_on.name if measured_on and measured_on.name in stored.gpus else None
        with boxes[4]:
            part = filters.select_if_several(
                "modelled for", stored.gpus, "model_gpu", same, noun="modelled GPU"
            )
        is_measured_too = part == same and modelled_workload == workload
        predicted = stored.on(modelled_workload, part)
        st.html(lineage_table.modelled_caption(stored, modelled_workload, part))
    speedups = lineages.speedups(data_version, family, workload, gpu)
    # The graph is SVG, which only st.markdown keeps.
    table = lineage_table.table(lineage, choice, speedups, predicted, is_measured_too=is_measured_too)
    st.markdown(table, unsafe_allow_html=True)
    if difference := lineages.working_tree_difference(data_version, family):
        st.html(markup.note(markup.join((markup.verdict(Verdict.CHANGED, ""), difference))))
    st.html(markup.section_head("Baseline", "the baseline of gates and Regressions"))
    best = lineage.best(workload, gpu)
    order = [status.version.id for status in lineage.correct_deepest_first]
    names = dict.fromkeys([*([best.version.id] if best else []), *order])
    baseline_pin.show(family, list(names))
    st.html(markup.section_head("Notes", "on versions of this lineage"))
    notes.show("lineage_notes", {f"{family}/{name}": name for name in lineage.order})
filters.write_url()
