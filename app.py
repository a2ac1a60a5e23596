"""The dashboard: page config and navigation, nothing else."""

import streamlit as st

from profiler.ui.data import errors_shown
from profiler.ui.theme import style_sheet

page = st.navigation(
    [
        st.Page("profiler/ui/overview.py", title="Overview", url_path="start", default=True),
        # Streamlit serves the default page at / alone: its name, typed, is a page that the menu leaves out.
        st.Page("profiler/ui/overview.py", title="Overview", url_path="overview", visibility="hidden"),
        st.Page("profiler/ui/lineage.py", title="Lineage", url_path="lineage"),
        st.Page("profiler/ui/trends.py", title="Trends", url_path="trends"),
        st.Page("profiler/ui/diff.py", title="Diff", url_path="diff"),
        st.Page("profiler/ui/code.py", title="Code", url_path="code"),
        st.Page("profiler/ui/regressions.py", title="Regressions", url_path="regressions"),
        st.Page("profiler/ui/runs.py", title="Runs", url_path="runs"),
    ],
    position="top",
)
# A page that shows one thing of many names it in the tab as well: see controls.name_tab.
st.set_page_config(page_title=f"{page.title} · profiler", layout="wide", initial_sidebar_state="collapsed")
st.html(style_sheet())
with errors_shown():  # what no page shows nearer to its cause, such as an index that cannot be opened
    page.run()
