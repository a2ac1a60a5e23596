"""The family of an imported report: the shortest part of its path that tells its folder from others."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

# A name that consists of these words says what lies in a folder or how it was written, not of which kernels.
_GENERIC = """
    artifact artifacts benchmark benchmarks bin build builds code com compute cpp cu cuda data debug desktop
    documents downloads dump dumps file files git github gitlab home kernel kernels log logs measurement
    measurements ncu nsight nsys nvidia out output outputs prof profile profiled profiler profiles profiling
    profs project projects py python pytorch release rep repo report reports repos reps res result results
    source sources src tmp temp trace traces triton var work workspace workspaces
"""
_GENERIC_WORDS = frozenset(_GENERIC.split())
_HOME = "~"


class ImportFolder(NamedTuple):
    """A folder that imported reports came from, and the family that runs from there have now."""

    folder: str  # as folder_of gives it; "" where the run does not say it
    family: str
    given: bool  # whether somebody named the family, so that the folder says nothing about it
    runs: int


def folder_of(report: Path) -> str:
    """Where a report lies, the same for every clone of a repository: host/owner/name/path/below/it.

    Outside a git repository, or in one without a remote called origin, it is the folder's absolute path, with
    `~` for the user's home.
    """
    return _described(os.path.abspath(report.parent))


def folder_in_repository(git: str) -> str:
    """As `folder_of` for the top of a clone: `git` is its folder `.git`, or a bare repository."""
    top = os.path.dirname(git) if os.path.basename(git) == ".git" else git
    return _origin(Path(git)) or _described(top)


def family_labels(folders: Iterable[str], known: Collection[ImportFolder]) -> dict[str, str]:
    """A family for each folder: the one that it has, else a name that no other folder has.

    The name is the nearest part of the path that is not generic (`silu` of `silu/ncu-reports`), and where
    several folders would share it, with the nearest part in which they differ (`silu-triton`,
    `rms_norm-triton`). A family that somebody named, or of which no folder is known, may be joined.
    """
    folders = dict.fromkeys(folders)
    families: dict[str, str] = {}
    taken: dict[str, set[str]] = defaultdict(set)  # family: the folders that have it
    runs_by_folder: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in known:
        if entry.folder and not entry.given:
            taken[entry.family].add(entry.folder)
            runs_by_folder[entry.folder][entry.family] += entry.runs
    for folder in folders:
        if folder in runs_by_folder:
            families[folder] = runs_by_folder[folder].most_common(1)[0][0]
    names = [_FolderName(folder) for folder in sorted(folders.keys() - families.keys())]
    _tell_apart(names, taken)
    return families | {name.folder: name.label for name in names}


def is_generic(name: str) -> bool:
    """Whether a folder's name says what lies in it rather than of what it is: ncu-reports, build, 04-21."""
    words = [word for word in re.split(r"[\W\d_]+", name.lower()) if word]
    return all(word in _GENERIC_WORDS for word in words)


class _FolderName:
    """The parts of a folder's path that make up its family so far."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        parts = [part for part in folder.split("/") if part and part != _HOME]
        above = len(parts)
        while above and is_generic(parts[above - 1]):
            above -= 1
        if not above:  # all of it is generic: the folder's own name has to do
            above = len(parts)
        # Nearest first: the part that names the folder, and what is above it; the generic ones below it.
        self.above: Sequence[str] = parts[:above][::-1]
        self.below: Sequence[str] = parts[above:]
        self.parts_above = {0} if parts else set[int]()
        self.parts_below = set[int]()
        self.suffix = ""

    @property
    def label(self) -> str:
        parts = [self.above[index] for index in sorted(self.parts_above, reverse=True)]
        parts += [self.below[index] for index in sorted(self.parts_below)]
        return "-".join((*parts, self.suffix) if self.suffix else parts)

    def lengthen(self, others: Sequence[_FolderName], *, must: bool) -> bool:
        """Take one more part, the nearest that tells the path from the others; `must`: any, if none does."""
        # A part that no other path has there is enough by itself; else one that some of them do not have.
        for differs in (all, any):
            for parts, taken, theirs in (
                (self.above, self.parts_above, [other.above for other in others]),
                (self.below, self.parts_below, [other.below for other in others]),
            ):
                for index, part in enumerate(parts):
                    if index not in taken and differs(part != _at(path, index) for path in theirs):
                        taken.add(index)
                        return True
        if not must or self.suffix:
            return False
        left = [index for index in range(len(self.above)) if index not in self.parts_above]
        if left:
            self.parts_above.add(left[0])
        else:
            self.suffix = sha256(self.folder.encode()).hexdigest()[:4]
        return True


def _tell_apart(names: Sequence[_FolderName], taken: Mapping[str, Collection[str]]) -> None:
    """Lengthen the names until no two are the same, and none is that of another folder's family."""
    while True:
        by_label: dict[str, list[_FolderName]] = defaultdict(list)
        for name in names:
            by_label[name.label].append(name)
        has_changed = False
        for label, same in by_label.items():
            holders = [_FolderName(folder) for folder in sorted(taken.get(label, ()))]
            if len(same) + len(holders) > 1:
                # Beside a family that is there already, each new name has to change.
                changed = [
                    name.lengthen(
                        [*(other for other in same if other is not name), *holders], must=bool(holders)
                    )
                    for name in same
                ]
                if not any(changed):  # two spellings of one path: only the path as a whole tells them apart
                    changed = [name.lengthen(same[:1], must=True) for name in same[1:]]
                has_changed = has_changed or any(changed)
        if not has_changed:
            return


def _at(parts: Sequence[str], index: int) -> str | None:
    return parts[index] if index < len(parts) else None


def _described(folder: str) -> str:
    for root in (Path(folder), *Path(folder).parents):
        if (root / ".git").exists():
            if origin := _origin(root / ".git"):
                below = Path(folder).relative_to(root).as_posix()
                return _text(origin if below == "." else f"{origin}/{below}")
            break
    home = os.path.expanduser("~")
    if home != "/" and (folder == home or folder.startswith(home + "/")):
        folder = _HOME + folder[len(home) :]
    return _text(folder)


def _origin(git: Path) -> str | None:
    """host/owner/name of the remote `origin`, without user, password and port; None where there is none."""
    try:
        if git.is_file():  # of a worktree: `gitdir: PATH`, beside which the repository's own folder is named
            git = git.parent / git.read_text().partition(":")[2].strip()
            if (git / "commondir").is_file():
                git = git / (git / "commondir").read_text().strip()
        config = (git / "config").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    section = re.search(r'^\[remote "origin"\]$(.*?)(?=^\[|\Z)', config, re.M | re.S)
    url = section and re.search(r"^\s*url\s*=\s*(\S+)\s*$", section[1], re.M)
    if not url:
        return None
    # https://user@host:port/owner/name.git, and the short form of ssh: git@host:owner/name.git
    address = re.match(
        r"(?:\w[\w+.-]*://)?(?:[^@/]*@)?([\w.-]+)(?::\d+(?=/))?[:/]+(.+?)(?:\.git)?/*$", url[1]
    )
    return f"{address[1]}/{address[2]}" if address else None


def _text(path: str) -> str:
    """A path as text that can be stored: on Linux a path is bytes, which may not be UTF-8."""
    return os.fsencode(path).decode(errors="replace")
