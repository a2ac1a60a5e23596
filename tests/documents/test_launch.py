"""One launch by its sections: what the command prints, a baseline beside it, and what is not there."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from profiler.cli import main
from profiler.cli.output import text_of
from profiler.documents.launch import (
    LaunchDocument,
    launch_document,
    launch_like,
    launch_of_name,
    longest_launch,
)
from profiler.errors import CannotJudge, Exit, UnknownName
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence, Value, pack_values
from tests.documents.printed import assert_html_escapes, assert_same_as_printed
from tests.documents.test_comparison import named_side, no_store, side

TABLE = load_metrics()
BASIC = {
    "gpu__time_duration.sum": Value(1e6, "ns"),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": Value(87.0, "%"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": Value(30.0, "%"),
    "l1tex__throughput.avg.pct_of_peak_sustained_active": Value(87.0, "%"),
    "launch__registers_per_thread": Value(40, "register/thread"),
}


def side_of(values: dict[str, Value], label: str = "side", **opcodes: float) -> Side:
    (launch,) = side(1).launches
    launch = replace(launch, values=pack_values(values), opcodes=opcodes)
    return replace(side(1), label=label, launches=(launch,), compute_capability="8.0")


def document(values: dict[str, Value], before: dict[str, Value] | None = None) -> LaunchDocument:
    baseline = None if before is None else longest_launch(side_of(before, "before", FFMA=200.0, LDS=10.0))
    return launch_document(longest_launch(side_of(values, FFMA=100.0, HMMA=5.0)), TABLE, baseline)


@pytest.mark.slow
def test_it_is_what_the_command_prints(ncar: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    alone = launch_of_name(ncar[0], TABLE, no_store)  # type: ignore[arg-type]
    answer = assert_same_as_printed(alone, capsys, "show", ncar[0], "--sections")
    assert answer["baseline"] is None
    assert all(number["baseline"] is None for number in answer["facts"])
    pair = launch_of_name(ncar[0], TABLE, no_store, against=ncar[1])  # type: ignore[arg-type]
    answer = assert_same_as_printed(pair, capsys, "show", ncar[0], "--sections", "--against", ncar[1])
    assert answer["baseline"]["part"] == answer["launch"]["part"]
    assert answer["facts"][0]["baseline"]["unit"] == "ns"
    assert main(["show", ncar[0], "--sections", "--markdown"]) == 0
    assert capsys.readouterr().out == alone.to_markdown()
    assert main(["show", ncar[0], "--sections", "--against", ncar[1]]) == 0
    text, markdown = capsys.readouterr().out, pair.to_markdown()
    assert markdown.count("<details>") == 1
    for name in ("speed of light", "memory", "instruction mix", "occupancy", "NVIDIA's rules"):
        assert name in text.splitlines()
        assert f"**{name}**" in markdown.splitlines()


def test_what_was_not_collected_is_named_with_its_command_and_is_not_0() -> None:
    basic = document(BASIC)
    missing = {section.what: section for section in basic.sections.missing}
    assert "--section WarpStateStats" in missing["warp states"].command
    assert "MemoryWorkloadAnalysis_Tables" in missing["memory traffic"].command
    assert missing["warp states"].state == "not collected"
    assert "speed of light" not in missing
    answer = json.loads(json.dumps(basic.to_dict(), allow_nan=False))
    assert {link["moved"].get("value") for link in answer["memory"]["links"]} == {None}
    assert answer["warp_states"]["states"] == []
    for answered in (text_of(basic.blocks()), basic.to_markdown()):
        assert missing["warp states"].command in answered
        assert "warp states, cycles per issue" not in answered


def test_failed_counters_are_failed() -> None:
    names = [*BASIC, "lts__t_sector_hit_rate.pct"]
    failed = document({name: Value(float("nan"), "%") for name in names})
    states = {section.what: section.state for section in failed.sections.missing}
    assert "failed (NaN)" in states["speed of light"]


def test_samples_stand_for_stall_counters_and_the_answer_says_so() -> None:
    samples = {
        f"smsp__pcsamp_warps_issue_stalled_{reason}": Value(count)
        for reason, count in (("wait", 5), ("selected", 20), ("long_scoreboard_not_issued", 3))
    }
    states = document(BASIC | samples).sections.warp_states
    assert states.is_sampled
    assert [(state.label, state.number) for state in states.states] == [("selected", 20.0), ("wait", 5.0)]
    assert states.total.number == 25


def test_a_baseline_adds_its_numbers_and_a_verdict() -> None:
    pair = document(BASIC, BASIC | {"gpu__time_duration.sum": Value(2e6, "ns")})
    assert pair.sections.fact("duration").baseline_number == 2e6
    assert pair.comparison is not None
    mix = {number.label: (number.number, number.baseline_number) for number in pair.sections.instruction_mix}
    assert mix == {"FFMA": (100, 200), "HMMA": (5, 0), "LDS": (0, 10)}  # both mixes are whole


def test_the_units_of_a_baseline_of_another_counter_are_not_held_against_it() -> None:
    before = {
        "gpu__time_duration.sum": Value(1e6, "ns"),
        "smsp__cycles_active.avg": Value(1000.0, "cycle"),
        "smsp__inst_issued.avg": Value(10.0, "inst"),
        "device__attribute_multiprocessor_count": Value(10),
    }
    pair = document(BASIC | {"smsp__inst_executed.sum": Value(400, "inst")}, before)
    executed = pair.sections.fact("inst_executed")
    assert executed.number == 400
    assert executed.baseline_number is None


def test_the_launch_of_the_baseline_is_of_the_same_kernel() -> None:
    launch = named_side("b", 1).launches[0]
    both = replace(side(1), launches=(*named_side("a", 5).launches, *named_side("b", 2).launches))
    assert launch_like(both, launch).launch.base_name == "b"
    with pytest.raises(UnknownName, match="no launch of b; there are a"):
        launch_like(named_side("a", 5), launch)
    assert launch_like(named_side("a", 5), launch, "a").launch.base_name == "a"


def test_kinds_of_evidence_are_not_mixed() -> None:
    static = replace(side_of({"static__registers": Value(40, "register/thread")}), evidence=Evidence.STATIC)
    with pytest.raises(CannotJudge, match="kinds of evidence are not mixed"):
        launch_document(longest_launch(side_of(BASIC)), TABLE, longest_launch(static))


def test_a_function_that_was_only_compiled_says_what_is_not_there() -> None:
    values = {
        "static__registers": Value(40, "register/thread"),
        "static__threads": Value(128, "thread"),
        "static__shared_bytes": Value(1024, "byte/block"),
    }
    static = replace(side_of(values), evidence=Evidence.STATIC, gpu="sm_80")
    own = launch_document(longest_launch(static), TABLE)
    assert own.sections.fact("static_registers").number == 40
    assert own.sections.speed_of_light == ()
    assert own.sections.occupancy is not None
    assert own.sections.missing[0].state == "not measured"
    assert own.to_dict()["memory"] is None
    assert own.to_markdown()


def test_names_are_escaped_in_html() -> None:
    (launch,) = side(1).launches
    named = replace(launch, function="f", demangled="f", values=pack_values(BASIC | {"a": Value(1.0)}))
    own = longest_launch(replace(side(1), label="<b>side</b>", launches=(named,)))
    assert_html_escapes(launch_document(own, TABLE), "<b>side</b>", "&lt;b&gt;side&lt;/b&gt;")


def test_options_of_one_launch_and_of_all_are_not_mixed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "a.ncu-rep", "--against", "b.ncu-rep"]) == Exit.UNUSABLE_INPUT
    assert "--sections" in capsys.readouterr().err
    assert main(["show", "a.ncu-rep", "--sections", "--all"]) == Exit.UNUSABLE_INPUT
