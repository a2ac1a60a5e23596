"""Swizzles of shared memory: by hand, and that of the lineage found from the version that lacks it."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.build.library import BuiltLibrary, build
from profiler.catalog.attention import ATTENTION, AttentionWorkload
from profiler.catalog.catalog import load_catalog
from profiler.model.accesses import AccessCounts
from profiler.model.shared_layout import SharedTrace, Swizzle, find_swizzle
from profiler.model.version_run import LaunchRun, run_version
from tests.toolchain import needs_gxx, needs_sass


def column_of_rows(row_bytes: int, width: int, rows: int = 8) -> SharedTrace:
    """A warp of which each lane reads the first bytes of a row of its own, so many rows over and over."""
    trace = SharedTrace()
    addresses = np.arange(32) % rows * row_bytes
    trace(0, AccessCounts("shared", "load", width), np.zeros(32, int), np.arange(32), addresses)
    return trace


def test_a_swizzle_is_that_of_cutlass() -> None:
    swizzle = Swizzle(3, 4, 3)
    # Row 5 of 128 bytes, chunk 2 of 16: it goes to chunk 2 ^ 5.
    assert swizzle.apply(np.array([5 * 128 + 2 * 16 + 6, -1])).tolist() == [5 * 128 + 7 * 16 + 6, -1]
    assert swizzle.of_elements(2) == "Swizzle<3, 3, 3>"
    assert swizzle.words == "chunk of 16 bytes ^= (address / 128) & 7"
    whole = np.arange(4096)
    assert np.array_equal(np.sort(swizzle.apply(whole)), whole), "no two bytes come to lie at one place"


@pytest.mark.parametrize(("row_bytes", "shift"), [(128, 3), (256, 4), (512, 5)])
def test_eight_rows_in_one_group_of_banks_are_cleared(row_bytes: int, shift: int) -> None:
    search = find_swizzle(column_of_rows(row_bytes, 16).patterns(), 8 * row_bytes)
    assert (search.before, search.ideal, search.after) == (32, 4, 4)
    assert search.swizzle == Swizzle(3, 4, shift)
    assert search.left() == []


def test_fewer_bits_are_taken_where_they_are_enough() -> None:
    search = find_swizzle(column_of_rows(128, 16, rows=2).patterns(), 256)
    assert (search.before, search.after, search.swizzle) == (8, 4, Swizzle(1, 4, 3))


def test_what_no_swizzle_clears_is_left_and_named() -> None:
    search = find_swizzle(column_of_rows(128, 4, rows=32).patterns(), 32 * 128)
    assert (search.before, search.ideal, search.after) == (32, 1, 1), "words may go to all 32 banks"
    wide = SharedTrace()
    for position, stride in ((3, 128), (9, 16 * 128)):
        lanes = np.arange(32)
        wide(position, AccessCounts("shared", "load", 16), lanes * 0, lanes, lanes % 8 * stride)
    found = find_swizzle(wide.patterns(), 16 << 10)
    assert found.after > found.ideal, "rows of 128 bytes and of 2 KB ask for different shifts"
    assert {pattern.position for pattern, _ in found.left()} <= {3, 9}
    assert sum(excess for _, excess in found.left()) == found.after - found.ideal


def test_memory_that_a_swizzle_would_leave_is_not_swizzled() -> None:
    # The last chunk of 3 would go to where the block has no memory.
    trace = SharedTrace()
    lanes = np.arange(3)
    trace(0, AccessCounts("shared", "load", 16), lanes * 0, lanes, lanes * 128)
    assert find_swizzle(trace.patterns(), 2 * 128 + 16).swizzle is None
    search = find_swizzle(trace.patterns(), 3 * 128)
    assert search.after == search.ideal


def test_nothing_is_tried_without_conflicts() -> None:
    search = find_swizzle(column_of_rows(16, 16).patterns(), 128)
    assert (search.swizzle, search.tried, search.after) == (None, 0, search.ideal)


def traced(name: str, head_dim: int) -> LaunchRun:
    catalog = load_catalog()
    (version,) = catalog.pick([name])
    (built,) = build(catalog, [version], ["sm_90a"])
    assert isinstance(built, BuiltLibrary)
    workload = AttentionWorkload(1, 1, 64, 128, head_dim)
    run = run_version(version, ATTENTION, workload, built, "sm_90a", trace_shared=True)
    (launch,) = run.launches
    return launch


@needs_sass
@needs_gxx
@pytest.mark.parametrize(
    ("head_dim", "of_halves"),
    [(64, "Swizzle<3, 3, 3>"), pytest.param(128, "Swizzle<3, 3, 4>", marks=pytest.mark.long)],
)
def test_the_swizzle_of_v2d_b_is_found_in_v2d_a(head_dim: int, of_halves: str) -> None:
    plain, swizzled = traced("v2d_a", head_dim), traced("v2d_b", head_dim)
    assert plain.shared_trace
    search = find_swizzle(plain.shared_trace.patterns(), plain.shared_bytes)
    assert search.swizzle
    assert search.swizzle.of_elements(2) == of_halves
    assert search.before == plain.total("wavefronts")
    assert search.after == search.ideal == swizzled.total("wavefronts")
    assert search.before > 5 * search.after
