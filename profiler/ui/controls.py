"""Filters whose state is the page's address: the URL wins, and a choice that differs is written back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from profiler.evidence.naming import brief_list
from profiler.evidence.values import Evidence
from profiler.ui import late_fields, markup
from profiler.ui.addresses import parse_version
from profiler.ui.data import readable_names
from profiler.ui.data.cells import WorkloadOnGpu
from profiler.ui.data.readable_names import Fit
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

    What a URL asks for and this view has not is said in a line and leaves the URL. What choices on the page
    have made pointless leaves it without a line.
    """

    def __init__(self, page: str) -> None:
        self._page = page
        self._chosen: dict[str, str] = {}  # by parameter, as the URL says it
        self._meant: dict[str, str] = {}  # what the URL says of each parameter, or its silence means
        self._context: dict[str, str] = {}  # of _GOES_ALONG what this view shows
        self._news: dict[str, str] = {}  # what the URL says since it moved, by parameter; "" where it did not
        self._refusals: dict[str, str] = {}  # what the URL asks for and this view has not, by parameter
        self._top = st.empty()

    def select(
        self,
        label: str,
        options: Sequence[str],
        name: str,
        default: str | None = None,
        format_option: Callable[[str], str] = str,
        *,
        noun: str = "",
        is_said: bool = False,
    ) -> str:
        """A select box; the default where the URL names no option, nor a part that only one option has.

        `noun` is what the line on a URL that names none calls it, where the label is none; `is_said` is that
        the page has a line of its own for that.
        """
        first = default if default is not None and default in options else options[0]
        key = self._adopt(
            name, lambda text: readable_names.meant_option(text, options, format_option), first, first
        )
        if st.session_state[key] not in options:
            st.session_state[key] = first
        if not is_said:
            self._say_unless_meant(name, noun or label, options, format_option(first), format_option)
        return self._choose(
            name,
            late_fields.choose(key, lambda: st.selectbox(label, options, key=key, format_func=format_option)),
        )

    def select_if_several(
        self, label: str, options: Sequence[str], name: str, default: str | None = None, *, noun: str = ""
    ) -> str:
        """A select box where there is something to choose; the only option, or "", where there is not."""
        if len(options) < 2:
            return self._only(noun or label, name, options[0] if options else "")
        return self.select(label, options, name, default, noun=noun)

    def _only(self, noun: str, name: str, option: str) -> str:
        """What is shown without a question, since there is no other; a URL may have asked for another."""
        self.check(noun, [option] if option else [], name)
        if name in _GOES_ALONG:
            self._context[name] = option
        return option

    def check(self, noun: str, options: Sequence[str], name: str, fit: Fit = Fit.WORDS) -> None:
        """Take out of the URL what is none of the options of a choice that this view does not ask for."""
        url = self._read_url(name)
        st.session_state[f"{self._page}_{name}_url"] = url
        if url not in ("", _UNNAMED) and readable_names.meant_option(url, options, fit=fit) is None:
            self._meant[name], self._chosen[name] = url, ""
            self._say_unless_meant(name, noun, options, fit=fit)

    def refuse(self, name: str, noun: str, options: Sequence[str], shown: str) -> None:
        """Take out of the URL a `parameter` that this view has not."""
        self._chosen[name] = ""
        self._say_unless_meant(name, noun, options, shown, fit=Fit.LAST_PART)

    def _say_unless_meant(
        self,
        name: str,
        noun: str,
        options: Sequence[str],
        shown: str = "",
        label: Callable[[str], str] = str,
        fit: Fit = Fit.WORDS,
    ) -> None:
        """A line on what the URL asks for, where it moved and none of the options is meant."""
        asked = self._news.get(name, "")
        if asked in ("", _UNNAMED) or readable_names.meant_option(asked, options, label, fit) is not None:
            return
        self._say(name, readable_names.refusal(noun, asked, options, shown, label, fit))

    def _say(self, name: str, line: str) -> None:
        # In the session's state, since a run may end before it shows what it adopted.
        st.session_state.setdefault(f"{self._page}_refusals", {})[name] = line

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
        key = self._adopt(
            name, lambda text: readable_names.meant_option(text, options, fit=Fit.LAST_PART), first, first
        )
        if st.session_state[key] not in options:  # a second click on the chosen one clears it
            st.session_state[key] = first
        self._say_unless_meant(name, name, options, first, fit=Fit.LAST_PART)  # no label is on the screen
        draw = partial(st.segmented_control, label, options, key=key, label_visibility="collapsed")
        value = late_fields.choose(key, draw, options)
        return self._choose(name, value or first)

    def chips(self, label: str, options: Sequence[str], name: str, default: str = NONE) -> str:
        """Chips of which one may be chosen; "" where none is, of which a URL says NONE.

        A second click on the chosen one chooses none.
        """
        first = default if default in options else NONE
        meant = [*options, NONE]
        key = self._adopt(
            name,
            lambda text: readable_names.meant_option(text, meant, fit=Fit.LAST_PART),
            first if first in options else None,
            first,
        )
        if st.session_state[key] not in options:
            st.session_state[key] = None
        self._say_unless_meant(name, name, meant, first, fit=Fit.LAST_PART)
        draw = partial(st.pills, label, options, key=key, label_visibility="collapsed")
        value = late_fields.choose(key, draw, options)
        self._choose(name, value or NONE)
        return value or ""

    def parameter(self, name: str) -> str:
        """What the URL says of a choice that no control shows, such as a part that was zoomed to."""
        value = st.query_params.get(name, "")
        self._read_url(name)
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
            self._only("evidence", "evidence", kinds[0].value if kinds else "")
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
        takes_others: bool = True,
    ) -> list[str]:
        """A multiple choice, comma-separated in the URL, by name or as the page calls it.

        With `takes_others` names that are not offered may be typed in. `only_fitting` leaves out what another
        choice of the page has made pointless.
        """

        def fitting(names: Sequence[str]) -> list[str]:
            offered = names if takes_others else [option for option in names if option in options]
            return only_fitting(offered) if offered else []

        def read(text: str) -> list[str]:
            meant = readable_names.meant_options(text, options, format_option)
            return list(dict.fromkeys(said if option is None else option for said, option in meant))

        key = self._adopt(name, read, [*default], ",".join(default))
        chosen = fitting(st.session_state[key])
        if chosen != st.session_state[key]:
            st.session_state[key] = chosen
        shown = set(chosen)
        missing = [said for said in read(self._news[name]) if said not in shown]
        if missing:
            line = readable_names.refusal(
                label,
                brief_list(missing),
                options,
                readable_names.labels_in_line([format_option(option) for option in chosen]),
                format_option,
                Fit.LAST_PART,
            )
            self._say(name, line)
        offered = list(dict.fromkeys([*options, *chosen]))
        draw = partial(
            st.multiselect,
            label,
            offered,
            key=key,
            format_func=format_option,
            accept_new_options=takes_others,
        )
        value = late_fields.choose(key, draw)
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
        address = "" if whole == in_url else markup.href(self._page, whole)
        self._refusals |= st.session_state.pop(f"{self._page}_refusals", {})
        if self._refusals:
            self._top.html(Html("".join(markup.note(line) for line in self._refusals.values())))
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
        url = self._read_url(name)
        if key not in st.session_state or url != st.session_state.get(last_url_key, ""):
            value = read(url) if url else None
            st.session_state[key] = default if value is None else value
            st.session_state[last_url_key] = url
        self._meant[name] = url or silence
        return key

    def _read_url(self, name: str) -> str:
        """What the URL says of a parameter, and whether that is news since this page looked last."""
        # A form sends a name once for each tick.
        url = ",".join(st.query_params.get_all(name))
        is_news = url != st.session_state.get(f"{self._page}_{name}_url", "")
        self._news[name] = url if is_news else ""
        if is_news:
            st.session_state.get(f"{self._page}_refusals", {}).pop(name, None)
        return url

    def _choose(self, name: str, value: str) -> str:
        self._chosen[name] = value
        if name in _GOES_ALONG:
            self._context[name] = value
        return value
