"""The address of a view: opening a page is one step of the browser's history, and so is each choice."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from profiler.ui import first_chart
from tests.ui.test_pages import page, text

PAGES = ("trends", "diff", "code", "regressions", "runs")


def linked(app: AppTest) -> dict[str, str]:
    """The parameters of the link to this view; none where there is no link."""
    body = " ".join(element.value for element in app.html)
    found = re.search(r'k-address"><a href="([^"]+)"', body)
    return dict(parse_qsl(urlsplit(unescape(found[1])).query)) if found else {}


def _page(ending: str = "") -> None:
    import streamlit as st

    from profiler.errors import ProfilerError
    from profiler.evidence.values import Evidence
    from profiler.ui import late_fields
    from profiler.ui.controls import Filters
    from profiler.ui.errors import errors_shown

    labels = {"conflicts": "bank conflicts, modelled", "regs": "registers, compiled", "regs2": "spills"}
    is_first = "ran" not in st.session_state
    st.session_state["ran"] = True
    with late_fields.may_wait(is_first), errors_shown():
        late_fields.wait()
        filters = Filters("test")
        evidence = filters.kind_of_evidence([Evidence.STATIC, Evidence.MODELLED])
        more = filters.switch("which", ["one", "several"], "which", "several")
        versions = ["v1", "v2"] if more == "several" else ["v1"]
        shown = filters.multiselect("versions", ["v1", "v2"], "show", [], takes_others=False)
        metrics = filters.multiselect(
            "metrics",
            list(labels),
            "metrics",
            ["conflicts"],
            lambda name: labels.get(name, name),
            lambda names: [name for name in names if name in labels] or ["conflicts"],
        )
        base = filters.select_if_several("baseline", versions, "base", "v2")
        filters.check("range", ["30 d", "90 d"], "range")
        if ending == "error" and is_first:
            raise ProfilerError("cannot be opened")
        line = filters.chips("isolate a line", versions, "line", "v2")
        st.text(f"{evidence} {more} {shown} {metrics} {base} {line}")
        filters.write_url()
        late_fields.draw()


def opened(ending: str = "", **query: str) -> AppTest:
    app = AppTest.from_function(_page, kwargs={"ending": ending}, default_timeout=60)
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception, app.exception
    return app


def lines(app: AppTest) -> list[str]:
    """What the page says of the address, above all else."""
    told = next((one.value for one in app.html if "The address asks for" in one.value), "")
    return re.findall(r"The address asks for ([^<]*)", unescape(told))


class TestNotGranted:
    @pytest.fixture(autouse=True)
    def _at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(first_chart, "LONGEST_S", 0.0)

    @pytest.mark.parametrize(
        ("name", "asked", "line"),
        [
            (
                "evidence",
                "measured",
                "evidence measured: not here; there are static, modelled. Shown: static",
            ),
            ("show", "v1,nope", "versions nope: not here; there are v1, v2. Shown: v1"),
            ("base", "nope", "baseline nope: not here; there are v1, v2. Shown: v2"),
            ("line", "nix", "line nix: not here; there are v1, v2, none. Shown: v2"),
            ("range", "7", "range 7: not here; there are 30 d, 90 d"),
            ("which", "on", "which on: not here; there are one, several. Shown: several"),
            (
                "metrics",
                "nonsense",
                "metrics nonsense: not here; there are “bank conflicts, modelled”, “registers, compiled”, "
                "spills. Shown: “bank conflicts, modelled”",
            ),
        ],
    )
    def test_what_an_address_asks_for_and_does_not_get_is_one_line_and_leaves_it(
        self, name: str, asked: str, line: str
    ) -> None:
        app = opened(**{name: asked})
        assert lines(app) == [line]
        assert asked not in dict(app.query_params).get(name, "")
        assert lines(app.run()) == [], "the address is right by now"

    def test_several_that_are_not_here_are_a_line_each(self) -> None:
        app = opened(evidence="measured", show="nope", base="v1", line="nix")
        assert [line.split(":")[0] for line in lines(app)] == [
            "evidence measured",
            "versions nope",
            "line nix",
        ]

    def test_an_address_that_the_view_grants_has_no_line(self) -> None:
        app = opened(evidence="Static", show="v1", metrics="regs", base="v1", line="none", range="30 d")
        assert lines(app) == []
        assert app.query_params["range"] == "30 d"
        assert app.text[0].value == "static several ['v1'] ['regs'] v1"

    @pytest.mark.parametrize("asked", ["registers, compiled", "Registers", "regs"])
    def test_a_metric_may_be_named_as_the_page_calls_it(self, asked: str) -> None:
        app = opened(metrics=f"{asked},spills")
        assert lines(app) == []
        assert app.query_params["metrics"] == "regs,regs2"

    def test_the_line_comes_although_the_first_run_ended_before_it(self) -> None:
        app = opened("error", evidence="measured", line="nix")
        assert len(lines(app)) == 2
        assert lines(app.run()) == []

    def test_what_a_choice_on_the_page_made_pointless_goes_without_a_line(self) -> None:
        app = opened(base="v2", line="v2")
        app.button_group(key="test_which").set_value("one").run()
        assert lines(app) == []
        assert "base" not in app.query_params
        assert app.text[0].value.startswith("static one")

    def test_an_address_that_is_followed_later_is_read_anew(self) -> None:
        app = opened(evidence="measured")
        app.run()
        app.query_params["evidence"] = "measured"
        assert len(lines(app.run())) == 1


@pytest.mark.usefixtures("pages_of")
class TestAddress:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", PAGES)
    def test_a_page_that_is_opened_adds_nothing_to_its_address_and_links_to_the_whole(
        self, name: str, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page(name, made_data, monkeypatch)
        assert not app.query_params
        assert linked(app) or name == "runs", "without a chosen run nothing but defaults that are empty"

    @pytest.mark.slow
    def test_a_choice_brings_the_whole_view_into_the_address_and_needs_no_link(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("trends", made_data, monkeypatch, family="ncar")
        meant = linked(app)
        app.text_input(key="trends_kernels").set_value("halo").run()
        assert dict(app.query_params) == {**meant, "kernels": "halo"}
        assert not linked(app)

    @pytest.mark.slow
    def test_an_address_that_lost_its_parameters_again_means_the_defaults_again(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("trends", made_data, monkeypatch, family="ncar")
        app.text_input(key="trends_kernels").set_value("halo").run()
        app.query_params.clear()
        app.query_params["family"] = "ncar"
        app.run()
        assert app.text_input(key="trends_kernels").value == ""
        assert dict(app.query_params) == {"family": "ncar"}

    @pytest.mark.slow
    def test_an_address_that_says_what_nobody_offers_is_put_right(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("trends", made_data, monkeypatch, family="ncar", over="moon")
        assert app.query_params["over"] == "versions"

    @pytest.mark.slow
    def test_a_second_choice_keeps_the_first(self, made_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page("trends", made_data, monkeypatch, family="ncar")
        app.text_input(key="trends_kernels").set_value("halo").run()
        app.selectbox(key="trends_numbers").set_value("occupancy").run()
        assert app.query_params["kernels"] == "halo"
        assert app.query_params["numbers"] == "occupancy"
        assert "set_halo_values_x_419_gpu" in text(app)
