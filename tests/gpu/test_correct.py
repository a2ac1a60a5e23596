"""On the GPU: good versions are right, rejected ones are caught, and CPU and GPU write the same."""

import threading

import numpy as np
import pytest

from profiler.catalog.attention import ATTENTION
from profiler.catalog.problem import check_output
from profiler.catalog.sources import include_folders
from profiler.collect import find_tools, gpu_process, sanitizer, subprocesses
from profiler.collect.gpu.messages import NCU_TARGET, CellRequest, TargetRequest
from profiler.emulator import cpu_library
from profiler.emulator.emulator import Emulator, Schedule
from tests.gpu.conftest import GOOD, REJECTED, keep, workloads_of, write

GOOD_CELLS = [(version.id, workload) for version in GOOD for workload in workloads_of(version)]
# Racecheck follows every access of shared memory: a small workload.
SMALL = {"batch": 1, "heads": 2, "len_q": 128, "len_kv": 128, "head_dim": 64, "causal": False}


@pytest.mark.parametrize("version", [*GOOD, *REJECTED], ids=lambda version: version.id)
def test_every_version_is_built(bench, version):
    assert bench.failed.get(version.id) is None


@pytest.mark.parametrize(("name", "workload"), GOOD_CELLS, ids=lambda value: getattr(value, "label", value))
def test_a_good_version_passes_the_acceptance_workloads(bench, checked, name, workload):
    bench.need(name)
    found = checked[name, workload.label]
    assert found["status"] == "done", found["reason"]


@pytest.mark.parametrize(("name", "workload"), GOOD_CELLS, ids=lambda value: getattr(value, "label", value))
def test_a_good_version_writes_the_same_bits_every_time(bench, checked, name, workload):
    """None adds across blocks or threads in an order that is left open: what moves is a race."""
    bench.need(name)
    found = checked[name, workload.label]
    if "moved" not in found:
        pytest.skip(f"it did not run: {found['reason']}")
    assert not found["moved"], f"largest errors of the repeats: {found['errors']}"


@pytest.fixture(scope="module")
def on_gpu(bench):
    """What every good version wrote on the first check workloads: the stage's result, the output's file."""
    cells = [
        (version.id, workload)
        for version in GOOD
        if version.id in bench.libraries
        for workload in ATTENTION.check_workloads(version.dtype, version.head_dims)[:4]
    ]

    def check_and_save(cell):
        name, workload = cell
        path = bench.folder / "written" / name / f"{workload.label.replace(' ', '-')}.npy"
        return bench.check(name, workload, seed=1, save=str(path)), path

    return dict(zip(cells, bench.side_by_side(check_and_save, cells), strict=True))


@pytest.mark.parametrize("version", GOOD, ids=lambda version: version.id)
def test_the_cpu_and_the_gpu_write_the_same(bench, on_gpu, version):
    bench.need(version.id)
    library = cpu_library.build_cpu_library(version.source, version.flags, include_folders(version))
    for workload in ATTENTION.check_workloads(version.dtype, version.head_dims)[:4]:
        found, path = on_gpu[version.id, workload]
        assert found["status"] == "done", found["reason"]
        case = ATTENTION.case(workload, 1)
        with Emulator() as emulator:
            outcome = emulator.run(library, ATTENTION.symbol, case, Schedule(0))
        assert outcome.returned == 0
        gpu = np.load(path)
        numbers = check_output(gpu, case.output.astype(np.float64), case.tolerance)
        assert numbers.wrong == 0, f"{workload.label}: {numbers}"


# ---------------------------------------------------------------- races, which take longest


@pytest.fixture(scope="module")
def raced(bench, checked, kept):
    """What racecheck says of every version: how many hazards it found, None where it gave no answer.

    Rejected ones come first, and what caught them is written as it is known: time may be up before the last.
    """
    tool = find_tools.find("compute-sanitizer")
    chosen = [version for version in (*REJECTED, *GOOD) if version.id in bench.libraries]
    if tool is None:
        nothing = {"found": None, "summary": "there is no compute-sanitizer", "tail": ""}
        return dict.fromkeys((version.id for version in chosen), nothing)

    findings, writing = {}, threading.Lock()

    def race(version):
        finding = run_racecheck(version)
        with writing:
            if version in REJECTED and not bench.interrupted.is_set():
                findings[version.id] = finding
                write(kept, "rejected.json", caught(bench, checked, findings))
        return finding

    def run_racecheck(version):
        folder = bench.folder / "race" / version.id
        workload = ATTENTION.workload(**SMALL, dtype=version.dtype)
        cells = (CellRequest(version.id, workload.sizes()),)
        request = TargetRequest((bench.version(version.id),), cells, warm_up=0)
        program = gpu_process.prepare(NCU_TARGET, request, folder)
        command = sanitizer.command_line(tool.path, "racecheck", program.argv)
        environment = {**subprocesses.package_environment(), **sanitizer.ENVIRONMENT}
        log = folder / "log"
        ended = subprocesses.run(command, timeout_s=120, log=log, env=environment)
        output, result = log.read_text(errors="replace"), program.result(ended)
        return {**sanitizer.judge_output(output, result, ended.description), "tail": ended.tail}

    return dict(zip([version.id for version in chosen], bench.side_by_side(race, chosen), strict=True))


@pytest.mark.parametrize("version", REJECTED, ids=lambda version: version.id)
def test_a_rejected_version_is_caught_by_numbers_or_by_racecheck(bench, checked, raced, version):
    bench.need(version.id)
    found = checked[version.id, workloads_of(version)[0].label]
    race = raced[version.id]
    if "over-budget" in version.caught_by and found["status"] == "done":
        pytest.skip("a GPU whose limit is higher than the budget launches it, and its numbers are right")
    caught = found["status"] in ("wrong", "failed") or race["found"]
    assert caught, f"numbers: {found['status']}; racecheck: {race}"


@pytest.mark.parametrize("version", GOOD, ids=lambda version: version.id)
def test_racecheck_finds_nothing_in_a_good_version(bench, raced, version):
    bench.need(version.id)
    race = raced[version.id]
    assert race["found"] is not None, f"no answer: {race['summary']}\n{race['tail']}"
    assert race["found"] == 0, race["tail"]


def test_what_caught_each_rejected_version_is_written_down(bench, checked, raced, kept):
    table = caught(bench, checked, raced)
    keep(kept, "rejected.json", table)
    assert set(table) == {version.id for version in REJECTED} & set(bench.libraries)


def caught(bench, checked, raced):
    """By rejected version what numbers and racecheck say, of those that racecheck has been asked about."""
    table = {}
    for version in REJECTED:
        if version.id in bench.libraries and version.id in raced:
            found = checked[version.id, workloads_of(version)[0].label]
            table[version.id] = {
                "caught_by": version.caught_by,
                "numbers": found["status"],
                "reason": found["reason"],
                "moved": found.get("moved"),
                "racecheck": raced[version.id]["summary"],
            }
    return table
