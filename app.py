"""The dashboard: page config and navigation, nothing else."""

from pathlib import Path

import streamlit as st

import profiler
from profiler.ui import warm_up

warm_up.wait_for_imports()
from profiler.ui import late_fields, preloads
from profiler.ui.errors import errors_shown
from profiler.ui.theme import style_sheet
from profiler.ui.toolbar import component as toolbar

# This file lies at the top of a checkout, or inside the installed package; the pages lie in the package.
PAGES = Path(profiler.__file__).parent / "ui" / "pages"

# First of all, lest what is drawn meanwhile becomes wider.
st.set_page_config(layout="wide", initial_sidebar_state="collapsed")
OVERVIEW = st.Page(PAGES / "overview.py", title="Overview", url_path="start", default=True)
LISTED = [
    OVERVIEW,
    st.Page(PAGES / "lineage.py", title="Lineage", url_path="lineage"),
    st.Page(PAGES / "trends.py", title="Trends", url_path="trends"),
    st.Page(PAGES / "compare.py", title="Compare", url_path="compare"),
    st.Page(PAGES / "diff.py", title="Diff", url_path="diff"),
    st.Page(PAGES / "launch.py", title="Launch", url_path="launch"),
    st.Page(PAGES / "code.py", title="Code", url_path="code"),
    st.Page(PAGES / "changes.py", title="Changes", url_path="changes"),
    st.Page(PAGES / "regressions.py", title="Regressions", url_path="regressions"),
    st.Page(PAGES / "search.py", title="Search", url_path="search"),
    st.Page(PAGES / "runs.py", title="Runs", url_path="runs"),
]
# Streamlit serves the default page at / alone: its name, typed, is a page that the menu leaves out.
BY_NAME = st.Page(PAGES / "overview.py", title="Overview", url_path="overview", visibility="hidden")
page = st.navigation([*LISTED, BY_NAME], position="top")
# A page that shows one thing of many names it in the tab as well: see controls.name_tab.
st.set_page_config(page_title=f"{page.title} · profiler")
st.html("<style> </style>" if preloads.is_serving() else style_sheet())
# The toolbar's place is a pixel high from the first moment on: nothing moves when it is there.
with st.container(height=1, border=False):
    toolbar.mount(
        [*((listed.title, listed.url_path) for listed in LISTED), (BY_NAME.title, BY_NAME.url_path)],
        page.url_path,
    )
toolbar.announce_new_runs()
is_first_run = preloads.wait_for_first_kinds()
# An error that no page shows nearer to its cause is shown here, such as an index that cannot be opened.
with late_fields.may_wait(is_first_run), errors_shown():
    toolbar.put_address_right()
    page.run()
