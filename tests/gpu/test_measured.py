"""On the GPU: how latency is taken, what is read of the device, and modelled conflicts against counters."""

from dataclasses import replace

import pytest

from profiler.build import lower_bounds
from profiler.catalog.attention import ATTENTION, HEADLINE
from profiler.collect import (
    counters,
    doctor,
    find_tools,
    gpu_process,
    ncu_command,
    sample_schedule,
    subprocesses,
)
from profiler.collect.gpu import device, ncu_target
from profiler.collect.gpu.messages import (
    LATENCY,
    NCU_TARGET,
    CellRequest,
    LatencyRequest,
    ProblemSetup,
    TargetRequest,
    TimingRequest,
    VersionCode,
)
from profiler.collect.ncu_command import Ncu
from profiler.documents.doctor import DoctorDocument
from profiler.emulator import cpu_check
from profiler.evidence.values import NCU_DURATION
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
    found = lower_bounds.workload_bounds(ATTENTION, HEADLINE, gpu.as_json(), launch_ns=1000.0)
    assert found.unknown == ()


def test_the_state_is_read_whole():
    state = device.StateMonitor().read()
    assert state is not None
    assert state.sm_mhz
    assert state.temperature_c
    assert state.reasons is not None


def test_the_doctor_can_measure_here(kept):
    found = doctor.examine_machine()
    keep(kept, "doctor.json", DoctorDocument(found).to_dict())
    assert found.can_measure


@pytest.fixture(scope="module")
def timed(bench):
    chosen = [name for name in ("v2d_c", "v2d_b", "v2c_v5") if name in bench.libraries]
    versions = [bench.version(name) for name in chosen]
    versions.append(VersionCode("sdpa", callable="profiler.catalog.torch_backends:sdpa"))
    versions.append(replace(versions[0], id="again"))  # the same library twice: what differs is noise
    timing = TimingRequest(
        HEADLINE.sizes(), tuple(versions), tuple(range(10)), modes=("cold", "warm", "graph")
    )
    request = LatencyRequest({HEADLINE.label: timing}, ProblemSetup(cases=bench.cases))
    result = gpu_process.run_program(LATENCY, request, bench.folder / "latency", timeout_s=300)
    assert result["status"] == "done", result["reason"]
    return result["timings"][HEADLINE.label]


def median(samples):
    return sorted(samples["ns"])[len(samples["ns"]) // 2]


def by_mode(timed, name):
    return {samples["mode"]: samples for samples in timed["versions"][name]["samples"]}


def test_every_version_is_timed_in_every_mode(timed, kept):
    assert timed["status"] == "done", timed["reason"]
    keep(kept, "timing.json", timed)
    for name, result in timed["versions"].items():
        assert result["status"] == "done", (name, result["reason"])
        for samples in result["samples"]:
            assert len(samples["ns"]) == 10 * sample_schedule.SAMPLES
            assert min(samples["ns"]) > 500
            assert len(samples["clocks_mhz"]) in (0, len(samples["ns"])), "one a sample, or none at all"


def test_the_gpu_does_not_wait_for_the_host(timed):
    for name, result in timed["versions"].items():
        for mode, positions in result["host_bound"].items():
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
    """CONFLICTS of every good version on a small workload, by ncu as `collect` calls it; or why not."""
    tool = find_tools.find("ncu")
    if tool is None:
        pytest.skip("there is no ncu")
    permitted, reason = doctor.may_read_counters(tool.path, bench.folder)
    if not permitted:
        pytest.skip(reason)
    return count(bench, Ncu(tool.path, tool.version), [one for one in GOOD if one.id in bench.libraries])


def count(bench, ncu, versions):
    """By version its numbers by metric, or `failed` with ncu's words. One process: most of it is torch."""
    folder = bench.folder / "counters"
    workloads = {one.id: ATTENTION.workload(**SMALL, dtype=one.dtype) for one in versions}
    inside = {name: ncu_target.range_name(name, workload.label) for name, workload in workloads.items()}
    request = TargetRequest(
        versions=tuple(bench.version(name) for name in workloads),
        cells=tuple(CellRequest(name, workload.sizes()) for name, workload in workloads.items()),
        setup=ProblemSetup(cases=bench.cases),
    )
    program = gpu_process.prepare(NCU_TARGET, request, folder)
    report, log = folder / "report.ncu-rep", folder / "log"
    for metrics in (CONFLICTS, [name for name in CONFLICTS if name not in ncu_command.DERIVED]):
        line = ncu_command.command_line(
            ncu,
            ncu_command.NcuRequest(
                report=report,
                metrics=(NCU_DURATION, *metrics),
                ranges=tuple(inside.values()),
                kernels=tuple(sorted({kernel for name in workloads for kernel in bench.kernels[name]})),
                section_folder=ncu_command.write_section(folder / "sections", metrics),
            ),
            program.argv,
        )
        ended = subprocesses.run(line, timeout_s=200, log=log, env=subprocesses.package_environment())
        if report.is_file():
            break
    else:
        problem = ncu_command.find_problem(log.read_text(errors="replace"), ended.code)
        return {name: {"failed": problem.reason if problem else ended.description} for name in workloads}
    launches = counters.read_launches(ncu, report)
    return {name: numbers(launches, inside[name], tuple(bench.kernels[name])) for name in workloads}


def numbers(launches, inside, kernels):
    cell = counters.launches_of_cell(launches, inside, kernels)
    if cell.reason:
        return {"failed": cell.reason}
    inside_cell = [launch for launch in launches if launch.ordinal in cell.ordinals]
    return {name: total(launch.values.number(name) for launch in inside_cell) for name in CONFLICTS}


def total(numbers):
    """Of all launches; None where one has none: missing is never zero."""
    values = list(numbers)
    return None if None in values else sum(values)


def test_ncu_finds_every_launch_that_was_asked_for(counted, kept):
    keep(kept, "counted.json", counted)
    assert {name: one["failed"] for name, one in counted.items() if "failed" in one} == {}


def test_modelled_conflicts_against_counters(bench, counted, kept):
    """The table for the README. Where the model sees none or many, the counters must not see the opposite.

    Between, no threshold is known: what is near neither end is written down, and not judged.
    """
    table, disagree = {}, []
    for version in GOOD:
        measured = counted.get(version.id, {"failed": "not built"})
        if "failed" in measured:
            table[version.id] = measured
            continue
        workload = ATTENTION.workload(**SMALL, dtype=version.dtype)
        (cell,) = cpu_check.check(version, ATTENTION, [workload], [0])
        excess = measured["derived__memory_l1_wavefronts_shared_excessive"]
        conflicts = measured["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"]
        wavefronts = measured["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"]
        seen = excess if excess is not None else conflicts
        modelled = cell.bank_conflicts / max(cell.shared_wavefronts, 1)
        share = None if seen is None or not wavefronts else seen / wavefronts
        table[version.id] = {
            "modelled": {"wavefronts": cell.shared_wavefronts, "conflicts": cell.bank_conflicts},
            "measured": measured,
            "modelled_share": round(modelled, 4),
            "measured_share": None if share is None else round(share, 4),
            "by": "excessive wavefronts" if excess is not None else "bank conflicts",
        }
        if share is not None and opposite(modelled, share):
            disagree.append((version.id, round(modelled, 3), round(share, 3)))
    keep(kept, "conflicts.json", table)
    assert table
    assert not disagree, "the model sees none where the counters see a third, or the other way round"


def opposite(modelled, measured):
    """One is nearly nothing and the other a third of all wavefronts."""
    low, high = sorted((modelled, measured))
    return low < 0.02 and high > 1 / 3
