"""Uploads over the limits of size, number and time, whatever they declare, and origins that are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from profiler.cli import parser
from profiler.cli.dashboard import web_options
from profiler.errors import ProfilerError
from profiler.reports import memory_limit
from profiler.ui.origins import WithOrigins, parse_origin
from profiler.ui.upload_limits import UploadLimits, WithUploadLimits, take_refused
from profiler.ui.views import run_list
from tests.ui import asgi

MIB = 1 << 20
LIMITS = UploadLimits(
    file_bytes=4 * MIB, session_files=3, session_bytes=6 * MIB, total_bytes=8 * MIB, seconds=0.3
)
PATH = "/_stcore/upload_file/mine/new"


def every(session: str) -> bool:
    """Every session has an open page."""
    return True


async def keep(scope: Any, receive: Any, send: Any) -> None:
    """Takes the whole body, as Streamlit does."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def put(
    sizes: Iterable[int],
    *,
    declared: int | None = None,
    there: Mapping[str, Mapping[str, int]] | None = None,
    wait_s: float = 0.0,
    method: str = "PUT",
    limits: UploadLimits = LIMITS,
    idle_s: float = 60.0,
    is_visitor: Callable[[str], bool] = every,
) -> tuple[int, str]:
    """Status and text of the answer to a body of these pieces."""
    headers = [] if declared is None else [(b"content-length", str(declared).encode())]
    pieces = [{"type": "http.request", "body": bytes(size), "more_body": True} for size in sizes]
    pieces.append({"type": "http.request", "body": b"", "more_body": False})
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.sleep(wait_s)
        return pieces.pop(0) if pieces else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    app = WithUploadLimits(keep, limits, lambda: there or {}, idle_s, is_visitor)
    asgi.run(app({"type": "http", "method": method, "path": PATH, "headers": headers}, receive, send))
    start, body = sent
    return start["status"], body["body"].decode()


def test_a_file_within_the_limits_is_taken() -> None:
    assert put([MIB, MIB], declared=2 * MIB) == (204, "")
    assert put([], method="DELETE") == (204, "")
    assert put([4 * MIB], there={"mine": {"a": MIB}, "other": {"b": MIB}}) == (204, "")


def test_a_session_without_an_open_page_uploads_nothing_and_counts_for_nobody() -> None:
    asked: list[str] = []

    def nobody(session: str) -> bool:
        asked.append(session)
        return False

    full = {"x": {"a": 4 * MIB}, "y": {"a": 4 * MIB}}  # which would be 503
    said = put([MIB], declared=4 * MIB, there=full, is_visitor=nobody)
    assert said == (400, "no page of this session is open here\n")
    assert asked == ["mine"]
    assert put([], method="DELETE", is_visitor=nobody) == (204, "")


def test_files_that_were_not_taken_are_counted_by_reason_until_somebody_asks() -> None:
    take_refused("mine")
    full = {"mine": {"a": 1, "b": 1, "c": 1}}
    for _ in range(3):
        assert put([MIB], there=full)[0] == 413
    assert put([MIB] * 9)[0] == 413
    assert put([MIB])[0] == 204
    counts = take_refused("mine")
    assert sorted(counts.values()) == [1, 3]
    assert counts["one visitor may upload 3 files here at a time"] == 3
    assert take_refused("mine") == {}
    assert [text.count("not taken") for text in map(str, run_list.not_taken(counts))] == [1, 1]


@pytest.mark.parametrize("declared", [None, 10, 9 * MIB])
def test_a_file_that_is_too_large_is_refused_whatever_it_declares(declared: int | None) -> None:
    status, reason = put([MIB] * 9, declared=declared)
    assert (status, reason) == (413, "a file may have 4 MiB\n")


@pytest.mark.parametrize(
    ("there", "status", "reason"),
    [
        ({"mine": {"a": 1, "b": 1, "c": 1}}, 413, "one visitor may upload 3 files here at a time"),
        ({"mine": {"a": 5 * MIB}}, 413, "a visitor's files may have 6 MiB together"),
        ({"x": {"a": 4 * MIB}, "y": {"a": 3 * MIB}}, 503, "too much is being uploaded at once"),
    ],
)
@pytest.mark.parametrize("declared", [None, 3 * MIB])
def test_what_a_visitor_and_all_visitors_have_is_limited(
    there: dict[str, dict[str, int]], status: int, reason: str, declared: int | None
) -> None:
    said = put([MIB] * 3, declared=declared, there=there)
    assert said[0] == status
    assert reason in said[1]


def test_uploads_that_are_under_way_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROFILER_READ_ONLY", raising=False)
    limits = UploadLimits(session_files=1)
    statuses: list[int] = []

    async def both() -> None:
        app = WithUploadLimits(keep, limits, dict, is_visitor=every)
        waiting = asyncio.Event()

        async def receive_late() -> Any:
            await waiting.wait()
            return {"type": "http.request", "body": b"x", "more_body": False}

        async def receive() -> Any:
            return {"type": "http.request", "body": b"x", "more_body": False}

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        scope = {"type": "http", "method": "PUT", "path": PATH, "headers": []}
        first = asyncio.create_task(app(scope, receive_late, send))
        await asyncio.sleep(0)
        await app(scope, receive, send)
        waiting.set()
        await first
        await app(scope, receive, send)

    asgi.run(both())
    assert statuses == [413, 204, 204]


def test_an_upload_that_takes_too_long_or_stops_is_ended() -> None:
    assert put([10] * 100, wait_s=0.05) == (408, "an upload may take 0.3 s\n")
    assert put([10], wait_s=0.2, idle_s=0.05) == (408, "nothing came for 0.05 s\n")


def test_a_server_for_reading_takes_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILER_READ_ONLY", "1")
    assert put([1]) == (403, "this server accepts no files\n")


def test_limits_follow_the_machine_and_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "machine_memory", lambda: 8 << 30)
    limits = UploadLimits.of_machine()
    assert (limits.file_bytes, limits.session_bytes, limits.total_bytes) == (1 << 30, 1 << 30, 2 << 30)
    limits = UploadLimits.of_machine(64 * MIB, 7, 30)
    assert (limits.file_bytes, limits.session_files, limits.seconds) == (64 * MIB, 7, 30)
    assert limits.total_bytes == 2 << 30
    monkeypatch.setattr(memory_limit, "machine_memory", lambda: 64 << 30)
    assert UploadLimits.of_machine().total_bytes == 4 << 30
    words = "--upload-size 64M --upload-files 7 --upload-time 30 --origin https://a.example"
    given = web_options(parser().parse_args(["dashboard", *words.split()]))
    assert given == [
        *("--origin=https://a.example", "--upload-bytes", str(64 * MIB)),
        *("--upload-files", "7", "--upload-seconds", "30"),
    ]
    with pytest.raises(ProfilerError, match="--upload-size=64 is no size from 1M on"):
        web_options(parser().parse_args(["dashboard", "--upload-size", "64"]))


# ---- origins


async def page(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    origins = [value for name, value in scope["headers"] if name == b"origin"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"".join(origins)})


def answered(kind: str, host: str, origin: str | None = None) -> Any:
    """The first message of the answer; of a page its status, once no origin has reached the application."""
    headers = [(b"host", host.encode()), *([(b"origin", origin.encode())] if origin is not None else [])]
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": f"{kind}.connect"}

    app = WithOrigins(page, [parse_origin("https://perf.example.com/")])
    asgi.run(app({"type": kind, "path": "/", "headers": headers}, receive, send))
    if kind == "websocket":
        return sent[0]["type"].partition(".")[2]
    status = sent[0]["status"]
    assert status == 403 or sent[1]["body"] == b"", "Streamlit asks the internet about an unknown origin"
    return status


@pytest.mark.parametrize(
    ("host", "origin", "is_answered"),
    [
        ("127.0.0.1:8501", None, True),
        ("127.0.0.1:8501", "http://127.0.0.1:8501", True),
        ("localhost:9000", "http://localhost:9000", True),
        ("[::1]:8501", "http://[::1]:8501", True),
        ("perf.example.com", "https://perf.example.com", True),
        ("127.0.0.1:8501", "https://perf.example.com", True),
        ("127.0.0.1:8501", "http://localhost:8501", False),
        ("127.0.0.1:8501", "http://127.0.0.1:3000", False),
        ("127.0.0.1:8501", "https://evil.example", False),
        ("127.0.0.1:8501", "null", False),
        ("evil.example", "http://evil.example", False),
        ("evil.example", None, False),
        ("perf.example.com.evil.example", None, False),
        ("evil.example@127.0.0.1", None, False),
        ("127.0.0.1.evil.example:8501", None, False),
        ("", None, False),
        ("[::1", None, False),
    ],
)
def test_only_this_machine_and_named_origins_are_answered(
    host: str, origin: str | None, *, is_answered: bool
) -> None:
    assert answered("http", host, origin) == (200 if is_answered else 403)
    assert answered("websocket", host, origin) == ("accept" if is_answered else "close")


@pytest.mark.parametrize(
    "text", ["perf.example.com", "https://", "ftp://x", "https://x/y", "https://a@b", "https://x:y"]
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(ProfilerError, match="is not the URL of a site"):
        parse_origin(text)
