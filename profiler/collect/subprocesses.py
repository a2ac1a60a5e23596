"""Running a program with limits on time, memory and output, and leaving nothing of it running."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

LOG_BYTES = 1 << 20  # of a program's output that its log keeps from the start
TAIL_BYTES = 4 << 10  # and from the end
POLL_S = 0.05  # between two looks at time and memory
# Set in the environment of the program, and so inherited by every child, even one that leaves its group.
_LOG_VARIABLE = "PROFILER_ISOLATED"  # its log's path
_RUNNER_VARIABLE = "PROFILER_RUNNER"  # the pid of the caller; the same as gpu.program.DIE_WITH_PARENT
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_DEATH_S = 10.0  # the longest wait for a process that the driver holds, which can outlive SIGKILL


@dataclass(frozen=True)
class ProcessResult:
    """How a program ended."""

    kind: str  # exited, signalled, timed_out or out_of_memory
    code: int | None  # exit code, or the signal's number; None where a limit ended it
    seconds: float
    tail: str  # the last of its output, at most TAIL_BYTES
    description: str  # how it ended, as the end of a sentence

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.kind == "exited" and self.code == 0

    @property
    def last_line(self) -> str:
        """The last line of its output that is not blank; empty where there is none."""
        return next((line.strip() for line in reversed(self.tail.splitlines()) if line.strip()), "")


def run(
    argv: Sequence[str | Path],
    *,
    timeout_s: float,
    log: Path,
    memory_bytes: int | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> ProcessResult:
    """Run a program to its end; whatever it started is gone when this returns, also after Ctrl-C.

    Its stdout and stderr go to `log`: the first LOG_BYTES and the last TAIL_BYTES. memory_bytes: resident, of
    all its processes together; an address-space limit would stop CUDA, which reserves terabytes. env adds to
    this process's environment. A program that cannot be started has ended with exit code 127.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    log_path = str(log.resolve())
    marks = {_LOG_VARIABLE: log_path, _RUNNER_VARIABLE: str(os.getpid())}
    started = time.monotonic()
    with log.open("wb") as log_file:
        try:
            process = subprocess.Popen(
                [str(part) for part in argv],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a group of its own: only the caller gets Ctrl-C
                env={**os.environ, **(env or {}), **marks},
                cwd=cwd,
            )
        except OSError as error:
            text = f"{argv[0]} cannot be started: {error.strerror}"
            log_file.write(text.encode())
            return ProcessResult("exited", 127, time.monotonic() - started, text, text)
        with contextlib.suppress(OSError):
            resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        output = _Output(process.stdout, log_file)
        try:
            exceeded = _watch(process, output, started + timeout_s, memory_bytes)
        finally:
            _kill_all(process, log_path)
            output.drain()
            tail = output.finish()
    seconds, code = time.monotonic() - started, process.returncode
    if exceeded == "timed_out":
        return ProcessResult(exceeded, None, seconds, tail, f"did not end within {timeout_s:g} s")
    if exceeded == "out_of_memory":
        assert memory_bytes is not None
        words = f"took more than {memory_bytes / 1e9:.1f} GB of memory"
        return ProcessResult(exceeded, None, seconds, tail, words)
    if code is None:
        return ProcessResult("timed_out", None, seconds, tail, "could not be killed: the driver holds it")
    if code < 0:
        return ProcessResult("signalled", -code, seconds, tail, f"was killed by {_signal_name(-code)}")
    return ProcessResult("exited", code, seconds, tail, f"ended with exit code {code}")


def package_environment() -> dict[str, str]:
    """The environment variables with which Python finds this package and does not buffer its output."""
    package = str(Path(__file__).resolve().parents[2])
    others = os.environ.get("PYTHONPATH")
    return {
        "PYTHONPATH": f"{package}{os.pathsep}{others}" if others else package,
        "PYTHONUNBUFFERED": "1",
    }


@contextlib.contextmanager
def kill_on_exit(folder: Path) -> Iterator[None]:
    """Let no program with its log below `folder` outlive this process, even after kill -9 of its group.

    Every program here has a session of its own, which no signal to this process's group meets. So a guard, in
    another such session, waits for the end of this process and kills them then. Whoever goes on in the same
    folder may have begun by that time: what another process runs is let alone.
    """
    guard = subprocess.Popen(
        [sys.executable, "-m", "profiler.collect.subprocesses", str(folder.resolve()), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, **package_environment()},
    )
    try:
        yield
    finally:
        assert guard.stdin
        with contextlib.suppress(OSError):  # the guard has ended
            guard.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.wait(timeout=_DEATH_S)


def guard_main(argv: Sequence[str]) -> int:
    """Wait until stdin closes because the caller has ended; then kill the programs that it left running."""
    folder, runner = argv
    while os.read(0, 1):
        pass
    kill_leftovers(Path(folder), int(runner))
    return 0


def kill_leftovers(folder: Path, runner: int | None = None) -> int:
    """Kill the programs with their log below `folder` that a killed caller left running. Returns how many.

    runner: the pid of the caller whose programs alone are killed; None: of any caller.
    """
    prefix = str(folder.resolve()) + os.sep
    return _kill_marked(
        lambda log_path, pid: log_path.startswith(prefix) and (runner is None or pid == str(runner))
    )


# ---------------------------------------------------------------- output


class _Output:
    """The output of a program: its start goes to a file, its end is kept in memory."""

    def __init__(self, pipe: IO[bytes] | None, log_file: IO[bytes]) -> None:
        assert pipe is not None
        self._pipe = pipe
        self._log_file = log_file
        self._written = 0
        self._last: deque[bytes] = deque()  # the latest parts, together at least TAIL_BYTES
        self._last_bytes = 0
        self._left_out = 0
        self.open = True

    def read(self, wait_s: float) -> None:
        """Read what is in the pipe, waiting at most so long."""
        if not self.open:
            time.sleep(wait_s)
            return
        if not select.select([self._pipe], [], [], wait_s)[0]:
            return
        part = os.read(self._pipe.fileno(), 1 << 16)
        if not part:
            self.open = False
            return
        fits = max(0, LOG_BYTES - self._written)
        self._log_file.write(part[:fits])
        self._written += len(part[:fits])
        self._left_out += len(part) - len(part[:fits])
        self._last.append(part)
        self._last_bytes += len(part)
        while self._last_bytes - len(self._last[0]) >= TAIL_BYTES:
            self._last_bytes -= len(self._last.popleft())

    def drain(self) -> None:
        """Read what an ended program left in the pipe; another process may still hold its other end."""
        until = time.monotonic() + 1.0
        while self.open and time.monotonic() < until and select.select([self._pipe], [], [], 0)[0]:
            self.read(0)

    def finish(self) -> str:
        """Close the pipe and write the end to the log. Returns the tail as text."""
        tail = b"".join(self._last)[-TAIL_BYTES:]
        if self._left_out:
            between = max(0, self._left_out - len(tail))
            self._log_file.write(f"\n[{between} bytes left out]\n".encode() + tail)
        self._pipe.close()
        return tail.decode(errors="replace")


# ---------------------------------------------------------------- limits


def _watch(
    process: subprocess.Popen[bytes], output: _Output, until: float, memory_bytes: int | None
) -> str | None:
    """Read until the program ends (None) or exceeds a limit: the kind of that limit, as in ProcessResult."""
    next_look = 0.0
    while process.poll() is None:
        now = time.monotonic()
        if now >= until:
            return "timed_out"
        if memory_bytes is not None and now >= next_look:
            if _resident_bytes(process.pid) > memory_bytes:
                return "out_of_memory"
            next_look = now + POLL_S
        output.read(min(POLL_S, until - now))
    return None


def _resident_bytes(session: int) -> int:
    """Resident memory of all processes of a session; shared pages count in each."""
    total = 0
    for pid in _pids():
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = _stat_fields(pid)
            if int(fields[3]) == session:
                total += int(fields[21]) * _PAGE_BYTES
    return total


def _kill_all(process: subprocess.Popen[bytes], log_path: str) -> None:
    """Kill the program, its group, and what left the group but kept its environment."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for _ in range(20):  # a process that forks while the list is read is found the next time
        if not _kill_marked(lambda path, _runner: path == log_path):
            break
        time.sleep(0.01)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_DEATH_S)


def _kill_marked(matches: Callable[[str, str | None], bool]) -> int:
    """Kill every process of this user whose log path and runner match. Returns how many."""
    killed = 0
    for pid in _pids():
        if pid == os.getpid():
            continue
        # A descriptor, taken first, names the same process even if its pid is reused meanwhile.
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(pid)
            try:
                marks = _marks_of(pid)
                if marks is not None and matches(*marks) and _stat_fields(pid)[0] != "Z":
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    killed += 1
            finally:
                os.close(descriptor)
    return killed


def _marks_of(pid: int) -> tuple[str, str | None] | None:
    """The log path and the runner's pid of a process; None: it was not started by run()."""
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    if _LOG_VARIABLE.encode() not in environment:  # as in nearly every process
        return None
    entries = (entry.partition(b"=") for entry in environment.split(b"\0"))
    variables = {name: os.fsdecode(value) for name, _, value in entries}
    log_path = variables.get(_LOG_VARIABLE.encode())
    return None if log_path is None else (log_path, variables.get(_RUNNER_VARIABLE.encode()))


def _stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; the name before it may hold blanks and brackets."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


if __name__ == "__main__":
    sys.exit(guard_main(sys.argv[1:]))
