"""Serves the dashboard as `profiler dashboard` does: Streamlit with headers that browsers obey.

`streamlit run app.py` shows the same pages without these headers.
"""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

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
FIRST_PORT, PORTS_TRIED = 8501, 100  # where no port is named
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
            reason = f"{self._most} pages are open already: close one, or try again later\n"
            await send({"type": "websocket.http.response.start", "status": 503, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": reason.encode()})
            return
        self._open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1


def listen(address: str, port: int | None = None) -> socket.socket:
    """A socket at a port, or at the first free one from FIRST_PORT on.

    Raises ProfilerError with the reason where this process may not listen there.
    """
    ports = (port,) if port is not None else range(FIRST_PORT, FIRST_PORT + PORTS_TRIED)
    reason = ""
    for tried in ports:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The head and the body of an answer are written apart. With Nagle's algorithm the body would wait
        # until the browser has acknowledged the head, 40 ms on Linux, for every one of a page's hundred
        # files. What is accepted has the options of what listens.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            listener.bind((address, tried))
        except OSError as error:
            listener.close()
            reason = (error.strerror or str(error)).lower()
            continue
        listener.listen()  # a browser may ask before the server is ready, and waits
        return listener
    if port is None:
        raise ProfilerError(f"ports {ports[0]} to {ports[-1]}: {reason}; name another with --port")
    raise ProfilerError(f"--port {port}: {reason}; choose another, or leave --port out")


def main(argv: Sequence[str] | None = None) -> None:
    """Serve app.py until a signal ends the process."""
    import uvicorn
    from starlette.middleware import Middleware
    from streamlit.starlette import App
    from streamlit.web.bootstrap import load_config_options

    from profiler.ui import first_chart
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
        listener = listen(arguments.address, arguments.port)
    except ProfilerError as error:
        print(f"profiler: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    middleware = [
        Middleware(WithHeaders),
        Middleware(WithOrigins, origins=origins),
        Middleware(WithSocketLimit),
        Middleware(WithStaticFiles),
        Middleware(WithUploadLimits, limits=limits),
        Middleware(WithPreloads),
    ]
    app = App(
        arguments.app,
        middleware=middleware,
        routes=[first_chart.route()],
        lifespan=warming_up(arguments.app),
    )
    port = listener.getsockname()[1]
    load_config_options(
        {
            "server.address": arguments.address,
            "server.port": port,
            "server.maxUploadSize": -(
                -limits.file_bytes // (1 << 20)
            ),  # MiB, rounded up: the limit is in bytes
            "browser.gatherUsageStats": False,
        }
    )
    # Streamlit's setting for the size of a message is also that of what a page may be sent. Nothing is
    # compressed: inflating would need memory for each socket.
    settings = uvicorn.Config(
        app,
        ws="websockets-sansio",
        ws_max_size=SOCKET_MESSAGE_BYTES,
        ws_per_message_deflate=False,
        access_log=False,
        log_level="warning",
    )
    url = f"http://{arguments.address}:{port}"
    print(f"The dashboard is at {url}; Ctrl-C ends it.", flush=True)
    if arguments.browser:  # in a thread, for a browser in the terminal would keep this one
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
    with suppress(KeyboardInterrupt):
        uvicorn.Server(settings).run(sockets=[listener])


if __name__ == "__main__":
    main()
