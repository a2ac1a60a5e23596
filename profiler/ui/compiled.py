"""The part of the Diff page about the machine code of two versions that a compiler made and nobody ran."""

from __future__ import annotations

import streamlit as st

from profiler.compare.comparison import Comparison
from profiler.sass.from_runs import NotKept
from profiler.ui import addresses, code_data, code_view, compiled_view, data, drill_view, markup


def show(now: data.Stamp, found: Comparison, names: tuple[str, str]) -> None:
    """How the code of the two functions compares, and the way to it or to what builds it."""
    st.html(markup.section("Machine code", f"static, {found.b.gpu or ''}: {compiled_view.NOTHING_RAN}"))
    a, b = (addresses.parts(name)[0] for name in names)
    if found.a.gpu != found.b.gpu:
        st.html(markup.note(f"Compiled for {found.a.gpu} and {found.b.gpu}: not held beside each other."))
        return
    with data.errors_shown():
        try:
            left, right = code_data.compiled_pair(now, found, names)
        except NotKept:
            st.html(drill_view.machine_code(a, b, found.b.gpu))
            return
        labels = [code_view.function_label(place.function) for place in (left, right)]
        kernel = " → ".join(dict.fromkeys(labels)) if all(labels) else ""
        address = addresses.Compiled(left.version, left.arch, right.version, kernel, "sass")
        st.html(compiled_view.summary(kernel, code_data.aligned(now, left, right), address))
