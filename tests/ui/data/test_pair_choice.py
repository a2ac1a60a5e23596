"""Which pair of launches and which mode a diff opens with."""

from pathlib import Path

import pytest

from profiler.compare.comparison import Comparison
from profiler.ui.data.pair_choice import choose_mode, choose_pair
from tests.ui.views.test_launch_pairs import of


@pytest.fixture(scope="module")
def esmm(reports: Path) -> Comparison:
    return of(reports, "esmm/profile@5c6231e5", "esmm/profile@049ec612")


def test_the_first_pair_shown_has_a_duration_on_both_sides(esmm: Comparison) -> None:
    pair = choose_pair(esmm, None)
    assert pair is not None
    assert pair.kernel == "basic"


def test_the_address_chooses_the_pair_though_a_duration_failed(esmm: Comparison) -> None:
    pair = choose_pair(esmm, "one_d_vec")
    assert pair is not None
    assert pair.kernel == "one_d_vec"


def test_where_no_calls_were_timed_there_is_no_mode(esmm: Comparison) -> None:
    assert choose_mode(esmm, "events; cache warm; clock none") is None
