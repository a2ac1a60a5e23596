"""A client of `profiler mcp`: the SDK's own, over stdio, asked from tests that are not asynchronous."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.conftest import ROOT

T = TypeVar("T")


def environment(data: Path) -> dict[str, str]:
    """What the server's process is given: this checkout, and the data folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PROFILER_DATA": str(data)}


def command(*options: str) -> list[str]:
    """The command that starts a server."""
    return [sys.executable, "-m", "profiler", "mcp", *options]


def in_own_thread(function: Callable[[], Awaitable[T]]) -> T:
    """What an asynchronous function returns. The thread of the tests may have a loop of the browser's."""
    with start_blocking_portal() as portal:
        return portal.call(function)


class Asked:
    """What a server answered to one call."""

    def __init__(self, result: Any) -> None:
        (content,) = result.content
        self.text: str = content.text
        self.answer: dict[str, Any] = result.structured_content
        self.is_error: bool = result.is_error


class Session:
    """A client that is connected."""

    def __init__(self, client: Client, portal: BlockingPortal) -> None:
        self.client, self.portal = client, portal

    def ask(self, tool: str, **arguments: Any) -> Asked:
        return Asked(self.portal.call(self.client.call_tool, tool, arguments))

    def tools(self) -> list[Any]:
        return list(self.portal.call(self.client.list_tools).tools)


@contextmanager
def session(data: Path, folder: Path, *options: str) -> Iterator[Session]:
    """A server of its own in a folder, and its client."""
    first, *others = command(*options)
    server = StdioServerParameters(command=first, args=others, env=dict(environment(data)), cwd=str(folder))
    with start_blocking_portal() as portal:
        client = Client(stdio_client(server))
        with portal.wrap_async_context_manager(client):
            yield Session(client, portal)


def numbers_without_state(document: Any, state: str | None = None, path: str = "") -> list[str]:
    """The paths of numbers that no `state` or `evidence` stands around."""
    if isinstance(document, Mapping):
        around = document.get("state") or document.get("evidence") or state
        around = around if isinstance(around, str) else state
        found = []
        for key, value in document.items():
            found += numbers_without_state(value, around, f"{path}.{key}")
        return found
    if isinstance(document, list):
        return [name for item in document for name in numbers_without_state(item, state, f"{path}[]")]
    is_number = isinstance(document, int | float) and not isinstance(document, bool)
    return [path] if is_number and state is None else []
