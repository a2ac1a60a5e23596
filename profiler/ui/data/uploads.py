"""Reports and bundles that a browser sends, and what the last import of a session did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import streamlit as st

from profiler.bundles import scratch_folder
from profiler.errors import ProfilerError
from profiler.store import ImportSummary, import_paths
from profiler.ui.data.index import store

_LAST_IMPORT = "runs_last_import"  # in the session's state


class Upload(Protocol):
    """A file that a browser sent."""

    name: str

    def getbuffer(self) -> memoryview:
        """The file's bytes."""
        ...


def last_import() -> ImportSummary | None:
    """What the last import of this session did."""
    return st.session_state.get(_LAST_IMPORT)


def import_uploads(files: Sequence[Upload], family: str, version: str | None) -> None:
    """Import what a browser sent, as `profiler import` would, and keep what came of it for the page."""
    if not files:
        raise ProfilerError("no file chosen: drop reports above, or press Upload, until they are listed")
    with scratch_folder() as folder:
        paths = []
        for number, file in enumerate(files):
            # A folder each: two uploads may have one name, and the report keeps its name.
            path = Path(folder, str(number), Path(file.name).name)
            path.parent.mkdir()
            path.write_bytes(file.getbuffer())
            paths.append(path)
        summary = import_paths(paths, family=family, version=version, keep_folder=False, store=store())
    # Messages name the path of the copy here, of which whoever sent the file knows only the name.
    refused, warnings = (
        tuple((Path(path).name, message.replace(path, Path(path).name)) for path, message in messages)
        for messages in (summary.refused, summary.warnings)
    )
    st.session_state[_LAST_IMPORT] = replace(summary, refused=refused, warnings=warnings)
