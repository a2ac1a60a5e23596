"""What people decided: small records beside the bundles, never changed, only followed up."""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256

from profiler.bundles.location import Root, data_unusable
from profiler.bundles.run import Json, Labels, Run, check_label
from profiler.bundles.run_json import brief_error, parse_time
from profiler.errors import BadBundle, ProfilerError

FOLDER = "decisions"
SCHEMA = 1

RELABEL = "relabel"  # values: family, version, workload, as far as they change
FORGET = "forget"
REMEMBER = "remember"  # undoes forget
BASELINE = "baseline"  # subject: a family; values: workload, gpu (null for all), and run or version
UNSET_BASELINE = "unset-baseline"  # undoes baseline for the same subject, workload and gpu
ACKNOWLEDGE = "acknowledge"  # subject: family/version; see acknowledgement.py for the values
WITHDRAW = "withdraw"  # undoes an acknowledgement; subject: its id
NOTE = "note"  # subject: a run id, or family/version; the text is the reason

_LABELS = {"family", "version", "workload"}
_FIELDS = {"schema": int, "kind": str, "subject": str, "created": str, "who": str, "why": str, "values": dict}


@dataclass(frozen=True)
class DecisionRecord:
    """One decision: who, when, why, about what. A kind that is not known here is kept and left alone."""

    id: str  # the file's name without .json; sorts by time
    kind: str
    subject: str  # a run id for relabel, forget and remember; see the kinds above
    created: datetime
    who: str
    why: str = ""
    values: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class DecidedLabels:
    """Everything that was decided about runs, as an index follows it."""

    digest: str  # of the ids of all records: another one as soon as there is another record
    labels: Mapping[str, Labels]  # by run id; a run that is not there is called what it says itself


def write_decision(
    root: Root,
    kind: str,
    subject: str,
    values: Mapping[str, Json] | None = None,
    *,
    why: str = "",
    who: str | None = None,
    created: datetime | None = None,
) -> DecisionRecord:
    """Write one decision; its file name comes from time, kind and content, so that no two records collide.

    Raises ProfilerError where nothing can be written.
    """
    created = (created or datetime.now(UTC)).astimezone(UTC)
    body = {
        "schema": SCHEMA,
        "kind": kind,
        "subject": subject,
        "created": created.isoformat(timespec="microseconds"),
        "who": who if who is not None else _user(),
        "why": why.encode(errors="replace").decode(),  # a terminal may give what is no UTF-8
        "values": dict(values or {}),
    }
    content = json.dumps(body, ensure_ascii=False, indent=1, sort_keys=True).encode()
    stamp = created.strftime("%Y%m%dT%H%M%S%f")
    name = f"{stamp}-{kind}-{sha256(content).hexdigest()[:8]}"
    try:
        root.write(f"{FOLDER}/{name}.json", content)
    except OSError as error:
        raise data_unusable(root, error) from error
    return _parse(f"{root.url}/{FOLDER}", name, content)


def decision_ids(root: Root) -> list[str]:
    """The ids of all records, oldest first."""
    found = root.list_files(FOLDER, ".json")  # hidden ones are others': an editor's, or a Mac's ._ files
    return [name.removesuffix(".json") for name in found if not name.startswith(".")]


def load_decisions(root: Root) -> list[DecisionRecord]:
    """All records, oldest first. Raises BadBundle for a file that is no record.

    One that cannot be read is never left out: it may be what hides a run, or says its right name.
    """
    folder, found = f"{root.url}/{FOLDER}", []
    for name in decision_ids(root):
        try:
            content = root.read(f"{FOLDER}/{name}.json")
        except OSError as error:
            said = error.strerror or error
            raise BadBundle(
                f"{folder}/{name}.json cannot be read ({said}): mend or remove the file"
            ) from error
        found.append(_parse(folder, name, content))
    return sorted(found, key=lambda decision: (decision.created, decision.id))


def decisions_digest(ids: Iterable[str]) -> str:
    """What tells these records from any others."""
    return sha256("\n".join(sorted(ids)).encode()).hexdigest()


def load_labels(root: Root) -> DecidedLabels:
    """What is valid now of every run. Raises as `load`."""
    found = load_decisions(root)
    return DecidedLabels(decisions_digest(one.id for one in found), current_labels(found))


def current_labels(decisions: Iterable[DecisionRecord]) -> dict[str, Labels]:
    """What is valid now of every run that was decided about: the latest word on each field."""
    current: dict[str, Labels] = {}
    for decision in decisions:
        before = current.get(decision.subject, Labels())
        if decision.kind == RELABEL:
            given = {key: content for key, content in decision.values.items() if key in _LABELS}
            current[decision.subject] = replace(before, **given)
        elif decision.kind in (FORGET, REMEMBER):
            current[decision.subject] = replace(before, hidden=decision.kind == FORGET)
    return current


def notes_on(decisions: Iterable[DecisionRecord], subject: str) -> list[DecisionRecord]:
    """What people wrote about a run or a version, oldest first."""
    return [one for one in decisions if one.kind == NOTE and one.subject == subject]


def effective_labels(run: Run, decided: Mapping[str, Labels]) -> Labels:
    """What an imported run is called now: its own labels, but for what was decided."""
    said, own = decided.get(run.run_id, Labels()), run.results[0]
    return Labels(
        said.family or own.family,
        said.version or own.version,
        said.workload if said.workload is not None else own.workload,
        said.hidden,
    )


def _parse(folder: str, name: str, content: bytes) -> DecisionRecord:
    try:
        body = json.loads(content)
        for field_name, kind in _FIELDS.items():
            if type(body[field_name]) is not kind:
                raise TypeError(f"{field_name} is {body[field_name]!r}")
        if body["schema"] > SCHEMA:
            raise BadBundle(
                f"{folder}/{name}.json has schema {body['schema']}; this profiler reads up to {SCHEMA}"
            )
        if body["kind"] == RELABEL:
            for label in _LABELS & body["values"].keys():
                if type(body["values"][label]) is not str:
                    raise TypeError(f"{label} is {body['values'][label]!r}")
                check_label(label, body["values"][label])
        return DecisionRecord(
            id=name,
            kind=body["kind"],
            subject=body["subject"],
            created=parse_time(body["created"]),
            who=body["who"],
            why=body["why"],
            values=body["values"],
        )
    except BadBundle:
        raise
    except (ProfilerError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise BadBundle(
            f"{folder}/{name}.json is no decision record ({brief_error(error)}): mend or remove the file"
        ) from error


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""
