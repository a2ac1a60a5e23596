"""A dashboard on a free port over an empty data folder, and a real Chromium to look at it."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
STARTS_WITHIN_S = 300  # a busy machine takes long; one that never starts must not hang the tests
BROWSER_WAITS_MS = 120_000  # likewise for what a page waits for, where Playwright's own limit is 30 s


@dataclass(frozen=True)
class Dashboard:
    """A running dashboard."""

    address: str
    pid: int

    def cpu_s(self) -> float:
        """CPU seconds of the server and of what it has started and waited for."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def chromium() -> str | None:
    """The system's browser."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, headless."""
    path = chromium()
    if path is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make setup")
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield _Patient(launched)
        launched.close()


class _Patient:
    """A browser whose contexts wait as long as a busy machine needs."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser

    def new_context(self, **options: Any) -> Any:
        context = self._browser.new_context(**options)
        context.set_default_timeout(BROWSER_WAITS_MS)
        return context


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Dashboard]:
    """A dashboard over the data in a folder's `data`, as long as the context lasts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "PROFILER_DATA": str(folder / "data")}
    environment.pop("PROFILER_DB", None)
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--server.port", str(port), "--server.address", "127.0.0.1"],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait(f"{address}/_stcore/health", server, folder / "log")
            yield Dashboard(address, server.pid)
        finally:
            server.terminate()
            server.wait(BROWSER_WAITS_MS / 1000)


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(STARTS_WITHIN_S * 5):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(address, timeout=30):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"the dashboard did not start: {log.read_text()}")
