"""A wrong argument is exit code 2 and one line, whichever command gets it."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from profiler.cli import main
from profiler.errors import Exit

NO_GPU = "H9000"


@pytest.mark.parametrize("port", ["99999", "65536", "0", "-1", "x"])
@pytest.mark.parametrize("command", [("dashboard", "--no-browser", "--port"), ("mcp", "--http")])
def test_what_is_no_port(command: tuple[str, ...], port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused([*command, port], capsys)


@pytest.mark.server
def test_a_port_that_another_server_has() -> None:
    """In a process of its own, which becomes the server."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = str(other.getsockname()[1])
        command = [sys.executable, "-m", "profiler", "dashboard", "--no-browser", "--port", taken]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == Exit.UNUSABLE_INPUT
    (line,) = done.stderr.splitlines()
    assert taken in line


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "v2d_b", "--gpu", NO_GPU],
        ["predict", "v2d_b", "--gpu", "H100-SXM", "--gpu", NO_GPU],
        ["predict", "v2d_b", "--workload", "nonsense"],
        ["judge", "kernels/v1.cu", "--gpu", NO_GPU],
        ["search", "start", "attention", "--gpu", NO_GPU],
        ["sass", "v1", "--arch", "nonsense"],
        ["static", "v1", "--arch", "nonsense"],
        ["check", "v1", "--workload", "nonsense"],
        ["list", "metrics", "--chip", "sm_9999"],
    ],
)
def test_what_nobody_knows(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert arguments[-1] in refused(arguments, capsys)


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The last line on stderr, where argparse prints its usage before."""
    try:
        code = main(arguments)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    error = capsys.readouterr().err
    assert code == Exit.UNUSABLE_INPUT
    assert "Traceback" not in error
    return error.strip().splitlines()[-1]
