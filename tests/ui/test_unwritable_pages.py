"""Pages over data that cannot be written: they show what the index has."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from profiler.store import engine
from profiler.store.readable_index import open_store
from tests.ui.test_pages import page, text

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "data" / "runs").glob("*-example-*"))


@pytest.mark.slow
@pytest.mark.usefixtures("pages_of")
def test_a_page_on_a_full_disk_shows_the_runs_of_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("PROFILER_DATA", str(data))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    for number, path in enumerate(EXAMPLES):
        shutil.copytree(path, data / "runs" / path.name)
        if number == 1:
            open_store().close()
    prepare = engine._prepare_sqlite

    def prepared(connection: Any, record: Any) -> None:
        prepare(connection, record)
        connection.execute("PRAGMA max_page_count=1")  # SQLite takes it for the pages that there are

    monkeypatch.setattr(engine, "_prepare_sqlite", prepared)
    shown = text(page("runs", data, monkeypatch))
    assert "2 runs of" in shown
    assert "database or disk is full; check the space on the disk" in shown
    assert "read-only" not in shown
    assert "keep one at another place, such as PROFILER_DB=" in shown
