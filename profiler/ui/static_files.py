"""Answers for the code of Streamlit's front end, out of memory.

A browser that opens a page for the first time asks for a hundred files. Streamlit looks each up, opens it and
reads it in threads, which takes longer than all else that the server does for that page.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_ADDRESS = re.compile(r"/static/(js|css)/([\w.-]+)")
_CONTENT_TYPES = {"js": b"text/javascript; charset=utf-8", "css": b"text/css; charset=utf-8"}
# As Streamlit says: the name of such a file holds a digest of its content.
_KEPT_BY_BROWSERS = b"public, immutable, max-age=31536000"
_QUESTIONS = (b"range", b"if-none-match", b"if-modified-since")  # not for the whole file


class _Answer(NamedTuple):
    headers: list[tuple[bytes, bytes]]
    body: bytes


class WithStaticFiles:
    """An ASGI application that answers with whole files and leaves other requests to the one inside."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        answer = _find(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if answer is None or any(name.lower() in _QUESTIONS for name, _ in scope["headers"]):
            await self._app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": answer.headers})
        await send({"type": "http.response.body", "body": answer.body})


def _find(path: str) -> _Answer | None:
    match = _ADDRESS.fullmatch(path)
    # What is not there is not kept: names come from outside, and there is no end to them.
    return _load(match[1], match[2]) if match and match[2] in _names(match[1]) else None


@cache
def _names(folder: str) -> frozenset[str]:
    return frozenset(path.name for path in _folder(folder).glob("*") if path.is_file())


@cache
def _load(folder: str, name: str) -> _Answer:
    body = (_folder(folder) / name).read_bytes()
    headers = [
        (b"content-type", _CONTENT_TYPES[folder]),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", _KEPT_BY_BROWSERS),
    ]
    return _Answer(headers, body)


def _folder(name: str) -> Path:
    import streamlit

    return Path(streamlit.__file__).parent / "static" / "static" / name
