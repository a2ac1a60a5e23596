"""Where the real reports lie, and what a test does where they do not."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# PROFILER_TEST_REPORTS names another folder; one that is absent makes the tests run as in a bare clone.
REPORTS = Path(os.environ.get("PROFILER_TEST_REPORTS") or ROOT.parent / "shared" / "reports")
FAMILIES = ("cutlass", "esmm", "hyperspec", "llm.c", "mistic", "ncar")


@pytest.fixture(scope="session")
def reports() -> Path:
    """The folder of public reports that tests read; never part of this repository."""
    if not REPORTS.is_dir():
        pytest.skip(f"no public reports at {REPORTS}: they lie beside the checkout, not in it")
    return REPORTS


@pytest.fixture(scope="session")
def good_reports(reports: Path) -> list[Path]:
    """The 16 undamaged reports."""
    return sorted(path for family in FAMILIES for path in (reports / family).glob("*.ncu-rep"))
