"""Which worker takes which tests, and when: what conftest.py says by the names of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import FIRST, ROOT, SPREAD, TOGETHER, taken_at_once, turn

TESTS = Path(__file__).resolve().parent


@pytest.mark.parametrize("name", [*FIRST, *SPREAD])
def test_a_file_with_a_turn_of_its_own_is_one_file(name: str) -> None:
    assert len(list(TESTS.rglob(name))) == 1


def test_a_worker_takes_one_test_of_a_file_that_is_spread_and_all_of_another() -> None:
    spread, whole = f"tests/model/{SPREAD[-1]}", f"tests/emulator/{FIRST[-1]}"
    assert taken_at_once(f"{spread}::test_it[v1-sm_80]") != taken_at_once(f"{spread}::test_it[v1-sm_89]")
    assert taken_at_once(f"{whole}::test_it[v1]") == taken_at_once(f"{whole}::TestIt::test_it") == whole


def test_a_worker_takes_a_folder_that_is_together_before_other_files() -> None:
    files = [str(path.relative_to(ROOT)) for path in (ROOT / TOGETHER).glob("test_*.py")]
    assert len(files) > 2
    assert {taken_at_once(f"{file}::test_it") for file in files} == {TOGETHER}
    assert {turn(f"{file}::test_it") for file in files} == {len(FIRST)}
    others = [turn(f"tests/model/{name}::test_it") for name in (*FIRST, "test_traffic.py", *SPREAD)]
    assert others == sorted(others)
    assert len(FIRST) not in others
