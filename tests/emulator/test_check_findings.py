"""Tests of what a check says of a made family: findings, contract, endless runs, unseen lines, bad cases."""

import dataclasses
import json
import shlex
import time
from pathlib import Path

import pytest

from profiler.catalog import catalog, sources
from profiler.catalog.attention import ATTENTION
from profiler.cli import main
from profiler.collect import cpu_results
from profiler.emulator import cpu_check, facts, failure
from profiler.emulator.emulator import Landing
from tests.conftest import ROOT
from tests.toolchain import needs_gxx

GEMM = catalog.load_catalog(Path(__file__).resolve().parents[1] / "gemm")
PROBLEM = sources.load_object(GEMM, GEMM.problem)

pytestmark = needs_gxx


@pytest.fixture(scope="module", autouse=True)
def builds(build_cache):
    """Libraries of the same source and flags are compiled once for all tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PROFILER_BUILD", str(build_cache))
        yield


SCALE = """#include <cstdlib>

#include "common.cuh"
// x and y [n] fp32: y = s x.
__device__ int calls;
__global__ void scale(const float* x, float* y, int n, float s) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = x[i] * s;
#ifdef NEXT_TILE
  if (threadIdx.x == 0) y[i + 64] = 7;  // of the next block, and of the last one past the end
#endif
#ifdef CUDA_NAME
  __no_such_intrinsic(y[i]);
#endif
#ifdef OWN_NAME
  no_such_function(y[i]);
#endif
}
extern "C" int scaled(const void* x, void* y, int n, float s, void* stream) {
#ifndef KEEPS_NO_CONTRACT
  if (((uintptr_t)x | (uintptr_t)y) & 15 || n < 1) return CUDA_INVALID_VALUE;
#endif
#ifdef WRITES_NOTHING
  return 0;
#endif
#ifdef REFUSED
  return LAUNCH(scale, dim3(1), dim3(4096), 0, stream, (const float*)x, (float*)y, n, s);
#endif
#ifdef CRASHES
  if (n > 10) *(volatile int*)nullptr = 1;
#endif
#ifdef ENDLESS
  for (volatile int i = 0; n > 10; ++i) {
  }
#endif
#ifdef LEAVES_STATE
  s += float(calls++);
#endif
#ifdef WRONG
  if (n > 10) s += 1;
#endif
  static const bool is_wide = getenv("NOBODY_SETS_THIS") != nullptr;  // set up at the first call
  const dim3 block(is_wide ? 128 : 64);
#ifdef LOSES_REFUSAL
  LAUNCH(scale, dim3((n + 63) / 64), block, 300, stream, (const float*)x, (float*)y, n, s);
  return 0;
#endif
  return LAUNCH(scale, dim3((n + 63) / 64), block, 0, stream, (const float*)x, (float*)y, n, s);
}
#ifndef CPUCUDA
__device__ void of_the_gpu() { asm("nanosleep.u32 1;"); }

// a comment
__device__ int also_of_the_gpu;
#endif
#ifdef __CUDA_ARCH__
__device__ int of_one_pass;
#endif
#ifdef NOBODYS
int nowhere;
#endif
"""
SCALE_PROBLEM = '''"""A family of scaled vectors."""

from dataclasses import asdict, dataclass

import numpy as np

from profiler.catalog import Case, ContractCall, Tolerance


@dataclass(frozen=True)
class Length:
    n: int

    @property
    def label(self):
        return f"length {self.n}"

    def sizes(self):
        return asdict(self)


class Scale:
    name = "scale"
    symbol = "scaled"
    stages = ()

    def workload(self, **sizes):
        return Length(**sizes)

    def check_workloads(self, dtype, sizes):
        return [Length(100), Length(7), Length(30)]

    def case(self, workload, seed, stage="ALL"):
        x = np.random.default_rng(seed).standard_normal(workload.n).astype(np.float32)
        y = np.full(workload.n, np.nan, np.float32)
        arguments = (x, y, workload.n, np.float32(0.5))
        return Case(arguments, (x,), y, x.astype(np.float64) * 0.5, Tolerance(1e-6, 1e-6))

    def contract_calls(self, workload, sizes):
        return [ContractCall("x 4 bytes on", moved_bytes={0: 4}), ContractCall("n 0", {2: 0})]

    def stage_flags(self, stage):
        return ()

    def flops(self, workload):
        return workload.n

    def minimal_bytes(self, workload):
        return 8 * workload.n


SCALE = Scale()
'''
SCALE_VERSION = """
[[version]]
id = "{name}"
file = "sources/scale.cu"
technique = "an element a thread"
head_dims = [1]
dtypes = ["fp32"]
flags = {flags}
"""


@pytest.fixture(scope="module")
def scale_sources(tmp_path_factory):
    """The folder of the one source, to which families link: of libraries it is a part of what they are of."""
    folder = tmp_path_factory.mktemp("scale")
    (folder / "scale.cu").write_text(SCALE)
    return folder


@pytest.fixture
def scale_family(tmp_path, scale_sources):
    """Writes a family of one source: versions by name with their flags, the problem with a text replaced."""

    def write(versions, old="", new=""):
        assert old in SCALE_PROBLEM
        (tmp_path / "sources").symlink_to(scale_sources)
        (tmp_path / "scale.py").write_text(SCALE_PROBLEM.replace(old, new, 1) if old else SCALE_PROBLEM)
        entries = [
            SCALE_VERSION.format(name=name, flags=json.dumps(flags)) for name, flags in versions.items()
        ]
        (tmp_path / "catalog.toml").write_text(
            "\n".join(['family = "s"\nproblem = "scale.py:SCALE"', *entries])
        )
        return str(tmp_path)

    return write


def checked_json(capsys, *words):
    code = main(["check", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_finding_is_told_on_the_smallest_workload_with_the_command_that_shows_it_again(
    scale_family, capsys
):
    folder = scale_family({"wrong": ["-DWRONG"]})
    code, answer = checked_json(capsys, "wrong", "--catalog", folder)
    assert code == 1
    (finding,) = answer["findings"]
    assert (finding["kind"], finding["workload"], finding["seed"]) == ("numbers", "length 30", 0)
    assert "30 elements off by up to" in finding["text"]
    command = shlex.split(finding["command"])
    assert command == [
        "profiler",
        "check",
        "wrong",
        "--workload",
        "length 30",
        "--seed",
        "0",
        "--catalog",
        folder,
    ]
    code, again = checked_json(capsys, *command[2:])
    assert code == 1
    assert [(cell["workload"], cell["seed"]) for cell in again["cells"]] == [({"n": 30}, 0)]
    assert again["cells"][0]["max_abs_error"] == finding_cell(answer, 30)["max_abs_error"]
    assert again["contract"] == []
    main(["check", "wrong", "--catalog", folder])
    printed = capsys.readouterr().out
    assert "wrong: not right in 6 of 9 runs, the smallest on length 30, seed 0" in printed
    assert f"\n  {finding['command']}\n    numbers" in printed
    assert main(["check", "wrong", "--workload", "length 31", "--catalog", folder]) == 2
    assert "length 100, length 7, length 30" in capsys.readouterr().err


def finding_cell(answer, n):
    return next(cell for cell in answer["cells"] if cell["workload"] == {"n": n} and cell["seed"] == 0)


def test_a_defect_is_told_with_its_line_on_the_smallest_workload():
    version = dataclasses.replace(GEMM.by_id["tiled_early"], state="good", caught_by=())
    (check,) = cpu_check.check_versions([version], PROBLEM, seeds=[0, 1])
    race = next(finding for finding in facts.findings(check) if finding.kind.startswith("race"))
    assert race.place.file == "tiled.cu"
    smallest = min((run for run in check.runs if run.defects), key=lambda run: PROBLEM.flops(run.workload))
    assert race.workload == smallest.workload
    assert (
        facts.replay_command("v", race)
        == f"profiler check v --workload {race.workload.label} --seed {race.seed}"
    )


def test_a_finding_of_a_landing_names_it_in_its_command():
    planted = catalog.load_catalog(ROOT / "kernels" / "planted.toml").by_id["v2e_no_wgmma_fence"]
    version = dataclasses.replace(planted, state="good", caught_by=())
    workload = ATTENTION.workload(batch=1, heads=1, len_q=16, len_kv=16, head_dim=64)
    (check,) = cpu_check.check_versions(
        [version], ATTENTION, [workload], [1], landings=[Landing.AT_ONCE, Landing.ROWS]
    )
    assert [run.as_json()["landing"] for run in check.runs] == ["at-once", "rows"]
    assert f"on {workload.label}, seed 1, landing at-once: wgmma-fence-missing" in facts.summary_line(check)
    finding = facts.findings(check)[0]
    assert finding.as_json()["landing"] == "at-once"
    assert facts.replay_command("v", finding) == (
        f"profiler check v --workload {workload.label} --seed 1 --landing at-once"
    )


def test_calls_that_break_the_contract_are_told_by_what_was_passed(scale_family, capsys):
    flags = {"open": "-DKEEPS_NO_CONTRACT", "state": "-DLEAVES_STATE", "loses": "-DLOSES_REFUSAL"}
    folder = scale_family({"keeps": [], **{name: [flag] for name, flag in flags.items()}})
    code, answer = checked_json(capsys, "--catalog", folder)
    assert code == 1
    by_version = {entry["version"]: entry for entry in answer["contract"]}
    assert by_version["keeps"] == {"version": "keeps", "workload": "length 7", "calls": 6, "broken": []}
    assert by_version["loses"]["broken"] == [
        "a launch that was refused, as of more shared memory than there is: returned 0"
    ]
    first, second = by_version["open"]["broken"]
    assert first == "x 4 bytes on: launched scale, and must return 1"
    assert second.startswith("n 0: returned 9")
    assert by_version["state"]["broken"] == [
        "a call of length 30 after one of length 7 is wrong, and right on its own",
        "an equal second call, with one of length 30 between, gives other bits in 7 of 7 elements",
    ]
    of_open = [finding for finding in answer["findings"] if finding["version"] == "open"]
    assert {finding["kind"] for finding in of_open} == {"contract"}
    assert main(["check", "open", "--contract", "--catalog", folder]) == 1
    printed = capsys.readouterr().out
    assert (
        "open: 2 of its calls break the contract, the first: x 4 bytes on: launched scale, and must return 1"
        in printed
    )
    assert f"profiler check open --workload 'length 7' --contract --catalog {folder}" in printed
    assert main(["check", "keeps", "--contract", "--catalog", folder]) == 0


def test_a_version_whose_unchanged_calls_are_wrong_does_not_keep_the_contract(scale_family, capsys):
    flags = {
        "refused": "-DREFUSED",
        "nothing": "-DWRITES_NOTHING",
        "crashes": "-DCRASHES",
        "wrong": "-DWRONG",
    }
    folder = scale_family({name: [flag] for name, flag in flags.items()})
    code, answer = checked_json(capsys, "--contract", "--catalog", folder)
    assert code == 1
    assert answer["cells"] == []
    by_version = {entry["version"]: entry for entry in answer["contract"]}
    (refused,) = by_version["refused"]["broken"]
    assert refused.startswith("the call that the others change is not right: launch-refused: scale with grid")
    assert by_version["refused"]["calls"] == 1  # nothing tells what others would change
    assert by_version["nothing"]["broken"] == [
        "the call that the others change is not right: 7 elements not finite",
        "the call of length 30 between is wrong on its own: 30 elements not finite",
    ]
    (crash,) = by_version["crashes"]["broken"]
    assert crash.startswith("the call of length 30 between is wrong on its own: crash at scale.cu:")
    assert by_version["wrong"]["broken"][0].startswith(
        "the call of length 30 between is wrong on its own: 30 elements off by up to"
    )
    main(["check", "nothing", "--contract", "--catalog", folder])
    assert "nothing  good   NOT RIGHT" in capsys.readouterr().out
    # Where runs say the same, it is not said again.
    code, answer = checked_json(capsys, "crashes", "--seeds", "1", "--catalog", folder)
    assert [finding["kind"] for finding in answer["findings"]] == ["crash"]
    assert answer["contract"][0]["broken"] == [crash]


def test_the_contract_of_one_workload_changes_its_call_and_makes_no_other_run(scale_family, capsys):
    folder = scale_family({"keeps": [], "open": ["-DKEEPS_NO_CONTRACT"]})
    words = ("--workload", "length 30", "--contract", "--catalog", folder)
    code, answer = checked_json(capsys, *words)
    assert code == 1
    assert answer["cells"] == []
    assert [(entry["version"], entry["workload"], entry["calls"]) for entry in answer["contract"]] == [
        ("keeps", "length 30", 6),
        ("open", "length 30", 6),
    ]
    command = shlex.split(answer["findings"][0]["command"])
    assert command == ["profiler", "check", "open", *words]
    for option in (["--seed", "1"], ["--seeds", "2"], ["--stage", "QK"]):
        assert main(["check", "keeps", "--contract", *option, "--catalog", folder]) == 2
        assert f"leave out {option[0]}" in capsys.readouterr().err


def test_causes_come_before_what_follows_from_them(scale_family, capsys):
    folder = scale_family({"next": ["-DNEXT_TILE"]})
    words = ("next", "--workload", "length 100", "--seed", "0", "--catalog", folder)
    code, answer = checked_json(capsys, *words)
    assert code == 1
    seen = [finding["kind"] for finding in answer["cells"][0]["findings"]]
    assert seen == ["race:global-write-after-write", "out-of-bounds-global"]
    assert [finding["kind"] for finding in answer["findings"]] == seen[::-1]
    main(["check", *words])
    printed = capsys.readouterr().out.splitlines()
    row = next(line for line in printed if line.startswith("next "))
    assert "out-of-bounds-global at scale.cu:" in row
    assert "–" in row  # the largest error: no run came back with 0
    first_named = next(line for line in printed if line.startswith("    "))
    assert first_named.startswith("    out-of-bounds-global at scale.cu:")


def test_the_order_of_causes():
    kinds = ["contract", "numbers", "crash", "race:write-after-write", "uninitialised-global-read"]
    kinds += ["misaligned-access", "out-of-bounds-shared", "launch-refused"]
    assert sorted(kinds, key=failure.cause_rank) == kinds[::-1]


def test_the_largest_error_is_of_the_runs_that_came_back(scale_family, capsys):
    flags = {"refused": "-DREFUSED", "nothing": "-DWRITES_NOTHING", "crashes": "-DCRASHES"}
    folder = scale_family({name: [flag] for name, flag in flags.items()})
    main(["check", "--seeds", "1", "--catalog", folder])
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()[2:5]}
    assert rows["refused"].split()[5] == "–"
    assert " not finite " in rows["nothing"]
    assert float(rows["crashes"].split()[5]) < 1e-6  # of the workload on which it came back


def test_the_wavefronts_are_said_to_be_of_the_runs_that_they_are_of(scale_family, capsys):
    folder = scale_family({"scale": []})
    words = ["check", "scale", "--catalog", folder]
    main([*words, "--workload", "length 30", "--seed", "2"])
    assert "wavefronts and conflicts on length 30, seed 2\n" in capsys.readouterr().out
    main([*words, "--seeds", "1"])
    assert "wavefronts and conflicts on length 100, seed 0\n" in capsys.readouterr().out
    main([*words, "--contract"])
    assert "wavefronts and conflicts" not in capsys.readouterr().out.partition("modelled on the CPU")[2]


def test_a_name_of_cuda_that_the_runtime_lacks_is_said_to_be_lacking_there(scale_family, capsys):
    folder = scale_family({"cuda": ["-DCUDA_NAME"], "own": ["-DOWN_NAME"]})
    code, answer = checked_json(capsys, "--catalog", folder)
    assert code == 2
    first_lines = {entry["version"]: entry["error"].splitlines()[0] for entry in answer["failed"]}
    assert "(the CPU runtime has no __no_such_intrinsic: " in first_lines["cuda"]
    assert "no_such_function" in first_lines["own"]
    assert "CPU runtime" not in first_lines["own"]


def test_an_attention_version_that_takes_what_its_header_forbids_breaks_the_contract(tmp_path):
    v1 = catalog.load_catalog(ROOT / "kernels").by_id["v1"]
    text = v1.source.read_text()
    valid = "arguments_are_valid(q, k, v, o, batch, heads, len_q, len_kv, scale)"
    guard = f"if (!{valid}) return CUDA_INVALID_VALUE;"
    assert text.count(guard) == 1
    other_guard = "if (((uintptr_t)q & 7) || batch < 1 || heads < 1 || len_q < 1) return CUDA_INVALID_VALUE;"
    (tmp_path / "v1.cu").write_text(
        text.replace(guard, other_guard).replace("if (head_dim == 64)", "if (head_dim <= 64)")
    )
    version = dataclasses.replace(v1, source=tmp_path / "v1.cu")
    (check,) = cpu_check.check_versions([version], ATTENTION, (), contract=True)
    assert not check.as_expected
    passed = [defect.text.partition(":")[0] for defect in check.contract.defects]
    assert passed == [
        "q 8 bytes past a 16-byte boundary",
        *(f"{name} {by} bytes past a 16-byte boundary" for name in "kvo" for by in (2, 8)),
        "head_dim 0",
        "head_dim 32",
        "len_kv 0",
        "len_kv -1",
        "scale 0",
        "scale -0.125",
        "scale nan",
    ]
    codes = ATTENTION.check_workloads("fp8", (64,))[0]
    calls = [call.passed for call in ATTENTION.contract_calls(codes, (64,))]
    assert {"head_dim 128", "scales NULL"} <= set(calls)


def test_once_a_run_does_not_end_the_others_are_not_run_and_have_not_passed(
    scale_family, capsys, monkeypatch
):
    monkeypatch.setattr("profiler.emulator.emulator.TIME_LIMIT_S", 1.0)
    folder = scale_family({"endless": ["-DENDLESS"], "fine": []})
    begun = time.monotonic()
    code, answer = checked_json(capsys, "--jobs", "1", "--catalog", folder)
    assert time.monotonic() - begun < 30
    assert code == 1
    of_endless = [cell for cell in answer["cells"] if cell["version"] == "endless"]
    (timeout,) = [cell["findings"][0] for cell in of_endless]
    loop = next(number for number, line in enumerate(SCALE.splitlines(), 1) if "volatile int i" in line)
    assert (timeout["kind"], timeout["file"], timeout["line"]) == ("timeout", "scale.cu", loop)
    assert len(answer["not_run"]) == 8
    assert {cell["reason"] for cell in answer["not_run"]} == {"length 100, seed 0, did not end within 1 s"}
    assert sum(cell["passed"] for cell in answer["cells"] if cell["version"] == "fine") == 9
    main(["check", "endless", "--jobs", "1", "--catalog", folder])
    assert "not run: 8, since length 100, seed 0, did not end within 1 s" in capsys.readouterr().out


def test_results_of_a_run_say_what_was_not_run_and_which_calls_break_the_contract(scale_family, monkeypatch):
    monkeypatch.setattr("profiler.emulator.emulator.TIME_LIMIT_S", 1.0)
    lineage = catalog.load_catalog(
        Path(scale_family({"endless": ["-DENDLESS"], "open": ["-DKEEPS_NO_CONTRACT"]})) / "catalog.toml"
    )
    problem = sources.load_problem(lineage)
    statuses = {}
    for check in cpu_check.check_versions(lineage.versions, problem, seeds=[0], jobs=1):
        version = lineage.by_id[check.version]
        for result in cpu_results.modelled_results(lineage, version, check, problem):
            statuses[check.version, result.workload] = (result.status, result.reason)
            if (check.version, result.workload) == ("open", "length 7"):
                assert [found["kind"] for found in result.check["findings"]] == ["contract", "contract"]
                assert (result.check["passed"], result.check["as_expected"]) == (False, False)
    left_out = ("failed", "not run: length 100, seed 0, did not end within 1 s")
    assert statuses["endless", "length 100"][0] == "failed"
    assert statuses["endless", "length 7"] == statuses["endless", "length 30"] == left_out
    assert statuses["open", "length 7"] == (
        "wrong",
        "contract: x 4 bytes on: launched scale, and must return 1",
    )
    assert statuses["open", "length 30"] == ("done", None)


def test_lines_that_are_compiled_for_the_gpu_alone_are_named_and_no_failure(scale_family, capsys):
    folder = scale_family({"scale": []})
    code, answer = checked_json(capsys, "scale", "--seeds", "1", "--catalog", folder)
    assert code == 0
    text = SCALE.splitlines()
    own = [(lines["first"], lines["last"]) for lines in answer["gpu_only"] if lines["file"] == "scale.cu"]
    assert own == [
        (
            text.index('__device__ void of_the_gpu() { asm("nanosleep.u32 1;"); }') + 1,
            text.index("__device__ int of_one_pass;") + 1,
        )
    ]
    assert main(["check", "scale", "--seeds", "1", "--catalog", folder]) == 0
    shown = f"compiled only for the GPU, so not checked here: scale.cu:{own[0][0]}-{own[0][1]} (scale)"
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("workload.n, np.float32(0.5))", "workload.n)", "has 3: none for s"),
        ("workload.n, np.float32(0.5))", "0.5, workload.n)", "an int as argument 3 (n)"),
        ("workload.n, np.float32(0.5))", "workload.n, 0.5, 7)", "5: 7, an int is too many"),
        (
            "standard_normal(workload.n).astype(np.float32)",
            "standard_normal(workload.n)",
            "argument 1 (x) is read as float",
        ),
        ("        arguments = (x", "        x = x[::-1]\n        arguments = (x", "not contiguous"),
        ("(x, y, workload.n", "(x, y + 0, workload.n", "its output is none of its arguments"),
        ("x = np.random", "x = nowhere + np.random", "scale.py:34: case() of length 100 fails: NameError"),
        ("np.float32(0.5))", "'half')", "argument 4: str is neither"),
    ],
)
def test_a_case_that_the_function_cannot_be_called_with_is_an_error_in_a_line(
    scale_family, capsys, old, new, message
):
    folder = scale_family({"scale": []}, old, new)
    assert main(["check", "scale", "--seeds", "1", "--catalog", folder]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
    assert next(line for line in shown.splitlines() if message in line).startswith("profiler: ")


CASE = '    def case(self, workload, seed, stage="ALL"):\n'
FLOPS = "    def flops(self, workload):\n        return workload.n\n"
CONTRACT = '        return [ContractCall("x 4 bytes on", moved_bytes={0: 4}), ContractCall("n 0", {2: 0})]\n'
WORKLOADS = "        return [Length(100), Length(7), Length(30)]\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            CONTRACT,
            "        return {}['calls']\n",
            "scale.py:40: contract_calls() of length 7 fails: KeyError",
        ),
        pytest.param(
            CONTRACT,
            "        pass\n",
            "scale.py:39: contract_calls() of length 7 gives None, and must give",
            marks=pytest.mark.long,
        ),
        pytest.param(
            CONTRACT,
            "        return [ContractCall('far', {9: 1})]\n",
            "far: the case has no argument 9",
            marks=pytest.mark.long,
        ),
        pytest.param(
            CONTRACT,
            "        return [ContractCall('n', moved_bytes={2: 4})]\n",
            "argument 2 (from 0) is no array",
            marks=pytest.mark.long,
        ),
        (WORKLOADS, "        return 1 / 0\n", "scale.py:31: check_workloads() of fp32 with [1] fails: Zero"),
        pytest.param(
            WORKLOADS,
            "        pass\n",
            "scale.py:30: check_workloads() of fp32 with [1] gives None",
            marks=pytest.mark.long,
        ),
        pytest.param(
            WORKLOADS,
            "        return [7]\n",
            "gives a value of type int, and must give workloads",
            marks=pytest.mark.long,
        ),
        pytest.param(
            CASE,
            f"{CASE}        return None\n",
            "scale.py:33: case() of length 100 gives None, and must give a Case",
            marks=pytest.mark.long,
        ),
        (CASE, f"{CASE}        raise SystemExit(0)\n", "scale.py:34: case() of length 100 fails: SystemExit"),
        pytest.param(
            ", Tolerance(1e-6, 1e-6))",
            ", 1e-6)",
            "its tolerance is a value of type float",
            marks=pytest.mark.long,
        ),
        pytest.param(FLOPS, "", "scale.py:22: the problem has no flops()", marks=pytest.mark.long),
        (FLOPS, FLOPS.replace(".n", ".m"), "scale.py:46: flops() of length 100 fails: AttributeError"),
        pytest.param(
            FLOPS,
            "    def flops(self, workload):\n        pass\n",
            "gives None, and must give a finite number",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "    def stage_flags(self, stage):\n",
            "    def stage_flags(self, stage):\n        int('x')\n",
            "scale.py:43: stage_flags() of ALL fails: ValueError",
            marks=pytest.mark.long,
        ),
    ],
)
def test_what_fails_in_a_problem_is_an_error_in_a_line_that_names_it(scale_family, capsys, old, new, message):
    folder = scale_family({"scale": [], "again": []}, old, new)
    assert main(["check", "--seeds", "1", "--catalog", folder]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if not line.endswith("as expected")]
    assert line.startswith("profiler: ")
    assert message in line


@pytest.mark.parametrize("n", [100, 7])  # the first, on which the function is tried, and the contract's
def test_where_the_case_of_one_workload_fails_the_runs_on_the_others_are_shown(scale_family, capsys, n):
    old = "        arguments = (x"
    folder = scale_family({"scale": []}, old, f"        assert workload.n != {n}, 'not this'\n{old}")
    problem_error = f"scale.py:36: case() of length {n} fails: AssertionError: not this"
    code, answer = checked_json(capsys, "scale", "--seeds", "1", "--catalog", folder)
    assert code == 2
    assert answer["failed"] == [{"version": "scale", "error": problem_error}]
    assert [cell["workload"]["n"] for cell in answer["cells"]] == [m for m in (100, 7, 30) if m != n]
    assert all(cell["passed"] for cell in answer["cells"])
    assert main(["check", "scale", "--seeds", "1", "--catalog", folder]) == 2
    printed = capsys.readouterr().out
    assert f"{problem_error}; of the others: passed in all 2 runs" in printed
    assert "scale    good   not judged     2" in printed
