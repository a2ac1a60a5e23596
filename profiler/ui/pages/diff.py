"""Two versions or runs side by side: may they be compared, what is the verdict, what moved with it."""

import streamlit as st

from profiler.errors import UnknownName
from profiler.evidence import Evidence
from profiler.ui import addresses, controls, markup
from profiler.ui.charts import style
from profiler.ui.data import code_listings, comparisons, index, lineages
from profiler.ui.sections import machine_code
from profiler.ui.views import (
    advice,
    drilldown,
    latency_verdict,
    launch_pairs,
    metric_changes,
    rule_results,
    time_split,
    version_sources,
)

now = index.stamp()
versions = lineages.versions(now)
if len(versions) < 2:
    st.html(markup.page_head("Diff"))
    st.html(markup.empty_page(launch_pairs.TOO_FEW[len(versions)], "profiler import PATH"))
    st.stop()

pick = controls.View("diff")
title_box, a_box, b_box, kernels_box = st.columns([2.2, 1, 1, 1], vertical_alignment="bottom", gap="medium")
first, second = comparisons.first_pair(now)
with a_box:
    a = pick.choose("A", addresses.names(versions, st.query_params.get("a")), "a", first)
with b_box:
    b = pick.choose("B", addresses.names(versions, st.query_params.get("b")), "b", second)
with kernels_box:
    kernels = pick.words("kernels", "kernels", "all, or name, *pattern*, regex:…")
cells = index.cells_of(now, (a, b))
kinds = addresses.kinds(cells, (a, b))
evidence, boxes = pick.evidence(kinds)
there = addresses.cells(cells, (a, b), evidence)
workload, gpu = pick.cell(there, launch_pairs.PLACES[evidence], boxes)

named = evidence.value if len(kinds) > 1 else None
asked = {name: st.query_params.get(name) for name in ("launch", "drill", "mode")}
view = addresses.Diff(a, b, workload, gpu, kernels, evidence=named, **asked)
whole = None
with index.errors_shown():
    if why := addresses.nothing_shared(cells, (a, b)):
        raise UnknownName(why)
    whole = comparisons.comparison(now, a, b, workload, gpu, kernels, evidence)
pair = launch_pairs.choose(whole, view.launch) if whole else None
controls.name_tab(launch_pairs.tab(view))
title_box.html(launch_pairs.head(view, versions, whole, pair))
if whole is None:
    pick.write()
    st.stop()

shown = whole.top(launch_pairs.PAIRS_SHOWN)
kept = None
with index.errors_shown():
    kept = comparisons.sources(now, whole)
for line in launch_pairs.standing(whole):
    st.html(line)
st.html(launch_pairs.comparable(whole))
common = addresses.common(cells, (a, b), evidence)
timed = latency_verdict.choose(whole, view.mode)
if evidence is Evidence.MEASURED:
    verdict_box, why_box = st.columns([2, 3], gap="medium")
    with verdict_box:
        if timed:
            st.html(markup.section_head("Verdict", latency_verdict.caption(timed)))
            st.html(latency_verdict.verdict(timed))
            for line in latency_verdict.notes(timed, whole.b, index.noise(now)):
                st.html(line)
            if latency_verdict.has_samples(timed):
                spread = pick.switch("distribution", latency_verdict.SPREADS, "spread")
                dots, words = latency_verdict.chart(timed, spread), latency_verdict.alt(timed)
                st.plotly_chart(dots, theme=None, config=style.CONFIG, key="diff_samples", alt=words)
                st.html(latency_verdict.chart_note(timed, spread))
            if len(whole.latency) > 1:
                st.html(latency_verdict.modes(whole, timed, view))
            if whole.a.launches or whole.b.launches:
                st.html(markup.section_head("Under the profiler", "ncu duration, not latency"))
                st.html(launch_pairs.second_verdict(whole, pair))
        else:
            st.html(markup.section_head("Verdict", "ncu duration, not latency"))
            st.html(launch_pairs.verdict(pair))
        if ticks := launch_pairs.duration_chart(pair):
            st.plotly_chart(
                ticks, theme=None, config=style.CONFIG, key="diff_ticks", alt=launch_pairs.alt(pair)
            )
        if not timed:
            st.html(latency_verdict.none(comparisons.imported(now, whole)))
        if whole.a.launches or whole.b.launches:
            st.html(markup.section_head("All launches of both", launch_pairs.launches_caption(shown)))
            st.html(launch_pairs.launches(shown, pair, view))
        for reason in launch_pairs.launches_notes(shown):
            st.html(reason)
        if len(common) > 1:
            others = comparisons.elsewhere(now, a, b, common, kernels, evidence)
            words = "the latency of calls" if timed else "the chosen launch, or the longest"
            st.html(markup.section_head("The same pair elsewhere", words))
            if timed:
                st.html(latency_verdict.elsewhere(others, timed, view))
            else:
                st.html(launch_pairs.elsewhere(others, view))
    with why_box:
        st.html(markup.section_head("Why", time_split.CAPTION))
        if pair:
            told = time_split.of(whole, pair, index.table(now))
            st.html(time_split.answer(told))
            if figure := time_split.waterfall(told):
                st.plotly_chart(figure, theme=None, config=style.CONFIG, key="diff_why", alt=told.sentence)
            if lacking := time_split.lacking(told):
                st.html(lacking)
            st.html(markup.section_head("What next", advice.CAPTION))
            st.html(advice.answer_pair(whole, pair, index.table(now)))
        else:
            st.html(markup.note(launch_pairs.unpaired(whole)))
else:
    verdict_box, elsewhere_box = st.columns([2, 3], gap="medium")
    with verdict_box:
        st.html(markup.section_head("Verdict", launch_pairs.FACTS[evidence]))
        st.html(launch_pairs.tally(whole, pair))
        if kept:
            st.html(markup.section_head("Catalogue", "what the two entries say"))
            st.html(version_sources.entries(*kept))
    with elsewhere_box:
        st.html(markup.section_head("The same pair elsewhere", launch_pairs.ELSEWHERE))
        if common:
            found = comparisons.elsewhere(now, a, b, common, kernels, evidence)
            st.html(launch_pairs.judged(found, view))
        else:
            st.html(markup.note("No workload on which both were examined."))
        if pair:
            traffic = kept[1].traffic if kept else {}
            timed_too = Evidence.MEASURED in addresses.kinds(cells, (b,))
            st.html(markup.section_head("What next", advice.CAPTION))
            st.html(advice.answer_pair(whole, pair, index.table(now), traffic, timed_too))

if pair and evidence is Evidence.MEASURED:
    code = code_listings.of_pair(now, whole, pair)
    head, views_box = st.columns([3, 4], vertical_alignment="center", gap="medium")
    head.html(markup.section_head("Drill-down", drilldown.links(code)))
    with views_box:
        drill = pick.switch("drill-down", drilldown.VIEWS, "drill")
    listings = []
    if drill in drilldown.READS_CODE:
        with index.errors_shown():
            listings = [code_listings.listing(now, *one) for one in code if one]
    for part in drilldown.section(drill, pair, listings):
        st.html(part)
    pick.write()
if pair:
    metrics_box, side_box = st.columns([7, 5], gap="medium")
    with metrics_box:
        st.html(markup.section_head("Metrics", metric_changes.caption(whole)))
        st.html(metric_changes.metrics(pair))
    with side_box:
        if evidence is not Evidence.MODELLED:
            st.html(markup.section_head("Opcode mix", launch_pairs.OPCODES[evidence]))
            st.html(metric_changes.opcodes(pair.opcodes))
        if evidence is Evidence.STATIC and kept:
            machine_code.show(now, whole, (a, b))
        if evidence is Evidence.MEASURED:
            st.html(markup.section_head("Environment"))
            st.html(metric_changes.environment(whole, pair))
        if evidence is Evidence.MODELLED and kept:
            st.html(
                markup.section_head(
                    "Conflicts by source line", f"modelled, {workload}; wavefronts over the ideal"
                )
            )
            st.html(version_sources.conflicts(*kept, (whole.a.workload or "", whole.b.workload or "")))
if pair and evidence is Evidence.MEASURED:
    st.html(markup.section_head("NVIDIA's rules", rule_results.caption(pair)))
    st.html(rule_results.changed(pair))
if kept:
    st.html(markup.section_head("Source", version_sources.source_caption(*kept)))
    if flags := version_sources.flags(*kept):
        st.html(flags)
    st.html(version_sources.sources(*kept))
pick.write()
