"""The families that mix the reports of several folders, each with the decision that parts them."""

from __future__ import annotations

import streamlit as st

from profiler.ui.data import results
from profiler.ui.data.index import DataVersion
from profiler.ui.errors import errors_shown
from profiler.ui.views import run_list


def show(data_version: DataVersion, family: str | None) -> None:
    """A note for each such family, or for the one that was chosen; its button draws the page anew."""
    for mix in results.mixed_families(data_version):
        if family and mix.family != family:
            continue
        st.html(run_list.mixed_family(mix))
        if mix.folders and st.button("Give each folder its own family", key=f"runs_part_{mix.family}"):
            with errors_shown():
                results.part_by_folder(mix.family)
                st.rerun()
