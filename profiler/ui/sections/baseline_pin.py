"""The pinned baselines of a family: which there are, pinning another, and taking one away."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from profiler.ui import markup
from profiler.ui.data import decisions, index, lineages
from profiler.ui.errors import errors_shown
from profiler.ui.sections import confirmation

PLACE = "pin"


def show_button(family: str, name: str, label: str, place: str) -> None:
    """One click that pins a run or version as the baseline of its whole family; confirmed in its place."""
    if not decisions.may_decide():
        return
    is_pinned = any(
        pin.workload is None and pin.gpu is None and name in (pin.run_id, pin.version, pin.name)
        for pin in decisions.pins(family)
    )
    help_words = f"gates and Regressions compare versions of {family} with it, on every workload"
    clicked = st.button(
        f"{label}: pinned" if is_pinned else f"Pin {label} as baseline",
        key=f"{place}_pin_{name}",
        disabled=is_pinned,
        help=help_words,
    )
    if clicked:
        with errors_shown():
            decisions.pin(place, family, name)
            st.rerun()
    confirmation.show(place)


def show(family: str, versions: Sequence[str]) -> None:
    """The pins of a family, each with a way to take it away, and a form that pins another version or run."""
    confirmation.show(PLACE)
    pins = decisions.pins(family)
    for pin in pins:
        words = markup.join((markup.code(pin.name), markup.muted(f"{pin.scope}; {pin.words}")))
        if not decisions.may_decide():
            st.html(markup.paragraph(words))
            continue
        if confirmation.line_with_button(markup.paragraph(words), "Unpin", f"unpin_{pin.id}"):
            with errors_shown():
                decisions.unpin(PLACE, pin)
                st.rerun()
    if not pins:
        st.html(markup.note("none is pinned: versions are compared with their own past"))
    if not decisions.may_decide():
        return
    with st.form(f"pin_{family}", border=False):
        name_box, why_box, save_box = st.columns([3, 4, 1], vertical_alignment="bottom", gap="small")
        likely = lineages.best_version(index.current_version(), family)
        name = name_box.selectbox(
            "version, or a run by its id",
            versions,
            index=versions.index(likely) if likely in versions else 0,
            accept_new_options=True,
        )
        why = why_box.text_input("why it is the baseline", placeholder="may be left out")
        saved = save_box.form_submit_button("Pin", width="stretch")
    if saved:
        with errors_shown():
            decisions.pin(PLACE, family, name or "", why=why)
            st.rerun()
    confirmation.author_note()
