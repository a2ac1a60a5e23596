"""The headers of every answer of the dashboard's server, and what it does not answer."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from profiler.errors import ProfilerError
from profiler.ui import server
from profiler.ui.server import HEADERS, WithHeaders, WithSocketLimit
from tests.ui import asgi

ROOT = Path(__file__).resolve().parents[2]


async def _page(scope: Any, receive: Any, send: Any) -> None:
    headers = [(b"content-type", b"text/html"), (b"Referrer-Policy", b"no-referrer")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"page"})


def answer(path: str) -> tuple[int, dict[str, str], bytes]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    asgi.run(WithHeaders(_page)({"type": "http", "path": path}, receive, send))
    start, body = sent
    headers = {name.decode().lower(): text.decode() for name, text in start["headers"]}
    assert len(headers) == len(start["headers"])
    return start["status"], headers, body["body"]


def test_every_answer_says_what_a_browser_may_do_with_it() -> None:
    status, headers, body = answer("/trends")
    assert (status, body) == (200, b"page")
    assert headers == {**HEADERS, "content-type": "text/html", "referrer-policy": "no-referrer"}
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_numbers_about_sessions_are_closed() -> None:
    for path in ("/_stcore/metrics", "/base/_stcore/metrics/"):
        status, headers, body = answer(path)
        assert (status, body) == (404, b"")
        assert headers == HEADERS


def test_what_listens_sends_the_parts_of_an_answer_at_once() -> None:
    with server.listen("127.0.0.1") as listener, socket.create_connection(listener.getsockname()):
        assert server.FIRST_PORT <= listener.getsockname()[1] < server.FIRST_PORT + server.PORTS_TRIED
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_without_a_port_the_next_free_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with server.listen("127.0.0.1") as first:
        port = first.getsockname()[1]
        monkeypatch.setattr(server, "FIRST_PORT", port)
        with server.listen("127.0.0.1") as second:
            assert port < second.getsockname()[1] < port + server.PORTS_TRIED
        with pytest.raises(ProfilerError, match=f"--port {port}: address already in use; choose another"):
            server.listen("127.0.0.1", port)
        monkeypatch.setattr(server, "PORTS_TRIED", 1)
        with pytest.raises(ProfilerError, match=f"ports {port} to {port}: address already in use"):
            server.listen("127.0.0.1")


def test_one_web_socket_too_many_gets_503_until_another_has_closed() -> None:
    async def statuses() -> list[int | None]:
        may_end = asyncio.Event()

        async def page(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "websocket.accept"})
            await may_end.wait()

        limited = WithSocketLimit(page, most=2)
        seen: list[int | None] = []

        async def receive() -> Any:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            if message["type"] != "websocket.http.response.body":
                seen.append(message.get("status"))

        async def visit() -> None:
            await limited({"type": "websocket"}, receive, send)

        held = [asyncio.create_task(visit()) for _ in range(2)]
        await asyncio.sleep(0)
        await visit()
        may_end.set()
        await asyncio.gather(*held)
        await visit()
        return seen

    found: list[list[int | None]] = []

    async def note() -> None:
        found.append(await statuses())

    asgi.run(note())
    assert found == [[None, None, 503, None]]


@pytest.mark.slow
def test_the_browser_is_opened_at_the_address_that_is_served_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\ncurl -s -o "{opened}" "$1/_stcore/health"\n')
    browser.chmod(0o700)
    command = [sys.executable, "-m", "profiler.ui.server", "app.py", "--address", "127.0.0.1", "--browser"]
    environment = {
        **os.environ,
        "BROWSER": f"{browser} %s",
        "DISPLAY": ":0",
        "PROFILER_DATA": str(tmp_path / "data"),
    }
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as served:
        for _ in range(600):
            if (opened.exists() and opened.read_text()) or served.poll() is not None:
                break
            time.sleep(0.1)
        served.send_signal(signal.SIGINT)
        said, _ = served.communicate(timeout=60)
    assert opened.read_text() == "ok"
    assert re.fullmatch(r"The dashboard is at http://127\.0\.0\.1:\d+; Ctrl-C ends it\.\n", said)
    assert served.returncode == 0
