"""Ten things that an engineer does with the dashboard, in a real Chromium: clicks, keys and waits of each.

    python bench/ten_tasks.py
    python bench/ten_tasks.py --only compare,pin
    python bench/ten_tasks.py --keep FOLDER      and leave the data that it made there

The data are made: nights in which every correct version of the catalogue was timed with a baseline on two
workloads, and counters of two versions; from one night on the fastest is slower. Each task begins on a page
of a new tab and is done twice: with the mouse, where a click is counted, and by the keyboard alone, which
is the tenth; a text that is typed counts as one key. A wait is a run of the page's script that an action
caused. Decisions are written into a copy of the data.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from dashboard import free_port, server
from data_folder import CAPABILITY, CATALOGUED, GPU, WORKLOADS, csv_text, metric_names

from profiler.bundles import bundle, location
from profiler.bundles.run import COLLECT, Capture, ReportFile, Result, Run, Samples
from profiler.catalog.catalog import PROJECT_KERNELS, load_catalog
from profiler.store.sync import sync_index

ROOT = Path(__file__).resolve().parent.parent
START = datetime(2026, 11, 5, 2, tzinfo=UTC)  # the newest night is before the run with the catalogue
NIGHTS, SLOWER_FROM, SLOWER = 16, 10, 1.08
ROUNDS, CALLS = 20, 4  # of each version and workload a night
BASELINE = "sdpa_flash"
WITH_COUNTERS = 2  # versions, the fastest ones; not in the newest night
WAIT_MS = 60_000
SEARCH_S = 30
VIEWPORT = {"width": 1280, "height": 900}
MOST_KEYS = 80  # until a control must have the focus
IDLE = """document.querySelector('[data-test-script-state="notRunning"]')
    && document.querySelector('.stMain .k')"""
IS_IN_VIEW = """element => { const box = element.getBoundingClientRect()
    return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight }"""
# The words of the marked entry of the palette, and of the group that it stands in.
MARKED = """(() => {
  const entry = document.querySelector('#k-found [aria-selected="true"]');
  return [entry?.querySelector('span').textContent, entry?.closest('[role=group]').ariaLabel];
})()"""
HERE = "on this page"
IS_DARK = "getComputedStyle(document.querySelector('.stApp')).backgroundColor === 'rgb(18, 21, 27)'"


def make(folder: Path, scratch: Path) -> None:
    """The nights, and the newest of this repository's runs that keeps the catalogue."""
    catalog = load_catalog(PROJECT_KERNELS / "catalog.toml")
    good = [version for version in catalog.versions if version.state == "good" and version.source]
    versions = [version.id for version in good if "fp16" in version.dtypes]
    workloads = WORKLOADS[:2]
    newest = max((ROOT / "data/runs").glob(CATALOGUED))
    runs = folder / "runs"
    shutil.copytree(newest, runs / newest.name)
    of_catalog = bundle.load_run_folder(runs / newest.name)
    sources = {result.version: result.source_sha256 for result in of_catalog.results}
    root = location.open_root(str(folder))
    typical = np.geomspace(4e5, 4e4, len(versions))[:, None] * np.array((1, 0.6))
    for night in range(NIGHTS):
        chance = np.random.default_rng(night)
        level = typical * chance.normal(1.0, 0.002, typical.shape)
        level[-1] *= SLOWER if night >= SLOWER_FROM else 1.0
        captures, files, paths = _counters(versions[-WITH_COUNTERS:], level[-WITH_COUNTERS:], night, scratch)
        if night == NIGHTS - 1:
            captures, files, paths = {}, (), {}
        results = []
        for at, version in enumerate((*versions, BASELINE)):
            for column, workload in enumerate(workloads):
                ns = 1.3 * level[-1, column] if version == BASELINE else level[at, column]
                calls = ns * chance.normal(1.0, 0.006, ROUNDS * CALLS)
                rounds = tuple(number // CALLS for number in range(ROUNDS * CALLS))
                samples = Samples("events; cache warm; clock none", tuple(calls.round().tolist()), rounds)
                results.append(
                    Result(
                        catalog.family,
                        version,
                        workload,
                        source_sha256=sources.get(version),
                        captures=captures.get((version, workload), ()),
                        samples=(samples,),
                    )
                )
        created = START + timedelta(days=night)
        name = f"{created:%Y%m%dT%H%M%S}-{catalog.family}-night-{night:08x}"
        about = {"gpu": GPU, "compute_capability": CAPABILITY, "driver": "580.95.05", "created_from": "clock"}
        with bundle.importing(root):
            bundle.seal(root, Run(name, COLLECT, created, about, tuple(results), files), paths)
    sync_index(str(folder))


def _counters(
    versions: Sequence[str], level: np.ndarray, night: int, scratch: Path
) -> tuple[dict[tuple[str, str], tuple[Capture, ...]], tuple[ReportFile, ...], dict[str, Path]]:
    """A report of each version with a launch a workload: who has it, what it is, and where it lies."""
    chance = np.random.default_rng(1000)
    metrics = metric_names()
    captures, files, paths = {}, [], {}
    for version, row in zip(versions, level, strict=True):
        values = chance.uniform(1.0, 100.0, (len(row), len(metrics)))
        values[:, 0] = row / 0.96
        path = scratch / f"{version}-{night}.csv"
        path.write_text(csv_text(version, metrics, values), encoding="utf-8")
        content = path.read_bytes()
        digest = sha256(content).hexdigest()
        file = bundle.imported_report_file(path.name, digest, len(content))
        files.append(file)
        paths[file.path] = path
        for ordinal, workload in enumerate(WORKLOADS[: len(row)]):
            captures[version, workload] = (Capture(digest, (ordinal,)),)
    return captures, tuple(files), paths


class NotDone(Exception):
    """A task that did not lead where it should."""


class Hands:
    """A mouse or a keyboard on a page, which counts what it does."""

    def __init__(self, page: Any, by_keyboard: bool) -> None:
        self.page, self.by_keyboard = page, by_keyboard
        self.actions = self.waits = 0
        self.seconds = 0.0

    def use(self, place: Any) -> None:
        """Follow a link or press a button: a click, or its words typed into the palette."""
        place = place.first
        place.wait_for()
        if self.by_keyboard:
            label = place.evaluate("place => (place.textContent.trim() || place.ariaLabel || '').trim()")
            self.choose(label, HERE)
        else:
            self.actions += 1
            place.click()
        self.wait()

    def choose(self, label: str, group: str = "actions") -> None:
        """Type words into the palette, and take the entry of a group that has them."""
        self.key("Control+k")
        self.page.keyboard.type(label)
        self.actions += 1
        deadline = time.monotonic() + SEARCH_S
        seen = 0
        # What the server finds comes after what the page has, and may stand before it: look twice.
        while seen < 2:
            if time.monotonic() > deadline:
                raise NotDone(f"the palette does not list {label}")
            time.sleep(0.5)
            seen = seen + 1 if self.page.evaluate(MARKED) == [label, group] else 0
            if not seen:
                self.page.keyboard.press("ArrowDown")
        self.key("Enter")

    def key(self, name: str) -> None:
        """Press a key."""
        self.actions += 1
        self.page.keyboard.press(name)

    def write(self, field: Any, text: str) -> None:
        """Write into a field: after a click on it, or after Tab has reached it."""
        if self.by_keyboard:
            for _ in range(MOST_KEYS):
                if field.first.evaluate("field => field === document.activeElement"):
                    break
                self.page.keyboard.press("Tab")
            else:
                raise NotDone("Tab does not reach the field")
            self.actions += 1
        else:
            self.actions += 1
            field.first.click()
        self.page.keyboard.type(text)

    def wait(self) -> None:
        """Wait until the page has run for what was done."""
        began = time.monotonic()
        self.page.wait_for_timeout(150)  # until the run has begun, where there is one
        self.page.wait_for_function(IDLE)
        self.seconds += time.monotonic() - began
        self.waits += 1


@dataclass(frozen=True)
class Task:
    """What is done, from which page, and with how many clicks at most."""

    name: str
    page: str
    limit: int
    do: Callable[[Hands], None]
    key: str


def find_best(hands: Hands) -> None:
    """The best version stands in view."""
    row = hands.page.locator(".best tbody tr:not(.g) .c").first
    row.wait_for()
    if not row.evaluate(IS_IN_VIEW):
        raise NotDone("the best version is not in view")


def find_why(hands: Hands) -> None:
    """The diff of the best version with its parent."""
    hands.use(hands.page.locator(".best a", has_text="why"))
    expect(hands, "/diff")
    hands.page.get_by_text("Verdict").first.wait_for()


def find_since_when(hands: Hands) -> None:
    """When what is worse got worse."""
    hands.use(hands.page.locator(".stMain a", has_text="since when"))
    expect(hands, "/regressions")
    hands.page.locator(".stMain .k", has_text="since").first.wait_for()


def find_line(hands: Hands) -> None:
    """The source line that costs most."""
    hands.use(hands.page.locator(".best a", has_text="code"))
    expect(hands, "/code")
    hands.page.locator(".code > div, .k-box tbody tr").first.wait_for()


def compare_five(hands: Hands) -> None:
    """Five versions that stand together, in one table."""
    boxes = hands.page.locator(".k-ticks input")
    boxes.nth(4).wait_for()
    if hands.by_keyboard:
        for key in ("j", "x", "j", "j", "j", "j", "X"):
            hands.key(key)
    else:
        hands.actions += 2
        boxes.nth(0).click()
        boxes.nth(4).click(modifiers=["Shift"])
    hands.use(hands.page.get_by_role("button", name="compare the ticked"))
    expect(hands, "/compare")
    hands.page.locator(".many tbody tr").nth(4).wait_for()


def export(hands: Hands) -> None:
    """A chart or table as a file."""
    place = hands.page.locator(".js-plotly-plot .main-svg, .k-box table").first
    place.wait_for()
    with hands.page.expect_download():
        if hands.by_keyboard:
            hands.key("e")
            hands.key("Enter")
        else:
            place.hover()
            hands.actions += 1
            hands.page.locator(".k-export button").first.click()


def acknowledge(hands: Hands) -> None:
    """A group of regressions let pass, for a reason."""
    page = hands.page
    reason = page.get_by_label("reason")
    if not reason.count():
        hands.use(page.locator(".stMain .k-box tbody a"))
    hands.write(reason, "the clock was locked")
    hands.use(page.get_by_role("button", name="Acknowledge"))
    page.get_by_role("button", name="Undo").first.wait_for()


def pin(hands: Hands) -> None:
    """The best version pinned as the baseline."""
    hands.use(hands.page.get_by_role("button", name="Pin", exact=True))
    hands.page.get_by_role("button", name="Unpin").first.wait_for(timeout=20_000)


def change_theme(hands: Hands) -> None:
    """The other theme."""
    if hands.by_keyboard:
        hands.choose("theme: dark")
    else:
        hands.actions += 1
        hands.page.locator('[data-does="theme"]').click()
    hands.page.wait_for_function(IS_DARK)


def expect(hands: Hands, path: str) -> None:
    """Raise unless the page is the one that was meant."""
    hands.page.wait_for_url(f"**{path}*")
    if hands.page.locator(".stException").count():
        raise NotDone(f"{path} shows an error")


TASKS = (
    Task("best version, in view", "/", 0, find_best, "best"),
    Task("why it differs from its parent", "/", 1, find_why, "why"),
    Task("since when it is worse", "/", 2, find_since_when, "since"),
    Task("costliest source line", "/", 2, find_line, "line"),
    Task("compare five versions", "/lineage", 3, compare_five, "compare"),
    Task("export", "/trends", 1, export, "export"),
    Task("acknowledge a group", "/regressions", 3, acknowledge, "acknowledge"),
    Task("pin a baseline", "/lineage", 2, pin, "pin"),
    Task("the other theme", "/", 1, change_theme, "theme"),
)


def tried(browser: Any, address: str, task: Task, by_keyboard: bool) -> tuple[str, Hands | None]:
    """How a task went, in words; in a new context, so that no task leaves anything to the next."""
    context = browser.new_context(viewport=VIEWPORT, color_scheme="light", accept_downloads=True)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    try:
        page.goto(address + task.page)
        page.wait_for_function(IDLE)
        page.locator(".k-toolbar").wait_for()
        hands = Hands(page, by_keyboard)
        task.do(hands)
    except Exception as error:  # Playwright's own are of many kinds: the other tasks go on
        return str(error).splitlines()[0][:60], None
    finally:
        context.close()
    return "done", hands


def main(argv: Sequence[str] | None = None) -> int:
    """Do what is asked for, and print the table; 1 where a task fails or takes too many clicks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help=", ".join(task.key for task in TASKS))
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the made data stay")
    arguments = parser.parse_args(argv)
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    chosen = arguments.only.split(",") if arguments.only else [task.key for task in TASKS]
    has_failed = False
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        made = arguments.keep or Path(scratch) / "made"
        if not made.exists():
            make(made, Path(scratch))
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        print(f"{'task':34}{'clicks':>7}{'target':>7}{'waits':>6}{'s':>7}   keys")
        for by_keyboard in (False, True):  # the second is the tenth task
            if by_keyboard:
                print("by the keyboard alone")
            data = Path(scratch) / ("keyboard" if by_keyboard else "mouse")
            shutil.copytree(made, data)
            port = free_port()
            command = [sys.executable, "-m", "profiler", "dashboard", "--no-browser", "--port", str(port)]
            with server(command, port, {"PROFILER_DATA": str(data)}):
                for task in (task for task in TASKS if task.key in chosen):
                    words, hands = tried(browser, f"http://127.0.0.1:{port}", task, by_keyboard)
                    is_right = hands is not None and (by_keyboard or hands.actions <= task.limit)
                    has_failed = has_failed or not is_right
                    counts = ("", "", "", "", "")
                    if hands is not None:
                        clicks, keys = ("", hands.actions) if by_keyboard else (hands.actions, "")
                        counts = (clicks, task.limit, hands.waits, f"{hands.seconds:.1f}", keys)
                    mark = "" if is_right else f"  MISSED: {words}"
                    print("{:34}{:>7}{:>7}{:>6}{:>7}{:>7}".format(task.name, *counts) + mark, flush=True)
        browser.close()
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
