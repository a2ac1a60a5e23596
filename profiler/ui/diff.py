"""Two versions or runs side by side: may they be compared, what is the verdict, what moved with it."""

import streamlit as st

from profiler.errors import UnknownName
from profiler.evidence.values import Evidence
from profiler.ui import (
    addresses,
    advice_view,
    code_data,
    compiled,
    controls,
    data,
    diff_view,
    drill_view,
    frame,
    latency_view,
    lineage_data,
    markup,
    metrics_view,
    pair_data,
    rules_view,
    source_view,
    why_view,
)

now = data.stamp()
versions = lineage_data.versions(now)
if len(versions) < 2:
    st.html(markup.head("Diff"))
    st.html(markup.empty(diff_view.TOO_FEW[len(versions)], "profiler import PATH"))
    st.stop()

pick = controls.View("diff")
title_box, a_box, b_box, kernels_box = st.columns([2.2, 1, 1, 1], vertical_alignment="bottom", gap="medium")
first, second = pair_data.first_pair(now)
with a_box:
    a = pick.choose("A", addresses.names(versions, st.query_params.get("a")), "a", first)
with b_box:
    b = pick.choose("B", addresses.names(versions, st.query_params.get("b")), "b", second)
with kernels_box:
    kernels = pick.words("kernels", "kernels", "all, or name, *pattern*, regex:…")
cells = data.cells_of(now, (a, b))
kinds = addresses.kinds(cells, (a, b))
evidence, boxes = pick.evidence(kinds)
there = addresses.cells(cells, (a, b), evidence)
workload, gpu = pick.cell(there, diff_view.PLACES[evidence], boxes)

named = evidence.value if len(kinds) > 1 else None
asked = {name: st.query_params.get(name) for name in ("launch", "drill", "mode")}
view = addresses.Diff(a, b, workload, gpu, kernels, evidence=named, **asked)
whole = None
with data.errors_shown():
    if why := addresses.nothing_shared(cells, (a, b)):
        raise UnknownName(why)
    whole = pair_data.comparison(now, a, b, workload, gpu, kernels, evidence)
pair = diff_view.choose(whole, view.launch) if whole else None
controls.name_tab(diff_view.tab(view))
title_box.html(diff_view.head(view, versions, whole, pair))
if whole is None:
    pick.write()
    st.stop()

shown = whole.top(diff_view.PAIRS_SHOWN)
kept = None
with data.errors_shown():
    kept = pair_data.sources(now, whole)
for line in diff_view.standing(whole):
    st.html(line)
st.html(diff_view.comparable(whole))
common = addresses.common(cells, (a, b), evidence)
timed = latency_view.choose(whole, view.mode)
if evidence is Evidence.MEASURED:
    verdict_box, why_box = st.columns([2, 3], gap="medium")
    with verdict_box:
        if timed:
            st.html(markup.section("Verdict", latency_view.caption(timed)))
            st.html(latency_view.verdict(timed))
            for line in latency_view.notes(timed, whole.b, data.floors(now)):
                st.html(line)
            if latency_view.has_samples(timed):
                spread = pick.switch("distribution", latency_view.SPREADS, "spread")
                dots, words = latency_view.chart(timed, spread), latency_view.alt(timed)
                st.plotly_chart(dots, theme=None, config=frame.CONFIG, key="diff_samples", alt=words)
                st.html(latency_view.chart_note(timed, spread))
            if len(whole.latency) > 1:
                st.html(latency_view.modes(whole, timed, view))
            if whole.a.launches or whole.b.launches:
                st.html(markup.section("Under the profiler", "ncu duration, not latency"))
                st.html(diff_view.second_verdict(whole, pair))
        else:
            st.html(markup.section("Verdict", "ncu duration, not latency"))
            st.html(diff_view.verdict(pair))
        if ticks := diff_view.duration_ticks(pair):
            st.plotly_chart(ticks, theme=None, config=frame.CONFIG, key="diff_ticks", alt=diff_view.alt(pair))
        if not timed:
            st.html(latency_view.none(pair_data.imported(now, whole)))
        if whole.a.launches or whole.b.launches:
            st.html(markup.section("All launches of both", diff_view.launches_caption(shown)))
            st.html(diff_view.launches(shown, pair, view))
        for reason in diff_view.launches_notes(shown):
            st.html(reason)
        if len(common) > 1:
            others = pair_data.elsewhere(now, a, b, common, kernels, evidence)
            words = "the latency of calls" if timed else "the chosen launch, or the longest"
            st.html(markup.section("The same pair elsewhere", words))
            if timed:
                st.html(latency_view.elsewhere(others, timed, view))
            else:
                st.html(diff_view.elsewhere(others, view))
    with why_box:
        st.html(markup.section("Why", why_view.CAPTION))
        if pair:
            told = why_view.of(whole, pair, data.table(now))
            st.html(why_view.answer(told))
            if figure := why_view.waterfall(told):
                st.plotly_chart(figure, theme=None, config=frame.CONFIG, key="diff_why", alt=told.sentence)
            if lacking := why_view.lacking(told):
                st.html(lacking)
            st.html(markup.section("What next", advice_view.CAPTION))
            st.html(advice_view.answer_pair(whole, pair, data.table(now)))
        else:
            st.html(markup.note(diff_view.unpaired(whole)))
else:
    verdict_box, elsewhere_box = st.columns([2, 3], gap="medium")
    with verdict_box:
        st.html(markup.section("Verdict", diff_view.FACTS[evidence]))
        st.html(diff_view.tally(whole, pair))
        if kept:
            st.html(markup.section("Catalogue", "what the two entries say"))
            st.html(source_view.entries(*kept))
    with elsewhere_box:
        st.html(markup.section("The same pair elsewhere", diff_view.ELSEWHERE))
        if common:
            found = pair_data.elsewhere(now, a, b, common, kernels, evidence)
            st.html(diff_view.judged(found, view))
        else:
            st.html(markup.note("No workload on which both were examined."))
        if pair:
            traffic = kept[1].traffic if kept else {}
            timed_too = Evidence.MEASURED in addresses.kinds(cells, (b,))
            st.html(markup.section("What next", advice_view.CAPTION))
            st.html(advice_view.answer_pair(whole, pair, data.table(now), traffic, timed_too))

if pair and evidence is Evidence.MEASURED:
    code = code_data.of_pair(now, whole, pair)
    head, views_box = st.columns([3, 4], vertical_alignment="center", gap="medium")
    head.html(markup.section("Drill-down", drill_view.links(code)))
    with views_box:
        drill = pick.switch("drill-down", drill_view.VIEWS, "drill")
    listings = []
    if drill in drill_view.READS_CODE:
        with data.errors_shown():
            listings = [code_data.listing(now, *one) for one in code if one]
    for part in drill_view.section(drill, pair, listings):
        st.html(part)
    pick.write()
if pair:
    metrics_box, side_box = st.columns([7, 5], gap="medium")
    with metrics_box:
        st.html(markup.section("Metrics", metrics_view.caption(whole)))
        st.html(metrics_view.metrics(pair))
    with side_box:
        if evidence is not Evidence.MODELLED:
            st.html(markup.section("Opcode mix", diff_view.OPCODES[evidence]))
            st.html(metrics_view.opcodes(pair.opcodes))
        if evidence is Evidence.STATIC and kept:
            compiled.show(now, whole, (a, b))
        if evidence is Evidence.MEASURED:
            st.html(markup.section("Environment"))
            st.html(metrics_view.environment(whole, pair))
        if evidence is Evidence.MODELLED and kept:
            st.html(
                markup.section("Conflicts by source line", f"modelled, {workload}; wavefronts over the ideal")
            )
            st.html(source_view.conflicts(*kept, (whole.a.workload or "", whole.b.workload or "")))
if pair and evidence is Evidence.MEASURED:
    st.html(markup.section("NVIDIA's rules", rules_view.caption(pair)))
    st.html(rules_view.changed(pair))
if kept:
    st.html(markup.section("Source", source_view.source_caption(*kept)))
    if flags := source_view.flags(*kept):
        st.html(flags)
    st.html(source_view.sources(*kept))
pick.write()
