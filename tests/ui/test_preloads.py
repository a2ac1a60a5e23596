"""What the server puts into the head of a page, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import streamlit

from profiler.ui import preloads
from profiler.ui.preloads import KINDS, WithPreloads, head_parts
from profiler.ui.theme import style_sheet
from tests.ui import asgi

PAGE = b"<html><head><title>page</title></head><body></body></html>"


def answer(
    headers: dict[str, str], *, method: str = "GET", status: int = 200
) -> tuple[dict[str, str], bytes]:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        pairs = [(name.encode(), text.encode()) for name, text in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": PAGE[:20], "more_body": True})
        await send({"type": "http.response.body", "body": PAGE[20:]})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    asgi.run(WithPreloads(app)({"type": "http", "path": "/", "method": method, "headers": []}, receive, send))
    start, *bodies = sent
    assert start["status"] == status
    got = {name.decode(): text.decode() for name, text in start["headers"]}
    return got, b"".join(body["body"] for body in bodies)


def test_a_page_has_the_parts_and_the_style_sheet_and_is_as_long_as_it_says() -> None:
    whole = {"content-type": "text/html; charset=utf-8", "content-length": str(len(PAGE)), "etag": "x"}
    headers, body = answer(whole)
    assert body == PAGE.replace(b"</head>", head_parts() + b"</head>").replace(
        b"</body>", style_sheet().encode() + b"</body>"
    )
    assert headers == {"content-type": whole["content-type"], "content-length": str(len(body))}


@pytest.mark.parametrize(
    ("headers", "request_method", "status"),
    [
        ({"content-type": "text/javascript", "etag": "x"}, "GET", 200),
        ({"content-type": "text/html", "content-encoding": "gzip"}, "GET", 200),
        ({"content-type": "text/html"}, "GET", 404),
        ({"content-type": "text/html", "content-length": "58"}, "HEAD", 200),
    ],
)
def test_what_is_no_whole_page_is_left_as_it_is(
    headers: dict[str, str], request_method: str, status: int
) -> None:
    assert answer(headers, method=request_method, status=status) == (headers, PAGE)


def test_a_browser_is_not_sent_a_compressed_page_which_could_not_be_changed() -> None:
    asked: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.append(dict(scope["headers"]))

    async def nothing(message: Any = None) -> Any:
        return message

    for accepted in (b"text/html,*/*;q=0.8", b"*/*"):
        headers = [(b"accept", accepted), (b"accept-encoding", b"gzip"), (b"cookie", b"a=1; b=2")]
        scope = {"type": "http", "path": "/", "method": "GET", "headers": headers}
        asgi.run(WithPreloads(app)(scope, nothing, nothing))
    page, script = asked
    assert page == {b"accept": b"text/html,*/*;q=0.8", b"cookie": b"a=1; b=2"}
    assert script == dict(headers)


def test_the_parts_are_scripts_that_streamlit_has() -> None:
    folder = Path(streamlit.__file__).parent / "static"
    parts = head_parts().decode()
    names = [part.partition('"')[0] for part in parts.split('href="./')[1:]]
    assert len(names) == len(set(names)) >= len(KINDS)
    assert all((folder / name).is_file() for name in names)
    for kind in KINDS:
        assert f'import"./static/js/{kind}.' in parts, f"Streamlit has no {kind} any more"


def test_a_process_knows_whether_its_pages_have_the_parts() -> None:
    answer({"content-type": "text/html"})
    assert preloads.is_serving()


def test_a_kind_that_streamlit_does_not_have_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preloads, "KINDS", ("Nothing",))
    head_parts.cache_clear()
    assert head_parts().decode() == '<script type="module"></script>'
    head_parts.cache_clear()


def test_only_the_first_run_of_a_session_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(preloads.time, "sleep", waits.append)
    monkeypatch.setattr(streamlit, "session_state", {})
    monkeypatch.setattr(WithPreloads, "is_used", False)
    preloads.wait_for_first_kinds()
    assert waits == []  # nothing is served: `AppTest`
    monkeypatch.setattr(WithPreloads, "is_used", True)
    preloads.wait_for_first_kinds()
    preloads.wait_for_first_kinds()
    assert len(waits) == 1
    assert 0 < waits[0] <= 0.1
