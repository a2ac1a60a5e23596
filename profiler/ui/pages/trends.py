"""How any metric moved over versions or time, a line a kernel; nothing joined that cannot be compared."""

from functools import partial

import streamlit as st

from profiler.errors import ProfilerError
from profiler.evidence import Evidence
from profiler.history import Trend
from profiler.ui import addresses, controls, markup
from profiler.ui.charts import style
from profiler.ui.data import index, lineages, series
from profiler.ui.sections import limits
from profiler.ui.views import history_steps, launch_pairs, roofline_steps, trend_lines, trends_csv

now = index.stamp()
versions = lineages.versions(now)
if not versions:
    st.html(markup.page_head("Trends"))
    st.html(
        markup.empty_page("No history yet. Import the reports of several versions:", "profiler import PATH")
    )
    st.stop()

pick = controls.View("trends")
boxes = st.columns([1.2, 1, 1, 1, 1], vertical_alignment="bottom", gap="medium")
boxes[0].html(markup.page_head("Trends"))
with boxes[1]:
    family = pick.choose("family", addresses.families(versions), "family")
controls.name_tab(f"Trends of {family}")
with boxes[2]:
    kernels = pick.words("kernels", "kernels", "all, or name, *pattern*, regex:…")
with boxes[3]:
    view = pick.switch("view", roofline_steps.VIEWS, "view")
names = [version.version for version in versions if version.family == family]
cells = index.cells(now)
if view == "roofline":
    with index.errors_shown():
        limits.show_roofline_path(now, family, names, kernels, pick)
    pick.write()
    st.stop()
with boxes[4]:
    over = pick.switch("over", trend_lines.OVER, "over")
evidence, beside = pick.evidence(addresses.kinds_of(cells, family))
table = index.table(now)
words = trend_lines.metric_words(table)
timed = evidence is Evidence.MEASURED and index.is_timed(now, family)
offered = trend_lines.offered(table, index.metric_names(now, family), evidence, timed)
fitting = partial(trend_lines.of_evidence, table=table, evidence=evidence)
chosen = pick.several(
    "metrics", offered, "metrics", trend_lines.defaults(evidence, timed), shown=words, fitting=fitting
)
asked = fitting(chosen)
there = addresses.cells(cells, [f"{family}/{name}" for name in names], evidence)
workload, gpu = pick.cell(there, launch_pairs.PLACES[evidence], beside)

every, refused = {}, {}
for name in asked:
    try:
        every[name] = series.trend(now, name, family, workload, gpu, over, evidence)
    except ProfilerError as error:
        refused[name] = str(error)
if refused:
    st.html(markup.error_box(trend_lines.refusal(refused)))
found: dict[str, list[Trend]] = {}
ranking: list[Trend] = []
lineage = None
with index.errors_shown():
    lineage = lineages.lineage(now, family)
    ranking = series.trend(now, trend_lines.RANKED_BY, family, workload, gpu, over, evidence)
    found, ranking = trend_lines.fitting(every, ranking, kernels)
noise = index.noise(now)
picture = trend_lines.picture(found, names, over, ranking, noise, lineage)
every_step = [
    one
    for name, several in found.items()
    for one in history_steps.of(series.history(now, name, family, workload, gpu, evidence), several)
]
if picture.panels:
    drawn = history_steps.marked(picture, every_step, names, over)
    alt = picture.alt + history_steps.alt(every_step)
    many = "_many" * (len(names) > trend_lines.COLUMNS_SHOWN)  # a phone has no room for their numbers
    st.plotly_chart(drawn, theme=None, config=style.CONFIG, key=f"trends_chart{many}", alt=alt)
if lineage and evidence is Evidence.STATIC and over == trend_lines.OVER[0]:
    mix, alt = trend_lines.opcode_mix(lineage, names, workload, gpu, picture.gutter)
    st.plotly_chart(mix, theme=None, config=style.CONFIG, key="trends_mix", alt=alt)
    st.html(markup.note(trend_lines.MIX))
for line in (*trend_lines.notes(picture, found, words), *trend_lines.floor_notes(found, noise)):
    st.html(line)
if any(one.steps for one in every_step):
    st.html(markup.section_head("Steps", history_steps.caption(every_step)))
    st.html(history_steps.table(every_step))
for line in history_steps.notes(every_step):
    st.html(line)
if shown := [name for name, several in found.items() if several]:
    head, numbers_box = st.columns([4, 1], vertical_alignment="bottom", gap="medium")
    with numbers_box:
        numbers = found[pick.choose("numbers of", shown, "numbers", shown=words)]
    head.html(markup.section_head("Numbers", trend_lines.table_caption(numbers, names)))
    st.html(trend_lines.numbers(numbers, names, family, ranking))
    content = partial(trends_csv.as_csv, [one for several in found.values() for one in several])
    st.download_button("Download as CSV", content, f"{family}.csv", on_click="ignore")
pick.write()
