"""Filters whose state is the page's address: the URL wins, and a choice that differs is written back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from profiler.evidence import Evidence
from profiler.ui import markup
from profiler.ui.data.cells import WorkloadOnGpu

_UNNAMED = "–"  # stands in the URL for what no report says
_GPU_LABELS = {Evidence.MEASURED: "GPU", Evidence.STATIC: "architecture", Evidence.MODELLED: "model"}


def name_tab(title: str) -> None:
    """What the browser's tab, its history and a bookmark call this view."""
    st.set_page_config(page_title=f"{title} · profiler")


class Filters:
    """The choices of one page, one query parameter each; `write_url` puts them into the URL.

    All at once and only where one differs from what the URL means, because each change of the URL is a step
    of the browser's history (Streamlit 1.67): opening a page is one step, and each choice is one.
    """

    def __init__(self, page: str) -> None:
        self._page = page
        self._chosen: dict[str, str] = {}  # by parameter, as the URL says it
        self._meant: dict[str, str] = {}  # what the URL says of each parameter, or its silence means
        self._link = st.empty()

    def select(
        self,
        label: str,
        options: Sequence[str],
        name: str,
        default: str | None = None,
        format_option: Callable[[str], str] = str,
    ) -> str:
        """A select box; the default where the URL names no option."""
        first = default if default is not None and default in options else options[0]
        key = self._adopt(name, lambda text: text in options, str, first, first)
        if st.session_state[key] not in options:
            st.session_state[key] = first
        return self._choose(name, st.selectbox(label, options, key=key, format_func=format_option))

    def select_if_several(
        self, label: str, options: Sequence[str], name: str, default: str | None = None
    ) -> str:
        """A select box where there is something to choose; the only option, or "", where there is not."""
        if len(options) < 2:
            return options[0] if options else ""
        return self.select(label, options, name, default)

    def workload_and_gpu(
        self, pairs: Sequence[WorkloadOnGpu], evidence: Evidence, boxes: Sequence[Any] = ()
    ) -> WorkloadOnGpu:
        """Which workload and GPU, asked for only where there are several; "" where no report says."""
        workload, gpu = pairs[0] if pairs else ("", "")
        workloads = list(dict.fromkeys(workload for workload, _ in pairs))
        has_several_gpus = len({gpu for _, gpu in pairs}) > 1
        if len(workloads) < 2 and not has_several_gpus:
            return workload, gpu
        boxes = boxes or st.columns([1, 1, 4], gap="medium")
        if len(workloads) > 1:
            with boxes[0]:
                workload = self._select_named("workload", workloads, "workload")
        gpus = [gpu for other, gpu in pairs if other == workload]
        if has_several_gpus:
            with boxes[1]:
                return workload, self._select_named(_GPU_LABELS[evidence], gpus, "gpu")
        return workload, gpus[0]

    def _select_named(self, label: str, options: Sequence[str], name: str) -> str:
        """A choice among names of which one may be empty, which a URL cannot say."""
        value = self.select(label, [option or _UNNAMED for option in options], name)
        return "" if value == _UNNAMED else value

    def switch(self, label: str, options: Sequence[str], name: str) -> str:
        """A segmented control."""
        key = self._adopt(name, lambda text: text in options, str, options[0], options[0])
        if st.session_state[key] not in options:  # a second click on the chosen one clears it
            st.session_state[key] = options[0]
        value = st.segmented_control(label, options, key=key, label_visibility="collapsed")
        return self._choose(name, value or options[0])

    def evidence(self, kinds: Sequence[Evidence]) -> tuple[Evidence, Sequence[Any]]:
        """Which kind of evidence, asked for where there are several, and the boxes beside the question."""
        if len(kinds) < 2:
            return (kinds[0] if kinds else Evidence.MEASURED), ()
        first, *boxes = st.columns([1.4, 1, 1, 2.6], gap="medium", vertical_alignment="bottom")
        with first:
            return Evidence(self.switch("evidence", [kind.value for kind in kinds], "evidence")), boxes

    def text(self, label: str, name: str, placeholder: str = "", labelled: bool = True) -> str:
        """A text field; empty text leaves the URL."""
        key = self._adopt(name, lambda text: True, str, "", "")
        value = st.text_input(
            label, key=key, placeholder=placeholder, label_visibility="visible" if labelled else "collapsed"
        )
        return self._choose(name, value.strip())

    def multiselect(
        self,
        label: str,
        options: Sequence[str],
        name: str,
        default: Sequence[str],
        format_option: Callable[[str], str] = str,
        only_fitting: Callable[[Sequence[str]], list[str]] = list,
    ) -> list[str]:
        """A multiple choice, comma-separated in the URL; names that are not offered may be typed in.

        `only_fitting` leaves out what another choice of the page has made pointless.
        """
        key = self._adopt(name, lambda text: True, _split, [*default], ",".join(default))
        fitting = only_fitting(st.session_state[key])
        if st.session_state[key] and fitting != st.session_state[key]:
            st.session_state[key] = fitting
        offered = list(dict.fromkeys([*options, *st.session_state[key]]))
        value = st.multiselect(label, offered, key=key, format_func=format_option, accept_new_options=True)
        self._choose(name, ",".join(value))
        return value

    def write_url(self) -> None:
        """Bring the URL in line with the choices; parameters of links, such as a launch, stay.

        A URL that means this view already stays as it is; where it leaves a choice to the default, which new
        data may move, a link to the whole address stands at the top.
        """
        in_url = st.query_params.to_dict()
        whole = {name: text for name, text in {**in_url, **self._chosen}.items() if text}
        if whole != in_url and any(text != self._meant[name] for name, text in self._chosen.items()):
            st.query_params.from_dict(whole)
            in_url = whole
        for name in self._chosen:
            st.session_state[f"{self._page}_{name}_url"] = in_url.get(name, "")
        if whole == in_url:
            self._link.empty()
        else:
            self._link.html(markup.address_link(markup.href(self._page, whole)))

    def _adopt(
        self,
        name: str,
        is_known: Callable[[str], bool],
        read: Callable[[str], object],
        default: object,
        silence: str,
    ) -> str:
        """The widget's key, after it took over what the URL says, if that moved since it was written.

        `silence` is what a URL without the parameter means, as a URL would say it.
        """
        key, last_url_key = f"{self._page}_{name}", f"{self._page}_{name}_url"
        url = st.query_params.get(name, "")
        if key not in st.session_state or url != st.session_state.get(last_url_key, ""):
            st.session_state[key] = read(url) if url and is_known(url) else default
            st.session_state[last_url_key] = url
        self._meant[name] = url or silence
        return key

    def _choose(self, name: str, value: str) -> str:
        self._chosen[name] = value
        return value


def _split(text: str) -> list[str]:
    return [part for part in text.split(",") if part]
