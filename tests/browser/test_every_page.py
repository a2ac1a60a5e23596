"""What holds on every page that app.py lists: links, exports, keys, themes, no overflow, shift or finding."""

from __future__ import annotations

import csv
import importlib.util
import io
import os
import re
import signal
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests import timed_runs
from tests.browser.conftest import (
    HAS_CHARTS,
    IS_DARK,
    PHONE,
    ROOT,
    SMALL_DESKTOP,
    STANDS_STILL,
    TOO_WIDE,
    Dashboard,
    opened,
    served,
    settle,
    waits_ms,
)
from tests.timed_runs import run

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LISTED = r'PAGES / "(\w+)\.py", title="\w+", url_path="\w+"'
NAMES = re.findall(LISTED, (ROOT / "app.py").read_text(encoding="utf-8"))
PATHS = ["/" if name == "overview" else f"/{name}" for name in dict.fromkeys(NAMES)]
MOST_SHIFT = 0.1  # Google's limit of a good cumulative layout shift
COUNT_SHIFTS = """
window.shift = 0;
new PerformanceObserver(list => list.getEntries().forEach(entry => {
    if (!entry.hadRecentInput) window.shift += entry.value;
})).observe({type: "layout-shift", buffered: true});
"""
# Clicks on a link of the page to an address, and resolves once the script has run for it. On a busy machine
# a short run begins and ends between two looks at the page: its address has then changed and it stands still.
FOLLOW = """([href, limit]) => new Promise(done => {
    const app = document.querySelector('[data-test-script-state]'), states = []
    new MutationObserver((changes, observer) => {
        states.push(...changes.map(c => c.oldValue), app.getAttribute('data-test-script-state'))
        if (states.includes('running') && states.at(-1) === 'notRunning') (observer.disconnect(), done(true))
    }).observe(app, {attributeFilter: ['data-test-script-state'], attributeOldValue: true})
    const stands = () => app.getAttribute('data-test-script-state') === 'notRunning'
    setTimeout(() => done(location.pathname === new URL(href).pathname && stands()), limit)
    const link = Object.assign(document.createElement('a'), {href, textContent: '.'})
    document.querySelector('.stMain').append(link)
    link.click()
    link.remove()
})"""
DIFF = "/diff?a=ncar%2FMW_Baseline&b=ncar%2FMW_DivToMult"


@dataclass(frozen=True)
class Visit:
    """A page that was opened once for all tests that look at it."""

    path: str
    page: Any
    errors: list[str]
    shift: float  # by how much it moved while it was drawn


@pytest.fixture(scope="module", params=PATHS)
def visit(request: pytest.FixtureRequest, desktop: Any, address: str) -> Iterator[Visit]:
    """Each page of the menu in turn: tests that share one stand together, in the order of this file."""
    page, errors = opened(desktop, address + request.param, COUNT_SHIFTS)
    yield Visit(request.param, page, errors, page.evaluate("window.shift"))
    page.close()


@pytest.fixture(scope="module")
def links_tried() -> set[str]:
    """Kinds of links, a page and the names of its parameters each, that a test has opened."""
    return set()


def test_the_server_answers_with_headers_that_forbid_other_sites_to_frame_it(address: str) -> None:
    with urllib.request.urlopen(address) as answer:
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_pages_are_read_from_the_app() -> None:
    assert {"/", "/lineage", "/trends", "/diff", "/code", "/regressions", "/runs"} <= set(PATHS)


def test_a_page_stays_where_it_is_while_it_is_drawn(visit: Visit, desktop: Any, address: str) -> None:
    shifts = [visit.shift]
    while shifts[-1] >= MOST_SHIFT and len(shifts) < 4:
        # On a busy machine parts come one by one: what counts is that a page can stand still.
        page, _ = opened(desktop, address + visit.path, COUNT_SHIFTS)
        shifts.append(page.evaluate("window.shift"))
        page.close()
    assert shifts[-1] < MOST_SHIFT, shifts


def test_a_page_has_no_error_and_does_not_scroll_sideways(visit: Visit) -> None:
    for size in (PHONE, SMALL_DESKTOP):
        visit.page.set_viewport_size(size)
        assert visit.page.evaluate(TOO_WIDE) == [], size
    assert visit.errors == []


def test_no_page_has_a_serious_finding_of_axe_in_either_theme(visit: Visit) -> None:
    found = importlib.util.find_spec("axe_core_python")
    if found is None or found.origin is None:
        pytest.skip("axe-core-python is not installed: make test")
    page = visit.page
    page.evaluate(Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8"))
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(IS_DARK if scheme == "dark" else f"!({IS_DARK})")
        page.evaluate(STANDS_STILL)
        # The themes differ in colours alone: in the second one axe looks at those.
        rules = "{runOnly: ['color-contrast']}" if scheme == "light" else "{}"
        result = page.evaluate(
            f"axe.run(document, {rules})"
            ".then(({passes, incomplete, violations}) => [passes.length + incomplete.length, violations])"
        )
        assert result[0] > (10 if scheme == "dark" else 0), "axe looked at the page"
        serious = [
            (finding["id"], [node["html"][:200] for node in finding["nodes"][:3]])
            for finding in result[1]
            if finding["impact"] in ("serious", "critical")
        ]
        assert serious == [], scheme


@pytest.mark.parametrize("most", [3, pytest.param(1000, marks=pytest.mark.long)], ids=["few", "all"])
def test_every_kind_of_link_on_a_page_opens_in_its_session(
    visit: Visit, address: str, links_tried: set[str], most: int
) -> None:
    page = visit.page
    page.evaluate("window.sameDocument = true")
    links = page.evaluate("[...document.querySelectorAll('.stMain a[href]')].map(link => link.href)")
    kinds = {re.sub(r"=[^&]*", "", link): link for link in links if link.startswith(address)}
    untried = sorted(kinds.keys() - links_tried)[:most]
    for kind in untried:
        link = kinds[kind]
        assert page.evaluate(FOLLOW, [link, waits_ms()]), f"{link}: the page did not run"
        assert page.url.startswith(link.partition("?")[0])
        assert page.locator(".stException").count() == 0, link
        assert page.locator('[role="dialog"]:not(dialog)').count() == 0, link
    links_tried.update(untried)
    assert page.evaluate("window.sameDocument"), "no link loaded the document anew"
    assert visit.errors == []


def test_a_link_of_the_menu_takes_the_family_along_and_the_way_back_restores_the_view(
    desktop: Any, address: str
) -> None:
    page, errors = opened(desktop, f"{address}/trends?family=llm.c")
    page.evaluate("window.sameDocument = true")
    page.locator(".stAppHeader a", has_text="Regressions").first.click()
    page.wait_for_url("**/regressions?family=llm.c*")
    settle(page)
    page.go_back()
    page.wait_for_url("**/trends?family=llm.c")
    page.locator(".st-key-trends_view").wait_for()
    # Trends names its family in the field alone: as a text it is only on the page that is being replaced.
    page.wait_for_function("[...document.querySelectorAll('.stMain input')].some(i => i.value === 'llm.c')")
    assert page.evaluate("window.sameDocument")
    assert errors == []
    page.close()


def test_keys_move_through_rows_and_do_nothing_in_a_field(desktop: Any, address: str) -> None:
    page, _ = opened(desktop, f"{address}/runs")
    page.keyboard.press("j")
    page.keyboard.press("j")
    row = "document.activeElement.closest('tr').sectionRowIndex"
    assert page.evaluate(row) == 1
    page.keyboard.press("k")
    assert page.evaluate(row) == 0
    page.keyboard.press("?")
    page.locator(".k-keys").wait_for()
    page.keyboard.press("Escape")
    page.get_by_label("find a run").click()
    page.keyboard.type("j/?")
    assert page.get_by_label("find a run").input_value() == "j/?"
    assert page.locator("dialog[open]").count() == 0
    page.close()


def test_shift_ticks_the_rows_between_and_one_button_compares_them(desktop: Any, address: str) -> None:
    page, errors = opened(desktop, f"{address}/runs")
    boxes = page.locator(".k-ticks input")
    count = boxes.count()
    assert count > 2
    boxes.first.click()
    boxes.last.click(modifiers=["Shift"])
    assert page.locator(".k-ticks input:checked").count() == count
    page.get_by_role("button", name="compare the ticked").click()
    page.wait_for_url("**/compare?versions=**")
    assert parse_qs(urlsplit(page.url).query)["versions"][0].count(",") == count - 1
    assert errors == []
    page.close()


@pytest.fixture(scope="module")
def diff(desktop: Any, address: str) -> Iterator[tuple[Any, list[str]]]:
    """A diff, and what goes wrong in it, for the tests that save what it shows."""
    page, errors = opened(desktop, address + DIFF)
    yield page, errors
    page.close()


def test_a_table_is_saved_as_csv_with_whole_numbers_in_one_click(diff: tuple[Any, list[str]]) -> None:
    page, errors = diff
    page.locator("table", has_text="set_halo_values_x_419_gpu").first.hover()
    with page.expect_download() as download:
        page.locator(".k-export button", has_text="CSV").click()
    head, *rows = csv.reader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8")))
    a = head.index("A")
    assert head[a + 1] == "A unit"
    units = {row[a + 1] for row in rows if row[a + 1]}
    assert units == {"ns"}, "the base unit, not the one on the screen"
    assert all(float(row[a]) > 1000 for row in rows if row[a + 1])
    assert errors == []


def test_a_chart_is_saved_as_picture_drawing_and_numbers_by_keyboard(desktop: Any, address: str) -> None:
    page, errors = opened(desktop, f"{address}/trends?family=ncar")
    page.locator(".js-plotly-plot .main-svg").first.wait_for()
    page.locator(".js-plotly-plot").first.hover()
    contents = {}
    for form in ("PNG", "SVG", "CSV"):
        with page.expect_download() as download:
            page.locator(f'.k-export button[title^="{form} of"]').click()
        contents[form] = Path(download.value.path()).read_bytes()
    assert contents["PNG"].startswith(b"\x89PNG")
    assert len(contents["PNG"]) > 5000, "something is drawn"
    assert b"<text" in contents["SVG"]
    assert b"light-dark" not in contents["SVG"], "the colours of the present theme are part of it"
    assert contents["CSV"].startswith(b"series,x,y")
    assert contents["CSV"].count(b"\n") > 2
    page.close()
    assert errors == []


def click_point(page: Any) -> None:
    """Click on the first point of the first chart."""
    mark = page.locator(".js-plotly-plot .scatterlayer .point").first.bounding_box()
    x, y = mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2
    page.mouse.move(x, y)
    page.locator(".js-plotly-plot .hoverlayer .hovertext").first.wait_for()
    page.mouse.click(x, y)


def test_a_click_on_a_point_of_trends_is_one_step_of_the_history_and_so_is_the_one_that_takes_it_back(
    desktop: Any, address: str
) -> None:
    page, errors = opened(desktop, f"{address}/trends?family=ncar")
    opening, steps = page.url, page.evaluate("history.length")
    click_point(page)
    page.wait_for_url(re.compile("isolate=.*at=|at=.*isolate="))
    page.locator(".k-card").wait_for()
    settle(page)
    page.evaluate(STANDS_STILL)
    assert page.evaluate("history.length") == steps + 1
    click_point(page)
    page.wait_for_url("**isolate=none**")
    page.locator(".k-card").wait_for(state="detached")
    settle(page)
    page.evaluate(STANDS_STILL)
    assert page.evaluate("history.length") == steps + 2
    page.go_back()
    page.locator(".k-card").wait_for()
    page.go_back()
    page.wait_for_url(opening)
    page.locator(".k-card").wait_for(state="detached")
    assert errors == []
    page.close()


@pytest.fixture(scope="module")
def stepped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard whose Trends page opens with a version that got 7 % slower on one night."""
    folder = tmp_path_factory.mktemp("stepped")
    nights = []
    for night in range(24):
        is_slow = night >= 14
        levels = {"v1": 170e3, "v2": 150e3 * (1.07 if is_slow else 1.0)}
        nights.append(run(levels, night, sass={"v1": "one", "v2": "three" if is_slow else "two"}))
    timed_runs.seal(folder / "data", *nights)
    with served(folder) as dashboard:
        yield dashboard.address


def test_the_csv_of_a_chart_over_time_has_moments_and_says_what_each_series_is(
    desktop: Any, stepped: str
) -> None:
    page, errors = opened(desktop, f"{stepped}/trends")
    page.locator(".js-plotly-plot").first.hover()
    with page.expect_download() as download:
        page.locator('.k-export button[title^="CSV of"]').click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    assert {row["series"] for row in rows} == {"v1", "v2", "v2, samples", "step"}
    for row in rows:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["x"]), row
        assert float(row["y"]) > -20, "per cent"
    points = [row for row in rows if row["series"] in ("v1", "v2")]
    assert len(points) == 2 * 24
    for row in points:
        made = f"{row['x'][:10]} {row['x'][11:16]} UTC"
        assert re.fullmatch(rf"{row['series']}: 1\d\d µs · .* · {made}.*", row["text"]), row
    (step,) = [row for row in rows if row["series"] == "step"]
    assert step["text"].startswith("worse +6.9 % (+6.3 to +7.6) can lie in v2 2026-03-15"), (
        "a space for each break"
    )
    assert errors == []
    page.close()


def test_a_step_is_named_on_the_chart_but_on_a_phone_which_would_cut_its_words(
    desktop: Any, stepped: str
) -> None:
    page, errors = opened(desktop, f"{stepped}/trends")
    words = page.locator(".js-plotly-plot .annotation", has_text="! worse")
    assert words.first.is_visible()
    page.set_viewport_size(PHONE)
    words.first.wait_for(state="hidden")
    steps = page.locator('table[aria-label="steps"] td:visible', has_text="worse")
    assert steps.count() == 1, "the table of steps says it"
    page.set_viewport_size(SMALL_DESKTOP)
    words.first.wait_for(state="visible")
    assert errors == []
    page.close()


def test_the_copied_link_opens_the_same_view(desktop: Any, address: str) -> None:
    page, _ = opened(desktop, f"{address}/trends?family=ncar")
    page.locator('[data-does="copy"]').click()
    page.get_by_text("copied", exact=True).first.wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert "family=ncar" in link
    assert "metrics=" in link, "every choice is in it"
    page.close()


def test_the_palette_finds_a_version_and_opens_it_by_keyboard_alone(desktop: Any, address: str) -> None:
    page, errors = opened(desktop, f"{address}/runs")
    page.keyboard.press("/")
    page.keyboard.type("set_halo_values_x_419")
    page.keyboard.press("Enter")  # at once: what will be found is meant
    page.wait_for_url("**/trends?family=ncar&kernels=set_halo_values_x_419_gpu*")
    settle(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("theme: dark")
    page.keyboard.press("Enter")
    page.wait_for_function(IS_DARK)
    page.evaluate("localStorage.clear()")  # the choice is every page's
    assert errors == []
    page.close()


def test_the_palette_answers_who_asks_while_a_slow_server_has_not_begun_with_the_next_page(
    desktop: Any, two_families: Dashboard
) -> None:
    page, errors = opened(desktop, f"{two_families.address}/runs")
    os.kill(two_families.pid, signal.SIGSTOP)
    try:
        page.locator('[data-testid="stTopNavLink"]', has_text="Trends").first.click()
        page.wait_for_url("**/trends*")
        page.keyboard.press("Control+k")
        page.keyboard.type("theme: dark")
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)  # what is asked at once has been asked
    finally:
        os.kill(two_families.pid, signal.SIGCONT)
    page.wait_for_function(IS_DARK)
    page.wait_for_function("document.title.startsWith('Trends')")
    page.wait_for_function(HAS_CHARTS)
    page.evaluate("localStorage.clear()")
    assert errors == []
    page.close()


def test_the_theme_is_one_click_and_holds_on_every_page_and_after_a_reload(
    desktop: Any, address: str
) -> None:
    page, errors = opened(desktop, f"{address}/runs")
    page.locator('[data-does="theme"]').click()
    page.wait_for_function(IS_DARK)
    page.goto(f"{address}/trends")
    settle(page)
    page.wait_for_function(IS_DARK)
    page.evaluate("localStorage.clear()")
    assert errors == []
    page.close()
