"""Lets the script of a page wait until the browser has drawn the page's first chart.

Streamlit hears nothing of that. So an element of the page carries a token (`data-waits`), and the toolbar's
script asks for `drawn/TOKEN` once there is a chart, or once somebody clicks or types: a click that leads to
another page must not wait for this one.
"""

from __future__ import annotations

import re
import secrets
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LONGEST_S = 5.0  # for a browser that says nothing, or is slow
_ADDRESS = re.compile(r".*/drawn/([0-9a-f]{32})")  # below any folder, as behind a proxy

_expected: dict[str, threading.Event] = {}  # by token


def expect() -> str:
    """A token for a browser to come with; `forget` ends it."""
    token = secrets.token_hex(16)
    _expected[token] = threading.Event()
    return token


def wait(token: str) -> None:
    """Wait until the browser has come with the token, at most `LONGEST_S`."""
    _expected[token].wait(LONGEST_S)


def forget(token: str) -> None:
    """Wait for the token no more."""
    _expected.pop(token, None)


class WithFirstChart:
    """An ASGI application that takes the word of browsers for their charts."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; a browser that comes too late has done nothing wrong."""
        is_asked = scope["type"] == "http" and scope["method"] == "GET"
        said = _ADDRESS.fullmatch(scope["path"]) if is_asked else None
        if said is None:
            await self._app(scope, receive, send)
            return
        drawn = _expected.get(said[1])
        if drawn is not None:
            drawn.set()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})
