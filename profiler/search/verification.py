"""Whether the files of searches are what they should be."""

from __future__ import annotations

from collections.abc import Iterator

from profiler.bundles.location import LocalRoot, Root
from profiler.bundles.search_files import FOLDER, list_searches
from profiler.catalog.catalog import Catalog, load_catalog
from profiler.errors import ProfilerError
from profiler.judge.candidate import load_candidate
from profiler.search.journal import Journal
from profiler.search.record import Status


def verify_searches(root: Root) -> Iterator[tuple[str, str]]:
    """What is wrong with searches, by id: settings, records, and candidates unlike what names them."""
    if not isinstance(root, LocalRoot):
        return
    catalog = load_catalog()
    for search_id in list_searches(root):
        folder = root.folder / FOLDER / search_id
        try:
            journal = Journal(folder)
            records = journal.records()
        except ProfilerError as error:
            yield search_id, str(error)
            continue
        numbers = [record.number for record in records]
        for number in sorted({number for number in numbers if numbers.count(number) > 1}):
            yield search_id, f"{folder}/records: c{number} is there {numbers.count(number)} times"
        seen: set[str] = set()
        for record in records:
            if record.status is Status.NO_CANDIDATE or not record.content_id or record.content_id in seen:
                continue
            seen.add(record.content_id)
            if (wrong := _what_is_wrong(journal, record.content_id, catalog)) is not None:
                yield search_id, f"{record.name}: {wrong}"


def _what_is_wrong(journal: Journal, content_id: str, catalog: Catalog) -> str | None:
    """What is wrong with a candidate's files; None where they are those that the record names."""
    folder = journal.candidate_folder(content_id)
    if not folder.is_dir():
        return f"its files are not there ({folder})"
    try:
        found = load_candidate(folder, catalog).id
    except ProfilerError as error:
        return str(error)
    return None if found == content_id else f"{folder} holds another candidate than the record names"
