"""How any metric moved over versions or time, a line a kernel; nothing joined that cannot be compared."""

from functools import partial

import streamlit as st

from profiler.errors import ProfilerError
from profiler.evidence.values import Evidence
from profiler.history.trend import Trend
from profiler.ui import (
    addresses,
    change_marks,
    controls,
    course_data,
    data,
    diff_view,
    frame,
    limits,
    lineage_data,
    markup,
    roofpath_view,
    trends_csv,
    trends_view,
)

now = data.stamp()
versions = lineage_data.versions(now)
if not versions:
    st.html(markup.head("Trends"))
    st.html(markup.empty("No history yet. Import the reports of several versions:", "profiler import PATH"))
    st.stop()

pick = controls.View("trends")
boxes = st.columns([1.2, 1, 1, 1, 1], vertical_alignment="bottom", gap="medium")
boxes[0].html(markup.head("Trends"))
with boxes[1]:
    family = pick.choose("family", addresses.families(versions), "family")
controls.name_tab(f"Trends of {family}")
with boxes[2]:
    kernels = pick.words("kernels", "kernels", "all, or name, *pattern*, regex:…")
with boxes[3]:
    view = pick.switch("view", roofpath_view.VIEWS, "view")
names = [version.version for version in versions if version.family == family]
cells = data.cells(now)
if view == "roofline":
    with data.errors_shown():
        limits.show_roofline_path(now, family, names, kernels, pick)
    pick.write()
    st.stop()
with boxes[4]:
    over = pick.switch("over", trends_view.OVER, "over")
evidence, beside = pick.evidence(addresses.kinds_of(cells, family))
table = data.table(now)
words = trends_view.metric_words(table)
timed = evidence is Evidence.MEASURED and data.is_timed(now, family)
offered = trends_view.offered(table, data.metric_names(now, family), evidence, timed)
fitting = partial(trends_view.of_evidence, table=table, evidence=evidence)
chosen = pick.several(
    "metrics", offered, "metrics", trends_view.defaults(evidence, timed), shown=words, fitting=fitting
)
asked = fitting(chosen)
there = addresses.cells(cells, [f"{family}/{name}" for name in names], evidence)
workload, gpu = pick.cell(there, diff_view.PLACES[evidence], beside)

every, refused = {}, {}
for name in asked:
    try:
        every[name] = course_data.trend(now, name, family, workload, gpu, over, evidence)
    except ProfilerError as error:
        refused[name] = str(error)
if refused:
    st.html(markup.error(trends_view.refusal(refused)))
found: dict[str, list[Trend]] = {}
ranking: list[Trend] = []
lineage = None
with data.errors_shown():
    lineage = lineage_data.lineage(now, family)
    ranking = course_data.trend(now, trends_view.RANKED_BY, family, workload, gpu, over, evidence)
    found, ranking = trends_view.fitting(every, ranking, kernels)
floors = data.floors(now)
picture = trends_view.picture(found, names, over, ranking, floors, lineage)
every_step = [
    one
    for name, several in found.items()
    for one in change_marks.of(course_data.history(now, name, family, workload, gpu, evidence), several)
]
if picture.panels:
    drawn = change_marks.marked(picture, every_step, names, over)
    alt = picture.alt + change_marks.alt(every_step)
    many = "_many" * (len(names) > trends_view.COLUMNS_SHOWN)  # a phone has no room for their numbers
    st.plotly_chart(drawn, theme=None, config=frame.CONFIG, key=f"trends_chart{many}", alt=alt)
if lineage and evidence is Evidence.STATIC and over == trends_view.OVER[0]:
    mix, alt = trends_view.opcode_mix(lineage, names, workload, gpu, picture.gutter)
    st.plotly_chart(mix, theme=None, config=frame.CONFIG, key="trends_mix", alt=alt)
    st.html(markup.note(trends_view.MIX))
for line in (*trends_view.notes(picture, found, words), *trends_view.floor_notes(found, floors)):
    st.html(line)
if any(one.changes for one in every_step):
    st.html(markup.section("Steps", change_marks.caption(every_step)))
    st.html(change_marks.table(every_step))
for line in change_marks.notes(every_step):
    st.html(line)
if shown := [name for name, several in found.items() if several]:
    head, numbers_box = st.columns([4, 1], vertical_alignment="bottom", gap="medium")
    with numbers_box:
        numbers = found[pick.choose("numbers of", shown, "numbers", shown=words)]
    head.html(markup.section("Numbers", trends_view.table_caption(numbers, names)))
    st.html(trends_view.numbers(numbers, names, family, ranking))
    content = partial(trends_csv.as_csv, [one for several in found.values() for one in several])
    st.download_button("Download as CSV", content, f"{family}.csv", on_click="ignore")
pick.write()
