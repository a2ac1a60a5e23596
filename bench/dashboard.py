"""How fast the dashboard is over a data folder: queries, reruns of pages, a real browser, memory.

    python bench/data_folder.py FOLDER && python bench/dashboard.py FOLDER
    python bench/dashboard.py FOLDER --only browser --viewer streamlit-ncu-rep-viewer --report X.ncu-rep

queries  median of the store's answers that pages ask for (target 20 ms)
reruns   server time of a page that is opened and run again, in one process (target 300 ms)
browser  first content and first chart in Chromium, against a bare Streamlit page with one chart, the two
         opened in turn (target 1.25 times), and another viewer with one report where it is named
memory   of the server with five sessions, each on another page (target 600 MB)

On a busy machine only the ratios and the processor times mean something.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("overview", "lineage", "trends", "diff", "compare", "code", "launch", "regressions", "runs")
QUERY_MS, RERUN_MS, BROWSER_RATIO, MEMORY_MB = 20.0, 300.0, 1.25, 600.0
BARE_PAGE = """\
import plotly.graph_objects as go
import streamlit as st

st.title("One chart")
st.plotly_chart(go.Figure(go.Scatter(x=list(range(30)), y=[n % 7 for n in range(30)])))
"""
# Plotly's, or our own: Overview's tracks and small lines, the bars of Diff's causes.
_CHART = ".js-plotly-plot .main-svg, [data-testid=stMain] :is(span.track, span.fall, .k svg)"
# Before a page is opened: what a closed page still asks of server and browser must not slow the next one.
_REST_S = 1.5
_CONTENT = "[data-testid=stMain] :is(h1, p, [data-testid=stHtml] *)"
# Looked at within the page, before every frame is painted: who asks from outside hears of it only once the
# page has time to answer, which is after a chart that follows at once.
_WATCH = """
(([content, chart]) => {
  const firsts = (window.firsts = {});
  const look = () => {
    const first = firsts.content ? [] : [...document.querySelectorAll(content)].slice(0, 4);
    if (first.some((element) => element.checkVisibility({visibilityProperty: true})
        && element.getClientRects().length)) firsts.content = performance.now();
    if (!firsts.chart && document.querySelector(chart)) firsts.chart = performance.now();
    if (!(firsts.content && firsts.chart)) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})
"""


def line(what: str, number: float, unit: str, limit: float | None = None, more: str = "") -> None:
    """Print a figure, marked where it misses its target."""
    mark = "" if limit is None else f"< {limit:g}  {'ok' if number < limit else 'MISSED'}"
    print(f"  {what:56}{number:10,.2f} {unit:6}{mark:16}{more}".rstrip(), flush=True)


def medians(ask: Callable[[], Any], rounds: int) -> tuple[float, float, float]:
    """Median wall and processor time in ms; and the processor time of a round before, not counted."""
    used = time.process_time()
    ask()
    first = 1e3 * (time.process_time() - used)
    walls, cpus = [], []
    for _ in range(rounds):
        began, used = time.perf_counter(), time.process_time()
        ask()
        walls.append(1e3 * (time.perf_counter() - began))
        cpus.append(1e3 * (time.process_time() - used))
    return median(walls), median(cpus), first


def queries(folder: Path, rounds: int) -> None:
    """What pages ask the store."""
    from profiler.evidence.metric_table import load_metrics
    from profiler.evidence.values import Evidence
    from profiler.store.readable_index import open_store

    names = [
        name for metric in load_metrics().of(Evidence.MEASURED) for name in metric.names_for("sm_90")[:1]
    ][:60]
    with open_store(str(folder)) as store:
        store.freeze_loaded()  # as the dashboard does
        measured = [cell for cell in store.cells() if cell.evidence is Evidence.MEASURED]
        family, version, workload = measured[-1][:3]
        asked: dict[str, Callable[[], Any]] = {
            "cells()": lambda: store.cells(family),
            "versions()": lambda: store.versions(family),
            "runs(), newest 100": lambda: store.runs(limit=100),
            "newest results of a version": lambda: store.results(family=family, version=version),
            "trend of one metric, all versions": lambda: store.series(names[:1], latest=True),
            "history of one metric, one workload": lambda: store.series(names[:1], workload=workload),
            "latencies of a pair": lambda: store.latencies(family=family, version=version, workload=workload),
            "side of a diff": lambda: store.side(family=family, version=version, workload=workload),
        }
        for what, ask in asked.items():
            wall, cpu, first = medians(ask, rounds)
            line(what, wall, "ms", QUERY_MS, f"{cpu:.1f} of processor time; the first {first:.1f}")


def reruns(folder: Path, rounds: int) -> None:
    """Pages opened as Streamlit runs them, and run again."""
    os.environ["PROFILER_DATA"] = str(folder)
    from streamlit.testing.v1 import AppTest

    for name in PAGES:
        if not (ROOT / f"profiler/ui/pages/{name}.py").exists():
            continue
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
        used = time.process_time()
        app.run()
        if name != "overview":
            app.switch_page(f"profiler/ui/pages/{name}.py").run()
        first = time.process_time() - used
        if app.exception:
            print(f"  {name}: {app.exception[0].message}")
            continue
        wall, cpu, _ = medians(app.run, rounds)
        line(f"{name}, run again", wall, "ms", RERUN_MS, f"{cpu:.0f} of processor time; first {first:.1f} s")


@contextlib.contextmanager
def server(
    command: Sequence[str], port: int, environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that answers on the port."""
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5)
                break
            time.sleep(0.5)
        yield process
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def streamlit_command(script: Path, port: int) -> list[str]:
    """`streamlit run` of a script."""
    options = ["--server.headless=true", "--server.fileWatcherType=none", "--browser.gatherUsageStats=false"]
    port_options = [f"--server.port={port}", "--server.address=127.0.0.1"]
    return [sys.executable, "-m", "streamlit", "run", str(script), *port_options, *options]


def opened(browser: Any, address: str) -> tuple[float, float]:
    """Seconds from the request of a page, in a new session, to its first content and its first chart."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.add_init_script(f"({_WATCH})({json.dumps([_CONTENT, _CHART])})")
    page.goto(address, wait_until="commit")
    page.wait_for_function("window.firsts?.content && window.firsts.chart", timeout=120_000)
    content, chart = page.evaluate("[window.firsts.content / 1e3, window.firsts.chart / 1e3]")
    context.close()
    return content, chart


def dashboard_command(port: int) -> list[str]:
    """The dashboard as its users start it."""
    return [sys.executable, "-m", "profiler", "dashboard", "--no-browser", "--port", str(port)]


def memory_mb(process: int) -> float:
    """Resident memory of a process and its children."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(folder.name) == process or int(fields[1]) == process:
                total += int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total / 1e6


def in_browser(folder: Path, rounds: int, pages: Sequence[str], viewer: str, report: str) -> None:
    """First content and first chart beside a bare page, in turn; then five sessions."""
    from playwright.sync_api import sync_playwright

    browser_path = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (scratch / "bare.py").write_text(BARE_PAGE)
        ports = {name: free_port() for name in ("bare", "dashboard", "viewer")}
        stack.enter_context(server(streamlit_command(scratch / "bare.py", ports["bare"]), ports["bare"], {}))
        ours = stack.enter_context(
            server(
                dashboard_command(ports["dashboard"]),
                ports["dashboard"],
                {"PROFILER_DATA": str(folder)},
            )
        )
        addresses = {"bare": f"http://127.0.0.1:{ports['bare']}"}
        # Overview is what the server's own address shows.
        addresses |= {
            name: f"http://127.0.0.1:{ports['dashboard']}/{'' if name == 'overview' else name}"
            for name in pages
        }
        if viewer:
            options = f"--server.port {ports['viewer']} --server.headless true"
            command = [*shlex.split(viewer), report, *options.split()]
            stack.enter_context(server(command, ports["viewer"], {}))
            addresses["viewer"] = f"http://127.0.0.1:{ports['viewer']}"
        driver = stack.enter_context(sync_playwright())
        browser = driver.chromium.launch(executable_path=browser_path, args=arguments)
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in addresses}
        for number in range(rounds + 1):
            for name, address in addresses.items():
                time.sleep(_REST_S)
                seconds = opened(browser, address)
                if number:  # the first fills caches
                    taken[name].append(seconds)
        bare = [median(column) for column in zip(*taken.pop("bare"), strict=True)]
        print(f"  a bare page: content {1e3 * bare[0]:.0f} ms, chart {1e3 * bare[1]:.0f} ms")
        for name, rounds_taken in taken.items():
            limit = None if name == "viewer" else BROWSER_RATIO
            medians_of_page = map(median, zip(*rounds_taken, strict=True))
            for what, number, by in zip(("content", "chart"), medians_of_page, bare, strict=True):
                line(f"{name}, first {what}", number / by, "times", limit, f"{1e3 * number:.0f} ms")
        sessions = [browser.new_context().new_page() for _ in range(5)]
        for page, name in zip(sessions, ("overview", "lineage", "trends", "diff", "runs"), strict=True):
            page.goto(f"http://127.0.0.1:{ports['dashboard']}/{name}")
            page.wait_for_selector(f"{_CONTENT}:visible", timeout=120_000)
        time.sleep(5)
        line("memory of the server, five sessions", memory_mb(ours.pid), "MB", MEMORY_MB)
        browser.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=("queries", "reruns", "browser"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--pages", default="overview,trends", help="pages with a chart to open in the browser"
    )
    parser.add_argument("--viewer", default="", help="the command of another viewer of reports")
    parser.add_argument("--report", default="", help="the report that it opens")
    arguments = parser.parse_args(argv)
    if arguments.only in (None, "queries"):
        print("queries")
        queries(arguments.folder, arguments.rounds)
    if arguments.only in (None, "reruns"):
        print("reruns")
        reruns(arguments.folder, arguments.rounds)
    if arguments.only in (None, "browser"):
        print("browser")
        pages = arguments.pages.split(",")
        in_browser(arguments.folder, arguments.rounds, pages, arguments.viewer, arguments.report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
