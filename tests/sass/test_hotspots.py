"""Counts by place, and what moved: held against the report's own totals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.evidence import State, Value
from profiler.evidence.values import pack_values
from profiler.explain import drilldown
from profiler.reports import LaunchDetail, read
from profiler.reports.instances import PcColumn
from profiler.sass import Listing, hotspots
from profiler.sass import listing as sass_listing
from profiler.sass.hotspots import EXECUTED, SAMPLES, STALL
from tests.reportfiles import is_made

LAUNCHES = [
    ("cutlass/report75", 0),
    ("cutlass/report80", 2),
    ("llm.c/adamw_coalsecing_shared", 0),
    ("ncar/MW_Baseline", 2),
]


def listing(reports: Path, name: str, ordinal: int) -> Listing:
    return sass_listing.listing_of_launch(read.launch_detail(reports / f"{name}.ncu-rep", ordinal))


def changed(reports: Path, name: str, ordinal: int, column: str, line: int, times: float) -> LaunchDetail:
    """A real launch in which one stall reason of one source line counts differently."""
    detail = read.launch_detail(reports / f"{name}.ncu-rep", ordinal)
    one = detail.per_pc[column]
    values = np.where(detail.line == line, one.values * times, one.values)
    return replace(detail, per_pc={**detail.per_pc, column: PcColumn(one.unit, values)})


@pytest.mark.parametrize(("name", "ordinal"), LAUNCHES)
def test_places_add_up_to_the_launch_whichever_way_they_are_grouped(
    reports: Path, name: str, ordinal: int
) -> None:
    one = listing(reports, name, ordinal)
    for found in (hotspots.spots_by_line(one), hotspots.spots_by_instruction(one)):
        assert sorted(at for hot in found for at in hot.lines) == list(range(len(one.lines)))
        assert sum(hot.executed or 0 for hot in found) == np.nansum(one.counts[EXECUTED].values)
        assert sum(hot.samples or 0 for hot in found) == np.nansum(one.counts[SAMPLES].values)
        issuing = np.nansum(one.counts[f"{STALL}selected"].values)
        waiting = sum(hotspots.stall_totals(found).values())
        assert waiting + issuing == np.nansum(one.counts[SAMPLES].values), "every sample waits or issues"


def test_lines_come_with_their_source(reports: Path) -> None:
    found = hotspots.hottest(hotspots.spots_by_line(listing(reports, "llm.c/adamw_coalsecing_shared", 0)), 1)[
        0
    ]
    if is_made(reports):
        place, text, reason = "v1.cu:81", "O_rmem[e] += P_smem[n] *", "long_scoreboard"
    else:
        place, text, reason = "adamw.cu:95", "shared_g[local_i] = grads_memory[i];", "long_scoreboard"
    assert found.location.words == place
    assert (found.text or "").strip().startswith(text)
    assert max(found.reasons, key=lambda name: found.reasons[name]) == reason


def test_instructions_without_a_line_stand_beside_the_lines(public_reports: Path) -> None:
    found = hotspots.spots_by_line(listing(public_reports, "ncar/MW_Baseline", 2))
    alone = [hot for hot in found if hot.location.file is None]
    assert len(alone) == 136 + 88
    assert alone[-1].location.words.startswith("[2]+0x")


def test_a_launch_against_itself_moves_nowhere(reports: Path) -> None:
    for name, ordinal in LAUNCHES:
        one = listing(reports, name, ordinal)
        assert hotspots.hot_spot_changes(one, one) == ()


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_what_moved_adds_up_and_swapping_flips_every_sign(reports: Path, scale: float) -> None:
    a, b = listing(reports, "ncar/MW_Baseline", 2), listing(reports, "ncar/MW_DivToMult", 2)
    there = hotspots.hot_spot_changes(a, b, scale)
    total = [sum(hotspots.stall_totals(hotspots.spots_by_line(one)).values()) for one in (a, b)]
    assert sum(one.moved for one in there) == pytest.approx(total[1] * scale - total[0])
    assert all(sum(one.by_reason.values()) == pytest.approx(one.moved) for one in there)
    if scale == 1.0:
        back = {one.location_a or one.location_b: one.moved for one in hotspots.hot_spot_changes(b, a)}
        assert back == {one.location_b or one.location_a: -one.moved for one in there}


def test_the_edited_line_of_ncar_lost_most_and_is_found_by_its_place(public_reports: Path) -> None:
    a, b = (listing(public_reports, f"ncar/MW_{name}", 2) for name in ("Baseline", "DivToMult"))
    first = hotspots.hot_spot_changes(a, b)[0]
    assert first.location_a
    assert first.location_a.words == "miniWeather_mpi_openacc.F90:288"
    assert first.moved < -50_000
    assert not first.noise
    assert next(iter(first.by_reason)) == "wait"


def test_a_planted_stall_is_found_at_its_line_and_reason(reports: Path) -> None:
    name = "llm.c/adamw_coalsecing_shared"
    file, line = ("v1.cu", 81) if is_made(reports) else ("adamw.cu", 97)
    a = listing(reports, name, 0)
    b = sass_listing.listing_of_launch(changed(reports, name, 0, f"{STALL}long_scoreboard", line, 3.0))
    (one,) = hotspots.hot_spot_changes(a, b)
    assert one.location_a
    assert one.location_a.words == f"{file}:{line}"
    assert set(one.by_reason) == {"long_scoreboard"}
    assert one.by_reason["long_scoreboard"] == pytest.approx(one.moved)


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
    kept = sass_listing.select_functions(whole, lambda name: not name.endswith("[1 of 3]"))
    added = [one for one in hotspots.hot_spot_changes(kept, whole) if one.location_a is None]
    assert added
    for one in added:
        assert one.a is None
        assert one.moved == one.b


def test_sampling_intervals_scale_and_unknown_ones_say_so(reports: Path) -> None:
    values = read.read_report(reports / "cutlass" / "report75.ncu-rep").launches[0].values
    coarse = pack_values({**values, hotspots.INTERVAL: Value(2048.0, "cycle")})
    assert hotspots.sample_scale(values, values) == 1.0
    assert hotspots.sample_scale(values, coarse) == 2.0
    assert hotspots.sample_scale(coarse, values) == 0.5
    unknown = pack_values({name: value for name, value in values.items() if name != hotspots.INTERVAL})
    assert hotspots.sample_scale(values, unknown) is None


def test_sampling_calls_two_reasons_as_the_counters_do(reports: Path) -> None:
    found = hotspots.stall_totals(hotspots.spots_by_line(listing(reports, "cutlass/report75", 0)))
    assert "no_instruction" in found
    assert "no_instructions" not in found
    assert "selected" not in found


def test_hardware_conflicts_without_excess_are_arbitration(reports: Path) -> None:
    """Trap 1 on a real launch: 11,596 conflicts counted, and no access pattern that costs anything."""
    launch = read.read_report(reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep").launches[0]
    found = drilldown.bank_conflicts(launch)
    assert (found.counted.number, found.excess.number, found.residue) == (11596, 0, 11596)


def test_a_missing_conflict_counter_leaves_no_residue(reports: Path) -> None:
    found = drilldown.bank_conflicts(read.read_report(reports / "mistic" / "prof1.ncu-rep").launches[0])
    assert found.counted.state is State.NOT_COLLECTED
    assert found.residue is None


def test_the_tensor_pipe_is_held_against_the_opcodes(reports: Path) -> None:
    gemm = read.read_report(reports / "cutlass" / "report75.ncu-rep").launches[0]
    found = drilldown.tensor_pipe(gemm)
    assert found.instructions == gemm.opcodes["IMMA"] == 110592
    assert found.matrix.state is State.NOT_AVAILABLE, "sm_80 has no counter of matrix work alone"
    assert found.pipe.number
    half = replace(gemm, opcodes={"HFMA2": 500.0, "FFMA": 3.0})
    assert drilldown.tensor_pipe(half).words.startswith(
        "no matrix instruction: the tensor pipe counts HFMA2.MMA"
    )
    assert "nobody can say" in drilldown.tensor_pipe(replace(gemm, opcodes={})).words


def test_the_counter_of_matrix_work_alone_comes_first_where_there_is_one(reports: Path) -> None:
    gemm = read.read_report(reports / "cutlass" / "report75.ncu-rep").launches[0]
    counter = "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active"
    name = f"{counter}.avg.pct_of_peak_sustained_elapsed"
    hopper = replace(gemm, values=pack_values({**gemm.values, name: Value(0.0, "%")}))
    assert drilldown.tensor_pipe(hopper).matrix.number == 0.0
    assert drilldown.tensor_pipe(hopper).matrix_name == name


def test_opcode_classes_add_up_and_name_what_came_and_went(reports: Path) -> None:
    a, b = (
        read.read_report(reports / "cutlass" / f"report{n}.ncu-rep").launches[2].opcodes for n in (75, 80)
    )
    found = drilldown.opcode_class_changes(a, b)
    assert sum(one.a for one in found) == sum(a.values())
    assert sum(one.b for one in found) == sum(b.values())
    memory = next(one for one in found if one.name == "global, local memory")
    assert dict(memory.added) == {"STL": 1536.0, "LDL": 1536.0}, "report80 spills"
    assert [one.name for one in found if one.matrix] == ["tensor core"]
    assert drilldown.opcode_class_changes({}, b) == ()
