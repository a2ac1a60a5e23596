"""The second depth of a report: what one launch holds per instruction, source line, moment and instance."""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from profiler.errors import UnreadableReport
from profiler.reports import file_format, memory_limit, report_parts
from profiler.reports.reader_client import Answer, ReaderWorker, WorkerLost, borrow_worker
from profiler.reports.reader_process import READER_VERSION

_Scalar = TypeVar("_Scalar", bound=np.generic)


@dataclass(frozen=True)
class PcColumn:
    """One metric per instruction, in the order of Detail.pcs; NaN where it has no value there."""

    unit: str
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Timeline:
    """One sampled metric over the launch, aligned to the launch's own time span by ncu's library."""

    unit: str
    times_ns: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Instances:
    """One metric per opcode, block size, link or whatever its keys are; None where one has no value."""

    unit: str
    keys: tuple[str | int, ...]
    values: tuple[str | float | int | None, ...]


@dataclass(frozen=True)
class SourceFile:
    """One source file that the code was compiled from."""

    name: str
    text: str | None  # only with --import-source


@dataclass(frozen=True)
class LaunchDetail:
    """Everything of one launch that is not one number."""

    sha256: str  # of the report file
    ordinal: int
    function: str
    functions: tuple[
        int, ...
    ]  # where each function of the launch starts, ascending; other runs load elsewhere
    pcs: NDArray[np.uint64]  # addresses, ascending, over all functions
    sass: tuple[str | None, ...]  # None where the report holds no text
    files: tuple[SourceFile, ...]
    file_index: NDArray[np.int32]  # into files, -1 where the report does not say
    line: NDArray[np.int32]  # from 1, -1 where the report does not say
    per_pc: Mapping[str, PcColumn]
    timelines: Mapping[str, Timeline]
    instances: Mapping[str, Instances]
    # Why the values of a metric are in none of these, by its name: text at instructions, for example.
    left_out: Mapping[str, str] = field(default_factory=dict)

    def places(self) -> list[tuple[int, int]]:
        """Function index and byte offset in it, by instruction: what two runs of one binary have in common.

        Index -1 and the bare address where an instruction lies before every known function.
        """
        starts = np.array(self.functions, dtype=np.uint64)
        indices = np.searchsorted(starts, self.pcs, side="right").astype(int) - 1
        return [
            (index, int(pc) - (self.functions[index] if index >= 0 else 0))
            for index, pc in zip(indices.tolist(), self.pcs.tolist(), strict=True)
        ]


def read_detail(path: Path, ordinal: int, cache_dir: Path | None, timeout_s: float) -> LaunchDetail:
    """Extract one launch's detail in a process apart, or take it from the cache; raises UnreadableReport."""
    framed = file_format.check_framing(path)
    if not 0 <= ordinal < framed.declared:
        raise UnreadableReport(
            f"{path}: the report has no launch {ordinal}; it has {framed.declared}, from 0"
        )
    cached = cache_dir / f"{framed.sha256}-{ordinal}-v{READER_VERSION}.detail" if cache_dir else None
    if cached and (cached_answer := _load(cached)):
        with contextlib.suppress(KeyError, ValueError, TypeError):
            return _decode(cached_answer, framed.sha256, ordinal)
    ((answer, detail),) = _read(path, framed, [ordinal], timeout_s)
    if cached:
        _save(cached, answer)
    return detail


def read_details(path: Path, metrics: Collection[str], timeout_s: float) -> Iterator[LaunchDetail]:
    """The details of all launches of a report in order, which is checked and loaded once.

    metrics: the only ones that are read. Raises UnreadableReport.
    """
    framed = file_format.check_framing(path)
    for _, detail in _read(path, framed, range(framed.declared), timeout_s, sorted(metrics)):
        yield detail


def _read(
    path: Path,
    framed: file_format.Framing,
    ordinals: Sequence[int],
    timeout_s: float,
    metrics: Sequence[str] | None = None,
) -> Iterator[tuple[Answer, LaunchDetail]]:
    """The reader's answer for each launch, ascending, and what it says. timeout_s: for each of them."""
    # The same launches together as in the first depth: the library orders those of several processes.
    whole = report_parts.Part(0, framed.declared, framed.size_bytes, ())
    for part in report_parts.parts_of(framed, with_code=True) or [whole]:
        of_part = [ordinal for ordinal in ordinals if part.first <= ordinal < part.first + part.launches]
        memory_bytes = memory_limit.reader_memory(part.size_bytes)
        while of_part:
            with borrow_worker(memory_limit.LEAST_BYTES) as worker:
                worker.ask(
                    path,
                    timeout_s,
                    [ordinal - part.first for ordinal in of_part],
                    pieces=part.pieces,
                    metrics=metrics,
                    memory_bytes=memory_bytes,
                )
                while of_part and worker.running:  # one that is retired leaves the rest to another
                    answer = _answer(worker, path, of_part[0], timeout_s, memory_bytes)
                    try:
                        detail = _decode(answer, framed.sha256, of_part[0])
                    except (KeyError, ValueError, TypeError) as error:
                        raise UnreadableReport(
                            f"{path}: launch {of_part[0]} reads as nonsense; copy the report again"
                        ) from error
                    yield answer, detail
                    of_part.pop(0)


def _answer(worker: ReaderWorker, path: Path, ordinal: int, timeout_s: float, memory_bytes: int) -> Answer:
    try:
        answer = worker.answer(timeout_s)
    except WorkerLost as lost:
        raise UnreadableReport(f"{path}: launch {ordinal} cannot be read in full: {lost}") from lost
    if answer.head.get("out_of_memory"):
        raise UnreadableReport(
            f"{path}: launch {ordinal} takes more than {memory_bytes >> 20} MiB of "
            f"memory; raise the limit with {memory_limit.READER_MEMORY}"
        )
    if "error" in answer.head:
        raise UnreadableReport(f"{path}: {answer.head['error']}")
    return answer


def _decode(answer: Answer, sha256: str, ordinal: int) -> LaunchDetail:
    head = answer.head
    take = _columns(answer.blob)
    count = head["pcs"]
    pcs, file_index, line = (
        take(np.dtype("<u8"), count),
        take(np.dtype("<i4"), count),
        take(np.dtype("<i4"), count),
    )
    per_pc = {name: PcColumn(unit, take(np.dtype("<f8"), count)) for name, unit in head["per_pc"]}
    timelines = {
        name: Timeline(unit, take(np.dtype("<i8"), length), take(np.dtype("<f8"), length))
        for name, unit, length in head["timelines"]
    }
    if len(take(np.dtype("<u1"), -1)) or len(head["sass"]) != count:
        raise ValueError("columns do not fit")
    if count and int(file_index.max()) >= len(head["files"]):
        raise ValueError("a source file is not there")
    return LaunchDetail(
        sha256=sha256,
        ordinal=ordinal,
        function=head["function"],
        functions=tuple(head["functions"]),
        pcs=pcs,
        sass=tuple(head["sass"]),
        files=tuple(SourceFile(name, text) for name, text in head["files"]),
        file_index=file_index,
        line=line,
        per_pc=per_pc,
        timelines=timelines,
        instances={
            n: Instances(unit, tuple(keys), tuple(values)) for n, unit, keys, values in head["instances"]
        },
        left_out=dict(head["left_out"]),
    )


def _columns(blob: bytes) -> Any:
    """A function that cuts the next column off the blob; a count of -1 takes the rest."""
    at = 0

    def take(dtype: np.dtype[_Scalar], count: int) -> NDArray[_Scalar]:
        nonlocal at
        column = np.frombuffer(blob, dtype, count, at)
        at += column.nbytes
        return column

    return take


def _load(path: Path) -> Answer | None:
    """A cached answer; None where there is none or where it is damaged."""
    try:
        raw = zlib.decompress(path.read_bytes())
        length = int.from_bytes(raw[:4], "little")
        return Answer(json.loads(raw[4 : 4 + length]), raw[4 + length :])
    except (OSError, ValueError, zlib.error):
        return None


def _save(path: Path, answer: Answer) -> None:
    """Write aside, then rename: a reader sees a whole entry or none. A full disk costs the cache, no more."""
    head = json.dumps(answer.head).encode()
    packed = zlib.compress(len(head).to_bytes(4, "little") + head + answer.blob, 1)
    aside = path.with_name(f"{path.name}.{os.getpid()}.{id(answer):x}.tmp")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            aside.write_bytes(packed)
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
