"""How a `.ncu-rep` file is laid out: its blocks, the launches they declare, and the session they tell of."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from profiler.errors import UnreadableReport
from profiler.evidence import Session
from profiler.evidence.ncu_release import REPORT_FILE_VERSION, version_number

MAGIC = b"NVR\0"
MAX_BYTES = 1 << 30  # larger reports are refused unless a caller asks for more

# Source of every field number here: the .proto files in extras/FileFormat of Nsight Compute 2024.1.
_RESULT_COUNTS = (2, 7, 8, 9)  # BlockHeader: kernel, range, command list and graph results
_METRIC_TAG = 13 << 3 | 2  # ProfileResult.MetricResults
_NAME_ID_TAG = 1 << 3  # ProfileMetricResult.NameId
_LATEST_SECOND = 4102444800  # the year 2100


@dataclass(frozen=True)
class LaunchHeader:
    """What the file itself says of one launch, before any library has read it."""

    function: str
    grid: tuple[int, int, int] | None  # None: the launch failed, or the result is not a kernel
    block: tuple[int, int, int] | None
    stream: int | None
    metrics: int  # distinct metric names that the launch stores


@dataclass(frozen=True)
class Framing:
    """One report file whose blocks end exactly where the file ends."""

    sha256: str
    size_bytes: int
    session: Session
    declared: int  # results that the blocks declare, of every kind
    launches: tuple[LaunchHeader, ...] = ()  # empty where the inner layout is not the known one


@dataclass
class _Declared:
    """What the blocks of a file declare, as far as it has been read."""

    session: Session = field(default_factory=Session)
    count: int = 0  # results, of every kind
    launches: list[LaunchHeader] = field(default_factory=list)
    only_kernels: bool = True


class _Hashing:
    """Reads a file from front to back and hashes what it reads."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._digest = stream, hashlib.sha256()
        self.left = size

    def take(self, count: int) -> bytes:
        """The next bytes; a ValueError where the file has fewer."""
        if count > self.left:
            raise ValueError(
                f"a block needs {count:,} bytes, {self.left:,} are left (cut short or appended to)"
            )
        content = self._stream.read(count)
        if len(content) != count:
            raise ValueError("it became shorter while it was read")
        self._digest.update(content)
        self.left -= count
        return content

    def take_length(self) -> int:
        """The next four bytes as a length."""
        return int.from_bytes(self.take(4), "little")

    @property
    def sha256(self) -> str:
        """Hash of everything taken."""
        return self._digest.hexdigest()


def check_framing(path: Path, max_bytes: int = MAX_BYTES) -> Framing:
    """Check a report's framing without the native library; raises UnreadableReport.

    A single flipped byte inside a value cannot be noticed; a cut or an append always is.
    """
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > max_bytes:
                raise UnreadableReport(
                    f"{path}: {size:,} bytes, more than the limit of {max_bytes:,}; "
                    "profile fewer launches a report (--launch-count) or raise the limit"
                )
            return _examine(path, stream, size)
    except OSError as error:
        raise UnreadableReport(f"{path}: cannot be opened: {error.strerror or error}") from error


def _examine(path: Path, stream: BinaryIO, size: int) -> Framing:
    source = _Hashing(stream, size)
    declared = _Declared()
    _refuse_what_is_no_report(path, stream, size)
    try:
        source.take(len(MAGIC))
        version = next((v for n, v in _fields(source.take(source.take_length())) if n == 1), None)
        while source.left:
            _take_block(source, declared, version == REPORT_FILE_VERSION)
    except IndexError:
        raise UnreadableReport(
            f"{path}: the report is damaged: a block ends too early; copy it again"
        ) from None
    except ValueError as error:
        raise UnreadableReport(f"{path}: the report is damaged: {error}; copy it again") from None
    if not declared.count:
        raise UnreadableReport(
            f"{path}: the report holds no launch; check the kernel filter of the ncu command that wrote it"
        )
    launches = tuple(declared.launches) if declared.only_kernels else ()
    return Framing(source.sha256, size, declared.session, declared.count, launches)


def _damaged(path: Path, how: str) -> UnreadableReport:
    return UnreadableReport(f"{path}: the report is damaged: {how}; copy it again")


def _refuse_what_is_no_report(path: Path, stream: BinaryIO, size: int) -> None:
    start = stream.read(64)
    stream.seek(0)
    if not size:
        raise UnreadableReport(f"{path}: the file is empty; copy it again")
    if start.startswith(b"version https://git-lfs"):
        raise UnreadableReport(f"{path}: a Git LFS pointer, not the report; fetch it with `git lfs pull`")
    if not start.startswith(MAGIC):
        raise UnreadableReport(f"{path}: not an Nsight Compute report: it does not start with NVR")


def _take_block(source: _Hashing, declared: _Declared, is_known_version: bool) -> None:
    """Read a block and add what it declares. Of an unknown version of the format only counts are taken."""
    header = source.take(source.take_length())
    counts, sources, payload_size = [0, 0, 0, 0], 0, 0
    for number, value in _fields(header):
        if isinstance(value, int):
            if number in _RESULT_COUNTS:
                counts[_RESULT_COUNTS.index(number)] = value
            elif number == 1:
                sources = value
            elif number == 5:
                payload_size = value
        elif number == 3:
            declared.session = _merge(declared.session, value)
    payload = source.take(payload_size)
    declared.count += sum(counts)
    declared.only_kernels &= is_known_version and not any(counts[1:])
    if is_known_version:
        entries = list(_entries(payload))
        if len(entries) != sources + sum(counts):
            raise ValueError(f"a block holds {len(entries)} entries and declares {sources + sum(counts)}")
        if not any(counts[1:]):
            declared.launches += [_launch_header(payload, start, end) for start, end in entries[sources:]]


def _entries(payload: bytes) -> Iterator[tuple[int, int]]:
    """Where the length-prefixed messages of a block's payload start and end."""
    at = 0
    while at < len(payload):
        start = at + 4
        at = start + int.from_bytes(payload[at:start], "little")
        if at > len(payload):
            raise ValueError("an entry is longer than its block")
        yield start, at


def _launch_header(result: bytes, at: int, end: int) -> LaunchHeader:
    """Walk one ProfileResult's top level. A thousand metrics a launch: too many to go through _fields."""
    seen: set[int] = set()
    function, grid, block, stream = "", None, None, None
    while at < end:
        tag = result[at]
        if tag & 0x80:
            tag, at = varint(result, at)
        else:
            at += 1
        wire = tag & 7
        if wire == 2:
            length = result[at]
            if length & 0x80:
                length, at = varint(result, at)
            else:
                at += 1
            if tag == _METRIC_TAG:
                identifier = result[at + 1]
                if result[at] != _NAME_ID_TAG:
                    identifier = -1
                elif identifier & 0x80:
                    high = result[at + 2]
                    identifier = identifier & 0x7F | high << 7 if high < 0x80 else varint(result, at + 1)[0]
                seen.add(identifier)
            elif tag >> 3 == 6:
                function = _text(result[at : at + length])
            elif tag >> 3 == 10:
                grid = _dimensions(result[at : at + length])
            elif tag >> 3 == 11:
                block = _dimensions(result[at : at + length])
            at += length
        elif wire == 0:
            value, at = varint(result, at)
            if tag >> 3 == 23:
                stream = value
        else:
            at = _after_fixed(wire, at)
    if at != end:
        raise ValueError("a launch is longer than its entry")
    return LaunchHeader(function, grid, block, stream, len(seen))


def _dimensions(message: bytes) -> tuple[int, int, int] | None:
    """A Uint64x3; None for zeros, which ncu writes where the launch failed."""
    parts = {number: value for number, value in _fields(message) if isinstance(value, int)}
    x, y, z = (parts.get(number, 0) for number in (1, 2, 3))
    return (x, y, z) if x and y and z else None


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values of one protobuf message; fixed-width fields are skipped."""
    at, end = 0, len(message)
    while at < end:
        tag, at = varint(message, at)
        wire = tag & 7
        if wire == 2:
            length, at = varint(message, at)
            if at + length > end:
                raise ValueError("a field is longer than its message")
            yield tag >> 3, message[at : at + length]
            at += length
        elif wire == 0:
            value, at = varint(message, at)
            yield tag >> 3, value
        else:
            at = _after_fixed(wire, at)


def _after_fixed(wire: int, at: int) -> int:
    if wire not in (1, 5):
        raise ValueError("a field has a type that does not exist")
    return at + (8 if wire == 1 else 4)


def varint(message: bytes | bytearray, at: int) -> tuple[int, int]:
    """A whole number of protobuf and where it ends. Raises IndexError, or ValueError for over 64 bits."""
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is longer than 64 bits")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _merge(session: Session, message: bytes) -> Session:
    """What one ReportSessionDetails adds; the first word on each thing stands."""
    for number, value in _fields(message):
        if number == 2 and isinstance(value, int) and not session.created and 0 < value < _LATEST_SECOND:
            session = replace(session, created=datetime.fromtimestamp(value, UTC))
        elif number == 8 and isinstance(value, bytes):
            parts = {n: _text(v) for n, v in _fields(value) if isinstance(v, bytes)}
            provider, version = parts.get(1, ""), parts.get(2, "")
            if provider == "Nsight Compute Target":  # "2024.1.1.0 (build 33998838) (public-release)"
                session = replace(session, ncu_version=session.ncu_version or version_number(version))
            elif provider == "Display Driver Version":
                session = replace(session, driver=session.driver or version)
            elif provider == "CUDA Version":
                session = replace(session, cuda=session.cuda or version)
        elif number == 11 and isinstance(value, bytes) and not session.command_line:
            session = _with_command_line(session, _text(value).strip())
    return session


def _with_command_line(session: Session, command_line: str) -> Session:
    """Only what the command line says: a default that moves between ncu versions is not known."""
    try:
        words = shlex.split(command_line)
    except ValueError:  # an unbalanced quote in the application's arguments
        words = command_line.split()

    def option(name: str) -> str | None:
        for index, word in enumerate(words):
            if word == name and index + 1 < len(words):
                return words[index + 1]
            if word.startswith(name + "="):
                return word[len(name) + 1 :]
        return None

    return replace(
        session,
        command_line=command_line or None,
        clock_control=option("--clock-control"),
        cache_control=option("--cache-control"),
        replay_mode=option("--replay-mode"),
    )
