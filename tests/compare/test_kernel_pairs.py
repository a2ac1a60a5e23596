"""Pairs of kernels that somebody declared: how they are written, what they pair, how they are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profiler.bundles import decisions, location
from profiler.compare.comparison import compare
from profiler.compare.kernel_pairs import (
    KernelPair,
    Pairing,
    captures,
    check_asked,
    keep_pair,
    list_kept_pairs,
    pairs_digest,
    pairs_of,
    parse_pair,
    withdraw_pair,
)
from profiler.compare.match_launches import PairedBy, match
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.store.index import Store
from tests.compare.test_propose_pairs import launch, pairs, side
from tests.made import imported
from tests.made import launch as made_launch

V6_IS_V7 = KernelPair("gemm_v6", "gemm_v7")


def test_a_pair_is_written_with_one_equals_sign() -> None:
    assert parse_pair("gemm_v6 = gemm_v7") == V6_IS_V7
    assert (
        pairs_of({"gemm_v6": "gemm_v7"}) == pairs_of([("gemm_v6", "gemm_v7")]) == pairs_of("gemm_v6=gemm_v7")
    )
    assert pairs_of([V6_IS_V7]) == (V6_IS_V7,)


@pytest.mark.parametrize("text", ["gemm_v6", "=gemm", "gemm=", "a=b=c", "regex:(=b"])
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ProfilerError, match=r"^pair ") as refused:
        parse_pair(text)
    assert "\n" not in str(refused.value)


def test_a_name_is_the_whole_name_and_a_pattern_says_what_it_stands_for() -> None:
    assert captures("gemm", "gemm") == ()
    assert captures("gemm", "gemm_v6") is None
    assert captures("*_v?", "GEMM_v6") == ("GEMM", "6")
    assert captures("regex:(gemm|silu)_v\\d", "ns::silu_v7") == ("silu",)


def test_a_pair_that_was_asked_for_comes_before_equal_names() -> None:
    a = side(launch("gemm_v6"))
    b = side(launch("gemm_v6"), launch("gemm_v7", grid=(8, 1, 1)))
    assert pairs(match(a, b)) == [("gemm_v6", "gemm_v6", "name")]
    matching = match(a, b, asked=[V6_IS_V7])
    assert pairs(matching) == [("gemm_v6", "gemm_v7", "declared")]
    assert [x.base_name for x in matching.only_in_b] == ["gemm_v6"]


def test_a_kept_pair_comes_after_equal_names_and_holds_in_both_directions() -> None:
    both, new = side(launch("gemm_v6"), launch("gemm_v7")), side(launch("gemm_v7"))
    assert pairs(match(both, new, kept=[V6_IS_V7])) == [("gemm_v7", "gemm_v7", "name")]
    old, new = side(launch("gemm_v6", grid=(4, 1, 1))), side(launch("gemm_v7"))
    assert pairs(match(old, new, kept=[V6_IS_V7])) == [("gemm_v6", "gemm_v7", "declared")]
    assert pairs(match(new, old, kept=[V6_IS_V7])) == [("gemm_v7", "gemm_v6", "declared")]


def test_alike_launches_of_a_declared_pair_go_in_order_as_far_as_both_sides_do() -> None:
    a = side(*(launch("rows", ns=ns) for ns in (1.0, 2.0, 3.0)))
    b = side(*(launch("rows_float4", grid=(16, 1, 1)) for _ in range(4)))
    matching = match(a, b, asked=[KernelPair("rows", "rows_float4")])
    assert [(x.ordinal, y.ordinal) for x, y, *_ in matching.pairs] == [(0, 0), (1, 1), (2, 2)]
    assert [x.ordinal for x in matching.only_in_b] == [3]


def test_two_patterns_pair_the_kernels_for_which_they_stand_for_the_same() -> None:
    a = side(launch("gemm_v6"), launch("sum_v6"))
    b = side(launch("sum_v7"), launch("gemm_v7"))
    found = pairs(match(a, b, asked=[KernelPair("*_v6", "*_v7")]))
    assert found == [("gemm_v6", "gemm_v7", "declared"), ("sum_v6", "sum_v7", "declared")]
    found = pairs(match(a[:1], b[1:], asked=[KernelPair("gemm_*", "gemm_*")]))
    assert found == [("gemm_v6", "gemm_v7", "declared")], "a single kernel a side needs no equal text"
    assert not match(a, b, asked=[KernelPair("regex:v6", "gemm_v7")], propose=False).pairs[1:]


def test_a_declared_pair_keeps_to_the_ranges_that_both_sides_have() -> None:
    a = side(launch("gemm_v6", nvtx=("first",)), launch("gemm_v6", nvtx=("second",)))
    b = side(launch("gemm_v7", nvtx=("second",)), launch("gemm_v7", nvtx=("first",)))
    matching = match(a, b, asked=[V6_IS_V7])
    assert [(x.ordinal, y.ordinal) for x, y, *_ in matching.pairs] == [(0, 1), (1, 0)]


def test_a_pair_of_kernels_that_are_not_there_is_a_mistake() -> None:
    a, b = Side("A", (launch("gemm_v6"),)), Side("B", (launch("gemm_v8"),))
    with pytest.raises(UnknownName, match="no kernel of B is called gemm_v7; there are gemm_v8"):
        check_asked([V6_IS_V7], [(a, b)])
    check_asked([KernelPair("gemm_v6", "gemm_v8")], [(b, a), (a, b)])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = Store.open(tmp_path / "index.db")
    opened.add(*imported("v6", made_launch("gemm_v6")))
    opened.add(*imported("v7", made_launch("gemm_v7"), minute=1))
    return opened


def test_a_kept_pair_is_a_decision_that_a_later_one_undoes(tmp_path: Path, store: Store) -> None:
    root = location.open_root(str(tmp_path))
    before = pairs_digest(root)
    kept = keep_pair(root, store, "gemms", V6_IS_V7, why="renamed", who="ann")
    assert pairs_digest(root) != before
    assert keep_pair(root, store, "gemms", V6_IS_V7.reversed) == kept, "said twice, kept once"
    assert list_kept_pairs(decisions.load_decisions(root)) == [kept]
    pairing = Pairing.of_data(str(tmp_path))
    assert pairing.kept("gemms") == [V6_IS_V7]
    assert not pairing.kept("others")
    with pytest.raises(UnknownName, match="no pair is called nothing"):
        withdraw_pair(root, "nothing")
    assert withdraw_pair(root, kept.id[:20]) == kept
    assert not list_kept_pairs(decisions.load_decisions(root))


def test_a_pair_of_kernels_that_the_family_lacks_is_not_kept(tmp_path: Path, store: Store) -> None:
    root = location.open_root(str(tmp_path))
    with pytest.raises(UnknownName, match="no kernel of gemms is called gemm_v9"):
        keep_pair(root, store, "gemms", KernelPair("gemm_v6", "gemm_v9"))
    with pytest.raises(UnknownName, match="no family 'gems'"):
        keep_pair(root, store, "gems", V6_IS_V7)
    assert not decisions.load_decisions(root)


def test_a_kept_pair_holds_for_its_family_alone() -> None:
    pairing = Pairing(kept={"gemms": [V6_IS_V7]}.get, propose=False)  # type: ignore[arg-type]
    a, b = Side("A", (launch("gemm_v6"),)), Side("B", (launch("gemm_v7"),), family="gemms")
    (pair,) = compare(a, b, load_metrics(), pairing=pairing).pairs
    assert pair.paired_by is PairedBy.DECLARED
    assert pair.labels == ("gemm_v6", "gemm_v7")
    pairing = Pairing(kept=lambda family: [V6_IS_V7] if family == "other" else [], propose=False)
    assert not compare(a, b, load_metrics(), pairing=pairing).pairs
    assert not compare(a, replace(b, family=None), load_metrics(), pairing=pairing).pairs
