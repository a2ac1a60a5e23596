"""The second depth: per-instruction values that add up to the totals, source, timelines, and the cache."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from profiler.errors import UnreadableReport
from profiler.reports import file_format, instances, read, reader_process
from profiler.reports.reader_client import Answer, ReaderWorker
from profiler.reports.source_text import source_lines
from tests.reportfiles import instances as made_instances
from tests.reportfiles import is_made, machine_code
from tests.reportfiles.ncu_rep import LaunchResult, Metric, ReportFile, Scalar

CHIP = {f"device__attribute_{name}": 0x170 for name in ("architecture", "chip", "implementation")}  # GA100
WriteLaunch = Callable[[Mapping[str, Metric | Scalar]], Path]


@pytest.fixture
def pcs() -> range:
    """The addresses of the instructions of a made launch."""
    return code().functions[machine_code.BY_HEAD_DIM[64]].pcs


@pytest.fixture
def write_launch(tmp_path: Path) -> WriteLaunch:
    """Write a report of one launch of v1<64> with these metrics; v1<128> of its module was never loaded."""

    def write(metrics: Mapping[str, Metric | Scalar]) -> Path:
        starts = Metric(1.0, [(0, code().functions[machine_code.BY_HEAD_DIM[64]].address)])
        base: dict[str, Metric | Scalar] = {
            **CHIP,
            "gpu__time_duration.sum": 5.0,
            "launch__function_pcs": starts,
        }
        launch = LaunchResult("v1", "v1(int)", "_Z2v1i", {**base, **metrics}, code=code())
        path = tmp_path / "made.ncu-rep"
        path.write_bytes(ReportFile([launch]).to_bytes())
        return path

    return write


def code() -> Any:
    return replace(machine_code.load("v1", 0x7F3A10000000), unloaded=[machine_code.BY_HEAD_DIM[128]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ordinal"), [("cutlass/report75", 2), ("ncar/MW_Baseline", 2), ("mistic/prof1", 0)]
)
def test_instructions_executed_add_up_to_the_launch_total(reports: Path, name: str, ordinal: int) -> None:
    path = reports / f"{name}.ncu-rep"
    launch = read.read_report(path).launches[ordinal]
    found = read.launch_detail(path, ordinal)
    assert found.function == launch.function
    executed = found.per_pc["inst_executed"]
    assert executed.unit == "inst"
    assert np.nansum(executed.values) == launch.values["inst_executed"].number
    assert np.nansum(executed.values) == sum(launch.opcodes.values())
    assert (np.diff(found.pcs.astype(np.int64)) > 0).all()
    mix = found.instances["sass__inst_executed_per_opcode"]
    assert dict(zip(mix.keys, mix.values, strict=True)) == launch.opcodes


@pytest.mark.slow
def test_an_instruction_that_a_metric_does_not_name_has_no_value(reports: Path) -> None:
    found = read.launch_detail(reports / "cutlass" / "report75.ncu-rep", 0)
    conflicts = found.per_pc["derived__memory_l1_conflicts_shared_nway"].values
    touches_shared = np.array(
        [text is not None and text.split()[0].startswith(("LDS", "STS")) for text in found.sass]
    )
    assert touches_shared.any()
    assert np.isnan(conflicts[~touches_shared]).mean() > 0.9
    assert not np.isnan(conflicts[touches_shared]).all()


@pytest.mark.slow
def test_an_instruction_that_no_metric_names_is_in_the_listing(reports: Path) -> None:
    """A branch that was never executed, behind a kernel's last return for example, is counted nowhere."""
    found = read.launch_detail(reports / "mistic" / "prof1.ncu-rep", 0)
    assert set(np.diff(found.pcs.astype(np.int64))) == {16}
    (at,) = np.flatnonzero(np.isnan(found.per_pc["inst_executed"].values))
    assert (found.sass[at] or "").startswith("BRA")
    assert all(np.isnan(column.values[at]) for column in found.per_pc.values())


def test_source_lines_are_counted_as_compilers_do() -> None:
    assert source_lines("a\r\nb\fc\u2028d\x85e\n\nf") == ["a", "b\fc\u2028d\x85e", "", "f"]
    assert source_lines("a\n") == ["a"]
    assert source_lines("") == []


@pytest.mark.slow
def test_source_lines_and_texts_come_with_their_instructions(reports: Path) -> None:
    found = read.launch_detail(reports / "cutlass" / "report80.ncu-rep", 2)
    assert re.match(r"(IMAD\.)?MOV.* R1,.* c\[0x0\]\[0x28\]", found.sass[0] or "")
    first = found.files[found.file_index[0]]
    name, line, word = ("v1.cu", 19, "v1(") if is_made(reports) else ("device_kernel.h", 71, "Kernel")
    assert first.name.endswith(f"/{name}")
    assert found.line[0] == line
    assert first.text
    assert word in first.text
    assert (found.line > 0).all()


@pytest.mark.slow
def test_a_report_without_source_says_so_with_minus_one(reports: Path) -> None:
    found = read.launch_detail(reports / "cutlass" / "report75.ncu-rep", 0)
    assert found.files == ()
    assert set(found.line.tolist()) == set(found.file_index.tolist()) == {-1}


def test_a_volta_report_has_counts_but_no_machine_code(reports: Path) -> None:
    found = read.launch_detail(reports / "ncar" / "MW_Baseline.ncu-rep", 2)
    assert set(found.sass) == {None}
    assert len(found.functions) == 3
    assert {index for index, _ in found.places()} == {0, 1, 2}
    assert all(offset >= 0 and offset % 16 == 0 for _, offset in found.places())


@pytest.mark.slow
def test_the_same_code_has_the_same_places_in_two_runs(reports: Path) -> None:
    """One binary at two load addresses: `compute_tendencies` before and after the edit of another kernel."""
    before = read.launch_detail(reports / "ncar" / "MW_Baseline.ncu-rep", 0)
    after = read.launch_detail(reports / "ncar" / "MW_DivToMult.ncu-rep", 0)
    assert before.pcs[0] != after.pcs[0]
    assert set(before.places()) & set(after.places()) == set(before.places()) | set(after.places())


@pytest.mark.slow
def test_timelines_are_aligned_to_the_launch(reports: Path) -> None:
    found = read.launch_detail(reports / "cutlass" / "report75.ncu-rep", 0)
    line = found.timelines["pmsampling:sm__cycles_active.avg"]
    assert line.unit == "cycle"
    assert len(line.times_ns) == len(line.values) > 10
    assert (np.diff(line.times_ns) > 0).all()
    assert np.isfinite(line.values).all()
    assert "pmsampling:sm__cycles_active.avg" not in found.instances


def test_a_launch_that_failed_has_nothing_per_instruction(reports: Path) -> None:
    found = read.launch_detail(reports / "esmm" / "profile@5c6231e5.ncu-rep", 5)
    assert found.function == "one_d_vec"
    assert len(found.pcs) == 0
    assert found.per_pc == {}
    assert found.places() == []


def test_a_launch_that_does_not_exist_is_refused(reports: Path) -> None:
    with pytest.raises(UnreadableReport, match="no launch 4; it has 4, from 0"):
        read.launch_detail(reports / "mistic" / "prof1.ncu-rep", 4)


@pytest.mark.slow
def test_a_damaged_report_has_no_detail_and_leaves_no_cache(reports: Path, tmp_path: Path) -> None:
    with pytest.raises(UnreadableReport):
        read.launch_detail(reports / "bad" / "flip1_exception.ncu-rep", 0, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_second_view_comes_from_the_cache(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = reports / "mistic" / "prof1.ncu-rep", tmp_path / "cache"
    first = read.launch_detail(path, 1, cache)
    assert [entry.name for entry in cache.iterdir()] == [
        f"{first.sha256}-1-v{instances.READER_VERSION}.detail"
    ]
    with monkeypatch.context() as patch:
        patch.setattr(ReaderWorker, "start", lambda self: pytest.fail("a cached view started a process"))
        second = read.launch_detail(path, 1, cache)
    assert second.sass == first.sass
    assert second.instances == first.instances
    np.testing.assert_equal(
        {name: column.values for name, column in second.per_pc.items()},
        {name: column.values for name, column in first.per_pc.items()},
    )


@pytest.mark.slow
def test_a_damaged_cache_entry_is_written_anew(reports: Path, tmp_path: Path) -> None:
    path = reports / "mistic" / "prof1.ncu-rep"
    first = read.launch_detail(path, 0, tmp_path)
    (entry,) = tmp_path.iterdir()
    whole = entry.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"not zlib"):
        entry.write_bytes(damaged)
        assert read.launch_detail(path, 0, tmp_path).sass == first.sass
        assert entry.read_bytes() == whole


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_costs_nothing_but_time(reports: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    path = reports / "mistic" / "prof1.ncu-rep"
    assert read.launch_detail(path, 0, tmp_path / "file").sass == read.launch_detail(path, 0).sass


@pytest.mark.slow
def test_a_new_reader_version_does_not_see_old_entries(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = reports / "mistic" / "prof1.ncu-rep"
    read.launch_detail(path, 0, tmp_path)
    monkeypatch.setattr(instances, "READER_VERSION", instances.READER_VERSION + 1)
    read.launch_detail(path, 0, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mistic/prof1", "ncar/MW_Baseline", "cutlass/report75"])
def test_the_units_of_both_depths_are_the_same(reports: Path, name: str) -> None:
    path = reports / f"{name}.ncu-rep"
    values = read.read_report(path).launches[0].values
    found = read.launch_detail(path, 0, None)
    columns = {**found.per_pc, **found.timelines, **found.instances}
    assert len(columns) > 35
    assert {one: column.unit for one, column in columns.items()} == {one: values[one].unit for one in columns}


def test_what_stands_under_an_index_is_no_instruction(write_launch: WriteLaunch, pcs: range) -> None:
    """The library finds code at address 0 where a function of the module was not loaded."""
    curve = Metric(9.0, [(0, 4), (16, 3), (32, 2)])
    executed = Metric(len(pcs), [(pc, 1) for pc in pcs])
    path = write_launch(
        {
            **made_instances.TEXTS_BY_INDEX,
            "inst_executed": executed,
            "launch__occupancy_per_register_count": curve,
        }
    )
    detail = read.launch_detail(path, 0)
    assert detail.pcs.tolist() == list(pcs)
    assert list(detail.per_pc) == ["inst_executed"]
    assert detail.instances["numa__cpu_affinity"].values == ("0-63",)
    assert detail.instances["launch__occupancy_per_register_count"].keys == (0, 16, 32)
    assert detail.left_out == {}


def test_text_at_instructions_is_left_out_and_named_and_the_rest_is_there(
    write_launch: WriteLaunch, pcs: range
) -> None:
    executed = Metric(len(pcs), [(pc, 1) for pc in pcs])
    texts = Metric(None, [(pc, "warp") for pc in pcs[:3]])
    nothing = Metric(None, [(pc, 2) for pc in pcs[:2]])
    path = write_launch({"inst_executed": executed, "smsp__kind": texts, "memory_type": nothing})
    detail = read.launch_detail(path, 0)
    assert set(detail.per_pc) == {"inst_executed", "memory_type"}
    assert detail.left_out == {"smsp__kind": "its values at instructions are no numbers but text: 'warp'"}


def test_code_of_which_nothing_is_counted_is_read_to_its_end(write_launch: WriteLaunch, pcs: range) -> None:
    detail = read.launch_detail(write_launch({}), 0)
    assert detail.per_pc == {}
    assert detail.functions == (pcs[0],)
    assert detail.pcs.tolist() == list(pcs), "with the padding at the end, which is counted where anything is"
    assert all(detail.sass)
    assert detail.sass[-1] == "NOP"


def test_only_what_is_raised_inside_the_library_is_said_to_be() -> None:
    ncu_report = pytest.importorskip("ncu_report")
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever the bindings raise
        ncu_report.load_report("/no/such.ncu-rep")
    assert reader_process.is_of_library(raised.value)
    with pytest.raises(ValueError, match="could not convert") as own:
        float("CachePreferNone")
    assert not reader_process.is_of_library(own.value)
    assert reader_process.described(own.value).startswith("ValueError: could not convert string to float")


def test_a_metric_that_its_name_does_not_find_has_no_data_and_costs_no_other(
    write_launch: WriteLaunch, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_launch({"launch__grid_size": 7})
    (action,) = reader_process.actions(str(path))
    names = action.metric_names()
    lost = names.index("gpu__time_duration.sum")
    real = action.metric_by_name
    monkeypatch.setattr(
        type(action), "metric_by_name", lambda _, name: None if name == names[lost] else real(name)
    )
    sets = reader_process.MetricSets()
    _, letters, values, states = reader_process.scalars(action, 0, sets)
    assert (letters[lost], values[lost], states[lost]) == ("f", None, reader_process.NO_DATA)
    kept = names.index("launch__grid_size")
    assert (values[kept], states[kept]) == (7, reader_process.PRESENT)
    monkeypatch.setattr(type(action), "metric_by_name", lambda *_: None)
    with pytest.raises(reader_process.RefusedReport, match="no metric that its name finds"):
        reader_process.scalars(action, 0, sets)


@pytest.mark.slow
def test_the_launches_of_a_report_are_read_at_once_and_equal_those_read_one_by_one(
    reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One check of the file and one request, however many launches; a retired process leaves the rest."""
    path = reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep"
    alone = [read.launch_detail(path, ordinal) for ordinal in range(4)]
    calls: list[str] = []

    def counted(name: str, function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(name)
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(file_format, "check_framing", counted("check", file_format.check_framing))
    monkeypatch.setattr(ReaderWorker, "ask", counted("ask", ReaderWorker.ask))
    together = list(read.launch_details(path, alone[0].per_pc))
    assert calls == ["check", "ask"]
    for one, other in zip(together, alone, strict=True):
        assert (one.ordinal, one.function, one.sass, one.files) == (
            other.ordinal,
            other.function,
            other.sass,
            other.files,
        )
        assert np.array_equal(one.pcs, other.pcs)
        assert one.per_pc.keys() == other.per_pc.keys()
        for name, column in one.per_pc.items():
            assert np.array_equal(column.values, other.per_pc[name].values, equal_nan=True)


@pytest.mark.slow
def test_where_the_reading_process_is_retired_another_reads_the_other_launches(
    reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ReaderWorker.answer

    def retiring(self: ReaderWorker, timeout_s: float) -> Answer:
        got = answer(self, timeout_s)
        self.close()  # as after an answer that says it is the last of its process
        return got

    monkeypatch.setattr(ReaderWorker, "answer", retiring)
    details = read.launch_details(reports / "hyperspec" / "profile.ncu-rep", ["inst_executed"])
    assert [detail.ordinal for detail in details] == list(range(8))


def test_a_launch_in_the_middle_is_read_without_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[int] = []

    class Ranges:
        def action_by_idx(self, index: int) -> SimpleNamespace:
            looked_at.append(index)
            return SimpleNamespace(name=lambda: f"kernel {index}")

    report = tmp_path / "a.ncu-rep"
    report.touch()
    monkeypatch.setattr(reader_process, "places", lambda _: [(Ranges(), index) for index in range(3)])
    opened = reader_process.OpenReport()
    names = [opened.launch(str(report), ordinal, ()).name() for ordinal in (2, 2, 0)]
    assert names == ["kernel 2", "kernel 2", "kernel 0"]
    assert looked_at == [2, 0]
    for ordinal in (-1, 3):
        with pytest.raises(reader_process.RefusedReport, match=f"no launch {ordinal}"):
            opened.launch(str(report), ordinal, ())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cutlass/report80", "llm.c/adamw_coalsecing_shared", "mistic/prof1"])
def test_what_is_read_of_some_metrics_is_what_is_read_of_all(reports: Path, name: str) -> None:
    path = reports / f"{name}.ncu-rep"
    wanted = {"thread_inst_executed", "memory_l1_wavefronts_shared"}
    details = list(read.launch_details(path, wanted))
    assert details
    for detail in details:
        whole = read.launch_detail(path, detail.ordinal)
        assert np.array_equal(detail.pcs, whole.pcs)
        assert np.array_equal(detail.line, whole.line)
        assert np.array_equal(detail.file_index, whole.file_index)
        assert (detail.function, detail.functions) == (whole.function, whole.functions)
        assert (detail.sass, detail.files) == (whole.sass, whole.files)
        assert detail.per_pc.keys() == whole.per_pc.keys() & wanted
        for metric, column in detail.per_pc.items():
            assert column.unit == whole.per_pc[metric].unit
            assert np.array_equal(column.values, whole.per_pc[metric].values, equal_nan=True)
        assert not detail.timelines
        assert not detail.instances


@pytest.mark.slow
def test_launches_of_one_kernel_are_disassembled_once(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    def code_at(action: Any, pcs: list[int]) -> tuple[dict[str, Any], bytes]:
        looked_at.append(len(pcs))
        return {"sass": [], "files": []}, b""

    monkeypatch.setattr(reader_process, "code_at", code_at)
    monkeypatch.setattr(reader_process, "OPENED", reader_process.OpenReport())
    for ordinal in range(4):
        reader_process.read_detail(str(reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep"), ordinal)
    assert len(looked_at) == 1
    looked_at.clear()
    for ordinal in range(3):  # of two kernels
        reader_process.read_detail(str(reports / "cutlass" / "report80.ncu-rep"), ordinal)
    assert len(looked_at) == 2
    looked_at.clear()
    of_two_processes = str(reports / "mistic" / "prof1.ncu-rep")  # whose modules have equal numbers
    for ordinal in range(4):
        reader_process.read_detail(of_two_processes, ordinal)
    assert len(looked_at) == (1 if is_made(reports) else 4)


def test_the_modules_of_launches_are_known_where_one_process_ran_them(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_one = str(reports / "cutlass" / "report80.ncu-rep")
    modules = reader_process.modules_of(of_one)
    assert modules == modules[:1] * 3
    if not is_made(reports):  # of two processes
        assert reader_process.modules_of(str(reports / "mistic" / "prof1.ncu-rep")) == []
    (tmp_path / "none").write_bytes(b"NVR")
    assert reader_process.modules_of(str(tmp_path / "none")) == []
