"""On the GPU: good versions are right, rejected ones are caught, and CPU and GPU write the same."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from profiler import cpubuild, isolated, nsight
from profiler.emulate import Emulator, Schedule
from profiler.origin import include_folders
from profiler.problem import ATTENTION, judge
from tests.gpu.conftest import GOOD, REJECTED, TOGETHER, keep, workloads_of

GOOD_CELLS = [(version.id, workload) for version in GOOD for workload in workloads_of(version)]
# Racecheck follows every access of shared memory: a small workload.
SMALL = {"batch": 1, "heads": 2, "len_q": 128, "len_kv": 128, "head_dim": 64, "causal": False}


@pytest.mark.parametrize(("name", "workload"), GOOD_CELLS, ids=lambda one: getattr(one, "label", one))
def test_a_good_version_passes_the_acceptance_workloads(bench, checked, name, workload):
    if name not in bench.libraries:
        pytest.skip(f"{name} does not run on this architecture")
    found = checked[name, workload.label]
    assert found["status"] == "done", found["reason"]


@pytest.mark.parametrize(("name", "workload"), GOOD_CELLS, ids=lambda one: getattr(one, "label", one))
def test_a_good_version_writes_the_same_bits_every_time(bench, checked, name, workload):
    """None adds across blocks or threads in an order that is left open: what moves is a race."""
    if name not in bench.libraries:
        pytest.skip(f"{name} does not run on this architecture")
    found = checked[name, workload.label]
    if "moved" not in found:
        pytest.skip(f"it did not run: {found['reason']}")
    assert not found["moved"], f"largest errors of the repeats: {found['errors']}"


@pytest.fixture(scope="module")
def raced(bench):
    """What racecheck says of every rejected and one good version: hazards, or None where it could not run."""
    tool = nsight.find("compute-sanitizer")
    if tool is None:
        pytest.skip("there is no compute-sanitizer")

    def one(version):
        folder = bench.folder / "race" / version.id
        folder.mkdir(parents=True)
        workload = ATTENTION.workload(**SMALL, dtype=version.dtype)
        cells = [{"version": version.id, "workload": workload.sizes()}]
        asked, answer = folder / "request.json", folder / "result.json"

        request = {"versions": [bench.version(version.id)], "cells": cells, "calls": 1, "warm_up": 0}
        asked.write_text(json.dumps(request))
        command = [str(tool.path), "--tool", "racecheck", "--error-exitcode", "9"]
        ended = isolated.run(
            [*command, *isolated.stage_argv("target", asked, answer)],
            timeout_s=300,
            log=folder / "log",
            env=isolated.stage_environment(),
        )
        result = isolated.result_of(answer, ended)
        return {
            "code": ended.code,
            "status": result["status"],
            "reason": result["reason"],
            "tail": ended.tail,
        }

    chosen = [version for version in (*REJECTED, *GOOD) if version.id in bench.libraries]
    with ThreadPoolExecutor(TOGETHER) as pool:
        return dict(zip([version.id for version in chosen], pool.map(one, chosen), strict=True))


@pytest.mark.parametrize("version", REJECTED, ids=lambda version: version.id)
def test_a_rejected_version_is_caught_by_numbers_or_by_racecheck(bench, checked, raced, version):
    if version.id not in bench.libraries:
        pytest.skip(f"{version.id} does not run on this architecture")
    found = checked[version.id, workloads_of(version)[0].label]
    race = raced[version.id]
    if "over-budget" in version.caught_by and found["status"] == "done":
        pytest.skip("a GPU whose limit is higher than the budget launches it, and its numbers are right")
    caught = found["status"] in ("wrong", "failed") or race["code"] == 9
    assert caught, f"numbers: {found['status']}; racecheck: {race}"


@pytest.mark.parametrize("version", GOOD, ids=lambda version: version.id)
def test_racecheck_finds_nothing_in_a_good_version(bench, raced, version):
    if version.id not in bench.libraries:
        pytest.skip(f"{version.id} does not run on this architecture")
    race = raced[version.id]
    assert race["code"] == 0, race["tail"]
    assert race["status"] == "done", race["reason"]


def test_what_caught_each_rejected_version_is_written_down(bench, checked, raced, kept):
    table = {}
    for version in REJECTED:
        if version.id in bench.libraries:
            found = checked[version.id, workloads_of(version)[0].label]
            table[version.id] = {
                "caught_by": version.caught_by,
                "numbers": found["status"],
                "reason": found["reason"],
                "moved": found.get("moved"),
                "racecheck": {9: "hazards", 0: "nothing"}.get(raced[version.id]["code"], "did not run"),
            }
    keep(kept, "rejected.json", table)
    assert set(table) == {version.id for version in REJECTED} & set(bench.libraries)


@pytest.fixture(scope="module")
def on_gpu(bench):
    """What every good version wrote on the first check workloads: the stage's result, the output's file."""
    cells = [
        (version.id, workload)
        for version in GOOD
        if version.id in bench.libraries
        for workload in ATTENTION.check_workloads(version.dtype, version.head_dims)[:4]
    ]

    def one(cell):
        name, workload = cell
        path = bench.folder / "written" / name / f"{workload.label.replace(' ', '-')}.npy"
        return bench.check(name, workload, seed=1, save=str(path)), path

    with ThreadPoolExecutor(TOGETHER) as pool:
        return dict(zip(cells, pool.map(one, cells), strict=True))


@pytest.mark.parametrize("version", GOOD, ids=lambda version: version.id)
def test_the_cpu_and_the_gpu_write_the_same(bench, on_gpu, version):
    if version.id not in bench.libraries:
        pytest.skip(f"{version.id} does not run on this architecture")
    library = cpubuild.build(version.source, version.flags, include_folders(version))
    for workload in ATTENTION.check_workloads(version.dtype, version.head_dims)[:4]:
        found, path = on_gpu[version.id, workload]
        assert found["status"] == "done", found["reason"]
        case = ATTENTION.case(workload, 1)
        with Emulator() as emulator:
            outcome = emulator.run(library, ATTENTION.symbol, case, Schedule(0))
        assert outcome.returned == 0
        gpu = np.load(path)
        numbers = judge(gpu, case.output.astype(np.float64), case.tolerance)
        assert numbers.wrong == 0, f"{workload.label}: {numbers}"
