"""Whose machine code a name means: that of a launch, of a file, or of what a run keeps."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.build import toolchain
from profiler.catalog import catalog, sources
from profiler.compare import resolve_code as room
from profiler.compare.kernel_pairs import KernelPair
from profiler.compare.resolve_code import (
    CodeChoice,
    CodeOrigin,
    SideCode,
    open_report_of_launch,
    resolve_code,
    sample_scale,
)
from profiler.compare.resolve_names import resolve
from profiler.errors import BadCatalog, CannotJudge, UnknownName
from profiler.evidence.launch import Launch
from profiler.evidence.values import Evidence, Value, pack_values
from profiler.sass.hotspots import INTERVAL, PASSES
from profiler.sass.listing import FunctionCode, make_listing
from profiler.store.begin_import import import_paths
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from tests.lineages import CATALOG, SOURCE
from tests.reportfiles import machine_code
from tests.reportfiles.ncu_rep import LaunchResult, Metric, ReportFile
from tests.sass.test_stored_code import run_of, store_of

DURATION = "gpu__time_duration.sum"
CODE = machine_code.load("v1", 0x7F3A10000000)
STARTS = Metric(1.0, [(0, CODE.functions[machine_code.BY_HEAD_DIM[64]].address)])


def no_store() -> Store:
    raise AssertionError("files need no index")


def report(path: Path, *launches: tuple[str, float, str]) -> str:
    """A report of launches by name, duration and NVTX range; all of the same machine code."""
    results = [
        LaunchResult(
            name,
            f"{name}(int)",
            f"_Z2{name}i",
            {DURATION: ns, "launch__function_pcs": STARTS},
            nvtx={"": [nvtx]} if nvtx else {},
            code=CODE,
        )
        for name, ns, nvtx in launches
    ]
    path.write_bytes(ReportFile(results).to_bytes())
    return str(path)


def chosen(names: list[str], **choice: object) -> list[tuple[str, int]]:
    """The launches whose code the names mean: kernel and ordinal."""
    codes = resolve_code(names, CodeChoice(**choice), no_store)  # type: ignore[arg-type]
    assert {code.origin for code in codes} == {CodeOrigin(Evidence.MEASURED)}
    return [(code.launch.base_name, code.launch.ordinal) for code in codes if code.launch]


class TestLaunches:
    @pytest.fixture
    def one(self, tmp_path: Path) -> str:
        return report(
            tmp_path / "a.ncu-rep",
            ("short", 5.0, ""),
            ("long", 9.0, "warm"),
            ("long", 9.0, ""),
            ("short", 7.0, "warm"),
        )

    @pytest.fixture
    def other(self, tmp_path: Path) -> str:
        return report(
            tmp_path / "b.ncu-rep",
            ("new", 99.0, ""),
            ("short", 3.0, "warm"),
            ("long", 1.0, ""),
            ("short", 4.0, ""),
        )

    @pytest.mark.slow
    def test_without_a_choice_it_is_the_longest_and_of_equal_ones_the_first(self, one: str) -> None:
        assert chosen([one]) == [("long", 1)]
        assert chosen([one], kernel="short") == [("short", 3)]
        assert chosen([one], launch=0) == [("short", 0)]

    def test_beside_a_launch_it_is_the_same_kernel_in_the_same_range(self, one: str, other: str) -> None:
        assert chosen([one, other]) == [("long", 1), ("long", 2)]
        assert chosen([one, other], launch=0, b_launch=1) == [("short", 0), ("short", 1)]
        assert chosen([one, other], launch=1) == [("long", 1), ("short", 1)]
        assert chosen([one, other], kernel="short") == [("short", 3), ("short", 1)], "both are warm"
        assert chosen([other, one]) == [("new", 0), ("long", 2)], "no new one: the longest of no range"

    def test_a_declared_pair_is_of_two_kernels(self, one: str, other: str) -> None:
        pairs = (KernelPair("long", "new"),)
        assert chosen([one, other], pairs=pairs) == [("long", 1), ("new", 0)]
        for names in ([one], [one, str(Path(one).parent / "x.cubin")]):
            Path(one).with_name("x.cubin").write_bytes(b"")
            with pytest.raises(UnknownName, match="a pair is of two launches"):
                resolve_code(names, CodeChoice(pairs=pairs, arch="sm_80"), no_store)

    def test_what_is_not_there_names_what_is(self, one: str) -> None:
        with pytest.raises(UnknownName, match="has no launch 9; there are 0 short"):
            chosen([one], launch=9)
        with pytest.raises(UnknownName, match="has no kernel like 'sum'; there are 0 short"):
            chosen([one], kernel="sum")

    def test_the_listing_is_labelled_by_file_and_launch(self, one: str) -> None:
        (code,) = resolve_code([one], CodeChoice(launch=3), no_store)
        assert code.listing.label == f"{one} @warm/short"
        assert len(code.listing.lines) > 100

    def test_a_report_without_instructions_says_how_to_collect_them(self, tmp_path: Path) -> None:
        lean = tmp_path / "lean.ncu-rep"
        lean.write_bytes(ReportFile([LaunchResult("k", "k(int)", "_Z1ki", {DURATION: 1.0})]).to_bytes())
        with pytest.raises(
            CannotJudge, match=r"holds no instructions of k.*: collect with `--set full`"
        ) as raised:
            resolve_code([str(lean)], CodeChoice(), no_store)
        assert "--arch" not in str(raised.value), "a file names no version"

    def test_a_csv_has_no_machine_code(self, made_reports: Path) -> None:
        with pytest.raises(CannotJudge, match="a text holds no machine code"):
            resolve_code([str(made_reports / "csv" / "kernel_0009.details.csv")], CodeChoice(), no_store)

    def test_a_workload_selects_nothing_of_files(self, one: str) -> None:
        with pytest.raises(UnknownName, match="--workload b1"):
            resolve_code([one], CodeChoice(workload="b1"), no_store)

    def test_an_imported_launch_is_read_from_the_report_that_its_run_keeps(
        self, one: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
        monkeypatch.delenv("PROFILER_DB", raising=False)
        import_paths([Path(one), Path(other)], family="mine")
        codes = resolve_code(["mine/a", "mine/b"], CodeChoice(), open_store)
        assert [code.launch and code.launch.ordinal for code in codes] == [1, 2]
        assert all(code.origin.run_id for code in codes)
        side = resolve("mine/b", open_store)
        with open_report_of_launch(side, "mine/b", side.launches[1], open_store) as path:
            assert path.read_bytes() == Path(other).read_bytes()


def test_samples_weigh_by_the_cycles_between_them() -> None:
    def code(**numbers: float) -> SideCode:
        names = {"interval": INTERVAL, "passes": PASSES}
        values = pack_values({names[name]: Value(number) for name, number in numbers.items()})
        launch = Launch("k", "k", "", None, None, None, (), 0, values)
        return SideCode(make_listing((), ""), launch, CodeOrigin(Evidence.MEASURED))

    compiled = replace(code(), launch=None)
    assert sample_scale([code(interval=100.0), code(interval=400.0)]) == 4
    assert sample_scale([code(interval=100.0, passes=2.0), code(interval=400.0)]) == 8
    for a, b in (
        (code(), code(interval=4.0)),
        (compiled, code(interval=4.0)),
        (code(interval=4.0), compiled),
    ):
        assert sample_scale([a, b]) == 1


def test_where_compiled_code_comes_from_is_said_and_that_nothing_was_run() -> None:
    assert CodeOrigin(Evidence.MEASURED, "run").words == ""
    nothing = "nothing was run, so no samples and no counts"
    for origin, words in (
        (CodeOrigin(Evidence.STATIC), f"static: a binary; {nothing}"),
        (CodeOrigin(Evidence.STATIC, arch="sm_80"), f"static: sm_80; {nothing}"),
        (CodeOrigin(Evidence.STATIC, None, "sm_80", "nvcc"), f"static: sm_80, nvcc, built here; {nothing}"),
        (
            CodeOrigin(Evidence.STATIC, "r", "sm_80", "nvcc", "old"),
            f"static: sm_80, nvcc, kept in run r; {nothing}; old",
        ),
    ):
        assert origin.words == words


class TestBinaries:
    @pytest.fixture(autouse=True)
    def disassembled(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str | None]]:
        """What was disassembled; no tool is needed for what a name means."""
        asked: list[tuple[Path, str | None]] = []

        def disassemble(path: Path, arch: str | None, is_selected: object = None) -> object:
            asked.append((path, arch))
            code = [FunctionCode(name, ((0, "NOP"),), (None,)) for name in ("_Z1kv", "_Z3sumv")]
            return make_listing(code, str(path)) if path.read_bytes() else make_listing((), str(path))

        monkeypatch.setattr(room, "disassemble", disassemble)
        return asked

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("k.cubin", b"x"),
            ("k.fatbin", b"x"),
            ("k.ptx", b"x"),
            ("program", b"\x7fELF\x02"),
            ("kernels.a", b"!<arch>\n"),
        ],
    )
    def test_a_file_of_code_is_known_by_its_suffix_or_its_first_bytes(
        self, tmp_path: Path, name: str, content: bytes, disassembled: list[tuple[Path, str | None]]
    ) -> None:
        path = tmp_path / name
        path.write_bytes(content)
        (code,) = resolve_code([str(path)], CodeChoice(arch="sm_90"), no_store)
        assert disassembled == [(path, "sm_90")]
        assert (code.listing.label, code.launch) == (str(path), None)
        assert code.origin == CodeOrigin(Evidence.STATIC, arch="sm_90")
        (some,) = resolve_code([str(path)], CodeChoice(kernel="sum"), no_store)
        assert some.listing.functions == ("_Z3sumv",)
        assert some.origin.arch is None, "as in the file"
        with pytest.raises(UnknownName, match="has no function like 'max'; there are _Z1kv, _Z3sumv"):
            resolve_code([str(path)], CodeChoice(kernel="max"), no_store)

    def test_a_file_without_a_function_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "k.cubin").write_bytes(b"")
        with pytest.raises(UnknownName, match="holds no machine code of any function"):
            resolve_code([str(tmp_path / "k.cubin")], CodeChoice(kernel="k"), no_store)

    def test_a_folder_with_one_file_of_code_is_that_file(self, tmp_path: Path) -> None:
        """As Triton's cache has it: a folder a kernel, with its PTX beside the cubin."""
        for folder in ("CBDERAGDCY", "YPLSCOKAXW"):
            (tmp_path / folder).mkdir()
            for suffix in ("cubin", "ptx", "json"):
                (tmp_path / folder / f"k.{suffix}").write_bytes(b"x")
        codes = resolve_code(
            [str(tmp_path / "CBDERAGDCY"), str(tmp_path / "YPLSCOKAXW")], CodeChoice(), no_store
        )
        assert [code.listing.label for code in codes] == [
            str(tmp_path / folder / "k.cubin") for folder in ("CBDERAGDCY", "YPLSCOKAXW")
        ]
        with pytest.raises(UnknownName, match="2 files of machine code"):
            resolve_code([str(tmp_path)], CodeChoice(), no_store)


class TestVersions:
    """Code that runs keep, of versions of no catalogue here, and of one."""

    @pytest.fixture(autouse=True)
    def runs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        older = run_of(1, first_instruction="NOP")
        newer, files = run_of(2, first_instruction="YIELD", source="bb", arch="sm_90a")
        (result,) = newer.results
        sizes = (result, replace(result, workload="head dim 128"))
        several = replace(run_of(3, version="b")[0], files=(), results=(result, replace(result, version="b")))
        monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
        monkeypatch.delenv("PROFILER_DB", raising=False)
        store_of(tmp_path / "data", older, (replace(newer, results=sizes), files), (several, {}))

    def code(self, *names: str, **choice: object) -> list[SideCode]:
        return resolve_code(names, CodeChoice(**choice), open_store)  # type: ignore[arg-type]

    def first(self, *names: str, **choice: object) -> list[tuple[str | None, str | None, str | None]]:
        """Run, architecture and first instruction of each name's code."""
        return [
            (code.origin.run_id, code.origin.arch, code.listing.lines[0].text)
            for code in self.code(*names, **choice)
        ]

    def test_it_is_that_of_the_newest_architecture_or_of_the_one_asked_for(self) -> None:
        assert self.first("mine/a") == [("run-2-a", "sm_90a", "YIELD")]
        assert self.first("mine/a", arch="sm_80") == [("run-1-a", "sm_80", "NOP")]
        (code,) = self.code("mine/a")
        assert (code.listing.label, code.launch, code.origin.compiler) == ("mine/a", None, "nvcc 13.2")

    @pytest.mark.slow
    def test_a_version_as_an_older_run_has_it(self) -> None:
        for name in ("a~run-1-a", "mine/a~run-1-a", "run-1-a"):
            assert self.first(name) == [("run-1-a", "sm_80", "NOP")]
        with pytest.raises(CannotJudge, match="mine/a was compiled for sm_80, not for sm_90a"):
            self.code("a~run-1-a", "a~run-2-a", arch="sm_90a")
        with pytest.raises(UnknownName, match="leave out --build, or the run"):
            self.code("a~run-1-a", build=True)
        with pytest.raises(CannotJudge, match="is in no catalogue here, so it cannot be built"):
            self.code("mine/a", build=True)

    def test_a_run_of_several_versions_says_how_one_is_named(self) -> None:
        with pytest.raises(
            UnknownName, match="run-3-b has several versions: a, b; choose one, as in mine/a~"
        ):
            self.code("run-3-b")

    @pytest.mark.slow
    def test_beside_a_launch_it_is_the_code_for_the_gpu_of_that_launch(self, made_reports: Path) -> None:
        measured = str(made_reports / "llm.c/adamw_coalsecing_shared.ncu-rep")  # compute capability 8.6
        for names in ((measured, "mine/a"), ("mine/a", measured)):
            (compiled,) = [code for code in self.code(*names) if code.launch is None]
            assert (compiled.origin.run_id, compiled.origin.arch) == ("run-1-a", "sm_80")
            assert compiled.origin.note == ""
        _, other = self.code(measured, "a~run-2-a")
        assert other.origin.note == (
            "the other side ran on compute capability 8.6, which this code does not run on"
        )

    def test_what_nobody_measured_or_catalogued_has_no_code(self) -> None:
        with pytest.raises(UnknownName, match="neither a file nor a run or version"):
            self.code("no_such_version")
        with pytest.raises(CannotJudge, match="v2h is planned: needs a Hopper GPU"):
            self.code("v2h")
        with pytest.raises(CannotJudge, match=r"attention/sdpa_math is Python \("):
            self.code("attention/sdpa_math")

    def test_code_of_other_sources_than_those_here_says_so_where_it_cannot_be_built(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "own"
        folder.mkdir()
        (folder / "catalog.toml").write_text(
            CATALOG.replace('id = "alpha"', 'id = "a"').replace('"alpha"', '"a"')
        )
        (folder / "k.cu").write_text(SOURCE)
        monkeypatch.setattr(toolchain, "find_tool", lambda _: None)
        (code,) = self.code("a", catalog=folder)
        assert (code.origin.run_id, code.origin.arch) == ("run-2-a", "sm_90a")
        assert code.origin.note.startswith("the sources here are not those of that run: `--build`")
        (as_run,) = self.code("a~run-1-a", catalog=folder)
        assert as_run.origin.note == "", "it is the run's code that is meant"
        own = catalog.load_catalog(folder)
        same = run_of(4, source=sources.source_sha256(own, own.by_id["a"]), arch="sm_90a")
        store_of(tmp_path / "data", same)
        (code,) = self.code("mine/a", catalog=folder)
        assert (code.origin.run_id, code.origin.note) == ("run-4-a", "")
        with pytest.raises(CannotJudge, match=r"no run has .* mine/zero: .*, and it cannot be built here"):
            self.code("zero", catalog=folder, arch=None)
        shutil.rmtree(folder)
        with pytest.raises(BadCatalog, match="no catalogue at"):
            self.code("a", catalog=folder)
