"""What the warps wait for: every stall of metrics.txt has an entry, with a lever or with none on purpose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.advice.levers import LESS_L2, SWIZZLE
from profiler.advice.stall_levers import NOT_STALLED, STALL_REASONS, advice_for_stall
from profiler.advice.statement import LaunchMetrics
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import Value, pack_values
from profiler.explain.explanation import stall_metrics
from tests import made

TABLE = load_metrics()
WITHOUT_LEVER = {"dispatch_stall", "misc"}


def metrics(**numbers: float) -> LaunchMetrics:
    """A launch with these concepts."""
    values = {
        TABLE.by_concept[concept].names_for("sm_90")[0]: Value(number, "%")
        for concept, number in numbers.items()
    }
    return LaunchMetrics(replace(made.launch(), values=pack_values(values)), TABLE, "sm_90")


def test_every_declared_stall_has_an_entry() -> None:
    declared = set(stall_metrics(TABLE, None))
    assert declared == {*STALL_REASONS, *NOT_STALLED}


@pytest.mark.parametrize("reason", STALL_REASONS)
def test_a_reason_has_a_lever_unless_nothing_can_be_done(reason: str) -> None:
    lever = STALL_REASONS[reason].lever
    assert bool(lever) is (reason not in WITHOUT_LEVER)


def test_waiting_for_data_is_hidden_below_the_peak_and_saved_at_it() -> None:
    hidden = advice_for_stall("long_scoreboard", metrics(sol_dram=10.0, sol_l2=20.0, sol_memory=20.0))
    assert hidden.lever.startswith("prefetch: load the next tile (cp.async)")
    filled = advice_for_stall("long_scoreboard", metrics(sol_dram=67.0, sol_l2=65.0, sol_memory=67.0))
    assert filled.lever.startswith("more bytes in flight"), "good kernels reach 88 % and more"
    assert 0.2 < filled.at_most < 0.3, "however long warps wait, DRAM leaves no more than that to its peak"
    assert hidden.at_most == 1.0
    saved = advice_for_stall("long_scoreboard", metrics(sol_dram=90.0, sol_l2=20.0, sol_memory=90.0))
    assert saved.lever.startswith("move fewer bytes through DRAM")
    full = advice_for_stall("long_scoreboard", metrics(sol_dram=10.0, sol_l2=20.0, sol_memory=75.0))
    assert full.lever == "", "L1 is the limit: the levers on accesses say how to ask it for less"
    unknown = advice_for_stall("long_scoreboard", metrics(sol_dram=90.0))
    assert unknown.lever == ""
    assert unknown.words == "whether latency or bandwidth is to blame is unknown"


def test_of_an_unknown_chip_nobody_says_that_it_has_asynchronous_copies() -> None:
    launch = metrics(sol_dram=10.0, sol_l2=20.0, sol_memory=20.0)
    lever = {
        chip: advice_for_stall("long_scoreboard", replace(launch, chip=chip)).lever
        for chip in ("sm_75", "sm_80", None)
    }
    assert "cp.async" not in lever["sm_75"]
    assert "(cp.async)" in lever["sm_80"]
    assert "cp.async where the GPU has it" in lever[None]


def test_a_reason_that_nobody_knows_has_no_advice() -> None:
    assert advice_for_stall("brand_new", metrics()) == ("", "", (), 1.0)


def test_wavefronts_are_counted_though_an_old_ncu_calls_them_sectors() -> None:
    values = {
        TABLE.by_concept["shared_excess"].names_for("sm_90")[0]: Value(254e6, ""),
        TABLE.by_concept["shared_wavefronts_source"].names_for("sm_90")[0]: Value(513e6, "sectors"),
    }
    launch = LaunchMetrics(replace(made.launch(), values=pack_values(values)), TABLE, "sm_90")
    words = advice_for_stall("short_scoreboard", launch).words
    assert words == "254 M of 513 M wavefronts are excess: bank conflicts by access pattern"


@pytest.mark.parametrize(
    ("opcodes", "lever", "words"),
    [
        ({"STG": 100.0, "RED": 10.0}, "store the result wide and coalesced", ""),
        (
            {"RED.E": 32768.0, "EXIT": 5.0},
            "fewer atomics: reduce",
            "32.8 k atomic instructions beside 0 stores",
        ),
        (
            {"REDG.E.ADD.F32": 32768.0, "STG": 5.0},
            "fewer atomics: reduce",
            "32.8 k atomic instructions beside 5 stores",
        ),
        ({}, "", "whether stores or atomics drain is unknown"),
    ],
)
def test_atomics_that_drain_are_not_stored_wider(opcodes: dict[str, float], lever: str, words: str) -> None:
    launch = replace(made.launch(), opcodes=opcodes)
    advice = advice_for_stall("drain", LaunchMetrics(launch, TABLE, "sm_90"))
    assert (advice.lever[: len(lever)], advice.words) == (lever, words)
    assert bool(advice.lever) is bool(lever)


@pytest.mark.parametrize("name", ["RED", "REDG", "ATOM", "ATOMG"])
def test_atomics_that_fill_the_queue_are_not_made_wider(name: str) -> None:
    launch = replace(made.launch(), opcodes={"LDG": 20.0, name: 10.0})
    advice = advice_for_stall("lg_throttle", LaunchMetrics(launch, TABLE, "sm_90"))
    assert advice.lever.startswith("fewer atomics: reduce")
    assert advice.words == "33 % of the accesses to global memory are atomics"
    bare = advice_for_stall("lg_throttle", LaunchMetrics(replace(launch, opcodes={}), TABLE, "sm_90"))
    assert bare.lever == ""


@pytest.mark.parametrize(
    ("opcodes", "lever", "words"),
    [
        (
            {"MUFU.EX2": 40.0, "FMUL": 5.0},
            "fewer special functions",
            "40 instructions ran on the XU pipe, and no shared memory is accessed",
        ),
        (
            {"POPC": 30.0, "FLO.U32": 12.0, "MUFU.RCP": 1.0},
            "fewer bit counts",
            "43 instructions ran on the XU pipe, and no shared memory is accessed",
        ),
        (
            {"I2F.U32": 30.0, "MUFU.RCP": 1.0},
            "fewer conversions",
            "31 instructions ran on the XU pipe, and no shared memory is accessed",
        ),
        ({"S2R": 3.0}, "", "no shared memory is accessed, and nothing ran on the XU pipe"),
        ({}, "", "no shared memory is accessed; whether the XU pipe was used is unknown"),
    ],
)
def test_without_shared_memory_its_accesses_are_not_made_wider(
    opcodes: dict[str, float], lever: str, words: str
) -> None:
    launch = metrics(shared_excess=0.0, shared_wavefronts_source=0.0)
    advice = advice_for_stall(
        "short_scoreboard", replace(launch, launch=replace(launch.launch, opcodes=opcodes))
    )
    assert advice.lever.startswith(lever)
    assert bool(advice.lever) is bool(lever)
    assert advice.words == words


@pytest.mark.parametrize(
    ("excess", "wavefronts", "lever", "words"),
    [
        (20.0, 100.0, SWIZZLE, "20 of 100 wavefronts are excess: bank conflicts by access pattern"),
        (5.0, 100.0, "wider shared-memory accesses", "the access pattern is right"),
        (0.0, 100.0, "wider shared-memory accesses", "the access pattern is right"),
        (120.0, 100.0, "", "whether the access pattern is to blame is unknown"),
        (None, 100.0, "", "whether the access pattern is to blame is unknown"),
        (0.0, None, "", "whether the access pattern is to blame is unknown"),
    ],
)
def test_the_access_pattern_is_to_blame_where_its_excess_says_so(
    excess: float | None, wavefronts: float | None, lever: str, words: str
) -> None:
    numbers = {"shared_excess": excess, "shared_wavefronts_source": wavefronts}
    known = {concept: number for concept, number in numbers.items() if number is not None}
    advice = advice_for_stall("short_scoreboard", metrics(**known))
    assert advice.lever.startswith(lever)
    assert bool(advice.lever) is bool(lever)
    assert advice.words == words
    doubtful = [one.concept for one in advice.inputs if not one.valid]
    assert bool(doubtful) is (not lever), "there is no lever on what is not to be believed"


def test_what_waits_for_data_of_a_full_l2_asks_for_less_of_it() -> None:
    full = advice_for_stall("long_scoreboard", metrics(sol_dram=20.0, sol_l2=80.0, sol_memory=80.0))
    assert full.lever == LESS_L2
    assert full.words == "DRAM at 20.0 %, L2 at 80.0 % of their peaks"


@pytest.mark.parametrize(
    ("opcodes", "lever", "words"),
    [
        ({"TEX": 5.0, "FFMA": 9.0}, "fewer texture or surface accesses", ""),
        ({"SUST": 1.0}, "fewer texture or surface accesses", ""),
        ({"FFMA": 9.0}, "", "no texture instruction ran"),
        ({}, "", "whether textures are accessed is unknown"),
    ],
)
def test_a_full_queue_to_textures_is_theirs_only_where_there_are_any(
    opcodes: dict[str, float], lever: str, words: str
) -> None:
    launch = replace(made.launch(), opcodes=opcodes)
    advice = advice_for_stall("tex_throttle", LaunchMetrics(launch, TABLE, "sm_90"))
    assert (advice.lever, advice.words) == (lever, words)


@pytest.mark.parametrize(
    ("excess", "lever", "words"),
    [
        (10.0, "wider loads and stores", ""),
        (90.0, "", "the accesses are not coalesced"),
        (None, "", "whether the accesses are coalesced is unknown"),
    ],
)
def test_a_full_queue_to_memory_asks_for_wider_accesses_only_where_they_are_coalesced(
    excess: float | None, lever: str, words: str
) -> None:
    numbers = {} if excess is None else {"global_excess": excess}
    launch = metrics(global_load_sectors=60.0, global_store_sectors=40.0, **numbers)
    loads = replace(launch.launch, opcodes={"LDG": 100.0, "RED": 1.0})
    advice = advice_for_stall("lg_throttle", replace(launch, launch=loads))
    assert advice.lever.startswith(lever)
    assert (bool(advice.lever), advice.words) == (bool(lever), words)
