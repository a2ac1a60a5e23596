"""Counts by place, and what moved: held against the report's own totals."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from profiler.evidence.values import Value, pack_values
from profiler.reports import read
from profiler.reports.instances import LaunchDetail, PcColumn
from profiler.sass import hotspots
from profiler.sass.alignment import UNCHANGED, align
from profiler.sass.hotspots import EXECUTED, SAMPLES, STALL
from profiler.sass.listing import Listing, listing_of_launch, select_functions
from tests.reportfiles import is_made

LAUNCHES = [
    ("cutlass/report75", 0),
    ("cutlass/report80", 2),
    ("llm.c/adamw_coalsecing_shared", 0),
    ("ncar/MW_Baseline", 2),
]


@cache
def listing(reports: Path, name: str, ordinal: int) -> Listing:
    return listing_of_launch(read.launch_detail(reports / f"{name}.ncu-rep", ordinal))


def changed(reports: Path, name: str, ordinal: int, column: str, line: int, times: float) -> LaunchDetail:
    """A real launch in which one stall reason of one source line counts differently."""
    detail = read.launch_detail(reports / f"{name}.ncu-rep", ordinal)
    counts = detail.per_pc[column]
    values = np.where(detail.line == line, counts.values * times, counts.values)
    return replace(detail, per_pc={**detail.per_pc, column: PcColumn(counts.unit, values)})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ordinal"), LAUNCHES)
def test_places_add_up_to_the_launch_whichever_way_they_are_grouped(
    reports: Path, name: str, ordinal: int
) -> None:
    launch = listing(reports, name, ordinal)
    for spots in (hotspots.spots_by_line(launch), hotspots.spots_by_instruction(launch)):
        assert sorted(position for spot in spots for position in spot.lines) == list(range(len(launch.lines)))
        assert sum(spot.executed or 0 for spot in spots) == np.nansum(launch.counts[EXECUTED].values)
        assert sum(spot.samples or 0 for spot in spots) == np.nansum(launch.counts[SAMPLES].values)
        issuing = np.nansum(launch.counts[f"{STALL}selected"].values)
        waiting = sum(hotspots.stall_totals(spots).values())
        assert waiting + issuing == np.nansum(launch.counts[SAMPLES].values), "every sample waits or issues"


@pytest.mark.slow
def test_lines_come_with_their_source(reports: Path) -> None:
    spot = hotspots.hottest(hotspots.spots_by_line(listing(reports, "llm.c/adamw_coalsecing_shared", 0)), 1)[
        0
    ]
    if is_made(reports):
        place, text, reason = "v1.cu:81", "O_rmem[e] += P_smem[n] *", "long_scoreboard"
    else:
        place, text, reason = "adamw.cu:95", "shared_g[local_i] = grads_memory[i];", "long_scoreboard"
    assert spot.location.words == place
    assert (spot.text or "").strip().startswith(text)
    assert max(spot.reasons, key=lambda name: spot.reasons[name]) == reason


def test_instructions_without_a_line_stand_beside_the_lines(public_reports: Path) -> None:
    spots = hotspots.spots_by_line(listing(public_reports, "ncar/MW_Baseline", 2))
    without_line = [spot for spot in spots if spot.location.file is None]
    assert len(without_line) == 136 + 88
    assert without_line[-1].location.words.startswith("[2]+0x")


@pytest.mark.slow
def test_a_launch_against_itself_moves_nowhere(made_reports: Path) -> None:
    for name, ordinal in LAUNCHES:
        launch = listing(made_reports, name, ordinal)
        assert hotspots.hot_spot_changes(launch, launch) == ()


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_what_moved_adds_up_and_swapping_flips_every_sign(reports: Path, scale: float) -> None:
    a, b = listing(reports, "ncar/MW_Baseline", 2), listing(reports, "ncar/MW_DivToMult", 2)
    changes = hotspots.hot_spot_changes(a, b, scale)
    total = [sum(hotspots.stall_totals(hotspots.spots_by_line(side)).values()) for side in (a, b)]
    assert sum(change.change for change in changes) == pytest.approx(total[1] * scale - total[0])
    assert all(sum(change.by_reason.values()) == pytest.approx(change.change) for change in changes)
    if scale == 1.0:
        back = {
            change.location_a or change.location_b: change.change
            for change in hotspots.hot_spot_changes(b, a)
        }
        assert back == {change.location_b or change.location_a: -change.change for change in changes}


@pytest.mark.slow
def test_the_changes_of_every_reason_add_up_to_the_changes(reports: Path) -> None:
    a, b = listing(reports, "ncar/MW_Baseline", 2), listing(reports, "ncar/MW_DivToMult", 2)
    changes = hotspots.hot_spot_changes(a, b, 0.5)
    reasons = {reason for change in changes for reason in change.by_reason}
    assert len(reasons) > 3
    for reason in reasons:
        narrowed = hotspots.changes_of_reason(changes, reason)
        sizes = [abs(change.change) for change in narrowed]
        assert sizes == sorted(sizes, reverse=True)
        assert all(list(change.by_reason) == [reason] for change in narrowed)
        for change in narrowed:
            assert change.change == pytest.approx(change.by_reason[reason])
    total = sum(change.change for reason in reasons for change in hotspots.changes_of_reason(changes, reason))
    assert total == pytest.approx(sum(change.change for change in changes))


@pytest.mark.slow
def test_the_hottest_places_of_a_pair_are_those_of_b(reports: Path) -> None:
    a, b = listing(reports, "ncar/MW_Baseline", 2), listing(reports, "ncar/MW_DivToMult", 2)
    pairs = hotspots.hot_spot_pairs(a, b)
    hot = hotspots.hottest_pairs(pairs, 3)
    spots = sorted(hotspots.spots_by_line(b), key=lambda spot: -(spot.waiting or 0))
    assert [place.location_b for place in hot] == [spot.location for spot in spots[:3]]
    assert [place.reason for place in hot] == [spot.reason for spot in spots[:3]]
    assert hotspots.hottest_pairs(hotspots.hot_spot_pairs(a, replace(b, counts={})), 3) == []


def test_excess_sectors_of_global_memory_add_up(reports: Path) -> None:
    launch = listing(reports, "ncar/MW_Baseline", 2)
    column = launch.counts[hotspots.EXCESS_SECTORS].values
    by_line = [spot.excess_sectors or 0.0 for spot in hotspots.spots_by_line(launch)]
    assert sum(by_line) == pytest.approx(float(np.nansum(column)))
    assert sum(by_line) > 0


def test_the_edited_line_of_ncar_lost_most_and_is_found_by_its_place(public_reports: Path) -> None:
    a, b = (listing(public_reports, f"ncar/MW_{name}", 2) for name in ("Baseline", "DivToMult"))
    first = hotspots.hot_spot_changes(a, b)[0]
    assert first.location_a
    assert first.location_a.words == "miniWeather_mpi_openacc.F90:288"
    assert first.change < -50_000
    assert not first.is_counting_noise
    assert next(iter(first.by_reason)) == "wait"


@pytest.mark.slow
def test_a_planted_stall_is_found_at_its_line_and_reason(reports: Path) -> None:
    name = "llm.c/adamw_coalsecing_shared"
    file, line = ("v1.cu", 81) if is_made(reports) else ("adamw.cu", 97)
    a = listing(reports, name, 0)
    b = listing_of_launch(changed(reports, name, 0, f"{STALL}long_scoreboard", line, 3.0))
    (change,) = hotspots.hot_spot_changes(a, b)
    assert change.location_a
    assert change.location_a.words == f"{file}:{line}"
    assert set(change.by_reason) == {"long_scoreboard"}
    assert change.by_reason["long_scoreboard"] == pytest.approx(change.change)


@pytest.mark.slow
def test_lines_that_moved_down_the_file_still_belong_together(reports: Path) -> None:
    a = listing(reports, "llm.c/adamw_coalsecing_shared", 0)
    name = next(file for file in a.texts if file.endswith(("/adamw.cu", "/v1.cu")))
    texts = {**a.texts, name: "// a new first line\n" + a.texts[name]}
    lines = tuple(
        replace(line, source=(name, line.source[1] + 1)) if line.source and line.source[0] == name else line
        for line in a.lines
    )
    assert hotspots.hot_spot_changes(a, replace(a, texts=texts, lines=lines)) == ()


def test_a_place_that_only_one_side_has_moves_by_all_it_has(reports: Path) -> None:
    whole = listing(reports, "ncar/MW_Baseline", 2)
    part = select_functions(whole, lambda name: not name.endswith("[1 of 3]"))
    added = [change for change in hotspots.hot_spot_changes(part, whole) if change.location_a is None]
    assert added
    for change in added:
        assert change.a is None
        assert change.change == change.b


def test_sampling_intervals_scale_and_unknown_ones_say_so(reports: Path) -> None:
    values = read.read_report(reports / "cutlass" / "report75.ncu-rep").launches[0].values
    coarse = pack_values({**values, hotspots.INTERVAL: Value(2048.0, "cycle")})
    assert hotspots.sample_scale(values, values) == 1.0
    assert hotspots.sample_scale(values, coarse) == 2.0
    assert hotspots.sample_scale(coarse, values) == 0.5
    unknown = pack_values({name: value for name, value in values.items() if name != hotspots.INTERVAL})
    assert hotspots.sample_scale(values, unknown) is None


@pytest.mark.slow
def test_sampling_calls_two_reasons_as_the_counters_do(reports: Path) -> None:
    totals = hotspots.stall_totals(hotspots.spots_by_line(listing(reports, "cutlass/report75", 0)))
    assert "no_instruction" in totals
    assert "no_instructions" not in totals
    assert "selected" not in totals


def test_samples_are_the_sum_of_their_reasons_where_a_report_has_these_alone(made_reports: Path) -> None:
    detail = read.launch_detail(made_reports / "mistic" / "prof1.ncu-rep", 0)
    by_reason = {name: column for name, column in detail.per_pc.items() if name != SAMPLES}
    whole, summed = listing_of_launch(detail), listing_of_launch(replace(detail, per_pc=by_reason))
    np.testing.assert_array_equal(summed.counts[SAMPLES].values, whole.counts[SAMPLES].values)
    assert list(summed.derived) == [SAMPLES]
    assert whole.derived == {}
    without_any = {name: column for name, column in by_reason.items() if not name.startswith(STALL)}
    assert SAMPLES not in listing_of_launch(replace(detail, per_pc=without_any)).counts


@pytest.mark.slow
def test_the_hottest_rows_of_two_sides_count_both_and_fall_back_to_what_there_is(made_reports: Path) -> None:
    detail = read.launch_detail(made_reports / "mistic" / "prof1.ncu-rep", 0)
    a, b = (
        listing_of_launch(detail),
        listing_of_launch(read.launch_detail(made_reports / "mistic" / "prof2.ncu-rep", 0)),
    )
    aligned = align(a, b)
    hottest = hotspots.hottest_rows(aligned, a, b, 5)
    samples = [(row.samples_a or 0) + (row.samples_b or 0) for row in hottest]
    rows = [row for function in aligned.functions for row in function.rows]
    every = sorted(
        (
            (0 if row.a is None else np.nan_to_num(a.counts[SAMPLES].values[row.a]))
            + (0 if row.b is None else np.nan_to_num(b.counts[SAMPLES].values[row.b]))
            for row in rows
        ),
        reverse=True,
    )
    assert samples == every[:5]
    # One sample of B that is worth many of A puts B's hottest row first.
    (first,) = hotspots.hottest_rows(aligned, a, b, 1, scale=1e9)
    assert first.samples_b == np.nanmax(b.counts[SAMPLES].values)
    uncounted = [replace(listing, counts={}) for listing in (a, b)]
    first_rows = hotspots.hottest_rows(aligned, *uncounted, 3)
    assert all(aligned.functions[row.function].rows[row.row].kind not in UNCHANGED for row in first_rows)
    assert {row.samples_a for row in first_rows} == {row.executed_b for row in first_rows} == {None}
    same = uncounted[0]
    assert hotspots.hottest_rows(align(same, same), same, same, 3) == (), "nothing ran, and nothing differs"


def test_nothing_moved_where_a_side_was_not_sampled(made_reports: Path) -> None:
    sampled = listing(made_reports, "mistic/prof1", 0)
    edited = listing(made_reports, "mistic/prof2", 0)
    assert hotspots.hot_spot_changes(sampled, edited)
    uncounted = replace(edited, counts={})
    assert hotspots.hot_spot_changes(sampled, uncounted) == ()
    assert hotspots.hot_spot_changes(uncounted, sampled) == ()
