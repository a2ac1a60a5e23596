"""Which reports and bundles the paths given to an import hold."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from profiler.bundles import is_bundle_zip
from profiler.bundles.run_json import RUN_FILE
from profiler.reports import is_report


@dataclass
class FoundFiles:
    """What was found. Files that are neither report nor bundle are refused if named, and counted if met."""

    reports: list[Path] = field(default_factory=list)
    bundles: list[Path] = field(default_factory=list)  # folders and zips
    refused: list[tuple[str, str]] = field(default_factory=list)  # path, message
    skipped: int = 0

    @property
    def total(self) -> int:
        """How many files and bundles there are to import or refuse."""
        return len(self.reports) + len(self.bundles) + len(self.refused)


def find_files(paths: Iterable[Path]) -> FoundFiles:
    """Look at every path; folders are searched in the order of their names, hidden ones left out."""
    found = FoundFiles()
    for path in dict.fromkeys(paths):
        try:
            if path.is_dir():
                _search(path, found)
            elif not path.exists():
                found.refused.append((str(path), f"{path}: no such file or folder"))
            elif not _add(path, found):
                found.refused.append((str(path), _nothing_to_import(path)))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            found.refused.append((str(path), unreadable_message(path, error)))
    # Two of the paths may lead to one file.
    found.reports = list(dict.fromkeys(found.reports))
    found.bundles = list(dict.fromkeys(found.bundles))
    return found


def unreadable_message(path: Path, error: OSError | ValueError) -> str:
    """Why a file or folder cannot be read."""
    return f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})"


def _search(folder: Path, found: FoundFiles) -> None:
    def refuse(error: OSError) -> None:
        found.refused.append((str(error.filename), unreadable_message(error.filename, error)))

    for place, folders, files in os.walk(folder, onerror=refuse):
        if RUN_FILE in files:
            found.bundles.append(Path(place))
            folders.clear()  # what lies in a bundle belongs to it
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            try:
                if not _add(path, found):
                    found.skipped += 1
            except OSError as error:
                found.refused.append((str(path), unreadable_message(path, error)))


def _add(path: Path, found: FoundFiles) -> bool:
    """Add a file to what was found; False for one that is neither report nor bundle."""
    if is_report(path):
        found.reports.append(path)
    elif path.suffix.lower() == ".zip" and is_bundle_zip(path):
        found.bundles.append(path)
    else:
        return False
    return True


def _nothing_to_import(path: Path) -> str:
    if path.suffix.lower() == ".zip" and path.is_file() and not zipfile.is_zipfile(path):
        return f"{path}: no zip, or one that was cut short: copy it again"
    if path.is_file() and zipfile.is_zipfile(path):
        return f"{path}: a zip without {RUN_FILE}, so no bundle: unpack it, import the folder"
    return f"{path}: neither a report (.ncu-rep, or CSV from ncu) nor a bundle (folder or zip)"
