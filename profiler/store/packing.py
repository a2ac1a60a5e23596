"""How a launch becomes bytes and a launch again, in the index's payloads and in the cache of values."""

from __future__ import annotations

import json
import math
import struct
import uuid
import zlib
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from profiler.bundles import Json
from profiler.evidence import Launch, MetricSet, Report, Rule, Session, Values
from profiler.evidence.values import SLOT

_MAGIC = b"PROFEXT1"
_HEAD = struct.Struct("<8sIQ")  # magic, crc32 of the rest, length of the JSON part


@dataclass(frozen=True)
class Packed:
    """The parts of a launch that go into a payload row."""

    slots: bytes
    states: bytes  # empty: every position holds a value
    texts: str | None
    extras: str | None


def compact(content: Json) -> str:
    """JSON without spaces; ASCII, so that no database stumbles over a character."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def pack_launch(launch: Launch) -> Packed:
    """The launch without its names and sizes, which the index keeps in columns."""
    values = launch.values
    extras = {
        "stream": launch.stream,
        "nvtx": list(launch.nvtx),
        "opcodes": {name: count for name, count in launch.opcodes.items() if math.isfinite(count)},
        "rules": [_rule_row(rule) for rule in launch.rules],
    }
    return Packed(
        slots=np.ascontiguousarray(values.slots, SLOT).tobytes(),
        states=values.states.astype(np.uint8).tobytes() if values.states.any() else b"",
        texts=compact({str(position): text for position, text in values.texts.items()})
        if values.texts
        else None,
        extras=compact({name: content for name, content in extras.items() if content})
        if any(extras.values())
        else None,
    )


def unpack_values(metric_set: MetricSet, packed: Packed) -> Values:
    """The values of a payload row."""
    slots = np.frombuffer(packed.slots, SLOT)
    states = np.frombuffer(packed.states, np.uint8) if packed.states else np.zeros(len(slots), np.uint8)
    texts = (
        {}
        if packed.texts is None
        else {int(position): text for position, text in json.loads(packed.texts).items()}
    )
    return Values(metric_set, slots, states, texts)


def unpack_extras(packed: Packed) -> dict[str, Any]:
    """stream, nvtx, opcodes and rules, as arguments of Launch."""
    extras = {} if packed.extras is None else json.loads(packed.extras)
    return {
        "stream": extras.get("stream"),
        "nvtx": tuple(extras.get("nvtx", ())),
        "opcodes": extras.get("opcodes", {}),
        "rules": tuple(_rule(row) for row in extras.get("rules", ())),
    }


def session_json(session: Session) -> str:
    """A session as JSON, without what is unknown."""
    fields = {name: content for name, content in asdict(session).items() if content is not None}
    if session.created is not None:
        fields["created"] = session.created.isoformat()
    return compact(fields)


def session_of(content: str) -> Session:
    """The session in such JSON; a field that this version does not know is left out."""
    fields = {
        name: value for name, value in json.loads(content).items() if name in Session.__dataclass_fields__
    }
    if "created" in fields:
        fields["created"] = datetime.fromisoformat(fields["created"])
    return Session(**fields)


# ---- the cache: what was read from a report, by its sha256 and the reader's version


def cache_path(cache: Path, sha256: str, reader_version: str) -> Path:
    """Where the values of a report are kept."""
    return cache / "values" / f"{sha256}-{reader_version}.bin"


def save_report(path: Path, report: Report) -> None:
    """Keep a report's values. Nobody sees half a file; its checksum tells one that a power cut spoiled."""
    sets: dict[int, int] = {}
    kept_sets: list[Json] = []
    launches: list[Json] = []
    blobs: list[bytes] = []
    for launch in report.launches:
        metric_set = launch.values.metric_set
        if id(metric_set) not in sets:
            sets[id(metric_set)] = len(kept_sets)
            kept_sets.append([metric_set.names, metric_set.units, metric_set.kinds])
        packed = pack_launch(launch)
        row = [launch.function, launch.demangled, launch.mangled, launch.grid, launch.block, launch.ordinal]
        launches.append(
            [*row, sets[id(metric_set)], len(packed.slots), len(packed.states), packed.texts, packed.extras]
        )
        blobs += [packed.slots, packed.states]
    head = compact(
        {
            "report": [report.name, report.sha256, report.size_bytes, report.form],
            "session": session_json(report.session),
            "sets": kept_sets,
            "launches": launches,
        }
    ).encode()
    body = b"".join((head, *blobs))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".tmp-{uuid.uuid4().hex}")
    try:
        partial.write_bytes(_HEAD.pack(_MAGIC, zlib.crc32(body), len(head)) + body)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load_report(path: Path) -> Report | None:
    """The kept values; None where there are none, or where the file is not whole."""
    try:
        content = path.read_bytes()
        magic, checksum, head_length = _HEAD.unpack_from(content)
    except (OSError, struct.error):
        return None
    if magic != _MAGIC or zlib.crc32(memoryview(content)[_HEAD.size :]) != checksum:
        return None
    place = _HEAD.size + head_length
    head = json.loads(content[_HEAD.size : place])
    sets = [MetricSet(tuple(names), tuple(units), kinds) for names, units, kinds in head["sets"]]
    launches = []
    for function, demangled, mangled, grid, block, ordinal, number, slots, states, texts, extras in head[
        "launches"
    ]:
        middle, end = place + slots, place + slots + states
        packed = Packed(content[place:middle], content[middle:end], texts, extras)
        place = end
        launches.append(
            Launch(
                function=function,
                demangled=demangled,
                mangled=mangled,
                grid=None if grid is None else tuple(grid),
                block=None if block is None else tuple(block),
                ordinal=ordinal,
                values=unpack_values(sets[number], packed),
                **unpack_extras(packed),
            )
        )
    name, sha256, size_bytes, form = head["report"]
    return Report(name, sha256, size_bytes, form, session_of(head["session"]), tuple(launches))


def _rule_row(rule: Rule) -> list[Json]:
    return [
        rule.identifier,
        rule.name,
        rule.section,
        rule.kind,
        rule.title,
        rule.message,
        rule.speedup_pct if rule.speedup_pct is not None and math.isfinite(rule.speedup_pct) else None,
        rule.speedup_scope,
        list(rule.focus_metrics),
    ]


def _rule(row: list[Any]) -> Rule:
    identifier, name, section, kind, title, message, speedup_pct, speedup_scope, focus_metrics = row
    return Rule(
        identifier, name, section, kind, title, message, speedup_pct, speedup_scope, tuple(focus_metrics)
    )
