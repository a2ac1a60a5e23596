"""A data folder with real reports in it, and one with none, for the pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st

from profiler.store import import_paths

FOLDERS = ("cutlass", "esmm", "hyperspec", "llm.c", "mistic", "ncar")


@pytest.fixture(scope="session")
def full_data(reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All 16 reports, imported."""
    data = tmp_path_factory.mktemp("full")
    summary = import_paths([reports / name for name in FOLDERS], data=str(data))
    assert not summary.refused
    assert len(summary.imported) == 16
    return data


@pytest.fixture
def pages_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pages that share no cache with the test before."""
    monkeypatch.delenv("PROFILER_DB", raising=False)
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()
