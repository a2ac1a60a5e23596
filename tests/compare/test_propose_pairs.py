"""Which launches of different names are proposed as pairs, and which never are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from profiler.compare.comparison import compare
from profiler.compare.kernel_pairs import Pairing
from profiler.compare.match_launches import Matching, PairedBy, match
from profiler.compare.propose_pairs import may_be_one_kernel, name_stem, opcode_overlap
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Value, pack_values

Size = tuple[int, int, int]
GEMM = {"HMMA": 900.0, "LDSM": 60.0, "IMAD": 40.0}
FILL = {"STG": 500.0, "IMAD": 300.0, "MOV": 200.0}


def launch(
    function: str,
    ordinal: int = 0,
    *,
    grid: Size | None = (64, 1, 1),
    block: Size | None = (128, 1, 1),
    nvtx: tuple[str, ...] = (),
    opcodes: Mapping[str, float] | None = None,
    ns: float = 1e5,
) -> Launch:
    values = pack_values({"gpu__time_duration.sum": Value(ns, "ns")})
    demangled = f"void {function}(float*)"
    return Launch(function, demangled, "", grid, block, 7, nvtx, ordinal, values, opcodes or {})


def side(*launches: Launch) -> list[Launch]:
    return [replace(one, ordinal=place) for place, one in enumerate(launches)]


def pairs(matching: Matching) -> list[tuple[str, str, str]]:
    return [(x.base_name, y.base_name, by.value) for x, y, by, _ in matching.pairs]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("gemm_v6_2", "gemm_v7_3"),
        ("rms_norm_matrix_kernel", "rms_norm_matrix_kernel_float4"),
        ("silu_naive", "silu"),
        ("conv2d_baseline", "conv2d_variant_1"),
        ("nodeByPoint", "nodeByPoint5"),
        ("matrix_addition2D", "matrix_addition1D_strided"),
        ("ampere_sgemm_128x32_tn", "ampere_sgemm_64x64_tn"),
        ("reconstruct_svd_cuda_3_241", "reconstruct_svd_cuda_3_242"),
    ],
)
def test_names_that_differ_in_a_version_a_number_or_a_variant_have_one_stem(name: str, other: str) -> None:
    assert name_stem(name) == name_stem(other)


@pytest.mark.parametrize(
    ("name", "other"),
    [("softmax_forward", "softmax_backward"), ("gemm_v2", "gemv_v2"), ("gemm_int8", "gemm_bf16")],
)
def test_names_of_different_kernels_have_different_stems(name: str, other: str) -> None:
    assert name_stem(name) != name_stem(other)


def test_similar_names_pair_at_one_place_with_one_size() -> None:
    a = side(launch("fill"), launch("gemm_v6_2"), launch("reduce_v6_2"))
    b = side(launch("fill"), launch("gemm_v7_3"), launch("reduce_v7_3"), launch("scale"))
    matching = match(a, b)
    assert pairs(matching) == [
        ("fill", "fill", "name"),
        ("gemm_v6_2", "gemm_v7_3", "similar name"),
        ("reduce_v6_2", "reduce_v7_3", "similar name"),
    ]
    assert [x.base_name for x in matching.only_in_b] == ["scale"]


def test_similar_names_do_not_pair_at_another_place_or_with_another_size() -> None:
    a = side(launch("gemm_v6"), launch("reduce_v6"))
    assert not match(a, side(launch("reduce_v7"), launch("gemm_v7"))).pairs
    assert not match(a, side(launch("gemm_v7", grid=(32, 1, 1)), launch("reduce_v7", block=None))).pairs


def test_the_last_launch_of_each_side_pairs_by_position() -> None:
    a, b = side(launch("fill"), launch("softmax_rows")), side(launch("fill"), launch("online_softmax"))
    matching = match(a, b)
    assert pairs(matching) == [("fill", "fill", "name"), ("softmax_rows", "online_softmax", "position")]
    assert not matching.only_in_a + matching.only_in_b
    assert not match(a, [*b, launch("softmax_max", 2)]).pairs[1:], "two are left in B"
    assert not match(a, b, propose=False).pairs[1:]


def test_equally_many_launches_of_a_single_kernel_pair_by_position() -> None:
    a, b = (side(*[launch(name)] * 3) for name in ("matmul_kernel", "my_matmul"))
    assert pairs(match(a, b)) == [("matmul_kernel", "my_matmul", "position")] * 3
    assert not pairs(match(a, b[:2])), "of unequal numbers nobody knows which is which"
    assert not pairs(match(a, [*b[:2], replace(b[2], grid=(32, 1, 1))]))
    assert not pairs(match(a, [*b[:2], launch("fill", 2)]))


@pytest.mark.parametrize("size", [{"grid": (32, 1, 1)}, {"block": (64, 1, 1)}, {"grid": None}])
def test_a_size_that_differs_or_is_unknown_proposes_nothing(size: dict[str, Size | None]) -> None:
    assert not match(side(launch("softmax_rows")), side(launch("online_softmax", **size))).pairs  # type: ignore[arg-type]


def test_a_fill_and_a_matrix_product_are_no_pair_though_each_is_alone_with_one_size() -> None:
    fill, gemm = launch("elementwise_fill_kernel"), launch("ampere_sgemm_kernel")
    assert not match([fill], [gemm]).pairs, "names have nothing in common but what all kernels are called"
    measured = replace(fill, opcodes=FILL), replace(gemm, opcodes=GEMM)
    assert not match(measured[:1], measured[1:]).pairs
    named = launch("matrix_fill", opcodes=FILL), launch("matrix_product", opcodes=GEMM)
    assert not may_be_one_kernel(*named), "the instructions say that a shared word means nothing"
    assert may_be_one_kernel(launch("matrix_fill", opcodes=GEMM), named[1])


def test_a_new_name_for_the_same_instructions_is_one_kernel() -> None:
    assert may_be_one_kernel(launch("stage_one", opcodes=GEMM), launch("attention", opcodes=GEMM))
    assert not may_be_one_kernel(launch("stage_one"), launch("attention")), "without an opcode mix"
    assert not may_be_one_kernel(launch("attn_fwd", opcodes=GEMM), launch("attn_bwd", opcodes=GEMM))


def test_the_overlap_of_opcode_mixes_is_a_share_of_the_instructions() -> None:
    assert opcode_overlap({"A": 1, "B": 1}, {"B": 50, "C": 150}) == 0.25
    assert opcode_overlap({"A": 1}, {}) is None


def test_a_kernel_that_both_sides_have_is_not_proposed_as_renamed() -> None:
    """B's second launch of scale is new: A's shift is not its older name."""
    a = side(launch("scale_v1"), launch("scale_v2", grid=(8, 1, 1)))
    b = side(launch("scale_v1"), launch("scale_v1", grid=(8, 1, 1)))
    matching = match(a, b)
    assert pairs(matching) == [("scale_v1", "scale_v1", "name")]


def test_a_proposal_takes_no_launch_from_an_equal_name() -> None:
    a = side(launch("gemm"), launch("gemm_v2"))
    b = side(launch("gemm_v3"), launch("gemm"))
    assert pairs(match(a, b)) == [("gemm", "gemm", "name"), ("gemm_v2", "gemm_v3", "similar name")]


def test_an_ambiguous_kernel_counts_as_left() -> None:
    a = side(launch("tile"), launch("tile"), launch("softmax_rows"))
    b = side(launch("tile"), launch("softmax_online"))
    matching = match(a, b)
    assert not matching.pairs
    assert [group.base_name for group in matching.ambiguous] == ["tile"]


def test_launches_of_different_ranges_are_not_proposed() -> None:
    a, b = launch("gemm_v1", nvtx=("forward",)), launch("gemm_v2", nvtx=("loss",))
    assert not match([a], [b]).pairs
    assert match([a], [replace(b, nvtx=())]).pairs


def test_a_pair_of_different_names_shows_both_and_how_it_was_paired() -> None:
    a, b = Side("A", (launch("gemm_v6_2"),)), Side("B", (launch("gemm_v7_3", ns=2e5),))
    (pair,) = compare(a, b, load_metrics()).pairs
    assert pair.kernel == "gemm_v6_2 → gemm_v7_3"
    assert pair.paired_by is PairedBy.SIMILAR_NAME
    assert pair.verdict.traits.fails
    assert not compare(a, b, load_metrics(), pairing=Pairing(propose=False)).pairs


def test_only_equal_and_declared_names_are_no_proposal_and_a_guess_by_position_decides_nothing() -> None:
    proposed = {PairedBy.TEMPLATE, PairedBy.SIMILAR_NAME, PairedBy.POSITION, PairedBy.GRIDS}
    assert {by for by in PairedBy if by.is_proposed} == proposed
    assert {by for by in PairedBy if not by.decides} == {
        PairedBy.TEMPLATE,
        PairedBy.POSITION,
        PairedBy.GRIDS,
    }
    assert [by for by in PairedBy if not by.words] == [PairedBy.NAME]
    assert len({by.words for by in PairedBy}) == len(PairedBy)
