"""Why a launch changed: causes where the time moved, words where nothing can be said, over real reports."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler import cli
from profiler.compare import resolve_names
from profiler.compare.comparison import Comparison, compare
from profiler.documents.explanation import explain_comparison
from profiler.evidence import metric_table
from profiler.evidence.launch import Launch
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence, State, Value, pack_values
from profiler.explain.explanation import Explanation, counters_to_collect, explain
from profiler.explain.sentence import format_change, format_time
from profiler.statistics.verdict import Verdict

TABLE = metric_table.load_metrics()
CYCLES = ("cycles", "cycles_active")
CHANGED = "compute_tendencies_x_279_gpu"
WARPS = "smsp__warps_active.avg.per_cycle_active"
SMS = "device__attribute_multiprocessor_count"


def no_store() -> None:
    raise AssertionError("two files need no store")


@functools.cache
def sides(reports: Path, a: str, b: str) -> tuple[Side, Side]:
    one, other = resolve_names.resolve_all([str(reports / f"{name}.ncu-rep") for name in (a, b)], no_store)
    return one, other


def explanations_by_kernel(reports: Path, a: str, b: str) -> dict[str, Explanation]:
    return {
        explanation.kernel: explanation
        for explanation in explain(compare(*sides(reports, a, b), TABLE), TABLE)
    }


@pytest.fixture(scope="module")
def ncar(reports: Path) -> dict[str, Explanation]:
    return explanations_by_kernel(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult")


def test_the_changed_kernel_is_explained_by_work_and_partly_offset_by_waiting(
    ncar: dict[str, Explanation],
) -> None:
    changed = ncar[CHANGED]
    assert changed.verdict is Verdict.BETTER
    assert changed.split is not None
    assert changed.split.total("work") == pytest.approx(-3710, abs=5), "weights are sums over the stalls"
    assert changed.split.total("waiting") == pytest.approx(925, abs=5)
    assert changed.causes == changed.split.terms
    main = "mainly from less work (−3.71 ms)"
    against = "partly offset by more waiting (+0.93 ms, most: long_scoreboard)"
    assert changed.sentence.startswith(f"2.71 ms faster, {main}, {against}; also parallelism +0.06 ms, ")
    assert changed.sentence.endswith("Residue ±0.")
    assert not changed.split.flagged
    assert not changed.missing


def test_kernels_under_the_threshold_are_unchanged_and_have_no_causes(ncar: dict[str, Explanation]) -> None:
    for kernel in ("semi_discrete_step_232_gpu", "compute_tendencies_x_309_gpu"):
        same = ncar[kernel]
        assert (same.verdict, same.split, same.causes) == (Verdict.SAME, None, ())
        assert same.sentence.startswith("Unchanged, ")


def test_an_unclear_launch_is_split_but_names_no_cause(ncar: dict[str, Explanation]) -> None:
    short = ncar["set_halo_values_x_419_gpu"]
    assert (short.verdict, short.causes) == (Verdict.UNCLEAR, ())
    assert short.split is not None
    assert not short.split.flagged, "its factors are of one pass"
    assert short.sentence.startswith("Unclear whether it changed, ")
    assert "under 50 µs" in short.reason


def test_a_launch_that_differs_by_the_clock_alone_has_that_as_its_sentence(
    ncar: dict[str, Explanation],
) -> None:
    drifted = ncar["set_halo_values_x_396_gpu"]
    assert (drifted.verdict, drifted.causes) == (Verdict.SAME, ())
    assert drifted.sentence == (
        "11.4 µs → 12.8 µs: same in cycles (+1.7 %); "
        "the time is +12.4 % because the SM clock was 9.5 % lower."
    )


def test_the_longest_comes_first(ncar: dict[str, Explanation]) -> None:
    assert next(iter(ncar)) == CHANGED
    times = [max(one.a_us or 0, one.b_us or 0) for one in ncar.values()]
    assert times == sorted(times, reverse=True)


def test_swapping_the_sides_flips_every_sign(reports: Path, ncar: dict[str, Explanation]) -> None:
    back = explanations_by_kernel(reports, "ncar/MW_DivToMult", "ncar/MW_Baseline")
    assert back[CHANGED].verdict is Verdict.WORSE
    a, b = ncar[CHANGED].split, back[CHANGED].split
    assert a is not None
    assert b is not None
    assert [(term.cause, -term.us) for term in a.terms] == [(term.cause, term.us) for term in b.terms]
    assert (a.residue_us, a.delta_us) == (-b.residue_us, -b.delta_us)
    assert "slower, mainly from more work (+3.71 ms)" in back[CHANGED].sentence


@pytest.mark.slow
def test_a_report_against_itself_has_no_causes_anywhere(good_reports: list[Path]) -> None:
    for path in good_reports:
        one, other = resolve_names.resolve_all([str(path), str(path)], no_store)
        explanations = explain(compare(one, other, TABLE), TABLE)
        assert explanations
        for same in explanations:
            assert (same.split, same.causes) == (None, ())
            assert same.verdict in (Verdict.NOT_COMPARABLE, Verdict.MISSING)


def test_a_basic_report_is_split_with_its_waiting_undivided(reports: Path) -> None:
    moved = explanations_by_kernel(reports, "esmm/profile@ee5ce738", "esmm/profile@17f278cb")[
        "one_warptiling"
    ]
    assert moved.split is not None
    assert moved.split.depth == "waiting undivided"
    assert [term.cause for term in moved.causes] == ["work", "waiting", "parallelism", "balance", "clock"]
    assert math.fsum((*(t.us for t in moved.causes), moved.split.residue_us)) == moved.delta_us
    assert moved.sentence.startswith("104 µs faster, mainly from less waiting (")
    assert "Moved most: " in moved.sentence
    assert {counter.group for counter in moved.missing} == {"stalls"}
    assert {stand_in.factor for stand_in in moved.split.stand_ins} >= {"instructions", "latency"}


@pytest.mark.parametrize(("fma_pct", "words"), [(91.2, "waiting for a busy pipe ("), (79.0, "waiting (")])
def test_a_pipe_near_its_peak_on_the_slower_side_is_what_warps_wait_for(
    reports: Path, fma_pct: float, words: str
) -> None:
    a, b = sides(reports, "esmm/profile@ee5ce738", "esmm/profile@17f278cb")
    name = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"

    def with_pipe(side: Side, number: float) -> Side:
        launches = tuple(
            replace(x, values=pack_values({**x.values, name: Value(number, "%")})) for x in side.launches
        )
        return replace(side, launches=launches)

    slower, faster = with_pipe(a, fma_pct), with_pipe(b, 99.0)
    (moved,) = (e for e in explain(compare(slower, faster, TABLE), TABLE) if e.kernel == "one_warptiling")
    assert moved.sentence.startswith(f"104 µs faster, mainly from less {words}")
    assert ("; FMA pipe busy 91.2 % in A)" in moved.sentence) is (fma_pct > 80)


def test_reports_with_cycles_and_clock_alone_split_into_these(reports: Path) -> None:
    a, b = sides(reports, "esmm/profile@ee5ce738", "esmm/profile@17f278cb")

    def lose(values: dict[str, Value]) -> None:
        for name in [name for name in values if name.startswith(("sm__issue_active", "sm__inst"))]:
            del values[name]

    kernel = "one_warptiling"
    a, b = edited(a, kernel, lose), edited(b, kernel, lose)
    (moved,) = explain(compare(a, b, TABLE, kernel=kernel), TABLE)
    assert moved.split is not None
    assert moved.split.depth == "cycles"
    assert [term.cause for term in moved.causes] == ["cycles", "clock"]
    assert math.fsum((*(t.us for t in moved.causes), moved.split.residue_us)) == moved.delta_us
    assert moved.sentence.startswith("104 µs faster, cycles −108 µs, clock +5 µs; no counters on both sides")
    assert "cycles (" not in moved.sentence
    assert {"inst_issued", "warp_latency", "stall_barrier"} <= {counter.concept for counter in moved.missing}
    assert "cycles" not in {counter.concept for counter in moved.missing}


def test_without_cycles_and_clock_there_is_no_split_and_the_lines_to_collect_are_named(reports: Path) -> None:
    moved = explanations_by_kernel(reports, "esmm/profile@ee5ce738", "esmm/profile@049ec612")[
        "one_warptiling"
    ]
    assert (moved.verdict, moved.split, moved.causes) == (Verdict.BETTER, None, ())
    assert "no split" in moved.sentence
    lacking = {one.concept: one for one in moved.missing}
    for concept in ("cycles", "sm_clock"):
        assert lacking[concept].why == "not collected in B"
        assert lacking[concept].line == TABLE.by_concept[concept].line
    assert lacking["inst_issued"].names == ("smsp__inst_issued.sum",)
    assert "stall_gmma" not in lacking, "this chip has no such stall"
    rows = counters_to_collect([moved])
    assert [one.label for one in rows[:2]] == [TABLE.by_concept[name].label for name in CYCLES]
    assert (rows[-1].label, rows[-1].why) == ("18 stalls", "not collected in either")


def test_a_clock_that_nobody_collected_is_cycles_over_time(reports: Path) -> None:
    for moved in explanations_by_kernel(reports, "mistic/prof1", "mistic/prof2").values():
        assert moved.split is not None
        assert (moved.split.depth, moved.split.clock_from_time) == ("full", True)
        assert moved.missing == ()
        words = [stand_in.words for stand_in in moved.split.stand_ins]
        assert "instructions issued ≈ executed" in words
        assert math.fsum((*(term.us for term in moved.split.terms), moved.split.residue_us)) == moved.delta_us


def test_other_gpus_have_no_causes_and_the_sentence_says_why(reports: Path) -> None:
    a, b = sides(reports, "cutlass/report75", "cutlass/report80")
    explanations = explain(compare(a, replace(b, gpu="NVIDIA H100", compute_capability="9.0"), TABLE), TABLE)
    for explanation in explanations:
        assert (explanation.verdict, explanation.split, explanation.causes, explanation.missing) == (
            Verdict.NOT_COMPARABLE,
            None,
            (),
            (),
        )
        assert explanation.sentence == "No causes: GPU differs: NVIDIA A100 80GB PCIe and NVIDIA H100."
        assert explanation.delta_us is not None, "the numbers are still shown"


def test_a_wrong_version_has_no_speed_and_so_no_split(reports: Path) -> None:
    a, b = sides(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult")
    explanations = explain(compare(a, replace(b, wrong="max error 0.3"), TABLE), TABLE)
    assert {(explanation.split, explanation.causes) for explanation in explanations} == {(None, ())}
    assert all("B is wrong: max error 0.3" in explanation.sentence for explanation in explanations)


def test_a_failed_duration_is_missing_on_its_side_only(reports: Path) -> None:
    broken = explanations_by_kernel(reports, "esmm/profile@5c6231e5", "esmm/profile@049ec612")["one_d_vec"]
    assert (broken.verdict, broken.a_us, broken.delta_us, broken.split) == (Verdict.MISSING, None, None, None)
    assert broken.b_us == pytest.approx(342.88)
    assert broken.sentence == "No split without a duration: failed in A."


@pytest.mark.parametrize("number", [0.0, -5.0, 1e-300, 1e300])
def test_numbers_that_damaged_bits_make_are_no_factors_and_end_no_command(
    reports: Path, number: float
) -> None:
    a, b = sides(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult")
    (launch,) = [one for one in b.launches if one.base_name == CHANGED]
    values = dict(launch.values)
    for name in (
        "gpu__time_duration.sum",
        WARPS,
        "smsp__average_warp_latency_per_inst_issued.ratio",
        SMS,
        "sm__cycles_active.avg",
    ):
        spoilt = replace(launch, values=pack_values({**values, name: values[name]._replace(number=number)}))
        comparison = compare(a, replace(b, launches=(spoilt,)), TABLE)
        (one,) = explain(comparison, TABLE)
        document = explain_comparison(comparison, TABLE)
        json.dumps(document.to_dict(), allow_nan=False)
        assert document.to_markdown()
        if name == "gpu__time_duration.sum":
            assert one.split is None
            assert one.sentence == "No split without a duration: no usable time in B."
        else:
            assert one.split is not None
            assert math.fsum((*(term.us for term in one.split.terms), one.split.residue_us)) == one.delta_us
            assert (one.split.depth == "full") is (name != SMS), "other counters stand for each but the SMs"
            assert bool(one.split.stand_ins) is (name != SMS)


def test_facts_have_no_time_to_split() -> None:
    launch = Launch("k", "k", "k", None, None, None, (), 0, pack_values({"static__registers": Value(64)}))
    side = Side("v1", (launch,), evidence=Evidence.STATIC)
    (explanation,) = explain(compare(side, side, TABLE), TABLE)
    assert explanation.sentence == "Static evidence has no duration: there is no time to split."
    assert (explanation.split, explanation.verdict) == (None, Verdict.MISSING)


def edited(comparison_of: Side, kernel: str, change: Callable[[dict[str, Value]], None]) -> Side:
    """The side with one launch's values changed."""
    launches = []
    for launch in comparison_of.launches:
        if launch.base_name == kernel:
            values = dict(launch.values)
            change(values)
            launch = replace(launch, values=pack_values(values))
        launches.append(launch)
    return replace(comparison_of, launches=tuple(launches))


STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


@pytest.mark.parametrize("state", [State.FAILED, State.NOT_COLLECTED])
def test_one_stall_without_a_number_leaves_its_part_of_the_waiting_undivided(
    reports: Path, state: State
) -> None:
    a, b = sides(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult")

    def lose(values: dict[str, Value]) -> None:
        values[STALL.format("long_scoreboard")] = Value(None, "inst", state=state)

    explanation = explain(compare(a, edited(b, CHANGED, lose), TABLE, kernel=CHANGED), TABLE)[0]
    assert explanation.split is not None
    us = {term.cause: term.us for term in explanation.causes}
    assert "waiting:long_scoreboard" not in us
    assert us["waiting"] == pytest.approx(1510, rel=0.03), "what long_scoreboard took"
    assert us["work"] == pytest.approx(-3710, rel=0.01)
    (lacking,) = explanation.missing
    assert (lacking.concept, lacking.why) == ("stall_long_scoreboard", f"{state.words} in B")


def test_without_any_stall_the_waiting_is_one_term(reports: Path) -> None:
    a, b = sides(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult")

    def lose(values: dict[str, Value]) -> None:
        for name in [name for name in values if "_issue_stalled_" in name]:
            del values[name]

    explanation = explain(compare(a, edited(b, CHANGED, lose), TABLE, kernel=CHANGED), TABLE)[0]
    assert explanation.split is not None
    assert explanation.split.depth == "waiting undivided"
    assert [term.cause for term in explanation.causes] == [
        "work",
        "waiting",
        "parallelism",
        "balance",
        "clock",
    ]
    assert explanation.causes[1].us > 0
    assert len(explanation.missing) == 18


def test_counters_of_different_names_are_not_held_against_each_other(reports: Path) -> None:
    a, b = sides(reports, "esmm/profile@ee5ce738", "esmm/profile@17f278cb")

    def rename(values: dict[str, Value]) -> None:
        values["smsp__cycles_elapsed.avg.per_second"] = values.pop("gpc__cycles_elapsed.avg.per_second")

    comparison = compare(a, edited(b, "one_warptiling", rename), TABLE, kernel="one_warptiling")
    (moved,) = explain(comparison, TABLE)
    assert moved.split is not None
    assert moved.split.clock_from_time
    assert "clock = elapsed cycles / time" in {stand_in.words for stand_in in moved.split.stand_ins}


def test_a_metrics_file_without_the_concepts_says_that_it_lacks_them(reports: Path, tmp_path: Path) -> None:
    path = tmp_path / "metrics.txt"
    path.write_text("duration | ncu duration | ns | lower | 2% | time | lean | gpu__time_duration.sum\n")
    table = metric_table.load_metrics(path)
    a, b = sides(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult")
    moved = explain(compare(a, b, table), table)[0]
    assert moved.split is None
    assert {"cycles", "inst_issued"} <= {counter.concept for counter in moved.missing}
    assert {(counter.line, counter.why) for counter in moved.missing} == {(0, "not declared in metrics.txt")}


def test_times_share_the_unit_and_the_decimals_of_the_largest() -> None:
    assert format_time(6190.944) == "6.19 ms"
    assert [format_time(us, 6190.944) for us in (3482.24, -64.347)] == ["3.48 ms", "−0.06 ms"]
    assert [format_change(us, 6190.944) for us in (925.2, -3710.6, 0.48, 0.0)] == [
        "+0.93 ms",
        "−3.71 ms",
        "±0",
        "±0",
    ]
    assert format_change(107.9, 325) == "+108 µs"
    assert format_change(999.6, 999.6) == "+1.00 ms"
    small = [format_change(us, 1_148_351.6, 47_472.7) for us in (-47_472.7, 19.4)]
    assert small == ["−0.0475 s", "±0"], "a small change of a long time keeps its digits"


# ---- the command


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = cli.main(argv)
    out, err = capsys.readouterr()
    return code, out, err


def strict(text: str) -> Any:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    return json.loads(text, parse_constant=refuse)


def paths(reports: Path, a: str, b: str) -> tuple[str, str]:
    return str(reports / f"{a}.ncu-rep"), str(reports / f"{b}.ncu-rep")


def test_the_json_has_the_documented_shape_and_adds_up(
    capsys: pytest.CaptureFixture[str], reports: Path
) -> None:
    both = paths(reports, "cutlass/report75", "cutlass/report80")
    code, out, err = run(capsys, "explain", *both, "--json")
    assert (code, err) == (0, "")
    launches = strict(out)["launches"]
    assert len(launches) == 3
    for launch in launches:
        keys = {"kernel", "a_us", "b_us", "delta_us", "terms", "residue_us", "verdict", "missing"}
        assert keys <= set(launch)
        assert launch["delta_us"] == launch["b_us"] - launch["a_us"]
        total = math.fsum((*(term["us"] for term in launch["terms"]), launch["residue_us"]))
        assert total == launch["delta_us"]
        assert abs(launch["residue_us"]) < 0.03 * launch["b_us"]
        assert (launch["verdict"], launch["terms_are_causes"], launch["missing"]) == ("unclear", False, [])
        kinds = {term["cause"].partition(":")[0] for term in launch["terms"]}
        assert kinds == {"work", "waiting", "parallelism", "balance", "clock"}


def test_the_json_of_an_unchanged_launch_has_no_terms(
    capsys: pytest.CaptureFixture[str], reports: Path
) -> None:
    _, out, _ = run(capsys, "explain", *paths(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult"), "--json")
    by_kernel = {document["kernel"]: document for document in strict(out)["launches"]}
    same = by_kernel["semi_discrete_step_232_gpu"]
    assert (same["verdict"], same["terms"], same["depth"]) == ("same", [], "none")
    assert same["residue_us"] == same["delta_us"], "terms and residue add up here too"
    assert by_kernel[CHANGED]["terms_are_causes"] is True


def test_the_json_of_a_report_against_itself_has_no_terms(
    capsys: pytest.CaptureFixture[str], reports: Path
) -> None:
    path, _ = paths(reports, "ncar/MW_Baseline", "ncar/MW_Baseline")
    document = strict(run(capsys, "explain", path, path, "--json")[1])
    assert (document["comparable"], bool(document["launches"])) == (False, True)
    for launch in document["launches"]:
        assert (launch["verdict"], launch["terms"]) == ("not_comparable", [])


@pytest.mark.slow
def test_the_text_leads_from_a_through_the_causes_to_b(
    capsys: pytest.CaptureFixture[str], reports: Path
) -> None:
    code, out, _ = run(capsys, "explain", *paths(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult"))
    assert code == 0
    rows = [" ".join(line.split()) for line in out.splitlines()]
    start = rows.index("A 6.19 ms")
    assert rows[start + 1] == "work −3.71 ms −60.0 %"
    assert rows[start + 2] == "stall: long_scoreboard +1.51 ms +24.4 %"
    assert rows[rows.index("B 3.48 ms −43.8 %") - 1].startswith("residue")
    assert "= same: 3 launches unchanged: not split" in out
    assert "set_halo_values_x_419_gpu: " not in out, "an unclear launch has no causes"
    assert "metrics.txt" not in out, "nothing is missing"


def test_all_shows_the_split_of_unclear_launches_and_says_that_it_is_no_cause(
    capsys: pytest.CaptureFixture[str], reports: Path
) -> None:
    both = paths(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult")
    _, out, _ = run(capsys, "explain", *both, "--all", "--kernel", "*419*")
    assert "\nset_halo_values_x_419_gpu\nUnclear whether it changed" in out
    assert "the verdict is unclear: this is how the counters split, and no cause" in out
    assert "active cycles" not in out, "they follow exactly from what was issued: no stand-in"


def test_the_text_names_the_counters_to_collect_of_what_moved_and_the_command(
    capsys: pytest.CaptureFixture[str], reports: Path
) -> None:
    both = paths(reports, "esmm/profile@ee5ce738", "esmm/profile@049ec612")
    code, out, _ = run(capsys, "explain", *both)
    assert code == 0
    assert "\none_warptiling\n105 µs faster, but no split" in out
    assert "cycles and clock missing for one_warptiling, so no split; to collect: `ncu --metrics " in out
    assert "metrics.txt" not in out
    (row,) = [row.split() for row in out.splitlines() if row.startswith("SM clock ")]
    assert row[2] == "gpc__cycles_elapsed.avg.per_second"
    assert "18 stalls" in out


def test_markdown_has_a_sentence_for_what_moved_and_folds_the_causes(
    capsys: pytest.CaptureFixture[str], reports: Path
) -> None:
    both = paths(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult")
    _, out, _ = run(capsys, "explain", *both, "--markdown")
    assert f"**`{CHANGED}`**\n\n2.71 ms faster, mainly from less work" in out
    assert "| work | −3.71 ms | −60.0 % |" in out
    assert out.count("<details>") == out.count("</details>") == 1


@pytest.mark.slow
def test_the_exit_code_is_that_of_compare(capsys: pytest.CaptureFixture[str], reports: Path) -> None:
    there = paths(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult")
    assert run(capsys, "explain", *there)[0] == 0
    assert run(capsys, "explain", *there, "--fail", "--kernel", CHANGED)[0] == 0
    assert run(capsys, "explain", *there, "--fail")[0] == 0, "the unclear one is outweighed"
    assert run(capsys, "explain", *there, "--fail", "--kernel", "419")[0] == 3
    assert run(capsys, "explain", *reversed(there), "--fail", "--top", "1")[0] == 1
    code, out, err = run(capsys, "explain", there[0], "nowhere.ncu-rep")
    assert (code, out) == (2, "")
    assert "nowhere.ncu-rep" in err
    assert run(capsys, "explain", *there, "--kernel", "no_such")[0] == 2


@pytest.mark.slow
def test_reports_of_other_gpus_exit_0_without_causes_and_3_as_a_gate(
    capsys: pytest.CaptureFixture[str], reports: Path
) -> None:
    both = paths(reports, "mistic/prof1", "cutlass/report75")
    code, out, _ = run(capsys, "explain", *both)
    assert code == 0
    assert "Not comparable: GPU differs" in out
    assert run(capsys, "explain", *both, "--fail")[0] == 3


@pytest.mark.slow
def test_versions_that_no_gpu_measured_have_no_time_to_split(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = Path(__file__).resolve().parents[2] / "data"
    monkeypatch.setenv("PROFILER_DATA", str(root))
    monkeypatch.setenv("PROFILER_DB", f"sqlite:///{tmp_path / 'index.db'}")
    code, out, _ = run(capsys, "explain", "v2d_b", "v2d_c")
    assert code == 0
    assert out.startswith("static and modelled evidence has no duration: there is no time to split.")
    assert "profiler compare v2d_b v2d_c" in out
    assert run(capsys, "explain", "v2d_b", "v2d_c", "--fail")[0] == 3
    document = strict(run(capsys, "explain", "v2d_b", "v2d_c", "--json")[1])
    assert document["launches"] == []
    assert "no duration" in document["reason"]


def test_pairs_that_top_leaves_out_are_not_explained(reports: Path) -> None:
    comparison: Comparison = compare(*sides(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult"), TABLE).top(1)
    (only,) = explain(comparison, TABLE)
    assert only.kernel == CHANGED


def test_the_sentence_is_its_parts_joined(ncar: dict[str, Explanation]) -> None:
    moved = ncar[CHANGED]
    parts = moved.sentence_parts
    assert parts.headline == "2.71 ms faster"
    assert parts.causes.startswith("mainly from ")
    assert parts.remainder == "Residue ±0."
    assert moved.sentence == f"{parts.headline}, {parts.causes}. {parts.remainder}"
