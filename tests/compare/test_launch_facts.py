"""Launches that pair by what they are besides their name, and several that are samples of one pair."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.compare.comparison import compare
from profiler.compare.kernel_pairs import KernelPair
from profiler.compare.launch_facts import generated_stem
from profiler.compare.match_launches import Matching, PairedBy, match
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Value, pack_values
from profiler.statistics.verdict import Verdict

REGISTERS, STATIC = "launch__registers_per_thread", "launch__shared_mem_per_block_static"
INSTRUCTIONS, STORES = "smsp__inst_executed.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
HELD = "profiler__replayer_bytes_mem_accessible.sum"
DURATION = "gpu__time_duration.sum"
TABLE = load_metrics()


def launch(us: float, name: str = "matmul", *, demangled: str = "", grid: int = 64, **facts: float) -> Launch:
    """A launch of that many µs; facts by the names below."""
    names = {"registers": REGISTERS, "static": STATIC, "instructions": INSTRUCTIONS, "stores": STORES}
    names |= {"loads": LOADS, "held": HELD}
    values = {DURATION: Value(us * 1e3, "ns")}
    values |= {names[fact]: Value(number, "inst") for fact, number in facts.items()}
    return Launch(
        name, demangled or f"{name}(float *)", "", (grid, 1, 1), (128, 1, 1), 7, (), 0, pack_values(values)
    )


def side(*launches: Launch) -> Side:

    return Side("side", tuple(replace(one, ordinal=place) for place, one in enumerate(launches)))


def matched(a: Side, b: Side, *asked: KernelPair) -> Matching:
    return match(a.launches, b.launches, asked=asked)


def places(a: Side, b: Side) -> set[tuple[int, int]]:
    return {(pair.a.ordinal, pair.b.ordinal) for pair in matched(a, b).pairs}


CONFIGURATIONS = [(300, 64, 900e3), (180, 96, 700e3), (100, 128, 500e3)]


@pytest.mark.parametrize(
    "facts", [("registers", "instructions"), ("registers",), ("instructions",), ("stores",)]
)
@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_configurations_in_another_order_are_all_the_same(
    facts: tuple[str, ...], order: tuple[int, ...]
) -> None:
    made = [
        launch(us, **{fact: registers if fact == "registers" else work for fact in facts})
        for us, registers, work in CONFIGURATIONS
    ]
    comparison = compare(side(*made), side(*(made[place] for place in order)), TABLE)
    assert [pair.verdict for pair in comparison.pairs] == [Verdict.SAME] * 3


def test_facts_that_do_not_tell_leave_launches_ambiguous_and_never_in_order() -> None:
    """Without a counter, or with one that is equal in all, times a factor of 3 apart show several kinds."""
    for facts in ({}, {"registers": 64.0}):
        made = [launch(us, **facts) for us, *_ in CONFIGURATIONS]
        matching = matched(side(*made), side(made[1], made[0], made[2]))
        assert not matching.pairs
        assert len(matching.ambiguous) == 1


def test_a_configuration_that_changed_pairs_where_the_others_answer_to_their_own() -> None:
    a = side(*(launch(us, registers=r, instructions=i) for us, r, i in CONFIGURATIONS))
    b = side(
        launch(180, registers=96, instructions=700e3),
        launch(100, registers=128, instructions=500e3),
        launch(290, registers=72, instructions=800e3),
    )
    assert places(a, b) == {(0, 2), (1, 0), (2, 1)}
    two_changed = side(b.launches[0], b.launches[2], launch(90, registers=120, instructions=400e3))
    assert places(a, two_changed) == {(1, 0)}


def test_a_recompiled_kernel_pairs_by_equal_stores() -> None:
    a = side(launch(300, registers=64, stores=1000), launch(200, registers=64, stores=3000))
    b = side(launch(190, registers=70, stores=3000), launch(310, registers=70, stores=1000))
    assert places(a, b) == {(0, 1), (1, 0)}


CASTS = [
    ("<32, true>", "<(int)32, (bool)1>"),
    ("<4u, 32ul, -1>", "<(unsigned int)4, (unsigned long)32, (int)-1>"),
    ("<Tile<2, false> , 3>", "<Tile<(int)2, (bool)0>, (int)3>"),
    ("<2>", "<((anonymous namespace)::Kind)2>"),
    ("<(ns::Layout)1, (char)65>", "<1, (signed char)65>"),
    ("<float*, 0x10>", "<float *, (unsigned long long)16>"),
]


@pytest.mark.parametrize(("plain", "cast"), CASTS)
def test_casts_booleans_and_suffixes_of_template_arguments_are_one_value(plain: str, cast: str) -> None:
    a = side(
        launch(200, "gemm", demangled=f"void gemm{plain}(float *)"),
        launch(100, "gemm", demangled="void gemm<99>(float *)"),
    )
    b = side(
        launch(100, "gemm", demangled="void gemm<(int)99>(float *)"),
        launch(200, "gemm", demangled=f"void gemm{cast}(float *)"),
    )
    assert places(a, b) == {(0, 1), (1, 0)}
    comparison = compare(a, b, TABLE)
    assert {(pair.verdict, pair.differs, pair.paired_by) for pair in comparison.pairs} == {
        (Verdict.SAME, (), PairedBy.NAME)
    }


def test_another_value_of_a_template_is_another_template() -> None:
    a = side(launch(100, "gemm", demangled="void gemm<(int)32, (bool)1>(float *)"))
    for other in ("<64, 1>", "<32, 0>", "<32, true, 1>", "<-32, 1>"):
        b = side(launch(100, "gemm", demangled=f"void gemm{other}(float *)"))
        assert compare(a, b, TABLE).pairs[0].differs == ("template",)


TORCH = (
    "void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, (int)4, "
    "void at::native::templates::cuda::{owner}<float, float, at::CUDAGeneratorImpl *, "
    "void at::native::templates::cuda::{kernel}<at::CUDAGeneratorImpl *>(at::TensorIteratorBase &, T1)::"
    "[lambda() (instance 1)]::operator ()() const::[lambda(float) (instance 1)]>"
    "(at::TensorIteratorBase &, T3, T4)::[lambda(curandStatePhilox4_32_10 *) (instance 1)]>(long)"
)
RAND = TORCH.format(owner="uniform_and_transform", kernel="uniform_kernel")
RANDN = TORCH.format(owner="normal_and_transform", kernel="normal_kernel")
OWNERS = [
    (RAND, RANDN),
    ("void run<rows(int)::{lambda(int)#1}>(long)", "void run<columns(int)::{lambda(int)#1}>(long)"),
    (
        "void run<Solver<float>::init()::[lambda(int) (instance 1)]>()",
        "void run<Solver<float>::step()::[lambda(int) (instance 1)]>()",
    ),
]


@pytest.mark.parametrize(("a", "b"), OWNERS)
def test_functions_that_own_a_lambda_tell_two_kernels_apart(a: str, b: str) -> None:
    one, other = launch(100, "run", demangled=a), launch(143, "run", demangled=b)
    matching = matched(side(one), side(other))
    assert not matching.pairs
    assert (len(matching.only_in_a), len(matching.only_in_b)) == (1, 1)
    assert [pair.by for pair in matched(side(one), side(one)).pairs] == [PairedBy.NAME]
    assert len(matched(side(one), side(other), KernelPair("run", "run")).pairs) == 1


def test_lambdas_of_two_kernels_in_another_order_pair_by_their_owners() -> None:
    rand, randn = launch(100, "run", demangled=RAND), launch(143, "run", demangled=RANDN)
    assert places(side(rand, randn), side(randn, rand)) == {(0, 1), (1, 0)}


def test_numbers_of_code_generators_are_no_names() -> None:
    stems = {
        "triton_poi_fused_add_3": "triton_poi_fused_add",
        "triton_red_fused__softmax_12": "triton_red_fused__softmax",
        "triton_4": "triton",
        "loop_add_fusion_2": "loop_add_fusion",
        "fusion_12": "fusion",
        "main_dispatch_4_matmul_64x64": "main_dispatch_matmul_64x64",
        "nvkernel_matmul_F1L61_6": "nvkernel_matmul",
        "nvkernel_matmul_F1L266_18_F1L268_20": "nvkernel_matmul",
        "main_61_gpu": "main_gpu",
        "main_61_gpu__red": "main_gpu__red",
        "__omp_offloading_fd02_1a2b3c_main_l61": "__omp_offloading_main",
        "set_cache__FILE_Clima_jl_src_cache_jl_L992": "set_cache",
        "gemm_v7": "gemm_v7",
        "rows_2": "rows_2",
    }
    assert {name: generated_stem(name) for name in stems} == stems


ADD = "triton_poi_fused_add_{}"


def test_inductor_numbers_that_moved_by_one_pair_by_facts() -> None:
    first, second = {"registers": 20, "instructions": 1e6}, {"registers": 32, "instructions": 3e6}
    a = side(launch(100, ADD.format(3), **first), launch(300, ADD.format(4), **second))
    b = side(launch(100, ADD.format(4), **first), launch(300, ADD.format(5), **second))
    comparison = compare(a, b, TABLE)
    assert places(a, b) == {(0, 0), (1, 1)}
    assert {pair.verdict for pair in comparison.pairs} == {Verdict.SAME}


def test_inductor_numbers_that_swapped_are_not_paired_by_name() -> None:
    first, second = {"registers": 20, "instructions": 1e6}, {"registers": 32, "instructions": 3e6}
    a = side(launch(100, ADD.format(3), **first), launch(300, ADD.format(4), **second))
    b = side(launch(300, ADD.format(3), **second), launch(100, ADD.format(4), **first))
    assert {pair.verdict for pair in compare(a, b, TABLE).pairs} == {Verdict.SAME}
    bare = [side(launch(100, ADD.format(x)), launch(300, ADD.format(y))) for x, y in ((3, 4), (4, 3))]
    assert not matched(*bare).pairs, "without facts nothing says which is which"


def test_kernels_named_by_the_file_of_another_checkout_pair_by_facts() -> None:
    """The slow one of three was recompiled with fewer registers and another block: it is what is left."""
    name = "set_cache__FILE_Clima_jl{}_src_cache_jl_L{}"
    first, second = {"registers": 59, "instructions": 1e6}, {"registers": 60, "instructions": 2e6}
    a = side(
        launch(56e3, name.format("", 992), **first),
        launch(55e3, name.format("", 993), **second),
        launch(54e3, name.format("", 994), **second),
        launch(30e6, name.format("", 1013), registers=255, instructions=3e8),
    )
    b = side(
        launch(56e3, name.format("_mod", 992), **first),
        launch(55e3, name.format("_mod", 993), **second),
        launch(54e3, name.format("_mod", 994), registers=60, instructions=2.1e6),
        launch(45e6, name.format("_mod", 1013), registers=64, instructions=4e8),
    )
    assert places(a, b) == {(0, 0), (1, 1), (2, 2), (3, 3)}
    verdicts = [pair.verdict for pair in compare(a, b, TABLE).pairs]
    assert verdicts == [Verdict.WORSE, Verdict.SAME, Verdict.SAME, Verdict.SAME]


def times(count: int, us: float) -> list[Launch]:
    return [
        launch(us * (1 + 0.0004 * (place * 4 % 9)), registers=40, instructions=5e5) for place in range(count)
    ]


@pytest.mark.parametrize(("of_a", "of_b"), [(12, 10), (10, 9), (3, 7), (32, 31)])
@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, Verdict.SAME), (1.1, Verdict.WORSE), (0.9, Verdict.BETTER)]
)
def test_launches_of_any_number_are_samples_with_an_interval(
    of_a: int, of_b: int, factor: float, verdict: Verdict
) -> None:
    comparison = compare(side(*times(of_a, 200)), side(*times(of_b, 200 * factor)), TABLE)
    (pair,) = comparison.pairs
    assert [len(launches) for launches in pair.launches] == [of_a, of_b]
    assert pair.verdict is verdict
    assert pair.headline is not None
    assert pair.headline.interval is not None
    assert pair.headline.interval.low <= factor - 1 + 0.002
    assert pair.headline.interval.high >= factor - 1 - 0.002
    assert not pair.headline.unreplicated
    assert not comparison.ambiguous
    assert not comparison.only_in_a


def test_a_single_launch_is_taken_to_vary_as_the_others_do() -> None:
    found = [compare(side(*times(1, 200)), side(*times(5, 200 * by)), TABLE).pairs[0] for by in (1.0, 1.1)]
    assert [pair.verdict for pair in found] == [Verdict.UNCLEAR, Verdict.WORSE]


def test_short_launches_are_judged_by_several_a_side_and_not_by_one() -> None:
    one = compare(side(*times(1, 20)), side(*times(1, 24)), TABLE)
    several = compare(side(*times(10, 20)), side(*times(8, 24)), TABLE)
    assert [pair.verdict for pair in one.pairs] == [Verdict.UNCLEAR]
    assert [pair.verdict for pair in several.pairs] == [Verdict.WORSE]


@pytest.mark.parametrize("told_by", ["held", "grid"])
def test_layers_in_another_tile_pair_by_the_memory_that_is_held_or_by_their_grid(told_by: str) -> None:
    """Two layers of a network: all that was executed changed, and the registers with it."""
    held = (9.8e10, 7.4e10) if told_by == "held" else (5e10, 5e10)
    grids = ((36, 144), (4, 16)) if told_by == "held" else ((4, 16), (4, 16))
    before, after = (
        [
            launch(us, grid=grid, registers=registers, instructions=by * us, stores=us, held=of)
            for us, grid, of in zip(times, of_side, held, strict=True)
        ]
        for times, of_side, registers, by in (
            ((2000.0, 8000.0), grids[0], 29, 4e4),
            ((2100.0, 8800.0), grids[1], 31, 5e4),
        )
    )
    assert places(side(*before), side(*after)) == {(0, 0), (1, 1)}
    assert places(side(*before), side(*reversed(after))) == {(0, 1), (1, 0)}


def test_layers_that_hold_the_same_on_other_grids_stay_ambiguous() -> None:
    a = [launch(us, grid=grid, registers=29, held=5e10) for us, grid in ((2000, 36), (8000, 144))]
    b = [launch(us, grid=grid, registers=31, held=5e10) for us, grid in ((2100, 4), (8800, 16))]
    assert matched(side(*a), side(*b)).ambiguous


def test_loads_tell_launches_apart_that_store_the_same() -> None:
    """One kernel at two offsets: 25 % more sectors are loaded, and nothing else moves."""
    a = side(*(launch(226 + loads, registers=20, stores=2e6, loads=loads * 1e6) for loads in (4.2, 5.2)))
    assert places(a, side(*reversed(a.launches))) == {(0, 1), (1, 0)}


@pytest.mark.parametrize(
    ("times_of_b", "verdict"),
    [
        ((588, 589), Verdict.WORSE),
        ((500, 501), Verdict.SAME),
        ((490, 600), Verdict.UNCLEAR),
        ((460, 540), Verdict.UNCLEAR),
    ],
)
def test_two_launches_beside_one_are_one_pair_where_the_build_is_known(
    times_of_b: tuple[float, float], verdict: Verdict
) -> None:
    b = side(*(launch(us, registers=16) for us in times_of_b))
    comparison = compare(side(launch(500, registers=16)), b, TABLE)
    (pair,) = comparison.pairs
    assert (pair.verdict, [len(of) for of in pair.launches]) == (verdict, [1, 2])
    assert not comparison.only_in_b
    unknown = compare(side(launch(500)), side(*(launch(us) for us in times_of_b)), TABLE)
    assert not unknown.pairs


@pytest.mark.parametrize("facts", [{}, {"registers": 16}, {"registers": 16, "instructions": 5e5}])
@pytest.mark.parametrize(
    ("times_of_b", "verdicts"),
    [
        ((450, 640), [Verdict.UNCLEAR]),  # by order one would be better and the other worse
        ((460, 560), [Verdict.UNCLEAR]),  # their medians are within the threshold
        ((400, 601), [Verdict.UNCLEAR]),  # equal medians
        ((550, 640), [Verdict.WORSE, Verdict.WORSE]),
        ((498, 503), [Verdict.SAME, Verdict.SAME]),
    ],
)
def test_two_beside_two_that_lie_on_both_sides_of_them_are_one_pair(
    times_of_b: tuple[float, float], verdicts: list[Verdict], facts: dict[str, float]
) -> None:
    """No fact says which of A's equal launches answers to the slower of B's."""
    a, b = (side(*(launch(us, **facts) for us in of)) for of in ((500, 501), times_of_b))
    assert [pair.verdict for pair in compare(a, b, TABLE).pairs] == verdicts
    backward = compare(b, a, TABLE)
    assert (backward.verdict is Verdict.UNCLEAR) == (verdicts == [Verdict.UNCLEAR])


def test_launches_of_other_grids_or_work_are_no_samples_of_one_thing() -> None:
    a = side(*(launch(100 * grid, grid=grid, instructions=1e6 * grid) for grid in (1, 2, 1, 2, 1)))
    pairs = compare(a, a, TABLE).pairs
    assert sorted(len(pair.launches[0]) for pair in pairs) == [1, 1, 3]
    assert {len({launch.grid for side in pair.launches for launch in side}) for pair in pairs} == {1}


def test_what_a_noisy_launch_may_have_lost_is_its_interval_and_not_its_medians() -> None:
    """Equal medians, 5 % apart: little beside a kernel that is 50 times as long, and all there is alone."""
    noisy, again = (
        [launch(us, "noisy") for us in times_us] for times_us in ((190, 200, 210), (188, 200, 213))
    )
    steady, little = ([launch(us, "steady") for us in times_us] for times_us in ([1e4] * 3, [500] * 3))
    alone = compare(side(*noisy), side(*again), TABLE)
    beside_much = compare(side(*noisy, *steady), side(*again, *steady), TABLE)
    beside_little = compare(side(*noisy, *little), side(*again, *little), TABLE)
    found = [
        next(pair for pair in all_.pairs if "noisy" in pair.kernel)
        for all_ in (alone, beside_much, beside_little)
    ]
    assert [pair.verdict for pair in found] == [Verdict.UNCLEAR] * 3
    assert found[0].headline is not None
    assert found[0].headline.change_pct == 0
    verdicts = [all_.verdict for all_ in (alone, beside_much, beside_little)]
    assert verdicts == [Verdict.UNCLEAR, Verdict.SAME, Verdict.UNCLEAR]


def test_what_is_ambiguous_pairs_in_order_where_it_is_asked_for() -> None:
    """Unequal numbers of other grids too: the option that is printed does what it says."""
    a = side(*(launch(100 * n, grid=n) for n in (1, 2, 3)))
    b = side(*(launch(110 * n, grid=n + 10) for n in (1, 2)))
    assert matched(a, b).ambiguous
    matching = matched(a, b, KernelPair("matmul", "matmul"))
    assert [(pair.a.ordinal, pair.b.ordinal) for pair in matching.pairs] == [(0, 0), (1, 1)]
    assert not matching.ambiguous


def test_a_line_that_both_sides_name_a_kernel_by_pairs_before_its_facts() -> None:
    """Of two loops of one function one was edited: its registers are another's."""
    a = side(launch(100, "main_61_gpu", registers=20), launch(300, "main_90_gpu", registers=32))
    b = side(launch(100, "main_61_gpu", registers=32), launch(300, "main_90_gpu", registers=32))
    assert places(a, b) == {(0, 0), (1, 1)}
    assert places(a, side(launch(100, "main_61_gpu", registers=32))) == {(0, 0)}
    moved = side(launch(100, "main_71_gpu", registers=20), launch(300, "main_100_gpu", registers=32))
    assert places(a, moved) == {(0, 0), (1, 1)}
