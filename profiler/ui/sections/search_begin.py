"""The page Search where there is no search yet: what one is, the command that begins it, what it shows."""

from __future__ import annotations

import streamlit as st

from profiler.errors import ProfilerError
from profiler.ui import markup
from profiler.ui.data import searches
from profiler.ui.sections import draw

_EVERY_S = 5.0
_WHAT = (
    "A search looks for a faster kernel, without a GPU. It starts from a version of the catalogue. A "
    "generator makes one child of a candidate at a time; the judge says whether it is right and how long it "
    "would take; the best three stay, and one is replaced only by what is better by more than the model's "
    "error."
)
# What the page has then, in its order.
_PARTS = (
    ("progress", "the time of every candidate, wrong ones as marks, the best so far against the targets"),
    ("who came from whom", "parents and children, with what was changed on the edges"),
    ("elites", "the best three, with what the compiler and the model count of each"),
    (
        "refused",
        "candidates that are wrong or do not compile, by the stage that caught them, with the reason",
    ),
    (
        "insights",
        "what each kind of advice brought to children that were shown it, compared with a control without",
    ),
    ("a candidate", "its difference from its parent, and the command that makes it a version"),
)


def show() -> None:
    """Say what a search is; the page draws itself anew once there is one."""
    draw.html(markup.page_head("Search", "no search yet"), markup.paragraph(_WHAT))
    st.html(
        markup.section_head(
            "Begin one", "half an hour in the background; the first candidate is judged in minutes"
        )
    )
    try:
        st.code(searches.begin_command(), language=None, wrap_lines=True)
    except ProfilerError as error:
        st.html(markup.error_box(str(error)))
    st.html(
        markup.note(
            markup.backticks_as_code(
                "In the folder of this dashboard. `run` in place of `start` does it in the foreground; "
                "`status` says where it stands, `stop` ends it. A language model or a script can be the "
                "generator: `profiler search --help`."
            )
        )
    )
    draw.section("What will be here", "", markup.fact_table("what a search shows", _PARTS))
    st.fragment(_wait, run_every=_EVERY_S)()


def _wait() -> None:
    """Draw the whole page once a search has begun."""
    if searches.ids():
        st.rerun()
