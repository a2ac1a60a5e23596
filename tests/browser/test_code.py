"""The Code page in a real browser: a kernel of five thousand instructions, and the way to it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiler.bundles import location
from profiler.reports import file_format, instances, read, reader_client
from profiler.store import import_paths
from tests.browser.conftest import served
from tests.browser.test_dashboard import DESKTOP, PHONE, settle, text, watch

pytestmark = pytest.mark.browser

TIMES = 2  # 2,694 instructions twice
SMALL = 985  # instructions of another launch of the report
LIMIT_S = 2.0
RATIO = 1.5
TRIES = 8  # at most: other work on the machine makes single ones slow


@pytest.fixture(scope="module")
def large(
    browser: Any, reports: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, str, int]]:
    """A dashboard whose cache holds a real launch with every instruction twice: no report has 5,000."""
    folder = tmp_path_factory.mktemp("large")
    source = reports / "cutlass" / "report80.ncu-rep"
    import_paths([source], family="cutlass", data=str(folder / "data"))
    cache = location.open_root(str(folder / "data")).cache() / "detail"
    read.launch_detail(source, 2, cache)
    (kept,) = cache.iterdir()
    answer = instances._load(kept)
    assert answer
    head, count = answer.head, answer.head["pcs"]
    head["sass"], head["pcs"], head["timelines"] = head["sass"] * TIMES, count * TIMES, []
    take = instances._columns(answer.blob)
    pcs = take(np.dtype("<u8"), count)
    columns = [np.concatenate([pcs + np.uint64(n * count * 16) for n in range(TIMES)])]
    columns += [
        np.tile(take(np.dtype(kind), count), TIMES) for kind in ("<i4", "<i4", *["<f8"] * len(head["per_pc"]))
    ]
    instances._save(
        kept, reader_client.Answer(json.loads(json.dumps(head)), b"".join(one.tobytes() for one in columns))
    )
    key = file_format.check_framing(source).sha256[:16]
    with served(folder) as address:
        yield browser, f"{address}/code?report={key}&launch=2", count * TIMES


def test_five_thousand_instructions_are_drawn_within_two_seconds(large: tuple[Any, str, int]) -> None:
    """In a new session of a browser that was here before, and in another order within the session.

    Where other work slows the machine, so that even a launch of a fifth of the size takes long, the
    large one may take `RATIO` times as long as that.
    """
    browser, address, count = large
    assert count > 5_000
    taken: dict[str, list[float]] = {"new session": [], "same session": [], "small": []}
    context = browser.new_context(viewport=DESKTOP)
    first = context.new_page()
    first.goto(address.partition("/code")[0])  # Streamlit's own script comes into the browser's cache
    settle(first)
    first.close()
    for _ in range(TRIES):
        page = context.new_page()
        errors = watch(page)
        started = time.perf_counter()
        page.goto(f"{address}&rows=address", wait_until="commit")
        drawn(page, count)
        taken["new session"].append(time.perf_counter() - started)
        settle(page)
        started = time.perf_counter()
        page.get_by_role("radio", name="line", exact=True).click()
        page.wait_for_selector(".code > .g")
        drawn(page, count)
        taken["same session"].append(time.perf_counter() - started)
        settle(page)
        assert not errors
        started = time.perf_counter()
        page.goto(address.replace("launch=2", "launch=0") + "&rows=address", wait_until="commit")
        drawn(page, SMALL)
        taken["small"].append(time.perf_counter() - started)
        page.close()
        best = {name: min(times) for name, times in taken.items()}
        if max(best.values()) < LIMIT_S:
            break
    context.close()
    print({name: [round(one, 2) for one in times] for name, times in taken.items()})
    limit = max(LIMIT_S, RATIO * best["small"])
    assert best["new session"] < limit, taken
    assert best["same session"] < limit, taken


def drawn(page: Any, count: int) -> None:
    """Wait until every instruction is there, none more and none less, and the browser has painted."""
    rows = "document.querySelectorAll('.code > div:not(.g):not(.t)').length"
    page.wait_for_function(f"{rows} === {count}")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_the_last_instruction_comes_into_sight(large: tuple[Any, str, int]) -> None:
    browser, address, count = large
    page = browser.new_context(viewport=DESKTOP).new_page()
    page.goto(f"{address}&rows=address")
    settle(page)
    last = page.locator(".code > div").last
    last.scroll_into_view_if_needed()
    assert last.is_visible()
    assert f"+{(count - 1) * 16:#06x}" in last.text_content()


def test_the_page_does_not_scroll_sideways_on_a_phone(large: tuple[Any, str, int]) -> None:
    browser, address, _ = large
    page = browser.new_context(viewport=PHONE).new_page()
    page.goto(address)
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert "instructions" in text(page)
