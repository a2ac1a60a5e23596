"""The headers of every answer of the dashboard's server, and what it does not answer."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from profiler.ui import server
from profiler.ui.server import HEADERS, WithHeaders
from tests.ui import asgi


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


def test_what_listens_sends_the_parts_of_an_answer_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    starlette_server = pytest.importorskip("streamlit.web.server.starlette.starlette_server")
    monkeypatch.setattr(
        starlette_server, "_bind_socket", starlette_server._bind_socket
    )  # put back afterwards
    server._answer_at_once()
    with starlette_server._bind_socket("127.0.0.1", 0, 5) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
