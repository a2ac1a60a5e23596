"""The built wheel, installed where no checkout is: every kind of command works from any working directory."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.server, pytest.mark.timeout(1200)]


class Installed:
    """An environment that holds the wheel, and the libraries it needs; called from an empty folder."""

    def __init__(self, folder: Path, builds: Path) -> None:
        self.environment, self.empty = folder / "environment", folder / "elsewhere"
        self.empty.mkdir()
        wheels = folder / "wheels"
        build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
        subprocess.run([*build, "-w", str(wheels), str(ROOT)], check=True, capture_output=True, text=True)
        (self.wheel,) = wheels.glob("*.whl")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.environment)], check=True)
        python = self.environment / "bin" / "python"
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "-q",
            "--no-deps",
            "--no-index",
        ]
        subprocess.run([*pip, str(self.wheel)], check=True, capture_output=True, text=True)
        # The libraries are those of this environment. A .pth of theirs is not followed from here, so that
        # an editable checkout stays unknown.
        (site,) = self.environment.glob("lib/python*/site-packages")
        (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
        kept = {key: text for key, text in os.environ.items() if not key.startswith(("PROFILER_", "PYTHON"))}
        self.variables = {**kept, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
        # What was compiled is found by the hash of its sources: others than the checkout's are compiled.
        self.variables["PROFILER_BUILD"] = str(builds)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.environment / "bin" / "profiler"), *words]
        return subprocess.run(command, cwd=self.empty, env=self.variables, capture_output=True, text=True)

    def python(self, code: str) -> str:
        command = [str(self.environment / "bin" / "python"), "-c", code]
        done = subprocess.run(command, cwd=self.empty, env=self.variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, build_cache: Path) -> Installed:
    return Installed(tmp_path_factory.mktemp("wheel"), build_cache)


def names_below(folder: Path) -> set[str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(folder)) for path in paths}


def test_the_wheel_holds_what_lies_at_the_top_of_a_checkout(installed: Installed) -> None:
    code = "import profiler.package; print(profiler.__file__); print(profiler.package.shipped('kernels'))"
    package, kernels = map(Path, installed.python(code).split())
    assert installed.environment in package.parents
    assert kernels == package.parent / "shipped" / "kernels"
    for name in ("metrics.txt", "app.py", ".streamlit/config.toml"):
        assert (kernels.parent / name).read_bytes() == (ROOT / name).read_bytes()
    assert names_below(kernels) == names_below(ROOT / "kernels")
    runtime = Path("emulator") / "cpucuda"
    assert names_below(package.parent / runtime) == names_below(ROOT / "profiler" / runtime)


def test_the_metrics_of_a_chip_are_listed(installed: Installed) -> None:
    done = installed.run("list", "metrics", "--chip", "sm_90")
    assert done.returncode == 0, done.stderr
    assert "gpu__time_duration.sum" in done.stdout


def test_a_version_is_checked_on_the_cpu(installed: Installed) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no g++ here: the CPU check compiles with it")
    done = installed.run("check", "v2d_c", "--seeds", "1", "--workload", "1x2x128x64", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert list(installed.empty.iterdir()) == [], "nothing is left in the working directory"


def test_the_facts_of_a_version_are_named(installed: Installed) -> None:
    done = installed.run("static", "v2d_b", "--arch", "sm_90a", "--json")
    if "no nvcc" in done.stderr:
        pytest.skip("no nvcc here: `pip install attention-kernel-profiler[build]` brings it")
    assert done.returncode == 0, done.stderr
    assert "HMMA" in done.stdout
    assert list(installed.empty.iterdir()) == []


def test_two_reports_are_compared(installed: Installed, made_reports: Path) -> None:
    names = [str(made_reports / "ncar" / f"{name}.ncu-rep") for name in ("MW_Baseline", "MW_DivToMult")]
    done = installed.run("compare", *names, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["launches"]


def test_a_language_model_is_answered_from_any_folder(installed: Installed, made_reports: Path) -> None:
    pytest.importorskip("mcp", reason="no MCP SDK: pip install -e '.[agents]'")
    roots = ["--root", str(made_reports)]
    call = {"name": "show", "arguments": {"name": str(made_reports / "ncar" / "MW_Baseline.ncu-rep")}}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    command = [str(installed.environment / "bin" / "profiler"), "mcp", *roots]
    pipe = subprocess.PIPE
    server = subprocess.Popen(command, cwd=installed.empty, env=installed.variables, stdin=pipe, stdout=pipe)
    assert server.stdin
    assert server.stdout
    server.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
    server.stdin.flush()
    _, answer = (json.loads(server.stdout.readline()) for _ in range(2))
    server.stdin.close()
    assert server.wait(60) == 0
    assert answer["result"]["structuredContent"]["document"]["launches"]
    assert list(installed.empty.iterdir()) == []


def test_the_first_page_is_drawn(installed: Installed) -> None:
    code = (
        "import profiler; from streamlit.testing.v1 import AppTest\n"
        "app = AppTest.from_file(str(profiler.package.shipped('app.py')), default_timeout=300).run()\n"
        "print([error.value for error in app.exception], len(app.html))"
    )
    assert installed.python(code).startswith("[] ")


def test_the_dashboard_answers(installed: Installed) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(installed.environment / "bin" / "profiler"),
        "dashboard",
        "--port",
        str(port),
        "--no-browser",
    ]
    log = installed.empty.parent / "dashboard.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, cwd=installed.empty, env=installed.variables, stdout=output, stderr=output
        )
    try:
        until = time.monotonic() + 600
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=30) as answer:
                    assert answer.status == 200
                    break
            except OSError:
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.2)
    finally:
        server.terminate()
        server.wait()
