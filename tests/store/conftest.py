"""The databases that the index is tested on: SQLite, and PostgreSQL where it can be started."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.made import fresh_database

DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.server)]
# Of tests that start many processes, the second kind is left to `make long`.
SQLITE_FIRST = pytest.mark.parametrize(
    "url", ["sqlite", pytest.param("postgresql", marks=[pytest.mark.server, pytest.mark.long])], indirect=True
)


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database of either kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'index.db'}"
        return
    with fresh_database(request.getfixturevalue("postgres")) as database:
        yield database
