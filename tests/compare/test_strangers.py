"""Launches of strangers' reports: which pair, by what, and their verdicts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import profiler
from profiler.cli import main
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


def test_the_interval_of_several_launches_stands_beside_the_change(
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow, few, many = (str(STRANGERS / f"20/{name}.csv") for name in ("reps10_slow", "reps10", "reps12"))
    for option in ([], ["--markdown"]):
        assert main(["compare", few, slow, *option]) == Exit.PASS
        printed = capsys.readouterr().out
        assert "intervals are 99 %, of medians of several launches" in printed
        (row,) = (line for line in printed.splitlines() if "240 µs" in line and "attn_fwd" in line)
        assert re.search(r"\+20\.0 %[ |]+\+19\.\d+ % to \+20\.\d+ %[ |]+! worse", row)
        assert main(["compare", many, few, *option]) == Exit.PASS
        (row,) = (line for line in capsys.readouterr().out.splitlines() if re.search(r"= same( \|)?$", line))
        assert re.search(r"±0 %[ |]+−0\.\d+ % to \+0\.\d+ %", row)
    assert main(["compare", *(str(STRANGERS / f"22/{name}.csv") for name in ("t_a", "t_b"))]) == Exit.PASS
    assert "interval" not in capsys.readouterr().out
