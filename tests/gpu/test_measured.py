"""On the GPU: how latency is taken, what is read of the device, and modelled conflicts against counters."""

import csv
import json

import pytest

from profiler import check, device, floors, isolated, machine, nsight, rounds
from profiler.problem import ATTENTION, HEADLINE
from tests.gpu.conftest import GOOD, keep

SMALL = {"batch": 1, "heads": 2, "len_q": 128, "len_kv": 128, "head_dim": 64, "causal": False}
CONFLICTS = (
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "derived__memory_l1_wavefronts_shared_excessive",
)


def test_the_device_says_all_that_the_floors_need(bench):
    gpu = bench.gpu
    assert gpu.driver
    assert gpu.uuid
    found = floors.floors(ATTENTION, HEADLINE, gpu.as_json(), launch_ns=1000.0)
    assert found.unknown == ()


def test_the_state_is_read_fast_and_whole():
    monitor = device.Monitor()
    state = monitor.read()
    assert state is not None
    assert state.sm_mhz
    assert state.temperature_c
    assert state.reasons is not None


def test_the_doctor_can_measure_here(kept):
    found = machine.examine()
    keep(kept, "doctor.json", found.as_json())
    assert found.can_measure


@pytest.fixture(scope="module")
def timed(bench):
    chosen = [name for name in ("v2d_c", "v2d_b", "v2c_v5") if name in bench.libraries]
    versions = [bench.version(name) for name in chosen]
    versions += [{"id": "sdpa", "library": None, "callable": "profiler.baselines:sdpa"}]
    versions += [{**versions[0], "id": "again"}]  # the same library twice: what differs is noise
    request = {
        "versions": versions,
        "workload": HEADLINE.sizes(),
        "modes": ["cold", "warm", "graph"],
        "rounds": list(range(10)),
        "cases": str(bench.folder / "cases"),
    }
    return isolated.run_stage("timing", request, bench.folder / "timing", timeout_s=300)


def median(samples):
    return sorted(samples["ns"])[len(samples["ns"]) // 2]


def by_mode(found, name):
    return {samples["mode"]: samples for samples in found["versions"][name]["samples"]}


def test_every_version_is_timed_in_every_mode(timed, kept):
    assert timed["status"] == "done", timed["reason"]
    keep(kept, "timing.json", timed)
    for name, one in timed["versions"].items():
        assert one["status"] == "done", (name, one["reason"])
        for samples in one["samples"]:
            assert len(samples["ns"]) == 10 * rounds.SAMPLES
            assert min(samples["ns"]) > 500
            assert len(samples["clocks_mhz"]) == len(samples["ns"])


def test_the_gpu_does_not_wait_for_the_host(timed):
    for name, one in timed["versions"].items():
        for mode, positions in one["host_bound"].items():
            assert len(positions) <= 4, f"{name} {mode}: {len(positions)} samples hold Python's dispatch"


def test_equal_versions_take_equal_time(timed):
    first = next(iter(timed["versions"]))
    for mode, samples in by_mode(timed, first).items():
        other = median(by_mode(timed, "again")[mode])
        assert other == pytest.approx(median(samples), rel=0.05), mode


def test_an_empty_launch_is_a_floor(timed):
    launch = timed["launch_ns"]
    assert 200 < launch["events"] < 20_000
    assert launch["graph"] is not None
    for name in timed["versions"]:
        assert median(by_mode(timed, name)["events; cache warm; clock none"]) > 0.5 * launch["events"]


# ---------------------------------------------------------------- counters


@pytest.fixture(scope="module")
def counted(bench):
    """CONFLICTS of every good version on a small workload, by ncu."""
    ncu = nsight.find("ncu")
    if ncu is None:
        pytest.skip("there is no ncu")
    permitted, reason = machine.may_read_counters(ncu.path, bench.folder)
    if not permitted:
        pytest.skip(reason)
    versions = [version for version in GOOD if version.id in bench.libraries]
    found = {}
    folder = bench.folder / "counters"
    folder.mkdir()
    for version in versions:
        workload = ATTENTION.workload(**SMALL, dtype=version.dtype)
        request = {
            "versions": [bench.version(version.id)],
            "cells": [{"version": version.id, "workload": workload.sizes()}],
            "cases": str(bench.folder / "cases"),
        }
        asked, answer = folder / f"{version.id}.json", folder / f"{version.id}.result.json"
        asked.write_text(json.dumps(request))
        options = ["--nvtx", "--nvtx-include", f"{version.id}|{workload.label}/", "--page", "raw", "--csv"]
        options += ["--print-units", "base", "--clock-control", "none", "--cache-control", "none"]
        log = folder / f"{version.id}.log"
        ended = isolated.run(
            [
                ncu.path,
                *options,
                "--metrics",
                ",".join(CONFLICTS),
                *isolated.stage_argv("target", asked, answer),
            ],
            timeout_s=300,
            log=log,
            env=isolated.stage_environment(),
        )
        assert ended.ok, ended.tail
        lines = [line for line in log.read_text().splitlines() if line.startswith('"')]
        rows = list(csv.DictReader(lines))[1:]  # the first holds the units
        assert len(rows) >= 1, ended.tail
        found[version.id] = {
            name: sum(float(row[name].replace(",", "")) for row in rows)
            for name in CONFLICTS
            if name in rows[0]
        }
    return found


def test_modelled_conflicts_against_counters(bench, counted, kept):
    table, disagree = {}, []
    for version in GOOD:
        if version.id not in counted:
            continue
        workload = ATTENTION.workload(**SMALL, dtype=version.dtype)
        (cell,) = check.check(version, ATTENTION, [workload], [0])
        measured = counted[version.id]
        excess = measured["derived__memory_l1_wavefronts_shared_excessive"]
        wavefronts = measured["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"]
        table[version.id] = {
            "modelled": {"wavefronts": cell.shared_wavefronts, "conflicts": cell.bank_conflicts},
            "measured": measured,
        }
        modelled_share = cell.bank_conflicts / max(cell.shared_wavefronts, 1)
        measured_share = excess / max(wavefronts, 1)
        if (modelled_share > 0.02) != (measured_share > 0.02):
            disagree.append((version.id, round(modelled_share, 3), round(measured_share, 3)))
    keep(kept, "conflicts.json", table)
    assert table
    assert not disagree, "modelled and measured share of conflicts, on different sides of 2 %"
