"""An error that a user can mend, shown in the place of what failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from profiler.compare.match_launches import BadKernelPattern
from profiler.errors import ProfilerError
from profiler.ui import markup


@contextmanager
def errors_shown() -> Iterator[None]:
    """Show such an error where it happened; what stands above and below stays."""
    try:
        yield
    except ProfilerError as error:
        st.html(markup.error_box(message_on_page(error)))


def message_on_page(error: ProfilerError) -> str:
    """The error's text; of a kernel filter without the option that only the command line has."""
    if isinstance(error, BadKernelPattern):
        return f"kernels {error.pattern}: {error.reason}"  # the label of the page's field
    return str(error)
