"""A comparison as JSON, rows, Markdown and HTML, and the verdict on the whole of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.cli import main
from profiler.cli.output import print_blocks
from profiler.documents.comparison import ComparisonDocument, compare_names
from profiler.documents.comparison_text import PAIRS_SHOWN, duration_rows
from profiler.errors import CannotJudge, Exit, UnknownName
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence, State, Value, pack_values
from profiler.gate.comparison_pairs import ComparisonPair
from profiler.gate.finding import Outcome
from profiler.gate.judgement import judge
from profiler.statistics.verdict import Verdict
from tests.compared import compare_sides
from tests.documents.printed import assert_html_escapes, assert_same_as_printed

TABLE = load_metrics()


def no_store() -> object:
    raise AssertionError("files need no index")


def side(*durations_ms: float, gpu: str = "GPU", name: str = "kernel") -> Side:
    launches = []
    for index, duration in enumerate(durations_ms):
        values = pack_values({"gpu__time_duration.sum": Value(1e6 * duration, "ns")})
        kernel = f"{name}_{index}"
        launches.append(Launch(kernel, kernel, "", (1, 1, 1), (64, 1, 1), 7, (), index, values))
    return Side("side", tuple(launches), gpu)


def named_side(name: str, duration_ms: float) -> Side:
    (launch,) = side(duration_ms).launches
    return Side(name, (replace(launch, function=name, demangled=name),), "GPU")


@pytest.mark.slow
def test_two_reports_are_compared_as_the_command_prints(
    ncar: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    document = compare_names(*ncar, TABLE, no_store)  # type: ignore[arg-type]
    answer = assert_same_as_printed(document, capsys, "compare", *ncar)
    rows = document.to_frame()
    assert len(rows) == sum(len(launch["metrics"]) for launch in answer["launches"])
    assert document.exit_code is Exit.PASS
    assert main(["compare", *ncar, "--markdown"]) == 0
    assert capsys.readouterr().out == document.to_markdown()


@pytest.mark.slow
def test_with_a_gate_its_answer_and_exit_code_are_the_documents(
    ncar: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    document = compare_names(*ncar, TABLE, no_store, with_gate=True)  # type: ignore[arg-type]
    assert document.exit_code is Exit.REGRESSION
    answer = assert_same_as_printed(document, capsys, "compare", *ncar, "--fail", code=1)
    assert answer["gate"]["verdict"] == "failed"
    main(["compare", *ncar, "--fail", "--markdown"])
    assert capsys.readouterr().out == document.to_markdown()


def test_a_number_that_is_derived_says_so_in_json_text_and_markdown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sides = []
    for cycles in (1e6, 2e6):
        values = {
            "gpu__time_duration.sum": Value(1e6, "ns"),
            "sm__inst_executed.avg.per_cycle_active": Value(2.0, "inst/cycle"),
            "device__attribute_multiprocessor_count": Value(10),
            "sm__cycles_active.avg": Value(cycles, "cycle"),
        }
        of_one = replace(side(1).launches[0], values=pack_values(values))
        sides.append(replace(side(1), launches=(of_one,)))
    document = compare_sides(*sides, TABLE)
    (pair,) = document.to_dict()["launches"]
    executed = next(metric for metric in pair["metrics"] if metric["concept"] == "inst_executed")
    formula = (
        "sm__inst_executed.avg.per_cycle_active * device__attribute_multiprocessor_count"
        " * sm__cycles_active.avg"
    )
    assert (executed["a"], executed["b"], executed["verdict"]) == (2e7, 4e7, "worse")
    assert executed["a_derived_from"] == executed["b_derived_from"] == formula
    assert executed["label"] == "executed (derived)"
    print_blocks(document.blocks())
    assert f"executed (derived): derived from {formula}" in capsys.readouterr().out
    assert f"executed (derived): derived from {formula}" in document.to_markdown()
    active = next(metric for metric in pair["metrics"] if metric["concept"] == "cycles_active")
    assert (active["a_derived_from"], active["a_most_off_pct"]) == ("sm__cycles_active.avg", 9.1)


def test_one_launch_that_is_worse_makes_the_whole_worse() -> None:
    document = compare_sides(side(1, 1, 1), side(0.5, 1, 1.5), TABLE)
    assert document.verdict is Verdict.WORSE
    assert document.sentence == "! worse: kernel durations 1 better, 1 worse, 1 same"
    assert compare_sides(side(1, 1), side(0.5, 1), TABLE).verdict is Verdict.BETTER
    assert compare_sides(side(1), side(1), TABLE).verdict is Verdict.SAME
    assert compare_sides(side(1), side(1, name="other"), TABLE).verdict is Verdict.MISSING


def test_sides_that_cannot_be_compared_say_so_in_a_sentence() -> None:
    document = compare_sides(side(1), side(1, gpu="another"), TABLE)
    assert document.verdict is Verdict.NOT_COMPARABLE
    assert document.sentences[1].startswith("Not comparable: GPU differs: GPU and another")


def test_a_row_is_a_metric_of_a_pair_in_base_units() -> None:
    frame = compare_sides(side(1), side(1.5), TABLE).to_frame()
    row = frame[frame.concept == "duration"].to_dict("records")[0]
    assert (row["kernel"], row["unit"], row["a"], row["b"]) == ("kernel_0", "ns", 1e6, 1.5e6)
    assert (row["change_pct"], row["verdict"], row["evidence"]) == (50.0, "worse", "measured")
    cycles = frame[frame.concept == "cycles"]
    assert cycles["a"].isna().all()
    assert cycles["verdict"].tolist() == ["missing"]


@pytest.mark.slow
def test_json_has_every_pair_and_markdown_the_longest_unless_some_are_asked_for() -> None:
    sides = (side(*range(1, 41)), side(*range(1, 41)))
    document = compare_sides(*sides, TABLE)
    assert len(document.to_dict()["launches"]) == 40  # type: ignore[arg-type]
    assert f"and {40 - PAIRS_SHOWN} shorter pairs: {40 - PAIRS_SHOWN} same" in document.to_markdown()
    few = replace(document, top=3)
    assert few.to_dict()["hidden_launches"] == 37
    assert few.sentence == "= same: kernel durations 40 same", "the verdict is of all of them"


def test_html_escapes_what_a_report_is_called() -> None:
    sides = [replace(side(1), label=label) for label in ("<script>a</script>", "b")]
    document = compare_sides(*sides, TABLE)
    assert_html_escapes(document, "<script>", "<code>&lt;script&gt;a&lt;/script&gt;</code> → <code>b</code>")


def test_a_wrong_name_and_a_file_without_facts_are_errors(ncar: tuple[str, str]) -> None:
    with pytest.raises(UnknownName, match="no such file"):
        compare_names("missing.ncu-rep", ncar[1], TABLE, no_store)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="which is measured"):
        compare_names(*ncar, TABLE, no_store, evidence=Evidence.STATIC)  # type: ignore[arg-type]
    with pytest.raises(CannotJudge, match="which is measured"):
        compare_names(*ncar, TABLE, no_store, evidence=Evidence.STATIC, with_gate=True)  # type: ignore[arg-type]


def facts(*registers: int, workload: str = "main") -> Side:
    values = pack_values({"static__registers": Value(registers[0])})
    launch = Launch("kernel", "kernel", "", None, None, None, (), 0, values)
    return Side("f/v", (launch,), "sm_90a", workload=workload, evidence=Evidence.STATIC, family="f")


def test_cells_in_which_the_same_facts_moved_share_a_table() -> None:
    comparisons = [
        compare_sides(facts(32, workload=workload), facts(40, workload=workload), TABLE).comparison
        for workload in ("w1", "w2")
    ]
    document = ComparisonDocument(tuple(comparisons))
    lines = document.to_markdown().splitlines()
    assert lines[0].startswith("### `f/v` → `f/v`")
    assert "w1 sm_90a; w2 sm_90a" in lines
    assert sum(line.startswith("| registers") for line in lines) == 1
    assert len(document.to_dict()["comparisons"]) == 2  # type: ignore[arg-type]
    assert document.to_frame().workload.unique().tolist() == ["w1", "w2"]


@pytest.mark.parametrize(("names", "code"), [(("gemm_v6", "reduce"), 3), (("gemm_v6", "gemm_v7"), 1)])
def test_a_proposed_pair_is_judged_and_noted_and_without_one_nobody_can_judge(
    names: tuple[str, str], code: int
) -> None:
    a, b = (named_side(name, ms) for name, ms in zip(names, (1, 2), strict=True))
    pair = ComparisonPair("b", "a", a, b)
    verdicts = judge([pair], TABLE)
    assert verdicts.exit_code() == code
    noted = [finding.line for finding in verdicts.of(Outcome.NOTED)]
    assert noted == (["gemm_v6 → gemm_v7: paired by similar name, names differ"] if code == 1 else [])


def test_a_proposed_pair_is_labelled_in_text_json_and_markdown() -> None:
    document = compare_sides(named_side("gemm_v6", 1), named_side("gemm_v7", 2), TABLE)
    (launch,) = document.to_dict()["launches"]  # type: ignore[attr-defined]
    assert launch["paired_by"] == "similar name"
    assert (launch["a"]["kernel"], launch["b"]["kernel"]) == ("gemm_v6", "gemm_v7")
    assert launch["part"] == "gemm_v6 → gemm_v7"
    assert "gemm_v6 → gemm_v7: paired by similar name, names differ" in document.to_markdown()
    assert "--no-guess refuses it" in document.to_markdown()
    refused = compare_sides(named_side("gemm_v6", 1), named_side("gemm_v7", 2), TABLE, guess=False)
    assert refused.verdict is Verdict.MISSING


@pytest.mark.slow
def test_what_moved_has_no_second_row_for_numbers_that_a_report_carries(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def cycles(gpc: float, sm: float) -> Side:
        values = {
            "gpu__time_duration.sum": Value(gpc, "ns"),
            "gpc__cycles_elapsed.max": Value(gpc, "cycle"),
            "smsp__cycles_elapsed.sum": Value(4 * 10 * sm, "cycle"),
            "device__attribute_multiprocessor_count": Value(10),
        }
        of_one = replace(side(1).launches[0], values=pack_values(values))
        return replace(side(1), launches=(of_one,))

    def printed(a: Side, b: Side, everything: bool = False) -> list[str]:
        print_blocks(compare_sides(a, b, TABLE).blocks(everything=everything))
        return capsys.readouterr().out.splitlines()

    equal = cycles(8.02e6, 8.01e6), cycles(4.51e6, 4.50e6)
    shown = printed(*equal)
    (row,) = [line for line in shown if " M cycle " in line]
    assert row.split()[:2] == ["elapsed", "cycles"]
    omitted = "  omitted, duplicates of rows above: "
    assert f"{omitted}elapsed cycles, scheduler (derived), elapsed cycles, SM (derived)" in shown
    assert not any("derived from" in line for line in shown)
    everything = printed(*equal, everything=True)
    assert sum(" M cycle " in line for line in everything) == 3
    assert not any("omitted, duplicates of rows above" in line for line in everything)
    (launch,) = compare_sides(*equal, TABLE).to_dict()["launches"]
    derived = {metric["concept"] for metric in launch["metrics"] if metric.get("a_derived_from")}
    assert {"cycles_elapsed", "sm_cycles_elapsed"} <= derived
    # Farther off on one side they say something of their own: the first of the two derived ones has a row.
    shown = printed(cycles(8.02e6, 8.01e6), cycles(4.51e6, 4.40e6))
    assert sum(" M cycle " in line for line in shown) == 2
    assert "  omitted, duplicates of rows above: elapsed cycles, SM (derived)" in shown


def test_a_number_that_is_computed_from_one_row_alone_has_none_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def warps(number: float, **more: Value) -> Side:
        values = {
            "gpu__time_duration.sum": Value(1e6 * number, "ns"),
            "sm__warps_active.avg.per_cycle_active": Value(number, "warp"),
            **more,
        }
        of_one = replace(side(1).launches[0], values=pack_values(values))
        return replace(side(1), launches=(of_one,))

    def printed(a: Side, b: Side) -> str:
        print_blocks(compare_sides(a, b, TABLE).blocks())
        return capsys.readouterr().out

    assert "omitted, duplicates of rows above: active warps, scheduler (stand-in)" in printed(
        warps(32), warps(20)
    )
    counter = "smsp__warps_active.avg.per_cycle_active"
    assert "omitted, duplicates of rows above" not in printed(
        warps(32, **{counter: Value(8, "warp")}), warps(20, **{counter: Value(6, "warp")})
    )


def test_what_several_launches_lack_alike_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    slower, faster = side(1, 1, 1), side(2, 2, 2)
    (first, second, third) = faster.launches
    with_cycles = {**third.values, "gpc__cycles_elapsed.max": Value(1e6, "cycle")}
    faster = replace(faster, launches=(first, second, replace(third, values=pack_values(with_cycles))))
    print_blocks(compare_sides(slower, faster, TABLE).blocks())
    shown = capsys.readouterr().out
    assert shown.count("what moved") == 3
    lines = [line.strip() for line in shown.splitlines() if "not collected" in line]
    of_both, of_two = (line for line in lines if line.startswith("– not collected in either: "))
    counts = [int(line.removeprefix("– not collected in either: ").split()[0]) for line in (of_both, of_two)]
    assert counts[0] > counts[1], "the third launch has its cycles in B, which the first two lack"
    assert of_both.endswith("metrics; --all lists them")
    assert any(line.startswith("– not collected in A: elapsed cycles") for line in lines)


def test_what_a_gpu_does_not_have_is_listed_only_with_all(capsys: pytest.CaptureFixture[str]) -> None:
    values = {
        "gpu__time_duration.sum": Value(1e6, "ns"),
        "gpc__cycles_elapsed.max": Value(None, state=State.NOT_AVAILABLE),
    }
    launch = Launch("kernel", "kernel", "", (1, 1, 1), (64, 1, 1), 7, (), 0, pack_values(values))
    document = compare_sides(*(Side(name, (launch,), "GPU") for name in "ab"), TABLE)
    print_blocks(document.blocks())
    assert "not available" not in capsys.readouterr().out
    print_blocks(document.blocks(everything=True))
    assert "not available" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (("/x/a.ncu-rep", "/x/b.ncu-rep"), ("a.ncu-rep", "b.ncu-rep")),
        (("/x/old/p.ncu-rep", "/x/new/p.ncu-rep"), ("old/p.ncu-rep", "new/p.ncu-rep")),
        (("p.ncu-rep", "new/p.ncu-rep"), ("p.ncu-rep", "new/p.ncu-rep")),
        (("/x/p.csv", "/x/p.csv"), ("p.csv", "p.csv")),
        (("attention/v1", "/x/b.ncu-rep"), ("attention/v1", "b.ncu-rep")),
    ],
)
def test_a_head_names_files_by_what_tells_them_apart(labels: tuple[str, str], names: tuple[str, str]) -> None:
    sides = (replace(side(ms), label=label) for ms, label in zip((1, 2), labels, strict=True))
    document = compare_sides(*sides, TABLE)
    head, _, rest = document.to_markdown().partition("\n")
    assert head.startswith(f"### `{names[0]}` → `{names[1]}`: ")
    assert all(f"`{label}`" in rest for label in labels), "the lines of A and B have the paths"


def test_a_time_that_the_clock_explains_is_marked() -> None:
    def clocked(us: float, hz: float) -> Side:
        values = {
            "gpu__time_duration.sum": Value(1e3 * us, "ns"),
            "gpc__cycles_elapsed.max": Value(us * hz / 1e6, "cycle"),
            "gpc__cycles_elapsed.avg.per_second": Value(hz, "hz"),
            "smsp__inst_executed.sum": Value(1e6, "inst"),
        }
        launch = Launch("kernel", "kernel", "", (1, 1, 1), (64, 1, 1), 7, (), 0, pack_values(values))
        return Side("side", (launch,), "GPU")

    slower = compare_sides(clocked(1000, 1.5e9), clocked(1250, 1.2e9), TABLE).comparison
    assert duration_rows(slower)[0][-1] == "= same (clock)"
    equal = compare_sides(clocked(1000, 1.5e9), clocked(1000, 1.5e9), TABLE).comparison
    assert duration_rows(equal)[0][-1] == "= same"
