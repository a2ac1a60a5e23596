"""The address of a view: opening a page is one step of the browser's history, and so is each choice."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.test_pages import page, text

PAGES = ("trends", "diff", "code", "regressions", "runs")


def linked(app: AppTest) -> dict[str, str]:
    """The parameters of the link to this view; none where there is no link."""
    body = " ".join(element.value for element in app.html)
    found = re.search(r'k-address"><a href="([^"]+)"', body)
    return dict(parse_qsl(urlsplit(unescape(found[1])).query)) if found else {}


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
