"""The searches of the data folder, and where one stands now."""

from __future__ import annotations

import difflib
from pathlib import Path

from profiler.bundles.location import open_root
from profiler.catalog.catalog import load_catalog
from profiler.documents.search import SearchDocument, search_document
from profiler.search.journal import Journal, list_journals
from profiler.search.record import SearchRecord
from profiler.ui.data.cache import cached

_MOST_LINES = 400  # of a diff that is shown


def ids() -> list[str]:
    """The ids of all searches, newest first."""
    return [journal.settings.id for journal in list_journals(open_root())][::-1]


@cached()
def begin_command() -> str:
    """What begins a search of the catalogue's family. Raises BadCatalog."""
    return f"profiler search start {load_catalog().family} --generator flags --minutes 30"


@cached(16)
def _journal(folder: str) -> Journal:
    """A journal that keeps what it read: records never change."""
    return Journal(Path(folder))


def load(search_id: str) -> SearchDocument:
    """Where a search stands now: only records that are new are read."""
    folder = next(j.folder for j in list_journals(open_root()) if j.settings.id == search_id)
    return search_document(_journal(str(folder)))


def label(search_id: str) -> str:
    """A search as a choice: `2026-11-23 10:21 attention`."""
    day, _, family = search_id.partition("-")
    return f"{day[:4]}-{day[4:6]}-{day[6:8]} {day[9:11]}:{day[11:13]} {family.rpartition('-')[0]}"


def source_diff(document: SearchDocument, record: SearchRecord, other: SearchRecord) -> list[str]:
    """The lines by which a candidate's files differ from another's, with three around."""
    folders = [document.journal.candidate_folder(r.content_id) for r in (other, record)]
    names = sorted(
        {
            path.relative_to(folder).as_posix()
            for folder in folders
            for path in folder.rglob("*")
            if path.is_file()
        }
    )
    lines: list[str] = []
    for name in names:
        before, after = (_text(folder / name) for folder in folders)
        lines += difflib.unified_diff(
            before, after, f"{other.name}/{name}", f"{record.name}/{name}", lineterm=""
        )
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES} more lines"]
    return lines


def _text(path: Path) -> list[str]:
    return path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else []
