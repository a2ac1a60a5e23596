"""What static and modelled evidence says of the committed lineage, and of a small one with gaps."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler import cli
from profiler.advice.insights import find_insights
from profiler.advice.statement import Statement
from profiler.advice.subject import ComparedSide, Subject
from profiler.advice.without_gpu import REFUTED_BY
from profiler.bundles.run import Facts
from profiler.evidence import metric_table
from profiler.evidence.launch import Launch
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence, State, Value, pack_values
from tests import lineages

ROOT = Path(__file__).resolve().parents[2]
TABLE = metric_table.load_metrics()


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory, committed_data: Path) -> Path:
    """A data folder with the committed runs and an index of its own."""
    return Path(shutil.copytree(committed_data, tmp_path_factory.mktemp("data") / "data"))


def asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> dict[str, Any]:
    monkeypatch.setenv("PROFILER_DATA", str(folder))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    assert cli.main(["insights", *arguments, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def by_id(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in found["statements"]}


def static(opcodes: dict[str, float] | None = None, **values: Value) -> Side:
    """One function on sm_80: 128 registers, 4 blocks of 128 threads, limited by registers."""
    facts = {
        "static__registers": Value(128, "register/thread"),
        "static__spill_bytes": Value(0, "byte"),
        "static__shared_bytes": Value(16_384, "byte/block"),
        "static__threads": Value(128, "thread"),
        "static__occupancy_pct": Value(25.0, "%"),
        "static__blocks_per_sm": Value(4, "block"),
        **{f"static__{name}": value for name, value in values.items()},
    }
    mix = {"HMMA": 8.0, "FFMA": 4.0, "LDGSTS": 4.0} if opcodes is None else opcodes
    launch = Launch("main", "main", "main", None, None, None, (), 0, pack_values(facts), mix)
    return Side("v", (launch,), gpu="sm_80", workload="head dim 64", evidence=Evidence.STATIC)


def said(side: Side) -> dict[str, Statement]:
    return {
        statement.id: statement
        for statement in find_insights(Subject("v", facts=(ComparedSide(side),)), TABLE).statements
    }


@pytest.mark.slow
def test_the_step_without_a_swizzle_is_told_where_its_conflicts_are(
    committed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    insights = asked(committed, monkeypatch, capsys, "v2d_a")
    assert (insights["against"], insights["against_why"]) == (
        "attention/v2c_v5",
        "its parent in the catalogue",
    )
    statement = by_id(insights)["conflicts"]
    assert "most by the load at v2d.cu:141, 8 wavefronts for each that it needs" in statement["text"]
    assert statement["lever"] == "swizzle or pad the shared-memory tile"
    assert (statement["evidence"], statement["valid"], statement["share_of_time"]) == ("modelled", True, None)
    (conflicts,) = [metric for metric in statement["metrics"] if metric["concept"] == "modelled_conflicts"]
    assert conflicts["baseline_value"] == 0 < conflicts["value"]


@pytest.mark.slow
def test_the_step_with_the_swizzle_has_none_left(
    committed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statements = by_id(asked(committed, monkeypatch, capsys, "attention/v2d_b"))
    assert "conflicts" not in statements
    changed = statements["change:modelled"]
    (conflicts,) = [metric for metric in changed["metrics"] if metric["concept"] == "modelled_conflicts"]
    assert conflicts["value"] == 0 < conflicts["baseline_value"]
    assert re.search(r"bank conflicts, modelled \S+ k → 0,", changed["text"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "unused"), [("v1", True), ("v2b", True), ("v2c_v4", False), ("v2d_c", False)]
)
def test_only_code_without_matrix_instructions_is_sent_to_the_tensor_cores(
    committed: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    version: str,
    unused: bool,
) -> None:
    statements = by_id(asked(committed, monkeypatch, capsys, version))
    assert ("tensor:unused" in statements) is unused
    assert statements["time"]["kind"] == "unknown"
    assert statements["time"]["lever"] is None
    assert f"profiler collect {version}" in statements["time"]["text"]


@pytest.mark.slow
def test_a_version_is_held_against_its_nearest_correct_ancestor(
    committed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    insights = asked(committed, monkeypatch, capsys, "v2b")
    assert insights["against"] == "attention/v1"
    assert insights["against_why"] == "its nearest correct ancestor: v2 is not"
    assert asked(committed, monkeypatch, capsys, "v1")["against"] is None
    assert asked(committed, monkeypatch, capsys, "v2d_c", "--against", "v2b")["against"] == "v2b"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "words", "lever"),
    [
        ("v2", "race:read-after-write at v2b.cu:119", "order the write and the read"),
        ("v2b_smem", "Rejected, so it has no speed", "bring it under its budget"),
        ("v2c_v1", "Rejected, so it has no speed", "bring it under what the GPU has"),
        ("v2b_warp7", "rows 56 to 63 of every tile are NaN", None),
        ("fp8_lane_scores", "fp8_stage_c.cu:164", "order the write and the read"),
    ],
)
def test_a_wrong_version_gets_its_correctness_alone(
    committed: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    version: str,
    words: str,
    lever: str | None,
) -> None:
    insights = asked(committed, monkeypatch, capsys, version)
    (one,) = insights["statements"]
    assert one["kind"] == "correctness"
    assert words in one["text"]
    assert (one["lever"] or "").startswith(lever or "")
    assert insights["correct"] is False


@pytest.mark.slow
def test_a_planned_version_is_told_from_a_typing_error_with_what_it_waits_for(
    committed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    insights = asked(committed, monkeypatch, capsys, "v2h")
    assert (insights["version"], insights["correct"]) == ("attention/v2h", None)
    (one,) = insights["statements"]
    assert (one["kind"], one["lever"]) == ("unknown", None)
    assert "is planned (the two consumer warpgroups take turns" in one["text"]
    assert "needs a Hopper GPU" in one["text"]
    assert "profiler insights v2f" in one["text"]
    (one,) = asked(committed, monkeypatch, capsys, "sdpa_flash")["statements"]
    assert "no run has anything of it: `profiler collect sdpa_flash`" in one["text"]
    for command in (
        ["explain", "v2b", "v2h"],
        ["compare", "v2h", "v2b"],
        ["insights", "v2b", "--against", "v2h"],
    ):
        assert cli.main(command) == 3
        assert "attention/v2h is planned" in capsys.readouterr().err
    assert cli.main(["insights", "v2he"]) == 2


@pytest.mark.slow
def test_a_version_is_correct_where_it_was_checked_and_nobody_knows_where_not(
    committed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(committed, monkeypatch, capsys, "v2d_c", "--workload", "head dim 64")["correct"] is True
    assert find_insights(Subject("v", facts=(ComparedSide(static()),)), TABLE).to_dict()["correct"] is None


@pytest.mark.slow
def test_a_version_of_another_type_is_held_against_nothing_and_says_so(
    committed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statement = by_id(asked(committed, monkeypatch, capsys, "fp8_stage_c"))["change:static"]
    assert statement["kind"] == "unknown"
    assert "not comparable, dtype differs" in statement["text"]


def test_one_workload_and_architecture_can_be_asked_for(
    committed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    insights = asked(committed, monkeypatch, capsys, "v2d_c", "--workload", "head dim 64", "--gpu", "sm_89")
    assert by_id(insights)["room"]["text"].endswith("(head dim 64 sm_89)")
    assert "conflicts" not in by_id(insights)
    assert cli.main(["insights", "v2d_c", "--gpu", "sm_70"]) == 2
    assert "has nothing on sm_70" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("shape", [[], ["--markdown"]])
def test_every_version_of_the_lineage_reads_in_words(
    committed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shape: list[str]
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(committed))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    for version in ("v1", "v2", "v2c_v5", "v2d_c", "flashcore_wmma"):
        assert cli.main(["insights", version, *shape]) == 0
        output = capsys.readouterr().out
        assert f"attention/{version}" in output
        assert "None" not in output
        assert "nan" not in output.split()


def test_one_register_step_from_another_block_is_told() -> None:
    one = said(static())["room"]
    assert "102 registers" not in one.text
    assert "96 registers in place of 128 would fit one more" in one.text
    assert one.lever is not None
    assert "fewer live registers" in one.lever


def test_spills_and_local_arrays_are_told_apart() -> None:
    spilled = said(static({"HMMA": 8.0, "LDL": 3.0, "STL": 3.0}, spill_bytes=Value(96, "byte")))
    assert "96 B of registers spill at 128" in spilled["spills"].text
    assert "local" not in spilled
    array = said(static({"HMMA": 8.0, "LDL": 3.0, "STL": 3.0}))
    assert "spills" not in array
    assert "an array lies in local memory" in array["local"].text


def test_without_the_machine_code_nothing_is_said_about_its_opcodes() -> None:
    told = said(static({}))
    assert {"tensor:unused", "copies", "local"} & {*told} == set()
    assert "whether the code has tensor-core instructions" in told["others"].text
    assert told["others"].lever is None


def test_taking_any_fact_away_never_adds_advice() -> None:
    for whole in (
        static({"FFMA": 40.0, "LDG": 4.0, "STS": 4.0, "LDL": 2.0}),
        static(spill_bytes=Value(96, "byte"), over_budget=Value(None, text="registers 128 over 96")),
    ):
        levers = {one.lever for one in said(whole).values()}
        assert len(levers) > 1
        launch = whole.launches[0]
        for gone in launch.values:
            for put in (None, Value(None, state=State.FAILED), Value(None, state=State.NOT_COLLECTED)):
                values = {name: one for name, one in launch.values.items() if name != gone}
                less = replace(launch, values=pack_values({**values, **({gone: put} if put else {})}))
                for one in said(replace(whole, launches=(less,))).values():
                    assert one.lever is None or one.lever in levers, (gone, one.id)


def test_a_version_over_its_budget_says_so() -> None:
    told = said(static(over_budget=Value(None, text="registers 128 over 96")))
    assert told["budget"].text == "Over its budget: registers 128 over 96 (head dim 64 sm_80)"


def test_latency_without_counters_leaves_the_causes_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(tmp_path, lineages.results(measured=True), gpu="NVIDIA Test 1")
    statements = by_id(asked(tmp_path, monkeypatch, capsys, "alpha"))
    assert "where its time goes (never measured on a GPU)" in statements["time"]["text"]
    assert statements["time"]["kind"] == "unknown"
    (latency,) = [one for name, one in statements.items() if name.startswith("latency:")]
    assert [latency["metrics"][0][key] for key in ("value", "baseline_value")] == [640.0, 400.0]
    assert latency["lever"] is None


def test_conflicts_that_the_model_could_not_count_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = lineages.results()
    facts = tuple(
        replace(row, facts=(_uncounted(row.facts[0]),)) if row.facts[0].evidence is Evidence.MODELLED else row
        for row in rows
    )
    lineages.dissected(tmp_path, facts)
    statements = by_id(asked(tmp_path, monkeypatch, capsys, "alpha"))
    assert "conflicts" not in statements
    assert "whether shared memory is accessed without conflicts" in statements["others"]["text"]


def _uncounted(facts: Facts) -> Facts:
    failed = Value(None, state=State.FAILED)
    return replace(facts, values={**facts.values, "modelled__bank_conflicts": failed})


@pytest.mark.parametrize(
    ("name", "opcodes", "chip", "lever"),
    [
        (
            "tensor:partly",
            {"HMMA": 8.0, "FFMA": 20.0, "LDGSTS": 4.0},
            "sm_80",
            "the products that are still scalar",
        ),
        ("tensor:wgmma", {"HMMA": 8.0, "LDGSTS": 4.0}, "sm_90a", "wgmma on tiles that TMA loads"),
        (
            "registers",
            {"HMMA": 8.0, "STS": 70.0, "LDGSTS": 4.0},
            "sm_80",
            "keep intermediate results in registers",
        ),
        ("narrow", {"FADD": 8.0, "LDG": 20.0}, "sm_80", "wider accesses: 16 bytes"),
        ("stages", {"HMMA": 8.0, "LDGSTS": 4.0}, "sm_80", "one more stage of asynchronous copies"),
    ],
)
def test_what_the_code_alone_tells(name: str, opcodes: dict[str, float], chip: str, lever: str) -> None:
    wide = Value(0.0, "inst")
    values: dict[str, Value] = {"opcode_LDG.128": wide}
    whole = replace(static(opcodes, **values), gpu=chip)
    statement = said(whole)[name]
    assert (statement.lever or "").startswith(lever)
    assert statement.techniques
    without_mix = replace(whole, launches=(replace(whole.launches[0], opcodes={}),))
    assert name not in said(without_mix), "a mix that is not there is no mix of zeros"


@pytest.mark.parametrize(
    ("name", "opcodes", "chip"),
    [
        ("tensor:partly", {"HMMA": 64.0, "FFMA": 34.0}, "sm_80"),
        ("tensor:wgmma", {"HGMMA": 8.0, "HMMA": 2.0}, "sm_90a"),
        ("tensor:wgmma", {"HMMA": 8.0}, "sm_80"),
        ("registers", {"HMMA": 64.0, "STS": 16.0}, "sm_80"),
        ("narrow", {"LDG": 20.0, "LDGSTS": 2.0}, "sm_80"),
        ("stages", {"HMMA": 8.0, "LDG": 4.0}, "sm_80"),
    ],
)
def test_and_what_it_does_not(name: str, opcodes: dict[str, float], chip: str) -> None:
    values: dict[str, Value] = {"opcode_LDG.128": Value(0.0, "inst")}
    assert name not in said(replace(static(opcodes, **values), gpu=chip))


@pytest.mark.parametrize(
    ("chip", "of_16", "of_32", "is_narrow"),
    [
        ("sm_100a", 0.0, 3.0, False),  # the widest there are
        ("sm_100a", 3.0, 0.0, False),
        ("sm_100a", 0.0, 0.0, True),
        ("sm_100a", 0.0, None, False),  # facts of an older profiler: unknown is not zero
        ("sm_90a", 0.0, None, True),  # no such loads there
        ("sm_121", 0.0, 2.0, False),
    ],
)
def test_loads_are_narrow_where_none_is_of_16_bytes_or_more(
    chip: str, of_16: float, of_32: float | None, is_narrow: bool
) -> None:
    values: dict[str, Value] = {"opcode_LDG.128": Value(of_16, "inst")}
    if of_32 is not None:
        values["opcode_LDG.256"] = Value(of_32, "inst")
    assert ("narrow" in said(replace(static({"FADD": 8.0, "LDG": 3.0}, **values), gpu=chip))) == is_narrow


@pytest.mark.parametrize(
    "opcodes",
    [
        {"FFMA": 64.0, "LDG": 8.0, "STS": 9.0},
        {"HMMA": 8.0, "FFMA": 64.0, "STS": 9.0, "LDL": 3.0, "STL": 3.0},
    ],
)
def test_every_lever_on_facts_says_its_known_steps_and_its_refutation(opcodes: dict[str, float]) -> None:
    statements = said(static(opcodes))
    levers = {name: statement for name, statement in statements.items() if statement.lever}
    assert len(levers) >= 3
    for name, statement in levers.items():
        assert statement.refuted_by == REFUTED_BY[name]
        assert f"refuted if {statement.refuted_by}" in statement.confidence
        assert "recorded optimisation step" in statement.confidence
    assert not any(one.refuted_by for name, one in statements.items() if name not in levers)
