"""The tables' statements, and what the index of SQLite does not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

from profiler.store import schema


@pytest.mark.parametrize("driver", ["sqlite+pysqlite", "postgresql+psycopg"])
def test_partial_indexes_keep_their_conditions(driver: str) -> None:
    if driver.startswith("postgresql"):
        pytest.importorskip("psycopg")
    partial = {
        words[2]: statement.partition("WHERE ")[2].strip()
        for statement in schema._statements(driver)
        if (words := statement.split())[:2] == ["CREATE", "INDEX"] and "WHERE " in statement
    }
    latest = "is_latest = 1" if driver.startswith("sqlite") else "is_latest"
    status = "status <> 'done'" if driver.startswith("sqlite") else "result.status <> 'done'"
    assert partial == {
        "result_latest": latest,
        "result_latest_by_version": latest,
        "result_latency": "kind = 'latency'",
        "result_noise": "kind = 'noise'",
        "result_undone": status,
    }


@pytest.mark.slow
def test_an_index_in_sqlite_loads_no_dialect_of_postgresql() -> None:
    code = (
        "import sys; from profiler.store import index, schema; schema._statements('sqlite+pysqlite');"
        "sys.exit('sqlalchemy.dialects.postgresql' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
