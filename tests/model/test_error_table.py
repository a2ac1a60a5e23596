"""The errors that stand beside predictions: whose they are, and that knowing less never narrows a range."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace

import pytest

from profiler.evidence.gpu_arch import ARCHITECTURES
from profiler.model import error_table
from profiler.model.error_table import (
    TABLE_FILE,
    WRITE_COMMAND,
    ErrorTable,
    Known,
    RatioError,
    TimeError,
    load_errors,
    model_digest,
)

ALL_KNOWN = [Known(*flags) for flags in itertools.product((True, False), repeat=3)]


def test_the_table_is_of_the_model_as_it_is() -> None:
    errors = load_errors()
    assert errors.digest == model_digest(errors.architectures), f"the model changed: run {WRITE_COMMAND}"


@pytest.mark.slow
def test_a_row_of_another_architecture_is_another_model_only_where_it_was_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors = load_errors()
    assert "sm_90" in errors.architectures
    assert "sm_121" not in errors.architectures
    for name, is_same in (("sm_121", True), ("sm_90", False)):
        with monkeypatch.context() as patch:
            patch.setitem(ARCHITECTURES, name, replace(ARCHITECTURES[name], l2_latency=1))
            assert (model_digest(errors.architectures) == errors.digest) == is_same


def test_comments_and_docstrings_do_not_make_another_model() -> None:
    plain = 'X = 1\ndef f() -> str:\n    return "# no comment"\n'
    spoken = (
        '"""A module."""\n\nX = 1  # why\n\n\ndef f() -> str:\n    """A text."""\n    # a reason\n'
        '    return "# no comment"\n'
    )
    code = error_table._code_of
    assert code(plain) == code(spoken)
    assert code(plain) != code(plain.replace("1", "2"))


def test_the_repository_has_errors_of_five_repositories_that_nobody_tuned_on() -> None:
    document = json.loads(TABLE_FILE.read_text("utf-8"))
    parts = document["repositories"]
    names = {part: {row["name"] for row in rows} for part, rows in parts.items()}
    assert len(names["unseen"]) == load_errors().repositories >= 5
    assert not names["unseen"] & (names["tuned"] | names["development"])
    assert sum(row["launches"] for row in parts["unseen"]) == load_errors().launches
    assert all(row["commit"] for rows in parts.values() for row in rows)


@pytest.mark.parametrize("seed", range(50))
def test_taking_an_input_away_never_narrows_the_range(seed: int) -> None:
    chance = random.Random(seed)
    cycles = 10 ** chance.uniform(0, 9)
    times = {
        known: TimeError(known, chance.uniform(0.1, 0.9), 1.0, chance.uniform(1.1, 5)) for known in ALL_KNOWN
    }
    table = ErrorTable(times, [RatioError(float("inf"), 1.1, 1.2, 0.9, 5)], 8, 5, "")
    for known in ALL_KNOWN:
        low, high = _range(table, cycles, known)
        assert low < high
        assert low <= cycles / times[known].p90
        assert high >= cycles / times[known].p10
        for index in range(3):
            less = known._replace(**{Known._fields[index]: False})
            wider = _range(table, cycles, less)
            assert wider[0] <= low
            assert wider[1] >= high


def _range(table: ErrorTable, cycles: float, known: Known) -> tuple[float, float]:
    return table.cycles_range(
        cycles, has_traffic=known.traffic, has_controls=known.controls, has_addresses=known.addresses
    )


def test_a_range_is_what_the_quantiles_say() -> None:
    times = {known: TimeError(known, 0.5, 1.0, 1.25) for known in ALL_KNOWN}
    ratios = [RatioError(1.5, 1.1, 1.2, 0.8, 10), RatioError(float("inf"), 1.3, 2.0, 1.0, 10)]
    table = ErrorTable(times, ratios, 10, 5, "")
    assert _range(table, 1000, ALL_KNOWN[0]) == (800, 2000)
    assert table.ratio_range(1.2) == pytest.approx((1.0, 1.44))
    assert table.ratio_range(0.25) == (0.125, 0.5)


@pytest.mark.parametrize("known", ALL_KNOWN)
def test_the_committed_ranges_contain_what_was_predicted_at_the_median(known: Known) -> None:
    table = load_errors()
    low, high = _range(table, 1000, known)
    assert low < 1000 / table.times[known].p50 < high
