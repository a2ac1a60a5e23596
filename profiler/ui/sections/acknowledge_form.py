"""Letting a group of regressions pass, or one cell of it: the form, and taking it back."""

from __future__ import annotations

import streamlit as st

from profiler.regressions.groups import RegressionGroup
from profiler.regressions.regression import Regression
from profiler.ui import markup
from profiler.ui.data import decisions
from profiler.ui.data.index import DataVersion
from profiler.ui.errors import errors_shown
from profiler.ui.sections import confirmation
from profiler.ui.views import regression_groups

PLACE = "acknowledge"


def show(data_version: DataVersion, group: RegressionGroup, chosen: Regression) -> None:
    """The form for a group; `chosen` is the row that is shown whole, which may pass alone."""
    rows = [one for one in group.regressions if not one.became_wrong]
    if not decisions.may_decide():
        return
    if not rows:
        st.html(markup.note("Wrong results cannot be acknowledged: their speed does not count."))
        return
    st.html(markup.section_head("Acknowledge", "acknowledge it: it is listed and not counted"))
    all_words, alone = f"all {len(rows)} rows of {group.subject}", regression_groups.row_words(chosen)
    with st.form(f"acknowledge_{group.key}", border=False):
        options = [all_words, alone] if len(rows) > 1 and not chosen.became_wrong else [all_words]
        what = st.radio("what", options, label_visibility="collapsed") if len(options) > 1 else all_words
        why = st.text_input("reason", placeholder="why it may pass")
        until_box, limit_box, save_box = st.columns([3, 2, 2], vertical_alignment="bottom", gap="small")
        until = until_box.text_input("until", placeholder="2026-12-31 or a run; no end")
        limit = limit_box.text_input("up to", placeholder="8 %; any size")
        saved = save_box.form_submit_button("Acknowledge", width="stretch")
    if saved:
        with errors_shown():
            chosen_rows = rows if what == all_words else [chosen]
            decisions.acknowledge_all(data_version, PLACE, chosen_rows, why=why, until=until, limit=limit)
            st.rerun()
    confirmation.author_note(chosen.command)


def show_acknowledged(groups: tuple[RegressionGroup, ...]) -> None:
    """What somebody let pass: who, until when and why, each with Undo."""
    for number, group in enumerate(groups):
        if not decisions.may_decide():
            st.html(regression_groups.acknowledged_line(group))
            continue
        line = regression_groups.acknowledged_line(group)
        if confirmation.line_with_button(line, "Undo", f"withdraw_{number}_{group.key}"):
            with errors_shown():
                decisions.withdraw_group(PLACE, group)
                st.rerun()
