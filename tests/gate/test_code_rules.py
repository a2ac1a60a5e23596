"""The rules for one function of a library: each with what is worse, better, unclear, and of no matter."""

from __future__ import annotations

import pytest

from profiler.gate.code_lock import AccessFacts, PinnedFunction
from profiler.gate.code_rules import judge_function
from profiler.sass.loop_facts import LoopFacts
from profiler.statistics.verdict import Verdict
from tests.gate.test_code_lock import accesses, pinned

WORSE, BETTER, UNCLEAR, CHANGED = Verdict.WORSE, Verdict.BETTER, Verdict.UNCLEAR, Verdict.CHANGED


def _verdicts(a: PinnedFunction, b: PinnedFunction) -> dict[str, Verdict]:
    return {one.concept: one.verdict for one in judge_function(a, b)}


def _loops(*spills: int, inner: int = 0, is_marked: bool = True, **opcodes: int) -> LoopFacts:
    """Spills by depth, and opcodes in one loop."""
    inside = {name.replace("_", "."): count for name, count in opcodes.items()}
    return LoopFacts(({}, inside), spills, inner, is_marked)


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (_loops(), _loops(0, 4, inner=4), WORSE),
        (_loops(9, 2, inner=2), _loops(0, 3, inner=3), WORSE),
        (_loops(), _loops(4), UNCLEAR),
        (_loops(4, 4, inner=4), _loops(8), BETTER),
        (_loops(0, 0, 4, inner=4), _loops(9, 4, 2, inner=2), BETTER),
        (_loops(0, 1), _loops(0, 2), UNCLEAR),  # in a loop that has another one inside
        (_loops(4), _loops(), BETTER),
        (_loops(4, is_marked=False), _loops(4), UNCLEAR),  # an array, which the compiler would have marked
        (_loops(4, is_marked=False), _loops(), BETTER),
        (_loops(), _loops(0, 4, inner=4, is_marked=False), WORSE),
        (_loops(4, 2), _loops(4, 2), None),
    ],
)
def test_spills_are_worse_in_innermost_loops_and_unclear_elsewhere(
    a: LoopFacts, b: LoopFacts, verdict: Verdict | None
) -> None:
    found = _verdicts(pinned(loops=a), pinned(loops=b, stack_bytes=16 if a == b else 48))
    assert found == ({} if verdict is None else {"spills": verdict})


def test_words_say_where_spills_are_and_what_they_cost() -> None:
    (one,) = judge_function(
        pinned(loops=_loops()), pinned(loops=_loops(1, 2, 4, inner=4), stack_bytes=64, shared_spill_bytes=512)
    )
    assert one.line == (
        "spills: none → 7 (4 in an innermost loop, 2 in an outer loop, 1 outside loops); stack: 16 → 64 B; "
        "in shared memory: 0 → 512 B of a block"
    )


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ({"registers": 64}, {"registers": 72}, {"registers": WORSE}),  # 4 → 3 blocks of 256 threads
        ({"registers": 72}, {"registers": 64}, {"registers": BETTER}),
        ({"registers": 60}, {"registers": 64}, {"registers": CHANGED}),
        ({"shared_bytes": 1024}, {"shared_bytes": 100_000}, {"shared memory": WORSE}),
        ({"shared_bytes": 1024}, {"shared_bytes": 2048}, {"shared memory": CHANGED}),
        # With the dynamic part where both sides know it: 4 → 2 blocks, 4 → 4, and without it.
        (
            {"dynamic_shared_bytes": 49152},
            {"dynamic_shared_bytes": 98304},
            {"shared memory": WORSE},
        ),
        ({"dynamic_shared_bytes": 4096}, {"dynamic_shared_bytes": 8192}, {"shared memory": CHANGED}),
        (
            {"registers": 72, "dynamic_shared_bytes": 98304},
            {"dynamic_shared_bytes": 98304},
            {"registers": CHANGED},
        ),
        ({}, {"dynamic_shared_bytes": 98304}, {}),
        ({"dynamic_shared_bytes": 98304}, {}, {"shared memory": Verdict.MISSING}),
        ({"max_threads": 256}, {"max_threads": 512}, {"launch bounds": CHANGED}),
        (
            {"max_threads": None, "registers": 40},
            {"max_threads": None, "registers": 48},
            {"registers": UNCLEAR},
        ),
        ({"max_threads": None}, {"max_threads": None, "registers": 255}, {"registers": WORSE}),
        (
            {"max_threads": None, "registers": 30},
            {"max_threads": None, "registers": 32},
            {"registers": CHANGED},
        ),
        ({"arch": "sm_999"}, {"arch": "sm_999", "registers": 72}, {"registers": UNCLEAR}),
        ({"is_kernel": False}, {"is_kernel": False, "registers": 255}, {}),
        ({"registers": None}, {"registers": 72}, {}),
        ({}, {"stack_bytes": 48}, {"stack": WORSE}),
        ({}, {"stack_bytes": 8}, {"stack": BETTER}),
    ],
)
def test_registers_and_shared_memory_matter_by_the_blocks_that_fit(
    a: dict[str, object], b: dict[str, object], found: dict[str, Verdict]
) -> None:
    assert _verdicts(pinned(**a), pinned(**b)) == found


def test_registers_that_end_spills_are_unclear() -> None:
    a, b = pinned(loops=_loops(0, 4, inner=4)), pinned(loops=_loops(), registers=72)
    assert _verdicts(a, b) == {"spills": BETTER, "registers": UNCLEAR}
    assert _verdicts(b, a) == {"spills": WORSE, "registers": BETTER}


def test_a_block_that_fits_nowhere_is_said() -> None:
    (one,) = judge_function(pinned(max_threads=1024), pinned(max_threads=1024, registers=255))
    assert "0 blocks of 1024 threads on an SM instead of 1 (1024 threads with 255 registers each" in one.line


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ({"HMMA_16816_F32": 8}, {"FFMA": 64}, {"matrix instructions": WORSE}),
        ({"HMMA_16816_F32": 8}, {"HMMA_1688_F32": 16}, {"matrix instructions": UNCLEAR}),
        ({"FFMA": 64}, {"HMMA_16816_F32": 8}, {"matrix instructions": BETTER}),
        ({"HMMA_16816_F32": 8}, {"HMMA_16816_F32": 16}, {}),
        ({"LDG_128": 4}, {"LDG_32": 16}, {"memory width": WORSE}),
        ({"LDG_32": 16}, {"LDG_128": 4}, {"memory width": BETTER}),
        ({"LDG_128": 4}, {"LDG_32": 2}, {"memory width": UNCLEAR}),  # another number of bytes
        ({"LDG_32": 2}, {"LDG_128": 4}, {"memory width": CHANGED}),
        ({"LDSM_4": 2}, {"LDSM": 8}, {"memory width": WORSE}),
        ({"LDG_128": 4}, {"LDG_128": 40}, {}),
        ({"LDG_128": 4}, {"LDS_32": 4}, {}),
    ],
)
def test_matrix_instructions_and_widths(
    a: dict[str, int], b: dict[str, int], found: dict[str, Verdict]
) -> None:
    assert _verdicts(pinned(loops=_loops(**a)), pinned(loops=_loops(**b))) == found


def test_narrower_accesses_outside_loops_are_unclear() -> None:
    a, b = (LoopFacts((counts,), ()) for counts in ({"LDG.128": 4}, {"LDG.32": 16}))
    (one,) = judge_function(pinned(loops=a), pinned(loops=b))
    assert (one.verdict, one.line) == (UNCLEAR, "LDG outside loops: 4 of 16 B a thread → 16 of 4 B")


def test_code_that_cannot_be_read_is_missing_unless_its_instructions_are_the_same() -> None:
    assert _verdicts(pinned(), pinned(loops=None, unscheduled="u1")) == {"spills": Verdict.MISSING}
    assert _verdicts(pinned(loops=None), pinned(loops=None, code="c1")) == {}


def test_another_cluster_is_unclear_though_its_code_is_equal() -> None:
    (one,) = judge_function(pinned(), pinned(cluster=(2, 1, 1)))
    assert (one.concept, one.verdict) == ("cluster", UNCLEAR)
    assert "none → 2 × 1 × 1" in one.line
    assert not pinned().is_same(pinned(cluster=(2, 1, 1)))
    assert not list(judge_function(pinned(cluster=(2, 1, 1)), pinned(cluster=(2, 1, 1))))


def _shared(*costs: tuple[int, float, float], unknown: int = 0, threads: int = 256) -> AccessFacts:
    return accesses(shared=costs, unknown=[unknown], block=(threads, 1, 1))


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (_shared((0, 0, 0), (8, 8, 0)), _shared((0, 0, 0), (8, 132, 124)), {"bank conflicts": WORSE}),
        (_shared((0, 0, 0), (8, 132, 124)), _shared((0, 0, 0), (8, 8, 0)), {"bank conflicts": BETTER}),
        (_shared((8, 8, 0)), _shared((8, 16, 8)), {"bank conflicts": UNCLEAR}),  # outside loops
        (_shared((8, 16, 8)), _shared((8, 8, 0)), {"bank conflicts": BETTER}),
        (_shared((8, 16, 8)), _shared((8, 16, 8)), {}),
        (_shared((8, 16, 8)), _shared((8, 16.004, 8.004)), {}),  # of paths that differ
        (_shared(), _shared((0, 0, 0), (2, 4, 2)), {"bank conflicts": WORSE}),
        # Unrolled: twice the accesses, each as it was; and back.
        (_shared((0, 0, 0), (4, 8, 4)), _shared((0, 0, 0), (8, 16, 8)), {"bank conflicts": CHANGED}),
        (_shared((0, 0, 0), (8, 16, 8)), _shared((0, 0, 0), (4, 8, 4)), {"bank conflicts": CHANGED}),
        # A loop that was unrolled away is one again.
        (
            _shared((0, 0, 0), (8, 16, 8)),
            _shared((0, 0, 0), (0, 0, 0), (1, 2, 1)),
            {"bank conflicts": CHANGED},
        ),
        # More of it among many more accesses that have none.
        (_shared((0, 0, 0), (4, 8, 4)), _shared((0, 0, 0), (40, 48, 8)), {"bank conflicts": UNCLEAR}),
        # The deepest loops that differ decide.
        (
            _shared((0, 0, 0), (2, 2, 0), (2, 8, 6)),
            _shared((0, 0, 0), (2, 8, 6), (2, 2, 0)),
            {"bank conflicts": BETTER},
        ),
        # What was not known may have been so before; what is not known now may be as it was.
        (
            _shared((0, 0, 0), (2, 2, 0), unknown=1),
            _shared((0, 0, 0), (3, 10, 6)),
            {"bank conflicts": UNCLEAR},
        ),
        (
            _shared((0, 0, 0), (3, 10, 6)),
            _shared((0, 0, 0), (2, 2, 0), unknown=1),
            {"bank conflicts": UNCLEAR, "addresses": UNCLEAR},
        ),
        (
            _shared((0, 0, 0), (3, 10, 6)),
            _shared((0, 0, 0), (3, 12, 8), unknown=1),
            {"bank conflicts": WORSE, "addresses": UNCLEAR},
        ),
        (_shared((2, 2, 0), unknown=1), _shared((4, 4, 0), unknown=2), {}),
        (_shared((2, 2, 0), unknown=2), _shared((2, 2, 0), unknown=1), {}),
        # Another block has other warps.
        (
            _shared((0, 0, 0), (8, 8, 0)),
            _shared((0, 0, 0), (8, 16, 8), threads=128),
            {"bank conflicts": UNCLEAR},
        ),
        (
            accesses(sectors=[(0, 0, 0), (4, 16, 0)]),
            accesses(sectors=[(0, 0, 0), (4, 64, 48)]),
            {"excess sectors": WORSE},
        ),
        (None, _shared((0, 0, 0), (8, 132, 124)), {}),  # an older lock, or a large library
        (None, None, {}),
        (_shared(), None, {"addresses": Verdict.MISSING}),
    ],
)
def test_more_excess_of_each_request_is_worse_in_loops(
    a: AccessFacts | None, b: AccessFacts | None, found: dict[str, Verdict]
) -> None:
    assert _verdicts(pinned(accesses=a), pinned(accesses=b)) == found


def test_words_say_where_the_excess_is_and_in_how_many_accesses() -> None:
    (one,) = judge_function(
        pinned(accesses=_shared((0, 0, 0), (8, 8, 0))),
        pinned(accesses=_shared((0, 0, 0), (8, 132, 124.25), threads=128)),
    )
    assert one.line == (
        "wavefronts in excess in 1 loop: 0 of 8 in 8 accesses → 124.2 of 132 in 8 accesses; "
        "for blocks of 128 × 1 × 1 threads instead of 256 × 1 × 1"
    )


def test_addresses_that_are_not_known_because_they_were_spilled_are_said_as_spills() -> None:
    a, b = _shared((2, 2, 0)), _shared((1, 1, 0), unknown=1)
    spilling = pinned(loops=_loops(0, 4, inner=4), accesses=b)
    assert _verdicts(pinned(loops=_loops(), accesses=a), spilling) == {"spills": WORSE}
    less = pinned(loops=_loops(0, 8, inner=8), accesses=a)
    assert _verdicts(less, spilling) == {"spills": BETTER, "addresses": UNCLEAR}
