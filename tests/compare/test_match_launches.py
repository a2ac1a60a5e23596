"""Which launches pair, and which are listed instead of guessed."""

from dataclasses import replace

import pytest

from profiler.compare.kernel_pairs import KernelPair
from profiler.compare.match_launches import (
    BadKernelPattern,
    Matching,
    PairedBy,
    kernel_filter,
    launch_differences,
    launch_labels,
    match,
    template_arguments,
)
from profiler.evidence.launch import Launch
from profiler.evidence.values import pack_values

Size = tuple[int, int, int]


def launch(
    function: str = "Kernel",
    grid: Size | None = (1, 1, 1),
    *,
    ordinal: int = 0,
    nvtx: tuple[str, ...] = (),
    arguments: str = "",
    block: Size | None = (128, 1, 1),
) -> Launch:
    demangled = f"void ns::{function}{arguments}(T1::P<int>)"
    return Launch(function, demangled, "", grid, block, 7, nvtx, ordinal, pack_values({}))


def side(*launches: Launch) -> list[Launch]:
    """The launches in order, each with its ordinal."""
    return [
        Launch(x.function, x.demangled, x.mangled, x.grid, x.block, x.stream, x.nvtx, i, x.values)
        for i, x in enumerate(launches)
    ]


def ordinals(matching: Matching) -> list[tuple[int, int]]:
    return [(pair.a.ordinal, pair.b.ordinal) for pair in matching.pairs]


def test_a_single_launch_pairs_though_template_grid_and_block_changed() -> None:
    a = side(launch(grid=(8, 8, 1), arguments="<64>"))
    b = side(launch(grid=(16, 8, 1), arguments="<128>", block=(256, 1, 1)))
    matching = match(a, b)
    assert ordinals(matching) == [(0, 0)]
    assert launch_differences(*matching.pairs[0][:2]) == ("template", "grid", "block")
    assert launch_differences(launch(), launch(grid=None, block=None)) == (), "not known is not different"


KOKKOS = "<Kokkos::ParallelFor<bench(Config)::[lambda(const Member &) (instance {})], Kokkos::Cuda>>"
TORCH = "<4, at::native::{}<float>, at::detail::Array<char *, 2>>"


@pytest.mark.parametrize(
    ("a", "b", "by"),
    [
        (KOKKOS.format(5), KOKKOS.format(5), PairedBy.NAME),
        (KOKKOS.format(5), KOKKOS.format(2), PairedBy.TEMPLATE),
        (TORCH.format("FillFunctor"), TORCH.format("CUDAFunctor_add"), PairedBy.TEMPLATE),
        ("<run()::{lambda(int)#1}>", "<run()::{lambda(int)#2}>", PairedBy.TEMPLATE),
        ("<ReduceOp<float, MaxOps<float>>>", "<ReduceOp<float, MeanOps<float>>>", PairedBy.TEMPLATE),
        ("<128, 64, float>", "<64, 64, __half>", PairedBy.NAME),  # another version of one kernel
        ("<Gemm<RowMajor>>", "<Gemm<ColumnMajor>>", PairedBy.NAME),
        ("<FillFunctor<float>>", "<128>", PairedBy.NAME),  # no other function
    ],
)
def test_a_launcher_that_runs_another_function_is_a_proposal(a: str, b: str, by: PairedBy) -> None:
    sides = [side(launch(arguments=arguments)) for arguments in (a, b)]
    assert [pair.by for pair in match(*sides).pairs] == [by]
    refused = match(*sides, propose=False)
    assert len(refused.pairs) == (by is PairedBy.NAME)
    assert len(refused.only_in_a) == len(refused.only_in_b) == (by is not PairedBy.NAME)
    declared = KernelPair("Kernel", "Kernel")
    for pairs in (
        match(*sides, asked=(declared,)).pairs,
        match(*sides, propose=False, kept=(declared,)).pairs,
    ):
        assert len(pairs) == 1
        assert not pairs[0].by.is_proposed


def test_a_lambda_with_another_number_and_the_same_instructions_is_the_same_kernel() -> None:
    mix = {"FFMA": 900.0, "LDG": 100.0}
    a, b = (replace(launch(arguments=KOKKOS.format(number)), opcodes=mix) for number in (2, 3))
    assert [pair.by for pair in match([a], [b]).pairs] == [PairedBy.NAME]


def test_names_without_anything_in_common_do_not_pair() -> None:
    matching = match(side(launch("one")), side(launch("two")))
    assert not matching.pairs
    assert [x.base_name for x in matching.only_in_a] == ["one"]
    assert [x.base_name for x in matching.only_in_b] == ["two"]
    assert not matching.ambiguous


def test_two_indistinguishable_launches_pair_by_order_in_each_range() -> None:
    """The cutlass reports: three launches named Kernel, two alike in one range; templates change."""
    a = side(
        launch(grid=(24, 4, 1), nvtx=("Non-fused",), arguments="<Sm75>"),
        launch(grid=(24, 4, 1), nvtx=("Non-fused",), arguments="<Sm75>"),
        launch(grid=(96, 1, 1), nvtx=("Fused",), arguments="<B2b75>"),
    )
    b = side(
        launch(grid=(96, 1, 1), nvtx=("Fused",), arguments="<B2b80>"),
        launch(grid=(24, 4, 1), nvtx=("Non-fused",), arguments="<Sm80>"),
        launch(grid=(24, 4, 1), nvtx=("Non-fused",), arguments="<Sm80>"),
    )
    assert ordinals(match(a, b)) == [(0, 1), (1, 2), (2, 0)]


def test_a_range_that_one_side_lacks_leaves_its_launches_unmatched() -> None:
    a = side(launch(nvtx=("Fused",)), launch(nvtx=("Non-fused",)))
    b = side(launch(nvtx=("Fused",)))
    matching = match(a, b)
    assert ordinals(matching) == [(0, 0)]
    assert [x.nvtx for x in matching.only_in_a] == [("Non-fused",)]


def test_ranges_fall_away_where_one_side_was_collected_without_them() -> None:
    a = side(launch(grid=(24, 4, 1), nvtx=("Non-fused",)), launch(grid=(96, 1, 1), nvtx=("Fused",)))
    b = side(launch(grid=(96, 1, 1)), launch(grid=(24, 4, 1)))
    matching = match(a, b)
    assert ordinals(matching) == [(0, 1), (1, 0)]
    assert launch_differences(*matching.pairs[0][:2]) == ("NVTX range",)


def test_ranges_that_fall_away_leave_nothing_to_guess_from() -> None:
    a = side(launch(grid=(24, 4, 1), nvtx=("Non-fused",)), launch(grid=(96, 1, 1), nvtx=("Fused",)))
    b = side(launch(grid=(7, 1, 1)), launch(grid=(9, 1, 1)))
    matching = match(a, b)
    assert not matching.pairs
    assert len(matching.ambiguous) == 1


def test_equal_sizes_pair_first_and_the_rest_by_order() -> None:
    """The mistic reports: four launches of one kernel, one with another grid, not in the same place."""
    a = side(*(launch(grid=(size, 1, 1)) for size in (2048, 2045, 2048, 2048)))
    b = side(*(launch(grid=(size, 1, 1)) for size in (2048, 2048, 2048, 2045)))
    assert ordinals(match(a, b)) == [(0, 0), (1, 3), (2, 1), (3, 2)]


def test_one_launch_left_on_each_side_pairs() -> None:
    a = side(launch(grid=(1, 1, 1)), launch(grid=(2, 1, 1)))
    b = side(launch(grid=(4, 1, 1)), launch(grid=(1, 1, 1)))
    assert ordinals(match(a, b)) == [(0, 1), (1, 0)]


def test_templates_tell_launches_apart_where_every_grid_doubled() -> None:
    a = side(launch(grid=(8, 1, 1), arguments="<64>"), launch(grid=(16, 1, 1), arguments="<32>"))
    b = side(launch(grid=(32, 1, 1), arguments="<32>"), launch(grid=(16, 1, 1), arguments="<64>"))
    matching = match(a, b)
    # by grid alone A's second launch would be B's second: the two traits disagree, so this one is not guessed
    assert not matching.pairs
    b = side(launch(grid=(64, 1, 1), arguments="<32>"), launch(grid=(32, 1, 1), arguments="<64>"))
    assert ordinals(match(a, b)) == [(0, 1), (1, 0)]


def test_unequal_counts_of_one_launch_are_ambiguous_and_say_why() -> None:
    matching = match(side(launch(), launch()), side(launch(), launch(), launch()))
    assert not matching.pairs
    (group,) = matching.ambiguous
    assert (len(group.a), len(group.b)) == (2, 3)
    assert group.why == "2 launches in A and 3 in B with the same template, grid and block"


TALL, SHORT = (1024, 1, 1), (256, 1, 1)


@pytest.mark.parametrize(
    ("grids_a", "grids_b", "expected"),
    [
        ((TALL, SHORT), ((128, 1, 1), (512, 1, 1)), [(0, 1), (1, 0)]),  # half the blocks, in another order
        ((TALL, SHORT), ((2, 128, 1), (512, 2, 1)), [(0, 1), (1, 0)]),
        ((TALL, SHORT, (64, 1, 1)), ((512, 1, 1), (32, 1, 1), (128, 1, 1)), [(0, 0), (1, 2), (2, 1)]),
        ((TALL, SHORT), ((128, 1, 1), (500, 1, 1)), []),  # by no common factor
        ((TALL, SHORT), ((128, 1, 1), (128, 1, 1)), []),
    ],
)
def test_grids_that_all_changed_by_one_factor_pair_where_the_tile_did(
    grids_a: tuple[Size, ...], grids_b: tuple[Size, ...], expected: list[tuple[int, int]]
) -> None:
    a = side(*(launch(grid=grid, arguments="<64>") for grid in grids_a))
    b = side(*(launch(grid=grid, arguments="<128>") for grid in grids_b))
    matching = match(a, b)
    assert ordinals(matching) == expected
    assert {pair.by for pair in matching.pairs} <= {PairedBy.GRIDS}
    assert all(pair.by.is_proposed and not pair.by.decides for pair in matching.pairs)
    assert match(a, b, propose=False).pairs == ()
    if expected:  # what is asked for goes by the grids too, and not by the order
        asked = match(a, b, asked=[KernelPair("Kernel", "Kernel")])
        assert ordinals(asked) == expected
        assert {pair.by for pair in asked.pairs} == {PairedBy.DECLARED}


def test_other_grids_of_the_same_tile_are_other_problems_and_no_pair() -> None:
    a = side(*(launch(grid=grid) for grid in (TALL, SHORT)))
    b = side(*(launch(grid=grid) for grid in ((512, 1, 1), (128, 1, 1))))
    assert match(a, b).pairs == ()


def test_launches_that_two_traits_do_not_settle_are_ambiguous() -> None:
    a = side(launch(grid=(1, 1, 1)), launch(grid=(2, 1, 1)))
    b = side(launch(grid=(3, 1, 1)), launch(grid=(4, 1, 1)))
    (group,) = match(a, b).ambiguous
    assert "neither template nor grid and block" in group.why


def test_a_report_matches_itself_launch_by_launch() -> None:
    launches = side(launch(), launch(), launch("other", grid=None, block=None), launch(nvtx=("r",)))
    matching = match(launches, launches)
    assert ordinals(matching) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_labels_number_only_what_would_read_alike() -> None:
    launches = side(launch(nvtx=("R",)), launch(nvtx=("R",)), launch(nvtx=("S", "T")), launch())
    assert launch_labels(launches) == ("R/Kernel#0", "R/Kernel#1", "S/T/Kernel", "Kernel")


def test_the_template_is_read_from_the_name_and_not_from_the_parameters() -> None:
    assert template_arguments(launch(arguments="<(int)32, A<B, C>>")) == "<(int)32, A<B, C>>"
    assert template_arguments(launch()) == ""


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("kern", True),
        ("KERNEL", True),
        ("ern?l", False),
        ("k*l", True),
        ("fused/*", True),
        ("*<sm[80]>*", False),
        ("Sm80", True),
        ("regex:^Kernel$", True),
        ("regex:^ern", False),
        ("gemm", False),
    ],
)
def test_a_kernel_pattern_is_a_part_of_the_name_a_glob_or_a_regular_expression(
    pattern: str, fits: bool
) -> None:
    assert kernel_filter(pattern)(launch(nvtx=("Fused",), arguments="<Sm80>")) is fits


def test_a_broken_regular_expression_is_one_line() -> None:
    with pytest.raises(BadKernelPattern, match="--kernel regex:\\(: not a regular expression") as refused:
        kernel_filter("regex:(")
    assert refused.value.pattern == "regex:("
    assert refused.value.reason.startswith("not a regular expression")
