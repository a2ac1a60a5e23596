"""The part of the Diff page about the machine code of two versions that a compiler made and nobody ran."""

from __future__ import annotations

import streamlit as st

from profiler.compare import Comparison
from profiler.sass import CodeNotStored
from profiler.ui import addresses, markup
from profiler.ui.data import code_listings, index
from profiler.ui.views import code_listing, compiled_code, drilldown


def show(now: index.Stamp, found: Comparison, names: tuple[str, str]) -> None:
    """How the code of the two functions compares, and the way to it or to what builds it."""
    st.html(markup.section_head("Machine code", f"static, {found.b.gpu or ''}: {compiled_code.NOTHING_RAN}"))
    a, b = (addresses.parts(name)[0] for name in names)
    if found.a.gpu != found.b.gpu:
        st.html(markup.note(f"Compiled for {found.a.gpu} and {found.b.gpu}: not held beside each other."))
        return
    with index.errors_shown():
        try:
            left, right = code_listings.compiled_pair(now, found, names)
        except CodeNotStored:
            st.html(drilldown.machine_code(a, b, found.b.gpu))
            return
        labels = [code_listing.function_label(place.function) for place in (left, right)]
        kernel = " → ".join(dict.fromkeys(labels)) if all(labels) else ""
        address = addresses.Compiled(left.version, left.arch, right.version, kernel, "sass")
        st.html(compiled_code.summary(kernel, code_listings.aligned(now, left, right), address))
