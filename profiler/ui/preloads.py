"""Lets a browser fetch what draws most pages along with the first answer, so that nothing moves later.

Streamlit loads the code of each kind of element when the first of its kind is drawn, and shows a grey bar
of 35 px until then: a page's texts would come late and push the rest down. Fields and chips stand in rows
that have their height from the first moment on: their code would only delay the texts. The style sheet
comes with the page too: as an element it would come after the first texts, and be read a second time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.ui.theme import style_sheet

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# That every page begins with. The code of charts is large, and they have a place of known height.
KINDS = ("Html", "StreamlitMarkdown", "BidiComponent")
_WAIT_S = 0.05
_IMPORTED = re.compile(r"""(?:from|import)\s*["']\./([\w.-]+\.js)["']""")


def is_serving() -> bool:
    """Whether the pages of this process have `head_parts` and the style sheet."""
    return WithPreloads.is_used


def wait_for_first_kinds() -> bool:
    """Wait a moment in a session's first run, between what app.py draws and what the page does.

    Returns whether it is that run, and the pages are served with `head_parts`.

    When the browser draws the first elements of a kind it has to wait for their code, even for code that it
    has, and React then shows them half a second after the last grey bar. So the first elements are those of
    which nothing is to be seen, and the page's own, which come in a message after theirs, need no bar.
    """
    import streamlit as st

    if not is_serving() or st.session_state.get("k-has-waited"):
        return False
    st.session_state["k-has-waited"] = True
    time.sleep(_WAIT_S)
    return True


@cache
def head_parts() -> bytes:
    """What is put into the head of every page; of kinds that this Streamlit does not have, nothing."""
    import streamlit

    folder = Path(streamlit.__file__).parent / "static" / "static" / "js"
    kinds = [path for kind in KINDS for path in sorted(folder.glob(f"{kind}.*.js"))]
    links = (
        f'<link rel="modulepreload" crossorigin href="./static/js/{name}">'
        for name in dict.fromkeys(_with_imports(kinds))
    )
    # A module that has run is there at once when it is asked for; one that is only fetched is not.
    runs = "".join(f'import"./static/js/{path.name}";' for path in kinds)
    return "".join((*links, f'<script type="module">{runs}</script>')).encode()


def _with_imports(paths: Iterable[Path]) -> Iterator[str]:
    """The names of scripts and of all that they import, each before what it imports."""
    waiting, seen = list(paths), set[Path]()
    while waiting:
        path = waiting.pop(0)
        if path not in seen and path.is_file():
            seen.add(path)
            yield path.name
            imported = _IMPORTED.findall(path.read_text(encoding="utf-8"))
            waiting += [path.with_name(name) for name in imported]


class WithPreloads:
    """An ASGI application that adds `head_parts` and the style sheet to every HTML page."""

    is_used = False  # in this process

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        WithPreloads.is_used = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        start: Message | None = None  # of a page, held back until its whole body is here
        body = b""

        async def send_with_parts(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_page(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    page = body.replace(b"</head>", head_parts() + b"</head>", 1)
                    # After the rules that Streamlit adds to the head: of two alike, the later one counts.
                    page = page.replace(b"</body>", style_sheet().encode() + b"</body>", 1)
                    # What a browser has kept of the page as Streamlit ships it is another page.
                    dropped = (b"content-length", b"etag", b"last-modified", b"accept-ranges")
                    headers = [pair for pair in start["headers"] if pair[0].lower() not in dropped]
                    length = (b"content-length", str(len(page)).encode())
                    await send({**start, "headers": [*headers, length]})
                    await send({"type": "http.response.body", "body": page})

        asked = dict(scope["headers"])
        if b"text/html" in asked.get(b"accept", b""):  # what is to be changed must not come compressed
            asked.pop(b"accept-encoding", None)
            scope = {**scope, "headers": list(asked.items())}
        await self._app(scope, receive, send_with_parts)


def _is_page(start: Message) -> bool:
    """Whether an answer is a whole HTML page that is not compressed."""
    headers = {name.lower(): text for name, text in start["headers"]}
    is_html = headers.get(b"content-type", b"").startswith(b"text/html")
    return start["status"] == 200 and is_html and b"content-encoding" not in headers
