"""A script that waits for its first chart: what a browser's word does, and what nobody waits for."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from profiler.ui import first_chart
from tests.ui import asgi


def say(path: str, method: str = "GET") -> int:
    """The status of a browser's word; 200 where Streamlit would answer."""

    async def streamlit(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    routing = pytest.importorskip("starlette.routing")
    application = routing.Router([first_chart.route()], default=streamlit)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "root_path": "",
        "headers": [],
        "query_string": b"",
    }
    asgi.run(application(scope, receive, send))
    status: int = sent[0]["status"]
    return status


@pytest.mark.parametrize("folder", ["", "/behind/a/proxy"])
def test_a_browsers_word_ends_the_wait(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.setattr(first_chart, "LONGEST_S", 60.0)
    token = first_chart.expect()
    waiting = threading.Thread(target=first_chart.wait, args=(token,), daemon=True)
    waiting.start()
    assert waiting.is_alive()
    assert say(f"{folder}/drawn/{token}") == 204
    waiting.join(30)
    assert not waiting.is_alive()
    first_chart.forget(token)
    assert say(f"{folder}/drawn/{token}") == 204, "who comes too late has done nothing wrong"


def test_the_word_for_another_page_ends_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_chart, "LONGEST_S", 0.2)
    token, other = first_chart.expect(), first_chart.expect()
    assert say(f"/drawn/{other}") == 204
    began = time.monotonic()
    first_chart.wait(token)
    assert time.monotonic() - began >= 0.2
    first_chart.forget(token)
    first_chart.forget(other)


@pytest.mark.parametrize("path", ["/", "/trends", "/drawn/", f"/drawn/{'0' * 32}/x"])
def test_other_addresses_are_streamlits(path: str) -> None:
    assert say(path) == 200


def test_a_word_that_nobody_waits_for_changes_nothing() -> None:
    token = first_chart.expect()
    assert say(f"/drawn/{'0' * 33}") == 204
    assert not first_chart._expected[token].is_set()
    first_chart.forget(token)
