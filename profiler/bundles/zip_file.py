"""How a bundle travels as one zip: packed the same every time, unpacked without trusting what is in it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import struct
import uuid
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from profiler.bundles.bundle import MAX_FILES, RUNS_FOLDER, copy_checked, load_run
from profiler.bundles.location import Root
from profiler.bundles.run import Run
from profiler.bundles.run_json import (
    MAX_RUN_JSON_BYTES,
    RUN_FILE,
    brief_error,
    check_inside,
    dump_run,
    parse_run,
)
from profiler.errors import BadBundle, ProfilerError

# What zipfile makes of a directory takes up to 15 times its bytes; an entry has some 150.
MAX_DIRECTORY_BYTES = 2 << 20
_END = struct.Struct("<4s4H2LH")  # of central directory: entries are fields 3 and 4, bytes field 5
_END_64_LOCATOR_BYTES = 20
_END_64 = struct.Struct("<4sQ2H2L4Q")  # bytes of the directory are field 8
MAX_UNPACKED_BYTES = 8 << 30
MAX_RATIO = 100  # deflate reaches 1000; reports and samples stay below 20
_FREE_BYTES = 64 << 20  # up to here a zip may be of any ratio: unpacking it costs nothing
# RuntimeError: encrypted, or a compression that this Python does not know.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
)


def pack(root: Root, run_id: str, target: Path) -> Path:
    """Write a sealed bundle as one zip; where `target` is a folder, to RUN_ID.zip in it. The zip's path.

    The same bundle gives the same bytes. Raises ProfilerError where the zip cannot be written.
    """
    run = load_run(root, run_id)
    target = zip_path(target, run_id)
    partial = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        partial.touch()
    except OSError as error:
        raise ProfilerError(f"{target} cannot be written: {error.strerror or error}") from error
    try:
        run_json = root.read(f"{RUNS_FOLDER}/{run_id}/{RUN_FILE}")
        _fill(partial, run, run_json, lambda path: root.open_local(f"{RUNS_FOLDER}/{run_id}/{path}"))
        partial.replace(target)
    except OSError as error:
        named = "" if error.filename in (None, str(partial)) else f" ({error.filename})"
        raise ProfilerError(
            f"{run_id} cannot be written to {target}: {error.strerror or error}{named}"
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return target


def zip_path(target: Path, run_id: str) -> Path:
    """Where pack writes the zip of a run: `target`, or RUN_ID.zip in it where it is a folder."""
    return target / f"{run_id}.zip" if os.path.isdir(target) else target


def pack_files(run: Run, sources: Mapping[str, Path], path: Path) -> None:
    """Write a run that is not sealed as one zip; `sources` has the local file of each path inside it."""
    _fill(path, run, dump_run(run), lambda inside: contextlib.nullcontext(sources[inside]))


def _fill(
    path: Path,
    run: Run,
    run_json: bytes,
    open_local: Callable[[str], contextlib.AbstractContextManager[Path]],
) -> None:
    """Write the zip; `open_local` gives a local path with the content of a path inside the bundle."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(f"{run.run_id}/{RUN_FILE}"), run_json)
        for file in run.contents:
            with (
                open_local(file.path) as local,
                local.open("rb") as source,
                archive.open(_entry(f"{run.run_id}/{file.path}"), "w", force_zip64=True) as copy,
            ):
                shutil.copyfileobj(source, copy, 1 << 20)


def is_bundle_zip(path: Path) -> bool:
    """Whether the file is a zip with a run.json at its top or in a folder; one with several is refused."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with _opened(path) as archive:
            return bool(_run_files(archive))
    except BadBundle:
        return True  # so that it is refused aloud
    except _ZIP_ERRORS:
        return False


def _opened(path: Path) -> zipfile.ZipFile:
    """The archive. Raises BadBundle where its directory, which zipfile reads at once, is too large."""
    size = _directory_bytes(path)
    if size > MAX_DIRECTORY_BYTES:
        raise BadBundle(
            f"{path}: its list of files has {size:,} bytes; a bundle has at most {MAX_FILES:,} files "
            f"({MAX_DIRECTORY_BYTES:,} bytes)"
        )
    return zipfile.ZipFile(path)


def _directory_bytes(path: Path) -> int:
    """The size of the directory that zipfile would read, from the records at the end of the file.

    APPNOTE.TXT of PKWARE, 4.3.14 to 4.3.16. The larger one counts, where the two records contradict.
    """
    with path.open("rb") as file:
        records = (1 << 16) + _END.size + _END_64_LOCATOR_BYTES + _END_64.size  # and a comment
        file.seek(max(0, file.seek(0, os.SEEK_END) - records))
        tail = file.read()
    sizes = [0]
    at = tail.rfind(b"PK\5\6")
    while at >= 0:  # a comment may look like such a record: each of them counts
        if at + _END.size <= len(tail):
            sizes.append(_END.unpack_from(tail, at)[5] % 0xFFFFFFFF)
        at = tail.rfind(b"PK\5\6", 0, at)
    at = tail.rfind(b"PK\6\6")
    while at >= 0:
        if at + _END_64.size <= len(tail):
            sizes.append(_END_64.unpack_from(tail, at)[8])
        at = tail.rfind(b"PK\6\6", 0, at)
    return max(sizes)


def unpack(path: Path, into: Path) -> Run:
    """Unpack a bundle's zip into an empty folder: run.json and exactly the files it names.

    Raises BadBundle for anything else in it: paths that lead out, links, files nobody declared, sizes or
    contents that differ from what run.json says, and zips that unpack to far more than they weigh.
    """
    try:
        with _opened(path) as archive:
            return _unpack(archive, path, into)
    except _ZIP_ERRORS as error:
        raise BadBundle(f"{path} is no bundle zip that can be read ({brief_error(error)})") from error


def _unpack(archive: zipfile.ZipFile, path: Path, into: Path) -> Run:
    run_files = _run_files(archive)
    if not run_files:
        raise BadBundle(f"{path} holds no {RUN_FILE}: it is no bundle")
    if len(run_files) > 1:
        raise BadBundle(
            f"{path} holds {len(run_files)} files {RUN_FILE}, and a bundle has one: "
            "unpack it, import the folders that have one each"
        )
    run_file = run_files[0]
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries):
        raise BadBundle(f"{path} is packed otherwise than by deflate: pack it again")
    if len(entries) > MAX_FILES:
        raise BadBundle(f"{path} holds {len(entries)} files; a bundle has at most {MAX_FILES}")
    total = sum(entry.file_size for entry in entries)
    if total > MAX_UNPACKED_BYTES or total > max(_FREE_BYTES, MAX_RATIO * path.stat().st_size):
        raise BadBundle(f"{path} would unpack to {total} bytes: refused as a zip bomb")
    if run_file.file_size > MAX_RUN_JSON_BYTES:
        raise BadBundle(
            f"{path}: its {RUN_FILE} has {run_file.file_size:,} bytes, over {MAX_RUN_JSON_BYTES:,}"
        )
    prefix = run_file.filename.removesuffix(RUN_FILE)
    with archive.open(run_file) as source:
        content = source.read(run_file.file_size + 1)
    run = parse_run(content, f"{path}!{run_file.filename}")
    declared = {file.path: file for file in run.contents}
    by_path = {}
    for entry in entries:
        inside = entry.filename.removeprefix(prefix)
        check_inside(inside, str(path))
        if stat.S_ISLNK(entry.external_attr >> 16) or inside in by_path:
            raise BadBundle(f"{path} holds {entry.filename} as a link or twice")
        if not entry.filename.startswith(prefix) or (inside != RUN_FILE and inside not in declared):
            raise BadBundle(f"{path} holds {entry.filename[:80]!r}, which its {RUN_FILE} does not name")
        by_path[inside] = entry
    for name, file in declared.items():
        if name not in by_path:
            raise BadBundle(f"{path} lacks {name}, which its {RUN_FILE} names")
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(by_path[name]) as source, target.open("xb") as copy:
            copy_checked(source, copy, file)
    (into / RUN_FILE).write_bytes(content)
    return run


def _run_files(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Each run.json at the top or in a folder at the top; a bundle has one."""
    return [
        entry
        for entry in archive.infolist()
        if entry.filename == RUN_FILE or re.fullmatch(rf"[^/]+/{re.escape(RUN_FILE)}", entry.filename)
    ]


def _entry(name: str) -> zipfile.ZipInfo:
    """An entry with a fixed time and mode, so that one bundle always gives the same zip."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry
