"""Serves the dashboard as `profiler dashboard` does: Streamlit's own server, with headers that browsers obey.

`streamlit run app.py` shows the same pages without these headers.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Streamlit starts inline scripts and styles, compiles the code of components, and talks over a web socket:
# a stricter policy leaves pages empty. Nothing is loaded from elsewhere, and no other page frames this one.
POLICY = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' ws: wss: data: blob:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "content-security-policy": "; ".join(f"{name} {sources}" for name, sources in POLICY.items()),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",  # for browsers that do not know frame-ancestors
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
# What nobody needs of Streamlit's own: numbers about sessions and caches, which anybody could read.
CLOSED = ("/_stcore/metrics",)

# Of one message of a page, whole or in fragments: what was chosen in its fields, some kilobytes. Files do not
# come this way. Streamlit's own limit of 25 MB is looked at when a message is there, up to 200 MB of it.
SOCKET_MESSAGE_BYTES = 1 << 20
SOCKETS = 500  # open pages at a time, of all visitors: each can hold one such message that never ends


class WithHeaders:
    """An ASGI application that adds the headers to every answer and closes some of Streamlit's addresses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                added = [(name.encode(), text.encode()) for name, text in HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in added if pair[0] not in own)]
            await send(message)

        if scope["path"].rstrip("/").endswith(CLOSED):
            await send_with_headers({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._app(scope, receive, send_with_headers)


class WithSocketLimit:
    """An ASGI application that has so many web sockets at a time, and answers 503 to one more."""

    def __init__(self, app: ASGIApp, most: int = SOCKETS) -> None:
        self._app, self._most, self._open = app, most, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        if self._open >= self._most:
            await receive()
            headers = [(b"content-type", b"text/plain")]
            reason = f"{self._most} pages are open here already: close one, or try again in a while\n"
            await send({"type": "websocket.http.response.start", "status": 503, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": reason.encode()})
            return
        self._open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1


def _take_small_messages() -> None:
    """Have the server refuse a large message of a web socket before it is there.

    Streamlit's setting for it, server.maxMessageSize, is also the size of what a page may be sent. Nothing is
    compressed, which is Streamlit's default too: inflating would need memory for each socket.
    """
    from streamlit.web.server.starlette import starlette_server

    uvicorn_settings = starlette_server._get_uvicorn_config_kwargs

    def settings_with_limit() -> dict[str, Any]:
        limit = {"ws_max_size": SOCKET_MESSAGE_BYTES, "ws_per_message_deflate": False}
        return {**uvicorn_settings(), **limit}

    starlette_server._get_uvicorn_config_kwargs = settings_with_limit


def _answer_at_once() -> None:
    """Turn off Nagle's algorithm for the connections of Streamlit's server.

    It writes the head and the body of an answer apart, and the body would wait until the browser has
    acknowledged the head, 40 ms on Linux, for every one of a page's hundred files. asyncio turns it off where
    it makes the socket itself; here Streamlit does. What is accepted has the options of what listens.
    """
    from streamlit.web.server.starlette import starlette_server

    bind = starlette_server._bind_socket

    def bind_without_delay(address: str, port: int, backlog: int) -> socket.socket:
        listener = bind(address, port, backlog)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener

    starlette_server._bind_socket = bind_without_delay


def main(argv: Sequence[str] | None = None) -> None:
    """Serve app.py until a signal ends the process."""
    from starlette.middleware import Middleware
    from streamlit.starlette import App

    from profiler.ui.first_chart import WithFirstChart
    from profiler.ui.origins import WithOrigins, parse_origin
    from profiler.ui.preloads import WithPreloads
    from profiler.ui.static_files import WithStaticFiles
    from profiler.ui.upload_limits import UploadLimits, WithUploadLimits
    from profiler.ui.warm_up import warming_up

    options = argparse.ArgumentParser(prog="profiler.ui.server")
    options.add_argument("app", type=Path, help="app.py, beside which Streamlit looks for its configuration")
    options.add_argument("--address", required=True)
    options.add_argument("--port", type=int)
    options.add_argument("--browser", action="store_true")
    options.add_argument("--origin", action="append", default=[])
    options.add_argument("--upload-bytes", type=int)
    options.add_argument("--upload-files", type=int)
    options.add_argument("--upload-seconds", type=float)
    arguments = options.parse_args(argv)
    limits = UploadLimits.of_machine(arguments.upload_bytes, arguments.upload_files, arguments.upload_seconds)
    try:
        origins = [parse_origin(origin) for origin in arguments.origin]
    except ProfilerError as error:
        print(f"profiler: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    settings = {
        "server.address": arguments.address,
        "server.headless": not arguments.browser,
        "server.showEmailPrompt": False,
        "browser.gatherUsageStats": False,
        "server.maxUploadSize": -(
            -limits.file_bytes // (1 << 20)
        ),  # MiB, rounded up: the limit here is in bytes
    }
    if arguments.port is not None:
        settings["server.port"] = arguments.port
    sys.argv = [str(arguments.app)]  # which Streamlit takes for what was started
    middleware = [
        Middleware(WithHeaders),
        Middleware(WithOrigins, origins=origins),
        Middleware(WithSocketLimit),
        Middleware(WithFirstChart),
        Middleware(WithStaticFiles),
        Middleware(WithUploadLimits, limits=limits),
        Middleware(WithPreloads),
    ]
    _answer_at_once()
    _take_small_messages()
    App(arguments.app, middleware=middleware, lifespan=warming_up(arguments.app)).run(config=settings)


if __name__ == "__main__":
    main()
