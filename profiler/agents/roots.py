"""Which files a caller may name: those below the folders that the server was given, links followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from profiler.agents.tool import RefusedArgument, echo
from profiler.bundles.location import open_root

_READ = (".ncu-rep", ".ncu-repz", ".csv", ".cubin", ".fatbin", ".so", ".o")  # what a name may lead to


@dataclass(frozen=True)
class Roots:
    """The folders below which names may lead, resolved; relative names begin at the first."""

    folders: tuple[Path, ...]
    data: str  # the data folder, or its URL

    def check(self, name: str) -> None:
        """Raise Refused for a name that could lead out of the folders, or to what is no report or code.

        Names of versions and runs pass: they lead to no file. Nothing is opened.
        """
        if "://" in name:
            raise RefusedArgument(
                f"{echo(name)}: an address, and only files, runs and versions are read here"
            )
        if ".." in Path(name).parts:
            raise RefusedArgument(f"{echo(name)}: .. is not taken: name the file from one of {self.words}")
        path = self.folders[0] / name
        # An absolute path outside is refused before the disk is asked whether it is there.
        lexical = Path(os.path.normpath(path))
        if not any(lexical.is_relative_to(folder) for folder in self._spellings()):
            raise self._outside(name)
        try:
            real = Path(os.path.realpath(path))
            if not any(real.is_relative_to(folder) for folder in self.folders):
                raise self._outside(name)
            mode = os.stat(real).st_mode
        except (OSError, ValueError):
            return  # no such file: it may be a version or a run
        if stat.S_ISDIR(mode):
            return
        if not stat.S_ISREG(mode):
            raise RefusedArgument(f"{echo(name)}: no plain file")
        if not name.lower().endswith(_READ):
            raise RefusedArgument(
                f"{echo(name)}: no report and no machine code, which end in {', '.join(_READ)}"
            )

    @property
    def words(self) -> str:
        """The folders for a message."""
        return ", ".join(map(str, self.folders))

    def _spellings(self) -> list[Path]:
        """The folders resolved, and the working directory as the shell spells it, if it is one of them."""
        shell = os.environ.get("PWD", "")
        is_root = shell.startswith("/") and Path(os.path.realpath(shell)) in self.folders
        return [*self.folders, *([Path(shell)] if is_root else [])]

    def _outside(self, name: str) -> RefusedArgument:
        return RefusedArgument(
            f"{echo(name)}: outside the folders that may be read here ({self.words}): "
            "start `profiler mcp --root FOLDER` with its folder"
        )


def find_roots(named: Sequence[str]) -> Roots:
    """The folders that were named, else the working directory; and the data folder. Raises Refused."""
    folders = []
    for text in named or ["."]:
        folder = Path(os.path.realpath(os.path.expanduser(text)))
        if not folder.is_dir():
            raise RefusedArgument(f"--root {text}: no such folder")
        if folder == Path(folder.anchor):
            raise RefusedArgument(f"--root {text}: the whole disk may not be named: name a folder")
        folders.append(folder)
    if not named and folders[0] == Path(folders[0].anchor):
        raise RefusedArgument("the working directory is the whole disk: name a folder with --root")
    data = open_root().url
    if "://" not in data and os.path.isdir(data):
        folders.append(Path(os.path.realpath(data)))
    return Roots(tuple(dict.fromkeys(folders)), data)
