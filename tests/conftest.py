"""The report files that tests read: made ones always, public ones where they lie beside the checkout."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path

import pytest

from tests.reportfiles import made_reports as reportfiles

ROOT = Path(__file__).resolve().parent.parent
# PROFILER_TEST_REPORTS names another folder; one that is absent makes the tests run as in a bare clone.
REPORTS = Path(os.environ.get("PROFILER_TEST_REPORTS") or ROOT.parent / "shared" / "reports")
READ_PUBLIC = ("ui", "browser")  # rooms whose tests do not read made reports yet
FAMILIES = ("cutlass", "esmm", "hyperspec", "llm.c", "mistic", "ncar")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of `reports` on the made ones and, where they are, on the public ones."""
    if "reports" in metafunc.fixturenames:
        made = not any(f"/tests/{room}/" in str(metafunc.definition.path) for room in READ_PUBLIC)
        kinds = ["made"] * made + ["public"] * (REPORTS.is_dir() or not made)
        metafunc.parametrize("reports", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def made_reports(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of reports made by tests/reportfiles, laid out as the public ones. Read-only."""
    cache = getattr(pytestconfig, "cache", None)
    folder = cache.mkdir("made-reports") if cache else tmp_path_factory.getbasetemp().parent / "made-reports"
    folder.mkdir(exist_ok=True)
    written_by = Path(reportfiles.__file__).parent
    sources = sorted(path for kind in ("*.py", "*.zip", "*.csv") for path in written_by.rglob(kind))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    made = folder / digest
    with (folder / "lock").open("w") as lock:  # workers of one run share what the first of them makes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "README.md").is_file():  # written last
            reportfiles.write(made)
    return made


@pytest.fixture(scope="session")
def public_reports() -> Path:
    """The folder of public reports; never part of this repository."""
    if not REPORTS.is_dir():
        pytest.skip(f"no public reports at {REPORTS}: they lie beside the checkout, not in it")
    return REPORTS


@pytest.fixture(scope="session")
def reports(request: pytest.FixtureRequest) -> Path:
    """A folder of reports: the made ones, and in a run of its own the public ones."""
    folder: Path = request.getfixturevalue(f"{request.param}_reports")
    return folder


@pytest.fixture(scope="session")
def good_reports(reports: Path) -> list[Path]:
    """The 16 undamaged reports."""
    return sorted(path for family in FAMILIES for path in (reports / family).glob("*.ncu-rep"))
