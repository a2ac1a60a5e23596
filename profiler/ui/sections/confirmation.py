"""What was decided last, said in the place where it was decided, with the way back."""

from __future__ import annotations

import streamlit as st

from profiler.ui import markup
from profiler.ui.data import decisions
from profiler.ui.errors import errors_shown


def show(place: str) -> None:
    """The confirmation of this place, with Undo; nothing where the last decision was made elsewhere."""
    done = decisions.done(place)
    if done is None:
        return
    is_undone = done.undo is decisions.forget_done
    words = markup.grey_strip((markup.escaped(done.words),))
    if line_with_button(words, "Close" if is_undone else "Undo", f"{place}_undo"):
        with errors_shown():
            done.undo()
            decisions.forget_done()
            st.rerun()


def line_with_button(words: markup.Html, label: str, key: str) -> bool:
    """Words with a button at their end, which goes below them on a phone; whether it was pressed."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.html(words, width="stretch")
        return st.button(label, key=key, width="content")


def author_note(command: str = "") -> None:
    """By whom a decision will be, and the command that does the same."""
    words = [markup.escaped(f"Recorded as by {decisions.author().words}.")]
    if command:
        words += [markup.escaped("For one row the same as"), markup.code(command)]
    st.html(markup.note(markup.join(words)))
