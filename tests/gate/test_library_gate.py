"""A library held against its lock, by the command: planted spills, what is accepted, what is new and gone."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

import profiler
from profiler.build.toolchain import require_tool
from profiler.cli import main
from profiler.errors import Exit
from profiler.gate import code_lock, followed_accesses
from profiler.gate.code_lock import AccessFacts, ReadFunction
from profiler.sass.binary_functions import read_functions_of
from tests.toolchain import needs_sass

# With two blocks of 1024 threads wanted on an SM a thread has 32 registers: `inner` spills in its innermost
# loop, `outside` where it loads and stores alone.
_SOURCE = r"""
extern "C" {
__global__ void __launch_bounds__(1024, BLOCKS) inner(const float *a, float *o, int n) {
  float x[24];
  for (int i = 0; i < 24; i++) x[i] = a[i * n + threadIdx.x];
  for (int m = 0; m < n; m++)
    for (int k = 0; k < m; k++) {
      float t = a[k + m];
#pragma unroll
      for (int i = 0; i < 24; i++) x[i] = x[i] * t + x[(i * 7) % 24];
    }
  for (int i = 0; i < 24; i++) o[i * n + threadIdx.x] = x[i];
}
__global__ void __launch_bounds__(1024, BLOCKS) outside(const float *a, float *o, int n) {
  float x[36], s = 0;
  for (int i = 0; i < 36; i++) x[i] = a[i * n + threadIdx.x];
  for (int k = 0; k < n; k++) s += a[k] * s;
  for (int i = 0; i < 36; i++) o[i * n + threadIdx.x] = x[i] + s;
}
__global__ void copy(float *x) { x[threadIdx.x] *= 2.f; }
#if BLOCKS == 1
__global__ void gone(float *x) { x[threadIdx.x] = 7.f; }
#endif
}
"""


def build_library(folder: Path, *, blocks: int) -> Path:
    """A shared library that wants so many blocks on an SM: one spills nothing, two have too few registers."""
    source, library = folder / "k.cu", folder / f"{blocks}.so"
    source.write_text(_SOURCE)
    nvcc = [str(require_tool("nvcc").path), "-shared", "-Xcompiler", "-fPIC", "-arch=sm_90a"]
    subprocess.run([*nvcc, f"-DBLOCKS={blocks}", "-o", str(library), str(source)], check=True)
    return library


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A build without spills, and one with a budget that is too small."""
    folder = tmp_path_factory.mktemp("library")
    return build_library(folder, blocks=1), build_library(folder, blocks=2)


@pytest.fixture
def workspace(tmp_path: Path, builds: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the good build of a library, pinned."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib.so").write_bytes(builds[0].read_bytes())
    assert main(["pin", "lib.so"]) == Exit.PASS
    return tmp_path


@needs_sass
def test_a_build_that_spills_in_its_innermost_loop_fails_and_one_that_spills_outside_is_unclear(
    workspace: Path, builds: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", "lib.so"]) == Exit.PASS
    assert "Functions: 4 unchanged" in capsys.readouterr().out
    (workspace / "lib.so").write_bytes(builds[1].read_bytes())
    assert main(["gate", "lib.so", "--json", "--out", "g.md", "--out", "g.xml"]) == Exit.REGRESSION
    answer = json.loads(capsys.readouterr().out)
    found = {(one["kernel"], one["concept"]): one for one in answer["findings"] if one["verdict"] != "better"}
    assert found["inner", "spills"]["outcome"] == "failed"
    assert found["inner", "spills"]["line"].startswith("spills: none → ")
    assert "in an innermost loop" in found["inner", "spills"]["line"]
    assert found["outside", "spills"]["outcome"] == "unjudged"
    assert "outside loops: how often they run is not known" in found["outside", "spills"]["line"]
    assert found["outside", "spills"]["next"] == "profiler pin lib.so --kernel outside --reason WHY"
    (gone,) = (one for one in answer["findings"] if one["check"] == "missing data")
    assert (gone["line"], gone["outcome"]) == ("1 function gone: gone", "unjudged")
    assert answer["summary"] == "Functions: 1 unchanged, 1 worse, 1 unclear, 1 gone"
    assert "`lib.so`" in (workspace / "g.md").read_text()
    cases = ElementTree.fromstring((workspace / "g.xml").read_text()).iter("testcase")
    names = [case.get("name", "") for case in cases if case.find("failure") is not None]
    assert names == ["facts · spills · inner · sm_90a · static"]
    assert main(["gate", "./", "--kernel", "copy"]) == Exit.PASS
    assert main(["gate", "lib.so", "--kernel", "copy"]) == Exit.PASS
    assert main(["gate", "lib.so", "--kernel", "outside"]) == Exit.UNJUDGED
    assert main(["gate", "lib.so", "--kernel", "outside", "--allow", "unclear"]) == Exit.PASS


@needs_sass
def test_what_is_accepted_keeps_its_reason_and_passes_until_its_code_changes(
    workspace: Path, builds: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    lock = workspace / "kernels.lock"
    before = lock.read_text().splitlines()
    (workspace / "lib.so").write_bytes(builds[1].read_bytes())
    assert main(["pin", "lib.so", "--kernel", "outside", "--reason", "two blocks are faster"]) == Exit.PASS
    changed = [a for a, b in zip(lock.read_text().splitlines(), before, strict=True) if a != b]
    assert [json.loads(line.rstrip(","))["name"] for line in changed] == ["outside"]
    capsys.readouterr()
    assert main(["gate", "lib.so", "--kernel", "outside"]) == Exit.PASS
    text = capsys.readouterr().out
    assert "Gate passed: 1 check acknowledged, 1 passed" in text
    assert "acknowledged: two blocks are faster" in text
    assert main(["gate", "lib.so", "--kernel", "inner"]) == Exit.REGRESSION
    assert main(["pin", "lib.so"]) == Exit.PASS  # of what is unchanged the reason stays
    assert json.loads(lock.read_text())["functions"][-1]["accepted"][0]["reason"] == "two blocks are faster"
    (workspace / "lib.so").write_bytes(builds[0].read_bytes())
    assert main(["pin", "lib.so"]) == Exit.PASS
    assert lock.read_text().splitlines() == before


@needs_sass
def test_sarif_names_the_line_of_the_lock(
    workspace: Path, builds: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (workspace / "lib.so").write_bytes(builds[1].read_bytes())
    assert main(["gate", "lib.so", "--out", "gate.sarif"]) == Exit.REGRESSION
    (run,) = json.loads((workspace / "gate.sarif").read_text())["runs"]
    lock = (workspace / "kernels.lock").read_text().splitlines()
    found = {}
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "kernels.lock"
        record = json.loads(lock[place["region"]["startLine"] - 1].rstrip(","))
        found[record["name"]] = (result["ruleId"], result["level"])
    assert found == {
        "inner": ("worse", "error"),
        "outside": ("unclear", "warning"),
        "gone": ("unclear", "warning"),
    }
    capsys.readouterr()
    assert main(["gate", str(builds[1]), "--baseline", str(builds[0]), "--sarif"]) == Exit.REGRESSION
    places = [
        result["locations"][0]["physicalLocation"]
        for result in json.loads(capsys.readouterr().out)["runs"][0]["results"]
    ]
    assert {place["artifactLocation"]["uri"] for place in places} == {"2.so"}


@needs_sass
def test_two_builds_are_compared_as_they_change_and_fail_where_the_gate_does(
    builds: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = map(str, builds)
    assert main(["compare", old, new, "--json"]) == Exit.PASS
    changes = {one["function"]: one["kind"] for one in json.loads(capsys.readouterr().out)["changes"]}
    assert changes == {"inner": "spills", "outside": "spills", "gone": "gone"}
    assert main(["compare", old, new, "--kernel", "inner", "--fail", "--json"]) == Exit.REGRESSION
    assert json.loads(capsys.readouterr().out)["headline"] == "Gate failed: 1 check failed, 1 passed"
    assert main(["compare", old, old]) == Exit.PASS
    assert main(["compare", old, new, "--pair", "a=b"]) == Exit.UNUSABLE_INPUT
    assert "--pair does not go with machine code" in capsys.readouterr().err


@needs_sass
def test_two_builds_are_judged_without_a_lock_and_the_library_has_the_same_answers(
    workspace: Path, builds: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = map(str, builds)
    (workspace / "kernels.lock").unlink()
    assert main(["gate", new, "--baseline", old]) == Exit.REGRESSION
    assert "next:" not in capsys.readouterr().out
    document = profiler.gate(new, baseline=old)
    assert document.exit_code is Exit.REGRESSION
    back = profiler.gate(old, baseline=new)
    assert back.exit_code is Exit.UNJUDGED
    assert "but it spills less" in back.to_markdown()
    assert main(["gate", new]) == Exit.UNUSABLE_INPUT
    assert "there is no lock kernels.lock: `profiler pin " in capsys.readouterr().err
    assert profiler.pin(old, lock="own.lock").sentences[0].startswith("4 functions pinned in own.lock")
    assert profiler.gate(new, lock="own.lock").exit_code is Exit.REGRESSION
    assert main(["gate", old, new]) == Exit.UNUSABLE_INPUT
    for option, value in (("--on", "duration"), ("--workload", "a"), ("--evidence", "measured")):
        assert main(["gate", new, "--baseline", old, option, value]) == Exit.UNUSABLE_INPUT
        assert f"{option} does not go with machine code" in capsys.readouterr().err
    assert main(["gate", new, "--baseline", old, "--evidence", "static"]) == Exit.REGRESSION
    assert main(["gate", new, "--lock", "own.lock", "--baseline", old]) == Exit.UNUSABLE_INPUT
    assert main(["gate", new, "--lock", "own.lock", "--kernel", "none_such"]) == Exit.UNUSABLE_INPUT
    assert main(["pin", new, "--lock", "no/folder.lock"]) == Exit.UNUSABLE_INPUT
    assert main(["pin", new, "--lock", "other.lock", "--kernel", "inner"]) == Exit.UNUSABLE_INPUT
    assert "pin all first" in capsys.readouterr().err


# One kernel for a rule, named by what has to be said of the machine code of NEW.
_RULES = r"""
#ifdef NEW
#define IF_NEW(a, b) a
#else
#define IF_NEW(a, b) b
#endif
extern "C" {
__global__ void memory_width(const float4 *a, float4 *o, int n) {
  float4 s = {};
#pragma unroll 1
  for (int i = threadIdx.x; i < n; i += 64) {
    IF_NEW(volatile const float *v = (const float *)(a + i);
           s.x += v[0]; s.y += v[1]; s.z += v[2]; s.w += v[3],
           float4 v = a[i]; s.x += v.x; s.y += v.y; s.z += v.z; s.w += v.w);
  }
  o[threadIdx.x] = s;
}
__global__ void matrix_instructions(const unsigned *a, float *o, int n) {
  float c[4] = {};
  for (int k = 0; k < n; k++) {
    unsigned x = a[k], y = a[k + 1];
    IF_NEW(c[0] += x * y,
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5}, {%4}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(x), "r"(y)));
  }
  for (int i = 0; i < 4; i++) o[4 * threadIdx.x + i] = c[i];
}
__global__ void __launch_bounds__(256) shared_memory(float *x) {
  __shared__ float t[IF_NEW(10000, 1000)];
  for (int i = threadIdx.x; i < 1000; i += 256) t[i] = x[i];
  __syncthreads();
  x[threadIdx.x] = t[999 - threadIdx.x];
}
__global__ void __launch_bounds__(256) registers(const float *a, float *o, int n) {
  float x[IF_NEW(96, 8)];
  for (int i = 0; i < IF_NEW(96, 8); i++) x[i] = a[i * n + threadIdx.x];
  for (int k = 0; k < n; k++)
#pragma unroll
    for (int i = 0; i < IF_NEW(96, 8); i++) x[i] = x[i] * a[k] + x[(i * 7) % IF_NEW(96, 8)];
  for (int i = 0; i < IF_NEW(96, 8); i++) o[i * n + threadIdx.x] = x[i];
}
__global__ void spills(const int *a, int *o) {
  int x[64];
  for (int i = 0; i < 64; i++) x[i] = a[i];
  IF_NEW(for (int i = 0; i < a[65]; i++) x[a[i] & 63] += i; o[0] = x[a[65] & 63], o[0] = x[5]);
}
__global__ void nothing_worse(float *x) { x[threadIdx.x] = IF_NEW(rsqrtf, __sinf)(x[threadIdx.x]); }
}
"""


@needs_sass
@pytest.mark.parametrize("arch", ["sm_80", "sm_120a"])
def test_each_rule_finds_what_is_planted_and_its_way_back_is_better(
    tmp_path: Path, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.cu").write_text(_RULES)
    nvcc = [str(require_tool("nvcc").path), f"-arch={arch}", "-cubin", "rules.cu"]
    for name, flags in (("old.cubin", []), ("new.cubin", ["-DNEW"])):
        subprocess.run([*nvcc, "-o", name, *flags], check=True)
    profiler.pin("old.cubin")
    worse, better = profiler.gate("new.cubin"), profiler.gate("old.cubin", baseline="new.cubin")
    concepts = {"memory width", "matrix instructions", "shared memory", "registers", "spills"}
    for document, outcome, verdict in ((worse, "failed", "worse"), (better, "passed", "better")):
        found = {
            one["concept"]
            for one in document.to_dict()["findings"]
            if one["kernel"] == (one["concept"] or "").replace(" ", "_")
            and (one["outcome"], one["verdict"]) == (outcome, verdict)
        }
        assert found == concepts, document.to_markdown()
    assert worse.exit_code is Exit.REGRESSION
    assert profiler.gate("new.cubin", kernel="nothing_worse").exit_code is Exit.PASS


_HIDDEN = r"""
namespace { __global__ void hidden(float *x) { x[threadIdx.x] *= 2.f; } }
static __global__ void own(float *x) { x[threadIdx.x] *= 3.f; }
template <class F> __global__ void apply(float *x, F f) { x[threadIdx.x] = f(x[threadIdx.x]); }
void launch(float *x) {
#ifdef MORE
  apply<<<1, 32>>>(x, [] __device__ (float y) { return y - 9.f; });
#endif
  hidden<<<1, 32>>>(x);
  own<<<1, 32>>>(x);
  apply<<<1, 32>>>(x, [] __device__ (float y) { return y + 1.f; });
}
"""


@needs_sass
def test_a_build_in_another_folder_and_with_a_lambda_before_the_others_is_as_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    for folder, flags in (("one", []), ("another", ["-DMORE"])):
        (tmp_path / folder).mkdir()
        source = tmp_path / folder / "hidden.cu"
        source.write_text(_HIDDEN)
        nvcc = [str(require_tool("nvcc").path), "-arch=sm_90", "-cubin", "-rdc=true", "--extended-lambda"]
        subprocess.run([*nvcc, *flags, "-o", str(source.with_suffix(".cubin")), str(source)], check=True)
        functions = read_functions_of(source.with_suffix(".cubin"))
        names.append({function.name for function in functions if function.is_kernel})
    assert {name[:8] for name in names[0] & names[1]} == {"_Z5apply"}  # of another lambda in each
    monkeypatch.chdir(tmp_path)
    profiler.pin("one/hidden.cubin")
    document = profiler.gate("another/hidden.cubin")
    assert document.report.summary == "Functions: 3 unchanged, 1 new"
    assert document.exit_code is Exit.PASS


@needs_sass
def test_dynamic_shared_memory_of_a_folder_of_triton_s_counts_for_the_blocks_that_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "cache" / "QWERTY"
    folder.mkdir(parents=True)
    source = tmp_path / "k.cu"
    source.write_text('extern "C" __global__ void attend(float *x) { x[threadIdx.x] *= 2.f; }')
    nvcc = [str(require_tool("nvcc").path), "-arch=sm_90a", "-cubin"]
    subprocess.run([*nvcc, "-o", str(folder / "attend.cubin"), str(source)], check=True)

    def write(shared: int) -> None:
        (folder / "attend.json").write_text(json.dumps({"shared": shared, "num_warps": 8}))

    write(49152)
    assert main(["pin", "cache/"]) == Exit.PASS
    (record,) = json.loads((tmp_path / "kernels.lock").read_text())["functions"]
    assert (record["dynamic_shared"], record["threads"]) == (49152, 256)
    assert main(["gate", "cache/"]) == Exit.PASS
    write(98304)
    capsys.readouterr()
    assert main(["gate", "cache/", "--json"]) == Exit.REGRESSION
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["kernel"], finding["concept"]) == ("attend", "shared memory")
    assert finding["line"] == (
        "shared memory: 49152 → 98304 B of a block; 2 blocks of 256 threads on an SM instead of 4"
    )
    (folder / "attend.json").unlink()
    assert main(["gate", "cache/"]) == Exit.UNJUDGED


_TURN = r"""
extern "C" {
__global__ void __launch_bounds__(256) turn(const float *a, float *o, int n) {
  __shared__ float t[32][PAD];
  int x = threadIdx.x & 31, y = threadIdx.x >> 5;
  float s = 0;
#pragma unroll 1
  for (int k = 0; k < n; k++) {
    for (int i = 0; i < 4; i++) t[y + 8 * i][x] = a[(k * 32 + y + 8 * i) * 32 + x];
    __syncthreads();
    for (int i = 0; i < 4; i++) s += t[x][y + 8 * i];
    __syncthreads();
  }
  o[threadIdx.x] = s;
}
__global__ void __launch_bounds__(256) scatter(const float *a, float *o, const int *at) {
  o[(PAD == 33 ? 1 : 4) * threadIdx.x] = a[at[threadIdx.x]];
}
__global__ void any(float *x) { x[threadIdx.x] *= 2.f; }
}
"""


@needs_sass
def test_a_pad_that_is_taken_away_gives_conflicts_in_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(_TURN)
    nvcc = [str(require_tool("nvcc").path), "-arch=sm_90a", "-cubin", "k.cu"]
    for name, pad in (("old.cubin", 33), ("new.cubin", 32)):
        subprocess.run([*nvcc, "-o", name, f"-DPAD={pad}"], check=True)
    followed: list[list[str]] = []
    follow = followed_accesses.follow_accesses

    def noted(functions: Sequence[ReadFunction]) -> list[AccessFacts | None]:
        followed.append([one.pinned.name for one in functions])
        return follow(functions)

    monkeypatch.setattr(followed_accesses, "follow_accesses", noted)
    assert main(["pin", "old.cubin"]) == Exit.PASS
    assert "cost, kernels: 1 (over 200 KB of code in a file, or the size" in capsys.readouterr().out
    lock = Path("kernels.lock").read_text()
    records = {one["name"]: one for one in json.loads(lock)["functions"]}
    assert "accesses" not in records["any"]
    assert records["turn"]["accesses"]["shared"] == [[0, 0, 0], [8, 8, 0]]
    assert records["scatter"]["accesses"]["unknown"] == [1]
    assert main(["pin", "old.cubin"]) == Exit.PASS
    assert Path("kernels.lock").read_text() == lock
    followed.clear()
    assert main(["gate", "old.cubin"]) == Exit.PASS
    assert not followed
    capsys.readouterr()
    assert main(["gate", "new.cubin", "--json"]) == Exit.REGRESSION
    found = {
        (one["kernel"], one["concept"]): (one["outcome"], one["line"])
        for one in json.loads(capsys.readouterr().out)["findings"]
    }
    assert found["turn", "bank conflicts"] == (
        "failed",
        "wavefronts in excess in 1 loop: 0 of 8 in 8 accesses → 124 of 132 in 8 accesses",
    )
    assert found["scatter", "excess sectors"][0] == "unjudged"
    assert followed == [["scatter", "turn"]]  # what changed, of the new build alone
    with zipfile.ZipFile("k.whl", "w") as wheel:
        wheel.write("new.cubin", "k/new.cubin")
    assert main(["pin", "k.whl", "--lock", "wheel.lock"]) == Exit.PASS
    assert main(["pin", "new.cubin", "--lock", "new.lock"]) == Exit.PASS
    assert Path("wheel.lock").read_text() == Path("new.lock").read_text()
    # A lock without them, of a large library or an older version, judges without them.
    monkeypatch.setattr(code_lock, "MOST_FOLLOWED_BYTES", 0)
    assert main(["pin", "old.cubin", "--lock", "large.lock"]) == Exit.PASS
    assert '"accesses"' not in Path("large.lock").read_text()
    assert main(["gate", "new.cubin", "--lock", "large.lock"]) == Exit.PASS
    assert main(["gate", "new.cubin", "--baseline", "old.cubin"]) == Exit.PASS
    assert main(["gate", "new.cubin"]) == Exit.REGRESSION  # the lock has them
