"""A chart on a page: without Streamlit's theme and Plotly's bar of buttons, named for a screen reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

CONFIG = {"displayModeBar": False, "responsive": True}


def show_chart(
    figure: Any, key: str, alt: str, *, box: Any = st, on_click: Callable[[], None] | None = None
) -> None:
    """Draw a figure of Plotly in a place of the page; `on_click` is called once a point of it is clicked."""
    clicks = {} if on_click is None else {"on_select": on_click, "selection_mode": "points"}
    box.plotly_chart(figure, theme=None, config=CONFIG, key=key, alt=alt, **clicks)
