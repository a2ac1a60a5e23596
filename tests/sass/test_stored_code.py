"""Machine code as a run keeps it: the file, whose code is meant, and `profiler sass` without any tool."""

from __future__ import annotations

import json
import lzma
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from profiler.build import toolchain
from profiler.bundles import bundle, location
from profiler.bundles.run import COLLECT, Attachment, Facts, Result, Run
from profiler.cli import main
from profiler.errors import BadBundle
from profiler.evidence.gpu_arch import newest_running_on
from profiler.evidence.values import Evidence, Value
from profiler.sass import bundle_file, stored_code
from profiler.sass.bundle_file import MachineCode
from profiler.sass.listing import FunctionCode
from profiler.sass.stored_code import CodeNotStored
from profiler.store.begin_import import import_paths
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from tests.conftest import ROOT

NAME = "_Z1kILi64EEvPf"
CODE = (
    FunctionCode(
        NAME,
        ((0, "LDC R1, c[0x0][0x28]"), (16, "@P0 BRA 0x10"), (32, "EXIT"), (48, "BRA 0x30")),
        (("/home/me/kernels/k.cu", 3), ("/usr/include/mma.hpp", 9), ("/usr/include/mma.hpp", 9), None),
    ),
)
Caught = pytest.CaptureFixture[str]


def packed(document: Any) -> bytes:
    return lzma.compress(json.dumps(document).encode())


def run_of(
    day: int,
    *,
    first_instruction: str | None = "LDC R1, c[0x0][0x28]",
    source: str = "aa",
    arch: str = "sm_80",
    version: str = "a",
) -> tuple[Run, dict[str, bytes]]:
    """A dissected version with the machine code of one function that begins with an instruction."""
    files = {"kernels/k.cu": ("source", b"// one\n// two\nx[0] = 1;\n")}
    if first_instruction is not None:
        instructions = ((0, first_instruction), *CODE[0].instructions[1:])
        code = MachineCode(version, f"nvcc 13.{day}", {arch: (replace(CODE[0], instructions=instructions),)})
        files[bundle_file.code_path(version)] = (
            bundle_file.SASS,
            bundle_file.pack_code(code, Path("/home/me/kernels")),
        )
    facts = Facts(Evidence.STATIC, "main", {"static__registers": Value(40, "register/thread")}, target=arch)
    created = datetime(2026, 1, day, tzinfo=UTC)
    attached = tuple(
        Attachment(kind, path.partition("/")[2], sha256(content).hexdigest(), len(content), path)
        for path, (kind, content) in files.items()
    )
    results = (Result("mine", version, "head dim 64", source_sha256=source, facts=(facts,)),)
    run = Run(f"run-{day}-{version}", COLLECT, created, {}, results, files=attached)
    return run, {path: content for path, (_, content) in files.items()}


def sealed(data: Path, run: Run, contents: dict[str, bytes]) -> None:
    root = location.open_root(str(data))
    paths = {}
    for number, (path, content) in enumerate(contents.items()):
        paths[path] = data / f"{run.run_id}-{number}"
        paths[path].write_bytes(content)
    with bundle.importing(root):
        bundle.seal(root, run, paths)


def store_of(data: Path, *runs: tuple[Run, dict[str, bytes]]) -> tuple[location.Root, Store]:
    data.mkdir(exist_ok=True)
    for run in runs:
        sealed(data, *run)
    return location.open_root(str(data)), open_store(str(data))


# ---- the file


def test_the_code_comes_back_as_it_was_with_its_sources_named_as_the_bundle_names_them() -> None:
    content = bundle_file.pack_code(MachineCode("a", "nvcc 13", {"sm_80": CODE}), Path("/home/me/kernels"))
    assert b"/home" not in lzma.decompress(content)
    code = bundle_file.unpack_code(content, "here")
    (function,) = code.functions["sm_80"]
    assert function.instructions == CODE[0].instructions
    assert function.sources == (("k.cu", 3), ("mma.hpp", 9), ("mma.hpp", 9), None)
    assert (code.version, code.compiler) == ("a", "nvcc 13")


def test_the_same_code_gives_the_same_bytes_wherever_its_sources_lie() -> None:
    moved = tuple(
        replace(
            function,
            sources=tuple(
                source and (source[0].replace("/home/me", "/tmp/elsewhere"), source[1])
                for source in function.sources
            ),
        )
        for function in CODE
    )
    a = bundle_file.pack_code(MachineCode("a", "nvcc 13", {"sm_80": CODE}), Path("/home/me/kernels"))
    b = bundle_file.pack_code(MachineCode("a", "nvcc 13", {"sm_80": moved}), Path("/tmp/elsewhere/kernels"))
    assert a == b


def test_offsets_that_leave_a_gap_are_kept() -> None:
    code = (FunctionCode(NAME, ((0, "NOP"), (64, "EXIT")), (None, None)),)
    content = bundle_file.pack_code(MachineCode("a", "nvcc 13", {"sm_80": code}), Path("/"))
    assert bundle_file.unpack_code(content, "here").functions["sm_80"] == code


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no xz",
        packed({"version": "a"})[:-9],
        packed([]),
        packed({"version": "a", "compiler": "c", "files": [], "architectures": {"sm_80": [{"name": "k"}]}}),
        packed(
            {
                "version": "a",
                "compiler": "c",
                "files": [],
                "architectures": {"sm_80": [{"name": "k", "sass": "NOP\nEXIT", "lines": [[1]]}]},
            }
        ),
        packed(
            {
                "version": "a",
                "compiler": "c",
                "files": [],
                "architectures": {"sm_80": [{"name": "k", "sass": "NOP", "lines": [[1, 7, 1]]}]},
            }
        ),
    ],
)
def test_a_file_that_holds_no_machine_code_is_refused_in_one_line(content: bytes) -> None:
    with pytest.raises(BadBundle, match=r"^here holds no machine code that can be read \([^\n]*\)$"):
        bundle_file.unpack_code(content, "here")


# ---- whose code is meant


def test_the_newest_run_that_keeps_code_is_meant_and_named(tmp_path: Path) -> None:
    root, store = store_of(
        tmp_path / "data", run_of(1, first_instruction="NOP"), run_of(2, first_instruction="YIELD")
    )
    code = stored_code.find_code(root, store, "mine", "a", "sm_80")
    assert (code.run_id, code.compiler, code.listing.lines[0].text) == ("run-2-a", "nvcc 13.2", "YIELD")
    assert code.listing.texts == {"k.cu": "// one\n// two\nx[0] = 1;\n"}
    assert code.listing.counts == {}, "nothing was run: no count, which is not 0"
    assert stored_code.find_code(root, store, "mine", "a", "sm_80", "run-1-a").listing.lines[0].text == "NOP"


def test_an_older_run_of_the_same_source_stands_in_and_one_of_another_source_does_not(
    tmp_path: Path,
) -> None:
    root, store = store_of(tmp_path / "same", run_of(1), run_of(2, first_instruction=None))
    assert stored_code.find_code(root, store, "mine", "a", "sm_80").run_id == "run-1-a"
    root, store = store_of(tmp_path / "other", run_of(1, source="bb"), run_of(2, first_instruction=None))
    with pytest.raises(
        CodeNotStored, match=r"not kept in run run-2-a: `profiler sass mine/a --arch sm_80` builds"
    ):
        stored_code.find_code(root, store, "mine", "a", "sm_80")


def test_an_architecture_that_nobody_compiled_for_names_those_there_are(tmp_path: Path) -> None:
    root, store = store_of(tmp_path / "data", run_of(1), run_of(2, arch="sm_90a"))
    with pytest.raises(CodeNotStored, match="mine/a was compiled for sm_80, sm_90a, not for sm_75"):
        stored_code.find_code(root, store, "mine", "a", "sm_75")
    assert stored_code.find_code(root, store, "mine", "a", "sm_80").run_id == "run-1-a"
    assert stored_code.common_architecture(store, [("mine", "a")]) == "sm_90a"


@pytest.mark.parametrize(
    ("capability", "arches", "runs"),
    [
        ("8.0", ["sm_80", "sm_89", "sm_90a"], "sm_80"),
        ("8.6", ["sm_75", "sm_80", "sm_89"], "sm_80"),
        ("8.9", ["sm_80", "sm_89"], "sm_89"),
        ("9.0", ["sm_80", "sm_90", "sm_90a"], "sm_90a"),
        ("10.3", ["sm_90a", "sm_100", "sm_100a", "sm_120"], "sm_100"),
        ("12.0", ["sm_80", "sm_100"], None),
    ],
)
def test_code_runs_on_gpus_of_its_major_number_and_special_code_on_one(
    capability: str, arches: list[str], runs: str | None
) -> None:
    assert newest_running_on(capability, arches) == runs


def test_a_file_that_was_changed_after_sealing_is_no_code(tmp_path: Path) -> None:
    root, store = store_of(tmp_path / "data", run_of(1))
    path = tmp_path / "data" / "runs" / "run-1-a" / bundle_file.code_path("a")
    path.write_bytes(bundle_file.pack_code(MachineCode("a", "nvcc 13", {"sm_80": CODE}), Path("/")))
    with pytest.raises(BadBundle, match=r"sass/a\.json\.xz is not the file whose size and sha256"):
        stored_code.find_code(root, store, "mine", "a", "sm_80")
    path.unlink()
    with pytest.raises(BadBundle, match=r"cannot read its sass/a\.json\.xz"):
        stored_code.find_code(root, store, "mine", "a", "sm_80")


@pytest.mark.slow
def test_a_bundle_from_elsewhere_whose_code_is_damaged_is_not_imported(tmp_path: Path) -> None:
    store_of(tmp_path / "from", run_of(1))
    folder = tmp_path / "from" / "runs" / "run-1-a"
    (folder / bundle_file.code_path("a")).write_bytes(b"something else")
    done = import_paths([folder], data=str(tmp_path / "to"))
    ((_, why),) = done.refused
    assert "sass/a.json.xz is not the file" in why


# ---- the command, with no compiler and no disassembler


@pytest.fixture
def clone(tmp_path: Path, committed_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The committed data on a machine without nvcc, cuobjdump and nvdisasm."""
    data = Path(shutil.copytree(committed_data, tmp_path / "data"))
    monkeypatch.setenv("PROFILER_DATA", str(data))
    monkeypatch.setenv("PROFILER_BUILD", str(tmp_path / "build"))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    monkeypatch.setattr(toolchain, "find_tool", lambda _name: None)
    return data


def told(capsys: Caught, *arguments: str) -> tuple[int, str]:
    code = main(["sass", *arguments])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.mark.usefixtures("clone")
class TestWithoutTools:
    @pytest.mark.slow
    def test_a_clone_prints_the_code_of_a_version_and_says_where_it_is_from(self, capsys: Caught) -> None:
        code, text = told(capsys, "v2d_b", "--kernel", "Li64")
        assert code == 0
        assert "static: sm_90a, nvcc 13." in text
        assert "kept in run " in text
        assert "nothing was run, so no samples and no counts" in text
        assert "HMMA.16816.F32" in text
        assert "samples" not in text.partition("\nat ")[2], "no column of counts"

    @pytest.mark.slow
    def test_two_versions_are_aligned_for_the_architecture_asked_for(self, capsys: Caught) -> None:
        assert main(["sass", "v2d_a", "attention/v2d_b", "--arch", "sm_80", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["different"]
        assert document["moved"] == []
        for side in "ab":
            origin = document["origins"][side]
            assert (origin["evidence"], origin["arch"]) == ("static", "sm_80")
            assert origin["run"]
        assert len(document["functions"]) == 2

    @pytest.mark.slow
    def test_counts_that_nobody_took_are_null_and_never_zero(self, capsys: Caught) -> None:
        assert main(["sass", "v2d_b", "--json", "--hot", "5"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["evidence"] == "static"
        assert {place["samples"] for place in document["places"]} == {None}
        assert {place["executed"] for place in document["places"]} == {None}

    @pytest.mark.slow
    def test_source_lines_are_read_from_the_run(self, capsys: Caught) -> None:
        code, text = told(capsys, "v2d_b", "--source")
        assert code == 0
        line = next(line for line in text.splitlines() if line.startswith("v2d.cu:"))
        number = int(line.partition(":")[2].split()[0])
        source = (ROOT / "kernels" / "v2d.cu").read_text().splitlines()[number - 1]
        assert source.strip() in line

    @pytest.mark.slow
    def test_code_of_sources_that_have_changed_here_says_so(self, tmp_path: Path, capsys: Caught) -> None:
        own = tmp_path / "kernels"
        shutil.copytree(ROOT / "kernels", own)
        _, text = told(capsys, "v2d_b", "--catalog", str(own), "--hot", "1")
        assert "the sources here" not in text
        with (own / "v2d.cu").open("a") as file:
            file.write("// edited\n")
        code, text = told(capsys, "v2d_b", "--catalog", str(own), "--hot", "1")
        assert code == 0
        assert "the sources here are not those of that run" in text

    @pytest.mark.slow
    def test_what_is_not_kept_names_the_command_and_the_missing_tool(
        self, clone: Path, capsys: Caught
    ) -> None:
        for path in (clone / "runs").glob("*/run.json"):
            body = json.loads(path.read_text())
            body["files"] = [file for file in body["files"] if file["kind"] != bundle_file.SASS]
            path.write_text(json.dumps(body))
        code, text = told(capsys, "v2d_b")
        assert code == 3
        assert "is not kept in run " in text
        assert "`profiler sass attention/v2d_b --arch sm_90a` builds it" in text
        assert "cannot be built here: nvcc is neither in" in text

    def test_asked_to_build_it_does_not_take_what_is_kept(self, capsys: Caught) -> None:
        code, text = told(capsys, "v2d_b", "--build")
        assert code == 3
        assert "nvcc is neither in" in text
