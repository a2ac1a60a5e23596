"""The writer of report files against NVIDIA's own reader: everything that was written is read back."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from profiler.evidence.launch import Session
from profiler.evidence.values import State, is_placeholder
from profiler.reports import file_format
from profiler.reports.read import launch_detail, read_report
from tests.reportfiles import machine_code, made_reports
from tests.reportfiles.ncu_rep import (
    Focus,
    LaunchResult,
    Metric,
    ReportFile,
    RuleResult,
    Scalar,
    SessionDetails,
)

ncu_report = pytest.importorskip("ncu_report")

CHIP = {f"device__attribute_{name}": 0x170 for name in ("architecture", "chip", "implementation")}  # GA100
COUNTERS: dict[str, Metric | Scalar] = {
    **CHIP,
    "gpu__time_duration.sum": 13056.0,
    "dram__bytes_read.sum": math.nan,
    "launch__waves_per_multiprocessor": math.inf,
    "launch__grid_size": 2**63 + 1,
    "launch__block_size": 0,
    "launch__registers_per_thread": 1.0,
    "launch__func_cache_config": "CachePreferNone – ü",
    "device__attribute_display_name": "",
    "l1tex__t_sector_hit_rate.pct": 99.999999999,
    "sass__inst_executed_per_opcode": Metric(16.0, [("FFMA", 6), ("LDS.128", 10)]),
    "launch__occupancy_per_block_size": Metric(3.0, [(32, 1), (64, 2)]),
    "memory_type": Metric(None, [(0x7F0000, 2), (0x7F0010, 4)]),
    "pmsampling:sm__cycles_active.avg": Metric(3.5, [(10**15, 1.0), (10**15 + 2000, 2.5)], over_time=True),
}
UNITS = {
    "gpu__time_duration.sum": "ns",
    "dram__bytes_read.sum": "byte",
    "launch__registers_per_thread": "register/thread",
    "l1tex__t_sector_hit_rate.pct": "%",
    "pmsampling:sm__cycles_active.avg": "cycle",
}
RULES = (
    RuleResult("A", "Rule A", "SpeedOfLight", "ok", "", "All is well."),
    RuleResult("B", "Rule B", "Occupancy", "optimization", "Title", "Do it.", 12.5, "global"),
    RuleResult(
        "B", "Rule B", "Occupancy", "warning", "Again", "See @section:Occupancy:this@.", 3.0, "local",
        (Focus("gpu__time_duration.sum", 13056.0, 1, "13056 > 1"), Focus("launch__grid_size", 4.0)),
    ),
    RuleResult("C", "Rule C", "LaunchStats", "error", "", "It failed."),
    RuleResult("D", "Rule D", "LaunchStats", "none", "High Utilization", "One pipe is busy."),
    RuleResult("E", "Rule E", "LaunchStats"),
)  # fmt: skip
KINDS = {"none": 0, "ok": 1, "optimization": 2, "warning": 3, "error": 4}  # as the library numbers them
NVTX = {"<default domain>": ("step", "forward"), "cuBLAS": ("gemm",), "empty": ()}


def launches() -> list[LaunchResult]:
    """Launches that differ in everything, the last one failed and poor in metrics."""
    code = machine_code.load("v1_lineinfo", 0x7F3A10000000, import_source=True)
    function = code.functions[machine_code.BY_HEAD_DIM[64]]
    executed = [(pc, 3 * index) for index, pc in enumerate(function.pcs)]
    counted = Metric(sum(count for _, count in executed), executed)
    rich = LaunchResult(
        "v1",
        "void v1<(int)64>(const __half *)",
        "_Z2v1ILi64EEvPK6__half",
        {**COUNTERS, "inst_executed": counted, "smsp__pcsamp_sample_count": counted},
        (65535, 4, 2),
        (128, 2, 1),
        16,
        NVTX,
        RULES,
        code,
    )
    plain = LaunchResult("plain", "plain(int)", "_Z5plaini", {"gpu__time_duration.sum": 5.0, "only__here": 7})
    failed = LaunchResult("plain", "plain(int)", "_Z5plaini", {"only__here": math.nan}, grid=(0, 0, 0))
    return [rich, plain, failed]


SESSION = SessionDetails(
    "2024.1.1.0 (build 33998838) (public-release)",
    "/opt/ncu --clock-control base --cache-control=none --set full ./app 'an argument'",
    "560.35.03",
    "12.6",
    1730121091,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launches as a file."""
    file = tmp_path_factory.mktemp("written") / "written.ncu-rep"
    file.write_bytes(ReportFile(launches(), SESSION).to_bytes())
    return file


@pytest.fixture(scope="module")
def actions(path: Path) -> list[Any]:
    """What `ncu_report` finds in it."""
    context = ncu_report.load_report(str(path))
    assert len(context) == 1
    return [context[0].action_by_idx(index) for index in range(len(context[0]))]


def test_every_launch_has_its_names(actions: list[Any]) -> None:
    for action, launch in zip(actions, launches(), strict=True):
        names = [action.name(base) for base in range(3)]
        assert names == [launch.function, launch.demangled, launch.mangled]


@pytest.mark.parametrize("ordinal", range(3))
def test_every_metric_has_its_total_kind_and_instances(actions: list[Any], ordinal: int) -> None:
    action, written = actions[ordinal], launches()[ordinal].metrics
    assert set(action.metric_names()) == set(written)
    for name, value in written.items():
        metric, expected = action[name], value if isinstance(value, Metric) else Metric(value)
        assert_total(metric, expected.total)
        keys = metric.correlation_ids() if expected.instances else None
        read_back = [(keys.value(i), metric.value(i)) for i in range(metric.num_instances())] if keys else []
        assert read_back == list(expected.instances), name
        assert metric.num_instances() == len(expected.instances), name


def assert_total(metric: Any, total: Scalar | None) -> None:
    assert metric.has_value() is (total is not None), metric.name()
    if total is None:
        return
    kinds = {int: metric.ValueKind_UINT64, float: metric.ValueKind_DOUBLE, str: metric.ValueKind_STRING}
    assert metric.kind() == kinds[type(total)], metric.name()
    value = metric.value()
    assert value == total or (value != value and total != total), metric.name()


def test_units_come_by_name_and_chip_and_a_metric_that_nobody_knows_has_none(actions: list[Any]) -> None:
    assert {name: actions[0][name].unit() for name in UNITS} == UNITS
    assert actions[0]["launch__func_cache_config"].unit() == ""
    assert actions[1]["only__here"].unit() == ""


def test_a_timeline_is_told_from_other_instances(actions: list[Any]) -> None:
    timelines = actions[0].timelines()
    aligned = timelines.aligned_metric(actions[0]["pmsampling:sm__cycles_active.avg"])
    assert aligned.num_instances() == 2
    assert timelines.aligned_metric(actions[0]["launch__occupancy_per_block_size"]) is None


def test_every_rule_has_its_words_kind_estimate_and_metrics(actions: list[Any]) -> None:
    results = actions[0].rule_results()
    assert not RULES[-1].message
    for result, rule in zip(results, RULES[:-1], strict=True):
        names = (result.rule_identifier(), result.name(), result.section_identifier())
        assert names == (rule.identifier, rule.name, rule.section)
        said = result.rule_message()
        assert (said["type"], said["title"], said["message"]) == (KINDS[rule.kind], rule.title, rule.message)
        assert result.has_speedup_estimation() is (rule.speedup_pct is not None)
        if rule.speedup_pct is not None:
            scope = {"local": 1, "global": 2}[rule.speedup_scope]
            assert result.speedup_estimation() == {"type": scope, "speedup": rule.speedup_pct}
        focus = [(one["name"], one["value"], one["severity"], one["info"]) for one in result.focus_metrics()]
        assert focus == [(one.name, one.value, one.severity, one.info) for one in rule.focus]


def test_nvtx_ranges_keep_their_domains_and_their_order(actions: list[Any]) -> None:
    state = actions[0].nvtx_state()
    found = {state.domain_by_id(i).name(): state.domain_by_id(i).push_pop_ranges() for i in state.domains()}
    assert found == NVTX
    assert actions[1].nvtx_state() is None


@pytest.mark.slow
def test_code_comes_with_its_text_its_lines_and_its_sources(actions: list[Any]) -> None:
    function = launches()[0].code.functions[machine_code.BY_HEAD_DIM[64]]  # type: ignore[union-attr]
    texts = [actions[0].sass_by_pc(pc) for pc in function.pcs]
    assert all(texts)
    assert actions[0].sass_by_pc(function.address + function.size) == ""
    lines = [actions[0].source_info(pc) for pc in function.pcs]
    assert {info.file_name().rpartition("/")[2] for info in lines} >= {"v1.cu", "common.cuh"}
    sources = dict(actions[0].source_files())
    text = sources[f"{machine_code.FOLDER}/v1.cu"].splitlines()
    first = next(
        info for info, sass in zip(lines, texts, strict=True) if "BAR.SYNC" in sass
    )  # the line of a barrier holds one
    assert "__syncthreads" in text[first.line() - 1]


def test_opcodes_of_the_code_are_those_that_the_disassembler_names(actions: list[Any]) -> None:
    function = launches()[0].code.functions[machine_code.BY_HEAD_DIM[64]]  # type: ignore[union-attr]
    codes = machine_code.opcodes("v1_lineinfo", function.name)
    for pc, code in zip(function.pcs, codes, strict=True):
        words = [word for word in actions[0].sass_by_pc(pc).split() if not word.startswith("@")]
        opcode = words[0].partition(".")[0]
        assert (opcode in ("LDS", "STS")) is (code in machine_code.SHARED), hex(pc)
        assert (opcode in ("LDG", "STG")) is (code in machine_code.GLOBAL), hex(pc)
        assert (opcode == "BRA", opcode == "NOP") == (
            code == machine_code.BRANCH,
            code == machine_code.NOP,
        )


def test_the_framing_check_finds_what_was_written(path: Path) -> None:
    framing = file_format.check_framing(path)
    assert framing.session == Session(
        ncu_version="2024.1.1.0",
        created=datetime.fromtimestamp(SESSION.created, UTC),
        command_line=SESSION.command_line,
        driver="560.35.03",
        cuda="12.6",
        clock_control="base",
        cache_control="none",
        replay_mode=None,
    )
    assert framing.declared == 3
    headers = [(one.function, one.grid, one.block, one.stream, one.metrics) for one in framing.launches]
    assert headers == [
        ("v1", (65535, 4, 2), (128, 2, 1), 16, len(launches()[0].metrics)),
        ("plain", (1, 1, 1), (128, 1, 1), 7, 2),
        ("plain", None, (128, 1, 1), 7, 1),
    ]


@pytest.mark.slow
def test_this_package_reads_both_depths_of_it(path: Path) -> None:
    report = read_report(path)
    assert [launch.function for launch in report.launches] == ["v1", "plain", "plain"]
    assert report.launches[0].nvtx == ("step", "forward", "cuBLAS@gemm")
    assert report.launches[0].opcodes == {"FFMA": 6.0, "LDS.128": 10.0}
    detail = launch_detail(path, 0)
    assert len(detail.pcs) == len(detail.sass) == 608
    assert all(detail.sass)
    assert detail.per_pc["inst_executed"].values.sum() == report.launches[0].values["inst_executed"].number


def test_the_same_description_gives_the_same_bytes(path: Path) -> None:
    assert ReportFile(launches(), SESSION).to_bytes() == path.read_bytes()
    name = "esmm/profile@5c6231e5"
    assert made_reports.report(name).to_bytes() == made_reports.report(name).to_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", made_reports.RECIPES)
def test_every_made_report_is_read_with_all_its_launches_and_values(tmp_path: Path, name: str) -> None:
    described = made_reports.report(name)
    path = tmp_path / "made.ncu-rep"
    path.write_bytes(described.to_bytes())
    for launch, written in zip(read_report(path).launches, described.launches, strict=True):
        assert (launch.function, launch.mangled) == (written.function, written.mangled)
        assert set(launch.values) == set(written.metrics)
        assert len(launch.rules) == sum(bool(rule.message) for rule in written.rules)
        for metric, value in written.metrics.items():
            total = value.total if isinstance(value, Metric) else value
            found = launch.values[metric]
            if isinstance(total, float) and not math.isfinite(total):
                total = None
            if isinstance(total, int | float) and is_placeholder(metric, total, written.grid != (0, 0, 0)):
                assert found.state is State.FAILED, metric
                total = None
            assert (found.text if isinstance(total, str) else found.number) == total, metric
