"""Notes that people keep on versions and runs: decision records, so that they have an author and a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from profiler.bundles import decisions
from profiler.bundles.decisions import NOTE, WITHDRAW_NOTE, DecisionRecord
from profiler.bundles.location import Root
from profiler.compare.resolve_names import resolve_family_version
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence.naming import brief_list

if TYPE_CHECKING:
    from profiler.store.index import Store


@dataclass(frozen=True)
class Note:
    """What somebody wrote about a version or a run."""

    id: str  # of the decision record
    subject: str  # family/version, or a run id
    text: str
    who: str
    created: datetime

    @property
    def author(self) -> str:
        """Who wrote it and when."""
        return f"{self.who or 'somebody'}, {self.created:%Y-%m-%d %H:%M}"


def list_notes(records: Iterable[DecisionRecord], subject: str | None = None) -> list[Note]:
    """The notes that nobody took back, oldest first: all, or those on a run or a family/version."""
    notes: dict[str, Note] = {}
    for record in records:
        if record.kind == NOTE:
            notes[record.id] = Note(record.id, record.subject, record.why, record.who, record.created)
        elif record.kind == WITHDRAW_NOTE:
            notes.pop(record.subject, None)
    return [note for note in notes.values() if subject in (None, note.subject)]


def note_subject(store: Store, name: str) -> str:
    """What a note on this name is about: the run of that id, else family/version. Raises UnknownName."""
    if store.run(name) is not None:  # a run before a version of the same name, as everywhere
        return name
    return "/".join(resolve_family_version(store, name))


def write_note(root: Root, store: Store, name: str, text: str, *, who: str | None = None) -> Note:
    """Keep a note on a run, a family/version, or a version whose name is unique.

    Raises UnknownName for a name that is none of these, and ProfilerError for a note without words.
    """
    if not text.strip():
        raise ProfilerError("a note needs a text")
    record = decisions.write_decision(root, NOTE, note_subject(store, name), why=text.strip(), who=who)
    return list_notes([record])[0]


def withdraw_note(root: Root, name: str, *, who: str | None = None) -> Note:
    """Take a note back by its id or the start of it. UnknownName where none or several match."""
    notes = list_notes(decisions.load_decisions(root))
    matches = [note for note in notes if name and note.id.startswith(name)]
    if len(matches) != 1:
        what = "several notes are" if matches else "no note is"
        ids = brief_list([note.id for note in matches or notes]) or "none"
        raise UnknownName(f"{what} called {name}; there are {ids}")
    decisions.write_decision(root, WITHDRAW_NOTE, matches[0].id, who=who)
    return matches[0]
