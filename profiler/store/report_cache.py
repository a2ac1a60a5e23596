"""The cache of the values read from reports: one file for each report and version of the reader.

It lies beside the bundles and may be deleted at any time.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Sequence
from pathlib import Path

from profiler.bundles.run import Json
from profiler.evidence.launch import Launch, Report
from profiler.evidence.values import MetricSet
from profiler.store.packing import (
    Packed,
    compact_json,
    pack_launch,
    parse_session,
    session_json,
    unpack_extras,
    unpack_values,
)

_MAGIC = b"PROFEXT1"
_HEAD = struct.Struct("<8sIQ")  # magic, crc32 of the rest, length of the JSON part


def cache_path(folder: Path, sha256: str, reader_version: str) -> Path:
    """The cache file of a report's values."""
    return folder / "values" / f"{sha256}-{reader_version}.bin"


def write_report(path: Path, report: Report, packed: Sequence[Packed] | None = None) -> None:
    """Write a report's values. Nobody ever reads half a file: a checksum reveals one that is damaged.

    packed: its launches, where they were packed already.
    """
    content = pack_report(report, packed)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".tmp-{uuid.uuid4().hex}")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def pack_report(report: Report, packed_launches: Sequence[Packed] | None = None) -> bytes:
    """A report's values as the content of a file, which `profiler data prune` keeps instead of the report.

    Such files must stay readable: another form needs another magic, and a reader of both.
    """
    # Launches of a report share a few metric sets: each is written once.
    set_numbers: dict[int, int] = {}  # by the identity of the set
    sets: list[Json] = []
    launches: list[Json] = []
    arrays: list[bytes] = []
    for launch, packed in zip(
        report.launches, packed_launches or map(pack_launch, report.launches), strict=True
    ):
        metric_set = launch.values.metric_set
        if id(metric_set) not in set_numbers:
            set_numbers[id(metric_set)] = len(sets)
            sets.append([metric_set.names, metric_set.units, metric_set.kinds])
        launches.append(
            [
                launch.function,
                launch.demangled,
                launch.mangled,
                launch.grid,
                launch.block,
                launch.ordinal,
                set_numbers[id(metric_set)],
                len(packed.slots),
                len(packed.states),
                packed.texts,
                packed.extras,
            ]
        )
        arrays += [packed.slots, packed.states]
    head = compact_json(
        {
            "report": [report.name, report.sha256, report.size_bytes, report.form],
            "session": session_json(report.session),
            "sets": sets,
            "launches": launches,
        }
    ).encode()
    body = b"".join((head, *arrays))
    return _HEAD.pack(_MAGIC, zlib.crc32(body), len(head)) + body


def read_report(path: Path) -> Report | None:
    """The report with its values; None where there is no such file, or a damaged one."""
    try:
        return unpack_report(path.read_bytes())
    except OSError:
        return None


def unpack_report(content: bytes) -> Report | None:
    """The report in the content of a file; None where it is damaged."""
    try:
        magic, checksum, head_length = _HEAD.unpack_from(content)
    except struct.error:
        return None
    if magic != _MAGIC or zlib.crc32(memoryview(content)[_HEAD.size :]) != checksum:
        return None
    offset = _HEAD.size + head_length
    head = json.loads(content[_HEAD.size : offset])
    sets = [MetricSet(tuple(names), tuple(units), kinds) for names, units, kinds in head["sets"]]
    launches = []
    for row in head["launches"]:
        function, demangled, mangled, grid, block, ordinal, set_number, slots, states, texts, extras = row
        middle, end = offset + slots, offset + slots + states
        packed = Packed(content[offset:middle], content[middle:end], texts, extras)
        offset = end
        launches.append(
            Launch(
                function=function,
                demangled=demangled,
                mangled=mangled,
                grid=None if grid is None else tuple(grid),
                block=None if block is None else tuple(block),
                ordinal=ordinal,
                values=unpack_values(sets[set_number], packed),
                **unpack_extras(packed),
            )
        )
    name, sha256, size_bytes, form = head["report"]
    return Report(name, sha256, size_bytes, form, parse_session(head["session"]), tuple(launches))
