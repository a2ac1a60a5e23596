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
    except BadKernelPattern as error:
        # The command line has an option where the page has a field.
        st.html(markup.error_box(f"kernels {error.pattern}: {error.reason}"))
    except ProfilerError as error:
        st.html(markup.error_box(str(error)))
