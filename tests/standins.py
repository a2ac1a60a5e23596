"""Small programs in the place of the stages and of ncu, for collections without a GPU."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles import LocalRoot, bundle
from profiler.catalog import catalog
from profiler.collect import gpu_process, run_inputs, seal
from profiler.collect.collection import Collection
from profiler.collect.machine import Machine
from profiler.collect.ncu_command import Ncu
from profiler.collect.settings import Settings

GPU = {"name": "stand-in", "uuid": "GPU-0", "compute_capability": "9.0", "driver": "580", "cuda": "13.0"}
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

# A program in the place of a stage: what it does with a version is told by a file beside the catalogue.
STAND_IN = """
import json, os, sys, time
stage, asked, answer = sys.argv[1:4]
request = json.load(open(asked))
parts = request.get("parts")
first = next(iter(parts.values())) if parts else request
folder = os.path.dirname(first["catalog"])
told = json.load(open(os.path.join(folder, "told.json")))
versions = first.get("versions") or [first["version"]]
with open(os.path.join(folder, "calls"), "a") as calls:
    calls.write(stage + " " + ",".join(v["id"] for v in versions) + "\\n")
time.sleep(told.get("sleep", 0))
time.sleep(told.get(f"sleep {stage}", 0))
if told.get(stage) == "no GPU":
    json.dump({"status": "skipped", "reason": "no GPU: it is gone", "machine": True}, open(answer, "w"))
    sys.exit(0)
for version in versions:
    how = told.get(f"{stage} {version['id']}")
    if how == "crash":
        os.kill(os.getpid(), 11)
    elif how == "hang":
        time.sleep(600)
    elif how == "flood":
        for _ in range(2000):
            print("x" * 10000)
    elif how == "exit":
        print("illegal address"); sys.exit(7)
def samples(v, request):
    rounds = [r for r in request["rounds"] for _ in range(request["samples"])]
    least = told.get(f"ns {v['id']}", 1000.0)
    before = open(os.path.join(folder, "calls")).read().count(stage + " ")  # sessions of equal builds differ
    least *= 1 + told.get("wobble", 0) * ((before * 0.618) % 1 - 0.5)
    return [{"mode": f"events; cache {m}; clock none", "ns": [least + r for r in rounds], "rounds": rounds,
             "clocks_mhz": [], "throttled": [0]} for m in ("cold", "warm")]
if stage == "correctness":
    how = told.get(f"correctness {versions[0]['id']}")
    bad = how == "wrong"
    result = {"status": "wrong" if bad else "done", "reason": "3 wrong" if bad else None,
              "max_abs_error": 0.5 if how == "wrong" else 1e-4}
elif stage == "ncu_target":
    refused = [v["id"] for v in versions if told.get(f"ncu_target {v['id']}") == "refused"]
    result = {"status": "done", "reason": None, "cells": [
        {"version": v["id"], "status": "failed" if v["id"] in refused else "done",
         "reason": "launch refused" if v["id"] in refused else None} for v in versions]}
def timed(request):
    empty = {"single": 2600.0, "events": 2000.0, "graph": 1500.0}
    return {"status": "done", "reason": None, "launch_ns": empty, "versions": {
        v["id"]: {"status": "done", "reason": None, "samples": samples(v, request),
                  "batch": {"cold": 1, "warm": 1}} for v in request["versions"]},
        "states": {"before": None, "during": [{"sm_mhz": 1}], "after": None}}
if stage == "latencies":
    result = {"status": "done", "reason": None, "parts": {label: timed(one) for label, one in parts.items()}}
elif stage == "latency":
    result = timed(request)
part = answer + ".part"
json.dump(result, open(part, "w"))
os.replace(part, answer)
"""


def prepare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the catalogue, and the stand-in in the place of every stage."""
    (tmp_path / "catalog.toml").write_text(CATALOG)
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    tell(tmp_path)
    monkeypatch.setattr(gpu_process, "stage_argv", stand_in_argv(tmp_path))
    monkeypatch.setenv("PROFILER_BUILD", str(tmp_path / "build"))
    return tmp_path


def stand_in_argv(folder: Path) -> Any:
    def argv(stage: str, request: Path, result: Path) -> list[str]:
        return [sys.executable, str(folder / "stand_in.py"), stage, str(request), str(result)]

    return argv


def tell(folder: Path, **how: Any) -> None:
    content = {key.replace("__", " "): value for key, value in how.items()}
    (folder / "told.json").write_text(json.dumps(content))


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def begin(folder: Path, machine: Machine | None = None, **changed: Any) -> Collection:
    settings = Settings(
        **{"versions": ("one", "two", "three"), "workloads": (SMALL,), "rounds": 6, **changed}
    )
    lineage = catalog.load_catalog(folder)
    staging = run_inputs.begin(LocalRoot(folder / "data"), lineage, settings)
    return Collection(staging, lineage, settings, machine or Machine(GPU, None, None, ["no ncu here"]))


def again(folder: Path, run_id: str, machine: Machine | None = None) -> Collection:
    staging, lineage, settings = run_inputs.resume(LocalRoot(folder / "data"), run_id)
    return Collection(staging, lineage, settings, machine or Machine(GPU, None, None, ["no ncu here"]))


def finish(folder: Path, collection: Collection) -> Any:
    root = LocalRoot(folder / "data")
    return bundle.load_run(root, seal.seal(root, collection))


def cells(run: Any) -> dict[str, Any]:
    return {one.version: one for one in run.results if one.workload == "1x1x64x64"}


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
    program.write_text(f"#!{sys.executable}\n{textwrap.dedent(body)}")
    program.chmod(0o755)
    return Ncu(program, "2025.3.1.0")


def scripted_ncu(folder: Path, script: str) -> Ncu:
    """A program in the place of ncu: `argv` holds its options, `program` runs what it is to look at."""
    program = folder / "scripted" / "ncu"
    program.parent.mkdir(exist_ok=True)
    before = f"""#!{sys.executable}
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
