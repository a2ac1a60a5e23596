"""The headers of every answer of the dashboard's server, and what it does not answer."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from profiler.ui import server
from profiler.ui.server import HEADERS, WithHeaders, WithSocketLimit
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


def test_the_server_takes_small_messages_and_inflates_none(monkeypatch: pytest.MonkeyPatch) -> None:
    starlette_server = pytest.importorskip("streamlit.web.server.starlette.starlette_server")
    name = "_get_uvicorn_config_kwargs"
    monkeypatch.setattr(starlette_server, name, getattr(starlette_server, name))  # put back afterwards
    before = starlette_server._get_uvicorn_config_kwargs()
    server._take_small_messages()
    settings = starlette_server._get_uvicorn_config_kwargs()
    assert before["ws_max_size"] > settings["ws_max_size"] == 1 << 20
    assert settings["ws_per_message_deflate"] is False
    assert settings.keys() == before.keys()


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
