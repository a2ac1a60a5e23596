"""Where code of others runs: in namespaces of its own, under limits of time and memory, killed as a group."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from profiler.build.toolchain import find_tool
from profiler.bundles.scratch import scratch_folder
from profiler.errors import CannotJudge
from profiler.judge.isolation_process import NOT_ISOLATED
from profiler.package import shipped

_PROCESS = Path(__file__).with_name("isolation_process.py")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")
_MIB, _GIB = 1 << 20, 1 << 30
_MOST_OUTPUT = 8 * _MIB  # bytes that are read of what a process printed
INSIDE = Path("/judge")  # where the writable folder stands inside
_ROOT = ".root"  # in the writable folder: what the root of the isolated process is mounted on


@dataclass(frozen=True)
class ProcessLimits:
    """What a process may use. Seconds of wall time, and of processor time for each process of it."""

    seconds: float
    memory_bytes: int = 6 * _GIB
    file_bytes: int = _GIB
    processes: int = 512
    temporary_bytes: int = 256 * _MIB

    def by_name(self) -> dict[str, int]:
        """By the names of the module `resource`."""
        return {
            "RLIMIT_AS": self.memory_bytes,
            "RLIMIT_CPU": int(self.seconds) + 1,
            "RLIMIT_FSIZE": self.file_bytes,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_CORE": 0,
            "RLIMIT_NOFILE": 256,
        }


@dataclass(frozen=True)
class Finished:
    """A process that ended, or was ended."""

    code: int | None  # None: it was killed at its limit of time; negative: the signal that it died of
    stdout: bytes
    stderr: str
    seconds: float

    @property
    def last_words(self) -> str:
        """The last line on stderr, or why there is none."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return lines[-1] if lines else "it printed nothing"


@cache
def why_not_isolated() -> str:
    """Why nothing isolates on this machine; "" where namespaces can be made."""
    if not sys.platform.startswith("linux"):
        return "namespaces exist only on Linux"
    with scratch_folder() as folder:
        job = _job(["/bin/sh", "-c", "exit 0"], folder, ProcessLimits(10), {})
        done = subprocess.run([*_START, job], capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


class Isolation:
    """How processes are started: isolated, or plainly where the user trusts what is run."""

    def __init__(self, trust: bool = False, *, proc: bool = True) -> None:
        """proc: show /proc where that is allowed; processes run without it too.

        Raises CannotJudge where nothing isolates and nobody said to trust.
        """
        reason = "" if trust else why_not_isolated()
        if reason:
            raise CannotJudge(
                f"nothing isolates a candidate on this machine ({reason}): allow unprivileged user "
                "namespaces, or give --trust for code that you wrote yourself",
                option="--trust",
            )
        self.trust = trust
        self._proc = proc

    def inside(self, folder: Path) -> Path:
        """Where a process sees its writable folder."""
        return folder if self.trust else INSIDE

    def command(
        self,
        command: Sequence[str],
        folder: Path,
        limits: ProcessLimits,
        environment: Mapping[str, str] | None = None,
        readable: Sequence[Path] = (),
        devices: bool = False,
    ) -> list[str]:
        """The command that runs another one isolated, with `folder` as the only one that it may write.

        devices: it sees the GPUs.
        """
        if self.trust:
            return list(command)
        own = {"devices": _gpu_devices() if devices else [], "proc": self._proc}
        return [*_START, _job(command, folder, limits, environment or {}, readable, own)]

    def run(
        self,
        command: Sequence[str],
        folder: Path,
        limits: ProcessLimits,
        *,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        readable: Sequence[Path] = (),
        devices: bool = False,
        wall_factor: float = 3.0,
    ) -> Finished:
        """Run to the end or the limit; the process and all that it started are gone then.

        wall_factor: on a busy machine it may take so many times its seconds, of which it gets no more on a
        processor. Raises CannotJudge where the namespaces could not be made after all.
        """
        own = {**os.environ, **_environment(environment or {})} if self.trust else None
        started = time.perf_counter()
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            tempfile.TemporaryFile() as given,
        ):
            given.write(stdin)
            given.seek(0)
            process = subprocess.Popen(
                self.command(command, folder, limits, environment, readable, devices),
                stdin=given,
                stdout=out,
                stderr=err,
                cwd=folder if self.trust else None,
                env=own,
                start_new_session=True,
            )
            code: int | None
            try:
                code = process.wait(limits.seconds * wall_factor)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                kill_group(process)
            seconds = time.perf_counter() - started
            out.seek(0)
            err.seek(0)
            finished = Finished(
                code, out.read(_MOST_OUTPUT), err.read(_MOST_OUTPUT).decode(errors="replace"), seconds
            )
        if code == NOT_ISOLATED and not self.trust:
            raise CannotJudge(f"nothing isolates a candidate: {finished.last_words}")
        if code is not None and -code in (signal.SIGXCPU, signal.SIGKILL):
            return Finished(None, finished.stdout, finished.stderr, seconds)
        return finished


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group; what is in a pid namespace below it ends with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


_START = (sys.executable, "-I", "-S", str(_PROCESS))


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    path = ["/usr/local/bin", "/usr/bin", "/bin"]
    tools = [tool for name in ("nvcc", "cuobjdump", "nvdisasm") if (tool := find_tool(name))]
    path = list(dict.fromkeys([*(str(tool.path.parent) for tool in tools), *path]))
    return {
        "PATH": ":".join(path),
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **more,
    }


def _job(
    command: Sequence[str],
    folder: Path,
    limits: ProcessLimits,
    environment: Mapping[str, str],
    readable: Sequence[Path] = (),
    more: Mapping[str, Any] | None = None,
) -> str:
    root = folder / _ROOT
    root.mkdir(exist_ok=True)
    return json.dumps(
        {
            "root": str(root.resolve()),
            "command": list(command),
            "folder": str(INSIDE),
            "readable": [*_readable(), *(str(path.resolve()) for path in readable)],
            "writable": {str(INSIDE): str(folder.resolve())},
            "devices": [],
            "proc": True,
            "program": _disassembler(),
            "limits": limits.by_name(),
            "temporary_bytes": limits.temporary_bytes,
            "environment": _environment(environment),
            **(more or {}),
        }
    )


def _gpu_devices() -> list[str]:
    """The device files of the driver."""
    return [str(path) for path in sorted(Path("/dev").glob("nvidia*")) if path.is_char_device()]


@cache
def _disassembler() -> str:
    """Where it is; a shell in its place where there is none."""
    tool = find_tool("cuobjdump")
    return str(tool.path) if tool else "/bin/sh"


@cache
def _readable() -> tuple[str, ...]:
    """The system, Python, the CUDA tools and this package; of the user's files nothing else."""
    package = Path(__file__).resolve().parent.parent
    paths: dict[str, None] = {path: None for path in _SYSTEM if os.path.lexists(path)}
    own = [Path(sys.prefix), Path(sys.base_prefix), package, shipped("kernels")]
    for name in ("nvcc", "ptxas", "cuobjdump", "nvdisasm"):
        if tool := find_tool(name):
            own += [tool.wheel_root or tool.path.resolve().parent.parent]
    own += [Path(path) for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    # A link is made again inside, and where it leads has to be there too: a `.venv` that several share.
    for path in dict.fromkeys(where for one in own for where in (one, one.resolve())):
        text = str(path)
        if path.exists() and not any(text == known or text.startswith(f"{known}/") for known in paths):
            paths[text] = None
    return tuple(paths)
