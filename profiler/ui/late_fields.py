"""Fields that a browser gets after all else of their page, each in the place where the page asks for it.

A browser that gets its first fields is busy with them for a third of a second, in which it neither shows
texts nor asks for the code of charts. So in a session's first run the fields of a page that calls `wait`
come after everything else, and what stands below its chart after the chart is drawn. In later runs they do
not: what a browser shows must not vanish for a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from profiler.ui import first_chart, markup

Chosen = TypeVar("Chosen")


@dataclass
class _Fields:
    """What draws the fields that wait, in the order in which the page asked for them."""

    token: str  # that the browser comes with when the chart is drawn
    wait: bool = False
    is_popover: bool = False  # has one place for all its fields
    draws: list[Callable[[], object]] = field(default_factory=list)


_fields: ContextVar[_Fields | None] = ContextVar("fields that may wait", default=None)


@contextmanager
def may_wait(is_first_run: bool) -> Iterator[None]:
    """Run a page, whose fields may wait in a session's first run until it calls `draw`.

    After an error that keeps it from that the page is run again, for to Streamlit a field that is drawn out
    here is another one than the page's own.
    """
    fields = _Fields(first_chart.expect()) if is_first_run else None
    token = _fields.set(fields)
    try:
        yield
        if fields is not None and fields.draws:
            st.rerun()
    finally:
        _fields.reset(token)
        if fields is not None:
            first_chart.forget(fields.token)


def wait() -> None:
    """Let the fields that the page asks for from here on wait."""
    fields = _fields.get()
    if fields is not None:
        fields.wait = True


def wait_for_chart() -> None:
    """Where fields wait, send nothing until the browser has drawn the chart that was sent last.

    What comes before a chart is drawn is drawn before it.
    """
    fields = _fields.get()
    if fields is not None and fields.draws:
        first_chart.wait(fields.token)


def draw() -> None:
    """Draw the fields that wait, at the end of a page or before its `st.stop`; later ones do not wait."""
    fields = _fields.get()
    if fields is None or not fields.draws:
        return
    fields.wait = False
    for draw_field in fields.draws:
        draw_field()
    fields.draws.clear()


def choose(key: str, draw_field: Callable[[], Chosen], labels: Sequence[str] = ()) -> Chosen:
    """What is chosen in a field, by its key in the session's state; `draw_field` draws it and says the same.

    `labels` are those of the buttons, where the field is a row of them: their place is kept meanwhile.
    """
    fields = _fields.get()
    if fields is None or not fields.wait:
        return draw_field()
    late = draw_field if fields.is_popover else partial(_draw_in, _place(labels, fields.token), draw_field)
    fields.draws.append(late)
    chosen: Chosen = st.session_state[key]
    return chosen


@contextmanager
def popover(label: str) -> Iterator[None]:
    """A popover that has nothing but fields."""
    fields = _fields.get()
    if fields is None or not fields.wait:
        with st.popover(label):
            yield
        return
    place, inside = _place([label], fields.token), _Fields(fields.token, wait=True, is_popover=True)
    fields.draws.append(partial(_draw_popover, place, label, inside.draws))
    token = _fields.set(inside)
    try:
        yield
    finally:
        _fields.reset(token)


def _place(labels: Sequence[str], token: str) -> Any:
    """An element as high as the field that will take its place, so that nothing moves then."""
    place = st.empty()
    place.html(markup.field_place(labels, token), width="content" if labels else "stretch")
    return place


def _draw_in(place: Any, draw_field: Callable[[], object]) -> None:
    with place:
        draw_field()


def _draw_popover(place: Any, label: str, draws: Sequence[Callable[[], object]]) -> None:
    with place.popover(label):
        for draw_field in draws:
            draw_field()
