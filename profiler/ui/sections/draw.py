"""What pages are made of, put there with Streamlit: markup, sections under a head, charts, empty pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import streamlit as st

from profiler.ui import markup

CONFIG = {"displayModeBar": False, "responsive": True}


def html(*parts: object, box: Any = st) -> None:
    """Pieces of markup below each other, the empty ones left out."""
    for part in parts:
        if part:
            box.html(part)


def section(title: object, caption: object = "", *body: object, box: Any = st) -> None:
    """A head with what its numbers are beside it, and what stands below."""
    html(markup.section_head(title, caption), *body, box=box)


def empty_page(title: str, sentence: str, command: str) -> NoReturn:
    """A page with nothing to show: the sentence, and the command that fills it. Ends the page's run."""
    html(markup.page_head(title), markup.empty_page(sentence, command))
    st.stop()


def chart(
    figure: Any, key: str, alt: str, *, box: Any = st, on_click: Callable[[], None] | None = None
) -> None:
    """A figure of Plotly, named for a screen reader; `on_click` is called once a point of it is clicked.

    It comes without Streamlit's theme and without Plotly's bar of buttons.
    """
    clicks = {} if on_click is None else {"on_select": on_click, "selection_mode": "points"}
    box.plotly_chart(figure, theme=None, config=CONFIG, key=key, alt=alt, **clicks)
