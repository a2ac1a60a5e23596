"""Filters whose state is the page's address: the URL wins, and a choice that differs is written back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from profiler.evidence import Evidence
from profiler.ui import late_fields, markup
from profiler.ui.addresses import parse_version
from profiler.ui.data import readable_names
from profiler.ui.data.cells import WorkloadOnGpu
from profiler.ui.markup import Html

NONE = "none"  # stands in the URL where nothing is chosen of what could be
_UNNAMED = "–"  # stands in the URL for what no report says
_GOES_ALONG = ("family", "workload", "gpu")  # from page to page, by the links of the menu
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
        self._context: dict[str, str] = {}  # of _GOES_ALONG what this view shows
        self._refusals: list[str] = []  # what the URL asks for and this view has not
        self._top = st.empty()

    def select(
        self,
        label: str,
        options: Sequence[str],
        name: str,
        default: str | None = None,
        format_option: Callable[[str], str] = str,
    ) -> str:
        """A select box; the default where the URL names no option, nor a part that only one option has."""
        first = default if default is not None and default in options else options[0]
        key = self._adopt(
            name, lambda text: self._meant_option(label, name, text, options, first), first, first
        )
        if st.session_state[key] not in options:
            st.session_state[key] = first
        return self._choose(
            name,
            late_fields.choose(key, lambda: st.selectbox(label, options, key=key, format_func=format_option)),
        )

    def _meant_option(
        self, label: str, name: str, text: str, options: Sequence[str], shown: str
    ) -> str | None:
        """The option that the URL means; where none is, the page says what it asked for."""
        option = readable_names.meant_name(text, options)
        if option is None and text != _UNNAMED and name in (*_GOES_ALONG, "launch"):
            self._refusals.append(readable_names.refusal(label, text, options, shown))
        return option

    def select_if_several(
        self, label: str, options: Sequence[str], name: str, default: str | None = None
    ) -> str:
        """A select box where there is something to choose; the only option, or "", where there is not."""
        if len(options) < 2:
            return self._only(label, name, options[0] if options else "")
        return self.select(label, options, name, default)

    def _only(self, label: str, name: str, option: str) -> str:
        """What is shown without a question, since there is no other; a URL may have asked for another."""
        asked = st.query_params.get(name, "")
        if name in _GOES_ALONG:
            if asked and readable_names.meant_name(asked, [option]) is None:
                known = [option] if option else []
                self._refusals.append(readable_names.refusal(label, asked, known))
            self._context[name] = option
        return option

    def workload_and_gpu(
        self, pairs: Sequence[WorkloadOnGpu], evidence: Evidence, boxes: Sequence[Any] = ()
    ) -> WorkloadOnGpu:
        """Which workload and GPU, asked for only where there are several; "" where no report says."""
        workload, gpu = pairs[0] if pairs else ("", "")
        workloads = list(dict.fromkeys(workload for workload, _ in pairs))
        has_several_gpus = len({gpu for _, gpu in pairs}) > 1
        gpu_label = _GPU_LABELS[evidence]
        if len(workloads) < 2 and not has_several_gpus:
            self._only("workload", "workload", workload)
            if evidence is Evidence.MEASURED:
                self._only(gpu_label, "gpu", gpu)
            return workload, gpu
        boxes = boxes or st.columns([1, 1, 4], gap="medium")
        if len(workloads) > 1:
            with boxes[0]:
                workload = self._select_named("workload", workloads, "workload")
        else:
            self._only("workload", "workload", workload)
        gpus = [gpu for other, gpu in pairs if other == workload]
        gpu = gpus[0]
        if has_several_gpus:
            with boxes[1]:
                gpu = self._select_named(gpu_label, gpus, "gpu")
        if evidence is not Evidence.MEASURED:
            self._context.pop("gpu", None)  # an architecture or a model is no GPU of other pages
        return workload, gpu

    def _select_named(self, label: str, options: Sequence[str], name: str) -> str:
        """A choice among names of which one may be empty, which a URL cannot say."""
        value = self.select(label, [option or _UNNAMED for option in options], name)
        return "" if value == _UNNAMED else value

    def switch(self, label: str, options: Sequence[str], name: str, default: str | None = None) -> str:
        """A segmented control; the default, else the first option, where the URL names none."""
        first = default if default is not None and default in options else options[0]
        key = self._adopt(name, lambda text: text if text in options else None, first, first)
        if st.session_state[key] not in options:  # a second click on the chosen one clears it
            st.session_state[key] = first
        draw = partial(st.segmented_control, label, options, key=key, label_visibility="collapsed")
        value = late_fields.choose(key, draw, options)
        return self._choose(name, value or first)

    def chips(self, label: str, options: Sequence[str], name: str, default: str = NONE) -> str:
        """Chips of which one may be chosen; "" where none is, of which a URL says NONE.

        A second click on the chosen one chooses none.
        """
        key = self._adopt(
            name,
            lambda text: text if text in (NONE, *options) else None,
            default if default in options else None,
            default if default in options else NONE,
        )
        if st.session_state[key] not in options:
            st.session_state[key] = None
        draw = partial(st.pills, label, options, key=key, label_visibility="collapsed")
        value = late_fields.choose(key, draw, options)
        self._choose(name, value or NONE)
        return value or ""

    def parameter(self, name: str) -> str:
        """What the URL says of a choice that no control shows, such as a part that was zoomed to."""
        value = st.query_params.get(name, "")
        self._meant[name] = value
        return self._choose(name, value)

    def address(self, **choices: str) -> str:
        """The address of this view as far as it is chosen yet, with other choices; "" leaves one out."""
        return markup.href(self._page, {**self._chosen, **choices})

    def evidence(self, kinds: Sequence[Evidence]) -> tuple[Evidence, Sequence[Any]]:
        """Which kind of evidence, asked for where there are several, and the boxes beside the question."""
        if len(kinds) < 2:
            return self.kind_of_evidence(kinds), ()
        first, *boxes = st.columns([1.4, 1, 1, 2.6], gap="medium", vertical_alignment="bottom")
        with first:
            return self.kind_of_evidence(kinds), boxes

    def kind_of_evidence(self, kinds: Sequence[Evidence], default: Evidence | None = None) -> Evidence:
        """Which kind of evidence, asked for where there are several.

        The page opens with the first, or with `default` where it is among them.
        """
        if len(kinds) < 2:
            return kinds[0] if kinds else Evidence.MEASURED
        chosen = default.value if default is not None and default in kinds else None
        return Evidence(self.switch("evidence", [kind.value for kind in kinds], "evidence", chosen))

    def text(self, label: str, name: str, placeholder: str = "", labelled: bool = True) -> str:
        """A text field; empty text leaves the URL."""
        key = self._adopt(name, str, "", "")
        visibility = "visible" if labelled else "collapsed"
        draw = partial(st.text_input, label, key=key, placeholder=placeholder, label_visibility=visibility)
        value = late_fields.choose(key, draw)
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
        key = self._adopt(name, _split, [*default], ",".join(default))
        fitting = only_fitting(st.session_state[key])
        if st.session_state[key] and fitting != st.session_state[key]:
            st.session_state[key] = fitting
        offered = list(dict.fromkeys([*options, *st.session_state[key]]))
        draw = partial(
            st.multiselect, label, offered, key=key, format_func=format_option, accept_new_options=True
        )
        value = late_fields.choose(key, draw)
        self._choose(name, ",".join(value))
        return value

    def put(self, name: str, value: str) -> None:
        """Make a choice for a control that is drawn later: from a callback, before the page runs again."""
        st.session_state[f"{self._page}_{name}"] = value

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
        address = "" if whole == in_url else markup.href(self._page, whole)
        if self._refusals:
            self._top.html(Html("".join(markup.note(line) for line in self._refusals)))
        st.html(markup.view_state(address, self._shown_context()))

    def _shown_context(self) -> dict[str, str]:
        """Family, workload and GPU of this view; the family of a pair is that of its sides."""
        names = (self._chosen.get(name, "") for name in ("b", "a"))
        family = next((parse_version(name).family for name in names if "/" in name), "")
        context = {"family": family, **self._context}
        return {name: text for name, text in context.items() if text and text != _UNNAMED}

    def _adopt(
        self,
        name: str,
        read: Callable[[str], object],
        default: object,
        silence: str,
    ) -> str:
        """The widget's key, after it took over what the URL says, if that moved since it was written.

        `read` gives None for a text that means nothing here. `silence` is what a URL without the parameter
        means, as a URL would say it.
        """
        key, last_url_key = f"{self._page}_{name}", f"{self._page}_{name}_url"
        # A form sends a name once for each tick.
        url = ",".join(st.query_params.get_all(name))
        if key not in st.session_state or url != st.session_state.get(last_url_key, ""):
            value = read(url) if url else None
            st.session_state[key] = default if value is None else value
            st.session_state[last_url_key] = url
        self._meant[name] = url or silence
        return key

    def _choose(self, name: str, value: str) -> str:
        self._chosen[name] = value
        if name in _GOES_ALONG:
            self._context[name] = value
        return value


def _split(text: str) -> list[str]:
    return [part for part in text.split(",") if part]
