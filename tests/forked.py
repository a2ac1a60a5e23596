"""Commands in processes of their own that need not import the package: each is forked from one that has.

Importing takes half a second of processor time, as long as most commands take.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# The rooms that commands take modules from when they run.
_ROOMS = ("profiler.cli", "profiler.documents", "profiler.store")
_SERVER = """
import importlib, json, os, pkgutil, runpy, sys
sys.modules.update(dict.fromkeys({missing}))
for room in {rooms}:
    for module in pkgutil.iter_modules(importlib.import_module(room).__path__, room + "."):
        importlib.import_module(module.name)
while line := sys.stdin.readline():
    call = json.loads(line)
    pid = os.fork()
    if not pid:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    sys.exit()
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for number, path in enumerate(call["output"], 1):
    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
os.environ.clear()
os.environ.update(call["environment"])
sys.argv = ["profiler", *call["words"]]
runpy.run_module("profiler", run_name="__main__", alter_sys=True)
"""


class Forked:
    """A Python that has imported the package of one folder and forks for each command."""

    def __init__(self, folder: Path, scratch: Path, missing: tuple[str, ...] = ()) -> None:
        """folder: the working directory, which has the package. missing: modules that cannot be imported."""
        self._scratch = scratch
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER.format(missing=missing, rooms=_ROOMS)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run `python -m profiler` with these words, as subprocess.run does."""
        assert self._server.stdin
        assert self._server.stdout
        output = [self._scratch / name for name in ("stdout", "stderr")]
        call = {"words": words, "environment": dict(environment), "output": [str(path) for path in output]}
        self._server.stdin.write(json.dumps(call) + "\n")
        self._server.stdin.flush()
        code = int(self._server.stdout.readline())
        return subprocess.CompletedProcess(words, code, *(path.read_text("utf-8") for path in output))

    def close(self) -> None:
        """End the process that forks."""
        self._server.communicate()
