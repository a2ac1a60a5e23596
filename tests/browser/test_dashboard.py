"""The path in a real browser: import two reports, open their diff in a new tab, see what compare says."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.statistics.verdict import Verdict
from profiler.ui import first_chart
from tests.browser.conftest import (
    DESKTOP,
    PHONE,
    TOO_WIDE,
    keep_process,
    served,
    settle,
    text,
    watch,
)

pytestmark = pytest.mark.browser

NAMES = ("MW_Baseline", "MW_DivToMult")
DIFF = "/diff?a=ncar%2FMW_Baseline&b=ncar%2FMW_DivToMult"
# When a page's places of fields, its first field and its first chart came, in milliseconds.
SEES_WHAT_COMES_FIRST = """(() => {
  const kinds = {
    place: "[data-waits]",
    field: ".stMain .stSelectbox",
    chart: ".stMain .js-plotly-plot .main-svg",
  };
  window.came = {};
  new MutationObserver(() => {
    for (const [kind, selector] of Object.entries(kinds)) {
      if (!window.came[kind] && document.querySelector(selector)) window.came[kind] = performance.now();
    }
  }).observe(document, {childList: true, subtree: true});
})()"""
# Each page is resized to a phone in test_every_page; here those are opened on one whose content is widest.
ON_A_PHONE = [
    DIFF,
    "/trends?family=ncar",
    *(pytest.param(path, marks=pytest.mark.long) for path in ("/", "/runs")),
]


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard without data."""
    with served(tmp_path_factory.mktemp("browser")) as dashboard:
        yield dashboard.address


@pytest.fixture(scope="module")
def filled(browser: Any, dashboard: str, made_reports: Path) -> Iterator[Any]:
    """A context whose dashboard was given the pair of made reports by its file picker."""
    context = browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    errors = watch(page)
    page.goto(f"{dashboard}/runs")
    settle(page)
    assert "profiler import PATH" in text(page)
    import_pair(page, made_reports)
    assert errors == []
    keep_process(context, dashboard)
    yield context
    context.close()


def import_pair(page: Any, reports: Path) -> None:
    """Give the pair of these reports to the page Runs by its file picker."""
    page.set_input_files('input[type="file"]', [str(reports / "ncar" / f"{name}.ncu-rep") for name in NAMES])
    page.get_by_text("MW_DivToMult.ncu-rep").wait_for()
    page.get_by_label("family").fill("ncar")
    page.get_by_role("button", name="Import").click()
    page.get_by_text("Imported 2.").wait_for()
    settle(page)


# All titles of a chart, however far it is scrolled: whole, or with an ellipsis where they end.
TITLES_STAY = """() => {
    const box = document.querySelector('[class*="st-key-trends_"]:has(.js-plotly-plot)')
    return [0, -100, -box.scrollWidth].every(scrolled => {
        box.scrollLeft = scrolled
        box.dispatchEvent(new Event('scroll'))
        const titles = [...box.querySelectorAll('.k-stays .annotation-text')]
        const room = box.getBoundingClientRect()
        return titles.length > 0 && titles.every(title => {
            const {width, left, right} = title.getBoundingClientRect()
            const isCut = title.textContent.length < new DOMParser()
                .parseFromString(title.dataset.unformatted, 'text/html').body.textContent.length
            return width > 0 && left >= room.left - 1 && left < room.left + 9 && right <= room.right + 1
                && isCut === title.textContent.endsWith('…')
        })
    })
}"""


@pytest.fixture
def phone(filled: Any) -> Iterator[Any]:
    """A page of a phone's size; the context is that of the desktop, which has loaded all scripts already."""
    page = filled.new_page()
    page.set_viewport_size(PHONE)
    yield page
    page.close()


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


@pytest.fixture(scope="module")
def diff(filled: Any, dashboard: str) -> Iterator[tuple[Any, list[str]]]:
    """The diff of the pair, and what goes wrong in it, for the tests that look at its charts."""
    page = filled.new_page()
    errors = watch(page)
    page.goto(dashboard + DIFF)
    settle(page)
    yield page, errors
    page.close()


def test_dark_mode_recolours_the_charts(filled: Any, dashboard: str) -> None:
    page = filled.new_page()
    errors = watch(page)
    page.goto(f"{dashboard}/trends?family=ncar")
    page.wait_for_selector(".js-plotly-plot .xtick text")
    for scheme, fill in (("dark", "rgb(228, 232, 238)"), ("light", "rgb(27, 34, 48)")):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(
            f"getComputedStyle(document.querySelector('.js-plotly-plot .xtick text')).fill === '{fill}'"
        )
    page.close()
    assert errors == []


def test_a_cause_opens_what_is_behind_it_and_closes_it(diff: tuple[Any, list[str]]) -> None:
    page, _ = diff
    head = page.get_by_role("heading", name=re.compile("Waiting for"))
    cause = page.locator('table[aria-label="time by cause"] tr').nth(2).locator("a")
    for _ in range(2):  # opened, closed, and opened again
        cause.click()  # behind A and work the largest stall
        head.wait_for()
        settle(page)
        assert "drill=waiting" in page.url
        cause.click()
        head.wait_for(state="detached")
        settle(page)
        assert "drill=closed" in page.url


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
    # What did not change is folded, and in the page all the same.
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent).join(' '))"
    texts = tab.locator(".mets tr").evaluate_all(cells)
    rows = {" ".join(row.split()) for row in texts}
    (launch,) = [one for one in answer["launches"] if one["kernel"] == longest]
    # A derived number that another row has is named below the rows of its group.
    repeated = " ".join(row for row in rows if row.startswith("also in another row: "))
    checked = 0
    for metric in launch["metrics"]:
        if None in (metric["a"], metric["b"]) or metric["a"] == metric["b"] == 0:
            continue
        if "a_derived_from" in metric and metric["label"] in repeated:
            continue
        numbers = " ".join(shown(metric)).replace(" ", "")
        assert any(row.startswith(metric["label"]) and row.replace(" ", "").endswith(numbers) for row in rows)
        checked += 1
    assert checked > 40
    assert errors == []
    tab.close()


@pytest.mark.parametrize("path", ON_A_PHONE)
def test_no_page_scrolls_sideways_on_a_phone_and_names_are_whole(
    phone: Any, dashboard: str, path: str
) -> None:
    errors = watch(phone)
    phone.goto(dashboard + path)
    settle(phone)
    for scheme in ("light", "dark"):
        phone.emulate_media(color_scheme=scheme)
        assert phone.evaluate(TOO_WIDE) == [], scheme
    if path.startswith("/trends"):  # its chart scrolls in a box, beside which the panels' titles stay
        title = phone.locator(".js-plotly-plot .annotation-text", has_text="measured").first
        title.wait_for()
        phone.wait_for_function(TITLES_STAY)
    elif path == DIFF:  # names of kernels are whole
        phone.get_by_text("Verdict").first.wait_for()
        assert "set_halo_values_x_419_gpu" in text(phone)
        assert folded(phone) == [True], "Opcode mix, until somebody opens it"
        phone.get_by_text("Opcode mix").click()
        phone.get_by_role("columnheader", name="opcode").wait_for()
        assert folded(phone) == [False]
    assert errors == []


def folded(page: Any) -> list[bool]:
    """Of each long part of the page whether it is folded."""
    answer: list[bool] = page.eval_on_selector_all(".k-long", "parts => parts.map(part => !part.open)")
    return answer


def test_a_wide_page_folds_no_long_part(diff: tuple[Any, list[str]]) -> None:
    assert folded(diff[0]) == [False]


def test_the_fields_of_trends_come_once_the_browser_has_drawn_its_chart(filled: Any, dashboard: str) -> None:
    page = filled.new_page()
    errors = watch(page)
    words: list[int] = []
    page.on("response", lambda answer: words.append(answer.status) if "/drawn/" in answer.url else None)
    page.add_init_script(SEES_WHAT_COMES_FIRST)
    page.goto(f"{dashboard}/trends?family=ncar")
    settle(page)
    page.wait_for_function("window.came.field && window.came.chart")
    came = page.evaluate("window.came")
    # On a busy machine the browser may see the places late, and the server's patience may end.
    is_patience_over = came["field"] - came["place"] > 0.5e3 * first_chart.LONGEST_S
    assert came["chart"] < came["field"] or is_patience_over
    page.wait_for_timeout(100)
    assert words == [204]
    assert errors == []
    page.close()


def test_a_click_before_the_chart_is_drawn_is_said_too(filled: Any, dashboard: str) -> None:
    page = filled.new_page()
    page.route("**/PlotlyChart.*.js", lambda _: None)  # it never comes
    page.goto(f"{dashboard}/trends?family=ncar")
    page.wait_for_selector("[data-waits]", state="attached")
    with page.expect_response("**/drawn/*") as said:
        page.locator('[data-testid="stTopNavLink"]', has_text="Runs").first.click()
    assert said.value.status == 204
    page.wait_for_function("document.title.startsWith('Runs')")
    page.unroute_all(behavior="ignoreErrors")
    page.close()


def test_the_first_page_opens_by_its_typed_name_too(filled: Any, dashboard: str) -> None:
    page = filled.new_page()
    page.goto(f"{dashboard}/overview")
    settle(page)
    assert page.inner_text(".k-head .t") == "Overview"
    assert page.locator('[role="dialog"]').count() == 0, "Page not found"
    page.close()


def filter_kernels(page: Any, words: str) -> None:
    """Choose kernels on Trends, in the box that its button opens."""
    page.get_by_role("button", name="versions, metrics, kernels").click()
    page.get_by_label("kernels", exact=True).fill(words)
    page.get_by_label("kernels", exact=True).press("Enter")
    page.wait_for_url(f"**kernels={words}**")


def test_a_choice_on_a_page_is_in_its_address_and_the_way_back_restores_it(
    filled: Any, dashboard: str
) -> None:
    page = filled.new_page()
    errors = watch(page)
    page.goto(f"{dashboard}/trends?family=ncar")
    settle(page)
    filter_kernels(page, "halo")
    page.go_back()
    page.wait_for_function("!document.querySelector('input[aria-label=\"kernels\"]').value")
    page.go_forward()
    page.wait_for_function("document.querySelector('input[aria-label=\"kernels\"]').value === 'halo'")
    settle(page)
    page.get_by_text("time", exact=True).click()
    page.wait_for_url("**over=time**")
    address = page.url
    assert "kernels=halo" in address
    page.goto("about:blank")
    page.goto(address)
    settle(page)
    page.get_by_role("button", name="versions, metrics, kernels").click()
    page.wait_for_function("[...document.querySelectorAll('input')].some(one => one.value === 'halo')")
    assert "compute_tendencies" not in text(page)
    assert errors == []
    page.close()


@pytest.mark.parametrize(
    "names", [("Trends", "Runs"), pytest.param(("Trends", "Diff", "Runs"), marks=pytest.mark.long)]
)
def test_one_step_back_leaves_a_page_that_was_opened(
    filled: Any, dashboard: str, names: tuple[str, ...]
) -> None:
    page = filled.new_page()
    page.goto(f"{dashboard}/")
    settle(page)
    for name in names:
        page.locator(".stAppHeader a", has_text=name).first.click()
        page.wait_for_url(f"**/{name.lower()}*")
        page.locator(".k-address").first.wait_for(state="attached")  # all choices are made
        settle(page)
    for name in names[-2::-1]:
        page.go_back()
        page.wait_for_url(f"**/{name.lower()}*")
        settle(page)
    opened = page.url
    page.get_by_text("time", exact=True).click()
    page.wait_for_url("**over=time**")
    page.go_back()
    page.wait_for_url(opened)
    page.goto(page.locator(".k-address a").evaluate("link => link.href"))
    page.wait_for_url("**over=versions**")
    settle(page)
    assert page.locator(".k-address").count() == 0, "the address says everything"
    page.close()


def test_the_end_of_a_kernel_name_is_seen_on_a_phone(phone: Any, dashboard: str) -> None:
    phone.set_viewport_size({"width": 320, "height": 568})  # so narrow that names are cut
    phone.goto(f"{dashboard}/runs")
    settle(phone)
    phone.locator("td .mid:visible").first.wait_for()
    assert "set_halo_values_x_419_gpu" in text(phone)
    ends = phone.evaluate(
        """[...document.querySelectorAll('td .mid')].filter(name => name.offsetWidth).map(name => {
            const [start, end] = name.children, at = end.getBoundingClientRect()
            const room = name.closest('td').getBoundingClientRect().right - at.right
            return [at.width, room, start.scrollWidth - start.clientWidth]
        })"""
    )
    assert any(cut > 0 for *_, cut in ends), "nothing had to be cut"
    assert all(width > 30 and room >= 0 for width, room, _ in ends)


@pytest.mark.long  # what the two dropped reports show, on real ones
def test_the_diff_of_public_reports_shows_the_numbers_of_compare_too(
    browser: Any, public_reports: Path, tmp_path: Path
) -> None:
    context = browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    with served(tmp_path) as own:
        page.goto(f"{own.address}/runs")
        settle(page)
        import_pair(page, public_reports)
        assert_the_diff_shows_the_numbers_of_compare(context, public_reports)
        context.close()
