"""The example runs that come with the repository: what they show, where from, and how to hide them."""

from __future__ import annotations

import streamlit as st

from profiler.ui import markup
from profiler.ui.data import current_state, decisions, examples, results
from profiler.ui.data.index import DataVersion
from profiler.ui.errors import errors_shown
from profiler.ui.views import example_list, family_lines

_HIDDEN_HERE = "example_runs_hidden"  # the runs that this session hid, which it may show again


def show(data_version: DataVersion) -> None:
    """A line for each example, and one click that hides all of them; the same place undoes it."""
    runs = examples.of_runs(results.runs(data_version))
    hidden = st.session_state.get(_HIDDEN_HERE, ())
    if not runs and not hidden:
        return
    head_box, button_box = st.columns([5, 1], vertical_alignment="center", gap="medium")
    if not runs:
        head_box.html(example_list.hidden(len(hidden)))
        if decisions.may_decide() and button_box.button("show again", type="tertiary", key="examples_undo"):
            _show_again(hidden)
            st.rerun()
        return
    head_box.html(markup.section_head("Example runs", example_list.CAPTION))
    run_ids = tuple(run.run_id for run in runs)
    if decisions.may_decide():
        button_box.button(
            "hide examples", type="tertiary", key="examples_hide", on_click=_hide, args=(run_ids,)
        )
    families = examples.families(runs)
    table = family_lines.table(current_state.overview(data_version, tuple(families)), families)
    if table is not None:
        st.html(table)
    st.html(example_list.sources(runs))


def _hide(run_ids: tuple[str, ...]) -> None:
    with errors_shown():  # such as a data folder that nobody may write
        examples.hide(run_ids)
        st.session_state[_HIDDEN_HERE] = run_ids


def _show_again(run_ids: tuple[str, ...]) -> None:
    with errors_shown():
        examples.hide(run_ids, undo=True)
        st.session_state.pop(_HIDDEN_HERE, None)
