"""Reports and bundles that a browser sends, and what the last import of a session did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import BoundedSemaphore
from typing import Protocol

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from profiler.bundles.location import open_root
from profiler.bundles.scratch import scratch_folder
from profiler.documents import changes as documents_changes
from profiler.documents.changes import ChangesDocument
from profiler.errors import ProfilerError
from profiler.store.begin_import import import_paths
from profiler.store.import_files import ImportSummary
from profiler.ui.data.index import store
from profiler.ui.upload_limits import take_refused

_TURNS = BoundedSemaphore(2)
_WAIT_S = 60.0
_NAME_BYTES, _SUFFIX_CHARACTERS = 150, 20  # file systems take 255 bytes, of characters of up to four
_CODE_SHOWN = 3  # functions that changed whose code the page Changes shows
_CHANGES = "changes_answer"  # in the session's state
_LAST_IMPORT = "runs_last_import"  # in the session's state
_NOT_TAKEN, _NOT_TAKEN_BEFORE = "runs_not_taken", "runs_not_taken_before"  # there too


class Upload(Protocol):
    """A file that a browser sent."""

    name: str

    def getvalue(self) -> bytes:
        """The file's bytes; getbuffer would copy them."""
        ...


def file_name(name: str) -> str:
    """The name under which an uploaded file is kept: a browser may send any text, such as `..`."""
    name = name.replace("\\", "/").replace("\0", "").rpartition("/")[2]
    if name in ("", ".", ".."):
        return "upload"
    suffix = Path(name).suffix[-_SUFFIX_CHARACTERS:]
    stem = name.removesuffix(suffix).encode(errors="replace")[:_NAME_BYTES].decode(errors="ignore")
    return f"{stem}{suffix}"


@contextmanager
def _turn() -> Iterator[None]:
    """One of the few imports at a time: each may have a process that reads, with memory of its own."""
    if not _TURNS.acquire(timeout=_WAIT_S):
        raise ProfilerError("the server is busy with other uploads: nothing was read, try again later")
    try:
        yield
    finally:
        _TURNS.release()


def _drop(file: Upload) -> None:
    """Let go of what was uploaded: the server would hold it, and count it, as long as the page is open."""
    context = get_script_run_ctx()
    if context is None or not isinstance(file, UploadedFile):
        return
    if isinstance(manager := context.uploaded_file_mgr, MemoryUploadedFileManager):
        manager.remove_file(context.session_id, file.file_id)


def last_import() -> ImportSummary | None:
    """What the last import of this session did."""
    return st.session_state.get(_LAST_IMPORT)


def not_taken() -> Mapping[str, int]:
    """How many files of this session the server did not take, by the reason.

    They are those since the last import, or, where none came since, those before it.
    """
    context = get_script_run_ctx()
    since: Counter[str] = st.session_state.setdefault(_NOT_TAKEN, Counter())
    since.update(take_refused(context.session_id) if context is not None else {})
    before: Counter[str] = st.session_state.get(_NOT_TAKEN_BEFORE, Counter())
    return since or before


def code_changes(old: UploadedFile, new: UploadedFile, kernel: str) -> ChangesDocument:
    """What changed between two builds, as `profiler changes` says it; kept while the page shows these files.

    Raises what the command raises, in which the files have the names that they were sent with.
    """
    asked = old.file_id, new.file_id, kernel
    kept: tuple[object, ChangesDocument] | None = st.session_state.get(_CHANGES)
    if kept is not None and kept[0] == asked:
        return kept[1]
    with scratch_folder() as folder, _turn():
        paths = [_written(file, folder / str(number)) for number, file in enumerate((old, new))]
        try:
            document = documents_changes.code_changes(
                str(paths[0]), str(paths[1]), kernel=kernel or None, code=_CODE_SHOWN
            )
        except ProfilerError as error:
            raise type(error)(str(error).replace(f"{folder}/0/", "").replace(f"{folder}/1/", "")) from None
    st.session_state[_CHANGES] = asked, document
    return document


def _written(file: Upload, folder: Path) -> Path:
    """The file in a folder of its own: two uploads may have one name, and a report keeps its name."""
    path = folder / file_name(file.name)
    path.parent.mkdir()
    path.write_bytes(file.getvalue())
    return path


def import_uploads(files: Sequence[Upload], family: str, version: str | None) -> None:
    """Import what a browser sent, as `profiler import` would, and keep what came of it for the page."""
    if not files:
        raise ProfilerError(
            "no file chosen: drop reports above or press Upload, and wait until they are listed"
        )
    st.session_state[_NOT_TAKEN_BEFORE] = Counter(not_taken())
    st.session_state[_NOT_TAKEN] = Counter()
    with scratch_folder() as folder, _turn():
        paths = []
        for number, file in enumerate(files):
            paths.append(_written(file, folder / str(number)))
            _drop(file)
        summary = import_paths(
            paths, family=family, version=version, data=open_root().url, keep_folder=False, store=store()
        )
    # Messages name the path of the copy here, of which whoever sent the file knows only the name.
    refused, warnings = (
        tuple((Path(path).name, message.replace(path, Path(path).name)) for path, message in messages)
        for messages in (summary.refused, summary.warnings)
    )
    st.session_state[_LAST_IMPORT] = replace(summary, refused=refused, warnings=warnings)
