"""Every script of bench/ runs at its smallest size: one that has rotted fails here, not when it is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
# What only the other scripts import.
PARTS = {"live_pair_noise", "simulator", "stored_noise"}
COMPILED = pytest.mark.compiler("nvcc", "cuobjdump", "nvdisasm", "g++")
LONG = pytest.mark.long
# The script, its arguments, and what marks it; DATA, REPORTS and OUT are folders.
RUNS = [
    pytest.param("advice", ["--lineage"], id="advice-lineage"),
    pytest.param("advice", ["REPORTS", "OUT/steps.json"], id="advice"),
    pytest.param("data_folder", ["OUT/data", "--runs", "5", "--samples", "2"], id="data_folder"),
    pytest.param("dashboard", ["DATA", "--only", "queries", "--rounds", "1"], id="dashboard"),
    pytest.param("example_runs", ["REPORTS", "OUT/examples"], id="example_runs"),
    pytest.param("floors", ["--floors", "20"], id="floors"),
    pytest.param("history", ["--repeats", "2", "--peer-repeats", "1"], id="history"),
    pytest.param("import_walk", ["1", "REPORTS", "--no-limits"], id="import_walk"),
    pytest.param("predict", ["REPORTS"], id="predict"),
    pytest.param(
        "predict_speed",
        ["REPORTS/mistic/prof1.ncu-rep", "--rounds", "1", "--launches", "3"],
        id="predict_speed",
    ),
    pytest.param("mcp_reports", ["REPORTS", "--rounds", "1", "--count", "2"], id="mcp_reports"),
    pytest.param(
        "mutants", ["--most", "1", "--versions", "v1", "--jobs", "1"], id="mutants", marks=(COMPILED, LONG)
    ),
    pytest.param("static_tools", ["v1"], id="static_tools", marks=(COMPILED, LONG)),
    pytest.param(
        "opcode_masks",
        ["tests/sass/planted.cu", "--arch", "sm_90a", "--most", "20", "--check"],
        id="opcode_masks",
        marks=COMPILED,
    ),
    pytest.param("machine_code", ["v1"], id="machine_code", marks=(COMPILED, LONG)),
    pytest.param(
        "search_landscape",
        ["OUT/landscape.json", "--most", "1", "--trust"],
        id="search_landscape",
        marks=(COMPILED, LONG),
    ),
    pytest.param("alarms", ["--stores", "1"], id="alarms", marks=LONG),
    pytest.param("search", ["1"], id="search", marks=LONG),
    pytest.param("store", ["--runs", "200", "--samples", "5", "--db", "sqlite"], id="store", marks=LONG),
    pytest.param("verdicts", ["--repeats", "2"], id="verdicts", marks=LONG),
    pytest.param("ten_tasks", ["--only", "pin"], id="ten_tasks", marks=(pytest.mark.browser, LONG)),
]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench") / "data"
    run("data_folder", [str(folder), "--runs", "5", "--samples", "2"], folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("script", "arguments"), RUNS)
def test_it_runs_at_its_smallest_size(
    script: str, arguments: list[str], made_reports: Path, data: Path, committed_data: Path, tmp_path: Path
) -> None:
    reports = tmp_path / "reports"
    for name in ("mistic/prof1", "mistic/prof2", "esmm/profile@ee5ce738", "esmm/profile@17f278cb"):
        path = reports / f"{name}.ncu-rep"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made_reports / f"{name}.ncu-rep", path)
    (tmp_path / "steps.json").write_text(json.dumps([]))
    folders = {"REPORTS": reports, "DATA": data, "OUT": tmp_path}
    words = [argument.partition("/") for argument in arguments]
    if arguments == ["--lineage"]:  # of the committed runs
        data = tmp_path / "committed"
        shutil.copytree(committed_data, data)
    if script == "predict":
        reports = reports.rename(reports.with_name("owner+name"))  # a folder of a repository
        folders["REPORTS"] = tmp_path
    run(script, [str(folders.get(head, head)) + slash + rest for head, slash, rest in words], data)


def test_every_script_is_run() -> None:
    scripts = {path.stem for path in BENCH.glob("*.py")}
    assert scripts == PARTS | {str(parameters.values[0]) for parameters in RUNS}


def run(script: str, arguments: list[str], data: Path) -> None:
    """Run a script as its head says, on other data than this checkout's."""
    done = subprocess.run(
        [sys.executable, str(BENCH / f"{script}.py"), *arguments],
        cwd=ROOT,
        env={**os.environ, "PROFILER_DATA": str(data), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.returncode == 0, (done.stdout[-500:], done.stderr[-2000:])
