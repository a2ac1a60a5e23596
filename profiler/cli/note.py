"""`profiler decide note`: keep a few words on a version or a run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, print_json, print_table, say
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.history.notes import Note

_DESCRIPTION = """\
Keep a note on a version or a run, shown on the pages Lineage, Runs and Diff. It is kept as a decision record
beside the bundles, with who and when. --list shows the notes, all or those of NAME; --undo ID removes one."""


def add(commands: Commands) -> None:
    """Add `note`."""
    command = commands.add_parser("note", help="keep a note on a version or a run", description=_DESCRIPTION)
    command.add_argument(
        "name", nargs="?", metavar="NAME", help="a run id, family/version, or version where it is unique"
    )
    command.add_argument("text", nargs="*", metavar="TEXT", help="the note")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--list", action="store_true", help="list the notes, all or those of NAME")
    which.add_argument("--undo", metavar="ID", help="remove a note; the start of its id is enough")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Keep, list or take back."""
    if arguments.undo is not None and arguments.name:
        raise ProfilerError("--undo takes only an id: profiler decide note --undo ID")
    if arguments.list and arguments.text:
        raise ProfilerError("--list takes no text: profiler decide note --list NAME")
    if not arguments.list and arguments.undo is None and not arguments.name:
        raise ProfilerError("a note needs a name and a text: profiler decide note NAME TEXT")
    action = _list if arguments.list else _undo if arguments.undo is not None else _keep
    return action(arguments)


def _keep(arguments: argparse.Namespace) -> int:
    from profiler.bundles import location
    from profiler.cli.output import open_store
    from profiler.history.notes import write_note

    note = write_note(location.open_root(), open_store(), arguments.name, " ".join(arguments.text))
    if arguments.json:
        print_json(_document(note))
    else:
        say(f"{note.subject}: noted; `profiler decide note --undo {note.id}` removes it")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from profiler.bundles import decisions, location
    from profiler.cli.output import open_store
    from profiler.history.notes import list_notes, note_subject

    subject = note_subject(open_store(), arguments.name) if arguments.name else None
    notes = list_notes(decisions.load_decisions(location.open_root()), subject)
    if arguments.json:
        print_json({"notes": list(map(_document, notes))})
    elif notes:
        rows = [(note.id, note.subject, note.author, note.text) for note in notes]
        print_table(("id", "about", "by", "note"), rows)
    else:
        say(f"no note{f' on {subject}' if subject else ''}: `profiler decide note NAME TEXT` keeps one")
    return 0


def _undo(arguments: argparse.Namespace) -> int:
    from profiler.bundles import location
    from profiler.history.notes import withdraw_note

    note = withdraw_note(location.open_root(), arguments.undo)
    if arguments.json:
        print_json(_document(note))
    else:
        say(f"{note.subject}: the note was removed")
    return 0


def _document(note: Note) -> dict[str, object]:
    return {
        "id": note.id,
        "subject": note.subject,
        "text": note.text,
        "who": note.who,
        "created": note.created.isoformat(),
    }
