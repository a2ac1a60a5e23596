"""Tests of Hopper's own machine on the CPU: TMA, mbarriers, wgmma, clusters, and vector clocks under them."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from profiler.build.toolchain import require_tool
from profiler.catalog.catalog import PROJECT_KERNELS
from profiler.catalog.problem import Case, Tolerance
from profiler.emulator.cpu_library import build_cpu_library
from profiler.emulator.emulator import Emulator, Landing, Schedule
from tests.emulator import test_emulator
from tests.toolchain import needs_gxx, needs_nvcc

HERE = Path(__file__).resolve().parents[1] / "emulated"
SOURCE = (HERE / "async.cu").read_text()
CASES = [(match[1], int(match[2])) for match in re.finditer(r'\{"(\w+)", \w+, \d+, \d, (\d+)\}', SOURCE)]
SCHEDULES = range(6)  # each of the three landing policies twice

pytestmark = needs_gxx


def marks():
    """kernel_bug -> line -> kinds."""
    found = {}
    for number, line in enumerate(SOURCE.splitlines(), 1):
        match = re.search(r"// caught here: (.+)", line)
        for part in match[1].split(";") if match else ():
            name, *kinds = part.split()
            found.setdefault(name, {})[number] = kinds
    return found


MARKS = marks()


@pytest.fixture(scope="module")
def emulator():
    with Emulator() as emulator:
        yield emulator


@pytest.fixture(scope="module")
def library(build_cache):
    return build_cpu_library(HERE / "async.cu", folder=build_cache / "cpu")


def run(emulator, library, kernel, bug, schedule):
    which = [name for name, _ in CASES].index(kernel) * 100 + bug
    numbers, output = np.arange(64, dtype=np.float32), np.full(64, np.nan, np.float32)
    case = Case((numbers, output, which), (), output, np.ones(64), Tolerance(0, 0))
    return emulator.run(library, "async", case, schedule, source_folder=HERE)


@pytest.mark.parametrize("kernel", [name for name, _ in CASES])
def test_a_right_kernel_gets_no_report_in_any_schedule_and_landing(emulator, library, kernel):
    for seed in range(4):
        for landing in Landing:
            result = run(emulator, library, kernel, 0, Schedule(seed, landing))
            assert result.defects == (), (seed, landing)
            assert result.passed, (seed, landing, result)


@pytest.mark.parametrize(
    ("kernel", "bug"), [(name, bug) for name, bugs in CASES for bug in range(1, bugs + 1)]
)
def test_a_planted_bug_is_caught_at_its_line_in_every_schedule(emulator, library, kernel, bug):
    expected = MARKS[f"{kernel}_{bug}"]
    for seed in SCHEDULES:
        result = run(emulator, library, kernel, bug, Schedule(seed))
        caught = [
            defect
            for defect in result.defects
            for end in (defect.source, defect.other_source)
            if end and defect.kind.startswith(tuple(expected.get(end.line, ["-"])))
        ]
        assert caught, f"seed {seed}: {result.defects}"


@pytest.mark.long  # two more libraries; what clocks alone can tell is shown above
def test_clocks_judge_barriers_and_fences_as_the_epochs_do(emulator, build_cache):
    for source, kernels in (("clean", test_emulator.CLEAN), ("planted", test_emulator.PLANTED)):
        library = build_cpu_library(HERE / f"{source}.cu", ["-DCLOCKS"], folder=build_cache / "cpu")
        for number, name in enumerate(kernels):
            if name in (*test_emulator.DIES, "asserts_after_a_read"):
                continue
            for seed in range(5):
                case = test_emulator.case(number)
                result = emulator.run(library, source, case, Schedule(seed), source_folder=HERE)
                if source == "clean":
                    assert result.passed, (name, seed, result)
                else:
                    assert test_emulator.is_caught(name, result), (name, seed, result.defects)


@needs_nvcc
def test_the_same_source_compiles_for_hopper(tmp_path):
    # Its planted bugs have ptxas say that it puts in what is missing; of the rest it says nothing.
    command = [require_tool("nvcc").path, "-std=c++17", "-arch=sm_90a", f"-I{PROJECT_KERNELS}", "-cubin"]
    for source in ("async.cu", "layouts.cu"):
        cubin = tmp_path / f"{source}bin"
        process = subprocess.run(
            [*command, str(HERE / source), "-o", str(cubin)], capture_output=True, text=True
        )
        assert process.returncode == 0, process.stderr
        assert not re.search(r"\b(error|warning)\b", process.stderr), process.stderr


def test_three_seeds_in_a_row_have_all_landing_policies():
    assert {Schedule(seed).lands for seed in (0, 1, 2)} == set(Landing)
    assert Schedule(0, Landing.AT_ONCE).lands == Landing.AT_ONCE


def test_a_deadlock_names_what_its_threads_wait_for(emulator, library):
    for kernel, bug, words in (
        (
            "load",
            3,
            "waits for parity 0 of the mbarrier at shared byte 0 (phase 0: 0 of 1 arrivals and 16 bytes",
        ),
        ("product", 10, "waits for a wgmma to which not all threads of its warpgroup have come"),
        ("named_barriers", 1, "waits for named barrier 1, where 64 of 96 threads are"),
        ("registers", 1, "waits for 256 registers a thread from 248, where 0 of the block's are free"),
    ):
        texts = [
            defect.text
            for defect in run(emulator, library, kernel, bug, Schedule(0)).defects
            if defect.kind == "deadlock"
        ]
        assert texts
        assert all(words in text for text in texts)


def test_the_wavefronts_of_products_and_boxes_are_those_of_their_bytes(emulator, library):
    # A [64][16] and B [32][16], four times: matrices of 8 rows of 16 bytes, which the swizzle keeps apart.
    result = run(emulator, library, "product", 0, Schedule(0))
    (line,) = [line for line in result.traffic if "wgmma_m64k16" in SOURCE.splitlines()[line.source.line - 1]]
    assert (line.requests, line.wavefronts, line.conflicts) == (4 * (8 * 2 + 4 * 2), 4 * 24, 0)
    result = run(emulator, library, "clipped_load", 0, Schedule(0))
    assert sum(line.wavefronts for line in result.traffic if line.kind == "store") == 3 * 256 // 128
