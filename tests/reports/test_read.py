"""Reading reports apart: what a launch carries, what is refused, and that a bad file costs only itself."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from profiler.errors import Exit, ProfilerError, UnreadableReport
from profiler.evidence.launch import Launch, Report
from profiler.evidence.ncu_release import REPORT_FILE_VERSION
from profiler.evidence.values import State, Value
from profiler.reports import (
    file_format,
    memory_limit,
    read,
    reader_client,
    reader_process,
    report_parts,
)
from profiler.reports.reader_client import ReaderWorker
from tests import made
from tests.reportfiles import wire
from tests.reportfiles.ncu_rep import LaunchResult, ReportFile

BAD = {
    "empty": "the file is empty",
    "first10": "no launch",
    "flip1_abort": "an entry is longer than its block",
    "flip1_all_actions_lost": "declares 4 launches and 0 can be read",
    "flip1_exception": "a metric whose name is no name",
    "flip1_metrics_lost": "a launch has no name",
    "flip20_metrics_lost": "a launch has ",
    "lfs_pointer": "git lfs pull",
    "magic_only": "cut short",
    "minus_last_byte": "cut short",
    "random": "not an Nsight Compute report",
    "text": "not an Nsight Compute report",
    "trailing_garbage": "appended to",
    "truncated_1_of_4_actions": "cut short",
    "truncated_3_of_4_actions": "cut short",
    "truncated_near_end": "cut short",
    "twice": "appended to",
}
# A worker that misbehaves on files by their name, and is the real one for every other file.
STAND_IN = """
import json, os, signal, sys, time
sys.path.append(sys.argv[3])
import reader_process as reader
real = reader.answer
def answer(request):
    path = request["path"]
    if "kills" in path: os.kill(os.getpid(), signal.SIGSEGV)
    if "hangs" in path: time.sleep(600)
    if "babbles" in path: os.write(3, b"x" * 100)
    if "forgets" in path: return {"sets": [], "launches": [{"set": 4}]}, b""
    if "exits" in path: os._exit(7)
    return real(request)
reader.answer = answer
reader.send.__globals__["os"].dup2(1, 3)
reader.serve(sys.argv[1], int(sys.argv[2]))
"""


@pytest.fixture(scope="session")
def small(reports: Path) -> Path:
    """The report that is read fastest."""
    return reports / "esmm" / "profile@5c6231e5.ncu-rep"


@pytest.fixture
def misbehaving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Workers that misbehave on files with the right names, for the rest of the test."""
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    real = reader_client.command

    def command(memory_bytes: int) -> list[str]:
        *start, _, _, folder, site, limit = real(memory_bytes)
        return [*start, str(script), site, limit, folder]

    monkeypatch.setattr(reader_client, "command", command)
    return tmp_path


def launches(path: Path) -> tuple[Launch, ...]:
    return read.read_report(path).launches


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_a_damaged_report_is_refused_in_one_line(reports: Path, name: str) -> None:
    path = reports / "bad" / f"{name}.ncu-rep"
    with pytest.raises(UnreadableReport) as refused:
        read.read_report(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert BAD[name] in message
    assert "\n" not in message
    assert refused.value.exit_code is Exit.UNUSABLE_INPUT


@pytest.mark.slow
def test_damaged_reports_cost_the_good_ones_between_them_nothing(reports: Path, small: Path) -> None:
    bad = sorted((reports / "bad").glob("*.ncu-rep"))
    results = list(read.read_reports([small, *bad, small, reports / "mistic" / "prof1.ncu-rep"]))
    assert [isinstance(result, Report) for result in results] == [True, *[False] * len(bad), True, True]
    assert [result.name for result in results if isinstance(result, Report)] == [small.name] * 2 + [
        "prof1.ncu-rep"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deed", "told"),
    [
        ("kills", "SIGSEGV"),
        ("exits", "exit code 7"),
        ("babbles", "nonsense"),
        ("forgets", "nonsense"),
    ],
)
def test_a_worker_that_fails_on_a_file_costs_that_file_only(
    misbehaving: Path, small: Path, deed: str, told: str
) -> None:
    victim = misbehaving / f"{deed}.ncu-rep"
    victim.write_bytes(small.read_bytes())
    first, second, third, fourth = read.read_reports([small, victim, small, small])
    assert isinstance(first, Report)
    assert isinstance(second, UnreadableReport)
    assert told in str(second)
    assert isinstance(third, Report)
    assert isinstance(fourth, Report)
    assert (
        third.launches[0].values["gpu__time_duration.sum"]
        == first.launches[0].values["gpu__time_duration.sum"]
    )


@pytest.mark.slow
def test_a_worker_that_hangs_is_ended_and_the_rest_is_read(misbehaving: Path, small: Path) -> None:
    victim = misbehaving / "hangs.ncu-rep"
    victim.write_bytes(small.read_bytes())
    hung, whole = read.read_reports([victim, small], timeout_s=6)
    assert isinstance(hung, UnreadableReport)
    assert "took longer than 6 s" in str(hung)
    assert isinstance(whole, Report)


@pytest.mark.slow
def test_the_time_limit_holds_for_a_real_report(small: Path) -> None:
    with pytest.raises(UnreadableReport, match=r"took longer than 0\.001 s"):
        read.read_report(small, timeout_s=0.001)


@pytest.mark.slow
@pytest.mark.parametrize("mebibytes", [30, 120])
def test_too_little_memory_is_a_refusal_and_never_a_report_without_units(
    reports: Path, mebibytes: int
) -> None:
    with pytest.raises(UnreadableReport, match=r"MiB of memory|stopped on it|cannot be loaded"):
        read.read_report(reports / "cutlass" / "report80.ncu-rep", memory_bytes=mebibytes << 20)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The process ids of the workers that reading has used."""
    reader_client._spare.close()
    reader_client._csv_spare.close()
    used: set[int] = set()
    start = ReaderWorker.start

    def counting(self: ReaderWorker) -> subprocess.Popen[bytes]:
        process = start(self)
        used.add(process.pid)
        return process

    monkeypatch.setattr(ReaderWorker, "start", counting)
    return used


@pytest.mark.slow
def test_a_worker_that_has_grown_too_large_is_replaced_unnoticed(
    public_reports: Path, workers: set[int]
) -> None:
    results = list(read.read_reports([public_reports / "cutlass" / "report80.ncu-rep"] * 12))
    assert [len(result.launches) for result in results if isinstance(result, Report)] == [3] * 12
    assert len(workers) == 2


@pytest.mark.slow
def test_a_large_caller_does_not_make_its_worker_look_large(small: Path, workers: set[int]) -> None:
    held = bytearray(b"x") * (400 << 20)  # more than a worker may hold before it is replaced
    assert [type(result) for result in read.read_reports([small] * 5)] == [Report] * 5
    assert len(held) == 400 << 20
    assert len(workers) == 1


@pytest.mark.slow
def test_an_abandoned_reading_leaves_no_process_behind(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = []
    start = ReaderWorker.start
    monkeypatch.setattr(ReaderWorker, "start", lambda self: processes.append(start(self)) or processes[-1])
    reading = read.read_reports([small] * 3)
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert processes
    assert all(process.returncode is not None for process in processes)


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of every size are read in parts of one or two launches."""
    monkeypatch.setattr(file_format, "SPANS_BYTES", 0)
    monkeypatch.setattr(report_parts, "PART_BYTES", 10_000)


@pytest.mark.slow
def test_a_report_read_in_parts_is_the_report_read_whole(
    reports: Path, in_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mistic/prof1", "hyperspec/profile", "esmm/profile@a62323b2"):
        path = reports / f"{name}.ncu-rep"
        parts = report_parts.parts_of(file_format.check_framing(path))
        assert len(parts) > 1
        in_parts_read = read.read_report(path)
        detail = read.launch_detail(path, len(in_parts_read.launches) - 1)
        with monkeypatch.context() as context:
            context.setattr(file_format, "SPANS_BYTES", 1 << 30)
            whole = read.read_report(path)
            assert in_parts_read == whole
            assert [launch.values for launch in in_parts_read.launches] == [
                launch.values for launch in whole.launches
            ]
            whole_detail = read.launch_detail(path, len(whole.launches) - 1)
        assert detail.sass == whole_detail.sass
        assert detail.pcs.tolist() == whole_detail.pcs.tolist()
        assert detail.per_pc.keys() == whole_detail.per_pc.keys()


@pytest.mark.slow
def test_parts_are_read_on_where_a_worker_is_replaced(
    reports: Path, small: Path, in_parts: None, misbehaving: Path
) -> None:
    """Between other files, each of which ends the worker."""
    victim = misbehaving / "exits.ncu-rep"
    victim.write_bytes(small.read_bytes())
    path = reports / "hyperspec" / "profile.ncu-rep"
    results = list(read.read_reports([small, victim, path, victim, path, small]))
    assert [isinstance(result, Report) for result in results] == [True, False, True, False, True, True]
    assert [len(result.launches) for result in results if isinstance(result, Report)][1:3] == [8, 8]


@pytest.mark.slow
def test_a_report_of_many_launches_is_read_in_bounded_memory(
    made_reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of 479 MB is within 1 GiB, in parts of 24 MiB: here both are a tenth, with the start on top."""
    source = made_reports / "mistic" / "prof1.ncu-rep"
    blocks = made_launch_blocks(source)
    path = tmp_path / "large.ncu-rep"
    with path.open("wb") as file:
        file.write(source.read_bytes())
        for moment in itertools.count(10):  # no two launches are equal to the last byte
            file.writelines(block(moment) for block in blocks)
            if file.tell() > 20_000_000:
                break
    count = file_format.check_framing(path).declared
    limit = 400 << 20
    with pytest.raises(UnreadableReport, match="too large for the limit"):
        read.read_report(path, memory_bytes=limit)
    monkeypatch.setattr(file_format, "SPANS_BYTES", 10 << 20)
    monkeypatch.setattr(report_parts, "PART_BYTES", 3 << 20)
    report = read.read_report(path, memory_bytes=limit)
    assert [launch.ordinal for launch in report.launches] == list(range(count))
    last = report.launches[count - 1]
    assert last.values == report.launches[count - 1 - len(blocks)].values
    assert read.launch_detail(path, count - 1).function == last.function


def made_launch_blocks(path: Path) -> list[Callable[[int], bytes]]:
    """The blocks of a report that hold a launch and no names, by the moment of the launch."""
    with pytest.MonkeyPatch.context() as context:
        context.setattr(file_format, "SPANS_BYTES", 0)
        framing = file_format.check_framing(path)
    content, created = path.read_bytes(), framing.session.created
    assert created
    start = int(created.timestamp())

    def later(span: file_format.BlockSpan, number: int) -> Callable[[int], bytes]:
        block, moment = content[span.at : span.end], wire.field(14, start + number)
        assert block.count(moment) == 1
        return lambda seconds: block.replace(moment, wire.field(14, start + seconds))

    spans = [span for span in framing.blocks if span.result_ends]
    return [later(span, number) for number, span in enumerate(spans) if not span.is_shared]


@pytest.mark.slow
def test_a_report_that_is_too_large_is_not_called_damaged(reports: Path) -> None:
    with pytest.raises(UnreadableReport) as refused:
        read.read_report(reports / "cutlass" / "report80.ncu-rep", memory_bytes=200 << 20)
    message = str(refused.value)
    assert "too large for the limit" in message
    assert "more than 200 MiB of memory; raise the limit with --reader-memory 2G" in message
    assert "damaged" not in message


def test_the_limit_of_memory_follows_the_size_and_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(memory_limit.READER_MEMORY, raising=False)
    monkeypatch.setattr(memory_limit, "machine_memory", lambda: 16 << 30)
    assert memory_limit.reader_memory(1000) == 1 << 30
    assert memory_limit.reader_memory(100_000_000) == (512 << 20) + 2_000_000_000
    assert memory_limit.reader_memory(1_000_000_000) == 8 << 30
    monkeypatch.setenv(memory_limit.READER_MEMORY, "2.5G")
    assert memory_limit.reader_memory(1_000_000_000) == 5 << 29
    for text in ("much", "4X", "1M", "-4G"):
        with pytest.raises(ProfilerError, match=r"PROFILER_READER_MEMORY=.* is no size"):
            memory_limit.parse_size(text)


def test_what_is_no_file_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(UnreadableReport, match="no such file"):
        read.read_report(tmp_path / "missing.ncu-rep")
    with pytest.raises(UnreadableReport, match="a folder"):
        read.read_report(tmp_path)
    os.mkfifo(tmp_path / "pipe.ncu-rep")
    with pytest.raises(UnreadableReport, match="not a regular file"):
        read.read_report(tmp_path / "pipe.ncu-rep")
    (tmp_path / "packed.ncu-repz").write_bytes(b"PK")
    with pytest.raises(UnreadableReport, match=r"save it as \.ncu-rep"):
        read.read_report(tmp_path / "packed.ncu-repz")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_says_so(tmp_path: Path) -> None:
    path = tmp_path / "secret.ncu-rep"
    path.write_bytes(b"NVR\0")
    path.chmod(0)
    with pytest.raises(UnreadableReport, match="may not be read by this user"):
        read.read_report(path)


def test_a_report_over_a_callers_limit_is_refused(small: Path) -> None:
    (result,) = read.read_reports([small], max_bytes=1000)
    assert isinstance(result, UnreadableReport)
    assert "more than the limit of 1,000" in str(result)


def test_what_counts_as_a_report(reports: Path, tmp_path: Path, small: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "renamed.bin").write_bytes(small.read_bytes()[:100])
    assert read.is_report(small)
    assert read.is_report(reports / "bad" / "empty.ncu-rep")  # so that it is refused aloud
    assert read.is_report(reports / "csv" / "kernel_0009.details.csv")
    assert read.is_report(tmp_path / "renamed.bin")
    assert not read.is_report(tmp_path / "other.csv")
    assert not read.is_report(reports / "README.md")
    assert not read.is_report(reports)


def test_a_launch_carries_its_names_shape_stream_and_nvtx_path(reports: Path) -> None:
    first, _, third = launches(reports / "cutlass" / "report75.ncu-rep")
    assert first.function == "Kernel"
    assert first.base_name == "Kernel"
    assert re.match(r"void \w+::Kernel<", first.demangled)
    assert re.match(r"_ZN\d\w+6KernelI", first.mangled)
    assert (first.grid, first.block, first.stream) == ((24, 4, 1), (128, 1, 1), 7)
    assert (first.nvtx, third.nvtx) == (("Non-fused-GEMM",), ("Fused-GEMM",))
    assert [launch.ordinal for launch in (first, third)] == [0, 2]


def test_values_keep_unit_and_kind(reports: Path) -> None:
    found = read.read_report(reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep")
    values = found.launches[0].values
    assert found.gpu == "NVIDIA GeForce RTX 3060 Ti"
    assert values["gpu__time_duration.sum"] == Value(72640.0, "ns")
    assert isinstance(values["launch__grid_size"].number, int)
    assert values["launch__func_cache_config"].text == "CachePreferNone"
    assert values["device__attribute_compute_capability_minor"].number == 6
    assert values.value("no__such_metric") == Value(None, "", None, State.NOT_COLLECTED)


def test_launches_with_the_same_metrics_share_one_set(small: Path) -> None:
    found = launches(small)
    assert len({len(launch.values) for launch in found}) == 2
    assert len({id(launch.values.metric_set) for launch in found}) == 2


def test_a_failed_launch_holds_no_number_for_its_time(small: Path) -> None:
    failed = launches(small)[5]
    assert failed.values["gpu__time_duration.sum"] == Value(None, "ns", None, State.FAILED)
    assert failed.values.number("gpu__time_duration.sum") is None
    assert (failed.grid, failed.block, failed.stream) == (None, None, 7)


@pytest.mark.parametrize("took_ns", [0.0, -5000.0, math.nan])
def test_a_launch_that_took_no_time_has_a_duration_that_failed(
    reports: Path, tmp_path: Path, took_ns: float
) -> None:
    report = reports / "ncar" / "MW_Baseline.ncu-rep"
    odd, *others = launches(made.lasting(report, 11360.0, took_ns, tmp_path / "odd.ncu-rep"))
    assert odd.values["gpu__time_duration.sum"] == Value(None, "ns", None, State.FAILED)
    assert all(one.values.number("gpu__time_duration.sum") for one in others)


def test_values_per_instance_without_a_total_are_not_zero(reports: Path) -> None:
    values = launches(reports / "mistic" / "prof1.ncu-rep")[0].values
    assert values["memory_type"].state is State.INSTANCES_ONLY
    assert values["memory_type"].number is None


def test_the_opcode_mix_is_read_with_its_names(reports: Path) -> None:
    launch = launches(reports / "mistic" / "prof1.ncu-rep")[0]
    assert launch.opcodes["IMAD"] == 43416230086
    assert sum(launch.opcodes.values()) == launch.values["inst_executed"].number


def test_rules_carry_their_words_and_estimated_speedups(reports: Path) -> None:
    rules = launches(reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep")[0].rules
    occupancy = next(rule for rule in rules if rule.identifier == "AchievedOccupancy")
    assert (occupancy.section, occupancy.kind, occupancy.speedup_scope) == (
        "Occupancy",
        "optimization",
        "global",
    )
    assert occupancy.speedup_pct == pytest.approx(8.4, abs=5)
    assert occupancy.focus_metrics[0] == "sm__warps_active.avg.pct_of_peak_sustained_active"
    assert "achieved occupancy" in occupancy.message.lower()
    assert all(rule.message for rule in rules)
    old = launches(reports / "mistic" / "prof1.ncu-rep")[0].rules
    assert old
    assert all(rule.speedup_pct is None for rule in old)


def test_the_file_is_named_and_hashed(small: Path) -> None:
    found = read.read_report(small)
    content = small.read_bytes()
    assert (found.name, found.form, found.size_bytes) == (small.name, "ncu-rep", len(content))
    assert found.sha256 == hashlib.sha256(content).hexdigest()


def test_the_worker_knows_the_states_by_the_same_numbers() -> None:
    assert reader_process.PRESENT == State.PRESENT
    assert reader_process.FAILED == State.FAILED
    assert reader_process.INSTANCES_ONLY == State.INSTANCES_ONLY
    assert reader_process.NO_DATA == State.NO_DATA
    assert reader_process.INFINITE == State.INFINITE


@pytest.mark.slow
def test_reading_a_report_never_loads_the_native_library_here(small: Path) -> None:
    code = (
        "import sys, pathlib; from profiler.reports import read; read.read_report(pathlib.Path(sys.argv[1]));"
    )
    code += "assert not {'ncu_report', 'pandas', 'sqlalchemy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code, str(small)], check=True)


@pytest.mark.slow
def test_a_file_name_that_is_no_utf8_costs_nothing(small: Path, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"k\xff.ncu-rep")
    odd.write_bytes(small.read_bytes())
    found = read.read_report(odd)
    assert [dict(launch.values) for launch in found.launches] == [
        dict(launch.values) for launch in launches(small)
    ]
    assert read.launch_detail(odd, 0, None).function == found.launches[0].function


@pytest.mark.parametrize(
    ("grid", "block", "blocks", "read_as"),
    [
        ((640, 320, 1), (32, 32, 1), 200, (20, 10, 1)),  # in threads, as reports of 2019 have it
        ((20, 10, 1), (32, 32, 1), 200, (20, 10, 1)),
        ((256, 1, 1), (128, 1, 1), 256, (256, 1, 1)),
        ((640, 320, 1), (32, 32, 1), 7, (640, 320, 1)),  # neither: nothing is guessed
        ((650, 320, 1), (32, 32, 1), 200, (650, 320, 1)),
        ((640, 320, 1), (32, 32, 1), None, (640, 320, 1)),
    ],
)
def test_a_grid_in_threads_is_read_in_blocks(
    tmp_path: Path,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    blocks: int | None,
    read_as: tuple[int, int, int],
) -> None:
    metrics: dict[str, float | int] = {made.DURATION: 1000.0}
    if blocks is not None:
        metrics["launch__grid_size"] = blocks
    launch = LaunchResult("gemm", "gemm(float*)", "_Z4gemmPf", metrics, grid=grid, block=block)
    path = tmp_path / "old.nsight-cuprof-report"
    path.write_bytes(ReportFile([launch]).to_bytes())
    [read_launch] = read.read_report(path).launches
    assert (read_launch.grid, read_launch.block) == (read_as, block)


def test_nan_infinity_and_no_value_are_states_of_their_own(tmp_path: Path) -> None:
    metrics = {
        made.DURATION: 1000.0,
        "lts__t_sector_hit_rate.pct": math.nan,
        "smsp__inst_executed.avg": math.inf,
        "launch__waves_per_multiprocessor": -math.inf,
        "launch__registers_per_thread": 0,
    }
    launch = LaunchResult("gemm", "gemm(float*)", "_Z4gemmPf", metrics)
    path = tmp_path / "v1.ncu-rep"
    path.write_bytes(ReportFile([launch]).to_bytes())
    values = read.read_report(path).launches[0].values
    states = [values[name].state for name in metrics]
    assert states == [State.PRESENT, State.FAILED, State.INFINITE, State.INFINITE, State.PRESENT]
    assert all(values[name].number is None for name in list(metrics)[1:4])


def test_what_stands_for_a_number_is_none(tmp_path: Path) -> None:
    """A peak of 0, and an occupancy without a block: as ncu writes of a build of OptiX."""
    peak, warps = "smsp__warps_active.avg.peak_sustained", "smsp__maximum_warps_avg_per_active_cycle"
    ffma = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"
    metrics = {made.DURATION: math.nan, ffma: 0.0, peak: 12.0, warps: 1.0}
    for block, occupancy in (((0, 0, 0), State.FAILED), ((128, 1, 1), State.PRESENT)):
        launch = LaunchResult("build", "build()", "_Z5build", metrics, block=block)
        path = tmp_path / "v1.ncu-rep"
        path.write_bytes(ReportFile([launch]).to_bytes())
        values = read.read_report(path).launches[0].values
        states = [values[name].state for name in (ffma, peak, warps)]
        assert states == [State.FAILED, State.PRESENT, occupancy]


@pytest.mark.slow
def test_of_a_report_some_metrics_are_read_as_all_of_it_has_them(good_reports: list[Path]) -> None:
    wanted = ("gpu__time_duration.sum", "sm__warps_active.avg.pct_of_peak_sustained_active", "inst_executed")
    for path, lean in zip(good_reports, read.read_reports(good_reports, metrics=wanted), strict=True):
        whole = read.read_report(path)
        assert isinstance(lean, Report)
        assert (lean.sha256, lean.session, lean.gpu) == (whole.sha256, whole.session, whole.gpu)
        for one, other in zip(lean.launches, whole.launches, strict=True):
            assert (one.demangled, one.nvtx, one.grid, one.block, one.stream) == (
                other.demangled,
                other.nvtx,
                other.grid,
                other.block,
                other.stream,
            )
            for name in wanted:
                assert one.values.value(name) == other.values.value(name), (path, name)
            assert set(one.values) <= {*wanted, *read._LAUNCH_FACTS}
            assert one.unread == set(other.values) - set(one.values)
            assert other.unread == frozenset()


def test_a_damaged_report_between_others_costs_none_of_them_where_some_metrics_are_read(
    small: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.ncu-rep"
    cut.write_bytes(small.read_bytes()[:-1])
    reports = list(read.read_reports([small, cut, small, small, cut, small], metrics=["inst_executed"]))
    assert [isinstance(report, Report) for report in reports] == [True, False, True, True, False, True]


def test_a_report_of_another_layout_is_read_by_the_library_as_it_is(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = small.read_bytes()
    for damaged in (
        content[:-1],
        content + b"x",
        content[:4] + b"\xff\xff\xff\xff" + content[8:],
        b"",
        b"NVR\0",
    ):
        with pytest.raises((ValueError, IndexError)):
            reader_process.pieces_with(damaged, frozenset())
    assert reader_process.FILE_VERSION == REPORT_FILE_VERSION
    monkeypatch.setattr(reader_process, "FILE_VERSION", 0)
    with reader_process.with_metrics(str(small), ["inst_executed"]) as path:
        assert path == str(small)
