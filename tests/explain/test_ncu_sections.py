"""One launch by Nsight Compute's sections: their numbers and order, the baseline beside, what is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profiler.evidence.launch import Launch, RuleResult
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import Evidence, State, Value, pack_values
from profiler.explain.launch_numbers import LaunchReader
from profiler.explain.ncu_sections import LaunchSections, launch_sections

TABLE = load_metrics()
ELAPSED = "avg.pct_of_peak_sustained_elapsed"
ISSUED = "smsp__issue_active.avg.per_cycle_active"
SHARED = "launch__shared_mem_per_block"
SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
BYTES = "l1tex__m_xbar2l1tex_read_bytes.sum"
CONCEPTS = {
    "duration": 1e6,
    "sol_memory": 80.0,
    "sol_compute": 40.0,
    "sol_dram": 20.0,
    "sol_l2": 70.0,
    "sol_l1": 60.0,
    "pipe_fma": 10.0,
    "pipe_alu": 30.0,
    "tensor_busy": 25.0,
    "warps_active": 8.0,
    "warps_eligible": 1.5,
    "issue_active": 60.0,
    "warp_latency": 12.0,
    "stall_barrier": 2.0,
    "stall_wait": 5.0,
    "registers": 40.0,
}


def named(concepts: dict[str, float], chip: str = "sm_80") -> dict[str, Value]:
    """The values by the names that ncu has for concepts on a chip."""
    return {
        TABLE.by_concept[concept].names_for(chip)[0]: Value(number, TABLE.by_concept[concept].unit)
        for concept, number in concepts.items()
    }


FULL = named(CONCEPTS) | {SHARED: Value(2048, "byte")}


def launch(values: dict[str, Value], **opcodes: float) -> Launch:
    return Launch("k", "k", "", (1, 1, 1), (64, 1, 1), 7, (), 0, pack_values(values), opcodes)


def sections(
    values: dict[str, Value], before: dict[str, Value] | None = None, chip: str = "sm_80"
) -> LaunchSections:
    baseline = None if before is None else launch(before)
    return launch_sections(launch(values), TABLE, chip, baseline=baseline, baseline_chip=chip)


def labels(found: LaunchSections) -> list[str]:
    return [number.label for number in found.speed_of_light]


def lacking(found: LaunchSections) -> dict[str, tuple[str, str]]:
    """What is missing, with its state and what is said of it."""
    return {section.what: (section.state, section.note) for section in found.missing}


def test_memory_and_compute_stand_before_their_parts_of_which_the_largest_is_first() -> None:
    found = sections(FULL | {f"sm__pipe_fp64_cycles_active.{ELAPSED}": Value(50.0, "%")})
    assert labels(found)[:4] == ["memory", "L2", "L1/TEX (active cycles)", "DRAM"]
    assert labels(found)[4:9] == ["compute (SM)", "FP64 pipe", "ALU pipe", "tensor pipe", "FMA pipe"]
    assert labels(found)[9:] == ["XU pipe (MUFU, I2F, POPC …)", "LSU pipe"], "without a number, last"
    assert [number.is_part for number in found.speed_of_light[:6]] == [False, True, True, True, False, True]
    nearest = found.nearest_peak
    assert nearest is not None
    assert (nearest.label, nearest.number) == ("L2", 70)
    assert sections(named({"sol_memory": 80.0})).nearest_peak is None, "a whole is no unit"


def test_a_pipe_that_the_chip_lacks_is_left_out(tmp_path: Path) -> None:
    text = TABLE.path.read_text("utf-8")
    fma = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"
    (tmp_path / "metrics.txt").write_text(text.replace(f"| {fma}", f"| {fma}@sm_90"), "utf-8")
    table = load_metrics(tmp_path / "metrics.txt")
    on_other, on_it = (launch_sections(launch(FULL), table, chip) for chip in ("sm_80", "sm_90"))
    assert "FMA pipe" in labels(on_it)
    assert "FMA pipe" not in labels(on_other)


def test_stalls_are_counted_cycles_or_else_samples_and_never_both() -> None:
    sampled = {f"{SAMPLES}{reason}": Value(number) for reason, number in (("wait", 3), ("selected", 9))}
    more = {f"{SAMPLES}wait_not_issued": Value(2), f"{SAMPLES}barrier": Value(None, state=State.FAILED)}
    counted = sections(FULL | sampled | more).warp_states
    assert [(number.label, number.number) for number in counted.states] == [("wait", 5), ("barrier", 2)]
    assert (counted.total.number, counted.is_sampled) == (12, False)
    basic = named({"duration": 1e6})
    found = sections(basic | sampled | more)
    samples = found.warp_states
    assert [(number.label, number.number) for number in samples.states] == [("selected", 9), ("wait", 3)]
    assert (samples.total.label, samples.total.number, samples.is_sampled) == ("samples", 12, True)
    assert lacking(found)["stall counters"] == ("not collected", "samples stand for the counters here")
    assert "warp states" not in lacking(found)
    neither = sections(basic).warp_states
    assert (neither.states, neither.is_sampled, neither.state) == ((), False, "not collected")


def test_schedulers_issue_by_the_counter_or_by_the_share_of_their_cycles() -> None:
    before = FULL | named({"issue_active": 30.0})
    schedulers = sections(FULL, before).schedulers
    assert [number.label for number in schedulers] == ["active warps", "eligible", "issued"]
    assert [number.number for number in schedulers] == [8, 1.5, pytest.approx(0.6)]
    assert schedulers[2].baseline_number == pytest.approx(0.3)
    assert schedulers[2].value.unit == "inst/cycle"
    counter = sections(FULL | {ISSUED: Value(0.7, "inst/cycle")}).schedulers[2]
    assert (counter.number, counter.metric) == (0.7, ISSUED)
    none = sections(named({"duration": 1e6})).schedulers[2]
    assert (none.number, none.value.state) == (None, State.NOT_COLLECTED)


def test_the_instruction_mix_has_the_opcodes_of_both_sides_most_first() -> None:
    one, other = launch(FULL, FFMA=100.0, HMMA=500.0), launch(FULL, FFMA=200.0, LDS=10.0)
    mix = launch_sections(one, TABLE, "sm_80", baseline=other, baseline_chip="sm_80").instruction_mix
    assert [(number.label, number.number, number.baseline_number) for number in mix] == [
        ("HMMA", 500, 0),
        ("FFMA", 100, 200),
        ("LDS", 0, 10),
    ]
    assert mix[0].metric == "sass__inst_executed_per_opcode[HMMA]"
    without = launch_sections(one, TABLE, "sm_80", baseline=launch(FULL), baseline_chip="sm_80")
    assert {number.baseline for number in without.instruction_mix} == {None}, "not collected is not 0"
    assert sections(FULL).instruction_mix == ()


def test_facts_are_those_of_the_launch() -> None:
    found = sections(FULL, FULL | {SHARED: Value(1024, "byte")})
    assert found.fact("duration").number == 1e6
    assert found.fact("registers").number == 40
    assert (found.fact("waves").number, found.fact("no such").value.state) == (None, State.NOT_COLLECTED)
    assert (found.shared_memory.number, found.shared_memory.baseline_number) == (2048, 1024)
    assert (found.occupancy is None, found.baseline_occupancy is None) == (False, False)
    assert sections(FULL).baseline_occupancy is None


def test_a_basic_report_lacks_sections_each_with_the_command_that_collects_it() -> None:
    found = sections(named({"duration": 1e6}))
    assert {section.what: section.command for section in found.missing} == {
        "speed of light": "ncu --section SpeedOfLight PROGRAM",
        "memory traffic": (
            "ncu --section MemoryWorkloadAnalysis_Tables --section MemoryWorkloadAnalysis_Chart PROGRAM"
        ),
        "warp states": "ncu --section WarpStateStats PROGRAM",
        "schedulers": "ncu --section SchedulerStats PROGRAM",
        "instruction mix": "ncu --section InstructionStats PROGRAM",
        "achieved occupancy": "ncu --section Occupancy PROGRAM",
        "timeline": "ncu --section PmSampling PROGRAM",
        "source lines": "ncu --section SourceCounters --import-source yes PROGRAM",
        "rules": "ncu --set full --apply-rules yes PROGRAM",
        "wgmma, TMA, clusters": "",
    }
    assert {note for _, note in lacking(found).values()} == {"", "a recent ncu and GPU"}, "whole sections"


def test_what_a_section_lacks_is_named_where_the_rest_is_there() -> None:
    values = FULL | {"inst_executed": Value(5), "pmsampling:dram": Value(1)}
    values |= named({"sol_compute": 40.0}) | {
        TABLE.by_concept["sol_memory"].names_for("sm_80")[0]: Value(None, "%", state=State.FAILED)
    }
    values |= {
        "sm__warps_active.avg.pct_of_peak_sustained_active": Value(50.0, "%"),
        BYTES: Value(16, "byte"),
    }
    rule = RuleResult("Bound", "Bound", "SOL", "optimization", "Title", "Text", None, "", ())
    with_rules = replace(launch(values, FFMA=1.0), rules=(rule,))
    found = launch_sections(with_rules, TABLE, "sm_90")
    missing = lacking(found)
    assert missing["speed of light"] == ("failed (NaN)", "memory")
    assert "L2 to L1" not in missing["memory traffic"][1]
    assert "DRAM read" in missing["memory traffic"][1]
    assert set(missing) == {"speed of light", "memory traffic"}
    whole = found.missing_section("speed of light")
    assert whole is not None
    assert whole.what == "speed of light"
    assert found.missing_section("schedulers") is None


def test_tensor_memory_and_clusters_are_said_to_lack_on_older_chips_alone() -> None:
    tma = {f"sm__pipe_tma_cycles_active.{ELAPSED}": Value(1.0, "%")}
    what = "wgmma, TMA, clusters"
    assert lacking(sections(FULL))[what] == ("not available on sm_80", "")
    assert what not in lacking(sections(FULL | tma))
    assert what not in lacking(sections(FULL, chip="sm_90"))
    assert lacking(sections(FULL, chip="sm_75"))[what][0] == "not available on sm_75"
    assert what not in lacking(sections(FULL, chip="sm_61")), "of which nothing is known"


def test_what_compilers_and_models_do_not_say_is_one_thing_missing() -> None:
    static = {
        "static__registers": Value(64, "register/thread"),
        "static__threads": Value(128),
        "static__shared_bytes": Value(0, "byte"),
    }
    found = launch_sections(
        launch(static, FFMA=3.0), TABLE, None, evidence=Evidence.STATIC, architecture="sm_80"
    )
    assert (found.speed_of_light, found.schedulers) == ((), ())
    assert [fact.concept for fact in found.facts] == [
        metric.concept for metric in TABLE.of(Evidence.STATIC) if metric.alternatives[0].name in {*static}
    ]
    assert found.fact("static_registers").number == 64
    assert found.occupancy is not None
    assert found.instruction_mix[0].metric == "static__opcode[FFMA]"
    assert list(lacking(found)) == ["time, traffic, stalls, achieved occupancy"]
    assert found.missing[0].state == "not measured"
    for kind, architecture in ((Evidence.MODELLED, "sm_80"), (Evidence.STATIC, None), (Evidence.STATIC, "x")):
        without = launch_sections(launch(static), TABLE, None, evidence=kind, architecture=architecture)
        assert without.occupancy is None
    lean = {name: value for name, value in static.items() if name != "static__threads"}
    of_lean = launch_sections(launch(lean), TABLE, None, evidence=Evidence.STATIC, architecture="sm_80")
    assert of_lean.occupancy is None


def test_a_sum_leaves_what_the_launch_lacks_out_of_both_sides_and_needs_its_first() -> None:
    values = {"a": Value(1, "sector"), "b": Value(None, state=State.FAILED), "c": Value(4, "sector")}
    before = {"a": Value(10, "sector"), "b": Value(20, "sector"), "c": Value(30, "sector")}
    reader = LaunchReader(launch(values), TABLE, "sm_80", launch(before), "sm_80")
    total = reader.total("all", "byte", 32, "a", "b", "c")
    assert (total.number, total.baseline_number, total.metric) == (160, 1280, "32 * (a + c)")
    assert reader.total("one", "byte", 32, "c").metric == "32 * c"
    assert reader.total("plain", "sector", 1, "a", "c").metric == "a + c"
    none = reader.total("all", "byte", 32, "b", "a")
    assert (none.number, none.value.state, none.baseline_number) == (None, State.FAILED, None)
    assert none.baseline is not None
    assert LaunchReader(launch(values), TABLE).total("all", "byte", 32, "b").baseline is None
    lost = LaunchReader(launch(before), TABLE, None, launch(values), None).total("all", "byte", 1, "a", "b")
    assert (lost.number, lost.baseline and lost.baseline.state) == (30, State.FAILED)


def test_a_rate_is_bytes_a_second_of_each_side_alone() -> None:
    duration = "gpu__time_duration.sum"
    values, before = (
        {duration: Value(ns, "ns"), "moved": Value(size, "byte")} for ns, size in ((1e6, 500), (2e6, 600))
    )
    reader = LaunchReader(launch(values), TABLE, None, launch(before), None)
    moved = reader.named("moved", "moved")
    rate = reader.rate(moved, "rate")
    assert (rate.number, rate.baseline_number) == (pytest.approx(5e5), pytest.approx(3e5))
    assert rate.metric == f"moved / {duration}"
    alone = LaunchReader(launch(values), TABLE)
    assert alone.rate(alone.named("moved", "moved"), "rate").baseline is None
    for lacking_it, state in (
        ({"moved": Value(5, "byte")}, State.NOT_COLLECTED),
        ({"moved": Value(5, "byte"), duration: Value(0, "ns")}, State.PRESENT),
        ({"moved": Value(None, state=State.FAILED), duration: Value(1, "ns")}, State.FAILED),
    ):
        reader = LaunchReader(launch(lacking_it), TABLE)
        rate = reader.rate(reader.named("moved", "moved"), "rate")
        assert rate.number is None
        assert rate.value.state is state or state is State.PRESENT


def test_of_several_names_the_first_with_a_number_is_read() -> None:
    values = {"b": Value(None, state=State.FAILED), "c": Value(3)}
    reader = LaunchReader(launch(values), TABLE, None, launch({"b": Value(7), "c": Value(4)}), None)
    read = reader.named("x", "a", "b", "c")
    assert (read.metric, read.number, read.baseline_number) == ("c", 3, 4)
    read = reader.named("x", "a", "b")
    assert (read.metric, read.value.state) == ("b", State.FAILED)
    assert reader.named("x", "a", "z").metric == "a"
    unknown = reader.concept("no_such_concept")
    assert (unknown.label, unknown.concept, unknown.number) == ("no_such_concept", "no_such_concept", None)
