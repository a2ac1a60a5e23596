"""How a report file becomes a Report: framing check, reading apart, refusal of whatever is not whole."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from profiler.errors import UnreadableReport
from profiler.evidence import Launch, MetricSet, Report, Rule, State, Values
from profiler.evidence.values import SLOT, is_duration
from profiler.reports import csv_export, file_format
from profiler.reports.instances import LaunchDetail, read_detail
from profiler.reports.reader_client import Answer, Worker, WorkerLost, borrow_worker

Size = tuple[int, int, int] | None  # of a grid or block; None where the report does not say

TIMEOUT_S = 60.0
MEMORY_BYTES = (
    1 << 30
)  # address space of the worker: it starts at 220 MiB, the 16 public reports end at 330 MiB
_LOOKAHEAD = 3  # files that may be with the worker while the caller stores an earlier one


@dataclass
class _Job:
    """One file on its way: either settled, or framed and with the worker."""

    path: Path
    settled: Report | UnreadableReport | None = None
    framing: file_format.Framing | None = None


def read_reports(
    paths: Iterable[Path],
    timeout_s: float = TIMEOUT_S,
    memory_bytes: int = MEMORY_BYTES,
    max_bytes: int = file_format.MAX_BYTES,
) -> Iterator[Report | UnreadableReport]:
    """Read report files in order, each to a whole Report or to the reason why not; nothing in between.

    Time and memory limits hold for each file. The worker reads on while the caller stores an earlier file.
    """
    jobs: deque[_Job] = deque()
    todo = iter(paths)
    with borrow_worker(memory_bytes) as worker:
        while True:
            while len(jobs) < _LOOKAHEAD and (path := next(todo, None)) is not None:
                jobs.append(_begin(Path(path), worker, timeout_s, max_bytes))
            if not jobs:
                return
            job = jobs.popleft()
            yield job.settled or _finish(job, jobs, worker, timeout_s)


def read_report(path: Path, timeout_s: float = TIMEOUT_S, memory_bytes: int = MEMORY_BYTES) -> Report:
    """Read one report file; raises UnreadableReport."""
    (result,) = read_reports([path], timeout_s, memory_bytes)  # to its end, so that its worker is given back
    if isinstance(result, UnreadableReport):
        raise result
    return result


def launch_detail(path: Path, ordinal: int, cache_dir: Path | None = None) -> LaunchDetail:
    """The second depth of one launch, extracted on first view; raises UnreadableReport."""
    return read_detail(path, ordinal, cache_dir, TIMEOUT_S, MEMORY_BYTES)


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
    return start == file_format.MAGIC or (path.suffix.lower() == ".csv" and csv_export.is_ncu_csv(path))


def _begin(path: Path, worker: Worker, timeout_s: float, max_bytes: int) -> _Job:
    """Settle a CSV or a file that is no report; queue the others."""
    try:
        _refuse_what_is_no_file(path)
        if _is_csv(path):
            return _Job(path, settled=csv_export.read_csv(path, max_bytes))
        worker.start()  # it imports the library while the framing is checked here
        framed = file_format.check_framing(path, max_bytes)
    except UnreadableReport as error:
        return _Job(path, settled=error)
    worker.ask(path, timeout_s)
    return _Job(path, framing=framed)


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


def _is_csv(path: Path) -> bool:
    if path.suffix.lower() == ".ncu-rep":
        return False
    with path.open("rb") as stream:
        return stream.read(len(file_format.MAGIC)) != file_format.MAGIC


def _finish(job: _Job, queued: Iterable[_Job], worker: Worker, timeout_s: float) -> Report | UnreadableReport:
    """Wait for one file's answer. Whatever happens to the worker costs this file only."""
    assert job.framing
    try:
        return assemble_report(job.path, job.framing, worker.answer(timeout_s))
    except WorkerLost as lost:
        return _unreadable(job.path, f"the report is damaged or too large: {lost}")
    except UnreadableReport as error:
        worker.sound = False
        return error
    finally:
        if not worker.running:
            for other in queued:
                if other.framing:
                    worker.ask(other.path, timeout_s)


def assemble_report(path: Path, framed: file_format.Framing, answer: Answer) -> Report:
    """The Report in a reader's answer, checked against what the file declares; raises UnreadableReport."""
    if "error" in answer.head:
        raise _unreadable(path, answer.head["error"], answer.head.get("whole", False))
    try:
        launches = _launches(answer.head, answer.blob, framed)
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise _unreadable(path, "the report is damaged: it reads as nonsense") from error
    if len(launches) != framed.declared:
        mismatch = f"it declares {framed.declared} launches and {len(launches)} can be read"
        raise _unreadable(path, f"the report is damaged: {mismatch}")
    for launch, header in zip(launches, framed.launches, strict=bool(framed.launches)):
        if launch.function == header.function and len(launch.values) != header.metrics:
            mismatch = f"stores {header.metrics} metrics and {len(launch.values)} can be read"
            raise _unreadable(path, f"the report is damaged: launch {launch.ordinal} {mismatch}")
    return Report(path.name, framed.sha256, framed.size_bytes, "ncu-rep", framed.session, launches)


def _unreadable(path: Path, what: str, whole: bool = False) -> UnreadableReport:
    return UnreadableReport(f"{path}: {what}" + ("" if whole else "; copy it again"))


def _launches(head: dict[str, Any], blob: bytes, framed: file_format.Framing) -> tuple[Launch, ...]:
    sets = [MetricSet(tuple(body["names"]), tuple(body["units"]), body["kinds"]) for body in head["sets"]]
    durations = [
        [index for index, name in enumerate(metric_set.names) if is_duration(name)] for metric_set in sets
    ]
    launches, at = [], 0
    for ordinal, body in enumerate(head["launches"]):
        metric_set = sets[body["set"]]
        count = len(metric_set.names)
        slots = np.frombuffer(blob, SLOT, count, at)
        states = np.frombuffer(blob, np.uint8, count, at + count * SLOT.itemsize)
        at += count * (SLOT.itemsize + 1)
        texts = dict(zip(*body["texts"], strict=True))
        values = Values(metric_set, slots, states, texts)
        for index in durations[body["set"]]:  # nothing takes no time: ncu failed to measure it
            number = values.number(metric_set.names[index])
            if number is not None and number <= 0:
                values.states = values.states.copy()  # what was read is read-only
                values.states[index] = State.FAILED
        header = framed.launches[ordinal] if ordinal < len(framed.launches) else None
        if header and header.function != body["function"]:
            header = None  # the library orders launches of several processes in its own way
        block = header.block if header else launch_dimensions(values, "launch__block_dim_")
        grid = header.grid if header else launch_dimensions(values, "launch__grid_dim_")
        launches.append(
            Launch(
                function=body["function"],
                demangled=body["demangled"],
                mangled=body["mangled"],
                grid=_grid_in_blocks(grid, block, _whole(values, "launch__grid_size")),
                block=block,
                stream=header.stream if header else _whole(values, "launch__stream_id"),
                nvtx=tuple(body["nvtx"]),
                ordinal=ordinal,
                values=values,
                opcodes=body["opcodes"],
                rules=tuple(_rule(*rule) for rule in body["rules"]),
            )
        )
    if at != len(blob):
        raise ValueError("columns left over")
    return tuple(launches)


def _rule(*fields: Any) -> Rule:
    identifier, name, section, kind, title, message, speedup_pct, scope, focus = fields
    return Rule(identifier, name, section, kind, title, message, speedup_pct, scope, tuple(focus))


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
