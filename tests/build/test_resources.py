"""Taking versions apart: functions, roles, launches, occupancy, budgets, and what a missing tool leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from profiler.build import resources, toolchain
from profiler.build.resources import FunctionResources, VersionResources
from profiler.catalog import catalog
from profiler.cli import main
from profiler.documents.static import function_dict
from profiler.emulator import cpu_check
from profiler.errors import CannotJudge
from tests.toolchain import needs_gxx, needs_nvcc, needs_sass

ARCHES = ("sm_89", "sm_90a")
# Two launches a call, as a split version has; the second function has no template argument.
SOURCE = """\
#include "common.cuh"
template <int D>
__global__ void part(const __half* q, __half* o, int n) {
  DYN_SMEM(smem);
  __half* row = reinterpret_cast<__half*>(smem);
  row[threadIdx.x] = q[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) o[threadIdx.x] = row[threadIdx.x ^ 1];
}
__global__ void merge(__half* o) { o[threadIdx.x] = __float2half(0.f); }

extern "C" int attention_forward(const void* q, const void*, const void*, void* o, const float*, int, int,
                                 int, int, int head_dim, float, int, void* stream) {
  if (head_dim == 64)
    LAUNCH(part<64>, dim3(1), dim3(64), 1024, stream, (const __half*)q, (__half*)o, 64);
  else
    LAUNCH(part<128>, dim3(1), dim3(128), SHARED, stream, (const __half*)q, (__half*)o, 128);
  return LAUNCH(merge, dim3(1), dim3(32), 0, stream, (__half*)o);
}
"""
CATALOG = """
family = "mine"
problem = "profiler.catalog.attention:ATTENTION"
[[version]]
id = "split"
technique = "t"
file = "split.cu"
flags = ["-DSHARED=2048"]
roles = { part = "main", merge = "combine" }
[[version]]
id = "fat"
technique = "t"
file = "split.cu"
flags = ["-DSHARED=120000"]
budget = { registers = 200 }
[[version]]
id = "narrow"
technique = "t"
file = "split.cu"
flags = ["-DSHARED=2048"]
head_dims = [64]
budget = { registers = 2 }
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> catalog.Catalog:
    folder = tmp_path_factory.mktemp("mine")
    (folder / "split.cu").write_text(SOURCE)
    (folder / "catalog.toml").write_text(CATALOG)
    return catalog.load_catalog(folder)


def take(mine: catalog.Catalog, name: str, arches: Sequence[str] = ARCHES) -> VersionResources:
    (one,) = resources.version_resources(
        mine, mine.pick([name]), arches, launch_configs=cpu_check.launch_configs
    )
    assert isinstance(one, VersionResources), one
    return one


def function(one: VersionResources, arch: str, name: str, head_dim: int | None) -> FunctionResources:
    (found,) = [x for x in one.functions if (x.arch, x.name, x.head_dim) == (arch, name, head_dim)]
    return found


@needs_sass
@needs_gxx
def test_each_function_has_the_launch_that_the_cpu_saw(mine: catalog.Catalog) -> None:
    split = take(mine, "split")
    assert split.missing == ()
    assert [(one.arch, one.name, one.head_dim) for one in split.functions] == [
        ("sm_89", "merge", None),
        ("sm_89", "part", 64),
        ("sm_89", "part", 128),
        ("sm_90a", "merge", None),
        ("sm_90a", "part", 64),
        ("sm_90a", "part", 128),
    ]
    small, large = (function(split, "sm_90a", "part", size) for size in (64, 128))
    assert (small.threads, dict(small.shared_bytes)) == (64, {64: 1024})
    assert (large.threads, dict(large.shared_bytes)) == (128, {128: 2048})
    merge = function(split, "sm_90a", "merge", None)
    assert (merge.threads, dict(merge.shared_bytes)) == (32, {64: 0, 128: 0})
    assert {one.name: one.role for one in split.functions} == {"part": "main", "merge": "combine"}
    assert small.code is not None
    assert small.code.classes["BAR"] == 1
    assert merge.code is not None
    assert merge.code.classes["BAR"] == 0


@needs_sass
@needs_gxx
def test_occupancy_is_that_of_the_launch_on_each_architecture(mine: catalog.Catalog) -> None:
    fat = take(mine, "fat")
    on_ada, on_hopper = (function(fat, arch, "part", 128) for arch in ("sm_89", "sm_90a"))
    assert on_ada.occupancy is not None
    assert on_hopper.occupancy is not None
    assert (on_ada.occupancy.blocks, on_hopper.occupancy.blocks) == (0, 1)
    assert on_hopper.occupancy.limiters == ("shared memory",)
    assert on_hopper.occupancy.pct == pytest.approx(100 * 4 / 64)
    assert on_hopper.over_budget == ("shared bytes 120000 over 101376",)
    assert function(fat, "sm_90a", "part", 64).over_budget == ()


@needs_sass
@needs_gxx
def test_functions_of_a_head_dim_that_the_version_does_not_take_are_left_out(mine: catalog.Catalog) -> None:
    narrow = take(mine, "narrow")
    assert {one.head_dim for one in narrow.functions} == {None, 64}
    assert all(one.over_budget[0].startswith("registers ") for one in narrow.functions)
    assert {one.role for one in narrow.functions} == {"part", "merge"}, "no roles are given: the names"


@needs_sass
@needs_gxx
def test_launches_are_looked_at_once(mine: catalog.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    first = take(mine, "split")
    monkeypatch.setattr(cpu_check, "launch_configs", lambda *_: pytest.fail("the CPU ran it again"))
    assert take(mine, "split").functions == first.functions


@needs_nvcc
@needs_gxx
def test_without_a_disassembler_the_rest_is_told(
    mine: catalog.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = toolchain.find_tool
    monkeypatch.setattr(toolchain, "find_tool", lambda name: real(name) if name == "nvcc" else None)
    split = take(mine, "split", ["sm_86"])
    assert all(one.code is None and one.occupancy is not None for one in split.functions)
    assert "split: machine code unknown: cuobjdump is neither in" in split.missing[0]
    document = function_dict(split.functions[0])
    assert document["opcodes"] is document["code_bytes"] is None


@needs_sass
def test_without_gxx_shared_memory_and_occupancy_are_unknown_and_cannot_pass(
    mine: catalog.Catalog, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise CannotJudge("there is no g++")

    monkeypatch.setattr(cpu_check, "launch_configs", refuse)
    split = take(mine, "split", ["sm_80"])
    one = function(split, "sm_80", "part", 64)
    assert one.occupancy is None
    assert one.over_budget == ()
    assert one.unjudged == ("shared bytes unknown, budget 101376",)
    assert function_dict(one)["shared_bytes"] == {"64": None}
    code = main(["static", "split", "--catalog", str(mine.folder), "--arch", "sm_80", "--json"])
    out, err = capsys.readouterr()
    assert code == 3
    assert "block size and shared memory unknown: there is no g++" in err
    assert {x["occupancy_pct"] for x in json.loads(out)["versions"]} == {None}


@needs_sass
@needs_gxx
def test_static_exits_1_over_budget_and_0_within(
    mine: catalog.Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--catalog", str(mine.folder), "--arch", ",".join(ARCHES)]
    assert main(["static", "split", *arguments]) == 0
    assert "over 101376" not in capsys.readouterr().out
    assert main(["static", *arguments]) == 1
    table = capsys.readouterr().out
    assert "shared bytes 120000 over 101376" in table
    assert "registers" in table


@needs_sass
@needs_gxx
def test_static_prints_the_agreed_json(mine: catalog.Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["static", "split", "--catalog", str(mine.folder), "--arch", ",".join(ARCHES), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["versions"]
    assert [row["arch"] for row in rows] == ["sm_89"] * 3 + ["sm_90a"] * 3
    row = next(row for row in rows if (row["arch"], row["head_dim"]) == ("sm_90a", 128))
    assert (row["version"], row["arch"], row["function"]) == ("split", "sm_90a", "part")
    assert (row["spill_bytes"], row["stack_bytes"], row["shared_bytes"]) == (0, 0, {"128": 2048})
    assert row["opcodes"]["BAR"] == 1
    assert row["registers"] > 0
    assert row["occupancy_pct"] == 100
    assert "warps" in row["limiter"]
    assert "bytes stack frame" in row["ptxas"]


def test_static_without_nvcc_exits_3(mine: catalog.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_tool", lambda _name: None)
    assert main(["static", "split", "--catalog", str(mine.folder)]) == 3


@needs_nvcc
@needs_gxx
def test_a_version_that_does_not_compile_exits_2_and_the_others_are_told(
    mine: catalog.Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "split.cu").write_text(SOURCE)
    (tmp_path / "catalog.toml").write_text(CATALOG.replace('"-DSHARED=2048"', '"-DSHARED=nonsense"', 1))
    code = main(["static", "split", "narrow", "--catalog", str(tmp_path), "--arch", ",".join(ARCHES)])
    out, err = capsys.readouterr()
    assert code == 2
    assert "split does not compile" in err
    assert "narrow" in out


def test_a_budget_names_what_exceeds_it_and_what_nobody_knows() -> None:
    facts = {"registers": 80, "shared_bytes": None, "spill_bytes": 0, "stack_bytes": 8}
    limits = {"registers": 72, "shared_bytes": 100, "spill_bytes": 0, "stack_bytes": None}
    assert resources.over_budget(facts, limits) == [
        ("registers 80 over 72", True),
        ("shared bytes unknown, budget 100", False),
    ]


def test_at_the_limit_is_within_budget() -> None:
    assert resources.over_budget({"registers": 72}, {"registers": 72}) == []
