"""Tests of the CPU runtime: a planted bug is reported at its line in every schedule, and nothing else is."""

import ctypes
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from profiler.catalog.catalog import PROJECT_KERNELS
from profiler.catalog.problem import Case, Tolerance
from profiler.emulator import cpu_library
from profiler.emulator.__main__ import main
from profiler.emulator.cpu_library import build_cpu_library
from profiler.emulator.emulator import Emulator, Schedule
from profiler.errors import BuildFailed, CannotJudge
from tests.toolchain import needs_gxx

HERE = Path(__file__).resolve().parents[1] / "emulated"
SCHEDULES = range(10)
MARKER = re.compile(r"// caught here: (.+)")
NO_LINE = {
    "over_the_budget": "over-budget",
    "over_the_device": "launch-refused",
    "too_many_threads": "launch-refused",
    "on_another_stream": "misuse",
}
DIES = {  # kind, text, line
    "never_ends": ("timeout", "did not end within 0.5 s", "while (blockIdx.x == 0) out[t] = 1;"),
    "overflows_its_stack": ("crash", "its process died: SIGSEGV", "int deeper("),
    "divides_by_zero": ("crash", "its process died: SIGFPE", "out[t] = t / none;"),
    "gives_up": ("crash", "its process died: SIGABRT", "KERNEL(gives_up)"),
    "ends_the_process": ("crash", "it called exit(3)", "KERNEL(ends_the_process)"),
}

pytestmark = needs_gxx


@pytest.fixture(scope="module")
def emulator():
    with Emulator() as emulator:
        yield emulator


@pytest.fixture(scope="module")
def folder(build_cache):
    """Where libraries are kept; the runtime, which takes longest to compile, is there for all tests."""
    return build_cache / "cpu"


@pytest.fixture
def cache(folder, tmp_path):
    """A folder of its own that holds the runtime and nothing else."""
    build_cpu_library(HERE / "clean.cu", folder=folder)
    cache = tmp_path / "cache"
    cache.mkdir()
    for runtime in folder.glob("runtime-*.o"):
        shutil.copy(runtime, cache)
    return cache


def case(which=0):
    numbers, output = np.arange(64, dtype=np.float32), np.full(64, np.nan, np.float32)
    return Case((numbers, output, which), (), output, np.ones(64), Tolerance(0, 0))


def names(source):
    """The kernels of a source in the order of its LAUNCHES."""
    table = (HERE / f"{source}.cu").read_text().partition("LAUNCHES[] = {")[2].partition("};")[0]
    return re.findall(r'(?:ONE|BLOCKS)\((\w+)\)|\{"(\w+)"', table)


PLANTED = ["".join(pair) for pair in names("planted")]
CLEAN = ["".join(pair) for pair in names("clean")]


def markers(name):
    """line -> words, of one planted kernel."""
    words, kernel = {}, ""
    for number, line in enumerate((HERE / "planted.cu").read_text().splitlines(), 1):
        if begins := re.match(r"KERNEL\((\w+)\)", line):
            kernel = begins[1]
        if (match := MARKER.search(line)) and kernel == name:
            words[number] = match[1].split()
    return words


def is_caught(name, result):
    """Whether a planted bug shows in a run: by a kind that its source marks, at that line."""
    if name in NO_LINE:
        return NO_LINE[name] in [defect.kind for defect in result.defects]
    expected = markers(name)
    return any(
        defect.kind.startswith(tuple(expected.get(end.line, ["-"])))
        for defect in result.defects
        for end in (defect.source, defect.other_source)
        if end and end.file == "planted.cu"
    )


def run(emulator, folder, source, which=0, seed=0, **limits):
    library = build_cpu_library(HERE / f"{source}.cu", folder=folder)
    symbol = "bank_patterns" if source == "banks" else source
    return emulator.run(library, symbol, case(which), Schedule(seed), source_folder=HERE, **limits)


@pytest.mark.parametrize("name", [name for name in PLANTED if name not in (*DIES, "asserts_after_a_read")])
def test_a_planted_bug_is_caught_at_its_line_in_every_schedule(emulator, folder, name):
    assert markers(name) or name in NO_LINE
    for seed in SCHEDULES:
        result = run(emulator, folder, "planted", PLANTED.index(name), seed)
        assert not result.passed
        assert is_caught(name, result), f"seed {seed}: {result.defects}"


def test_every_kind_of_finding_has_a_planted_bug():
    words = {word for name in PLANTED for marked in markers(name).values() for word in marked}
    words |= set(NO_LINE.values())
    marked = re.findall(r"(?:// caught here:|;) \w+_\d+ ([^;\n]+)", (HERE / "async.cu").read_text())
    words |= {word for kinds in marked for word in kinds.split()}
    kinds = re.findall(
        r'^  X\([A-Z_]+, "([^"]+)"\)', (cpu_library.RUNTIME / "state.h").read_text(), re.MULTILINE
    )
    assert len(kinds) == 28
    for kind in kinds:
        assert any(kind.startswith(word) for word in words), kind


@pytest.mark.parametrize("name", CLEAN)
def test_a_right_kernel_gets_no_report_and_the_right_numbers_in_any_schedule(emulator, folder, name):
    for seed in range(30):
        result = run(emulator, folder, "clean", CLEAN.index(name), seed)
        assert result.defects == (), f"seed {seed}"
        assert result.output_check.wrong == 0, f"seed {seed}: {result.output_check}"
        assert result.returned == 0


@pytest.mark.parametrize("which", range(3))
def test_what_starts_with_no_value_or_lies_elsewhere_gives_wrong_numbers(emulator, folder, which):
    result = run(emulator, folder, "wrong", which)
    assert result.defects == ()
    assert result.output_check.wrong == 64


def test_a_crash_keeps_what_was_seen_before_it_and_what_the_process_said(emulator, folder):
    result = run(emulator, folder, "planted", PLANTED.index("asserts_after_a_read"))
    assert [defect.kind.split(":")[0] for defect in result.defects] == [
        "uninitialised-shared-read",
        "crash",
    ]
    assert result.defects[1].text.endswith("Assertion `n == -1' failed.")


def test_an_access_out_of_bounds_is_placed_by_the_nearest_argument(emulator, folder):
    for name, words in (
        ("past_the_end_of_the_output", "past the end of argument 2"),
        ("writes_an_input", "into argument 1, an input"),
        ("null_pointer", "at address 0: a null pointer"),
    ):
        result = run(emulator, folder, "planted", PLANTED.index(name))
        assert words in result.defects[0].text


def test_a_race_names_both_of_its_ends(emulator, folder):
    result = run(emulator, folder, "planted", PLANTED.index("copies_into_what_is_read"), 1)
    source = (HERE / "planted.cu").read_text().splitlines()
    ends = {(defect.source.line, defect.other_source.line) for defect in result.defects}
    for pair in ends:
        texts = {source[line - 1].strip()[:20] for line in pair}
        assert texts == {"out[t] = S(float)[t ", "__pipeline_memcpy_as"}


def line_of(text):
    lines = (HERE / "planted.cu").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("name", DIES)
def test_what_ends_its_process_or_never_ends_is_a_finding_at_its_line_and_the_next_one_runs(
    emulator, folder, name
):
    kind, text, line = DIES[name]
    result = run(emulator, folder, "planted", PLANTED.index(name), time_limit_s=0.5)
    assert [(defect.kind, defect.text) for defect in result.defects] == [(kind, text)]
    place = result.defects[0].source
    assert place.file == "planted.cu"
    assert line_of(line) <= place.line <= line_of(line) + 3
    assert result.output_check is None
    assert run(emulator, folder, "clean").passed


def test_one_process_runs_more_libraries_than_their_stacks_would_fit_in(folder, tmp_path):
    library = build_cpu_library(HERE / "clean.cu", folder=folder)
    with Emulator() as emulator:
        for number in range(40):
            copy = shutil.copy(library, tmp_path / f"{number}.so")
            result = emulator.run(Path(copy), "clean", case(), Schedule(number), source_folder=HERE)
            assert result.passed, (number, result)
            if number == 0:
                first = emulator._process
            assert emulator._process is first


def test_a_process_that_fails_of_itself_is_no_finding_about_the_kernel(emulator, folder):
    library = build_cpu_library(HERE / "clean.cu", folder=folder)
    with pytest.raises(CannotJudge, match=r"could not be run \(exit code 1\): .*undefined symbol: no_such"):
        emulator.run(library, "no_such", case(), Schedule(0))
    assert run(emulator, folder, "clean").passed


def test_wavefronts_of_known_patterns_are_those_of_32_banks(emulator, folder):
    lines = (HERE / "banks.cu").read_text().splitlines()
    pattern = re.compile(r"// banks: (load|store) (\d+) (\d+) (\d+)$")
    expected = [
        (number, match[1], *map(int, match.groups()[1:]))
        for number, line in enumerate(lines, 1)
        if (match := pattern.search(line))
    ]
    assert len(expected) > 20
    for seed in (0, 1, 2):
        result = run(emulator, folder, "banks", seed=seed)
        assert result.defects == ()
        seen = [
            (line.source.line, line.kind, line.requests, line.wavefronts, line.ideal)
            for line in result.traffic
        ]
        assert seen == expected


def test_the_launch_tells_grid_block_and_shared_memory(emulator, folder):
    (launch,) = run(emulator, folder, "clean", CLEAN.index("three_dimensions")).launches
    assert (launch.kernel, launch.grid, launch.block) == ("three_dimensions", (1, 2, 1), (4, 8, 2))
    assert (launch.threads, launch.shared_bytes, launch.returned) == (64, 16 << 10, 0)


def test_a_refused_launch_is_recorded_with_what_it_asked_for(emulator, folder):
    result = run(emulator, folder, "planted", PLANTED.index("over_the_device"))
    assert result.returned == 1
    assert [(launch.shared_bytes, launch.returned) for launch in result.launches] == [(228 << 10, 1)]
    # The same launch on a device that gives less
    result = run(emulator, folder, "planted", PLANTED.index("over_the_budget"), limit_bytes=99 << 10)
    assert [defect.kind for defect in result.defects] == ["launch-refused"]


def test_the_same_seed_gives_the_same_run(emulator, folder):
    which = PLANTED.index("two_warps_add")
    first, again = (run(emulator, folder, "planted", which, 7) for _ in range(2))
    assert (first.defects, first.traffic, first.output_check) == (
        again.defects,
        again.traffic,
        again.output_check,
    )


def test_random_schedules_differ(emulator, folder):
    which = PLANTED.index("read_with_no_barrier")
    first = {run(emulator, folder, "planted", which, seed).defects[0].text for seed in range(8)}
    assert len(first) > 2  # another thread is the first to be seen


def test_a_source_that_does_not_compile_shows_the_compilers_message(tmp_path):
    (tmp_path / "slip.cu").write_text('#include "common.cuh"\n__global__ void k() { int x = y; }\n')
    with pytest.raises(
        BuildFailed, match=r"slip\.cu.*:2:.*error: 'y' was not declared|slip\.cu.*error: .y. was not"
    ):
        build_cpu_library(tmp_path / "slip.cu", folder=tmp_path)


def test_static_shared_memory_is_refused_with_the_way_out(tmp_path):
    (tmp_path / "s.cu").write_text('#include "common.cuh"\n__global__ void k() { __shared__ float x[4]; }\n')
    with pytest.raises(BuildFailed, match="use DYN_SMEM"):
        build_cpu_library(tmp_path / "s.cu", folder=tmp_path)


def test_a_build_is_kept_until_the_source_a_header_or_a_flag_changes(tmp_path, monkeypatch, cache):
    source, header = tmp_path / "k.cu", tmp_path / "own.cuh"
    header.write_text("constexpr int N = 1;\n")
    source.write_text('#include "own.cuh"\n#include "common.cuh"\nextern "C" int f() { return N; }\n')
    first = build_cpu_library(source, folder=cache)
    with monkeypatch.context() as patched:
        patched.setattr(cpu_library, "_compile", lambda *_: pytest.fail("compiled again"))
        assert build_cpu_library(source, ["--use_fast_math"], folder=cache) == first  # nvcc's own
    assert build_cpu_library(source, ["-DX=1"], folder=cache) != first
    header.write_text("constexpr int N = 2;\n")
    assert build_cpu_library(source, folder=cache) != first


def test_a_header_in_a_subfolder_counts_and_one_that_nobody_includes_does_not(tmp_path, cache):
    source, deep, given = tmp_path / "k.cu", tmp_path / "deep" / "own.cuh", tmp_path / "given"
    deep.parent.mkdir()
    given.mkdir()
    deep.write_text("constexpr int N = 1;\n")
    (given / "tile.h").write_text("constexpr int TILE = 1;\n")
    source.write_text(
        '#include "deep/own.cuh"\n#include <tile.h>\n#include "common.cuh"\n'
        'extern "C" int f() { return N + TILE; }\n'
    )

    def made():
        return build_cpu_library(source, [], [given], folder=cache)

    first = made()
    (tmp_path / "unrelated.cuh").write_text("nobody includes this\n")
    assert made() == first
    deep.write_text("constexpr int N = 2;\n")
    second = made()
    assert second != first
    (given / "tile.h").write_text("constexpr int TILE = 2;\n")
    assert made() not in (first, second)


def test_a_function_that_the_cpu_does_not_have_does_not_compile(tmp_path, cache):
    (tmp_path / "s.cu").write_text(
        '#include "common.cuh"\nint elsewhere();\nextern "C" int f() { return elsewhere(); }\n'
    )
    with pytest.raises(BuildFailed, match="elsewhere"):
        build_cpu_library(tmp_path / "s.cu", folder=cache)


def test_a_product_and_a_sum_are_rounded_once_as_on_the_gpu(tmp_path, cache):
    (tmp_path / "s.cu").write_text(
        '#include "common.cuh"\nextern "C" float f(float a, float b, float c) { return a * b - c; }\n'
    )
    function = ctypes.CDLL(str(build_cpu_library(tmp_path / "s.cu", folder=cache))).f
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float] * 3
    third = float(np.float32(1) / np.float32(3))
    assert function(third, third, float(np.float32(third) * np.float32(third))) != 0


def test_a_source_is_run_by_hand_under_some_schedules(capsys):
    shape = ["--shape", "1,1,16,64", "--seeds", "2", "--bank", "--landing", "rows", "--shared-kb", "57"]
    assert main([str(PROJECT_KERNELS / "v2b.cu"), *shape]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(" rc=")[0] for line in printed if line.startswith("seed")] == [
        "seed 0 PASS",
        "seed 1 PASS",
    ]
    assert any("conflicts of" in line for line in printed)
    assert main([str(PROJECT_KERNELS / "v2b.cu"), *shape, "-DBUG=BUG_V2"]) == 1
    assert "race" in capsys.readouterr().out
