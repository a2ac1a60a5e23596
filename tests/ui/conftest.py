"""A data folder with real reports in it, and one with none, for the pages."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.components.v2.manifest_scanner import scan_component_manifests

from profiler.store.begin_import import import_paths
from tests.reportfiles import is_made

FOLDERS = ("cutlass", "esmm", "hyperspec", "llm.c", "mistic", "ncar")


def import_all(reports: Path, data: Path) -> None:
    """Import all 16 reports into a data folder."""
    summary = import_paths([reports / name for name in FOLDERS], data=str(data))
    assert not summary.refused
    assert len(summary.imported) == 16


@pytest.fixture(scope="session")
def made_data(made_reports: Path, made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """The 16 made reports, imported; for pages that only read."""
    return made_once("made-data", lambda data: import_all(made_reports, data))


@pytest.fixture(scope="session")
def full_data(
    request: pytest.FixtureRequest, reports: Path, made_once: Callable[[str, Callable[[Path], object]], Path]
) -> Path:
    """The 16 reports of either kind, imported; for pages that only read."""
    if is_made(reports):
        made: Path = request.getfixturevalue("made_data")
        return made
    return made_once("public-data", lambda data: import_all(reports, data))


@pytest.fixture(scope="session", autouse=True)
def packages_scanned_once() -> Iterator[None]:
    """Streamlit looks through all installed packages for components once, and not for each page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(scan_component_manifests))
        yield


@pytest.fixture
def pages_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pages that share no cache with the test before."""
    monkeypatch.delenv("PROFILER_DB", raising=False)
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()
