"""Many rows at once."""

from __future__ import annotations

import numpy as np

from profiler.statistics import multiple_testing
from profiler.statistics.decision import Decision
from profiler.statistics.multiple_testing import judge_together
from profiler.statistics.verdict import Verdict


def row(effect: float, p: float | None) -> Decision:
    word = Verdict.WORSE if effect > 0 else Verdict.BETTER
    return Decision(word, "moved", "live pair", effect=effect, p=p, fails_gate=effect > 0)


def test_the_step_up_procedure_on_its_textbook_case() -> None:
    """Benjamini and Hochberg 1995, section 3.1: fifteen p-values, of which the first four stand at .05."""
    p = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
        0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000,
    ]  # fmt: skip
    assert multiple_testing.discoveries(np.array(p)).tolist() == [True] * 4 + [False] * 11


def test_a_row_that_stands_takes_all_smaller_p_with_it() -> None:
    assert multiple_testing.discoveries(np.array([0.04, 0.045, 0.049])).all(), (
        "each fails its own step but the last"
    )


def test_nan_is_no_test_and_tables_are_apart() -> None:
    p = np.array([[0.001, np.nan, 0.9], [0.5, np.nan, 0.9]])
    assert multiple_testing.discoveries(p).tolist() == [[True, False, False], [False, False, False]]
    assert multiple_testing.discoveries(np.array([])).tolist() == []


def test_quiet_tables_show_nothing_and_planted_rows_stand() -> None:
    rng = np.random.default_rng(3)
    p, effects = rng.random(1500), rng.normal(0, 0.003, 1500)
    assert not multiple_testing.which_stand(effects, p).any()
    p[:20], effects[:20] = 1e-7, 0.03
    assert multiple_testing.which_stand(effects, p).nonzero()[0].tolist() == list(range(20))


def test_rows_that_chance_explains_are_unclear_and_tiny_ones_the_same() -> None:
    table = [row(0.02, 0.02), row(0.03, 1e-9), row(0.006, 1e-9), *(row(0.0, 0.9) for _ in range(40))]
    judged = judge_together(table)
    assert [decision.verdict for decision in judged[:3]] == [Verdict.UNCLEAR, Verdict.WORSE, Verdict.SAME]
    assert not judged[0].fails_gate
    assert judged[1].fails_gate
    assert "43 comparisons" in judged[0].reason


def test_the_headline_is_a_family_of_its_own_and_exact_rows_are_no_tests() -> None:
    rest = [row(0.0, 0.9) for _ in range(40)]
    judged = judge_together([row(0.02, 0.02), row(0.02, None), *rest], headline=[True])
    assert judged[0].verdict is Verdict.WORSE
    assert judged[1].verdict is Verdict.WORSE


def test_a_single_row_is_no_table_and_two_are() -> None:
    tiny = row(0.006, 1e-9)
    assert judge_together([tiny, row(0.02, None)]) == (tiny, row(0.02, None))
    assert [one.verdict for one in judge_together([tiny, tiny])] == [Verdict.SAME, Verdict.SAME]
