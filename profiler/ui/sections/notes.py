"""Notes on versions and runs: what people wrote, and the form for another."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from profiler.ui import markup
from profiler.ui.data import decisions
from profiler.ui.errors import errors_shown
from profiler.ui.sections import confirmation


def show(place: str, subjects: Mapping[str, str]) -> None:
    """The notes on these subjects, and a form that keeps another.

    `subjects` are run ids and family/version, each with what the page calls it.
    """
    show_kept(place, subjects)
    show_form(place, subjects)


def show_kept(place: str, subjects: Mapping[str, str]) -> None:
    """The notes on these subjects, and what was done with them last."""
    confirmation.show(place)
    notes = decisions.notes(list(subjects))
    for note in notes:
        label = markup.code(subjects[note.subject]) if len(subjects) > 1 else ""
        words = markup.join(filter(None, (label, note.text, markup.muted(note.author))))
        if not decisions.may_decide():
            st.html(markup.paragraph(words))
            continue
        line = markup.paragraph(words)
        if confirmation.line_with_button(line, "Remove", f"{place}_remove_{note.id}"):
            with errors_shown():
                decisions.withdraw_notes(place, note)
                st.rerun()


def show_form(place: str, subjects: Mapping[str, str]) -> None:
    """A button that opens the form for another note; nothing on a server for reading."""
    if not subjects or not decisions.may_decide():
        return
    with st.popover("Add a note"), st.form(f"{place}_note", border=False, clear_on_submit=True):
        names = list(subjects)
        name = names[0]
        if len(names) > 1:
            name = st.selectbox("about", names, format_func=lambda subject: subjects[subject])
        text = st.text_input("note", placeholder="what others should know about it")
        saved = st.form_submit_button("Keep")
        confirmation.author_note()
    if saved:
        with errors_shown():
            decisions.note(place, name, text)
            st.rerun()
