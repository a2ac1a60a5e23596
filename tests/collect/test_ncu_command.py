"""ncu's command lines, version by version, and what is made of its answers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from profiler.collect import ncu_command
from profiler.collect.ncu_command import Ncu, NcuRequest
from profiler.errors import CannotJudge, ProfilerError
from profiler.evidence import metric_table, ncu_release

# An ncu 2024.1 on a machine without a CUDA driver: what it says is then known.
REAL = Path(os.environ.get("PROFILER_TEST_NCU") or "no-ncu-named")
VERSIONS = ("2022.4.1.0", "2023.1.1.0", "2023.3.1.0", "2024.1.1.0", "2025.3.1.0", "2025.4.0.0", "2026.3.0.0")
needs_ncu = pytest.mark.skipif(not REAL.is_file(), reason="PROFILER_TEST_NCU names no ncu")
PROGRAM = ["python3", "-m", "profiler.collect.gpu.ncu_target", "a.json", "b.json"]


def request(**changed: object) -> NcuRequest:
    about: dict[str, object] = {
        "report": Path("r.ncu-rep"),
        "metrics": ("gpu__time_duration.sum", "sass__inst_executed_per_opcode"),
        "ranges": ("v2d_b|1x8x512x64", "v1|1x8x512x64 causal"),
        "kernels": ("attention", "combine"),
    }
    return NcuRequest(**{**about, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_lean_capture_names_its_controls_ranges_kernels_and_metrics(version: str) -> None:
    assert ncu_command.command_line(Ncu(Path("ncu"), version), request(), PROGRAM) == [
        "ncu",
        *("--clock-control", "none", "--cache-control", "none"),
        *("--replay-mode", "kernel", "--target-processes", "application-only", "--nvtx"),
        *("--nvtx-include", "v2d_b|1x8x512x64/", "--nvtx-include", "v1|1x8x512x64 causal/"),
        *("--kernel-name-base", "function", "--kernel-name", "regex:^(attention|combine)$"),
        *("--apply-rules", "no", "--metrics", "gpu__time_duration.sum,sass__inst_executed_per_opcode"),
        *("--force-overwrite", "--export", "r.ncu-rep"),
        *PROGRAM,
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_full_capture_imports_the_source_and_takes_the_source_counters(version: str) -> None:
    line = ncu_command.command_line(Ncu(Path("ncu"), version), request(tier="full"), PROGRAM)
    assert line[line.index("--import-source") + 1] == "yes"
    sections = [line[at + 1] for at, word in enumerate(line) if word == "--section"]
    assert {"SourceCounters", "WarpStateStats", "SchedulerStats"} <= set(sections)


@pytest.mark.parametrize("version", VERSIONS)
def test_boost_clocks_are_asked_only_of_an_ncu_that_has_them(version: str) -> None:
    ncu = Ncu(Path("ncu"), version)
    if ncu.release >= ncu_release.BOOST_CLOCK:
        assert "boost" in ncu_command.command_line(ncu, request(clock_control="boost"), PROGRAM)
    else:
        with pytest.raises(ProfilerError, match=r"came with 2025\.4"):
            ncu_command.command_line(ncu, request(clock_control="boost"), PROGRAM)


def test_an_ncu_that_is_too_old_is_refused() -> None:
    with pytest.raises(CannotJudge, match=r"older than 2022\.4"):
        ncu_command.command_line(Ncu(Path("ncu"), "2021.2.0"), request(), PROGRAM)


def test_what_means_something_to_the_nvtx_filter_is_escaped() -> None:
    assert ncu_command.nvtx_filter("v2+a|1x8[x]") == r"v2\+a|1x8\[x\]/"


@needs_ncu
@pytest.mark.parametrize("tier", ncu_command.TIERS)
def test_a_real_ncu_takes_the_whole_command_line(tier: str, tmp_path: Path) -> None:
    wanted = ("gpu__time_duration.sum", "derived__memory_l1_wavefronts_shared_excessive")
    folder = ncu_command.write_section(tmp_path / "sections", wanted)
    asked = request(report=tmp_path / "r.ncu-rep", metrics=wanted, tier=tier, section_folder=folder)
    line = ncu_command.command_line(Ncu(REAL, "2024.1.1.0"), asked, ["/bin/true"])
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    said = done.stdout + done.stderr
    told = ncu_command.find_problem(said, 1)
    assert told is not None
    assert "no CUDA driver" in told.reason, said  # an option it does not know would be refused before
    assert not told.usable


@needs_ncu
def test_a_real_ncu_lists_the_derived_metric_of_our_section(tmp_path: Path) -> None:
    name = "derived__memory_l1_wavefronts_shared_excessive"
    folder = ncu_command.write_section(tmp_path, [name])
    line = [str(REAL), "--section-folder", str(folder), "--section", ncu_command.SECTION, "--list-metrics"]
    assert name in subprocess.run(line, capture_output=True, text=True, timeout=120).stdout


@needs_ncu
def test_a_name_that_an_older_ncu_lacks_is_asked_for_under_its_older_name() -> None:
    known = ncu_command.known_metrics(Ncu(REAL, "2024.1.1.0"), "sm_90")
    assert known is not None
    table = metric_table.load_metrics()
    new = "smsp__average_thread_inst_executed_per_inst_executed.ratio"
    old = "smsp__thread_inst_executed_per_inst_executed.ratio"
    settled, without = ncu_command.resolve_metrics(
        {new: "threads_per_inst", "nonsense__x.sum": ""}, table, "sm_90", known
    )
    assert settled == {old: "threads_per_inst"}
    assert without == ["nonsense__x.sum"]


@needs_ncu
def test_every_section_that_is_asked_for_is_a_real_one() -> None:
    assert set(ncu_command.FULL_SECTIONS) <= (ncu_command.known_sections(Ncu(REAL, "2024.1.1.0")) or set())


def test_missing_permission_is_no_fault_of_the_kernel() -> None:
    said = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters"
    told = ncu_command.find_problem(said, 1)
    assert told is not None
    assert not told.usable
    assert "NVreg_RestrictProfilingToAdminUsers" in told.reason


def test_a_filter_that_met_nothing_is_said_so() -> None:
    told = ncu_command.find_problem("==WARNING== No kernels were profiled.", 0)
    assert told is not None
    assert told.usable
    assert "no kernel" in told.reason
    assert ncu_command.find_problem("==PROF== Disconnected", 0) is None


def test_a_list_of_metrics_that_cannot_be_read_leaves_nothing_out(tmp_path: Path) -> None:
    program = tmp_path / "ncu"
    program.write_text("#!/bin/sh\necho 'sm__other    Counter   cycle'\n")
    program.chmod(0o755)
    assert ncu_command.known_metrics(Ncu(program, "2025.3.1.0"), "sm_90") is None


def test_a_refused_metric_without_double_underscore_is_found_too() -> None:
    asked = ("gpu__time_duration.sum", "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal")
    said = "==WARNING== Failed to find metric memory_l1_wavefronts_shared_ideal.\n==ERROR== Nothing."
    assert ncu_command.refused_metrics(said, asked) == ["memory_l1_wavefronts_shared_ideal"]


def test_the_metrics_that_ncu_refuses_are_found_in_its_words() -> None:
    said = "==ERROR== Failed to find metric sm__nothing.sum\n==PROF== gpu__time_duration.sum"
    assert ncu_command.refused_metrics(said, ["gpu__time_duration.sum", "sm__nothing.sum"]) == [
        "sm__nothing.sum"
    ]
