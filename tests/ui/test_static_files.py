"""Which files the server answers for out of memory, and what it leaves to Streamlit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import streamlit

from profiler.ui.static_files import WithStaticFiles
from tests.ui import asgi

FOLDER = Path(streamlit.__file__).parent / "static" / "static"
SCRIPT = min(FOLDER.glob("js/PlotlyChart.*.js"))
STYLES = min(FOLDER.glob("css/*.css"))


def answer(path: str, method: str = "GET", **headers: str) -> tuple[dict[str, str], bytes] | None:
    """Headers and body of an answer; None where the application inside was asked."""
    sent: list[Any] = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "inside"})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    pairs = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    scope = {"type": "http", "path": path, "method": method, "headers": pairs}
    asgi.run(WithStaticFiles(inside)(scope, receive, send))
    if sent == [{"type": "inside"}]:
        return None
    start, body = sent
    assert start["status"] == 200
    return {name.decode(): text.decode() for name, text in start["headers"]}, body["body"]


@pytest.mark.parametrize(
    ("file", "kind"), [(SCRIPT, "text/javascript; charset=utf-8"), (STYLES, "text/css; charset=utf-8")]
)
def test_code_of_the_front_end_is_answered_whole_and_kept_by_the_browser(file: Path, kind: str) -> None:
    for _ in range(2):
        got = answer(f"/static/{file.parent.name}/{file.name}")
        assert got is not None
        headers, body = got
        assert body == file.read_bytes()
        assert headers["content-type"] == kind
        assert headers["content-length"] == str(len(body))
        assert "immutable" in headers["cache-control"]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/trends",
        "/static/js/",
        "/static/js/nothing.12345678.js",
        "/static/js/../index.html",
        "/static/js/..%2f..%2findex.html",
        "/static/media/SourceSansVF-Upright.ttf.BsWL4Kly.woff2",
        f"/static/css/{SCRIPT.name}",
        f"//static/js/{SCRIPT.name}",
        f"/static/js/{SCRIPT.name}/",
    ],
)
def test_any_other_address_is_streamlits(path: str) -> None:
    assert answer(path) is None


def test_a_question_about_a_file_is_streamlits() -> None:
    path = f"/static/js/{SCRIPT.name}"
    assert answer(path, "HEAD") is None
    assert answer(path, Range="bytes=0-9") is None
    assert answer(path, If_None_Match='"x"') is None
