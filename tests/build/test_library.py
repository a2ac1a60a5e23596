"""Building versions: the command, the cache, what ptxas says, what a user sees when one does not compile."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from pathlib import Path

import pytest

from profiler.build import library, toolchain
from profiler.catalog import catalog
from profiler.cli import main
from profiler.errors import CannotJudge
from tests.conftest import ROOT
from tests.toolchain import needs_nvcc

SOURCE = """\
#include "mine.h"
template <int D> __global__ void scale(float* x) { x[threadIdx.x] *= D * FACTOR; }
extern "C" int attention_forward(float* x) { scale<64><<<1, 32>>>(x); return (int)cudaGetLastError(); }
"""
CATALOG = """
family = "mine"
problem = "profiler.catalog.attention:ATTENTION"
[[version]]
id = "one"
technique = "t"
file = "one.cu"
[[version]]
id = "bad"
technique = "t"
file = "bad.cu"
[[version]]
id = "new"
technique = "t"
file = "one.cu"
flags = ["-DFACTOR=3"]
arches = ["sm_90a"]
[[version]]
id = "python"
technique = "t"
callable = "math:fsum"
[[version]]
id = "later"
technique = "t"
state = "planned"
reason = "needs time"
"""
PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z3oneILi64EEvPf' for 'sm_80'
ptxas info    : Function properties for _Z3oneILi64EEvPf
    320 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 320 bytes cumulative stack size, 1536 bytes smem
ptxas info    : Compile time = 11.2 ms
ptxas info    : Compiling entry function '_Z3twov' for 'sm_90a'
ptxas info    : Function properties for _Z3twov
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> catalog.Catalog:
    """A small lineage of its own, with a cache of its own."""
    monkeypatch.setenv("PROFILER_BUILD", str(tmp_path / "cache"))
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "one.cu").write_text(SOURCE)
    (folder / "bad.cu").write_text("int f() { return nothing_of_that_name; }\n")
    (folder / "mine.h").write_text("#ifndef FACTOR\n#define FACTOR 2\n#endif\n")
    (folder / "catalog.toml").write_text(CATALOG)
    return catalog.load_catalog(folder)


def make(mine: catalog.Catalog, *names: str, arches: tuple[str, ...] = ("sm_80",)) -> list[object]:
    return list(library.build(mine, mine.pick(names), arches))


def made(mine: catalog.Catalog, name: str = "one") -> library.BuiltLibrary:
    (one,) = make(mine, name)
    assert isinstance(one, library.BuiltLibrary), one
    return one


# ---- the toolkit


def fake(folder: Path, name: str, version: str) -> Path:
    program = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V{version}'\n")
    program.chmod(0o755)
    return program


def test_cuda_home_wins_over_the_path_and_the_path_over_the_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "site" / "nvidia" / "cu13"
    fake(wheel / "bin", "nvtool", "3.0.0")
    monkeypatch.setattr(toolchain, "_wheel_roots", lambda: [wheel])
    monkeypatch.setenv("CUDA_HOME", "")
    monkeypatch.setenv("PATH", "/nowhere/at/all")
    found = toolchain.require_tool("nvtool")
    assert (found.version, found.wheel_root) == ("3.0.0", wheel)
    fake(tmp_path / "path", "nvtool", "2.0.0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}{os.pathsep}/usr/bin")
    found = toolchain.require_tool("nvtool")
    assert (found.version, found.wheel_root) == ("2.0.0", None)
    fake(tmp_path / "home" / "bin", "nvtool", "1.0.0")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert toolchain.require_tool("nvtool").version == "1.0.0"


def test_a_tool_that_is_nowhere_is_answered_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CannotJudge, match=r"no-such-tool is neither .*pip install -e '\.\[build\]'"):
        toolchain.require_tool("no-such-tool")


# ---- what the compiler is told, and what it tells


def test_the_command_asks_for_lines_resources_and_each_architecture(mine: catalog.Catalog) -> None:
    nvcc = toolchain.ToolkitProgram(Path("/wheel/bin/nvcc"), "13.0.88", Path("/wheel"))
    version = mine.by_id["new"]
    command = library.nvcc_command(mine, version, ["sm_80", "sm_90a"], ["-DONLY=1"], nvcc, Path("out.so"))
    assert command[0] == "/wheel/bin/nvcc"
    assert {"-shared", "-lineinfo", "-Xptxas=-v", "-std=c++17", "-O3", "-DFACTOR=3", "-DONLY=1"} < set(
        command
    )
    assert "-gencode=arch=compute_80,code=sm_80" in command
    assert "-gencode=arch=compute_90a,code=sm_90a" in command
    assert f"-I{mine.folder}" in command
    assert f"-I{ROOT / 'kernels'}" in command
    assert "-L/wheel/lib" in command, "the wheel's own profile does not find its libraries"
    assert command[-3:] == ["-o", "out.so", str(mine.folder / "one.cu")]


def test_ptxas_lines_become_a_record_a_function_and_architecture() -> None:
    one, two = library.parse_ptxas(PTXAS)
    assert (one.function, one.arch) == ("_Z3oneILi64EEvPf", "sm_80")
    assert (one.registers, one.barriers, one.static_shared_bytes, one.stack_bytes) == (255, 1, 1536, 320)
    assert (one.spill_store_bytes, one.spill_load_bytes, one.spill_bytes) == (12, 16, 28)
    assert one.line.startswith("320 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads; Used 255")
    assert (two.function, two.arch, two.registers, two.barriers) == ("_Z3twov", "sm_90a", 8, 0)
    assert (two.spill_bytes, two.stack_bytes, two.static_shared_bytes) == (0, 0, 0)


def test_a_version_is_built_only_for_what_it_supports(mine: catalog.Catalog) -> None:
    def targets(name: str, *arches: str) -> tuple[str, ...]:
        return library.target_arches(mine.by_id[name], arches or None)

    assert targets("one") == ("sm_80", "sm_89", "sm_90a")
    assert targets("one", "sm_89", "sm_75", "sm_89") == ("sm_89",)
    assert targets("new", "sm_89", "sm_90a") == ("sm_90a",)
    assert targets("python") == targets("later") == ()


# ---- the real compiler


@needs_nvcc
def test_a_library_is_built_once_and_found_again(mine: catalog.Catalog) -> None:
    first = made(mine)
    assert not first.cached
    assert ctypes.CDLL(str(first.library)).attention_forward
    assert [(one.arch, one.spill_bytes) for one in first.resources] == [("sm_80", 0)]
    built = first.library.stat().st_mtime_ns
    second = made(mine)
    assert second.cached
    assert second.library.stat().st_mtime_ns == built
    assert (second.library, second.resources) == (first.library, first.resources)
    assert (first.library.parent / "ptxas.txt").read_text().count("Compiling entry function") == 1


@needs_nvcc
def test_a_changed_header_or_flag_or_architecture_builds_anew(mine: catalog.Catalog) -> None:
    before = made(mine).library
    (mine.folder / "mine.h").write_text("#define FACTOR 5\n")
    after = made(mine)
    assert not after.cached
    assert after.library != before
    (flagged,) = library.build(mine, mine.pick(["one"]), ["sm_80"], extra_flags=["-DX=1"])
    (other,) = make(mine, "one", arches=("sm_89",))
    assert isinstance(flagged, library.BuiltLibrary)
    assert isinstance(other, library.BuiltLibrary)
    assert not flagged.cached
    assert not other.cached


@needs_nvcc
def test_a_library_that_was_deleted_is_built_again(mine: catalog.Catalog) -> None:
    made(mine).library.unlink()
    again = made(mine)
    assert not again.cached
    assert again.library.is_file()


@needs_nvcc
def test_one_that_does_not_compile_does_not_stop_the_others(
    mine: catalog.Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["static", "--build-only", "--catalog", str(mine.folder), "--arch", "sm_90a"])
    out, err = capsys.readouterr()
    assert code == 2
    assert "nothing_of_that_name" in err, "the compiler's own message"
    assert "profiler: bad does not compile: " in err
    assert "Traceback" not in err
    lines = {line.split()[0]: line for line in out.splitlines()[2:]}
    assert "does not compile" in lines["bad"]
    assert "kernel.so" in lines["one"]
    assert "kernel.so" in lines["new"]
    assert "a Python callable" in lines["python"]
    assert "planned: needs time" in lines["later"]
    assert list(lines) == ["one", "bad", "new", "python", "later"]


@needs_nvcc
def test_build_prints_json(mine: catalog.Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "static",
                "--build-only",
                "one",
                "later",
                "--catalog",
                str(mine.folder),
                "--arch",
                "sm_80",
                "--json",
            ]
        )
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    (one,) = document["versions"]
    assert (one["version"], one["built"], one["arches"], one["cached"]) == ("one", True, ["sm_80"], False)
    assert Path(one["library"]).is_file()
    assert one["compiler"].startswith("nvcc 1")
    assert document["not_built"] == {"later": "planned: needs time"}


def test_no_nvcc_exits_3_and_says_how_to_get_one(
    mine: catalog.Catalog, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(toolchain, "find_tool", lambda _name: None)
    assert main(["static", "--build-only", "one", "--catalog", str(mine.folder)]) == 3
    assert "nvcc is neither in $CUDA_HOME/bin, nor on the PATH, nor in a wheel" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing"], "no version nothing"),
        (["--arch", "90"], "'90' is no architecture"),
        (["one", "--stage", "EXP"], "mine has no stage EXP: it has QK, SOFTMAX, PV"),
    ],
)
def test_wrong_arguments_exit_2(
    mine: catalog.Catalog, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["static", "--build-only", *arguments, "--catalog", str(mine.folder)])
    except SystemExit as left:  # argparse's own
        code = int(str(left.code))
    assert code == 2
    assert says in capsys.readouterr().err


@needs_nvcc
def test_the_wheels_alone_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the wheels of the extra `build` are installed: no toolkit on the PATH and no CUDA_HOME."""
    if not any((root / "bin" / "nvcc").is_file() for root in toolchain._wheel_roots()):
        pytest.skip(f"nvcc is here, but not from the wheels: {toolchain.INSTALL_HINT}")
    monkeypatch.setenv("PROFILER_BUILD", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    assert sys.prefix in str(toolchain.require_tool("nvcc").path)
    ours = catalog.load_catalog(ROOT / "kernels")
    (one,) = library.build(ours, ours.pick(["v1"]), ["sm_90a"])
    assert isinstance(one, library.BuiltLibrary), one


@pytest.mark.parametrize("command", [["static", "--build-only"], ["static"]])
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["v2h"], "v2h is not built: planned: "),
        (["v1", "--arch", "sm_75"], "v1 is not built: only for sm_80"),
    ],
)
@needs_nvcc
def test_nothing_to_build_is_said_and_not_judged(
    command: list[str], arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, *arguments, "--catalog", str(ROOT / "kernels")]) == 3
    assert why in capsys.readouterr().err


def test_what_a_killed_build_left_is_removed_a_day_after(tmp_path: Path) -> None:
    old, new = tmp_path / ".making-old", tmp_path / ".making-new"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (time.time() - 2 * library.DAY_S,) * 2)
    library.remove_abandoned(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".making-new"]


def test_the_command_finds_the_folders_of_flags_beside_the_catalogue(mine: catalog.Catalog) -> None:
    text = CATALOG.replace('"-DFACTOR=3"', '"-DFACTOR=3", "-Igiven"')
    (mine.folder / "catalog.toml").write_text(text)
    there = catalog.load_catalog(mine.folder)
    nvcc = toolchain.ToolkitProgram(Path("/wheel/bin/nvcc"), "13.0.88", None)
    command = library.nvcc_command(there, there.by_id["new"], ["sm_90a"], [], nvcc, Path("out.so"))
    assert f"-I{mine.folder / 'given'}" in command
    assert "-Igiven" not in command


def test_a_compiler_that_hangs_costs_its_version_alone_and_leaves_nothing_running(
    mine: catalog.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell script stands in for nvcc: as nvcc does, it starts programs of its own."""
    hanging = mine.versions[0].id
    (tmp_path / "bin").mkdir()
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.write_text(
        "#!/bin/sh\n"
        'case "$*" in --version) echo "Cuda compilation tools, release 13.0, V13.0.88"; exit;; esac\n'
        'while [ "$1" != -o ]; do shift; done\n'
        f'case "$2" in */{hanging}/*) sleep 987654 & wait;; esac\n'
        'echo x > "$2"\n'
    )
    nvcc.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    limit_s = 4  # in which the shell script ends for the other versions, on a busy machine too
    made = {one.version: one for one in library.build(mine, mine.versions, ["sm_90a"], limit_s=limit_s)}
    failed = [name for name, one in made.items() if isinstance(one, library.FailedBuild)]
    assert failed == [hanging]
    assert len(made) > 1
    assert f"nvcc did not finish within {limit_s} s" in made[hanging].error
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"987654" in said(path)]


def said(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""
