"""The path in a real browser: import two reports, open their diff in a new tab, see what compare says."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler.evidence import Value, formatting
from profiler.statistics import Verdict
from tests.browser.conftest import served

pytestmark = pytest.mark.browser

NAMES = ("MW_Baseline", "MW_DivToMult")
DIFF = "/diff?a=ncar%2FMW_Baseline&b=ncar%2FMW_DivToMult"
PAGES = ("/", "/trends?family=ncar", DIFF, "/runs")
# Streamlit asks for these below a page's own address before it finds its root; nothing else may fail.
KNOWN_404 = ("/_stcore/health", "/_stcore/host-config")
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1440, "height": 900}


def watch(page: Any) -> list[str]:
    """What goes wrong in a page from now on."""
    errors: list[str] = []

    def heard(message: Any) -> None:
        address = message.location.get("url", "")
        if message.type == "error" and not ("404" in message.text and address.endswith(KNOWN_404)):
            errors.append(f"{message.text} {address}")

    page.on("console", heard)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return errors


def settle(page: Any) -> None:
    """Wait until the script has run and drawn."""
    page.wait_for_selector(".k")
    page.wait_for_selector('[data-test-script-state="notRunning"]', state="attached")


def text(page: Any) -> str:
    """What a person reads, thin spaces and line breaks as plain spaces."""
    return " ".join(page.inner_text(".stMain").split())


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard without data."""
    with served(tmp_path_factory.mktemp("browser")) as dashboard:
        yield dashboard.address


@pytest.fixture(scope="module")
def filled(browser: Any, dashboard: str, made_reports: Path) -> Iterator[Any]:
    """A context whose dashboard was given the pair of made reports by its file picker."""
    with filled_with(made_reports, browser, dashboard) as context:
        yield context


@contextlib.contextmanager
def filled_with(reports: Path, browser: Any, dashboard: str) -> Iterator[Any]:
    """A context whose empty dashboard was given the pair of these reports by its file picker."""
    context = browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    errors = watch(page)
    page.goto(f"{dashboard}/runs")
    settle(page)
    assert "profiler import PATH" in text(page)
    page.set_input_files('input[type="file"]', [str(reports / "ncar" / f"{name}.ncu-rep") for name in NAMES])
    page.get_by_text("MW_DivToMult.ncu-rep").wait_for()
    page.get_by_label("family").fill("ncar")
    page.get_by_role("button", name="Import").click()
    page.get_by_text("Imported 2.").wait_for()
    settle(page)
    assert errors == []
    yield context
    context.close()


@pytest.fixture(scope="module")
def phone(browser: Any) -> Iterator[Any]:
    """A context of a phone's size, whose pages share what the browser has loaded."""
    context = browser.new_context(viewport=PHONE)
    yield context
    context.close()


def compared(reports: Path) -> dict[str, Any]:
    """What the command says of the same two files."""
    paths = [str(reports / "ncar" / f"{name}.ncu-rep") for name in NAMES]
    command = [sys.executable, "-m", "profiler", "compare", *paths, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def shown(metric: dict[str, Any]) -> list[str]:
    """A metric of the JSON as the page writes it: A, B, change and verdict."""
    a, b = (Value(metric[side], metric["unit"]) for side in "ab")
    numbers = [str(formatting.quantity(a)), str(formatting.quantity(b)), formatting.change(a, b)]
    return [" ".join(part.split()) for part in (*numbers, Verdict(metric["verdict"]).label)]


def test_the_diff_of_two_dropped_reports_opens_in_a_new_tab_with_the_numbers_of_compare(
    filled: Any, made_reports: Path
) -> None:
    assert_the_diff_shows_the_numbers_of_compare(filled, made_reports)


def test_the_diff_of_public_reports_shows_the_numbers_of_compare_too(
    browser: Any, public_reports: Path, tmp_path: Path
) -> None:
    with served(tmp_path) as own, filled_with(public_reports, browser, own.address) as context:
        assert_the_diff_shows_the_numbers_of_compare(context, public_reports)


def assert_the_diff_shows_the_numbers_of_compare(context: Any, reports: Path) -> None:
    page = context.pages[0]
    answer = compared(reports)
    link = page.locator('a[href*="diff?"]').first
    with context.expect_page() as opened:
        link.click(modifiers=["Control"])
    tab = opened.value
    errors = watch(tab)
    tab.goto(tab.url)  # once more from its address alone, now that errors are watched
    settle(tab)
    tab.get_by_text("Verdict").first.wait_for()
    said = text(tab)
    assert "MW_Baseline → B MW_DivToMult" in said
    duration = {}
    for launch in answer["launches"]:
        (metric,) = [one for one in launch["metrics"] if one["concept"] == "duration"]
        duration[launch["kernel"]] = metric
        assert " ".join([launch["kernel"], *shown(metric)]) in said
    longest = max(duration, key=lambda kernel: duration[kernel]["a"])
    table = tab.locator("table", has_text="registers").first
    rows = {" ".join(row.split()) for row in table.locator("tr").all_inner_texts()}
    (launch,) = [one for one in answer["launches"] if one["kernel"] == longest]
    # A derived number that another row has is named below the rows of its group.
    repeated = " ".join(row for row in rows if row.startswith("said by another row: "))
    checked = 0
    for metric in launch["metrics"]:
        if None in (metric["a"], metric["b"]) or metric["a"] == metric["b"] == 0:
            continue
        if "a_derived_from" in metric and metric["label"] in repeated:
            continue
        assert " ".join([metric["label"], *shown(metric)]) in rows
        checked += 1
    assert checked > 40
    assert errors == []
    tab.close()


@pytest.mark.parametrize("path", PAGES)
def test_no_page_scrolls_sideways_on_a_phone(filled: Any, phone: Any, dashboard: str, path: str) -> None:
    page = phone.new_page()
    errors = watch(page)
    page.goto(dashboard + path)
    settle(page)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(500)
        for element in ("document.documentElement", "document.querySelector('.stMain')"):
            wide, room = page.evaluate(f"[{element}.scrollWidth, {element}.clientWidth]")
            assert wide <= room, scheme
    assert errors == []
    page.close()


def test_the_first_page_opens_by_its_typed_name_too(filled: Any, dashboard: str) -> None:
    page = filled.new_page()
    page.goto(f"{dashboard}/overview")
    settle(page)
    assert page.inner_text(".k-head .t") == "Overview"
    assert page.locator('[role="dialog"]').count() == 0, "Page not found"
    page.close()


def test_dark_mode_recolours_the_charts(filled: Any, browser: Any, dashboard: str) -> None:
    fills = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(viewport=DESKTOP, color_scheme=scheme)
        page = context.new_page()
        errors = watch(page)
        page.goto(dashboard + DIFF)
        settle(page)
        page.wait_for_selector(".js-plotly-plot .ytick text")
        fills[scheme] = page.evaluate(
            "getComputedStyle(document.querySelector('.js-plotly-plot .ytick text')).fill"
        )
        assert errors == []
        context.close()
    assert fills == {"light": "rgb(27, 34, 48)", "dark": "rgb(228, 232, 238)"}


def test_a_choice_on_a_page_is_in_its_address(filled: Any, dashboard: str) -> None:
    page = filled.new_page()
    errors = watch(page)
    page.goto(f"{dashboard}/trends?family=ncar")
    settle(page)
    page.get_by_label("kernels").fill("halo")
    page.get_by_label("kernels").press("Enter")
    page.wait_for_url("**kernels=halo**")
    page.get_by_text("time", exact=True).click()
    page.wait_for_url("**over=time**")
    address = page.url
    assert "kernels=halo" in address
    page.goto("about:blank")
    page.goto(address)
    settle(page)
    page.wait_for_function("[...document.querySelectorAll('input')].some(one => one.value === 'halo')")
    assert "compute_tendencies" not in text(page)
    assert errors == []
    page.close()


def test_the_way_back_restores_the_choice(filled: Any, dashboard: str) -> None:
    page = filled.new_page()
    page.goto(f"{dashboard}/trends?family=ncar")
    settle(page)
    page.get_by_label("kernels").fill("halo")
    page.get_by_label("kernels").press("Enter")
    page.wait_for_url("**kernels=halo**")
    page.go_back()
    page.wait_for_function("!document.querySelector('input[aria-label=\"kernels\"]').value")
    page.close()


def test_one_step_back_leaves_a_page_that_was_opened(filled: Any, dashboard: str) -> None:
    page = filled.new_page()
    page.goto(f"{dashboard}/")
    settle(page)
    names = ("Trends", "Diff", "Runs")
    for name in names:
        page.locator(".stAppHeader a", has_text=name).first.click()
        page.wait_for_url(f"**/{name.lower()}")
        page.locator(".k-address").wait_for()  # all choices are made
        settle(page)
    for name in names[-2::-1]:
        page.go_back()
        page.wait_for_url(f"**/{name.lower()}")
        settle(page)
    page.get_by_text("time", exact=True).click()
    page.wait_for_url("**over=time**")
    page.go_back()
    page.wait_for_url("**/trends")
    page.locator(".k-address a").click()
    page.wait_for_url("**over=versions**")
    settle(page)
    assert page.locator(".k-address").count() == 0, "the address says everything"
    page.close()


@pytest.mark.parametrize("path", ["/", DIFF])
def test_the_end_of_a_kernel_name_is_seen_on_a_phone(
    filled: Any, phone: Any, dashboard: str, path: str
) -> None:
    page = phone.new_page()
    page.goto(dashboard + path)
    settle(page)
    page.locator("td .mid").first.wait_for()
    assert "set_halo_values_x_419_gpu" in text(page)
    ends = page.evaluate(
        """[...document.querySelectorAll('td .mid')].map(name => {
            const [start, end] = name.children, at = end.getBoundingClientRect()
            const room = name.closest('td').getBoundingClientRect().right - at.right
            return [at.width, room, start.scrollWidth - start.clientWidth]
        })"""
    )
    assert any(cut > 0 for *_, cut in ends), "nothing had to be cut"
    assert all(width > 30 and room >= 0 for width, room, _ in ends)
    page.close()
