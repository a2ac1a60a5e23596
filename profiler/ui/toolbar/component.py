"""The component at the right of the menu: how it is mounted, and what it asks the server."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import streamlit as st

from profiler.errors import ProfilerError
from profiler.ui import markup
from profiler.ui.data import finder, index, readable_names, results
from profiler.ui.errors import errors_shown

# Joined in this order into the one module that the browser loads.
_SCRIPTS = (
    "navigation",
    "theme",
    "keys",
    "ticks",
    "palette",
    "exports",
    "zoom",
    "panels",
    "folds",
    "drawn",
    "toolbar",
)
_KEY = "toolbar"
_LOOKS_FOR_RUNS_EVERY_S = 30.0


def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


_component = st.components.v2.component(
    "profiler_toolbar",
    html=_part("toolbar.html"),
    css=_part("toolbar.css"),
    js="\n".join(_part(f"{name}.js") for name in _SCRIPTS),
    isolate_styles=False,
)


@st.fragment
def mount(pages: Sequence[tuple[str, str]], page: str) -> None:
    """Draw the toolbar.

    `pages` are the titles of all pages with their addresses, "" for the first; `page` is the address of
    the page that is drawn.

    A fragment: what is typed into the palette draws no page anew.
    """
    asked = _asked()
    found: dict[str, Any] | None = None
    if asked is not None:
        with errors_shown():
            entries = finder.entries(index.current_version(), tuple(pages))
            groups = finder.find(entries, asked)
            found = {"text": asked, "groups": [_group(name, group) for name, group in groups.items()]}
    _component(
        key=_KEY,
        data={"pages": [address for _, address in pages], "page": page, "found": found},
        height="content",
        on_query_change=_ignore,
    )


def _asked() -> str | None:
    """What was typed since the last run; None where nothing was."""
    state = st.session_state.get(_KEY)
    query = state.get("query") if state else None
    return str(query["text"]) if isinstance(query, dict) and "text" in query else None


def _ignore() -> None:
    """What is asked is read from the component's state where the answer is made."""


def _group(name: str, entries: Sequence[finder.Entry]) -> dict[str, Any]:
    listed = [{"label": entry.label, "detail": entry.detail, "href": entry.href} for entry in entries]
    return {"name": name, "entries": listed}


def put_address_right() -> None:
    """Take abbreviated names in the address for the only ones that they fit; say which fit none."""
    if st.query_params:
        for line in readable_names.put_names_right(index.current_version()):
            st.html(markup.note(line))


@st.fragment(run_every=_LOOKS_FOR_RUNS_EVERY_S)
def announce_new_runs() -> None:
    """Say so when runs arrive while a page is open; the page stays as it is until it is asked for them."""
    with suppress(ProfilerError):  # an index that cannot be opened is said where the page would stand
        _announce(index.current_version())


def _announce(data_version: index.DataVersion) -> None:
    known = st.session_state.get("known_data_version")
    if known == data_version:
        return
    run_ids = results.run_ids(data_version)
    known_runs = st.session_state.get("known_runs")
    st.session_state["known_data_version"] = data_version
    st.session_state["known_runs"] = frozenset(run_ids)
    if known_runs is None:
        return
    new = [run_id for run_id in run_ids if run_id not in known_runs]
    if new:
        what = f"run {new[0]}" if len(new) == 1 else f"{len(new)} runs"
        st.toast(f"New: {what} · [open](./runs?run={new[0]}) · [show here](#refresh)", duration="long")
