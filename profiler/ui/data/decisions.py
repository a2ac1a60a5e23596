"""What people decide on a page, recorded as the commands record it: who decides, and whether one may."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import streamlit as st

from profiler.bundles.decisions import USER_HEADER, decision_ids, load_decisions, process_user
from profiler.bundles.location import is_read_only, open_root
from profiler.errors import ProfilerError
from profiler.evidence.naming import brief_list
from profiler.gate.acknowledgement import acknowledge, others_of, parse_limit, withdraw
from profiler.gate.pins import set_baseline, unset_baseline
from profiler.history.baselines import Pin, effective_pin, list_pins
from profiler.history.notes import Note, list_notes, withdraw_note, write_note
from profiler.regressions.groups import RegressionGroup
from profiler.regressions.regression import Regression
from profiler.statistics.decision import share_text
from profiler.ui.data.cache import cached
from profiler.ui.data.index import DataVersion, metric_table, store

_DONE = "decisions_done"  # in the session's state: what was decided last
_LONGEST_NAME = 100  # of a user: a header may hold anything


class Author(NamedTuple):
    """By whom a decision is, and how that is known."""

    name: str
    known_by: str

    @property
    def words(self) -> str:
        """`ada, by the header X-Forwarded-User`."""
        return f"{self.name or 'somebody'}, {self.known_by}"


@dataclass(frozen=True)
class Done:
    """What was decided last in this session, and how it was removed."""

    place: str  # of the page, where it is confirmed
    words: str
    undo: Callable[[], None]


def may_decide() -> bool:
    """Whether pages show forms: not on a server for reading only."""
    return not is_read_only()


def author() -> Author:
    """Who decides: by the request header that the deployment names, else the user that the server runs as."""
    header = os.environ.get(USER_HEADER, "")
    named = (st.context.headers.get(header) or "").strip()[:_LONGEST_NAME] if header else ""
    if named:
        return Author(named, f"by the header {header}")
    lacking = f"; the request has no header {header}" if header else ""
    return Author(process_user(), f"the user that this server runs as{lacking}")


def done(place: str) -> Done | None:
    """What was decided last, where this is its place."""
    last: Done | None = st.session_state.get(_DONE)
    return last if last is not None and last.place == place else None


def forget_done() -> None:
    """Leave out the confirmation from now on."""
    st.session_state.pop(_DONE, None)


def acknowledge_all(
    data_version: DataVersion,
    place: str,
    regressions: Sequence[Regression],
    *,
    why: str,
    until: str,
    limit: str,
) -> None:
    """Let each of these regressions pass: a record for each version, workload, GPU and metric.

    `until` is a day or a run, "" for no end; `limit` a percentage, "" for any size. Raises ProfilerError
    before anything is recorded where one of them cannot be understood, and where the limit would let one of
    the regressions not pass.
    """
    if not why.strip():
        raise ProfilerError("a reason is needed, for those who read this decision later")
    up_to = parse_limit(limit) if limit.strip() else None
    if up_to is not None and (over := [one for one in regressions if _is_over(one, up_to)]):
        raise ProfilerError(_over_limit(over, up_to, is_of_several=len(regressions) > 1))
    scopes = dict.fromkeys(
        (one.series.family, one.series.version, one.series.workload, one.series.gpu, one.series.concept)
        for one in regressions
        if not one.became_wrong
    )
    root, who = open_root(), author().name
    records = [
        acknowledge(
            root,
            store(),
            metric_table(data_version),
            family,
            version,
            why=why,
            workload=workload or None,
            gpu=gpu or None,
            concept=concept,
            until=until.strip() or None,
            up_to=up_to,
            who=who,
        )
        for family, version, workload, gpu, concept in scopes
    ]
    subjects = brief_list(list(dict.fromkeys(f"{one.family}/{one.version}" for one in records)))
    count = f"{len(records)} rows of " if len(records) > 1 else ""
    words = f"acknowledged: {count}{subjects}, {records[0].until}, by {author().words}"
    others = {other.id: other for record in records for other in others_of(root, record)}
    if others:
        before = brief_list(list(dict.fromkeys(other.words for other in others.values())))
        words += f". It was acknowledged before: {before}; both hold"
    _say_done(place, words, lambda: _withdraw([one.id for one in records], who))


def _is_over(regression: Regression, up_to: float) -> bool:
    """Whether an acknowledgement of changes up to a share does not let it pass; one of unknown size never."""
    return regression.effect is None or abs(regression.effect) > up_to


def _over_limit(regressions: Sequence[Regression], up_to: float, is_of_several: bool) -> str:
    """Which rows a limit does not let pass, how large they are, and the way out."""
    rows = dict.fromkeys(
        " on ".join(filter(None, (one.what, one.series.workload))) + f" {one.change}" for one in regressions
    )
    are_over = f"{brief_list(list(rows))} {'are' if len(rows) > 1 else 'is'} over the limit of"
    ways = ["raise the limit"] if all(one.effect is not None for one in regressions) else []
    ways += ["leave it empty"] + ["acknowledge only one row"] * is_of_several
    return f"nothing is recorded: {are_over} {share_text(up_to)}; {' or '.join(ways)}"


def withdraw_group(place: str, group: RegressionGroup) -> None:
    """Take back the acknowledgements by which a group passes."""
    ids = dict.fromkeys(one.acknowledged.id for one in group.regressions if one.acknowledged)
    _withdraw(list(ids), author().name)
    st.session_state[_DONE] = Done(place, f"no longer acknowledged: {group.subject}", forget_done)


def pinned_version(family: str, workload: str, gpu: str) -> str:
    """The version that is pinned as baseline there; "" where none is, or a run is that has no single one."""
    pin = effective_pin(pins(family), family, workload, gpu)
    if pin is None:
        return ""
    if pin.version is not None:
        return pin.version
    versions = {info.version for info in store().results(run_id=pin.run_id) if info.family == family}
    return versions.pop() if len(versions) == 1 else ""


def pins(family: str | None = None) -> list[Pin]:
    """The baselines that are set now, of one family or of all."""
    return [pin for pin in list_pins(load_decisions(open_root())) if family in (None, pin.family)]


def pin(
    place: str,
    family: str,
    name: str,
    *,
    workload: str | None = None,
    gpu: str | None = None,
    why: str = "",
) -> None:
    """Pin a run or version as the baseline of a family, or of one workload and GPU of it."""
    who = author().name
    before = next((pin for pin in pins(family) if (pin.workload, pin.gpu) == (workload, gpu)), None)
    new = set_baseline(open_root(), store(), family, name, workload=workload, gpu=gpu, why=why, who=who)

    def undo() -> None:
        if before is None:
            unset_baseline(open_root(), family, workload=workload, gpu=gpu, who=who)
        else:
            _pin_again(before, who)

    words = f"pinned: the baseline of {family} is {new.name} ({new.scope}), by {author().words}"
    _say_done(place, words, undo)


def unpin(place: str, old: Pin) -> None:
    """Take a pinned baseline away."""
    who = author().name
    unset_baseline(open_root(), old.family, workload=old.workload, gpu=old.gpu, who=who)
    _say_done(
        place,
        f"{old.name} is no longer a baseline of {old.family} ({old.scope})",
        lambda: _pin_again(old, who),
    )


def _pin_again(old: Pin, who: str) -> None:
    target, place = old.run_id or old.version or "", {"workload": old.workload, "gpu": old.gpu}
    set_baseline(open_root(), store(), old.family, target, **place, why=old.why, who=who)


def notes(subjects: Sequence[str]) -> list[Note]:
    """The notes on runs and versions, oldest first; of all subjects where none is named."""
    return list(_notes(tuple(decision_ids(open_root())), tuple(subjects)))


@cached(32)
def _notes(decisions: tuple[str, ...], subjects: tuple[str, ...]) -> list[Note]:
    """The notes; the ids of the decisions are a key of the cache only."""
    every = list_notes(load_decisions(open_root()))
    return [note for note in every if not subjects or note.subject in subjects]


def note(place: str, name: str, text: str) -> None:
    """Keep a note on a run or a version."""
    who = author().name
    kept = write_note(open_root(), store(), name, text, who=who)
    _say_done(
        place,
        f"noted on {kept.subject}, by {author().words}",
        lambda: _take_note_back(kept.id, who),
    )


def withdraw_notes(place: str, old: Note) -> None:
    """Take a note back."""
    who = author().name
    withdraw_note(open_root(), old.id, who=who)
    words = f"the note on {old.subject} was removed"
    _say_done(place, words, lambda: _keep_note(old.subject, old.text, who))


def _keep_note(subject: str, text: str, who: str) -> None:
    write_note(open_root(), store(), subject, text, who=who)


def _take_note_back(note_id: str, who: str) -> None:
    withdraw_note(open_root(), note_id, who=who)


def _withdraw(ids: Sequence[str], who: str) -> None:
    for acknowledgement_id in ids:
        withdraw(open_root(), acknowledgement_id, who=who)


def _say_done(place: str, words: str, undo: Callable[[], None]) -> None:
    st.session_state[_DONE] = Done(place, words, undo)
