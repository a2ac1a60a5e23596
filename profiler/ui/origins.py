"""Which hosts and origins the dashboard's server answers: this machine's own, and those that were named."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

REFUSED = 403
_POLICY_VIOLATION = 1008  # RFC 6455, 7.4.1


def parse_origin(text: str) -> str:
    """An origin as browsers send it, such as `https://perf.example.com:8443`. Raises ProfilerError."""
    parts = urlsplit(text.strip().rstrip("/"))
    try:
        is_origin = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        is_origin = False
    if not is_origin or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        raise ProfilerError(
            f"--origin {text[:80]!r} is not the URL of a site, such as https://perf.example.com"
        )
    return f"{parts.scheme}://{parts.netloc}".lower()


class WithOrigins:
    """An ASGI application that refuses requests which another site's page has made a browser send.

    The Host must be this machine's or that of an origin that was named: else a foreign name that is made to
    lead here would pass for the same site. An Origin must be that of the Host, or one that was named. It is
    taken away before Streamlit sees it: for an unknown one that asks a server on the internet for this
    machine's address, while nobody else is answered.
    """

    def __init__(self, app: ASGIApp, origins: Iterable[str] = ()) -> None:
        self._app = app
        self._origins = frozenset(origins)
        self._hosts = frozenset(urlsplit(origin).netloc for origin in self._origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1").lower() for name, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        if host not in self._hosts and not _is_of_this_machine(host):
            reason = f"this server is not {host[:80]}: start it with --origin https://{host[:80]}"
        elif not self._is_allowed(origin, host):
            reason = f"a page of {(origin or '')[:80]} may not use this server: allow it with --origin"
        else:
            kept = [(name, value) for name, value in scope["headers"] if name != b"origin"]
            await self._app({**scope, "headers": kept}, receive, send)
            return
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": reason[:120]})
            return
        start = {
            "type": "http.response.start",
            "status": REFUSED,
            "headers": [(b"content-type", b"text/plain")],
        }
        await send(start)
        await send({"type": "http.response.body", "body": f"{reason}\n".encode()})

    def _is_allowed(self, origin: str | None, host: str) -> bool:
        # Programs send no origin; browsers always do for a web socket, and for what changes anything.
        return origin is None or origin in self._origins or origin in (f"http://{host}", f"https://{host}")


def _is_of_this_machine(host: str) -> bool:
    """Whether a Host header names this machine as seen from itself, at any port: a tunnel may move that."""
    try:
        parts = urlsplit(f"//{host}")
        name = (parts.hostname or "").rstrip(".")
        _ = parts.port
    except ValueError:
        return False
    if parts.netloc != host or "@" in host:
        return False
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761, 6.3
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
