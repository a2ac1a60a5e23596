"""What people say of the two sides of a diff: notes on them, and either as the baseline of its family."""

from __future__ import annotations

import streamlit as st

from profiler.compare.comparison import Comparison
from profiler.ui.sections import baseline_pin, notes

PLACE = "diff_sides"


def show(comparison: Comparison) -> None:
    """One row: pin A, pin B, add a note; the notes that are there below it. Nothing for plain files."""
    sides = {"A": comparison.a, "B": comparison.b}
    named = {name: side for name, side in sides.items() if side.family and side.version}
    if not named:
        return
    subjects = {f"{side.family}/{side.version}": f"{name}, {side.version}" for name, side in named.items()}
    with st.container(horizontal=True, gap="small", key=f"{PLACE}_row"):
        for name, side in named.items():
            baseline_pin.show_button(side.family or "", side.version or "", name, f"{PLACE}_{name}")
        notes.show_form(PLACE, subjects)
    notes.show_kept(PLACE, subjects)
