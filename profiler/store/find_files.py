"""Finds the reports and bundles that the paths given to an import lead to."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from profiler.build.code_images import is_code
from profiler.bundles.run_json import RUN_FILE
from profiler.bundles.zip_file import is_bundle_zip
from profiler.evidence.plain_file import special_kind
from profiler.reports.read import is_report
from profiler.timings.columns import NAME_COLUMNS
from profiler.timings.read import timings_form

_BUNDLE_NAME = re.compile(r"[0-9]{8}T[0-9]{6}-.+")  # how the folder of a run is called
_IMPORTED_SUFFIXES = (".ncu-rep", ".ncu-repz", ".csv", ".zip")


@dataclass
class FoundFiles:
    """What an import has to read. A file of another kind is refused if the user named it; one met in a folder
    is only counted.
    """

    reports: list[Path] = field(default_factory=list)
    bundles: list[Path] = field(default_factory=list)  # folders and zips
    code: list[Path] = field(default_factory=list)  # of machine code, which the user named
    timings: list[Path] = field(default_factory=list)  # of times that other tools wrote
    refused: list[tuple[str, str]] = field(default_factory=list)  # path, message
    skipped: int = 0  # met in folders, and of another kind

    @property
    def total(self) -> int:
        """How many files and bundles there are to import or refuse."""
        read = len(self.reports) + len(self.bundles) + len(self.code) + len(self.timings)
        return read + len(self.refused)


def find_files(paths: Iterable[Path], *, are_tables: bool = False) -> FoundFiles:
    """The reports, bundles and files of times under these paths. Hidden folders are left out.

    are_tables: whether the files that are named are tables of times, whatever they look like.
    """
    files = FoundFiles()
    for path in dict.fromkeys(paths):
        try:
            if path.is_dir():
                _search(path, files)
            elif (kind := special_kind(path)) is not None:
                files.refused.append((str(path), f"{path}: {kind}, not a file"))
            elif not path.exists():
                files.refused.append((str(path), f"{path}: no such file or folder"))
            elif are_tables:
                files.timings.append(path)
            elif is_code(str(path)):
                files.code.append(path)
            elif not _add(path, files):
                files.refused.append((str(path), _nothing_to_import(path)))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            files.refused.append((str(path), unreadable_message(path, error)))
    # Two of the given paths may lead to the same file.
    files.reports = list(dict.fromkeys(files.reports))
    files.bundles = list(dict.fromkeys(files.bundles))
    files.code = list(dict.fromkeys(files.code))
    files.timings = list(dict.fromkeys(files.timings))
    return files


def unreadable_message(path: Path, error: OSError | ValueError) -> str:
    """Why a file or folder cannot be read."""
    return f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})"


def _search(folder: Path, files: FoundFiles) -> None:
    def refuse(error: OSError) -> None:
        files.refused.append((str(error.filename), unreadable_message(error.filename, error)))

    for folder_path, folders, names in os.walk(folder, onerror=refuse):
        if RUN_FILE in names:
            files.bundles.append(Path(folder_path))
            folders.clear()  # the reports inside a bundle belong to it, and are not imported by themselves
            continue
        if "reports" in folders and _BUNDLE_NAME.fullmatch(Path(folder_path).name):
            # Imported by themselves its reports would be other runs, without labels and samples.
            message = f"{folder_path}: a bundle whose {RUN_FILE} is gone: copy it again"
            files.refused.append(
                (folder_path, f"{message}, or import only its reports with {folder_path}/reports")
            )
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder_path, name)
            try:
                if (kind := special_kind(path)) is not None:
                    files.refused.append((str(path), f"{path}: {kind}, not a file"))
                elif leads_out(path, folder):
                    if path.suffix.lower() in _IMPORTED_SUFFIXES:
                        files.refused.append(
                            (str(path), f"{path}: a link that leads out of {folder}: name the file itself")
                        )
                    else:
                        files.skipped += 1
                elif not _add(path, files):
                    files.skipped += 1
            except OSError as error:
                files.refused.append((str(path), unreadable_message(path, error)))


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a path is a link to somewhere outside the folder."""
    return path.is_symlink() and not path.resolve().is_relative_to(folder.resolve())


def _add(path: Path, files: FoundFiles) -> bool:
    """Add a file to its list; False for one that is neither report, nor bundle, nor a file of times."""
    if timings_form(path):
        files.timings.append(path)
    elif is_report(path):
        files.reports.append(path)
    elif path.suffix.lower() == ".zip" and is_bundle_zip(path):
        files.bundles.append(path)
    else:
        return False
    return True


def _nothing_to_import(path: Path) -> str:
    """Why a file that the user named cannot be imported, as precisely as its content allows."""
    if path.suffix.lower() == ".zip" and path.is_file() and not zipfile.is_zipfile(path):
        return f"{path}: no zip, or one that was cut short: copy it again"
    if path.is_file() and zipfile.is_zipfile(path):
        return f"{path}: a zip without {RUN_FILE}, so no bundle: unpack it, import the folder"
    if path.suffix.lower() == ".json":
        return f"{path}: no times of pytest-benchmark, Google Benchmark, NVBench, TritonBench or Helion"
    if path.suffix.lower() == ".csv":
        return f"{path}: neither a report (CSV from ncu) nor a table of times that is known: {NAME_COLUMNS}"
    return f"{path}: neither a report (.ncu-rep, or CSV from ncu) nor a bundle (folder or zip)"
