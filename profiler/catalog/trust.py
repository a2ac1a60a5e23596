"""Which catalogues may run what their authors wrote: reading one runs nothing, building from one does."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path

from profiler.catalog.catalog import PROJECT_KERNELS, Catalog
from profiler.errors import ProfilerError
from profiler.evidence.naming import brief_list
from profiler.evidence.plain_file import special_kind

TRUST = "PROFILER_TRUST"  # folders whose catalogues are trusted whatever they say, as PATH has them


class NotTrusted(ProfilerError):
    """A catalogue that would run code here, and that nobody here has said may."""


def require_trust(catalog: Catalog) -> None:
    """Raise NotTrusted for a catalogue that is not trusted, with what it would run. Runs nothing of it."""
    if not is_trusted(catalog):
        programs = [place for place in _python_places(catalog) if not place.startswith("profiler.")]
        flags = dict.fromkeys(
            (*catalog.compile_flags, *(flag for version in catalog.versions for flag in version.flags))
        )
        runs = [f"Python of {brief_list(programs)}"] if programs else []
        runs += [f"a compiler with {brief_list(list(flags))}"] if flags else []
        raise NotTrusted(
            f"{catalog.path} is not trusted here, and nothing of it was run: it would run its kernels, "
            f"{' and '.join(runs) or 'built by a compiler,'} as you. Look at the files, then repeat with "
            f"--trust, or name the folder in {TRUST}"
        )


def is_trusted(catalog: Catalog) -> bool:
    """Whether a catalogue is the project's own, in a folder of PROFILER_TRUST, or was trusted as it is."""
    folders = [Path(name).resolve() for name in os.environ.get(TRUST, "").split(os.pathsep) if name]
    if any(catalog.path.is_relative_to(folder) for folder in (PROJECT_KERNELS.resolve(), *folders)):
        return True
    return (_folder() / _digest(catalog)).is_file()


def remember_trust(catalog: Catalog) -> None:
    """Trust a catalogue until it, or Python that lies beside it and that it names, changes.

    The kernels' sources may change: who works on them would be asked at every edit. Raises ProfilerError
    where that cannot be kept.
    """
    folder = _folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / _digest(catalog)).write_text(f"{catalog.path}\n{datetime.now(UTC).isoformat()}\n")
    except OSError as error:
        raise ProfilerError(
            f"{folder} cannot keep that {catalog.path} is trusted ({error.strerror or error}): "
            f"name its folder in {TRUST} instead"
        ) from error


def _folder() -> Path:
    """Where it is kept, a file for each trusted state of a catalogue."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "profiler" / "trusted"


def _digest(catalog: Catalog) -> str:
    """Of the catalogue's place and text, and of the Python files that it names."""
    digest = hashlib.sha256(os.fsencode(catalog.path) + b"\0")
    files = [catalog.folder / place for place in _python_places(catalog) if place.endswith(".py")]
    for path in (catalog.path, *files):
        try:
            content = b"" if special_kind(path) else path.read_bytes()
        except OSError:  # whoever runs it says that it is missing
            content = b""
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def _python_places(catalog: Catalog) -> list[str]:
    """The files and modules that the catalogue's problem and callables lie in."""
    references = (catalog.problem, *(version.callable for version in catalog.versions))
    return sorted({reference.partition(":")[0] for reference in references if reference})
