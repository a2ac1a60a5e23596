"""Machine code as lines: rebased and masked text, two builds of one source, reports without text."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.build import library, toolchain
from profiler.catalog import catalog
from profiler.errors import BuildFailed
from profiler.reports import read
from profiler.sass import alignment
from profiler.sass import listing as sass_listing
from profiler.sass.listing import MASKED_ADDRESS
from tests.reportfiles import is_made
from tests.toolchain import needs_sass

# A call of a subroutine, which is told where to return to, and a namespace whose name the path goes into.
KERNELS = """\
namespace {
__device__ __noinline__ float far(float x, int n) { for (int i = 0; i < n; ++i) x = x / (x + i); return x; }
__global__ void hidden(float* x, int n) { x[threadIdx.x] = far(x[threadIdx.x], n); }
}
extern "C" __global__ void plain(float* x, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int i = 0; i < n; ++i) x[i] += s[i % 64] / x[i + 1];
}
void go(float* x) { hidden<<<1, 32>>>(x, 3); plain<<<1, 32>>>(x, 3); }
"""


@pytest.fixture(scope="module")
def two_builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same source compiled in two folders, for two architectures each."""
    made = []
    for name in ("one", "another_folder"):
        folder = tmp_path_factory.mktemp(name)
        (folder / "k.cu").write_text(KERNELS)
        codes = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in ("80", "90a")]
        command = [toolchain.require_tool("nvcc").path, "-fatbin", "-lineinfo", *codes]
        subprocess.run([*command, "-o", folder / "k.fatbin", folder / "k.cu"], check=True)
        made.append(folder / "k.fatbin")
    return made[0], made[1]


@needs_sass
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_two_builds_of_one_source_differ_in_nothing(two_builds: tuple[Path, Path], arch: str) -> None:
    a, b = (sass_listing.disassemble(path, arch) for path in two_builds)
    assert a.functions != b.functions, "the anonymous namespace carries the folder"
    found = alignment.align(a, b)
    assert not found.different
    assert found.counts[alignment.EQUAL] == len(a.lines) == len(b.lines) > 400


@needs_sass
def test_two_builds_of_a_version_by_this_package_differ_in_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings = []
    for name in ("here", "somewhere_else_with_a_longer_name"):
        kernels = tmp_path / name / "kernels"
        shutil.copytree(catalog.load_catalog().folder, kernels)
        monkeypatch.setenv("PROFILER_BUILD", str(tmp_path / name / "build"))
        lineage = catalog.load_catalog(kernels)
        (made,) = library.build(lineage, lineage.pick(["v2b"]), ["sm_90a"])
        assert isinstance(made, library.BuiltLibrary)
        assert not made.cached
        listings.append(sass_listing.disassemble(made.library, "sm_90a"))
    found = alignment.align(*listings)
    assert not found.different
    assert found.counts[alignment.EQUAL] > 500


@needs_sass
def test_another_source_does_differ(two_builds: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(KERNELS.replace("s[i % 64] /", "s[i % 32] *"))
    command = [
        toolchain.require_tool("nvcc").path,
        "-cubin",
        "-arch=sm_80",
        "-lineinfo",
        "-o",
        tmp_path / "k.cubin",
    ]
    subprocess.run([*command, tmp_path / "k.cu"], check=True)
    a, b = sass_listing.disassemble(two_builds[0], "sm_80"), sass_listing.disassemble(tmp_path / "k.cubin")
    found = {
        a.functions[one.a].partition("hidden")[1]: one
        for one in alignment.align(a, b).functions
        if one.a is not None
    }
    assert {row.kind for row in found["hidden"].rows} == {alignment.EQUAL}
    assert len({row.kind for row in found[""].rows}) > 1


@needs_sass
def test_every_instruction_of_a_build_with_line_info_knows_its_line(two_builds: tuple[Path, Path]) -> None:
    listing = sass_listing.disassemble(two_builds[0], "sm_90a")
    assert all(line.source for line in listing.lines)
    stores = [line.source for line in listing.lines if line.opcode.startswith("STS")]
    assert {source and source[1] for source in stores} == {7}


@needs_sass
def test_a_binary_for_several_architectures_asks_which(two_builds: tuple[Path, Path]) -> None:
    with pytest.raises(BuildFailed, match=r"several architectures.*sm_80, sm_90a.*--arch"):
        sass_listing.disassemble(two_builds[0])
    with pytest.raises(BuildFailed, match="no sm_70 machine code"):
        sass_listing.disassemble(two_builds[0], "sm_70")


@needs_sass
def test_what_is_no_binary_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "k.cubin").write_bytes(b"not one")
    with pytest.raises(BuildFailed, match="cuobjdump cannot read"):
        sass_listing.disassemble(tmp_path / "k.cubin")


def test_a_return_address_is_masked_and_a_constant_of_its_value_is_not() -> None:
    texts = ["UMOV UR4, 0xb0", "IADD3 R1, R1, 0x1, RZ", *["NOP"] * 6, "MOV R6, 0xb0", "CALL.REL.NOINC 0xc0"]
    texts += ["NOP", "EXIT", "RET.REL.NODEC R6 0x0"]
    places = [(0, 16 * n) for n in range(len(texts))]
    lines = sass_listing._lines(places, texts, [None] * len(texts), sass_listing._Addresses([], places))
    assert [line.masked for line in lines if line.masked and MASKED_ADDRESS in line.masked] == [
        f"CALL.REL.NOINC {MASKED_ADDRESS}",
        f"RET.REL.NODEC R6 {MASKED_ADDRESS}",
    ], "the call is at 0x90, so that it returns to 0xa0"
    texts[8] = "MOV R6, 0xa0"
    lines = sass_listing._lines(places, texts, [None] * len(texts), sass_listing._Addresses([], places))
    assert lines[8].masked == f"MOV R6, {MASKED_ADDRESS}"
    assert lines[0].masked == "UMOV UR4, 0xb0"


def test_a_report_writes_branches_as_offsets_of_their_function(reports: Path) -> None:
    found = sass_listing.listing_of_launch(read.launch_detail(reports / "mistic" / "prof1.ncu-rep", 0))
    by_offset = {line.offset: line for line in found.lines}
    call, to, returns = (0x2120, 0x2210, 0x2110) if is_made(reports) else (0x390, 0x8F0, 0x380)
    assert by_offset[call].text == f"CALL.REL.NOINC {to:#06x}"
    assert by_offset[call].target == (0, to)
    assert re.fullmatch(rf"MOV R\d+, {MASKED_ADDRESS}", by_offset[returns].masked or "")
    branches = [line for line in found.lines if line.opcode in ("BRA", "BSSY")]
    assert branches
    assert all(
        line.target in found.index and line.masked and MASKED_ADDRESS in line.masked for line in branches
    )
    assert not any("0x1454" in (line.text or "") for line in found.lines), "the load address"


def test_a_label_beside_an_address_falls_away(public_reports: Path) -> None:
    found = sass_listing.listing_of_launch(
        read.launch_detail(public_reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep", 0)
    )
    assert found.lines[-1].masked == f"BRA {MASKED_ADDRESS}"
    assert found.lines[-1].target == (0, found.lines[-1].offset)


@pytest.mark.parametrize(("name", "ordinal"), [("mistic/prof1", 0), ("cutlass/report80", 2)])
def test_one_binary_loaded_elsewhere_differs_in_nothing(reports: Path, name: str, ordinal: int) -> None:
    """The same launch as if its code had been loaded 0x5a00 further on: every absolute address moves."""
    first = read.launch_detail(reports / f"{name}.ncu-rep", ordinal)
    shift = 0x5A00
    low, high = int(first.pcs[0]), int(first.pcs[-1])

    def moved(text: str | None) -> str | None:
        head, _, last = (text or "").rpartition("0x")
        known = (
            head and low <= int(last, 16) <= high if last and set(last) <= set("0123456789abcdef") else False
        )
        return f"{head}{int(last, 16) + shift:#x}" if known else text

    sass = tuple(map(moved, first.sass))
    assert sass != first.sass
    functions = tuple(start + shift for start in first.functions)
    second = replace(first, pcs=first.pcs + np.uint64(shift), functions=functions, sass=sass)
    found = alignment.align(sass_listing.listing_of_launch(first), sass_listing.listing_of_launch(second))
    assert not found.different
    assert found.counts[alignment.EQUAL] == len(first.pcs)


def test_a_report_without_text_keeps_its_places_functions_and_counts(reports: Path) -> None:
    detail = read.launch_detail(reports / "ncar" / "MW_Baseline.ncu-rep", 2)
    found = sass_listing.listing_of_launch(detail)
    assert not found.has_text
    assert found.has_sources
    assert [len(one) for one in found.ranges] == ([379, 61, 596] if is_made(reports) else [136, 88, 727])
    assert found.functions[2] == "compute_tendencies_x_279_gpu [3 of 3]"
    assert {line.opcode_class for line in found.lines} == {""}
    assert found.counts == detail.per_pc


def test_chosen_functions_keep_their_lines_and_counts(reports: Path) -> None:
    whole = sass_listing.listing_of_launch(read.launch_detail(reports / "ncar" / "MW_Baseline.ncu-rep", 2))
    kept = sass_listing.select_functions(whole, lambda name: name.endswith("[2 of 3]"))
    assert len(kept.functions) == 1
    at = whole.ranges[1]
    assert len(kept.lines) == len(at) == (61 if is_made(reports) else 88)
    executed = whole.counts["inst_executed"].values[at.start : at.stop]
    np.testing.assert_array_equal(kept.counts["inst_executed"].values, executed)
