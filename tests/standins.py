"""Small programs in the place of those of collect/gpu and of ncu, for collections without a GPU."""

from __future__ import annotations

import contextlib
import json
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles.bundle import load_run
from profiler.bundles.location import LocalRoot
from profiler.bundles.run import Run
from profiler.catalog.catalog import load_catalog
from profiler.collect import gpu_process, seal, subprocesses
from profiler.collect.collection import Collection
from profiler.collect.gpu.messages import Program, RequestT, ResultT
from profiler.collect.gpu.properties import Gpu
from profiler.collect.machine import Machine
from profiler.collect.ncu_command import Ncu
from profiler.collect.run_inputs import begin_run, resume_run
from profiler.collect.settings import Settings
from profiler.collect.subprocesses import ProcessResult
from tests import stand_in_program

GPU = Gpu(name="stand-in", uuid="GPU-0", compute_capability="9.0", driver="580", cuda="13.0")
SMALL = {"batch": 1, "heads": 1, "len_q": 64, "len_kv": 64, "head_dim": 64, "causal": False, "dtype": "fp16"}
CATALOG = """
family = "attention"
problem = "profiler.catalog.attention:ATTENTION"
[[version]]
id = "one"
technique = "a stand-in"
callable = "profiler.catalog.torch_backends:sdpa"
[[version]]
id = "two"
technique = "a stand-in"
callable = "profiler.catalog.torch_backends:sdpa_math"
[[version]]
id = "three"
technique = "a stand-in"
callable = "profiler.catalog.torch_backends:sdpa_flash"
"""


def prepare(folder: Path, monkeypatch: pytest.MonkeyPatch, *, apart: bool = False) -> Path:
    """A folder with the catalogue, and the stand-in in the place of every program of collect/gpu.

    apart: each call in a process of its own, as it really is, and guarded as such. Else in this process,
    unless it is told to crash, hang, flood or exit: most tests are of what is made of an answer.
    """
    (folder / "catalog.toml").write_text(CATALOG)
    tell(folder)
    monkeypatch.setattr(gpu_process, "program_argv", stand_in_argv)
    if not apart:
        monkeypatch.setattr(gpu_process, "run_program", _answer_here)
        monkeypatch.setattr(subprocesses, "kill_on_exit", lambda _folder: contextlib.nullcontext())
    monkeypatch.setenv("PROFILER_BUILD", str(folder / "build"))
    return folder


def stand_in_argv(name: str, request: Path, result: Path) -> list[str]:
    """The command line of the stand-in for a program; -I -S starts it in a third of the time."""
    return [sys.executable, "-I", "-S", stand_in_program.__file__, name, str(request), str(result)]


_run_apart = gpu_process.run_program


def _answer_here(
    program: Program[RequestT, ResultT], request: RequestT, folder: Path, *, timeout_s: float, **how: Any
) -> ResultT:
    """As gpu_process.run_program, by way of the same files, but without a process where none is needed."""
    prepared = gpu_process.prepare(program, request, folder)
    request_path = folder / f"{program.name}.request.json"
    call = stand_in_program.Call(program.name, json.loads(request_path.read_text()))
    if call.endings():
        return _run_apart(program, request, folder, timeout_s=timeout_s, **how)
    begun = time.monotonic()
    call.begin()
    stand_in_program.write(call.answer(), prepared.result_path)
    seconds = time.monotonic() - begun
    result = prepared.result(ProcessResult("exited", 0, seconds, "", "ended with exit code 0"))
    result["seconds"] = round(seconds, 3)
    return result


def tell(folder: Path, **how: Any) -> None:
    """What the stand-in does from now on: PROGRAM__VERSION="crash", sleep__PROGRAM=0.5, …."""
    content = {key.replace("__", " "): value for key, value in how.items()}
    (folder / "told.json").write_text(json.dumps(content))


def calls(folder: Path) -> list[str]:
    """The programs that were called, each with its versions, and how many workloads were timed in one."""
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def stand_in_machine() -> Machine:
    """A GPU without ncu."""
    return Machine(GPU, None, None, ["no ncu here"])


def begin(folder: Path, machine: Machine | None = None, **changed: Any) -> Collection:
    """A collection of three versions on one workload; `changed`: other settings."""
    settings = Settings(
        **{"versions": ("one", "two", "three"), "workloads": (SMALL,), "rounds": 6, **changed}
    )
    run = begin_run(LocalRoot(folder / "data"), load_catalog(folder), settings)
    return Collection(run, machine or stand_in_machine())


def again(folder: Path, run_id: str, machine: Machine | None = None) -> Collection:
    """A run that goes on."""
    return Collection(resume_run(LocalRoot(folder / "data"), run_id), machine or stand_in_machine())


def finish(folder: Path, collection: Collection) -> Run:
    """The sealed run."""
    root = LocalRoot(folder / "data")
    return load_run(root, seal.seal(root, collection))


def cells(run: Run) -> dict[str, Any]:
    """The result of each version on the workload; the last one, where a failed one stands beside it."""
    return {result.version: result for result in run.results if result.workload == "1x1x64x64"}


# It writes a real report where --export says, and prints the real ncu's CSV of it for --import.
NCU = """
import shutil, sys
report, csv, said, code = {report!r}, {csv!r}, {said!r}, {code}
if "--import" in sys.argv:
    sys.stdout.write(open(csv).read())
elif "--query-metrics" in sys.argv or "--list-sections" in sys.argv:
    pass
else:
    sys.stdout.write(said)
    if report:
        shutil.copy(report, sys.argv[sys.argv.index("--export") + 1])
    sys.exit(code)
"""


def stand_in_ncu(folder: Path, report: Path | None, csv: Path | None, said: str = "", code: int = 0) -> Ncu:
    program = folder / "ncu"
    body = NCU.format(report=str(report or ""), csv=str(csv or ""), said=said, code=code)
    program.write_text(f"#!{sys.executable} -IS\n{textwrap.dedent(body)}")
    program.chmod(0o755)
    return Ncu(program, "2025.3.1.0")


def scripted_ncu(folder: Path, script: str) -> Ncu:
    """A program in the place of ncu: `argv` holds its options, `program` runs what it is to look at."""
    program = folder / "scripted" / "ncu"
    program.parent.mkdir(exist_ok=True)
    before = f"""#!{sys.executable} -IS
import shutil, subprocess, sys
argv = sys.argv[1:]
if "--query-metrics" in argv or "--list-sections" in argv:
    sys.exit(0)
def after(option):
    return [argv[at + 1] for at, word in enumerate(argv) if word == option]
def program():
    subprocess.run(argv[argv.index("--export") + 2:])
def report(path):
    shutil.copy(path, after("--export")[0])
    open({str(folder / "ncu-calls")!r}, "a").write(" ".join(argv) + "\\n")
def fail(words):
    open({str(folder / "ncu-calls")!r}, "a").write(" ".join(argv) + "\\n")
    print(words); sys.exit(1)
"""
    program.write_text(before + textwrap.dedent(script))
    program.chmod(0o755)
    return Ncu(program, "2025.3.1.0")


def ncu_calls(folder: Path) -> list[str]:
    path = folder / "ncu-calls"
    return path.read_text().splitlines() if path.exists() else []
