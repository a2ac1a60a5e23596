"""Launches of strangers' reports: which pair, by what, and their verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

import profiler
from profiler.errors import Exit

STRANGERS = Path(__file__).resolve().parents[2].parent / "shared" / "strangers"
pytestmark = pytest.mark.skipif(not STRANGERS.is_dir(), reason=f"no {STRANGERS}")

ROWS = {
    "three configurations in another order": ("11/order_a", "11/order_b", ["same"] * 3, Exit.PASS),
    "12 launches beside 10": ("20/reps12", "20/reps10", ["same"], Exit.PASS),
    "10 launches beside 10": ("20/reps10", "20/reps10_slow", ["worse"], Exit.REGRESSION),
    "12 beside 10 that are slower": ("20/reps12", "20/reps10_slow", ["worse"], Exit.REGRESSION),
    "casts of template arguments": ("27/plain", "27/casts", ["same"] * 2, Exit.PASS),
    "a common prefix": ("22/fa_before", "22/fa_after", ["same", "same", "worse"], Exit.REGRESSION),
    "Triton's suffix": ("22/t_a", "22/t_b", ["worse"], Exit.REGRESSION),
}


@pytest.mark.parametrize(("a", "b", "verdicts", "code"), ROWS.values(), ids=ROWS)
def test_a_row_has_its_right_answer(a: str, b: str, verdicts: list[str], code: Exit) -> None:
    before, after = (str(STRANGERS / f"{name}.csv") for name in (a, b))
    compared = profiler.compare(before, after)
    assert sorted(pair.verdict.value for pair in compared.comparison.pairs) == verdicts
    assert not compared.comparison.ambiguous
    assert profiler.gate([after], baseline=before).exit_code is code
    if a.startswith("20/"):
        (change,) = (pair.headline for pair in compared.comparison.pairs)
        assert change is not None
        assert change.interval is not None
