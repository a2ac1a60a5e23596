"""Filters whose state is the page's address: the URL wins, a choice that differs is written back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from profiler.evidence import Evidence
from profiler.ui import markup

_UNNAMED = "–"  # stands in the URL for what no report says


def name_tab(words: str) -> None:
    """What the browser's tab, its history and a bookmark call this view."""
    st.set_page_config(page_title=f"{words} · profiler")


class View:
    """The choices of one page, one query parameter each; `write` puts them into the URL.

    All at once and only where one differs from what the URL means, because each change of the URL is a step
    of the browser's history (Streamlit 1.67): opening a page is one step, and each choice is one.
    """

    def __init__(self, page: str) -> None:
        self._page = page
        self._chosen: dict[str, str] = {}
        self._meant: dict[str, str] = {}  # what the URL says of each, or its silence means
        self._link = st.empty()

    def choose(
        self,
        label: str,
        options: Sequence[str],
        name: str,
        default: str | None = None,
        shown: Callable[[str], str] = str,
    ) -> str:
        """A select box; the default where the URL says what nobody offers."""
        first = default if default is not None and default in options else options[0]
        key = self._adopt(name, lambda text: text in options, str, first, first)
        if st.session_state[key] not in options:
            st.session_state[key] = first
        return self._keep(name, st.selectbox(label, options, key=key, format_func=shown))

    def any_of(self, label: str, options: Sequence[str], name: str, default: str | None = None) -> str:
        """A select box where there is something to choose; the only option, or "", where there is not."""
        if len(options) < 2:
            return options[0] if options else ""
        return self.choose(label, options, name, default)

    def cell(
        self, cells: Sequence[tuple[str, str]], place: str = "GPU", boxes: Sequence[Any] = ()
    ) -> tuple[str, str]:
        """Which workload and GPU, asked for only where there are several; "" where no report says."""
        workload, gpu = cells[0] if cells else ("", "")
        workloads = list(dict.fromkeys(one for one, _ in cells))
        if max(len(workloads), len({one for _, one in cells})) < 2:
            return workload, gpu
        boxes = boxes or st.columns([1, 1, 4], gap="medium")
        if len(workloads) > 1:
            with boxes[0]:
                workload = self._named("workload", workloads, "workload")
        gpus = [one for other, one in cells if other == workload]
        if len({one for _, one in cells}) > 1:
            with boxes[1]:
                gpu = self._named(place, gpus, "gpu")
        else:
            gpu = gpus[0]
        return workload, gpu

    def _named(self, label: str, options: Sequence[str], name: str) -> str:
        """A choice among names of which one may be empty, which a URL cannot say."""
        value = self.choose(label, [one or _UNNAMED for one in options], name)
        return "" if value == _UNNAMED else value

    def switch(self, label: str, options: Sequence[str], name: str) -> str:
        """A segmented control."""
        key = self._adopt(name, lambda text: text in options, str, options[0], options[0])
        if st.session_state[key] not in options:  # a second click on the chosen one clears it
            st.session_state[key] = options[0]
        value = st.segmented_control(label, options, key=key, label_visibility="collapsed")
        return self._keep(name, value or options[0])

    def evidence(self, kinds: Sequence[Evidence]) -> tuple[Evidence, Sequence[Any]]:
        """Which kind of evidence, asked for where there are several, and the boxes beside the question."""
        if len(kinds) < 2:
            return (kinds[0] if kinds else Evidence.MEASURED), ()
        first, *boxes = st.columns([1.4, 1, 1, 2.6], gap="medium", vertical_alignment="bottom")
        with first:
            return Evidence(self.switch("evidence", [kind.value for kind in kinds], "evidence")), boxes

    def words(self, label: str, name: str, placeholder: str = "", labelled: bool = True) -> str:
        """A text field; empty text leaves the URL."""
        key = self._adopt(name, lambda text: True, str, "", "")
        value = st.text_input(
            label, key=key, placeholder=placeholder, label_visibility="visible" if labelled else "collapsed"
        )
        return self._keep(name, value.strip())

    def several(
        self,
        label: str,
        options: Sequence[str],
        name: str,
        default: Sequence[str],
        shown: Callable[[str], str] = str,
        fitting: Callable[[Sequence[str]], list[str]] = list,
    ) -> list[str]:
        """A multiple choice, comma-separated in the URL; names that are not offered may be typed in.

        `fitting` leaves out what another choice of the page has made pointless.
        """
        key = self._adopt(name, lambda text: True, _split, [*default], ",".join(default))
        if (kept := fitting(st.session_state[key])) != st.session_state[key] and st.session_state[key]:
            st.session_state[key] = kept
        offered = list(dict.fromkeys([*options, *st.session_state[key]]))
        value = st.multiselect(label, offered, key=key, format_func=shown, accept_new_options=True)
        self._keep(name, ",".join(value))
        return value

    def write(self) -> None:
        """Bring the URL in line with the choices; parameters of links, such as a launch, stay.

        A URL that means this view already stays as it is; where it leaves a choice to the default, which new
        data may move, a link to the whole address stands at the top.
        """
        there = st.query_params.to_dict()
        wanted = {name: text for name, text in {**there, **self._chosen}.items() if text}
        if wanted != there and any(text != self._meant[name] for name, text in self._chosen.items()):
            st.query_params.from_dict(wanted)
            there = wanted
        for name in self._chosen:
            st.session_state[f"{self._page}_{name}_url"] = there.get(name, "")
        if wanted == there:
            self._link.empty()
        else:
            self._link.html(markup.address_link(markup.href(self._page, wanted)))

    def _adopt(
        self,
        name: str,
        known: Callable[[str], bool],
        read: Callable[[str], object],
        default: object,
        silence: str,
    ) -> str:
        """The widget's key, after it took over what the URL says, if that moved since it was written.

        `silence` is what a URL without the parameter means, as a URL would say it.
        """
        key, seen = f"{self._page}_{name}", f"{self._page}_{name}_url"
        url = st.query_params.get(name, "")
        if key not in st.session_state or url != st.session_state.get(seen, ""):
            st.session_state[key] = read(url) if url and known(url) else default
            st.session_state[seen] = url
        self._meant[name] = url or silence
        return key

    def _keep(self, name: str, value: str) -> str:
        self._chosen[name] = value
        return value


def _split(text: str) -> list[str]:
    return [part for part in text.split(",") if part]
