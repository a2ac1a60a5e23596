"""Where the data lies: a local folder or any URL that fsspec knows, and how files are read and made there."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from profiler.bundles.scratch import scratch_folder
from profiler.errors import ProfilerError

# Set to anything: this process records no decisions and takes in no runs. Dashboards for reading have it.
READ_ONLY = "PROFILER_READ_ONLY"
PARTIAL_FILE = ".tmp-"  # how the name of a file begins that is being written; a kill leaves it


def is_read_only() -> bool:
    """Whether PROFILER_READ_ONLY keeps this process from changing what people and runs say."""
    return bool(os.environ.get(READ_ONLY))


class Root(Protocol):
    """A place for bundles and decisions. Paths are relative to it and use forward slashes."""

    url: str

    def folders_holding(self, folder: str, name: str) -> list[str]:
        """The subfolders of `folder` that hold a file `name`, sorted."""

    def list_files(self, folder: str, suffix: str) -> list[str]:
        """The names of the files in `folder` that end in `suffix`, sorted; none where it is not there."""

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """The file's content, or its first `max_bytes`; FileNotFoundError where there is none."""

    def write(self, path: str, content: bytes) -> None:
        """Make the file in one step: nobody sees half of it."""

    def put(self, source: Path, path: str) -> None:
        """Copy a local file there."""

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing where there is none."""

    def open_local(self, path: str) -> contextlib.AbstractContextManager[Path]:
        """A local path with the file's content and name, for as long as the context lasts."""

    def cache(self) -> Path:
        """A local folder for what can be made again."""


class LocalRoot:
    """A folder on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = str(folder)

    def folders_holding(self, folder: str, name: str) -> list[str]:
        """See Root."""
        try:
            with os.scandir(self.folder / folder) as entries:
                return sorted(
                    entry.name for entry in entries if os.path.isfile(os.path.join(entry.path, name))
                )
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise data_unusable(self, error) from error

    def list_files(self, folder: str, suffix: str) -> list[str]:
        """See Root."""
        try:
            return sorted(name for name in os.listdir(self.folder / folder) if name.endswith(suffix))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise data_unusable(self, error) from error

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """See Root."""
        with open_regular(self.folder / path) as file:
            return file.read(-1 if max_bytes is None else max_bytes)

    def write(self, path: str, content: bytes) -> None:
        """See Root."""
        target = self.folder / path
        partial = target.parent / f"{PARTIAL_FILE}{uuid.uuid4().hex}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
        except OSError as error:
            error.filename = str(target)  # a full disk names no file, and the partial one says nothing
            raise
        finally:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)

    def put(self, source: Path, path: str) -> None:
        """See Root."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)

    def remove(self, path: str) -> None:
        """See Root."""
        target = self.folder / path
        with contextlib.suppress(FileNotFoundError):
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                target.unlink()

    @contextlib.contextmanager
    def open_local(self, path: str) -> Iterator[Path]:
        """See Root."""
        target = self.folder / path
        if not target.is_file():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target))
        yield target

    def cache(self) -> Path:
        """See Root."""
        return self.folder / "cache"


class RemoteRoot:
    """A URL of any file system that fsspec knows, such as S3: writing a file is one step, renaming is not."""

    def __init__(self, url: str) -> None:
        import fsspec

        self.url = url.rstrip("/")
        try:
            files, base = fsspec.core.url_to_fs(self.url)
        except Exception as error:  # whatever this file system, or the one it lies in, raises
            raise ProfilerError(f"PROFILER_DATA={url} cannot be used: {error}") from error
        self._base = base.rstrip("/")
        self._files: Any = files

    def _path(self, path: str) -> str:
        return f"{self._base}/{path}"

    @contextlib.contextmanager
    def _file_system(self) -> Iterator[Any]:
        """The file system. Whatever it raises comes out as OSError or ProfilerError."""
        try:
            yield self._files
        except OSError:
            raise
        except Exception as error:
            raise ProfilerError(
                f"the data in {self.url} cannot be used: {type(error).__name__}: {error}; "
                "PROFILER_DATA names another place"
            ) from error

    def folders_holding(self, folder: str, name: str) -> list[str]:
        """See Root."""
        with self._file_system() as files:
            paths = files.glob(self._path(f"{folder}/*/{name}"))
        return sorted(str(path).rstrip("/").rsplit("/", 2)[-2] for path in paths)

    def list_files(self, folder: str, suffix: str) -> list[str]:
        """See Root."""
        with self._file_system() as files:
            paths = files.glob(self._path(f"{folder}/*{suffix}"))
        return sorted(str(path).rsplit("/", 1)[-1] for path in paths)

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """See Root."""
        with self._file_system() as files:
            return bytes(files.cat_file(self._path(path), start=None, end=max_bytes))

    def write(self, path: str, content: bytes) -> None:
        """See Root."""
        with self._file_system() as files:
            files.makedirs(self._path(path).rsplit("/", 1)[0], exist_ok=True)
            files.pipe_file(self._path(path), content)

    def put(self, source: Path, path: str) -> None:
        """See Root."""
        with self._file_system() as files:
            files.makedirs(self._path(path).rsplit("/", 1)[0], exist_ok=True)
            files.put_file(str(source), self._path(path))

    def remove(self, path: str) -> None:
        """See Root."""
        with self._file_system() as files, contextlib.suppress(FileNotFoundError):
            files.rm(self._path(path), recursive=True)

    @contextlib.contextmanager
    def open_local(self, path: str) -> Iterator[Path]:
        """See Root."""
        with scratch_folder() as folder:
            target = folder / path.rsplit("/", 1)[-1]
            with self._file_system() as files:
                files.get_file(self._path(path), str(target))
            yield target

    def cache(self) -> Path:
        """See Root."""
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(base) / "profiler" / sha256(self.url.encode()).hexdigest()[:16]


def open_regular(path: Path, inside: Path | None = None) -> BinaryIO:
    """Open a regular file to read. A pipe, device or socket is an OSError at once: opening one can block.

    inside: the folder out of which no link may lead.
    """
    if inside is not None and not path.resolve().is_relative_to(inside.resolve()):
        raise OSError(errno.EPERM, f"a link that leads out of {inside}", str(path))
    # Without O_NONBLOCK, opening a pipe waits for whoever writes into it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    code, words = (errno.EISDIR, "a folder") if stat.S_ISDIR(mode) else (errno.EINVAL, "not a regular file")
    raise OSError(code, words, str(path))


def data_unusable(where: Root, error: OSError) -> ProfilerError:
    """The error for a data folder that cannot be read or written."""
    reason = error.strerror or str(error)
    return ProfilerError(
        f"the data in {where.url} cannot be used: {reason}"
        f"{f' ({error.filename})' if error.filename else ''}; PROFILER_DATA names another place"
    )


def check_writable(where: Root) -> None:
    """Raise ProfilerError where PROFILER_READ_ONLY is set; the index and caches are not meant."""
    if is_read_only():
        raise ProfilerError(f"the data in {where.url} is for reading only here: {READ_ONLY} is set")


def open_root(url: str | None = None, *, for_runs: bool = False) -> Root:
    """The root at `url`, else at PROFILER_DATA, else data/ in the working directory, else beside the package.

    for_runs: new runs are to be put there. They never go beside the package unasked, unless that is where the
    user works: outside a clone data/ is made in the working directory. Raises ProfilerError for a URL that
    cannot be used.
    """
    named = os.environ.get("PROFILER_DATA") or None
    if url is None and named is not None and named.startswith("memory:"):
        raise ProfilerError(f"PROFILER_DATA={named} is gone with the command that fills it: name a folder")
    url = url or named
    if url is None:
        here, clone = Path("data"), Path(__file__).resolve().parents[2]
        is_elsewhere = for_runs and not Path.cwd().resolve().is_relative_to(clone)
        takes_clone = (clone / "data").is_dir() and not here.is_dir() and not is_elsewhere
        return LocalRoot((clone / "data" if takes_clone else here).absolute())
    if url.startswith("file://"):
        return LocalRoot(_path_of(url))
    if "://" in url or "::" in url:
        return RemoteRoot(url)
    return LocalRoot(Path(os.path.expanduser(url)).absolute())


def index_location(where: Root, url: str | None = None) -> str | Path:
    """Where the index of a root lies: at `url`, else at PROFILER_DB, else in a SQLite file beside the data.

    A SQLAlchemy URL or a path. The SQLite file is given as a path, since a URL cannot hold every path: what
    follows a `?` is no path to SQLAlchemy.
    """
    folder = where.folder if isinstance(where, LocalRoot) else where.cache()
    return url or os.environ.get("PROFILER_DB") or folder / "index.db"


def _path_of(url: str) -> Path:
    """The path in a file:// URL, of this machine only."""
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise ProfilerError(f"PROFILER_DATA={url} is on {parts.netloc}: a file:// URL names a path here")
    if parts.query or parts.fragment or not parts.path:
        raise ProfilerError(f"PROFILER_DATA={url} is no path: write ? as %3F and # as %23, or a plain path")
    return Path(unquote(parts.path)).absolute()
