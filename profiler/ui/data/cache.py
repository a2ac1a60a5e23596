"""How long an answer is kept: all visitors share it until its arguments change, of which one is the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import streamlit as st

MAX_ENTRIES = 64  # finished answers of each kind kept in memory

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


def cached(
    most: int = MAX_ENTRIES, *, saying: str = "", seconds: float | None = None
) -> Callable[[Callable[Asked, Answer]], Callable[Asked, Answer]]:
    """Keep the `most` last answers of a function by its arguments, for `seconds` or for good.

    Arguments whose name begins with an underscore tell no answers apart. `saying` is what a page shows while
    the function works.
    """
    return st.cache_resource(show_spinner=saying or False, max_entries=most, ttl=seconds)
