"""People's decisions: small records beside the bundles, never changed; a later one undoes an earlier one.

Which record is later is not what the clocks say: one may go back, and those of machines that share a folder
differ. Every record has a place in the order (`order`, a hybrid logical clock): the writer's time, but always
after every record that the writer can see.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256

from profiler.bundles.hybrid_clock import (
    END,
    MAX_AHEAD,
    is_ahead,
    microseconds,
    next_order,
    order_of,
    stamp,
)
from profiler.bundles.location import Root, check_writable, data_unusable
from profiler.bundles.run import Json, Labels, Run, check_label
from profiler.bundles.run_json import (
    MAX_RUN_JSON_BYTES,
    brief_error,
    parse_time,
    refuse_what_is_too_large,
    reject_repeated_keys,
)
from profiler.errors import BadBundle, ProfilerError

# The variable that names a request header: on a server, a proxy says there who decides.
USER_HEADER = "PROFILER_USER_HEADER"
FOLDER = "decisions"
SCHEMA = 1
MAX_DECISION_BYTES = MAX_RUN_JSON_BYTES  # a relabel of a hundred thousand runs

RELABEL = "relabel"  # values: family, version, workload, as far as they change
RELABEL_RUNS = "relabel-runs"  # subject: a family or ""; values: runs, the values of a relabel by run id
FORGET = "forget"
REMEMBER = "remember"  # undoes forget
DELETE = "delete"  # of a run's bundle; what was decided about the run before counts no more
BASELINE = "baseline"  # subject: a family; values: workload, gpu (null for all), and run or version
UNSET_BASELINE = "unset-baseline"  # undoes baseline for the same subject, workload and gpu
ACKNOWLEDGE = "acknowledge"  # subject: family/version; see acknowledgement.py for the values
WITHDRAW = "withdraw"  # undoes an acknowledgement; subject: its id
PAIR = "pair"  # subject: a family; values: a and b, two names of one kernel
UNPAIR = "unpair"  # undoes pair; subject: its id
NOTE = "note"  # subject: a run id, or family/version; the text is the reason
WITHDRAW_NOTE = "withdraw-note"  # undoes note; subject: its id

_LABELS = {"family", "version", "workload"}
_FIELDS = {"schema": int, "kind": str, "subject": str, "created": str, "who": str, "why": str, "values": dict}


@dataclass(frozen=True)
class DecisionRecord:
    """One decision: who, when, why, about what. Kinds of a later profiler are kept and left alone."""

    id: str  # the file's name without .json; begins with `order` as a time
    kind: str
    subject: str  # a run id for relabel, forget and remember; see the kinds above
    created: datetime
    who: str
    why: str = ""
    values: Mapping[str, Json] = field(default_factory=dict)
    order: int = 0  # by which records are sorted: microseconds since 1970 of a hybrid logical clock


@dataclass(frozen=True)
class DecidedLabels:
    """The decided labels of all runs, with a digest by which an index knows whether it follows them."""

    digest: str  # of the ids of all records: changes with every new record
    labels: Mapping[str, Labels]  # by run id; a run without an entry keeps the labels that it was sealed with


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
    """Write one decision, after all that are there, whatever the clock says.

    The file's name comes from order, kind and content, so that no two records collide. Raises ProfilerError
    where nothing can or may be written, and BadBundle where a record that is there cannot be read, or is
    of a time to come: nothing that is decided before that would count.
    """
    check_writable(root)
    now = datetime.now(UTC)
    created = (created or now).astimezone(UTC)
    last, last_name = _last_order(root)
    if (message := ahead_words(last, max(now, created))) is not None:
        raise BadBundle(f"{root.url}/{FOLDER}/{last_name}.json {message}, else remove the file")
    order = next_order(created, last)
    if order >= END:
        raise ProfilerError(f"this machine's clock says {created:%Y-%m-%d}: set it, and decide again")
    body = {
        "schema": SCHEMA,
        "order": order,
        "kind": kind,
        "subject": subject,
        "created": created.isoformat(timespec="microseconds"),
        "who": who if who is not None else process_user(),
        "why": why.encode(errors="replace").decode(),  # a terminal may give what is no UTF-8
        "values": dict(values or {}),
    }
    content = json.dumps(body, ensure_ascii=False, indent=1, sort_keys=True).encode()
    name = f"{stamp(order)}-{kind}-{sha256(content).hexdigest()[:8]}"
    record = parse_record(f"{root.url}/{FOLDER}", name, content)  # what nobody could read is not written
    try:
        root.write(f"{FOLDER}/{name}.json", content)
    except OSError as error:
        raise data_unusable(root, error) from error
    return record


def _last_order(root: Root) -> tuple[int, str]:
    """The order and the id of the last record; -1 where there is none."""
    last = (-1, "")
    for name in sorted(decision_ids(root), reverse=True):
        order = order_of(name)
        if order is not None:
            return max(last, (order, name))  # the names of all others are of earlier times
        last = max(last, (_load(root, name).order, name))  # somebody renamed the file: what it says counts
    return last


def ahead_words(order: int, now: datetime | None = None) -> str | None:
    """What is wrong with a record whose order is days ahead of this machine's clock; None where it is not.

    Whatever anybody decides later has to come after such a record.
    """
    now = now or datetime.now(UTC)
    if not is_ahead(order, now):
        return None
    return (
        f"is of {stamp(order)[:8]}, over {MAX_AHEAD.days} days ahead of this machine's clock ({now:%Y%m%d}): "
        "set the clock where that is wrong"
    )


def decision_ids(root: Root) -> list[str]:
    """The ids of all records, oldest first."""
    names = root.list_files(FOLDER, ".json")
    # Hidden files are not ours: an editor's, or the ._ files of a Mac.
    return [name.removesuffix(".json") for name in names if not name.startswith(".")]


def load_decisions(root: Root) -> list[DecisionRecord]:
    """All records, oldest first. Raises BadBundle for a file that is no record.

    A file that cannot be read is never skipped: it may be the one that hides a run, or corrects its name.
    """
    records = [_load(root, name) for name in decision_ids(root)]
    return sorted(records, key=lambda record: (record.order, record.id))


def _load(root: Root, name: str) -> DecisionRecord:
    return parse_record(f"{root.url}/{FOLDER}", name, read_content(root, name))


def read_content(root: Root, name: str) -> bytes:
    """The content of a record's file. Raises BadBundle."""
    try:
        return root.read(f"{FOLDER}/{name}.json", MAX_DECISION_BYTES + 1)
    except OSError as error:
        raise BadBundle(
            f"{root.url}/{FOLDER}/{name}.json cannot be read ({error.strerror or error}): "
            "correct or remove the file"
        ) from error


def decisions_digest(ids: Iterable[str]) -> str:
    """A digest of the ids of records: another set of records has another one."""
    return sha256("\n".join(sorted(ids)).encode()).hexdigest()


def load_labels(root: Root) -> DecidedLabels:
    """The labels that every decided run has now. Raises as load_decisions does."""
    records = load_decisions(root)
    return DecidedLabels(decisions_digest(record.id for record in records), current_labels(records))


def current_labels(decisions: Iterable[DecisionRecord]) -> dict[str, Labels]:
    """The labels by run id, of every run with a decision: the latest decision on each field counts."""
    current: dict[str, Labels] = {}
    for decision in decisions:
        before = current.get(decision.subject, Labels())
        if decision.kind == RELABEL:
            changed = {kind: text for kind, text in decision.values.items() if kind in _LABELS}
            current[decision.subject] = replace(before, **changed)
        elif decision.kind == RELABEL_RUNS:
            for run_id, values in decision.values["runs"].items():
                changed = {kind: text for kind, text in values.items() if kind in _LABELS}
                current[run_id] = replace(current.get(run_id, Labels()), **changed)
        elif decision.kind in (FORGET, REMEMBER):
            current[decision.subject] = replace(before, hidden=decision.kind == FORGET)
        elif decision.kind == DELETE:  # the same report may come again, as if it were new
            current.pop(decision.subject, None)
    return current


def effective_labels(run: Run, decided: Mapping[str, Labels]) -> Labels:
    """The labels of an imported run: its own, but for what was decided. An empty workload is a decision."""
    labels, result = decided.get(run.run_id, Labels()), run.results[0]
    return Labels(
        labels.family or result.family,
        labels.version or result.version,
        labels.workload if labels.workload is not None else result.workload,
        labels.hidden,
    )


def parse_record(folder: str, name: str, content: bytes) -> DecisionRecord:
    """The record in the file `name`.json of a folder. Raises BadBundle that names it."""
    try:
        refuse_what_is_too_large(content, f"{folder}/{name}.json")
    except BadBundle as error:
        raise BadBundle(f"{error}: correct or remove the file") from error
    try:
        body = json.loads(content, object_pairs_hook=reject_repeated_keys)
        for field_name, kind in _FIELDS.items():
            if type(body[field_name]) is not kind:
                raise TypeError(f"{field_name} is {body[field_name]!r}")
        if body["schema"] > SCHEMA:
            raise BadBundle(
                f"{folder}/{name}.json has schema {body['schema']}; this profiler reads up to {SCHEMA}"
            )
        if body["kind"] == RELABEL:
            _check_labels(body["values"])
        elif body["kind"] == RELABEL_RUNS:
            for values in dict(body["values"]["runs"]).values():
                _check_labels(values)
        created = parse_time(body["created"])
        order = body.get("order", microseconds(created))  # records of before had only their time
        if type(order) is not int or order >= END:
            raise ValueError(f"order is {order!r}")
        return DecisionRecord(
            id=name,
            kind=body["kind"],
            subject=body["subject"],
            created=created,
            who=body["who"],
            why=body["why"],
            values=body["values"],
            order=order,
        )
    except BadBundle:
        raise
    except (ProfilerError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise BadBundle(
            f"{folder}/{name}.json is no decision record ({brief_error(error)}): correct or remove the file"
        ) from error


def _check_labels(values: Mapping[str, Json]) -> None:
    for label in _LABELS & values.keys():
        if type(values[label]) is not str:
            raise TypeError(f"{label} is {values[label]!r}")
        check_label(label, values[label])


def process_user() -> str:
    """The user that this process runs as: who decides where nobody is named; "" without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""
