"""Access to a run's files: all of them as one zip, or one of its reports."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from profiler.bundles import bundle, location, zip_file
from profiler.bundles.dropped import load_dropped
from profiler.bundles.run_json import brief_error
from profiler.errors import BadBundle, UnknownName
from profiler.store.run_decisions import check_run_id


def export_run(run_id: str, target: Path, *, data: str | None = None) -> Path:
    """Write a run as one zip, which can be imported elsewhere; a target folder gets it under the run's id.

    Returns the path of the zip. Raises UnknownName for a run that does not exist.
    """
    root = location.open_root(data)
    check_run_id(root, run_id)
    if (dropped := load_dropped(root, bundle.load_run(root, run_id))) is not None:
        raise BadBundle(f"{run_id}: {dropped.words}; `profiler data backup` takes the run as it is")
    return zip_file.pack(root, run_id, target)


def dropped_report_words(run_id: str, *, data: str | None = None) -> str | None:
    """Who dropped the reports of a run and when, in words; None where it has them. Raises BadBundle."""
    root = location.open_root(data)
    dropped = load_dropped(root, bundle.load_run(root, run_id))
    return None if dropped is None else dropped.words


@contextlib.contextmanager
def open_report(run_id: str, sha256: str, *, data: str | None = None) -> Iterator[Path]:
    """A local path of one of a run's reports, valid while the context lasts.

    Raises UnknownName where the run has no such report, BadBundle where its file is missing or unreadable.
    """
    root = location.open_root(data)
    run = bundle.load_run(root, run_id)
    for file in run.reports:
        if file.sha256 == sha256:
            if (dropped := load_dropped(root, run)) is not None:
                raise BadBundle(f"run {run_id}: {dropped.words}; its numbers are kept")
            with contextlib.ExitStack() as opened:
                try:
                    local = root.open_local(f"{bundle.RUNS_FOLDER}/{run_id}/{file.path}")
                    path = opened.enter_context(local)
                except OSError as error:
                    raise BadBundle(f"run {run_id} has lost {file.path} ({brief_error(error)})") from error
                yield path
            return
    raise UnknownName(f"run {run_id} keeps no report {sha256[:12]}")
