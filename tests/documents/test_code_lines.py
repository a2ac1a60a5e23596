"""Static facts by line, of files of machine code, and as SARIF."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler.build.library import BuiltLibrary, FailedBuild, ResourceUsage, build
from profiler.build.occupancy import occupancy
from profiler.build.resources import FunctionResources, VersionResources
from profiler.build.toolchain import require_tool
from profiler.catalog.catalog import load_catalog
from profiler.cli import main
from profiler.documents.blocks import Notes
from profiler.documents.code_files import AskedLaunch, CodeFilesDocument, examine_files
from profiler.documents.code_lines import FunctionLines, LineFacts
from profiler.documents.sarif import sarif_log
from profiler.documents.static import StaticDocument, examine_versions
from profiler.errors import Exit, UnknownName
from profiler.model.dimensions import Grid
from profiler.sass.disassembly import extract_cubin
from profiler.sass.listing import FunctionCode, make_listing
from profiler.sass.live_registers import count_live_registers
from tests.documents.printed import assert_same_as_printed
from tests.documents.test_static import FAILED, LIBRARY
from tests.toolchain import needs_gxx, needs_sass

V2D_A = load_catalog().by_id["v2d_a"]
USAGE = ResourceUsage("_Z3v2dILi128EEvv", "sm_90a", 165, 8, 8, 0, 16, 1, "ptxas info")
FUNCTION = FunctionResources(
    V2D_A, "v2d", "main", 128, USAGE, None, 128, {128: 48 << 10}, occupancy("sm_90a", 165, 128, 48 << 10)
)


def lines_of(*facts: LineFacts) -> FunctionLines:
    code = FunctionCode("_Z3v2dILi128EEvv", ((0, "MOV R2, 0x1"), (16, "EXIT")), (("a.cu", 3), None))
    (live,) = count_live_registers(make_listing([code], "v2d_a"))
    return FunctionLines("v2d_a", "sm_90a", code.name, 128, live, facts, None)


def validate(log: dict[str, Any]) -> None:
    """What the schema of SARIF 2.1.0 asks for: required properties, and values out of its lists."""
    assert log["version"] == "2.1.0"
    assert set(log) <= {"$schema", "version", "runs", "inlineExternalProperties", "properties"}
    assert isinstance(log["runs"], list)
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        assert isinstance(driver["name"], str)
        assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(ids) == len(set(ids))
        for rule in driver["rules"]:
            assert rule["shortDescription"]["text"]
            assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
        for result in run["results"]:
            assert result["message"]["text"]
            assert result["level"] in ("none", "note", "warning", "error")
            assert ids[result["ruleIndex"]] == result["ruleId"]
            for location in result["locations"]:
                physical = location["physicalLocation"]
                uri = physical["artifactLocation"]["uri"]
                assert uri
                assert not uri.startswith("/"), "relative to the repository"
                assert "\\" not in uri
                assert physical.get("region", {}).get("startLine", 1) >= 1


def test_sarif_has_a_result_for_what_is_wrong_and_none_for_what_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("")
    facts = lines_of(
        LineFacts(str(tmp_path / "a.cu"), 3, 20, 0, 0, 64, 56),
        LineFacts(str(tmp_path / "a.cu"), 4, 20, 32, 16, 0, 0),
        LineFacts(str(tmp_path / "a.cu"), 5, 20, 32, 1, 64, 1),  # a little is no result
        LineFacts("/usr/include/header.h", 6, 20, 32, 31, 0, 0),  # nobody changes it
    )
    resources = VersionResources(V2D_A, LIBRARY, (FUNCTION,))
    log = sarif_log(StaticDocument((resources, FAILED), {}, (facts,)), tmp_path)
    validate(json.loads(json.dumps(log)))
    results = [(result["ruleId"], result["message"]["text"]) for result in log["runs"][0]["results"]]
    assert [rule for rule, _ in results] == ["does-not-compile", "bank-conflicts", "uncoalesced"]
    assert "64 wavefronts where 8 would do" in results[1][1]
    assert "32 sectors where 16 would do" in results[2][1]
    at_root = sarif_log(
        StaticDocument((resources,), {}), V2D_A.source.parent.parent if V2D_A.source else None
    )
    validate(at_root)
    found = {result["ruleId"]: result["message"]["text"] for result in at_root["runs"][0]["results"]}
    assert found["over-budget"].endswith("spill bytes 16 over 0")
    assert found["near-block"].endswith("37 fewer registers per thread give 4 blocks on an SM instead of 3")
    assert found["spills"].endswith(": 16 bytes")


def test_a_near_block_is_a_sentence_and_a_far_one_is_not() -> None:
    near = StaticDocument((VersionResources(V2D_A, LIBRARY, (FUNCTION,)),), {})
    words = "37 fewer registers per thread give 4 blocks on an SM instead of 3"
    assert f"v2d_a v2d d=128 sm_90a: {words}" in near.sentences
    (printed,) = json.loads(json.dumps(near.to_dict()))["versions"]
    assert printed["next_block"]["words"] == words
    far = replace(FUNCTION, usage=replace(USAGE, registers=255), occupancy=occupancy("sm_90a", 255, 256, 0))
    far = replace(far, threads=256, shared_bytes={128: 0})
    assert StaticDocument((VersionResources(V2D_A, LIBRARY, (far,)),), {}).near_blocks == []


@needs_sass
@needs_gxx
def test_lines_and_the_swizzle_of_a_version() -> None:
    document = examine_versions(["v2d_a"], arches=["sm_90a"], with_lines=True, with_swizzle=True)
    small = next(lines for lines in document.lines if lines.head_dim == 64)
    # 8 rows of an ldmatrix lie in one group of banks: of 8 wavefronts 7 are too many, wherever it stands.
    worst = max(small.lines, key=lambda line: line.conflicts or 0)
    assert worst.conflicts
    assert worst.wavefronts
    assert worst.wavefronts == 8 * (worst.wavefronts - worst.conflicts)
    assert sum(line.excess_sectors or 0 for line in small.lines) == 0
    printed = json.loads(json.dumps(document.to_dict()))["lines"]
    swizzles = {lines["head_dim"]: lines["swizzle"]["of_2_byte_elements"] for lines in printed}
    assert swizzles == {64: "Swizzle<3, 3, 3>", 128: "Swizzle<3, 3, 4>"}
    assert max(printed[0]["live_registers_by_instruction"]) == printed[0]["live_registers"]
    validate(sarif_log(document))


@pytest.fixture(scope="module")
def cubin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version's code for one architecture, in a folder as Triton keeps its own."""
    catalog = load_catalog()
    (built,) = build(catalog, catalog.pick(["v1"]), ["sm_90a"])
    assert isinstance(built, BuiltLibrary), FailedBuild
    folder = tmp_path_factory.mktemp("cache") / "ab12"
    folder.mkdir()
    whole = tmp_path_factory.mktemp("whole")
    return Path(shutil.copy(extract_cubin(built.library, "sm_90a", whole), folder / "kernel.cubin"))


@needs_sass
def test_a_cubin_says_what_it_can_and_names_what_it_cannot(
    cubin: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    document = examine_files([cubin])
    assert_same_as_printed(document, capsys, "static", str(cubin), "--sarif", str(tmp_path / "a.sarif"))
    validate(json.loads((tmp_path / "a.sarif").read_text("utf-8")))
    assert document.exit_code == Exit.PASS
    assert len(document.functions) == 2
    for function in document.functions:
        assert function.arch == "sm_90a"
        assert function.registers
        assert function.live_registers
        assert function.live_registers <= function.registers
        assert (function.stack_bytes, function.local_accesses) == (0, 0)
        assert function.threads == 64, "its __launch_bounds__"
        assert function.occupancy
        assert any("dynamic shared memory" in words for words in function.unknown)
        assert function.as_json()["spill_bytes"] is None


@needs_sass
def test_a_folder_is_searched_and_triton_says_warps_and_memory(cubin: Path) -> None:
    cubin.with_suffix(".json").write_text(json.dumps({"shared": 100 << 10, "num_warps": 8, "name": "k"}))
    document = examine_files([cubin.parent.parent])
    cubin.with_suffix(".json").unlink()
    function = document.functions[0]
    assert function.file.endswith("ab12/kernel.cubin")
    assert function.occupancy
    assert function.occupancy.limiters == ("shared memory",)
    assert function.occupancy.blocks == 2
    validate(sarif_log(document))


@pytest.fixture(scope="module")
def blackwell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small kernel for sm_100a, of 32 registers at most and 128 threads."""
    folder = tmp_path_factory.mktemp("blackwell")
    (folder / "k.cu").write_text(
        "__global__ void __launch_bounds__(128) attend(float* x) { x[threadIdx.x] *= 2; }\n"
    )
    nvcc = require_tool("nvcc")
    command = [nvcc.path, "-cubin", "-arch=sm_100a", "-o", folder / "k.cubin", folder / "k.cu"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"nvcc {nvcc.version} does not compile for sm_100a")
    return folder / "k.cubin"


@needs_sass
@pytest.mark.parametrize(
    ("columns", "blocks", "limiter"),
    [
        (0, 16, "warps"),
        (32, 16, "warps, tensor memory"),
        (64, 8, "tensor memory"),
        (128, 4, "tensor memory"),
        (256, 2, "tensor memory"),
        (512, 1, "tensor memory"),
    ],
)
def test_blocks_share_the_tensor_memory_of_an_sm(
    blackwell: Path, columns: int, blocks: int, limiter: str
) -> None:
    facts = {"shared": 1024, "num_warps": 4, "tmem_size": columns}
    blackwell.with_suffix(".json").write_text(json.dumps(facts))
    document = examine_files([blackwell])
    (row,) = (function.as_json() for function in document.functions)
    assert (row["blocks_per_sm"], row["limiter"], row["tensor_columns"]) == (blocks, limiter, columns)
    assert row["next_block"] is None, "fewer registers give no more blocks"
    assert document.exit_code == Exit.PASS


@needs_sass
@pytest.mark.parametrize(
    ("facts", "resource"),
    [
        ({"shared": 589_824, "num_warps": 4}, "shared memory"),
        ({"shared": (227 << 10) + 1, "num_warps": 4}, "shared memory"),
        ({"shared": 0, "num_warps": 4, "tmem_size": 1024}, "tensor memory"),
    ],
)
def test_a_kernel_that_fits_no_sm_does_not_pass(
    blackwell: Path, facts: dict[str, int], resource: str, capsys: pytest.CaptureFixture[str]
) -> None:
    blackwell.with_suffix(".json").write_text(json.dumps(facts))
    sarif = blackwell.with_name("a.sarif")
    assert main(["static", str(blackwell), "--json", "--sarif", str(sarif)]) == Exit.REGRESSION
    (row,) = json.loads(capsys.readouterr().out)["functions"]
    assert (row["blocks_per_sm"], row["occupancy_pct"], row["limiter"]) == (0, 0.0, resource)
    assert resource in row["fits_no_sm"]
    log = json.loads(sarif.read_text("utf-8"))
    validate(log)
    assert ("fits-no-sm", "error") in [(one["ruleId"], one["level"]) for one in log["runs"][0]["results"]]
    blackwell.with_suffix(".json").write_text(json.dumps({**facts, "shared": 227 << 10, "tmem_size": 512}))
    assert main(["static", str(blackwell)]) == Exit.PASS, "all that there is"


def test_a_version_that_fits_no_sm_is_over_every_budget() -> None:
    shared = {128: 589_824}
    function = replace(FUNCTION, shared_bytes=shared, occupancy=occupancy("sm_90a", 165, 128, 589_824))
    assert any("fits no SM" in words for words in function.over_budget)
    assert not any("fits no SM" in words for words in FUNCTION.over_budget)


def test_a_file_that_is_no_code_is_named_and_one_that_is_missing_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="there is no"):
        examine_files([tmp_path / "none.cubin"])
    document = examine_files([tmp_path])
    assert document.exit_code == Exit.UNUSABLE_INPUT
    assert "has no *.cubin" in document.sentences[0]


_STRANGER = """
__global__ void __launch_bounds__(256) columns(float *out) {
  __shared__ float tile[32][32];
  for (int i = 0; i < out[0]; ++i) {
    tile[threadIdx.x / 32][threadIdx.x % 32] = i;
    __syncthreads();
    out[i * 256 + threadIdx.x] = tile[threadIdx.x % 32][threadIdx.x / 32];
    __syncthreads();
  }
}
namespace other { template <int N> __global__ void gaps(float *out, const int *at) {
  out[threadIdx.x * N] = 1;
  out[at[threadIdx.x]] = 2;
} }
template __global__ void other::gaps<8>(float *, const int *);
template __global__ void other::gaps<1>(float *, const int *);
__global__ void array(float *out, const int *at) {
  float a[64];
  for (int i = 0; i < 64; ++i) a[i] = i * out[i];
  for (int k = 0; k < at[0]; ++k) a[at[k] & 63] += k;
  out[threadIdx.x] = a[at[threadIdx.x] & 63]; }
__global__ void __launch_bounds__(1024, 2) spills(float *out, const float *in, int n) {
  float a[40];
  for (int i = 0; i < 40; ++i) a[i] = in[threadIdx.x + i * 1024];
  for (int k = 0; k < n; ++k)
    for (int i = 0; i < 40; ++i) a[i] = a[i] * a[(i + 7) % 40] + in[k];
  for (int i = 0; i < 40; ++i) out[threadIdx.x + i * 1024] = a[i];
}
"""


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kernels that no catalogue knows, with source lines."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "k.cu").write_text(_STRANGER)
    nvcc = require_tool("nvcc").path
    command = [nvcc, "-cubin", "-lineinfo", "-arch=sm_90a", "-o", folder / "k.cubin", folder / "k.cu"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "k.cubin"


@needs_sass
def test_a_strangers_kernels_have_their_names_and_the_lines_that_cost_too_much(stranger: Path) -> None:
    document = examine_files([stranger], asked=AskedLaunch((128, 1, 1)))
    by_name = {function.name: function for function in document.functions}
    assert set(by_name) == {"columns", "gaps<8>", "gaps<1>", "array", "spills"}
    words = "columns k.cu:7: 1 load of shared memory in 1 loop: 32 wavefronts where 1 would do"
    assert words in document.sentences
    assert "gaps<8> k.cu:12: 1 store to global memory: 32 sectors where 4 would do" in document.sentences
    assert not [words for words in document.sentences if words.startswith("gaps<1> k.cu")]
    unknown = "what 1 access costs: they depend on values out of memory (gaps<8>)"
    assert f"not known: {unknown}" in document.sentences
    row = by_name["columns"].as_json()
    accesses = row["accesses"]
    assert isinstance(accesses, list)
    (load,) = (one for one in accesses if (one["space"], one["kind"]) == ("shared", "load"))
    assert (load["line"], load["loop_depth"], load["unit"]) == (7, 1, "wavefronts")
    assert (load["per_request_least"], load["excess_per_request"]) == (32, 31)
    log = sarif_log(document, stranger.parent)
    validate(log)
    found = {
        (one["ruleId"], one["locations"][0]["physicalLocation"]["region"]["startLine"])
        for one in log["runs"][0]["results"]
    }
    assert {("bank-conflicts", 7), ("uncoalesced", 12)} <= found


@needs_sass
def test_spills_of_a_strangers_kernel_are_counted_by_line_and_loop(stranger: Path) -> None:
    functions = {one.name: one for one in examine_files([stranger]).functions}
    function = functions["spills"]
    (array,) = {one.spills for one in functions["array"].local}
    assert array == 0, "where ptxas marks spills, what it does not mark is none"
    assert function.local
    assert function.spill_instructions == sum(one.places for one in function.local)
    inside = [one for one in function.local if one.loop_depth]
    assert {one.source[1] for one in inside if one.source} <= {23, 24, 25, 26}
    assert 0 < function.in_loops < function.spill_instructions
    assert f"{function.in_loops} of {function.spill_instructions} loads and stores of spills" in (
        function.local_words
    )
    assert all(4 * one.places <= one.bytes <= 16 * one.places for one in function.local)
    assert [one.loop_depth for one in function.local] == sorted(
        (one.loop_depth for one in function.local), reverse=True
    )


@needs_sass
def test_the_code_says_its_block_before_the_user_and_the_user_before_nobody(stranger: Path) -> None:
    def blocks(asked: AskedLaunch | None) -> dict[str, tuple[Grid | None, str]]:
        functions = examine_files([stranger], asked=asked).functions
        return {one.name: (one.block, one.block_from) for one in functions}

    assert blocks(None)["columns"] == ((256, 1, 1), ".maxntid")
    assert blocks(None)["gaps<8>"] == (None, "")
    assert blocks(AskedLaunch((32, 4, 1)))["columns"] == ((32, 4, 1), "--block")
    assert blocks(AskedLaunch((32, 4, 1)))["gaps<8>"] == ((32, 4, 1), "--block")
    document = examine_files([stranger], asked=AskedLaunch((512, 1, 1)))
    assert "columns: --block is not taken: its launch bounds are 256 threads" in document.sentences
    (function,) = (one for one in document.functions if one.name == "columns")
    assert function.block == (256, 1, 1)
    with_memory = examine_files([stranger], asked=AskedLaunch((256, 1, 1), 100 << 10)).functions
    assert {one.occupancy.blocks for one in with_memory if one.occupancy} == {2}
    assert not any("dynamic" in words for one in with_memory for words in one.unknown)


@needs_sass
def test_kernels_of_a_file_are_selected_by_name(stranger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = {one.name: one for one in examine_files([stranger]).functions}
    for pattern, names in (("GAPS", {"gaps<8>", "gaps<1>"}), ("gaps<8>", {"gaps<8>"}), ("s*s", {"spills"})):
        chosen = examine_files([stranger], kernel=pattern).functions
        assert {one.name for one in chosen} == names, pattern
        assert all(one == whole[one.name] for one in chosen)
    assert main(["static", str(stranger), "--kernel", "softmax"]) == Exit.UNUSABLE_INPUT
    error = capsys.readouterr().err
    assert "there is no kernel 'softmax'; there are array, columns, gaps<1> and 2 more" in error
    assert main(["static", "v1", "--kernel", "attend"]) == Exit.UNUSABLE_INPUT
    assert "--kernel is for files of machine code" in capsys.readouterr().err
    assert main(["static", "v1", "--check", "--block", "32"]) == Exit.UNUSABLE_INPUT
    assert "--block does not go with --check" in capsys.readouterr().err


@needs_sass
def test_kernels_have_the_types_of_their_parameters_where_a_demangler_is_installed(
    stranger: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mangled = "_ZN5other4gapsILi8EEEvPfPKi"
    whole = "void other::gaps<8>(float*, int const*)"
    named = "profiler.documents.code_files.signatures"
    monkeypatch.setattr(named, lambda names: {name: whole for name in names if name == mangled})
    document = examine_files([stranger])
    assert {one.name: one.signature for one in document.functions if one.signature} == {"gaps<8>": whole}
    assert main(["static", str(stranger)]) == Exit.PASS
    assert f"gaps<8>: {whole}" in capsys.readouterr().out
    monkeypatch.setattr(named, lambda names: {})
    assert main(["static", str(stranger), "--json"]) == Exit.PASS
    assert {row["signature"] for row in json.loads(capsys.readouterr().out)["functions"]} == {None}


@needs_sass
def test_the_occupancy_is_that_of_the_carveout(stranger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["static", str(stranger), "--kernel", "columns", "--shared", str(20 << 10)]
    found = {}
    for carveout in (None, "100", "8"):
        assert main([*arguments, *(["--carveout", carveout] if carveout else []), "--json"]) == Exit.PASS
        (row,) = json.loads(capsys.readouterr().out)["functions"]
        found[carveout] = (row["carveout_bytes"], row["blocks_per_sm"], row["limiter"])
    # 4 KB static, 20 KB dynamic and 1 KB of the system: 25 KB a block
    assert found[None] == (None, 8, "warps")
    assert found["100"] == (100 << 10, 4, "shared memory")
    assert found["8"] == (32 << 10, 1, "shared memory"), "a block must fit"
    assert main([*arguments, "--carveout", "8"]) == Exit.PASS
    assert "an SM has 32 KB of shared memory set, by --carveout" in capsys.readouterr().out
    assert main([*arguments, "--carveout", "99"]) == Exit.UNUSABLE_INPUT
    assert "sm_90a has no shared memory of 99 KB: it can be set to 0, 8, 16" in capsys.readouterr().err
    assert main(["static", "v1", "--carveout", "64"]) == Exit.UNUSABLE_INPUT
    assert "--carveout is for files of machine code" in capsys.readouterr().err


def test_kernels_of_a_report_are_selected_and_have_the_reports_own_signature(
    made_reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = made_reports / "ncar/MW_DivToMult.ncu-rep"
    whole = examine_files([report]).functions
    chosen = examine_files([report], kernel="set_halo").functions
    assert 0 < len(chosen) < len(whole)
    assert chosen == tuple(one for one in whole if "set_halo" in one.function)
    assert main(["static", str(report), "--kernel", "softmax"]) == Exit.UNUSABLE_INPUT
    assert "there are compute_tendencies_x_279_gpu" in capsys.readouterr().err
    long = replace(chosen[0], signature="k(" + "int, " * 200 + "int)")
    document = CodeFilesDocument((long,), {})
    notes = [str(one) for block in document.blocks() if isinstance(block, Notes) for one in block.lines]
    (short,) = (words for words in notes if "k(" in words)
    assert len(short) == 301
    assert short.endswith("…")


@needs_sass
def test_loops_of_a_file_cost_so_much_without_a_launch(
    stranger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["static", str(stranger), "--json"]) == Exit.PASS
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["functions"]}
    (loop,) = rows["columns"]["loops"]
    assert (loop["evidence"], loop["depth"], loop["is_hot"]) == ("modelled", 1, True)
    assert 4 <= loop["line"] <= 9
    moved = (loop["floating_point_operations"], loop["global_bytes"], loop["shared_bytes"])
    assert moved == (0, 2 * 128, 2 * 128), "out[0] and the tile, of 32 lanes"
    assert 0 < loop["cycles"] < loop["instructions"] * 4
    assert loop["stall_cycles"] >= loop["instructions"]
    assert rows["gaps<8>"]["loops"] == []
    inside = sum(one["spills"] for one in rows["spills"]["local_accesses_by_line"] if one["loop_depth"])
    assert sum(one["spill_instructions"] for one in rows["spills"]["loops"]) == inside > 0
    (hot,) = (one for one in rows["spills"]["loops"] if one["is_hot"])
    assert hot["floating_point_operations"] >= 40 * 64
    assert main(["static", str(stranger)]) == Exit.PASS
    text = capsys.readouterr().out
    assert "Loops, modelled: a pass of a warp" in text
    assert len([line for line in text.splitlines() if line.startswith("k.cubin  columns")]) == 2


@needs_sass
def test_a_swizzle_and_a_pad_clear_a_strangers_conflicts(
    stranger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["static", str(stranger), "--swizzle", "--json"]) == Exit.PASS
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["functions"]}
    swizzle, pad = rows["columns"]["swizzle"], rows["columns"]["pad"]
    assert swizzle["wavefronts_with_it"] == swizzle["ideal_wavefronts"] < swizzle["wavefronts"]
    assert (pad["row_bytes"], pad["pad_bytes"], pad["extra_shared_bytes"]) == (128, 4, 128)
    assert pad["wavefronts_with_it"] == swizzle["ideal_wavefronts"]
    assert rows["gaps<8>"]["swizzle"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--block", "0"], "no grid or block"), (["--block", "2,2,2,2"], "no grid or block")],
)
def test_a_block_that_is_none_is_refused(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["static", str(tmp_path / "a.cubin"), *arguments]) == Exit.UNUSABLE_INPUT
    assert words in capsys.readouterr().err
    assert main(["static", "v1", "--block", "128"]) == Exit.UNUSABLE_INPUT
    assert "--block is for files of machine code" in capsys.readouterr().err
