"""The documented JSON of every command that answers stays what it was, byte for byte.

After an intended change `python -m tests.golden` writes the files again; name each difference and its reason.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden.commands import FILES, REPORTS, SHIPPED, of_reports, printed
from tests.golden.files import digest, kept_digests


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory: pytest.TempPathFactory, committed_data: Path) -> Iterator[None]:
    folder = shutil.copytree(committed_data, tmp_path_factory.mktemp("golden") / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROFILER_DATA", str(folder))
        patch.delenv("PROFILER_DB", raising=False)
        yield


@pytest.mark.parametrize("name", SHIPPED)
def test_the_json_of_shipped_data_is_what_it_was(name: str) -> None:
    kept = gzip.decompress((FILES / f"{name}.json.gz").read_bytes()).decode()
    assert printed(SHIPPED[name]).splitlines() == kept.splitlines()


def test_no_file_is_kept_for_a_command_that_is_gone() -> None:
    assert {path.name for path in Path(FILES).glob("*.json.gz")} == {f"{name}.json.gz" for name in SHIPPED}


@pytest.mark.slow
@pytest.mark.skipif(not REPORTS.is_dir(), reason="the public reports are not beside the checkout")
def test_the_json_of_public_reports_is_what_it_was() -> None:
    commands, kept = of_reports(), kept_digests()
    changed = [name for name, command in commands.items() if digest(printed(command)) != kept.get(name)]
    assert commands
    assert changed == []
