"""Lets the script of a page wait until the browser has drawn the page's first chart.

Streamlit hears nothing of that. So an element of the page carries a token (`data-waits`), and the toolbar's
script asks for `drawn/TOKEN` once there is a chart, or once somebody clicks or types: a click that leads to
another page must not wait for this one.
"""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route

LONGEST_S = 5.0  # for a browser that says nothing, or is slow

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


def route() -> Route:
    """What takes the word of browsers for their charts, below any folder, as behind a proxy.

    A browser that comes too late has done nothing wrong.
    """
    from starlette.responses import Response
    from starlette.routing import Route

    async def drawn(request: Request) -> Response:
        event = _expected.get(request.path_params["token"])
        if event is not None:
            event.set()
        return Response(status_code=204)

    return Route("/{folder:path}drawn/{token}", drawn)
