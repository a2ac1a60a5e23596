"""A lineage as a run: what is kept of it, how it comes back from the index, what is said of what is wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from profiler.build import library, toolchain
from profiler.bundles import bundle
from profiler.bundles.location import LocalRoot
from profiler.bundles.run import Facts, Result
from profiler.catalog import catalog
from profiler.catalog.attention import ATTENTION
from profiler.cli import dissect as cli_dissect
from profiler.cli import main
from profiler.collect import bundle_files, cpu_results, seal, without_gpu
from profiler.collect.collection import Collection
from profiler.collect.machine import Machine
from profiler.collect.run_inputs import begin_run
from profiler.collect.settings import Settings
from profiler.collect.without_gpu import Dissection
from profiler.emulator import cpu_check
from profiler.errors import CannotJudge
from profiler.evidence import metric_table
from profiler.evidence.values import Evidence, State, Value
from profiler.model import stored_predictions
from profiler.sass import bundle_file, disassembly, stored_code
from profiler.sass.disassembly import disassemble
from profiler.sass.listing import make_listing
from profiler.store.readable_index import open_store
from tests.conftest import ROOT
from tests.standins import GPU, SMALL
from tests.toolchain import needs_gxx, needs_sass

ARCH = "sm_90a"
NAMES = ("v2d_a", "v2d_b", "v2c_v1", "v2c_v3_reduce32")
FP8 = "fp8_stage_c"  # only checked on the CPU: nvcc takes twice as long for it as for another

pytestmark = [needs_sass, needs_gxx]


@pytest.fixture(scope="module")
def lineage(tmp_path_factory: pytest.TempPathFactory) -> catalog.Catalog:
    """Some of our versions in a folder of their own, and one that does not compile."""
    folder = tmp_path_factory.mktemp("some") / "kernels"
    shutil.copytree(ROOT / "kernels", folder)
    (folder / "broken.cu").write_text('#include "common.cuh"\nint f() { return nothing_of_that_name; }\n')
    with (folder / "catalog.toml").open("a") as file:
        file.write('\n[[version]]\nid = "broken"\ntechnique = "t"\nfile = "broken.cu"\n')
    return catalog.load_catalog(folder)


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PROFILER_DB", raising=False)


@pytest.fixture(scope="module")
def dissection(lineage: catalog.Catalog) -> Dissection:
    chosen = lineage.pick([*NAMES, "broken", "v2h", "sdpa_flash"])
    # The first GPU runs none of the code that is built, so that the second one's first workload is all.
    gpus = ("A100-80GB", "H100-SXM")
    return without_gpu.dissect(
        lineage, chosen, [ARCH], command_line="profiler static --check", predicted_gpus=gpus
    )


def results(dissection: Dissection, version: str) -> dict[str | None, Result]:
    return {result.workload: result for result in dissection.run.results if result.version == version}


def facts(result: Result) -> Facts:
    (one,) = result.facts
    return one


# ---- the run


def test_the_times_of_good_versions_are_modelled(dissection: Dissection) -> None:
    kinds = {file.path: file.kind for file in dissection.run.files}
    assert kinds[stored_predictions.FILE] == stored_predictions.KIND
    run = dissection.run
    content = dissection.contents[stored_predictions.FILE]
    stored = stored_predictions.unpack_predictions(content, run.run_id, run.created)
    assert {prediction.version for prediction in stored.predictions} == {"v2d_a", "v2d_b"}
    conflicts = stored.of("v2d_a", "1x8x512x64", "H100-SXM")
    swizzled = stored.of("v2d_b", "1x8x512x64", "H100-SXM")
    other = stored.of("v2d_b", "1x8x512x64", "A100-80GB")
    assert conflicts is not None
    assert swizzled is not None
    assert conflicts.limiter == "L1 data"
    assert (swizzled.time_ns or 0) < 0.6 * (conflicts.time_ns or 0)
    assert max(swizzled.lines.values()) > 0.05
    assert other is not None
    assert other.time_ns is None
    assert other.no_model == "v2d_b has no machine code that runs on A100-80GB"


def test_every_version_with_a_source_has_results(dissection: Dissection) -> None:
    assert {result.version for result in dissection.run.results} == {*NAMES, "broken"}
    assert {result.family for result in dissection.run.results} == {"attention"}
    assert set(results(dissection, "v2d_a")) == {
        *("head dim 64", "head dim 128"),
        *(size.label for size in ATTENTION.check_workloads("fp16", (64, 128))),
    }


def test_static_facts_are_those_of_the_compiler(dissection: Dissection) -> None:
    one = facts(results(dissection, "v2d_b")["head dim 64"])
    assert (one.evidence, one.part, one.target, one.mode) == (Evidence.STATIC, "main", ARCH, "")
    assert one.values["static__spill_bytes"].number == 0
    assert one.values["static__shared_bytes"] == Value(40960, "byte/block")
    assert one.values["static__threads"].number == 128
    assert one.values["static__opcode_HMMA"].number == one.opcodes["HMMA"] == 64
    assert "bytes stack frame" in (one.values["static__ptxas"].text or "")
    assert one.values["static__limiter"].text


def test_modelled_facts_are_those_of_the_cpu(dissection: Dissection) -> None:
    plain, swizzled = (facts(results(dissection, name)["1x2x128x64"]) for name in ("v2d_a", "v2d_b"))
    assert (plain.evidence, plain.part, plain.target) == (Evidence.MODELLED, "total", None)
    assert (plain.values["modelled__bank_conflicts"].number or 0) > 10_000
    assert swizzled.values["modelled__bank_conflicts"].number == 0
    error = swizzled.values["modelled__max_abs_error"].number
    assert error is not None
    assert 0 < error < 2e-3


def test_a_check_says_shape_seeds_tolerance_and_error(dissection: Dissection) -> None:
    result = results(dissection, "v2d_a")["2x5x45:78x64 causal offsets"]
    assert (result.problem["len_q"], result.problem["inputs"]) == (45, "offsets")
    assert result.check is not None
    assert (result.check["passed"], result.check["seeds"]) == (True, [0, 1, 2])
    assert result.check["tolerance"] == {
        "absolute": 5e-5,
        "relative": 2**-11,
        "relative_to": "magnitude",
    }
    assert result.check["evidence"] == "modelled"


def test_the_error_of_the_codes_is_kept_apart(lineage: catalog.Catalog, dissection: Dissection) -> None:
    workloads = [size for size in ATTENTION.check_workloads("fp8", (64,)) if size.label == "1x2x128x64 fp8"]
    version = lineage.by_id[FP8]
    (checked,) = cpu_check.check_versions([version], ATTENTION, workloads, seeds=[0])
    (result,) = cpu_results.modelled_results(lineage, version, checked, ATTENTION)
    assert result.workload == "1x2x128x64 fp8"
    check = result.check
    assert check is not None
    assert 0.005 < check["input_error"] < 0.1
    assert check["max_abs_error"] < 1e-2
    kept = facts(result).values
    assert kept["modelled__input_error"].number == check["input_error"]
    assert "modelled__input_error" not in facts(results(dissection, "v2d_a")["1x2x128x64"]).values


def test_a_rejected_version_stands_as_wrong(dissection: Dissection) -> None:
    result = results(dissection, "v2c_v3_reduce32")["1x2x128x64"]
    assert result.status == "wrong"
    assert "elements off by up to" in (result.reason or "")
    assert result.check is not None
    assert (result.check["passed"], result.check["as_expected"]) == (False, True)
    assert len(result.check["seeds"]) == 10


def test_a_refused_launch_has_facts_that_failed_and_never_zero(dissection: Dissection) -> None:
    result = results(dissection, "v2c_v1")["1x2x128x64"]
    assert result.status == "failed"
    assert (result.reason or "").startswith("launch-refused: ")
    for name in ("modelled__bank_conflicts", "modelled__shared_wavefronts", "modelled__max_abs_error"):
        assert facts(result).values[name].state is State.FAILED
    static = facts(results(dissection, "v2c_v1")["head dim 64"]).values
    assert static["static__blocks_per_sm"].number == 0, "that is a number: none fits"
    assert "shared bytes" in (static["static__over_budget"].text or "")


def test_a_version_that_does_not_compile_is_a_failed_result(dissection: Dissection) -> None:
    (result,) = results(dissection, "broken").values()
    assert result.status == "failed"
    assert "nothing_of_that_name" in (result.reason or "")
    assert any("nothing_of_that_name" in line for line in dissection.failed)
    assert (dissection.unexpected, dissection.over_budget, dissection.missing) == ((), (), ())


# ---- the files


def test_the_sources_are_kept_and_load_as_a_lineage(dissection: Dissection, tmp_path: Path) -> None:
    place, new = without_gpu.keep_dissection(dissection, tmp_path / "out")
    assert new
    run = bundle.load_run_folder(Path(place))
    assert run == dissection.run
    kinds = {file.name: file.kind for file in run.files}
    assert kinds["catalog.toml"] == "catalog"
    assert kinds["v2d.cu"] == kinds["common.cuh"] == kinds["attention.h"] == "source"
    text = (Path(place) / "kernels" / "catalog.toml").read_text()
    parsed = catalog.parse_catalog(text, Path(place) / "kernels" / "catalog.toml", check_files=False)
    assert parsed.by_id["v2d_b"].source == Path(place) / "kernels" / "v2d.cu"
    assert parsed.by_id["v2d_b"].source.read_text() == (ROOT / "kernels" / "v2d.cu").read_text()
    assert without_gpu.keep_dissection(dissection, tmp_path / "out") == (place, False)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [run.run_id], "nothing else is left"


def test_the_command_searches_a_history_that_it_adds_to(
    dissection: Dissection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[None] = []
    monkeypatch.setattr(without_gpu, "dissect", lambda *_, **__: dissection)
    monkeypatch.setattr(cli_dissect, "prepare_answers", lambda: searches.append(None))
    main(["static", "--check", "--out", str(tmp_path / "out")])
    assert not searches  # the data are as they were
    main(["static", "--check"])
    assert len(searches) == 1


def test_conflicts_are_kept_by_source_line(dissection: Dissection) -> None:
    table = json.loads(dissection.contents["lines/v2d_a.json"])
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["workloads"]["1x2x128x64"]]
    conflicts = {row["line"]: row["wavefronts"] - row["ideal"] for row in rows if row["file"] == "v2d.cu"}
    total = facts(results(dissection, "v2d_a")["1x2x128x64"]).values["modelled__bank_conflicts"].number
    assert sum(conflicts.values()) == total
    worst = max(conflicts, key=lambda line: conflicts[line])
    lines = (ROOT / "kernels" / "v2d.cu").read_text().splitlines()
    assert any("ldmatrix" in line for line in lines[worst - 3 : worst + 1]), (
        "the transposed or plain ldmatrix"
    )


def test_the_machine_code_is_kept_as_the_compiler_made_it(
    dissection: Dissection, lineage: catalog.Catalog
) -> None:
    kept = {file.name for file in dissection.run.files if file.kind == bundle_file.SASS}
    assert kept == {f"{name}.json.xz" for name in NAMES}, "and none of what does not compile"
    code = bundle_file.unpack_code(dissection.contents["sass/v2d_b.json.xz"], "here")
    assert code.compiler.startswith("nvcc ")
    (made,) = library.build(lineage, lineage.pick(["v2d_b"]), [ARCH])
    assert isinstance(made, library.BuiltLibrary)
    whole = disassemble(made.library, ARCH)
    again = make_listing(code.functions[ARCH], "again")
    assert [(x.text, x.masked, x.target) for x in again.lines] == [
        (x.text, x.masked, x.target) for x in whole.lines
    ]
    names = {x.source[0] for x in again.lines if x.source}
    assert names >= {"v2d.cu", "common.cuh", "ptx.cuh"}
    assert not any("/" in name for name in names), "of nobody's machine"
    assert [x.source and x.source[1] for x in again.lines] == [x.source and x.source[1] for x in whole.lines]


def test_a_library_that_a_tool_cannot_read_costs_its_code_alone(
    lineage: catalog.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list(library.build(lineage, lineage.pick(["v2d_a", "v2d_b"]), [ARCH]))
    built = [one for one in made if isinstance(one, library.BuiltLibrary)]
    real = disassembly._run_tool

    def tool(name: str, *arguments: str) -> str:
        if name == "nvdisasm":
            raise CannotJudge("nvdisasm is gone")
        return real(name, *arguments)

    monkeypatch.setattr(disassembly, "_run_tool", tool)
    assert bundle_files.machine_code(built, lineage.folder) == (
        {},
        ["machine code is not kept: nvdisasm is gone"],
    ), "said once, not once a version"


@pytest.mark.parametrize("tools", ["all", "no nvdisasm"])
def test_a_collection_keeps_the_machine_code_that_it_built_and_says_where_it_cannot(
    tools: str, lineage: catalog.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tools != "all":
        real = toolchain.find_tool
        monkeypatch.setattr(toolchain, "find_tool", lambda name: None if name == "nvdisasm" else real(name))
    root = LocalRoot(tmp_path / "data")
    settings = Settings(versions=("v2d_a",), workloads=(SMALL,), counters=False)
    collection = Collection(
        begin_run(root, lineage, settings), Machine(GPU, None)
    )  # of the built architecture
    collection.build()
    collection._write_session()
    run = bundle.load_run(root, seal.seal(root, collection))
    kept = [file.path for file in run.files if file.kind == bundle_file.SASS]
    (static,) = (one for one in run.results if one.workload == "head dim 64")
    assert static.facts[0].values["static__registers"].number, "the facts of the compiler are there"
    said = [line for line in run.provenance.get("degraded", ()) if line.startswith("machine code is not")]
    if tools == "all":
        assert (kept, said) == (["sass/v2d_a.json.xz"], [])
        code = stored_code.find_code(root, open_store(str(tmp_path / "data")), "attention", "v2d_a", ARCH)
        assert code.run_id == run.run_id
    else:
        assert kept == []
        (line,) = said
        assert "nvdisasm is neither in" in line


# ---- through the index


def test_the_run_comes_back_from_the_index_as_it_was(dissection: Dissection) -> None:
    place, new = without_gpu.keep_dissection(dissection)
    assert new
    assert dissection.run.run_id in place
    assert without_gpu.keep_dissection(dissection) == (place, False)
    store = open_store()
    (run,) = store.runs()
    assert run.evidence >= {Evidence.STATIC, Evidence.MODELLED}
    assert {version.version for version in store.versions()} == {*NAMES, "broken"}
    registers = {
        point.version: point.value.number
        for series in store.series(["static__registers"], family="attention", workload="head dim 64")
        for point in series.points
        if series.evidence is Evidence.STATIC
    }
    expected = {
        name: facts(results(dissection, name)["head dim 64"]).values["static__registers"].number
        for name in NAMES
    }
    assert registers == expected
    (conflicts,) = store.series(["modelled__bank_conflicts"], family="attention", workload="1x2x128x64")
    states = {point.version: point.value.state for point in conflicts.points}
    assert states["v2c_v1"] is State.FAILED
    assert states["v2d_b"] is State.PRESENT
    store.close()


def test_every_own_name_in_metrics_txt_is_one_that_is_kept(dissection: Dissection) -> None:
    kept = {name for result in dissection.run.results for one in result.facts for name in one.values}
    table = metric_table.load_metrics()
    declared = {
        one.name
        for metric in table.metrics
        for one in metric.alternatives
        if one.name.startswith(("static__", "modelled__"))
    }
    assert declared, "metrics.txt gives our own facts their labels"
    of_files = {
        "static__spill_instructions",
        "static__loop_spill_instructions",
    }  # of builds that are imported
    assert declared - of_files <= kept
    assert not of_files & kept


# ---- the command


def test_dissect_keeps_a_run_and_says_what_stands_against_it(
    lineage: catalog.Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slip planted in a copy: one barrier less."""
    folder = tmp_path / "kernels"
    shutil.copytree(lineage.folder, folder)
    text = (folder / "v2d.cu").read_text()
    barrier = "    __syncthreads();  // so has everyone's; and"
    assert text.count(barrier) == 1
    (folder / "v2d.cu").write_text(text.replace(barrier, "    // so has everyone's; and"))
    arguments = [
        "static",
        "--check",
        "v2d_b",
        "--catalog",
        str(folder),
        "--arch",
        ARCH,
        "--out",
        str(tmp_path / "out"),
    ]
    code = main(arguments)
    out = capsys.readouterr().out
    assert code == 1
    assert "v2d_b: not right in " in out
    assert "at v2d.cu:" in out
    (made,) = (tmp_path / "out").iterdir()
    assert made.name in out
    status = {result.status for result in bundle.load_run_folder(made).results if result.check}
    assert "wrong" in status


def test_check_names_the_file_and_line_of_a_planted_slip_and_exits_1(
    lineage: catalog.Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "kernels"
    shutil.copytree(lineage.folder, folder)
    text = (folder / "v2c_v3.cu").read_text()
    barrier = "    __syncthreads();  // a row's scores come from several warps"
    assert text.count(barrier) == 1
    (folder / "v2c_v3.cu").write_text(text.replace(barrier, ""))
    arguments = ["check", "v2c_v3", "--catalog", str(folder), "--workload", "1x2x128x64", "--seeds", "1"]
    assert main(arguments) == 1
    out = capsys.readouterr().out
    assert "NOT RIGHT" in out
    assert "at v2c_v3.cu:" in out
    assert main([*arguments, "--json"]) == 1
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert {cell["seed"] for cell in cells} == {0}
    places = {(one["file"], one["line"]) for cell in cells for one in cell["findings"]}
    assert any(file == "v2c_v3.cu" and line for file, line in places)


def test_check_prints_the_agreed_json(lineage: catalog.Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", "v2d_b", "v2c_v1", "--catalog", str(lineage.folder), "--seeds", "2", "--json"]
    assert main(arguments) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert len(cells) == 8 * 2 + 1 * 2
    for cell in cells:
        assert set(cell) >= {
            *("version", "state", "workload", "causal", "seed", "passed", "max_abs_error"),
            *("findings", "shared_wavefronts", "bank_conflicts"),
        }
        assert cell["passed"] == (cell["version"] == "v2d_b")
    refused = next(cell for cell in cells if cell["state"] == "rejected")
    assert refused["max_abs_error"] is None
    assert refused["findings"][0]["kind"] == "launch-refused"


def test_a_stage_alone_is_checked_against_its_own_reference(
    lineage: catalog.Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["check", "v2d_b", "v2c_v1", "--catalog", str(lineage.folder), "--seeds", "1"]
    assert main([*arguments, "--stage", "SOFTMAX", "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert {(cell["version"], cell["stage"]) for cell in cells} == {("v2d_b", "SOFTMAX")}
    assert max(cell["max_abs_error"] for cell in cells) < 1e-3


def test_a_version_that_does_not_compile_exits_2_from_check(
    lineage: catalog.Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "broken", "--catalog", str(lineage.folder)]) == 2
    assert "nothing_of_that_name" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "dissect"])
def test_nothing_that_can_be_run_cannot_be_judged(
    lineage: catalog.Catalog, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "v2h", "sdpa_flash", "--catalog", str(lineage.folder)]) == 3
    assert "nothing to " in capsys.readouterr().err


def test_without_its_tools_nothing_is_kept(
    lineage: catalog.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "find_tool", lambda _name: None)
    with pytest.raises(CannotJudge, match="nvcc is neither in"):
        without_gpu.dissect(lineage, lineage.pick(["v1"]))
    assert not (tmp_path / "data").exists()


def test_a_checks_line_says_what_came_of_it(lineage: catalog.Catalog) -> None:
    from profiler.catalog import sources
    from profiler.emulator import facts

    problem = sources.load_object(lineage, lineage.problem)
    (caught, good) = cpu_check.check_versions(lineage.pick(["v2d_b", "v2c_v1"]), problem, seeds=[0])
    assert facts.summary_line(good) == "v2d_b: passed in all 8 runs"
    assert facts.summary_line(caught) == "v2c_v1: caught in all 1 runs"


def test_an_architecture_that_no_version_takes_is_nothing_to_judge(lineage: catalog.Catalog) -> None:
    dissection = without_gpu.dissect(lineage, lineage.pick(["v2c_v1"]), ["sm_77"], predicted_gpus=[])
    assert dissection.exit_code == 3
    assert any("sm_77" in words for words in dissection.missing)
