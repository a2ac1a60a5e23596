"""How a report file becomes a Report: framing check, reading apart, refusal of whatever is not whole."""

from __future__ import annotations

import contextlib
import math
import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler.errors import CannotJudge, UnreadableReport
from profiler.evidence.launch import Launch, Report, RuleResult, Session, one_line
from profiler.evidence.values import SLOT_BYTES, MetricSet, State, Values, is_placeholder, may_be_placeholder
from profiler.reports import file_format, memory_limit, reader_client, report_parts
from profiler.reports.reader_client import Answer, ReaderWorker, WorkerLost, borrow_csv_worker, borrow_worker
from profiler.reports.selected_file import SelectedFile

if TYPE_CHECKING:
    from profiler.reports.instances import LaunchDetail

Size = tuple[int, int, int] | None  # of a grid or block; None where the report does not say

TIMEOUT_S = 60.0
MEMORY_BYTES = reader_client.MEMORY_BYTES
# What is read of a launch besides the metrics that are asked for: on what it ran, and in which dimensions.
_LAUNCH_FACTS = (
    *(f"launch__{size}_dim_{axis}" for size in ("grid", "block") for axis in "xyz"),
    *("launch__grid_size", "launch__block_size", "launch__stream_id", "launch__device_id"),
    *(f"device__attribute_compute_capability_{part}" for part in ("major", "minor")),
    *(f"device__attribute_{name}" for name in ("display_name", "chip", "multiprocessor_count")),
    *("device__attribute_architecture", "device__attribute_implementation"),
)
_LOOKAHEAD = 8  # files that may be with the worker while the caller stores an earlier one, or loads what does
_PARTS_AHEAD = 3  # parts of a file likewise
_ANSWER_BYTES = 32 << 20  # an answer may be this much larger than its file: a small one repeats names
_CSV_BYTES_A_SECOND = 1_000_000  # what reading takes on a slow machine, beyond the time for any file


@dataclass
class _Job:
    """One file on its way: either settled, or framed and with a worker."""

    path: Path
    worker: ReaderWorker | None = None
    settled: Report | UnreadableReport | None = None
    framing: file_format.Framing | None = None  # None for a CSV
    parts: list[report_parts.Part] = field(default_factory=list)  # of a large report
    size_bytes: int = 0
    selected: SelectedFile | None = None  # what is read of it, where that is some metrics alone
    asked: int = 0  # parts that are with the worker or answered

    @property
    def asks(self) -> int:
        """How many answers this file takes."""
        return len(self.parts) or 1

    def close(self) -> None:
        """Give back what it holds in memory for the worker."""
        if self.selected is not None:
            self.selected.close()


@dataclass(frozen=True)
class _Limits:
    """Of each file. memory_bytes: None where its size decides."""

    timeout_s: float
    memory_bytes: int | None
    max_bytes: int
    metrics: frozenset[str] | None = None  # the only ones that are read; None: all

    def memory(self, size_bytes: int) -> int:
        """Bytes of memory for what has this size."""
        return self.memory_bytes or memory_limit.reader_memory(size_bytes)


def read_reports(
    paths: Iterable[Path],
    timeout_s: float = TIMEOUT_S,
    memory_bytes: int | None = None,
    max_bytes: int = file_format.MAX_BYTES,
    metrics: Collection[str] | None = None,
) -> Iterator[Report | UnreadableReport]:
    """Read report files in order, each to a whole Report or to the reason why not; nothing in between.

    metrics: of a `.ncu-rep` only these, and what says where a launch ran; opcodes and rules are left out, and
    `unread` has the names of the other metrics. That is several times as fast, and damage among what is not
    read goes unnoticed.
    Time and memory limits hold for each file, and for each part of a large one. memory_bytes: None for what
    memory_limit says of its size. The worker reads on while the caller stores an earlier file.
    """
    only = None if metrics is None else frozenset((*metrics, *_LAUNCH_FACTS))
    limits = _Limits(timeout_s, memory_bytes, max_bytes, only)
    jobs: deque[_Job] = deque()
    todo = iter(paths)
    memory = memory_bytes or MEMORY_BYTES
    is_first = True
    try:
        with borrow_worker(memory) as worker, borrow_csv_worker(memory) as csv_worker:
            while True:
                # Answers come in the order of asking: behind a file with parts to ask for, no other is begun.
                while len(jobs) < _LOOKAHEAD and not (jobs and jobs[-1].parts):
                    if (path := next(todo, None)) is None:
                        break
                    begun = _begin(Path(path), worker, csv_worker, limits, is_first)
                    is_first = False
                    if begun.settled and not worker.running:  # ended: what it had queued is asked for again
                        _ask_again(jobs, worker, limits)
                    jobs.append(begun)
                if not jobs:
                    return
                job = jobs.popleft()
                with contextlib.closing(job):
                    result = job.settled or _finish(job, jobs, limits)
                yield result
    finally:
        for job in jobs:
            job.close()


def read_report(
    path: Path,
    timeout_s: float = TIMEOUT_S,
    memory_bytes: int | None = None,
    metrics: Collection[str] | None = None,
) -> Report:
    """Read one report file, the metrics as `read_reports` does; raises UnreadableReport."""
    # To its end, so that its worker is given back.
    (result,) = read_reports([path], timeout_s, memory_bytes, metrics=metrics)
    if isinstance(result, UnreadableReport):
        raise result
    return result


def launch_detail(path: Path, ordinal: int, cache_dir: Path | None = None) -> LaunchDetail:
    """The second depth of one launch, extracted on first view; raises UnreadableReport."""
    from profiler.reports.instances import read_detail

    return read_detail(path, ordinal, cache_dir, TIMEOUT_S)


def launch_details(path: Path, metrics: Collection[str]) -> Iterator[LaunchDetail]:
    """The second depth of every launch of a report in order, read at once; raises UnreadableReport.

    metrics: the only ones that are read, which takes a tenth of the time that all take. Of a launch in which
    nothing was counted per instruction there are no instructions then.
    """
    from profiler.reports.instances import read_details

    return read_details(path, metrics, TIMEOUT_S)


def is_report(path: Path) -> bool:
    """Whether a file claims to be a report: by its suffix or first bytes, or by an ncu CSV header.

    A damaged `.ncu-rep` is one, so that it is refused aloud; a CSV of something else is not.
    """
    if not path.is_file():
        return False
    if path.suffix.lower() in (".ncu-rep", ".ncu-repz"):
        return True
    try:
        with path.open("rb") as stream:
            start = stream.read(len(file_format.MAGIC))
    except OSError:
        return False
    if start == file_format.MAGIC or path.suffix.lower() != ".csv":
        return start == file_format.MAGIC
    from profiler.reports import csv_export  # takes longer to import than all that a report needs

    return csv_export.is_ncu_csv(path)


def _begin(
    path: Path, worker: ReaderWorker, csv_worker: ReaderWorker, limits: _Limits, is_first: bool
) -> _Job:
    """Settle a file that is no report; queue the others. is_first: nothing else is with the worker."""
    job = None
    try:
        _refuse_what_is_no_file(path)
        size_bytes = path.stat().st_size
        if _is_csv(path):
            from profiler.reports import csv_export

            csv_export.refuse_large(path, size_bytes, limits.max_bytes)
            job = _Job(path, csv_worker, size_bytes=size_bytes)
        else:
            worker.start()  # it imports the library while the framing is checked here
            job = _Job(path, worker, size_bytes=size_bytes)
            if is_first and limits.metrics is None and size_bytes <= file_format.SPANS_BYTES:
                _ask(job, limits, _PARTS_AHEAD)  # it reads meanwhile, too
            framing = file_format.check_framing(path, limits.max_bytes, limits.metrics)
            job.framing = replace(framing, selected=None)
            job.parts = report_parts.parts_of(framing)
            if framing.selected is not None:
                job.selected = SelectedFile(framing.selected)
    except UnreadableReport as error:
        if job is not None and job.asked:
            worker.close()
        return _Job(path, settled=error)
    _ask(job, limits, _PARTS_AHEAD)
    return job


def _ask(job: _Job, limits: _Limits, ahead: int) -> None:
    """Queue what is not with the worker yet, as far as `ahead` parts of the file."""
    assert job.worker
    while job.asked < min(job.asks, ahead):
        pieces: tuple[report_parts.Piece, ...] = ()
        size_bytes = job.size_bytes
        if job.parts:
            part = job.parts[job.asked]
            pieces, size_bytes = part.pieces, part.size_bytes
        job.worker.ask(
            job.selected.path if job.selected else job.path,
            _timeout_s(job, limits),
            pieces=pieces,
            memory_bytes=limits.memory(size_bytes),
            answer_bytes=_ANSWER_BYTES + (2 if job.framing is None else 1) * size_bytes,
            max_bytes=limits.max_bytes,
            metrics=None if job.selected or limits.metrics is None else sorted(limits.metrics),
            is_selected=job.selected is not None,
        )
        job.asked += 1


def _timeout_s(job: _Job, limits: _Limits) -> float:
    return limits.timeout_s + (job.size_bytes / _CSV_BYTES_A_SECOND if job.framing is None else 0)


def _refuse_what_is_no_file(path: Path) -> None:
    # os.path answers False where Path raises: for a path that no file can have, too long or with a NUL.
    if os.path.isdir(path):
        raise UnreadableReport(f"{path}: a folder, not a report file")
    if not os.path.exists(path):
        raise UnreadableReport(f"{path}: no such file")
    if not path.is_file():
        raise UnreadableReport(f"{path}: not a regular file")
    if not os.access(path, os.R_OK):
        raise UnreadableReport(f"{path}: may not be read by this user; change its permissions")
    if path.suffix.lower() == ".ncu-repz":
        raise UnreadableReport(
            f"{path}: a compressed report; open it in Nsight Compute and save it as .ncu-rep"
        )


def refuse_printed(path: Path, name: str) -> None:
    """Raise CannotJudge for a file that is no `.ncu-rep`: what ncu prints of one holds no machine code."""
    if path.is_file() and _is_csv(path):
        raise CannotJudge(f"{name}: a text holds no machine code: name the report that it was made of")


def _is_csv(path: Path) -> bool:
    if path.suffix.lower() == ".ncu-rep":
        return False
    with path.open("rb") as stream:
        return stream.read(len(file_format.MAGIC)) != file_format.MAGIC


def _finish(job: _Job, queued: Iterable[_Job], limits: _Limits) -> Report | UnreadableReport:
    """Wait for one file's answers. Whatever happens to the worker costs this file only."""
    worker = job.worker
    assert worker
    try:
        assembly = _Assembly(job.path, job.framing, is_whole=limits.metrics is None)
        for number in range(job.asks):
            assembly.add(worker.answer(_timeout_s(job, limits)), job.parts[number] if job.parts else None)
            if not worker.running:
                job.asked = number + 1
            _ask(job, limits, number + 1 + _PARTS_AHEAD)
        return assembly.report()
    except reader_client.NoMemory:
        return _too_large(job, limits)
    except WorkerLost as lost:
        if lost.timed_out:
            return _unreadable(job.path, f"the report is damaged or too large: {lost}")
        return _unreadable(job.path, f"the report is damaged: {lost}")
    except MemoryError:
        worker.sound = False
        return _too_large(job, limits)
    except UnreadableReport as error:
        worker.sound = False
        if job.asks > 1:  # answers to later parts are nobody's
            worker.close()
        return error
    finally:
        if not worker.running:
            _ask_again(queued, worker, limits)


def _ask_again(jobs: Iterable[_Job], worker: ReaderWorker, limits: _Limits) -> None:
    """Ask a worker that was started anew for what it had queued."""
    for job in jobs:
        if job.worker is worker:
            job.asked = 0
            _ask(job, limits, _PARTS_AHEAD)


def _too_large(job: _Job, limits: _Limits) -> UnreadableReport:
    """The error for a file that is whole, as far as can be seen, and takes more memory than it may."""
    size_bytes = max((part.size_bytes for part in job.parts), default=job.size_bytes)
    limit = limits.memory(size_bytes)
    return UnreadableReport(
        f"{job.path}: too large for the limit: reading it takes more than {limit >> 20} MiB of memory; raise "
        f"the limit with --reader-memory {max(2, 2 * limit >> 30)}G ({memory_limit.READER_MEMORY} for every "
        "command), or profile fewer launches a report",
        option="--reader-memory",
    )


class _Assembly:
    """A Report as it comes together from the reader's answers, checked against what the file declares."""

    def __init__(self, path: Path, framed: file_format.Framing | None, is_whole: bool = True) -> None:
        self._path, self._framed, self._is_whole = path, framed, is_whole
        self._form: tuple[str, int, str, tuple[str, ...]] | None = (
            None  # of a CSV: sha256, size, form, doubts
        )
        self._launches: list[Launch] = []
        self._sets: dict[MetricSet, MetricSet] = {}
        self._texts: dict[str, str] = {}
        self._unread_names: dict[tuple[frozenset[str], MetricSet], frozenset[str]] = {}

    def add(self, answer: Answer, part: report_parts.Part | None = None) -> None:
        """Take in one answer; raises UnreadableReport, or MemoryError where the worker had too little."""
        head = answer.head
        if head.get("out_of_memory"):
            raise MemoryError
        if "error" in head:
            raise _unreadable(self._path, head["error"], head.get("whole", False))
        try:
            launches = self._read(head, answer.blob)
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise _unreadable(self._path, "the report is damaged: it reads as nonsense") from error
        if part and len(launches) != part.launches:
            raise self._mismatch(part.launches, len(launches))
        self._launches += launches

    def _mismatch(self, declared: int, found: int) -> UnreadableReport:
        mismatch = f"it declares {declared} launches and {found} can be read"
        return _unreadable(self._path, f"the report is damaged: {mismatch}")

    def report(self) -> Report:
        """The whole report; raises UnreadableReport where launches or metrics of it are missing."""
        launches, path = tuple(self._launches), self._path.absolute()
        if self._framed is None:
            assert self._form
            sha256, size_bytes, form, warnings = self._form
            return Report(path.name, sha256, size_bytes, form, Session(), launches, warnings, path)
        if len(launches) != self._framed.declared:
            raise self._mismatch(self._framed.declared, len(launches))
        for launch, header in zip(launches, self._framed.launches, strict=bool(self._framed.launches)):
            if not self._is_whole or launch.function != header.function:
                continue
            if len(launch.values) != header.metrics:
                mismatch = f"stores {header.metrics} metrics and {len(launch.values)} can be read"
                raise _unreadable(self._path, f"the report is damaged: launch {launch.ordinal} {mismatch}")
        framed = self._framed
        size_bytes = framed.size_bytes
        return Report(path.name, framed.sha256, size_bytes, "ncu-rep", framed.session, launches, path=path)

    def _read(self, head: dict[str, Any], blob: bytes) -> list[Launch]:
        if self._framed is None:
            self._form = (head["sha256"], head["size_bytes"], head["form"], tuple(head["warnings"]))
        sets = []
        for body in head["sets"]:  # the parts of a report have equal ones
            metric_set = MetricSet(tuple(body["names"]), tuple(body["units"]), body["kinds"])
            sets.append(self._sets.setdefault(metric_set, metric_set))
        doubted = [
            [index for index, name in enumerate(metric_set.names) if may_be_placeholder(name)]
            for metric_set in sets
        ]
        launches: list[Launch] = []
        at = 0
        for body in head["launches"]:
            metric_set = sets[body["set"]]
            count = len(metric_set.names)
            middle, end = at + count * SLOT_BYTES, at + count * (SLOT_BYTES + 1)
            slots, states = blob[at:middle], blob[middle:end]
            at = end
            texts = {index: self._shared(text) for index, text in zip(*body["texts"], strict=True)}
            values = Values(metric_set, slots, states, texts)
            launch = self._launch(body, values, len(self._launches) + len(launches))
            has_block = launch.block is not None or bool(values.number("launch__block_size"))
            for index in doubted[body["set"]]:
                name = metric_set.names[index]
                number = values.number(name)
                if number is not None and is_placeholder(name, number, has_block):
                    states = values.states
                    values.states = states[:index] + bytes([State.FAILED]) + states[index + 1 :]
            launches.append(launch)
        if at != len(blob):
            raise ValueError("columns do not fit")
        return launches

    def _launch(self, body: dict[str, Any], values: Values, ordinal: int) -> Launch:
        names = None
        if self._framed is None:
            grid, block, stream = _size(body["grid"]), _size(body["block"]), body["stream"]
        else:
            headers = self._framed.launches
            header = headers[ordinal] if ordinal < len(headers) else None
            if header and header.function != body["function"]:
                header = None  # the library orders launches of several processes in its own way
            block = header.block if header else launch_dimensions(values, "launch__block_dim_")
            grid = header.grid if header else launch_dimensions(values, "launch__grid_dim_")
            grid = _grid_in_blocks(grid, block, _whole(values, "launch__grid_size"))
            stream = header.stream if header else _whole(values, "launch__stream_id")
            names = header.names if header else None
        return Launch(
            function=self._shared(one_line(body["function"])),
            demangled=self._shared(one_line(body["demangled"])),
            mangled=self._shared(one_line(body["mangled"])),
            grid=grid,
            block=block,
            stream=stream,
            nvtx=tuple(map(one_line, body["nvtx"])),
            ordinal=ordinal,
            values=values,
            opcodes={self._shared(name): count for name, count in body["opcodes"].items()},
            rules=tuple(self._rule(*rule) for rule in body["rules"]),
            device_column=body.get("device"),
            unread=self._unread(names, values.metric_set),
        )

    def _unread(self, names: frozenset[str] | None, metric_set: MetricSet) -> frozenset[str] | None:
        """Those of a launch's names that were not read: one set for launches of which the same is known."""
        if self._is_whole or self._framed is None:
            return frozenset()
        if names is None:
            return None
        known = names, metric_set
        if known not in self._unread_names:
            self._unread_names[known] = names.difference(metric_set.names)
        return self._unread_names[known]

    def _rule(self, *fields: Any) -> RuleResult:
        identifier, name, section, kind, title, message, speedup_pct, scope, focus = fields
        return RuleResult(
            self._shared(identifier),
            self._shared(name),
            self._shared(section),
            self._shared(kind),
            self._shared(title),
            self._shared(message),
            speedup_pct,
            scope,
            tuple(map(self._shared, focus)),
        )

    def _shared(self, text: str) -> str:
        """The text that is kept already where it is equal: thousands of launches say the same."""
        return self._texts.setdefault(text, text)


def _size(numbers: list[int] | None) -> Size:
    if numbers is None:
        return None
    x, y, z = numbers
    return x, y, z


def _unreadable(path: Path, what: str, whole: bool = False) -> UnreadableReport:
    return UnreadableReport(f"{path}: {what}" + ("" if whole else "; copy it again"))


def launch_dimensions(values: Values, prefix: str) -> tuple[int, int, int] | None:
    """Grid or block from the launch's metrics; None where it does not carry all three."""
    x, y, z = (_whole(values, prefix + axis) for axis in "xyz")
    return (x, y, z) if x and y and z else None


def _grid_in_blocks(grid: Size, block: Size, blocks: int | None) -> Size:
    """The grid in blocks. Reports of 2019 have it in threads, which the number of blocks beside it tells.

    Seen on reports of Nsight Compute 1.0 and 2019: 640 x 320 with blocks of 32 x 32 and 200 blocks.
    """
    if grid is None or block is None or blocks is None or math.prod(grid) == blocks:
        return grid
    (x, y, z), (block_x, block_y, block_z) = grid, block
    in_blocks = (x // block_x, y // block_y, z // block_z)
    is_in_threads = math.prod(in_blocks) == blocks and math.prod(grid) == blocks * math.prod(block)
    return in_blocks if is_in_threads else grid


def _whole(values: Values, name: str) -> int | None:
    number = values.number(name)
    return None if number is None else int(number)
