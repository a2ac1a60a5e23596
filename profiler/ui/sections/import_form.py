"""The import of the Runs page: the form, what the last import did, and the bundles that cannot be read."""

from __future__ import annotations

import streamlit as st

from profiler.ui import markup
from profiler.ui.data import decisions, results, uploads
from profiler.ui.errors import errors_shown
from profiler.ui.sections import draw
from profiler.ui.views import run_list

DEFAULT_FAMILY = "imported"


def show() -> None:
    """The form; an import that succeeded draws the page anew. On a server for reading there is none."""
    if not decisions.may_decide():
        draw.html(*run_list.unreadable(results.unreadable_bundles()))
        return
    st.html(
        markup.section_head(
            "Import", "reports (.ncu-rep, .csv), benchmark times (.json, .csv), bundles (.zip)"
        )
    )
    with st.form("runs_import", clear_on_submit=True, border=False):
        # No list of types: the browser refuses endings with a hyphen (Streamlit 1.67).
        files = st.file_uploader(
            "reports", accept_multiple_files=True, label_visibility="collapsed", key="runs_files"
        )
        family_box, version_box, submit_box = st.columns([4, 4, 2], vertical_alignment="bottom")
        family = family_box.text_input("family", placeholder=DEFAULT_FAMILY, key="runs_import_family")
        version = version_box.text_input("version", placeholder="the file's name", key="runs_import_version")
        submitted = submit_box.form_submit_button("Import", width="stretch")
    if submitted:
        with st.spinner("Importing …"), errors_shown():
            uploads.import_uploads(files, family or DEFAULT_FAMILY, version or None)
            st.rerun()
    draw.html(
        *run_list.not_taken(uploads.not_taken()),
        *run_list.import_summary(uploads.last_import()),
        *run_list.unreadable(results.unreadable_bundles()),
    )
