"""The files of searches that never change: settings, records and candidates, for backups."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from profiler.bundles.location import LocalRoot, Root
from profiler.errors import BadBundle

FOLDER, SETTINGS_FILE = "searches", "search.json"
MAX_FILE_BYTES = 16 << 20
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,100}")
_RECORD = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,100}\.json")
_CANDIDATE = re.compile(r"[0-9a-f]{8,64}")


def list_searches(root: Root) -> list[str]:
    """The ids of the searches of a data folder, sorted; none where it is no folder of this machine."""
    if not isinstance(root, LocalRoot):
        return []
    return sorted(name for name in root.folders_holding(FOLDER, SETTINGS_FILE) if _ID.fullmatch(name))


def search_files(root: LocalRoot, search_id: str) -> list[str]:
    """Paths below a search's folder: the settings, then records, then the candidates, which are there before.

    What says who works on what, and what workers said, is left out.
    """
    folder = root.folder / FOLDER / search_id
    paths = [f"records/{path.name}" for path in sorted((folder / "records").glob("*.json"))]
    candidates = sorted(path for path in (folder / "candidates").rglob("*") if path.is_file())
    paths += [path.relative_to(folder).as_posix() for path in candidates if not path.is_symlink()]
    return [SETTINGS_FILE, *(path for path in paths if _is_search_file(path))]


def split_name(name: str) -> tuple[str, str]:
    """The search and the path in its folder of a file's name in a backup. Raises BadBundle for another."""
    folder, search_id, path = (*name.split("/", 2), "", "")[:3]
    if folder != FOLDER or not _ID.fullmatch(search_id) or not _is_search_file(path):
        raise BadBundle(f"{name[:80]!r} is no file of a search")
    return search_id, path


def _is_search_file(path: str) -> bool:
    parts = PurePosixPath(path).parts
    if any(part.startswith(".") for part in parts):
        return False
    if path == SETTINGS_FILE:
        return True
    if len(parts) == 2 and parts[0] == "records":
        return bool(_RECORD.fullmatch(parts[1]))
    return len(parts) > 2 and parts[0] == "candidates" and bool(_CANDIDATE.fullmatch(parts[1]))
