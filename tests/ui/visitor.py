"""A visitor of a running dashboard without a browser: what Streamlit's page says to its server, and hears."""

from __future__ import annotations

import contextlib
import re
import time
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import FileUploaderState, FileURLs
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect


@dataclass
class Page:
    """What one run of the script sent."""

    seconds: float  # from asking to its end
    kinds: list[str] = field(default_factory=list)  # of elements, in the order in which they came
    texts: list[str] = field(default_factory=list)  # of HTML elements
    widgets: dict[str, str] = field(default_factory=dict)  # ids by label
    forms: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)  # exceptions


class Visitor:
    """One session. `wait_s` is how long a run of the script may take."""

    def __init__(self, address: str, origin: str | None = None, wait_s: float = 120) -> None:
        self.address, self._wait_s = address, wait_s
        self.session = ""
        with urllib.request.urlopen(f"{address}/_stcore/health", timeout=wait_s) as answer:
            cookies = answer.headers.get_all("Set-Cookie") or []
        self._cookie = next((text.partition(";")[0] for text in cookies if "xsrf" in text), "")
        self._closing = contextlib.ExitStack()
        self._socket = self._closing.enter_context(
            connect(
                f"{address.replace('http', 'ws', 1)}/_stcore/stream",
                subprotocols=["streamlit"],  # type: ignore[list-item]
                origin=origin or address,  # type: ignore[arg-type]
                additional_headers={"Cookie": self._cookie},
                max_size=None,
                open_timeout=wait_s,
            )
        )

    def __enter__(self) -> Visitor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def open(self, page: str = "", query: str = "", states: Callable[[Any], None] | None = None) -> Page:
        """Run the script of a page (its name in the address) with a query; `states` adds those of widgets."""
        message = BackMsg()
        message.rerun_script.query_string = query
        message.rerun_script.page_name = page
        if states is not None:
            states(message.rerun_script.widget_states)
        started = time.monotonic()
        self._socket.send(message.SerializeToString())
        seen = Page(0.0)
        while True:
            heard = ForwardMsg()
            heard.ParseFromString(self._socket.recv(timeout=self._wait_s))  # type: ignore[arg-type]
            kind = heard.WhichOneof("type")
            if kind == "new_session":
                self.session = heard.new_session.initialize.session_id
            elif kind == "delta":
                _note(heard.delta, seen)
                if seen.kinds[-1:] == ["plotly_chart"]:
                    self._say_that_a_chart_is_drawn(seen)
            elif kind == "script_finished" and heard.script_finished in (
                ForwardMsg.FINISHED_SUCCESSFULLY,
                ForwardMsg.FINISHED_WITH_COMPILE_ERROR,
            ):
                seen.seconds = time.monotonic() - started
                return seen

    def _say_that_a_chart_is_drawn(self, seen: Page) -> None:
        token = next(filter(None, (re.search(r'data-waits="(\w+)"', text) for text in seen.texts)), None)
        if token is not None:
            urllib.request.urlopen(f"{self.address}/drawn/{token[1]}", timeout=self._wait_s).close()

    def upload(self, name: str, content: bytes) -> str:
        """Send a file as the page's uploader does; its id."""
        file_id = str(uuid.uuid4())
        edge = uuid.uuid4().hex
        head = f'--{edge}\r\nContent-Disposition: form-data; name="f"; filename="{name}"\r\n\r\n'.encode()
        request = urllib.request.Request(
            f"{self.address}/_stcore/upload_file/{self.session}/{file_id}",
            data=head + content + f"\r\n--{edge}--\r\n".encode(),
            method="PUT",
            headers={
                "Content-Type": f"multipart/form-data; boundary={edge}",
                "Cookie": self._cookie,
                "X-Xsrftoken": self._cookie.partition("=")[2],
            },
        )
        with urllib.request.urlopen(request, timeout=self._wait_s):
            return file_id

    def import_file(self, name: str, content: bytes) -> Page:
        """Upload a file on the page Runs and press Import; the page that comes of it."""
        page = self.open("runs")
        file_id = self.upload(name, content)

        def states(widgets: Any) -> None:
            uploader, button = widgets.widgets.add(), widgets.widgets.add()
            uploader.id = page.widgets["reports"]
            place = f"/_stcore/upload_file/{self.session}/{file_id}"
            info = FileURLs(file_id=file_id, upload_url=place, delete_url=place)
            uploader.file_uploader_state_value.CopyFrom(FileUploaderState())
            uploaded = uploader.file_uploader_state_value.uploaded_file_info.add()
            uploaded.file_id, uploaded.name, uploaded.size = file_id, name, len(content)
            uploaded.file_urls.CopyFrom(info)
            button.id = page.widgets["Import"]
            button.trigger_value = True

        return self.open("runs", states=states)


def _note(delta: Any, seen: Page) -> None:
    if delta.WhichOneof("type") != "new_element":
        return
    element = delta.new_element
    kind = element.WhichOneof("type")
    seen.kinds.append(kind)
    if kind == "html":
        seen.texts.append(element.html.body)
    elif kind == "exception":
        seen.errors.append(element.exception.message)
    elif kind in ("file_uploader", "button", "text_input"):
        widget = getattr(element, kind)
        seen.widgets[widget.label] = widget.id
