"""How much visitors may upload: bytes of a file, of a visitor and of all, numbers of files, and time."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.bundles import location
from profiler.reports import memory_limit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ADDRESS = re.compile(r".*/_stcore/upload_file/([^/]+)/([^/]+)")
_FRAMING_BYTES = 1 << 20  # what a form adds to the file that it carries
_IDLE_S = 60.0  # without a byte
_REST_BYTES = 1 << 20  # that a refused browser may still send, so that it reads why

_MOST_SESSIONS = 1000  # whose refused files are counted
_refused: dict[str, Counter[str]] = {}  # by session, how many files for which reason

Uploaded = Mapping[str, Mapping[str, int]]  # bytes by file, by session


@dataclass(frozen=True)
class UploadLimits:
    """Of one file, of one session, of all sessions together, and of the time for a file."""

    file_bytes: int = 1 << 30
    session_files: int = 100
    session_bytes: int = 2 << 30
    total_bytes: int = 4 << 30
    seconds: float = 900.0

    @staticmethod
    def of_machine(
        file_bytes: int | None = None, files: int | None = None, seconds: float | None = None
    ) -> UploadLimits:
        """The limits for this machine's memory, which holds what is uploaded until it was imported.

        All sessions together may take a quarter of it, but two files; a session half of that, but one file.
        """
        file_bytes = file_bytes or UploadLimits.file_bytes
        total = max(min(UploadLimits.total_bytes, memory_limit.machine_memory() // 4), 2 * file_bytes)
        return UploadLimits(
            file_bytes=file_bytes,
            session_files=files or UploadLimits.session_files,
            session_bytes=max(total // 2, file_bytes),
            total_bytes=total,
            seconds=seconds or UploadLimits.seconds,
        )


class _Refused(Exception):
    """An upload that is over a limit."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def uploaded_now() -> Uploaded:
    """What Streamlit holds: the bytes of each file of each session."""
    from streamlit import runtime

    files = runtime.get_instance().uploaded_file_mgr.file_storage  # type: ignore[attr-defined]
    return {
        session: {name: len(file.data) for name, file in list(own.items())}
        for session, own in list(files.items())
    }


def take_refused(session: str) -> Counter[str]:
    """How many files of a session were not taken since it was last asked, by the reason."""
    return _refused.pop(session, Counter())


def _count_refused(session: str, reason: str) -> None:
    while len(_refused) >= _MOST_SESSIONS:
        _refused.pop(next(iter(_refused)))
    _refused.setdefault(session, Counter())[reason] += 1


def is_visitor(session: str) -> bool:
    """Whether Streamlit has an open page of this session."""
    from streamlit import runtime

    return runtime.get_instance().is_active_session(session)


class WithUploadLimits:
    """An ASGI application that refuses uploads over the limits, however their size is declared."""

    def __init__(
        self,
        app: ASGIApp,
        limits: UploadLimits,
        uploaded: Callable[[], Uploaded] = uploaded_now,
        idle_s: float = _IDLE_S,
        is_visitor: Callable[[str], bool] = is_visitor,
    ) -> None:
        self._app, self._limits, self._uploaded, self._idle_s = app, limits, uploaded, idle_s
        self._is_visitor = is_visitor
        self._coming: dict[object, tuple[str, int]] = {}  # session and bytes of each upload that is under way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        match = _ADDRESS.fullmatch(scope.get("path", ""))
        if scope["type"] != "http" or scope["method"] != "PUT" or not match:
            await self._app(scope, receive, send)
            return
        if not self._is_visitor(match[1]):  # before anything is counted: an id can be invented
            await _refuse(_Refused(400, "no page of this session is open here"), receive, send)
            return
        upload = object()
        is_answered = False
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            try:
                message = await asyncio.wait_for(receive(), self._idle_s)
            except TimeoutError:
                raise _Refused(408, f"nothing came for {self._idle_s:g} s") from None
            received += len(message.get("body", b""))
            self._reserve(upload, match[1], received)
            return message

        async def send_noted(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        try:
            async with asyncio.timeout(self._limits.seconds):
                self._reserve(upload, match[1], _declared_bytes(scope))
                await self._app(scope, receive_counted, send_noted)
        except (_Refused, TimeoutError) as error:
            if is_answered:
                raise
            refused = (
                error
                if isinstance(error, _Refused)
                else _Refused(408, f"an upload may take {self._limits.seconds:g} s")
            )
            _count_refused(match[1], str(refused))
            await _refuse(refused, receive, send)
        finally:
            self._coming.pop(upload, None)

    def _reserve(self, upload: object, session: str, size_bytes: int) -> None:
        """Count the bytes of an upload, declared or received, whichever are more. Raises _Refused."""
        limits = self._limits
        if location.is_read_only():
            raise _Refused(403, "this server accepts no files")
        size_bytes = max(size_bytes, self._coming.get(upload, ("", 0))[1])
        if size_bytes > limits.file_bytes + _FRAMING_BYTES:
            raise _Refused(413, f"a file may have {limits.file_bytes >> 20} MiB")
        others = [counted for key, counted in self._coming.items() if key is not upload]
        if upload not in self._coming or size_bytes > self._coming[upload][1]:
            held = self._uploaded()
            own = held.get(session, {})
            own_coming = [coming for name, coming in others if name == session]
            if len(own) + len(own_coming) >= limits.session_files:
                raise _Refused(413, f"one visitor may upload {limits.session_files} files here at a time")
            if sum(own.values()) + sum(own_coming) + size_bytes > limits.session_bytes + _FRAMING_BYTES:
                raise _Refused(413, f"a visitor's files may have {limits.session_bytes >> 20} MiB together")
            total = sum(sum(files.values()) for files in held.values()) + sum(size for _, size in others)
            if total + size_bytes > limits.total_bytes + _FRAMING_BYTES:
                raise _Refused(503, "too much is being uploaded at once: try again later")
        self._coming[upload] = session, size_bytes


def _declared_bytes(scope: Scope) -> int:
    declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(declared) if declared.isdigit() and len(declared) < 19 else 0


async def _refuse(refused: _Refused, receive: Receive, send: Send) -> None:
    """Say why, after a little more of what still comes."""
    left = _REST_BYTES
    try:
        async with asyncio.timeout(1):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b"")) or 1
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    break
    except TimeoutError:
        pass
    headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{refused}\n".encode()})
