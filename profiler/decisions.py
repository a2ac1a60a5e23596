"""What people decided about runs: small records beside the bundles, never changed, only followed up."""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256

from profiler.errors import BadBundle
from profiler.location import Root
from profiler.run import Json, Labels

FOLDER = "decisions"
SCHEMA = 1

RELABEL = "relabel"  # values: family, version, workload, as far as they change
FORGET = "forget"
REMEMBER = "remember"  # undoes forget


@dataclass(frozen=True)
class Decision:
    """One decision: who, when, why, about what. A kind that is not known here is kept and left alone."""

    id: str  # the file's name without .json; sorts by time
    kind: str
    subject: str  # a run id for relabel, forget and remember
    created: datetime
    who: str
    why: str = ""
    values: Mapping[str, Json] = field(default_factory=dict)


def record(
    root: Root,
    kind: str,
    subject: str,
    values: Mapping[str, Json] | None = None,
    *,
    why: str = "",
    who: str | None = None,
    created: datetime | None = None,
) -> Decision:
    """Write one decision; its file name comes from time, kind and content, so that no two records collide."""
    created = (created or datetime.now(UTC)).astimezone(UTC)
    body = {
        "schema": SCHEMA,
        "kind": kind,
        "subject": subject,
        "created": created.isoformat(timespec="microseconds"),
        "who": who if who is not None else _user(),
        "why": why,
        "values": dict(values or {}),
    }
    content = json.dumps(body, ensure_ascii=False, indent=1, sort_keys=True).encode()
    stamp = created.strftime("%Y%m%dT%H%M%S%f")
    name = f"{stamp}-{kind}-{sha256(content).hexdigest()[:8]}"
    root.write(f"{FOLDER}/{name}.json", content)
    return _parse(name, content)


def names(root: Root) -> list[str]:
    """The ids of all records, oldest first."""
    return [name.removesuffix(".json") for name in root.files(FOLDER, ".json")]


def load(root: Root) -> list[Decision]:
    """All records, oldest first. Raises BadBundle for a file that is no record."""
    found = [_parse(name, root.read(f"{FOLDER}/{name}.json")) for name in names(root)]
    return sorted(found, key=lambda decision: (decision.created, decision.id))


def labels(decisions: Iterable[Decision]) -> dict[str, Labels]:
    """What is valid now of every run that was decided about: the latest word on each field."""
    current: dict[str, Labels] = {}
    for decision in decisions:
        before = current.get(decision.subject, Labels())
        if decision.kind == RELABEL:
            given = {
                key: decision.values[key]
                for key in ("family", "version", "workload")
                if key in decision.values
            }
            current[decision.subject] = replace(before, **given)
        elif decision.kind in (FORGET, REMEMBER):
            current[decision.subject] = replace(before, hidden=decision.kind == FORGET)
    return current


def _parse(name: str, content: bytes) -> Decision:
    try:
        body = json.loads(content)
        if body["schema"] > SCHEMA:
            raise BadBundle(
                f"{FOLDER}/{name}.json has schema {body['schema']}; this profiler reads up to {SCHEMA}"
            )
        return Decision(
            id=name,
            kind=str(body["kind"]),
            subject=str(body["subject"]),
            created=datetime.fromisoformat(body["created"]),
            who=str(body["who"]),
            why=str(body["why"]),
            values=dict(body["values"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BadBundle(
            f"{FOLDER}/{name}.json is no decision record ({error!r}): mend or remove the file"
        ) from error


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""
