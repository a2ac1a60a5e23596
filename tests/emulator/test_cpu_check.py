"""Tests of the CPU check: what passes, what counts as caught, and the project's whole lineage on the CPU."""

import dataclasses
import re
import resource
import shutil
from pathlib import Path

import pytest

from profiler.catalog import catalog, sources
from profiler.catalog.attention import ATTENTION
from profiler.catalog.version import Version
from profiler.cli import main
from profiler.emulator import cpu_check
from profiler.emulator.cpu_check import ExpectedDefect
from profiler.emulator.run_result import Defect, SourceLine
from profiler.errors import BuildFailed
from tests.conftest import ROOT
from tests.toolchain import needs_gxx

KERNELS = ROOT / "kernels"
GEMM = catalog.load_catalog(Path(__file__).resolve().parents[1] / "gemm")
PROBLEM = sources.load_object(GEMM, GEMM.problem)
LINEAGE_LIMIT_S = 90

pytestmark = needs_gxx


@pytest.fixture(scope="module", autouse=True)
def builds(tmp_path_factory):
    """A folder of builds that is empty at first."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PROFILER_BUILD", str(tmp_path_factory.mktemp("builds")))
        yield


SAMPLE = ("v2c_v5", "v2d_a", "v2d_b", "flashcore_wmma", "fp8_stage_c")  # of the good versions
ALL_SEEDS = pytest.param(None, id="all-schedules", marks=pytest.mark.long)


@pytest.fixture(scope="module", params=[pytest.param((0,), id="a-schedule"), ALL_SEEDS])
def lineage(request, build_cache, tmp_path_factory):
    """The catalogue's versions, checked on 2 processes; the seeds; and the CPU time, with builds."""
    is_clean = request.param is None
    versions = [
        version
        for version in catalog.load_catalog(KERNELS).versions
        if is_clean or version.state != "good" or version.id in SAMPLE
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PROFILER_BUILD", str(tmp_path_factory.mktemp("lineage") if is_clean else build_cache))
        begun = cpu_seconds()
        checked = list(cpu_check.check_versions(versions, ATTENTION, seeds=request.param, jobs=2))
        return {check.version: check for check in checked}, request.param, cpu_seconds() - begun


def cpu_seconds():
    """Of this process and of those it has waited for: what a busy machine does not change."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def gemm(name):
    return GEMM.by_id[name]


def test_a_good_version_passes_on_all_its_workloads_with_three_seeds():
    runs = cpu_check.check(gemm("tiled"), PROBLEM)
    assert [(run.workload.label, run.seed) for run in runs] == [
        (label, seed) for label in ("32x48x64", "20x33x17") for seed in (0, 1, 2)
    ]
    assert all(run.passed and run.as_expected for run in runs)


def test_a_rejected_version_is_caught_at_its_marked_line_with_ten_seeds():
    runs = cpu_check.check(gemm("tiled_early"), PROBLEM)
    assert [run.seed for run in runs] == list(range(10))
    assert all(run.as_expected and not run.passed for run in runs)
    (marked,) = cpu_check.expected_defects(gemm("tiled_early"))
    assert "A_smem[y * 16 + x] =" in (GEMM.folder / marked.file).read_text().splitlines()[marked.line - 1]
    assert cpu_check.expected_defects(gemm("tiled")) == ()


@pytest.mark.parametrize(
    "change",
    [
        {"flags": ()},  # the bug is not in it: nothing is caught
        {"caught_by": ("uninitialised",)},  # caught, by another kind
        {"caught_by": ("launch-refused", "deadlock")},
    ],
)
def test_a_rejected_version_that_is_not_caught_as_it_says_is_not_as_expected(change):
    version = dataclasses.replace(gemm("tiled_early"), **change)
    runs = cpu_check.check(version, PROBLEM, seeds=range(3))
    assert not any(run.as_expected for run in runs)


def test_a_rejected_version_caught_at_another_line_than_the_marked_one_is_not_as_expected(tmp_path):
    text = (GEMM.folder / "tiled.cu").read_text()
    moved = text.replace("  // caught here: BUG_EARLY race", "").replace(
        "float sum = 0;", "float sum = 0;  // caught here: BUG_EARLY race"
    )
    lines = moved.splitlines()
    at = next(i for i, line in enumerate(lines) if "float sum" in line)
    lines[at + 1 : at + 1] = [""] * 5
    (tmp_path / "tiled.cu").write_text("\n".join(lines))
    version = dataclasses.replace(gemm("tiled_early"), source=tmp_path / "tiled.cu")
    runs = cpu_check.check(version, PROBLEM, seeds=range(3))
    assert all(run.defects for run in runs)
    assert not any(run.as_expected for run in runs)


def test_a_good_version_that_is_wrong_is_not_as_expected_and_its_json_names_file_and_line():
    version = dataclasses.replace(gemm("tiled_early"), state="good", caught_by=())
    (run,) = cpu_check.check(version, PROBLEM, [PROBLEM.workload(m=32, n=32, k=32)], seeds=[0])
    assert (run.passed, run.as_expected) == (False, False)
    shown = run.as_json()
    assert shown["evidence"] == "modelled"
    assert shown["workload"] == {"m": 32, "n": 32, "k": 32}
    assert (shown["version"], shown["state"], shown["causal"], shown["seed"]) == (
        "tiled_early",
        "good",
        False,
        0,
    )
    assert (shown["passed"], shown["max_abs_error"] > 1e-3) == (False, True)
    races = [race for race in shown["findings"] if race["kind"].startswith("race")]
    source = (GEMM.folder / "tiled.cu").read_text().splitlines()
    assert races
    assert all(
        race["file"] == "tiled.cu" and "_smem[" in source[race["line"] - 1] and race["count"] > 0
        for race in races
    )
    assert shown["launches"] == [
        {"kernel": "tiled", "grid": (2, 2, 1), "block": (16, 16, 1), "shared_bytes": 2048}
    ]
    assert shown["shared_wavefronts"] == sum(line["wavefronts"] for line in shown["lines"]) > 0
    assert shown["bank_conflicts"] == sum(line["conflicts"] for line in shown["lines"])


def test_a_version_that_does_not_compile_comes_with_its_error_and_the_others_go_on(tmp_path):
    (tmp_path / "slip.cu").write_text('#include "common.cuh"\nint f() { return nothing; }\n')
    slip = Version("slip", "gemm", None, "a slip", "good", source=tmp_path / "slip.cu")
    progress = []
    checked = list(
        cpu_check.check_versions(
            [slip, gemm("tiled")], PROBLEM, progress=lambda *words: progress.append(words)
        )
    )
    assert [(check.version, check.as_expected, len(check.runs)) for check in checked] == [
        ("slip", False, 0),
        ("tiled", True, 6),
    ]
    assert "slip" in str(checked[0].error)
    assert "nothing" in str(checked[0].error)
    assert progress == [("slip", "NOT as expected"), ("tiled", "as expected")]
    with pytest.raises(BuildFailed, match="slip"):
        cpu_check.check(slip, PROBLEM)


def test_a_version_without_a_source_is_left_out():
    planned = Version("later", "gemm", None, "to come", "planned", source=GEMM.folder / "later.cu")
    assert list(cpu_check.check_versions([planned], PROBLEM)) == []


def test_launches_tell_what_the_launcher_asks_for():
    size = PROBLEM.workload(m=1, n=17, k=1)
    (run,) = cpu_check.check(gemm("tiled"), PROBLEM, [size], [0])
    assert [launch.grid for launch in run.launches] == [(2, 1, 1)]
    assert cpu_check.launch_configs(gemm("tiled"), PROBLEM, [size]) == {size: (("tiled", 256, 2048),)}


BOUNDED = """#include "common.cuh"
template <int D>
struct Tile {
  static constexpr int THREADS = D == 16 ? 96 : 256;
};
template <int D>
__global__ void __launch_bounds__(Tile<D>::THREADS, D == 16 ? 4 : 3) bounded(const float* A, const float* B,
                                                                              float* C, int m, int n, int k) {
  const int col = threadIdx.x + blockIdx.x * blockDim.x;
  if (col < m * n) {
    float sum = 0;
    for (int i = 0; i < k; ++i) sum += A[col / n * k + i] * B[i * n + col % n];
    C[col] = sum;
  }
}
extern "C" int gemm(const void* a, const void* b, void* c, int m, int n, int k, void* stream) {
  return LAUNCH(bounded<SIZE>, dim3((m * n + 127) / 128), dim3(128), 0, stream, (const float*)a,
                (const float*)b, (float*)c, m, n, k);
}
"""


def made(tmp_path, text, *flags, name="made"):
    (tmp_path / f"{name}.cu").write_text(text)
    return dataclasses.replace(
        gemm("tiled"), id=name, source=tmp_path / f"{name}.cu", flags=flags, include=()
    )


def test_more_threads_than_the_launch_bound_of_a_template_are_refused_at_the_kernels_line(tmp_path):
    version = made(tmp_path, BOUNDED, "-DSIZE=16")
    (run,) = cpu_check.check(version, PROBLEM, [PROBLEM.workload(m=3, n=5, k=7)], [0])
    (refused,) = run.defects
    assert (refused.kind, refused.source) == ("launch-refused", SourceLine("made.cu", 7))
    assert "128 threads" in refused.text
    assert "__launch_bounds__ is 96" in refused.text
    assert not run.passed
    assert run.result.returned == 701
    assert [launch.returned for launch in run.launches] == [701]
    allowed = made(tmp_path, BOUNDED, "-DSIZE=64")
    assert all(run.passed for run in cpu_check.check(allowed, PROBLEM, seeds=[0]))


def test_an_fp8_cell_tells_the_quantisation_error_apart():
    version = catalog.load_catalog(KERNELS).by_id["fp8_stage_c"]
    size = ATTENTION.workload(batch=1, heads=1, len_q=16, head_dim=64, dtype="fp8")
    (run,) = cpu_check.check(version, ATTENTION, [size], seeds=[0])
    assert run.passed
    assert run.as_json()["input_error"] == run.input_error > run.max_abs_error


@pytest.mark.parametrize(
    ("kind", "line", "other", "counts"),
    [
        ("race:read-after-write", 12, None, True),
        ("race:read-after-write", 13, None, False),  # too far away
        ("race:write-after-read", 40, 8, True),  # the other end
        ("uninitialised-shared-read", 10, None, False),  # another kind
        ("race:read-after-write", None, None, False),
    ],
)
def test_a_finding_meets_a_marker_within_two_lines_at_either_end(kind, line, other, counts):
    place = SourceLine("k.cu", line) if line else None
    finding = Defect(kind, place, 1, "", SourceLine("k.cu", other) if other else None)
    assert ExpectedDefect("k.cu", 10, ("race",)).matches(finding) is counts
    assert not ExpectedDefect("other.cu", 10, ("race",)).matches(finding)


def test_one_comment_may_mark_a_line_for_several_bugs(tmp_path):
    (tmp_path / "k.cu").write_text(
        "int a;\nint b;  // the copy. caught here: BUG_ONE race uninitialised; BUG_TWO deadlock\n"
    )
    first, second, third = (
        cpu_check.expected_defects(
            Version("v", "f", None, "", "rejected", source=tmp_path / "k.cu", flags=(f"-DBUG=BUG_{name}",))
        )
        for name in ("ONE", "TWO", "THREE")
    )
    assert first == (ExpectedDefect("k.cu", 2, ("race", "uninitialised")),)
    assert second == (ExpectedDefect("k.cu", 2, ("deadlock",)),)
    assert third == ()


# ---------------------------------------------------------------- the project's own lineage


def test_every_good_version_passes_everywhere_with_no_report(lineage):
    for name, checked in lineage[0].items():
        if checked.state == "good":
            assert len(checked.runs) >= 5 * len(lineage[1] or range(3)), name
            for run in checked.runs:
                assert run.passed, (name, run.workload.label, run.seed, run.result)


def test_every_rejected_version_is_caught_as_its_row_says_in_every_schedule(lineage):
    rejected = {name: checked for name, checked in lineage[0].items() if checked.state == "rejected"}
    assert len(rejected) >= 10
    for name, checked in rejected.items():
        assert len(checked.runs) == len(lineage[1] or range(10)), name
        for run in checked.runs:
            assert run.as_expected, (name, run.seed, run.result)
            assert not run.passed, (name, run.seed)


@pytest.mark.parametrize("lineage", [ALL_SEEDS], indirect=True)
def test_the_whole_lineage_takes_less_than_its_time_limit_from_a_clean_build(lineage):
    assert lineage[2] / 2 < LINEAGE_LIMIT_S  # on 2 cores


def test_the_swizzle_removes_the_bank_conflicts(lineage):
    without, with_it = (lineage[0][name].runs for name in ("v2d_a", "v2d_b"))
    for before, after in zip(without, with_it, strict=True):
        assert before.bank_conflicts > 1000
        assert after.bank_conflicts <= 0.05 * before.bank_conflicts


@pytest.mark.parametrize("are_all", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("only", ["QK", "SOFTMAX", "PV"])
def test_every_stage_of_the_fused_versions_agrees_with_its_own_reference(only, are_all):
    fused = [
        version
        for version in catalog.load_catalog(KERNELS).versions
        if version.state == "good" and only in version.stages
    ]
    assert fused
    sizes = {"batch": 1, "heads": 1, "len_q": 70, "len_kv": 90, "causal": True}
    for dtype, head_dims in {(version.dtype, version.head_dims) for version in fused}:
        alike = [version for version in fused if (version.dtype, version.head_dims) == (dtype, head_dims)]
        versions = alike if are_all else alike[-1:]
        workloads = [ATTENTION.workload(**sizes, head_dim=dim, dtype=dtype) for dim in head_dims]
        for checked in cpu_check.check_versions(versions, ATTENTION, workloads, [1], stages=[only], jobs=2):
            assert checked.error is None
            assert len(checked.runs) == len(head_dims)
            for run in checked.runs:
                assert run.passed, (checked.version, only, run.result)


def barriers(source):
    return [match.start() for match in re.finditer(r"__syncthreads\(\);", source)]


@pytest.mark.parametrize(
    "name", ["v2c_v4", *(pytest.param(name, marks=pytest.mark.long) for name in ("v2b", "v2c_v5", "v2d_c"))]
)
def test_one_barrier_removed_from_a_copy_is_found_with_file_and_line(tmp_path, name):
    version = catalog.load_catalog(KERNELS).by_id[name]
    text = version.source.read_text()
    at = barriers(text)[-1]
    slipped = tmp_path / version.source.name
    slipped.write_text(text[:at] + "/* slipped */" + text[at + len("__syncthreads();") :])
    workloads = ATTENTION.check_workloads(version.dtype, version.head_dims)[:1]
    runs = cpu_check.check(dataclasses.replace(version, source=slipped), ATTENTION, workloads, range(3))
    assert not all(run.as_expected for run in runs)
    places = {defect.source for run in runs for defect in run.defects if defect.source}
    assert any(place.file == slipped.name and place.line > 0 for place in places)


@pytest.mark.parametrize(
    ("name", "call", "reason"),
    [
        # Seen only where one block reads several tiles,
        ("flashcore_vec", "__syncthreads();", "  // P is read before the next tile overwrites it"),
        # and only where a block has no tile: nothing else lies between the reading of Q and the output.
        pytest.param(
            "v2d_c", "__syncwarp();", "  // O takes the place of the strip of Q", marks=pytest.mark.long
        ),
    ],
)
def test_the_default_workloads_reach_a_race_that_only_some_shapes_show(tmp_path, name, call, reason):
    version = catalog.load_catalog(KERNELS).by_id[name]
    text = version.source.read_text()
    assert text.count(call + reason) == 1
    slipped = tmp_path / version.source.name
    slipped.write_text(text.replace(call + reason, reason))
    runs = cpu_check.check(dataclasses.replace(version, source=slipped), ATTENTION)
    races = [defect for run in runs for defect in run.defects if defect.kind.startswith("race")]
    assert any(defect.source and defect.source.file == slipped.name for defect in races)


def test_a_version_that_the_problem_has_no_workload_for_is_not_judged(tmp_path, capsys):
    for path in GEMM.folder.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    text = (tmp_path / "catalog.toml").read_text().replace("head_dims = [16]", "head_dims = [17]", 1)
    (tmp_path / "catalog.toml").write_text(text)
    problem = (
        (tmp_path / "gemm.py").read_text().replace("20, 33, 17)]", "20, 33, 17)] if 16 in sizes else []")
    )
    (tmp_path / "gemm.py").write_text(problem)
    assert main(["check", "tiled", "--catalog", str(tmp_path)]) == 3
    shown = capsys.readouterr()
    assert "tiled: its problem has no workload to check it on" in shown.err
    assert "no workload" in shown.out
    assert "NOT" not in shown.out


def test_check_warns_where_a_catalogue_and_its_sources_disagree(tmp_path, capsys):
    for path in GEMM.folder.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    (tmp_path / "forgotten.cu").write_text("// nobody's\n")
    assert main(["check", "tiled", "--seeds", "1", "--catalog", str(tmp_path)]) == 0
    assert "warning: forgotten.cu is no version's file" in capsys.readouterr().err
