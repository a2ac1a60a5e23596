"""Small programs in the place of those of collect/gpu and of ncu, for collections without a GPU."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles import LocalRoot, Run, load_run
from profiler.catalog import load_catalog
from profiler.collect import Collection, Gpu, Machine, Ncu, Settings, begin_run, gpu_process, resume_run, seal

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

# In the place of every program of collect/gpu; a file beside the catalogue tells what it does with a version.
STAND_IN = """
import json, os, sys, time
program, request_path, result_path = sys.argv[1:4]
request = json.load(open(request_path))
folder = os.path.dirname(request["setup"]["catalog"])
told = json.load(open(os.path.join(folder, "told.json")))
timings = request.get("timings", {})
first = next(iter(timings.values()), request)
versions = [version["id"] for version in first.get("versions") or [first["version"]]]
call = program + " " + ",".join(versions) + (f" x{len(timings)}" if len(timings) > 1 else "")
with open(os.path.join(folder, "calls"), "a") as calls:
    calls.write(call + "\\n")
time.sleep(told.get("sleep", 0) + told.get(f"sleep {program}", 0))
together = "together" if len(timings) > 1 else program
if told.get(program) == "no GPU":
    json.dump({"status": "skipped", "reason": "no GPU: it is gone", "machine": True}, open(result_path, "w"))
    sys.exit(0)
for version in versions:
    how = told.get(f"{together} {version}")
    if how == "crash":
        os.kill(os.getpid(), 11)
    elif how == "hang":
        time.sleep(600)
    elif how == "flood":
        for _ in range(2000):
            print("x" * 10000)
    elif how == "exit":
        print("illegal address"); sys.exit(7)

def samples(version, timing):
    rounds = [number for number in timing["rounds"] for _ in range(timing["samples"])]
    least = told.get(f"ns {version}", 1000.0)
    before = open(os.path.join(folder, "calls")).read().count(program + " ")
    least *= 1 + told.get("wobble", 0) * ((before * 0.618) % 1 - 0.5)
    return [{"mode": f"events; cache {cache}; clock none", "ns": [least + number for number in rounds],
             "rounds": rounds, "clocks_mhz": [], "throttled": [0]} for cache in ("cold", "warm")]

def timed(timing):
    empty = {"single": 2600.0, "events": 2000.0, "graph": 1500.0}
    return {"status": "done", "reason": None, "launch_ns": empty, "versions": {
        version["id"]: {"status": "done", "reason": None, "samples": samples(version["id"], timing),
                        "batch": {"cold": 1, "warm": 1}} for version in timing["versions"]},
        "states": {"before": None, "during": [{"sm_mhz": 1}], "after": None}}

if program == "correctness":
    wrong = told.get(f"correctness {versions[0]}") == "wrong"
    result = {"status": "wrong" if wrong else "done", "reason": "3 wrong" if wrong else None,
              "max_abs_error": 0.5 if wrong else 1e-4}
elif program == "ncu_target":
    refused = [version for version in versions if told.get(f"ncu_target {version}") == "refused"]
    result = {"status": "done", "reason": None, "cells": [
        {"version": version, "status": "failed" if version in refused else "done",
         "reason": "launch refused" if version in refused else None} for version in versions]}
elif program == "latency":
    result = {"status": "done", "reason": None,
              "timings": {label: timed(timing) for label, timing in timings.items()}}
part = result_path + ".part"
json.dump(result, open(part, "w"))
os.replace(part, result_path)
"""


def prepare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the catalogue, and the stand-in in the place of every program of collect/gpu."""
    (tmp_path / "catalog.toml").write_text(CATALOG)
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    tell(tmp_path)
    monkeypatch.setattr(gpu_process, "program_argv", stand_in_argv(tmp_path))
    monkeypatch.setenv("PROFILER_BUILD", str(tmp_path / "build"))
    return tmp_path


def stand_in_argv(folder: Path) -> Any:
    def argv(name: str, request: Path, result: Path) -> list[str]:
        # -I -S: it needs nothing but Python's own, and starts in a third of the time.
        return [sys.executable, "-I", "-S", str(folder / "stand_in.py"), name, str(request), str(result)]

    return argv


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
