"""The library as a notebook uses it: what importing costs, what the functions take, what they answer."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import profiler
from profiler.cli import main
from profiler.compare.comparison import Comparison
from profiler.compare.resolve_names import side_of_report
from profiler.documents.comparison import ComparisonDocument
from profiler.documents.explanation import ExplanationDocument, UnmeasuredDocument
from profiler.errors import Exit, ProfilerError, UnknownName
from profiler.evidence.metric_table import load_metrics
from profiler.statistics.verdict import Verdict
from tests.conftest import ROOT

HEAVY = {"sqlalchemy", "numba", "pandas", "streamlit", "rich", "numpy", "scipy", "ncu_report", "fsspec"}
ROOMS_AND_FUNCTIONS = {"compare": "comparison", "explain": "roofline", "gate": "judgement"}  # and a module


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two made reports, the second one faster."""
    write = runpy.run_path(str(ROOT / "examples" / "made_reports.py"))["write"]
    before, after = write(tmp_path_factory.mktemp("made"))
    return str(before), str(after)


@pytest.fixture
def data(tmp_path: Path, committed_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The committed runs, named by nothing but the `data` argument."""
    folder = Path(shutil.copytree(committed_data, tmp_path / "lineage"))
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "empty"))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    return folder


def printed(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    capsys.readouterr()
    main([*command, "--json"])
    return json.loads(capsys.readouterr().out)


# ---- importing


def test_importing_loads_nothing_that_an_answer_needs() -> None:
    code = "import sys; before = set(sys.modules); import profiler; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = done.stdout.split()
    assert not {name.split(".")[0] for name in loaded} & HEAVY
    assert [name for name in loaded if name.startswith("profiler")] == ["profiler", "profiler.package"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "module"), ROOMS_AND_FUNCTIONS.items())
def test_a_room_of_the_same_name_does_not_take_the_functions_place(name: str, module: str) -> None:
    code = (
        f"import importlib, types, profiler; function = profiler.{name}; import profiler.{name}\n"
        f"assert profiler.{name} is function and isinstance(function, types.FunctionType)\n"
        f"room = importlib.import_module('profiler.{name}'); assert isinstance(room, types.ModuleType)\n"
        f"from profiler.{name} import {module}; assert room.{module} is {module}\n"
        f"import profiler.{name} as again; assert again is function"  # as the documentation says
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_notebook_is_offered_the_functions_alone() -> None:
    assert dir(profiler) == ["__version__", *sorted(profiler.__all__)]


def test_every_other_attribute_of_the_package_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler, "compare", print)
    assert profiler.compare is print
    room = ModuleType("profiler.anything")
    monkeypatch.setattr(profiler, "anything", room, raising=False)
    assert vars(profiler)["anything"] is room
    assert importlib.import_module("profiler.store") is vars(profiler)["store"]


def test_every_function_has_a_docstring_with_an_example() -> None:
    for name in profiler.__all__:
        function = getattr(profiler, name)
        assert inspect.isfunction(function)
        words = inspect.getdoc(function) or ""
        assert re.search(r"^    (profiler\.|\w+ = profiler\.|with profiler\.)", words, re.MULTILINE), name
        assert name == "explain" or "Raises" in words or "raises" in words


# ---- answers


def test_a_report_that_was_read_is_shown_and_framed(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    report = profiler.read_report(files[0])
    assert report.to_dict() == {**printed(capsys, "show", files[0], "--all"), "source": report.name}
    frame = report.to_frame()
    assert len(frame) == sum(len(dict(launch.values.items())) for launch in report.launches)
    assert "<td" in report._repr_html_()
    assert report.launches[0].base_name in report.to_markdown()
    assert repr(report).startswith(f"<ReportDocument {report.name}: ")
    assert profiler.compare(report, report).verdict is Verdict.NOT_COMPARABLE


def test_a_report_a_side_and_a_path_are_compared_alike(files: tuple[str, str]) -> None:
    a, b = map(profiler.read_report, files)
    by_name = profiler.compare(*files)
    assert isinstance(by_name, ComparisonDocument)
    assert isinstance(by_name.comparison, Comparison)
    assert (by_name.verdict, by_name.sentence) == (Verdict.BETTER, "✓ better: kernel durations 1 better")
    pairs = [
        (a, b),
        (side_of_report(a, "a"), side_of_report(b, "b")),
        (Path(files[0]), b),
        (a, files[1]),
    ]
    for one, other in pairs:
        document = profiler.compare(one, other).to_dict()
        assert document["launches"] == by_name.to_dict()["launches"]


@pytest.mark.slow
def test_the_functions_answer_what_the_commands_print(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = files
    for document, command in (
        (profiler.compare(a, b), ("compare", a, b)),
        (
            profiler.compare(a, b, kernel="flash*", top=1),
            ("compare", a, b, "--kernel", "flash*", "--top", "1"),
        ),
        (profiler.explain(a, b), ("explain", a, b)),
        (profiler.launch(b, against=a), ("show", b, "--sections", "--against", a)),
        (profiler.roofline(b), ("roofline", b)),
        (profiler.insights(b, against=a), ("insights", b, "--against", a)),
        (profiler.gate(b, baseline=a), ("gate", b, "--baseline", a)),
    ):
        assert document.to_dict() == printed(capsys, *command)
        assert repr(document).count("\n") == 0


def test_a_page_of_versions_is_what_the_command_writes(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = files
    page = profiler.report([a, b], against=a, diffs=[b])
    written = printed(capsys, "report", a, b, "--against", a, "--diff", b, "--out", str(tmp_path / "r.html"))
    answer = page.to_dict()
    assert {**answer, "created": ""} == {**written, "created": ""}
    assert page.to_html().startswith("<!DOCTYPE html>")
    with pytest.raises(UnknownName):
        profiler.report([a, b], diffs=["moon"])


def test_an_explanation_of_a_comparison_is_that_of_its_sides(files: tuple[str, str]) -> None:
    explanation = profiler.explain(profiler.compare(*files))
    assert isinstance(explanation, ExplanationDocument)
    assert explanation.to_dict() == profiler.explain(*files).to_dict()
    assert "46 µs faster, mainly from less waiting" in explanation.sentence
    with pytest.raises(TypeError, match="two subjects"):
        profiler.explain(files[0])


def test_insights_of_a_report_that_was_read_say_what_the_file_does(files: tuple[str, str]) -> None:
    a, b = map(profiler.read_report, files)
    by_report, by_name = profiler.insights(b, against=a), profiler.insights(files[1], against=files[0])
    assert [statement.text for statement in by_report.statements] == [
        statement.text for statement in by_name.statements
    ]
    assert profiler.roofline(b).rooflines == profiler.roofline(files[1]).rooflines


def test_a_report_that_was_read_has_levers_with_their_line_as_long_as_its_file_is_there(
    public_reports: Path, tmp_path: Path
) -> None:
    path = tmp_path / "baseline.ncu-rep"
    path.write_bytes((public_reports / "ncar/MW_Baseline.ncu-rep").read_bytes())
    report, kernel = profiler.read_report(path), "set_halo_values_x_396_gpu"

    def levers() -> list[str | None]:
        return [one.lever for one in profiler.insights(report, kernel=kernel).insights.statements]

    by_name = [one.lever for one in profiler.insights(path, kernel=kernel).insights.statements]
    assert levers() == by_name
    place = "; worst: the access of miniWeather_mpi_openacc.F90:400 (16 sectors per request, 8 would do"
    assert any(place in (lever or "") for lever in by_name)
    path.write_bytes((public_reports / "ncar/MW_DivToMult.ncu-rep").read_bytes())
    replaced = levers()
    assert [lever and lever.partition("; worst:")[0] for lever in by_name] == replaced, "another file's lines"
    path.unlink()
    assert levers() == replaced


def test_another_metrics_file_or_table_is_taken(files: tuple[str, str], tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.txt"
    metrics.write_text("duration | time | ns | lower | 30% | time | lean | gpu__time_duration.sum\n", "utf-8")
    for given in (metrics, str(metrics), load_metrics(metrics)):
        comparison = profiler.compare(*files, metrics=given)
        assert comparison.verdict is Verdict.SAME  # 22 % is within 30 %
        assert comparison.to_frame().concept.tolist() == ["duration"]


@pytest.mark.slow
def test_names_are_looked_for_in_the_data_folder_or_the_store_that_is_given(data: Path) -> None:
    facts = profiler.compare("v2d_b", "v2d_c", data=str(data), evidence="static", gpu="sm_90a")
    assert not facts.is_measured
    assert isinstance(profiler.explain("v2d_b", "v2d_c", data=str(data)), UnmeasuredDocument)
    assert isinstance(profiler.explain(facts), UnmeasuredDocument)
    with profiler.open_store(str(data)) as store:
        place: dict[str, Any] = {"store": store, "data": str(data)}
        same = profiler.compare("v2d_b", "v2d_c", evidence="static", gpu="sm_90a", **place)
        assert same.to_dict() == facts.to_dict()
        gate = profiler.gate(["v2d_c"], baseline="parent", evidence=["static"], **place)
        assert gate.exit_code is Exit.REGRESSION
        assert profiler.insights("v2d_c", **place).statements
    with pytest.raises(UnknownName, match="the index is empty"):
        profiler.compare("v2d_b", "v2d_c")


# ---- what is written about it


@pytest.mark.slow
def test_every_block_of_the_documentation_runs(
    files: tuple[str, str], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(files[0]).parent)
    monkeypatch.setenv("PROFILER_DATA", str(data))
    text = (ROOT / "docs" / "python-api.md").read_text("utf-8")
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE)
    lines = "".join(blocks).splitlines()
    code = "\n".join(line.removeprefix("    ") for line in lines)
    assert code.count("profiler.") > 10
    exec(compile(code, "docs/python-api.md", "exec"), {})


def test_the_documentation_names_every_function() -> None:
    text = (ROOT / "docs" / "python-api.md").read_text("utf-8")
    commands = (ROOT / "docs" / "commands.md").read_text("utf-8")
    for name in profiler.__all__:
        assert f"| `{name}(" in text or f"Python: `profiler.{name}`" in commands


@pytest.mark.slow
def test_an_index_brings_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A baseline pinned there counts wherever PROFILER_DATA points: no gate passes by looking elsewhere."""
    pinned = tmp_path / "pinned"
    shutil.copytree(ROOT / "data" / "runs", pinned / "runs")
    monkeypatch.setenv("PROFILER_DATA", str(pinned))
    assert main(["decide", "baseline", "set", "attention", "v2d_a"]) == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv("PROFILER_DATA", str(elsewhere))
    with profiler.open_store(pinned) as store:
        implied = profiler.gate("v2d_c", evidence="static", store=store)
    named = profiler.gate("v2d_c", evidence=["static"], data=pinned)
    assert implied.to_dict() == named.to_dict()
    assert implied.exit_code == 1
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize(
    "call",
    [
        lambda files: profiler.compare(*files, top=-1),
        lambda files: profiler.compare(*files, top=0),
        lambda files: profiler.compare(*files, across=["moon"]),
        lambda files: profiler.compare(*files, evidence="moon"),
        lambda files: profiler.gate([files[0]], baseline=files[1], allow="worse"),
        lambda files: profiler.check("v1", seeds=0),
        lambda files: profiler.open_store("no/such/folder"),
    ],
)
def test_what_the_command_line_refuses_the_library_refuses(
    call: Callable[[tuple[str, str]], object], files: tuple[str, str]
) -> None:
    with pytest.raises(ProfilerError):
        call(files)


@pytest.mark.parametrize("wrong", [None, 3, b"a.ncu-rep"])
def test_what_is_no_subject_is_a_type_error(wrong: Any, files: tuple[str, str]) -> None:
    with pytest.raises(TypeError, match="a report, a side, a file or a name is needed"):
        profiler.compare(wrong, files[1])
    with pytest.raises(TypeError):
        profiler.gate([wrong], baseline=files[1])


@pytest.mark.parametrize("ask", [profiler.gate, profiler.compare_many, profiler.report, profiler.launch])
def test_a_report_where_only_names_and_files_are_taken_says_so(
    ask: Callable[[Any], object], files: tuple[str, str]
) -> None:
    report = profiler.read_report(files[0])
    for given in (report, [report]):
        with pytest.raises(TypeError, match=r"\(\) takes names and files, not ReportDocument"):
            ask(given)


def test_what_compare_chose_is_not_chosen_again(files: tuple[str, str]) -> None:
    comparison = profiler.compare(*files)
    with pytest.raises(TypeError, match="give compare"):
        profiler.explain(comparison, top=1)


def test_errors_name_the_arguments_of_the_library_and_on_the_command_line_its_options(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = str(tmp_path / "nowhere")
    for call, argument, command, option in (
        (lambda: profiler.gate(files[0]), "with baseline=", ("gate", files[0]), "with --baseline"),
        (
            lambda: profiler.compare(*files, kernel="regex:["),
            "kernel=regex:[:",
            ("compare", *files, "--kernel", "regex:["),
            "--kernel regex:[:",
        ),
        (
            lambda: profiler.check("v1", catalog=nowhere),
            "with catalog=PATH",
            ("check", "v1", "--catalog", nowhere),
            "with --catalog PATH",
        ),
    ):
        with pytest.raises(ProfilerError) as caught:
            call()
        assert argument in str(caught.value)
        assert option not in str(caught.value)
        assert main(command) == 2
        assert option in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a" * 300, "a" * 300 + ".csv", "a\0b", "a\0.ncu-rep", "a" * 5000])
def test_a_name_that_no_file_can_have_is_an_error_of_the_library(
    name: str, files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    for call in (
        lambda: profiler.read_report(name),
        lambda: profiler.compare(name, files[0]),
        lambda: profiler.explain(files[0], name),
        lambda: profiler.launch(name),
        lambda: profiler.report([files[0], name]),
        lambda: profiler.roofline(name),
        lambda: profiler.insights(name),
        lambda: profiler.gate(name, baseline=files[0]),
        lambda: profiler.gate(files[0], baseline=name),
        lambda: profiler.check(name),
        lambda: profiler.check(catalog=name),
        lambda: profiler.open_store(name),
        lambda: profiler.compare(*files, metrics=name),
        lambda: profiler.compare(*files, data=name),
    ):
        with pytest.raises(ProfilerError):
            call()


def test_a_name_that_no_file_can_have_is_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    for command in (
        ("compare", "a" * 300, "b"),
        ("show", "a" * 300 + ".csv"),
        ("sass", "a" * 300),
        ("check", "--catalog", "a" * 300),
        ("import", "a" * 300),
        ("gate", "a" * 300),
    ):
        assert main(command) == 2, command
        error = capsys.readouterr().err
        assert "Traceback" not in error
        assert "defect" not in error


def test_a_folder_of_reports_is_no_data_folder_and_stays_as_it_is(files: tuple[str, str]) -> None:
    folder = Path(files[0]).parent
    before = sorted(folder.iterdir())
    with pytest.raises(UnknownName, match="holds reports and no runs: `profiler import"):
        profiler.open_store(folder)
    assert profiler.compare(*files, data=folder).verdict is Verdict.BETTER
    assert sorted(folder.iterdir()) == before


def test_an_index_of_a_folder_without_runs_is_empty_and_leaves_nothing(tmp_path: Path) -> None:
    with profiler.open_store(tmp_path) as store:
        assert list(store.runs()) == []
    assert list(tmp_path.iterdir()) == []


def test_a_workload_or_gpu_to_choose_from_files_is_refused(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = files
    reports = [profiler.read_report(file) for file in files]
    for call in (
        lambda **cell: profiler.compare(a, b, **cell),
        lambda **cell: profiler.compare(a, reports[1], **cell),
        lambda **cell: profiler.explain(*reports, **cell),
        lambda **cell: profiler.roofline(a, **cell),
        lambda **cell: profiler.roofline(reports[0], **cell),
        lambda **cell: profiler.insights(a, **cell),
        lambda **cell: profiler.insights(reports[1], against=a, **cell),
    ):
        for argument in ("workload", "gpu"):
            with pytest.raises(UnknownName, match=f"^{argument}=x"):
                call(**{argument: "x"})
    with pytest.raises(UnknownName, match="workload=x"):
        profiler.gate(a, baseline=b, workload="x")
    commands: list[tuple[str, ...]] = [(name, a, b) for name in ("compare", "explain", "sass")]
    commands += [(name, a) for name in ("show", "roofline", "insights", "sass")]
    for command in commands:
        assert main([*command, "--workload", "x"]) == 2
        assert "profiler: --workload x: it selects among the results" in capsys.readouterr().err


@pytest.mark.slow
def test_backup_verify_and_prune_answer_what_the_commands_print(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = profiler.backup(tmp_path / "b.tar.gz", data=data)
    verified, pruned = profiler.verify(data=data), profiler.prune(1e-6, data=data)
    assert (written.exit_code, verified.exit_code, pruned.exit_code) == (0, 0, 0)
    assert verified.verification.runs == written.summary.runs > 0
    monkeypatch.setenv("PROFILER_DATA", str(data))
    same_size = written.to_dict() | {"size_bytes": None}
    assert printed(capsys, "backup", str(tmp_path / "b.tar.gz")) | {"size_bytes": None} == same_size
    assert printed(capsys, "verify") == verified.to_dict()
    assert printed(capsys, "prune", "--older", "1") == pruned.to_dict()
