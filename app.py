"""The dashboard: page config and navigation, nothing else."""

from pathlib import Path

import streamlit as st

import profiler
from profiler.ui.errors import errors_shown
from profiler.ui.theme import style_sheet

# This file lies at the top of a checkout, or inside the installed package; the pages lie in the package.
PAGES = Path(profiler.__file__).parent / "ui" / "pages"

page = st.navigation(
    [
        st.Page(PAGES / "overview.py", title="Overview", url_path="start", default=True),
        # Streamlit serves the default page at / alone: its name, typed, is a page that the menu leaves out.
        st.Page(PAGES / "overview.py", title="Overview", url_path="overview", visibility="hidden"),
        st.Page(PAGES / "lineage.py", title="Lineage", url_path="lineage"),
        st.Page(PAGES / "trends.py", title="Trends", url_path="trends"),
        st.Page(PAGES / "diff.py", title="Diff", url_path="diff"),
        st.Page(PAGES / "code.py", title="Code", url_path="code"),
        st.Page(PAGES / "regressions.py", title="Regressions", url_path="regressions"),
        st.Page(PAGES / "runs.py", title="Runs", url_path="runs"),
    ],
    position="top",
)
# A page that shows one thing of many names it in the tab as well: see controls.name_tab.
st.set_page_config(page_title=f"{page.title} · profiler", layout="wide", initial_sidebar_state="collapsed")
st.html(style_sheet())
with errors_shown():  # what no page shows nearer to its cause, such as an index that cannot be opened
    page.run()
