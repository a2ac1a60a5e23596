"""The Code page in a real browser: a kernel of five thousand instructions, and the way to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiler.bundles import location
from profiler.reports import file_format, instances, read, reader_client
from profiler.store.begin_import import import_paths
from tests.browser.conftest import DESKTOP, PHONE, TOO_WIDE, Dashboard, served, settle, text, watch

pytestmark = pytest.mark.browser

INSTRUCTIONS = 5_000  # more than any report holds: those of a real launch, several times
RATIO = 3.5  # 2.4 to 3.0 on a quiet machine
TRIES = 5  # at most: what else the machine does makes single ones slow, in CPU seconds too


@dataclass(frozen=True)
class LargeLaunch:
    """A launch with thousands of instructions, on the Code page of a dashboard."""

    browser: Any
    dashboard: Dashboard
    address: str
    count: int
    small: int  # instructions of launch 0 of the same report


@pytest.fixture(scope="module")
def large(
    browser: Any, made_reports: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LargeLaunch]:
    """A dashboard whose cache holds a real launch with every instruction several times."""
    folder = tmp_path_factory.mktemp("large")
    source = made_reports / "cutlass" / "report80.ncu-rep"
    import_paths([source], family="cutlass", data=str(folder / "data"))
    cache = location.open_root(str(folder / "data")).cache() / "detail"
    read.launch_detail(source, 2, cache)
    (kept,) = cache.iterdir()
    answer = instances._load(kept)
    assert answer
    head, count = answer.head, answer.head["pcs"]
    times = INSTRUCTIONS // count + 1
    head["sass"], head["pcs"], head["timelines"] = head["sass"] * times, count * times, []
    take = instances._columns(answer.blob)
    pcs = take(np.dtype("<u8"), count)
    columns = [np.concatenate([pcs + np.uint64(n * count * 16) for n in range(times)])]
    columns += [
        np.tile(take(np.dtype(kind), count), times) for kind in ("<i4", "<i4", *["<f8"] * len(head["per_pc"]))
    ]
    instances._save(
        kept, reader_client.Answer(json.loads(json.dumps(head)), b"".join(one.tobytes() for one in columns))
    )
    key = file_format.check_framing(source).sha256[:16]
    with served(folder) as dashboard:
        address = f"{dashboard.address}/code?a={key}&launch=2&view=sass"
        small = len(read.launch_detail(source, 0).pcs)
        yield LargeLaunch(browser, dashboard, address, count * times, small)


@pytest.mark.long
def test_five_thousand_instructions_take_little_more_work_than_a_few_hundred(large: LargeLaunch) -> None:
    """In a new session of a browser that was here before, and in another order within the session.

    Work is CPU time of the server and of the page's main thread, of which other work on the machine makes
    both launches need more. With five to twelve times the instructions most of it must not grow.
    """
    assert large.count > INSTRUCTIONS > 5 * large.small
    taken: dict[str, list[float]] = {"new session": [], "same session": [], "small": []}
    context = large.browser.new_context(viewport=DESKTOP)
    first = context.new_page()
    first.goto(large.dashboard.address)  # Streamlit's own script comes into the browser's cache
    settle(first)
    first.close()
    for _ in range(TRIES):
        page = context.new_page()
        errors = watch(page)
        work = Work(large.dashboard, page)
        page.goto(f"{large.address.replace('launch=2', 'launch=0')}&rows=address", wait_until="commit")
        drawn(page, large.small)
        taken["small"].append(work.since_s())
        page.close()
        page = context.new_page()
        errors += watch(page)
        work = Work(large.dashboard, page)
        page.goto(f"{large.address}&rows=address", wait_until="commit")
        drawn(page, large.count)
        taken["new session"].append(work.since_s())
        settle(page)
        work = Work(large.dashboard, page)
        page.get_by_role("radio", name="line", exact=True).click()
        page.wait_for_selector(".code > .g")
        drawn(page, large.count)
        taken["same session"].append(work.since_s())
        settle(page)
        assert not errors
        page.close()
        limit = RATIO * min(taken["small"])
        if max(min(taken["new session"]), min(taken["same session"])) < limit:
            break
    context.close()
    print({name: [round(seconds, 2) for seconds in times] for name, times in taken.items()})
    assert min(taken["new session"]) < limit, taken
    assert min(taken["same session"]) < limit, taken


class Work:
    """CPU seconds that a dashboard and the main thread of a page take from now on."""

    def __init__(self, dashboard: Dashboard, page: Any) -> None:
        self._dashboard, self._session = dashboard, page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._before = self._total_s()

    def _total_s(self) -> float:
        metrics = {
            one["name"]: one["value"] for one in self._session.send("Performance.getMetrics")["metrics"]
        }
        return self._dashboard.cpu_s() + float(metrics["TaskDuration"])

    def since_s(self) -> float:
        return self._total_s() - self._before


def drawn(page: Any, count: int) -> None:
    """Wait until every instruction is there, none more and none less, and the browser has painted."""
    rows = "document.querySelectorAll('.code > div:not(.g):not(.t)').length"
    page.wait_for_function(f"{rows} === {count}")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.fixture(scope="module")
def page(large: LargeLaunch) -> Iterator[Any]:
    """The page of the large launch, opened once: thousands of rows take seconds."""
    context = large.browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    page.goto(f"{large.address}&rows=address")
    settle(page)
    yield page
    context.close()


def test_the_last_instruction_comes_into_sight(large: LargeLaunch, page: Any) -> None:
    last = page.locator(".code > div").last
    last.scroll_into_view_if_needed()
    assert last.is_visible()
    assert f"+{(large.count - 1) * 16:#06x}" in last.text_content()


def test_the_page_does_not_scroll_sideways_on_a_phone(page: Any) -> None:
    page.set_viewport_size(PHONE)
    assert page.evaluate(TOO_WIDE) == []
    assert "instructions" in text(page)
