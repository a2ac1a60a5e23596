"""What the pairs of one comparison say of each other: doubt about a size, and noise of equal work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest

from profiler.compare.comparison import Comparison, compare
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Value, pack_values
from profiler.statistics.verdict import Verdict

TABLE = load_metrics()
DURATION, INSTRUCTIONS, SECTORS = "gpu__time_duration.sum", "smsp__inst_executed.sum", "lts__t_sectors.sum"
UNITS = {DURATION: "ns", INSTRUCTIONS: "inst", SECTORS: "sector"}


def launch(
    name: str,
    ordinal: int,
    ns: float,
    instructions: float,
    sectors: float,
    grid: int = 640,
    more: Mapping[str, float] = MappingProxyType({}),
) -> Launch:
    values = {DURATION: ns, INSTRUCTIONS: instructions, SECTORS: sectors, **more}
    packed = pack_values({key: Value(number, UNITS.get(key, "sector")) for key, number in values.items()})
    return Launch(name, f"{name}(float*)", "", (grid, 1, 1), (128, 1, 1), 7, (), ordinal, packed)


def compared(a: Sequence[Launch], b: Sequence[Launch], workload: str | None = None) -> Comparison:
    sides = (Side("side", tuple(of), "GPU", "8.0", workload=workload) for of in (a, b))
    return compare(*sides, TABLE)


def verdicts(comparison: Comparison) -> dict[str, Verdict]:
    return {pair.kernel: pair.verdict for pair in comparison.pairs}


def test_more_work_beside_a_kernel_of_another_problem_size_is_unclear() -> None:
    """A scene of ten times the spheres: setting it up grew alike, drawing it executed more in the caches."""
    a = [
        launch("setup", 0, 1e6, 1e6, 1e5),
        launch("draw", 1, 1e7, 1e8, 1e6),
        launch("show", 2, 1e6, 1e6, 1e5),
    ]
    b = [launch("setup", 0, 1e7, 1e7, 1e6), launch("draw", 1, 3.6e7, 3e8, 1.05e6)]
    b.append(launch("show", 2, 1.5e6, 1.01e6, 1e5))
    told = verdicts(compared(a, b))
    assert told == {"setup": Verdict.UNCLEAR, "draw": Verdict.UNCLEAR, "show": Verdict.WORSE}
    # Whoever declares the workload asks for the verdict, and without the doubted kernel nothing is doubted.
    assert set(verdicts(compared(a, b, "scene")).values()) == {Verdict.WORSE}
    assert verdicts(compared(a[1:], b[1:])) == {"draw": Verdict.WORSE, "show": Verdict.WORSE}


def test_more_work_beside_unchanged_code_on_another_grid_is_unclear() -> None:
    a = [launch("fill", 0, 1e6, 1e6, 1e5), launch("merge", 1, 1e6, 1e6, 1e5)]
    b = [launch("fill", 0, 4e6, 4e6, 4e5, grid=2560), launch("merge", 1, 1.3e6, 1.4e6, 1.05e5)]
    assert verdicts(compared(a, b)) == {"fill": Verdict.NOT_COMPARABLE, "merge": Verdict.UNCLEAR}
    b[0] = launch("fill", 0, 1e6, 1e6, 1e5)
    assert verdicts(compared(a, b))["merge"] is Verdict.WORSE


@pytest.mark.parametrize(
    ("chunks", "instructions", "name", "expected"),
    [
        (13, 1.03, "count", Verdict.UNCLEAR),
        (13, 0.96, "count", Verdict.UNCLEAR),
        (13, 1.0, "count", Verdict.WORSE),  # equal work: a longer capture of one run
        (5, 1.03, "count", Verdict.WORSE),
        (6, 1.03, "count", Verdict.WORSE),  # what one side alone has took less than what both have
        (13, 1.03, "count<8>", Verdict.WORSE),  # changed code may execute what it likes
    ],
)
def test_a_kernel_that_a_side_launched_for_longer_on_other_grids_may_have_had_other_data(
    chunks: int, instructions: float, name: str, expected: Verdict
) -> None:
    """One program over two sequences: a launch per chunk, on a grid of the chunks that are left."""
    a = [launch("count", place, 1e6 * (chunks - place), 1e6, 1e5, chunks - place) for place in range(chunks)]
    b = [
        launch("count", place, 1.2e6 * (5 - place), 1e6 * instructions, 1e5, 5 - place) for place in range(5)
    ]
    b = [replace(one, demangled=f"{name}(float*)") for one in b]
    for before, after, told in ((a, b, expected), (b, a, Verdict.BETTER)):
        found = {pair.verdict for pair in compared(before, after).pairs}
        assert found == {Verdict.UNCLEAR if expected is Verdict.UNCLEAR else told}
    declared = compared(a, b, "sequence")
    assert {pair.verdict for pair in declared.pairs} == {Verdict.WORSE}


@pytest.mark.parametrize(
    ("held", "ns", "name", "expected"),
    [
        (1.3e10, 1.4e6, "merge", Verdict.UNCLEAR),  # more memory, more time
        (7.8e9, 0.7e6, "merge", Verdict.UNCLEAR),
        (7.8e9, 1.4e6, "merge", Verdict.WORSE),  # less memory explains no longer time
        (1.0e10, 1.4e6, "merge", Verdict.WORSE),
        (1.3e10, 1.4e6, "merge<8>", Verdict.WORSE),  # changed code may hold what it likes
    ],
)
def test_a_time_that_moves_with_the_memory_that_is_held_is_unclear(
    held: float, ns: float, name: str, expected: Verdict
) -> None:
    bytes_held = "profiler__replayer_bytes_mem_accessible.sum"
    registers = {"launch__registers_per_thread": 32.0 if name == "merge" else 40.0}
    a = [launch("merge", 0, 1e6, 1e6, 1e5, more={bytes_held: 1.0e10, "launch__registers_per_thread": 32.0})]
    b = [launch("merge", 0, ns, 1e6, 1e5, more={bytes_held: held, **registers})]
    assert verdicts(compared(a, b)) == {"merge": expected}


@pytest.mark.parametrize(
    ("held", "sectors", "expected"),
    [
        (5.7e9, 5.5e4, Verdict.UNCLEAR),  # as much less is held as is read
        (5.7e9, None, Verdict.UNCLEAR),  # and nothing says what is read
        (5.7e9, 1e5, Verdict.BETTER),  # other code that reads what was read
        (1.0e10, 5.5e4, Verdict.BETTER),
    ],
)
def test_changed_code_of_a_program_that_holds_far_less_memory_is_unclear(
    held: float, sectors: float | None, expected: Verdict
) -> None:
    bytes_held, registers = "profiler__replayer_bytes_mem_accessible.sum", "launch__registers_per_thread"
    a = [launch("decode", 0, 1e6, 1e6, 1e5, more={bytes_held: 1.0e10, registers: 56.0})]
    b = [launch("decode", 0, 0.88e6, 0.95e6, sectors or 0.0, more={bytes_held: held, registers: 64.0})]
    assert verdicts(compared(a, b)) == {"decode": expected}


def test_less_work_beside_a_kernel_that_did_more_is_judged() -> None:
    a = [launch("setup", 0, 1e6, 1e6, 1e5), launch("draw", 1, 3.6e7, 3e8, 1.05e6)]
    b = [launch("setup", 0, 1e7, 1e7, 1e6), launch("draw", 1, 1e7, 1e8, 1e6)]
    assert verdicts(compared(a, b)) == {"setup": Verdict.UNCLEAR, "draw": Verdict.BETTER}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((1573.0, 1614.1), (1613.8, 1621.8), {Verdict.UNCLEAR, Verdict.SAME}),  # +2.6 % and +0.5 %: +1.5 %
        ((1573.0, 1614.1), (1735.0, 1781.0), {Verdict.WORSE}),  # both slower
        ((2000.0, 1600.0), (2200.0, 1760.0), {Verdict.WORSE}),  # a cold first launch hides nothing
    ],
)
def test_two_launches_of_one_size_have_to_move_together(
    before: tuple[float, float], after: tuple[float, float], expected: set[Verdict]
) -> None:
    a, b = ([launch("fill", i, 1e3 * us, 1e6, 1e5) for i, us in enumerate(side)] for side in (before, after))
    found = set(verdicts(compared(a, b)).values())
    assert found == expected


def _histograms(
    changes: Sequence[float], instructions: float = 1.0, more: Mapping[str, float] = MappingProxyType({})
) -> Comparison:
    """Launches of one kernel over as many grids as changes, each of which is B's time over A's."""
    sizes = [(100 * (index + 1), 1e6 * (index + 1)) for index in range(len(changes))]
    a = [launch("count", i, ns, ns, ns, grid, more) for i, (grid, ns) in enumerate(sizes)]
    b = [
        launch("count", i, ns * change, ns * instructions, ns, grid, more)
        for i, ((grid, ns), change) in enumerate(zip(sizes, changes, strict=True))
    ]
    return compared(a, b)


def test_equal_work_that_moves_both_ways_is_noise() -> None:
    told = verdicts(_histograms([1.36, 0.74, 1.0, 1.0, 1.0, 1.005]))
    assert sorted(told.values()) == sorted([Verdict.UNCLEAR] * 2 + [Verdict.SAME] * 4)


def test_a_single_size_that_got_slower_is_worse() -> None:
    assert sum(v is Verdict.WORSE for v in verdicts(_histograms([1.36, 1.0, 1.0, 1.0, 0.99])).values()) == 1


def test_a_time_far_beyond_what_moves_the_other_way_is_worse() -> None:
    told = list(verdicts(_histograms([3.0, 0.95, 1.0, 1.0, 1.0])).values())
    assert (told.count(Verdict.WORSE), told.count(Verdict.BETTER)) == (1, 0)


def test_what_stores_the_same_did_equal_work_however_long_it_waited() -> None:
    """A scan that spins on flags executes more where it waits longer."""
    stores = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
    told = list(
        verdicts(_histograms([1.36, 0.74, 1.2, 1.3, 0.8], instructions=1.05, more={stores: 7.0})).values()
    )
    assert set(told) == {Verdict.UNCLEAR}


def test_other_work_explains_a_time_that_moves_both_ways() -> None:
    told = list(verdicts(_histograms([1.36, 0.74, 1.2, 1.3, 0.8], instructions=1.05)).values())
    assert (told.count(Verdict.WORSE), told.count(Verdict.BETTER)) == (3, 2)


# A convolution that first unrolls its input: in the second, one kernel reads the input as it multiplies.
UNROLLED = [launch("unroll", 0, 2.2e7, 2.6e9, 8e8, 1000), launch("multiply", 1, 1.5e7, 3.8e9, 2e8)]
FUSED = launch("multiply", 0, 2.7e7, 8.9e9, 6e7)


def test_a_kernel_that_took_over_the_work_of_one_that_is_gone_is_unclear() -> None:
    comparison = compared(UNROLLED, [FUSED])
    assert verdicts(comparison) == {"multiply": Verdict.UNCLEAR}
    (pair,) = comparison.pairs
    assert pair.workload_change is not None
    assert pair.workload_change.reason == (
        "instructions (+134 %), and A alone has unroll (22.0 ms): perhaps its work is done here now"
    )
    split = compared([FUSED], UNROLLED)
    assert verdicts(split) == {"multiply": Verdict.UNCLEAR}
    (pair,) = split.pairs
    assert pair.workload_change is not None
    assert pair.workload_change.reason.endswith(
        "B alone has unroll (22.0 ms): perhaps its work was done here before"
    )


def test_what_is_gone_excuses_no_more_than_it_took() -> None:
    shorter = [launch("unroll", 0, 1e7, 1e9, 8e8, 1000), UNROLLED[1]]
    assert verdicts(compared(shorter, [FUSED])) == {"multiply": Verdict.WORSE}, "12 ms lost, 10 ms gone"
    new = launch("histogram", 1, 1.2e7, 1e9, 8e8, 77)
    assert verdicts(compared(UNROLLED, [FUSED, new])) == {"multiply": Verdict.WORSE}, "12 of 22 ms are new"
    as_much = launch("multiply", 0, 2.7e7, 4.0e9, 2e8)
    assert verdicts(compared(UNROLLED, [as_much])) == {"multiply": Verdict.WORSE}, "it does no more work"
    assert verdicts(compared(UNROLLED, [FUSED], "layer")) == {"multiply": Verdict.WORSE}, "as declared"
    failed = replace(UNROLLED[0], values=pack_values({INSTRUCTIONS: Value(1e9, "inst")}))
    assert verdicts(compared([failed, UNROLLED[1]], [FUSED])) == {"multiply": Verdict.WORSE}, (
        "how long it took"
    )
