"""The process apart in which reports are read: how it is started, limited, asked, waited for and ended."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from profiler.reports import csv_process, memory_limit, reader_process

MEMORY_BYTES = memory_limit.LEAST_BYTES  # of the worker, until a file that is asked for may take more
PIPE_BYTES = 1 << 20  # room for a typical answer, so that the worker reads on while its last answer waits
_F_SETPIPE_SZ = 1031  # Linux
_NO_MEMORY = b"std::bad_alloc"  # in what C++ says when nobody catches it
_SAID_BYTES = 1 << 16
# As a module, whose bytecode is kept: to compile a script at every start takes as long as Python's own start.
_START = """
import sys
sys.path.append(sys.argv[1])
import reader_process
reader_process.serve(sys.argv[2], int(sys.argv[3]))
"""
CommandOf = Callable[[int], list[str]]  # of a worker that may take so many bytes
SPARE_S = 20  # how long a worker waits for the next report before it ends by itself


class Answer(NamedTuple):
    """One framed answer of the worker."""

    head: dict[str, Any]
    blob: bytes


class WorkerLost(Exception):
    """The worker ended, hung or answered nonsense; the message says which, as the end of a sentence."""

    timed_out = False


class TimedOut(WorkerLost):
    """There was no answer in time."""

    timed_out = True


class NoMemory(WorkerLost):
    """The worker ended because it was refused memory."""


def csv_command(memory_bytes: int) -> list[str]:
    """The command line of the worker that reads CSV."""
    places = json.dumps([place for place in sys.path if isinstance(place, str)])
    return [sys.executable, "-I", "-S", csv_process.__file__, places, str(memory_bytes)]


def command(memory_bytes: int) -> list[str]:
    """The command line of the worker that reads `.ncu-rep` files."""
    spec = importlib.util.find_spec("ncu_report")  # finds it, does not import it
    site = str(Path(spec.origin).parent.parent) if spec and spec.origin else ""
    folder = str(Path(reader_process.__file__).parent)
    return [sys.executable, "-I", "-S", "-c", _START, folder, site, str(memory_bytes)]


class ReaderWorker:
    """A reading process. Requests queue in its pipe and are answered in order; the first one starts it."""

    def __init__(self, memory_bytes: int, argv_of: CommandOf) -> None:
        self._argv_of = argv_of
        self._argv: list[str] | None = None
        self._memory_bytes = memory_bytes
        self._limits: deque[tuple[int, int]] = deque()  # bytes of memory and of the answer, of what is asked
        self._process: subprocess.Popen[bytes] | None = None
        self.sound = True  # until it meets a damaged file, which may have upset the library
        self._spare_since = 0.0
        self._said = -1  # what the process writes to stderr, while there is one

    def start(self) -> subprocess.Popen[bytes]:
        """The running process, started where it is not."""
        if self._process is None:
            self._argv = self._argv or self._argv_of(self._memory_bytes)
            self._said = os.memfd_create("said")  # no file: the disk may be full
            fcntl.fcntl(self._said, fcntl.F_SETFL, os.O_APPEND)  # so that it can be emptied meanwhile
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                start_new_session=True,  # Ctrl-C is the parent's to handle
            )
            assert self._process.stdout
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._process.stdout, _F_SETPIPE_SZ, PIPE_BYTES)
        return self._process

    def ask(
        self, path: Path, timeout_s: float, ordinals: Sequence[int | None] = (None,), **request: Any
    ) -> None:
        """Queue one request. A worker that is gone is noticed by answer().

        ordinals: of the launches whose second depth is asked for, each an answer; None for the first depth.
        request: `pieces` (of report_parts), `metrics`, the only ones that are wanted, `memory_bytes` and
        `answer_bytes` as limits of each answer.
        """
        request.setdefault("metrics", None)
        request.setdefault("pieces", ())
        request.setdefault("memory_bytes", self._memory_bytes)
        request.setdefault("answer_bytes", self._memory_bytes)
        self._limits += [(request["memory_bytes"], request["answer_bytes"])] * len(ordinals)
        self._send({"path": str(path.absolute()), "ordinals": ordinals, "timeout_s": timeout_s, **request})

    def answer(self, timeout_s: float) -> Answer:
        """The next answer; raises WorkerLost, after which the next ask() starts a fresh process."""
        deadline = time.monotonic() + timeout_s
        try:
            magic, head_bytes, blob_bytes = reader_process.HEAD.unpack(
                self._take(reader_process.HEAD.size, deadline, timeout_s)
            )
            is_last = magic == reader_process.LAST_MAGIC
            if not (is_last or magic == reader_process.MAGIC) or head_bytes + blob_bytes > self._limits[0][1]:
                raise WorkerLost("the reading process answered nonsense")
            head = json.loads(self._take(head_bytes, deadline, timeout_s))
            blob = self._take(blob_bytes, deadline, timeout_s)
        except WorkerLost:
            self.close()
            raise
        self._limits.popleft()
        os.ftruncate(self._said, 0)
        self.sound &= "error" not in head
        if is_last:
            self.close()
        return Answer(head, blob)

    @property
    def running(self) -> bool:
        """Whether queued requests are still with a process."""
        return self._process is not None

    def make_spare(self) -> bool:
        """Whether the process may wait for the next report: it runs, owes nothing and has met no bad file."""
        if self._process is None or self._limits or not self.sound:
            return False
        self._send({"end_after_s": SPARE_S})
        self._spare_since = time.monotonic()
        return True

    def serves(self, memory_bytes: int) -> bool:
        """Whether a spare worker runs as a new one would, and will not end before it is asked."""
        is_fresh = time.monotonic() - self._spare_since < SPARE_S / 2
        return is_fresh and self.start().poll() is None and self._argv == self._argv_of(memory_bytes)

    def _send(self, request: dict[str, Any]) -> None:
        pipe = self.start().stdin
        assert pipe
        with contextlib.suppress(BrokenPipeError):
            pipe.write(json.dumps(request).encode() + b"\n")
            pipe.flush()

    def _take(self, count: int, deadline: float, timeout_s: float) -> bytes:
        pipe = self.start().stdout
        assert pipe
        parts: list[bytes] = []
        while count:
            wait_s = deadline - time.monotonic()
            if wait_s <= 0 or not select.select([pipe], [], [], wait_s)[0]:
                raise TimedOut(f"reading it took longer than {timeout_s:g} s")
            part = os.read(pipe.fileno(), min(count, PIPE_BYTES))
            if not part:
                raise self._how_it_ended()
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _how_it_ended(self) -> WorkerLost:
        """Why there is no answer. The library ends its process on damage, and where it gets no memory."""
        try:
            code = self.start().wait(timeout=5)
        except subprocess.TimeoutExpired:
            return WorkerLost("the reading library closed its answers")
        if _NO_MEMORY in os.pread(self._said, _SAID_BYTES, 0):
            return NoMemory("the reading library was refused memory")
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return WorkerLost(f"the reading library stopped on it ({how})")

    def kill(self) -> None:
        """Have the process end, and do not wait until it has: its memory takes 30 ms to be given back."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the process; what it still had queued is lost."""
        process, self._process = self._process, None
        self._limits.clear()
        self.sound = True
        if process is None:
            return
        process.kill()
        os.close(self._said)
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()


class _Spare:
    """The worker of this process that waits for the next file of a kind: at most this one."""

    def __init__(self, argv_of: CommandOf) -> None:
        self._argv_of = argv_of
        self._lock = threading.Lock()
        self._worker: ReaderWorker | None = None
        self._dismissed: list[ReaderWorker] = []  # are ending

    @contextlib.contextmanager
    def borrow(self, memory_bytes: int) -> Iterator[ReaderWorker]:
        """A worker for the length of a with block: the spare one, or a new one.

        Starting a process and loading what it needs takes many times as long as reading a typical file. So a
        worker that read nothing but whole files waits SPARE_S seconds for the next one.
        """
        worker = self._take(memory_bytes) or ReaderWorker(memory_bytes, self._argv_of)
        try:
            yield worker
        except BaseException:
            worker.close()
            raise
        self._give_back(worker)

    def _take(self, memory_bytes: int) -> ReaderWorker | None:
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is None or worker.serves(memory_bytes):
            return worker
        worker.close()
        return None

    def _give_back(self, worker: ReaderWorker) -> None:
        """Keep a sound worker where there is none; end every other."""
        with self._lock:
            if self._worker is None and worker.make_spare():
                self._worker = worker
                return
        worker.close()

    def dismiss(self) -> None:
        """Have the spare worker end while the caller goes on."""
        with self._lock:
            worker, self._worker = self._worker, None
            if worker:
                worker.kill()
                self._dismissed.append(worker)

    def close(self) -> None:
        """End the spare worker, and wait for those that are ending."""
        with self._lock:
            worker, self._worker = self._worker, None
            ending, self._dismissed = self._dismissed, []
        for ended in (*ending, worker):
            if ended:
                ended.close()

    def forget(self) -> None:
        """In a forked child: the worker is the parent's, and so may be a lock that another thread held."""
        self._lock = threading.Lock()
        self._worker = None
        self._dismissed = []


# Looked up when a worker is started, so that a test may put another command there.
_spare = _Spare(lambda memory_bytes: command(memory_bytes))
_csv_spare = _Spare(lambda memory_bytes: csv_command(memory_bytes))
for _kind in (_spare, _csv_spare):
    atexit.register(_kind.close)
    os.register_at_fork(after_in_child=_kind.forget)
borrow_worker = _spare.borrow  # that reads `.ncu-rep` files
borrow_csv_worker = _csv_spare.borrow


def start_reader(memory_bytes: int | None = None) -> None:
    """Have the reading process load NVIDIA's library before the first file is asked for; it waits 20 s.

    memory_bytes: the limit that `read_reports` will be given.
    """
    with borrow_worker(memory_bytes or MEMORY_BYTES) as worker:
        worker.start()


def dismiss_reader() -> None:
    """Have the reading processes that wait for another file end: a command that ends soon need not wait."""
    _spare.dismiss()
    _csv_spare.dismiss()
