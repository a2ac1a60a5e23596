"""A dashboard on a free port, a real Chromium to look at it, and what waits until a page is drawn.

Starting a server, and loading the dashboard into a new browser context, take seconds of processor time:
one server over two made families and one context are shared by all tests that only look.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from profiler.store.begin_import import import_paths
from tests.search.simulated import make_search, run_search

ROOT = Path(__file__).resolve().parents[2]
# Pages of a context share a process, in which Streamlit's and Plotly's scripts are compiled once.
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    "--renderer-process-limit=1",
]
STARTS_WITHIN_S = 300  # a busy machine takes long; one that never starts must not hang the tests
BROWSER_WAITS_MS = 30_000  # for what a page waits for, on a machine with at most two programs a processor
MOST_PATIENCE = 4  # on a busier one so many times as long
DESKTOP = {"width": 1440, "height": 900}
SMALL_DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
# Streamlit asks for these below a page's own address before it finds its root; nothing else may fail.
KNOWN_404 = ("/_stcore/health", "/_stcore/host-config")
IS_DARK = "getComputedStyle(document.querySelector('.stApp')).backgroundColor === 'rgb(18, 21, 27)'"
HAS_CHARTS = (
    "[...document.querySelectorAll('.stPlotlyChart')].every(chart => chart.querySelector('.main-svg'))"
)
# Resolves once nothing of the page has changed for some frames, or after a while.
STANDS_STILL = """new Promise(done => {
    const end = () => (observer.disconnect(), done())
    const restart = () => (clearTimeout(timer), timer = setTimeout(end, 200))
    const observer = new MutationObserver(restart)
    let timer = setTimeout(end, 200)
    setTimeout(end, 5000)
    observer.observe(document.querySelector('.stApp'), {childList: true, subtree: true, attributes: true})
})"""
# Resolves to what is wider than its room: once nothing is, or after the time that drawing anew takes.
TOO_WIDE = """new Promise(done => {
    const elements = [document.documentElement, document.querySelector('.stMain')], began = performance.now()
    const look = () => {
        const wide = elements.filter(element => element.scrollWidth > element.clientWidth)
        if (wide.length && performance.now() - began < 10000) requestAnimationFrame(look)
        else done(wide.map(element => `${element.scrollWidth} in ${element.clientWidth}`))
    }
    requestAnimationFrame(() => requestAnimationFrame(look))
})"""


@dataclass(frozen=True)
class Dashboard:
    """A running dashboard."""

    address: str
    pid: int

    def cpu_s(self) -> float:
        """CPU seconds of the server and of what it has started and waited for."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def chromium() -> str | None:
    """The system's browser."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, headless."""
    path = chromium()
    if path is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make setup")
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield _Patient(launched)
        launched.close()


class _Patient:
    """A browser whose pages wait as long as a busy machine needs."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser

    def new_context(self, **options: Any) -> Any:
        context = self._browser.new_context(**options)
        context.set_default_timeout(waits_ms())
        context.on("page", lambda page: page.set_default_timeout(waits_ms()))
        return context


def keep_process(context: Any, address: str) -> None:
    """Open a page without scripts that stays: with the last page of a site its process would end."""
    context.new_page().goto(f"{address}/_stcore/health")


def waits_ms() -> float:
    """How long a page may take for what it is waited for, as busy as the machine is now."""
    load = os.getloadavg()[0] / (2 * (os.cpu_count() or 1))
    return BROWSER_WAITS_MS * min(max(1.0, load), MOST_PATIENCE)


@pytest.fixture(scope="session")
def two_families(tmp_path_factory: pytest.TempPathFactory, made_reports: Path) -> Iterator[Dashboard]:
    """A dashboard over two families of made reports, and a search that is at its end."""
    folder = tmp_path_factory.mktemp("two_families")
    import_paths([made_reports / name for name in ("ncar", "llm.c")], data=str(folder / "data"))
    run_search(make_search(folder / "data", seed=3, target_ns=5e4), 30)
    with served(folder) as dashboard:
        yield dashboard


@pytest.fixture(scope="session")
def address(two_families: Dashboard) -> str:
    """Where that dashboard answers."""
    return two_families.address


@pytest.fixture(scope="session")
def desktop(browser: Any, address: str) -> Iterator[Any]:
    """A context of a small desktop's size, whose pages share what the browser has loaded."""
    context = browser.new_context(viewport=SMALL_DESKTOP, permissions=["clipboard-read", "clipboard-write"])
    keep_process(context, address)
    yield context
    context.close()


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
    page.wait_for_selector(".stMain .k")
    page.wait_for_selector('[data-test-script-state="notRunning"]', state="attached")


def opened(context: Any, address: str, script: str = "") -> tuple[Any, list[str]]:
    """A new page in which nothing moves any more, and what went wrong in it; `script` runs first of all."""
    page = context.new_page()
    if script:
        page.add_init_script(script)
    errors = watch(page)
    page.goto(address)
    settle(page)
    page.locator(".k-toolbar").wait_for()
    page.wait_for_function(HAS_CHARTS)
    page.evaluate(STANDS_STILL)
    return page, errors


def text(page: Any) -> str:
    """What a person reads, thin spaces and line breaks as plain spaces."""
    return " ".join(page.inner_text(".stMain").split())


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Dashboard]:
    """A dashboard over the data in a folder's `data`, as long as the context lasts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "PROFILER_DATA": str(folder / "data")}
    environment.pop("PROFILER_DB", None)
    command = [sys.executable, "-m", "profiler", "dashboard", "--no-browser", "--port", str(port)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait(f"{address}/_stcore/health", server, folder / "log")
            yield Dashboard(address, server.pid)
        finally:
            server.terminate()
            server.wait(STARTS_WITHIN_S)


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(STARTS_WITHIN_S * 5):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(address, timeout=30):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"the dashboard did not start: {log.read_text()}")
