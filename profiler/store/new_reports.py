"""Which of the files given to an import are not in the data folder yet, by their content."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from profiler.bundles import bundle
from profiler.bundles.location import Root
from profiler.store.find_files import unreadable_message


@dataclass
class NewReports:
    """The report files of an import: new ones, those that a run holds, those that cannot be read."""

    paths: dict[str, list[Path]] = field(default_factory=dict)  # by sha256: copies of one report together
    known: dict[Path, str] = field(default_factory=dict)  # the run that holds a file's report
    refused: dict[Path, str] = field(default_factory=dict)  # the message


def find_new_reports(root: Root, files: Iterable[Path], begin: Callable[[Path], None]) -> NewReports:
    """Look which files no imported run holds; `begin` is called with each new one at once, in their order.

    The order is that of reading: of one measurement the report says most, and of its exports the largest.
    """
    found = NewReports()
    run_ids = bundle.imports_by_digest(bundle.list_runs(root))
    for path in sorted(files, key=_says_less):
        try:
            sha256 = bundle.hash_file(path)[0]
        except OSError as error:
            found.refused[path] = unreadable_message(path, error)
            continue
        if (run_id := bundle.find_import(root, run_ids, sha256)) is not None:
            found.known[path] = run_id
        elif sha256 in found.paths:
            found.paths[sha256].append(path)
        else:
            found.paths[sha256] = [path]
            begin(path)
    return found


def _says_less(path: Path) -> tuple[bool, int]:
    """A sort key for the files of one import: reports, then exports, the largest first."""
    is_export = path.suffix == ".csv"
    with contextlib.suppress(OSError):
        return is_export, -path.stat().st_size if is_export else 0
    return is_export, 0
