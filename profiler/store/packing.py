"""Packs launches into bytes and back, for the payloads of the index and for the cache of reports."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from profiler.bundles.run import Json
from profiler.evidence.launch import Launch, RuleResult, Session
from profiler.evidence.values import SLOT_BYTES, MetricSet, Values

_COMPACT = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_SESSION_FIELDS = tuple(field.name for field in fields(Session))


@dataclass(frozen=True)
class Packed:
    """The parts of a launch that go into a payload row."""

    slots: bytes  # 8 a metric, in the order of the metric set
    states: bytes  # 1 a metric; empty: every metric is present
    texts: str | None  # JSON {position: text}
    extras: str | None  # JSON: stream, device, nvtx, opcodes, rules


PACKED = tuple(field.name for field in fields(Packed))  # columns of a payload row, too


def compact_json(content: Json) -> str:
    """JSON without spaces and in ASCII, which every database can store."""
    return _COMPACT.encode(content)


def pack_launch(launch: Launch) -> Packed:
    """The launch without its names, grid and block, which the index stores in columns of their own."""
    values = launch.values
    extras = {
        "stream": launch.stream,
        "device": None if launch.device_column is None else str(launch.device_column),
        "nvtx": list(launch.nvtx),
        "opcodes": {name: count for name, count in launch.opcodes.items() if math.isfinite(count)},
        "rules": [_rule_row(rule) for rule in launch.rules],
    }
    return Packed(
        slots=values.slots,
        states=values.states if any(values.states) else b"",
        texts=compact_json({str(position): text for position, text in values.texts.items()})
        if values.texts
        else None,
        extras=compact_json({name: content for name, content in extras.items() if content})
        if any(extras.values())
        else None,
    )


def unpack_values(metric_set: MetricSet, packed: Packed) -> Values:
    """The values of a payload row."""
    states = packed.states or bytes(len(packed.slots) // SLOT_BYTES)
    texts = (
        {}
        if packed.texts is None
        else {int(position): text for position, text in json.loads(packed.texts).items()}
    )
    return Values(metric_set, packed.slots, states, texts)


def unpack_extras(packed: Packed) -> dict[str, Any]:
    """stream, device, nvtx, opcodes and rules, as arguments of Launch."""
    extras = {} if packed.extras is None else json.loads(packed.extras)
    device = extras.get("device")
    return {
        "stream": extras.get("stream"),
        "device_column": None if device is None else int(device),
        "nvtx": tuple(extras.get("nvtx", ())),
        "opcodes": extras.get("opcodes", {}),
        "rules": tuple(_rule(row) for row in extras.get("rules", ())),
    }


def session_json(session: Session) -> str:
    """A session as JSON, without its unknown fields."""
    known = {name: content for name in _SESSION_FIELDS if (content := getattr(session, name)) is not None}
    if session.created is not None:
        known["created"] = session.created.isoformat()
    return compact_json(known)


def parse_session(content: str) -> Session:
    """The session that `session_json` wrote; a field that this version does not know is left out."""
    known = {
        name: value for name, value in json.loads(content).items() if name in Session.__dataclass_fields__
    }
    if "created" in known:
        known["created"] = datetime.fromisoformat(known["created"])
    return Session(**known)


def _rule_row(rule: RuleResult) -> list[Json]:
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


def _rule(row: list[Any]) -> RuleResult:
    identifier, name, section, kind, title, message, speedup_pct, speedup_scope, focus_metrics = row
    return RuleResult(
        identifier, name, section, kind, title, message, speedup_pct, speedup_scope, tuple(focus_metrics)
    )
