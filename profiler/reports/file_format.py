"""How a `.ncu-rep` file is laid out: its blocks, the launches they declare, and the session they tell of."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from array import array
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from profiler.errors import UnreadableReport
from profiler.evidence.launch import Session
from profiler.evidence.ncu_release import REPORT_FILE_VERSION, version_number
from profiler.reports.reader_process import LEFT_OUT_FIELDS, after, varint, varint_bytes

MAGIC = b"NVR\0"
MAX_BYTES = 1 << 30  # larger reports are refused unless a caller asks for more
# What the check holds in memory is bounded by these, not by what a file claims: reports that profilers write
# stay far below (headers 120 kB, 3,000 metrics a launch).
MAX_HEADER_BYTES = 16 << 20
MAX_RESULT_BYTES = 64 << 20  # of a launch that is looked into; a larger one is only counted
MAX_RESULTS = 100_000
MAX_FIELDS = 10_000  # of a header
MAX_METRICS = 100_000  # of a launch
MAX_NAMES_BYTES = 16 << 20  # of the launches' different names together
SPANS_BYTES = 32 << 20  # of reports larger than this, where the blocks lie is kept
_PIECE_BYTES = 1 << 20
_LONGEST_COMMAND_LINE = 1 << 18  # characters that are taken apart for options; Linux allows 2 MiB

_QUOTING = re.compile(r"""["'\\]""")
_BLANKS = re.compile(r"[ \t\r\n]+")

# Source of every field number here: the .proto files in extras/FileFormat of Nsight Compute 2024.1.
_RESULT_COUNTS = (2, 7, 8, 9)  # BlockHeader: kernel, range, command list and graph results
_METRIC_TAG = 13 << 3 | 2  # ProfileResult.MetricResults
_SOURCE = 15  # ProfileResult.Source: the code of the launch, whose Source.Identifier is field 1 as well
_NAME_ID_TAG = 1 << 3  # ProfileMetricResult.NameId
_VALUE_TAG = 2 << 3 | 2  # ProfileMetricResult.MetricValue
_LATEST_SECOND = 4102444800  # the year 2100
# ncu stores some metrics of a launch twice. Both are equal in all public reports that we know, but for these.
_TWICE_WITH_TWO_VALUES = {"gpu__time_duration.sum"}
_ENTRIES_OF_PASSES = 3  # of one metric in a launch: from here on they are of passes, not a second entry
_APPLICATION = "application"  # the replay mode that runs the whole program once a pass


@dataclass(frozen=True)
class LaunchHeader:
    """What the file itself says of one launch, before any library has read it."""

    function: str
    grid: tuple[int, int, int] | None  # None: the launch failed, or the result is not a kernel
    block: tuple[int, int, int] | None
    stream: int | None
    metrics: int  # distinct metric names that the launch stores
    names: frozenset[str] | None = None  # those names; None: nobody asked for some metrics alone


@dataclass(frozen=True)
class BlockSpan:
    """Where a block lies in its file, and the launches in it."""

    at: int
    header_bytes: int
    payload_at: int
    results_at: int  # behind the code and other sources
    result_ends: array[int]
    is_shared: bool  # its header has names or a session, which launches of other blocks need too

    @property
    def end(self) -> int:
        """Where the next block starts."""
        return self.result_ends[-1] if self.result_ends else self.results_at


@dataclass(frozen=True)
class Framing:
    """One report file whose blocks end exactly where the file ends."""

    sha256: str
    size_bytes: int
    session: Session
    declared: int  # results that the blocks declare, of every kind
    launches: tuple[LaunchHeader, ...] = ()  # empty where the inner layout is not the known one
    blocks: tuple[BlockSpan, ...] = ()  # of a large report only
    # The report with the metrics alone that were asked for, in pieces; None where it has to be cut otherwise.
    selected: tuple[bytes, ...] | None = field(default=None, repr=False)


@dataclass
class _Declared:
    """What the blocks of a file declare, as far as it has been read."""

    session: Session = field(default_factory=Session)
    count: int = 0  # results, of every kind
    launches: list[LaunchHeader] = field(default_factory=list)
    only_kernels: bool = True
    names: dict[str, str] = field(default_factory=dict)  # each function's name once
    names_bytes: int = 0
    blocks: list[BlockSpan] | None = None  # None: not asked for
    metric_names: list[str] = field(default_factory=list)  # of all launches, which name them by their place
    largest_name_id: int = -1
    # By name id that a launch has with several contents: its entries, in the launch with most of them.
    differing: dict[int, int] = field(default_factory=dict)
    contents: set[int] = field(default_factory=set)  # hashes of the launches
    sources: set[int] = field(default_factory=set)  # identifiers of code
    needed_sources: set[int] = field(default_factory=set)  # of the launches
    selection: _Selection | None = None

    def add_launch(self, launch: LaunchHeader, content: bytes) -> None:
        """Keep one launch; launches of one kernel share its name. A ValueError for one that is there."""
        if (digest := hash(content)) in self.contents:
            raise ValueError(f"launch {len(self.launches)} is there twice, equal to the last byte")
        self.contents.add(digest)
        name = self.names.get(launch.function)
        if name is None:
            self._count_names(len(launch.function))
            name = self.names[launch.function] = launch.function
        self.launches.append(replace(launch, function=name))

    def add_metric_names(self, table: bytes) -> None:
        """Keep the names of a StringTable. A ValueError for more than a report has."""
        first = len(self.metric_names)
        self.metric_names += (names := _names(table))
        self._count_names(sum(map(len, names)))
        if len(self.metric_names) > MAX_METRICS:
            raise ValueError(f"it has over {MAX_METRICS:,} metrics")
        if self.selection is not None:
            self.selection.add_names(self.metric_names, first)

    def _count_names(self, length: int) -> None:
        self.names_bytes += 4 * length
        if self.names_bytes > MAX_NAMES_BYTES:
            raise ValueError(f"the names of its launches take over {MAX_NAMES_BYTES >> 20} MiB")

    def check(self) -> None:
        """A ValueError for what only the whole file shows: names lost or mixed up, code that is gone.

        _NotOfTheLaunch where ncu itself wrote passes in place of launches.
        """
        count = len(self.metric_names)
        if count and self.largest_name_id >= count:
            raise ValueError(f"a launch has metric {self.largest_name_id:,} of {count:,} names")
        if len(set(self.metric_names)) < count:
            raise ValueError("two metrics have one name")
        twice = {
            self.metric_names[number] if number < count else f"number {number}": entries
            for number, entries in sorted(self.differing.items())
        }
        twice = {name: entries for name, entries in twice.items() if name not in _TWICE_WITH_TWO_VALUES}
        most, replay_mode = max(twice.values(), default=0), self.session.replay_mode
        if most >= _ENTRIES_OF_PASSES or (twice and replay_mode == _APPLICATION):
            raise _NotOfTheLaunch(most, replay_mode)
        for name in twice:
            raise ValueError(f"a launch has metric {name} twice, with two values")
        if missing := self.needed_sources - self.sources - {0}:
            raise ValueError(f"the code of a launch (module {min(missing)}) is not in it")


class _Selection:
    """A report as it is read, with some metrics of its launches alone.

    Without code, sections, rules and values per instance, which are most of a report, and of the library's
    time and memory.
    """

    def __init__(self, wanted: Collection[str]) -> None:
        self.pieces: list[bytes] = []
        self.kept: set[int] = set()  # name ids of the wanted metrics
        self.is_whole = True  # until it meets what it does not know
        self._wanted = wanted
        self._results: list[bytes] = []
        self._names: list[str] = []
        self._sets: dict[tuple[int, ...], frozenset[str]] = {}

    def add_names(self, names: list[str], first: int) -> None:
        """Take in the names of metrics from the place `first` on."""
        self._names = names
        wanted = self._wanted
        self.kept.update(index for index in range(first, len(names)) if names[index] in wanted)

    def add_start(self, length: int, header: bytes) -> None:
        """Take in what stands before the first block."""
        self.pieces += [MAGIC, length.to_bytes(4, "little"), header]

    def add_launch(self, pieces: list[bytes]) -> None:
        """Take in a launch of the block that is read, with the wanted metrics alone."""
        size = sum(map(len, pieces))
        self._results += [size.to_bytes(4, "little"), *pieces]

    def end_block(self, header: bytes) -> None:
        """Take in a block, whose launches were taken in."""
        # Of a field that stands twice, the later one counts: no sources, and the size of the launches.
        counts = b"\x08\x00\x28" + varint_bytes(sum(map(len, self._results)))
        self.pieces += [(len(header) + len(counts)).to_bytes(4, "little"), header, counts, *self._results]
        self._results = []

    def names_of(self, ids: tuple[int, ...]) -> frozenset[str]:
        """The names of a launch's metrics, one set for launches that have the same."""
        found = self._sets.get(ids)
        if found is None:
            # A later block may name what stands here without a name: the library has to look.
            self.is_whole &= max(ids, default=0) < len(self._names) and min(ids, default=0) >= 0
            found = frozenset(map(self._names.__getitem__, ids)) if self.is_whole else frozenset()
            self._sets[ids] = found
        return found


class _NotOfTheLaunch(Exception):
    """A metric stands in a launch once a replay pass.

    Seen in reports of `--replay-mode application`: all their launches hold the duration, the cycles and the
    instructions of one, while what the passes counted differs, so that no entry is the launch's own.
    """

    def __init__(self, entries: int, replay_mode: str | None) -> None:
        mode = f" (--replay-mode {replay_mode})" if replay_mode else ""
        super().__init__(
            f"ncu wrote an entry a replay pass, {entries} of one metric in a launch, and no result of its "
            f"own for each launch{mode}: profile with --replay-mode kernel"
        )


class _Hashing:
    """Reads a file from front to back and hashes what it reads."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._digest = stream, hashlib.sha256()
        self._size = self.left = size

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

    def skip(self, count: int) -> None:
        """Hash the next bytes without keeping them; a ValueError where the file has fewer."""
        while count:
            count -= len(self.take(min(count, _PIECE_BYTES)))

    def take_length(self) -> int:
        """The next four bytes as a length."""
        return int.from_bytes(self.take(4), "little")

    @property
    def at(self) -> int:
        """How much was taken."""
        return self._size - self.left

    @property
    def sha256(self) -> str:
        """Hash of everything taken."""
        return self._digest.hexdigest()


def check_framing(path: Path, max_bytes: int = MAX_BYTES, wanted: Collection[str] | None = None) -> Framing:
    """Check a report's framing without the native library; raises UnreadableReport.

    A single flipped byte inside a value cannot be noticed; a cut or an append always is. wanted: what is in
    `selected` of a report that is not large, and then `names` of its launches are known.
    """
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > max_bytes:
                raise UnreadableReport(
                    f"{path}: {size:,} bytes, more than the limit of {max_bytes:,}; "
                    "profile fewer launches a report (--launch-count) or raise the limit"
                )
            return _examine(path, stream, size, wanted if size <= SPANS_BYTES else None)
    except OSError as error:
        raise UnreadableReport(f"{path}: cannot be opened: {error.strerror or error}") from error


def _examine(path: Path, stream: BinaryIO, size: int, wanted: Collection[str] | None) -> Framing:
    source = _Hashing(stream, size)
    selection = None if wanted is None else _Selection(wanted)
    declared = _Declared(blocks=[] if size > SPANS_BYTES else None, selection=selection)
    _refuse_what_is_no_report(path, stream, size)
    try:
        source.take(len(MAGIC))
        header = _take_header(source)
        version = next((v for n, v in _fields(header) if n == 1), None)
        if selection is not None:
            selection.add_start(len(header), header)
        while source.left:
            _take_block(source, declared, version == REPORT_FILE_VERSION)
        if declared.only_kernels:
            declared.check()
    except IndexError:
        raise UnreadableReport(
            f"{path}: the report is damaged: a block ends too early; copy it again"
        ) from None
    except ValueError as error:
        raise UnreadableReport(f"{path}: the report is damaged: {error}; copy it again") from None
    except _NotOfTheLaunch as error:
        raise UnreadableReport(f"{path}: {error}") from None
    if not declared.count:
        raise UnreadableReport(
            f"{path}: the report holds no launch; check the kernel filter of the ncu command that wrote it"
        )
    launches = tuple(declared.launches) if declared.only_kernels else ()
    blocks = tuple(declared.blocks or ()) if launches else ()
    selected = tuple(selection.pieces) if selection is not None and selection.is_whole and launches else None
    return Framing(source.sha256, size, declared.session, declared.count, launches, blocks, selected)


def _refuse_what_is_no_report(path: Path, stream: BinaryIO, size: int) -> None:
    start = stream.read(64)
    stream.seek(0)
    if not size:
        raise UnreadableReport(f"{path}: the file is empty; copy it again")
    if start.startswith(b"version https://git-lfs"):
        raise UnreadableReport(f"{path}: a Git LFS pointer, not the report; fetch it with `git lfs pull`")
    if not start.startswith(MAGIC):
        raise UnreadableReport(f"{path}: not an Nsight Compute report: it does not start with NVR")


def _take_header(source: _Hashing) -> bytes:
    length = source.take_length()
    if source.left >= length > MAX_HEADER_BYTES:
        raise ValueError(f"a header has {length:,} bytes")
    return source.take(length)


def _take_block(source: _Hashing, declared: _Declared, is_known_version: bool) -> None:
    """Read a block and add what it declares. Of an unknown version of the format only counts are taken."""
    at = source.at
    header = _take_header(source)
    counts, sources, payload_size, is_shared = [0, 0, 0, 0], 0, 0, False
    for fields, (number, value) in enumerate(_fields(header)):
        if fields == MAX_FIELDS:
            raise ValueError(f"a header has over {MAX_FIELDS:,} fields")
        if isinstance(value, int):
            if number in _RESULT_COUNTS:
                counts[_RESULT_COUNTS.index(number)] = value
            elif number == 1:
                sources = value
            elif number == 5:
                payload_size = value
        elif number in (3, 4):
            is_shared |= bool(value)
            if number == 3:
                declared.session = _merge(declared.session, value)
            elif is_known_version:
                declared.add_metric_names(value)
    declared.count += sum(counts)
    if declared.count > MAX_RESULTS or sources > MAX_RESULTS:
        raise ValueError(f"it declares over {MAX_RESULTS:,} launches")
    declared.only_kernels &= is_known_version and not any(counts[1:])
    if payload_size > source.left:
        raise ValueError(
            f"a block needs {payload_size:,} bytes, {source.left:,} are left (cut short or appended to)"
        )
    if not is_known_version:
        source.skip(payload_size)
        return
    payload_at = source.at
    ends = _take_entries(source, declared, payload_size, sources, sum(counts), not any(counts[1:]))
    if declared.selection is not None:
        declared.selection.end_block(header)
    if declared.blocks is not None:
        results_at = payload_at if sources == 0 else ends[sources - 1]
        declared.blocks.append(BlockSpan(at, len(header), payload_at, results_at, ends[sources:], is_shared))


def _take_entries(
    source: _Hashing, declared: _Declared, payload_size: int, sources: int, results: int, are_kernels: bool
) -> array[int]:
    """Read a block's payload, message by message: code and other sources first, then the results.

    Where each of them ends.
    """
    end, entries, ends = source.left - payload_size, 0, array("Q")
    while source.left > end:
        if entries == sources + results:
            raise ValueError(f"a block holds more than the {entries} entries that it declares")
        if source.left < end + 4 or (length := source.take_length()) > source.left - end:
            raise ValueError("an entry is longer than its block")
        if entries < sources:
            start = source.take(min(length, 16))
            source.skip(length - len(start))
            if start[:1] == b"\x08":  # field 1, its identifier
                declared.sources.add(varint(start, 1)[0])
                if len(declared.sources) > MAX_RESULTS:
                    raise ValueError(f"it has over {MAX_RESULTS:,} modules of code")
        elif not are_kernels:
            source.skip(length)
        elif length > MAX_RESULT_BYTES:
            declared.only_kernels = False
            source.skip(length)
        else:
            result = source.take(length)
            declared.add_launch(_launch_header(result, 0, length, declared), result)
        entries += 1
        ends.append(source.at)
    if entries != sources + results:
        raise ValueError(f"a block holds {entries} entries and declares {sources + results}")
    return ends


def _launch_header(result: bytes, at: int, end: int, declared: _Declared) -> LaunchHeader:
    """Walk one ProfileResult's top level. A thousand metrics a launch: too many to go through _fields."""
    seen: dict[int, int] = {}  # where the metric of a name id starts
    entries: dict[int, int] = {}  # of a name id that is there more than once
    differing: set[int] = set()  # of these, with other content in one of them
    function, grid, block, stream = "", None, None, None
    selection = declared.selection
    kept, pieces, done = selection.kept if selection else None, [], at  # `done`: in pieces, or left out
    while at < end:
        start = at
        tag = result[at]
        at += 1
        if tag == _METRIC_TAG:
            length = result[at]
            at += 1
            if length & 0x80:
                length, at = varint(result, at - 1)
            identifier = result[at + 1]
            if result[at] != _NAME_ID_TAG:
                identifier = -1
            elif identifier & 0x80:
                high = result[at + 2]
                identifier = identifier & 0x7F | high << 7 if high < 0x80 else varint(result, at + 1)[0]
            if identifier not in seen:
                seen[identifier] = at
                if len(seen) > MAX_METRICS:
                    raise ValueError(f"a launch has over {MAX_METRICS:,} metrics")
            else:
                entries[identifier] = entries.get(identifier, 1) + 1
                if not result.startswith(result[at : at + length], seen[identifier]):
                    differing.add(identifier)
            at += length
            if kept is None:
                continue
            if identifier not in kept:
                if done < start:
                    pieces.append(result[done:start])
                done = at
            elif shorter := _without_instances(result, at - length, at):
                pieces += [result[done:start], b"\x6a", varint_bytes(len(shorter)), shorter]
                done = at
            continue
        if tag & 0x80:
            tag, at = varint(result, start)
        wire, number = tag & 7, tag >> 3
        if wire == 2:
            length, at = varint(result, at)
            if number == 6:
                function = _text(result[at : at + length])
            elif number == 10:
                grid = _dimensions(result[at : at + length])
            elif number == 11:
                block = _dimensions(result[at : at + length])
            elif number == _SOURCE:
                identifiers = (value for number, value in _fields(result[at : at + length]) if number == 1)
                declared.needed_sources.update(value for value in identifiers if isinstance(value, int))
            at += length
            if kept is not None and number in LEFT_OUT_FIELDS:
                pieces.append(result[done:start])
                done = at
        elif wire == 0:
            value, at = varint(result, at)
            if number == 23:
                stream = value
        else:
            at = _after_fixed(wire, at)
    if at != end:
        raise ValueError("a launch is longer than its entry")
    for identifier in differing:
        declared.differing[identifier] = max(entries[identifier], declared.differing.get(identifier, 0))
    declared.largest_name_id = max(declared.largest_name_id, *seen) if seen else declared.largest_name_id
    if selection is None:
        return LaunchHeader(function, grid, block, stream, len(seen))
    selection.add_launch([*pieces, result[done:end]])
    return LaunchHeader(function, grid, block, stream, len(seen), selection.names_of(tuple(seen)))


def _without_instances(result: bytes, at: int, end: int) -> bytes | None:
    """A MetricResult as far as its MetricValue; None where nothing stands behind that, or it has none."""
    if result[at] != _NAME_ID_TAG:
        return None
    value = at + 2 if result[at + 1] < 0x80 else varint(result, at + 1)[1]
    if value >= end or result[value] != _VALUE_TAG:  # without a total: it may have instances
        return None
    length = result[value + 1]
    value_end = value + 2 + length if length < 0x80 else after(result, 2, value + 1)
    if value_end > end:
        raise ValueError("a value is longer than its metric")
    return result[at:value_end] if value_end < end else None


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


def _names(table: bytes) -> list[str]:
    """The names of a StringTable, in order."""
    # Each stands behind a line feed, its tag, and its length in a byte: then all are split off at once.
    if table.isascii() and table.startswith(b"\n"):
        parts = table.decode("ascii").split("\n")[1:]
        if "" not in parts and list(map(len, parts)) == [ord(part[0]) + 1 for part in parts]:
            return [part[1:] for part in parts]
    return [_text(name) for number, name in _fields(table) if number == 1 and isinstance(name, bytes)]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _merge(session: Session, message: bytes) -> Session:
    """What one ReportSessionDetails adds; the first word on each thing stands."""
    for number, value in _fields(message):
        if number == 2 and isinstance(value, int) and not session.created and 0 < value < _LATEST_SECOND:
            session = replace(session, created=datetime.fromtimestamp(value, UTC))
        elif number == 8 and isinstance(value, bytes):
            parts = {n: _text(v) for n, v in _fields(value) if n in (1, 2) and isinstance(v, bytes)}
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


def _shell_words(command_line: str) -> list[str]:
    if _QUOTING.search(command_line):
        return shlex.split(command_line)
    return list(filter(None, _BLANKS.split(command_line)))  # as shlex does, which looks at every letter


def _with_command_line(session: Session, command_line: str) -> Session:
    """Only what the command line says: a default that moves between ncu versions is not known."""
    try:
        words = _shell_words(command_line) if len(command_line) < _LONGEST_COMMAND_LINE else []
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
