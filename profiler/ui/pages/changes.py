"""What changed in the machine code between two builds that the browser sends: nothing is stored or run."""

from dataclasses import replace
from functools import partial

import streamlit as st

from profiler.sass.code_changes import ChangeKind
from profiler.ui import controls, markup
from profiler.ui.data import uploads
from profiler.ui.errors import errors_shown
from profiler.ui.sections import draw
from profiler.ui.views import answer, run_list

_ALLOWED = ("nothing", *(kind.value for kind in ChangeKind if kind.rank >= ChangeKind.RESOURCES.rank))[:-1]

st.html(markup.page_head("Changes", "what changed in the machine code between two builds, without a GPU"))
filters = controls.Filters("changes")
sides = []
for box, side in zip(st.columns(2, gap="medium"), ("old build", "new build"), strict=True):
    # No list of types: libraries end in .so.1 as well.
    sides.append(box.file_uploader(side, key=f"changes_{side[:3]}"))
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    kernel = filters.text("kernels", "kernel", "all, or name, *pattern*, regex:…")
    allowed = filters.select("allowed", _ALLOWED, "allow")
draw.html(*run_list.not_taken(uploads.not_taken()))
old, new = sides
if old is None or new is None:
    st.html(
        markup.note(
            "Upload two builds of one library: cubins, objects, shared libraries, fat binaries or wheels. "
            "On the command line: profiler changes OLD NEW"
        )
    )
    filters.write_url()
    st.stop()
with errors_shown(), st.spinner("Reading the machine code …"):
    document = uploads.code_changes(old, new, kernel)
    if allowed != _ALLOWED[0]:
        document = replace(document, allowed=ChangeKind(allowed))
    every_row = replace(document, top=len(document.changes.changes))
    for part in every_row.blocks():
        st.html(answer.html([part]))
    with st.container(horizontal=True, gap="small"):
        name = f"changes-{document.changes.b}"
        st.download_button("CSV", partial(document.to_csv), f"{name}.csv", "text/csv", on_click="ignore")
        st.download_button("Markdown", partial(document.to_markdown), f"{name}.md", on_click="ignore")
filters.write_url()
