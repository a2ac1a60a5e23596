"""What answers in the place of every program of collect/gpu. Run by its path: Python's own library alone.

told.json, beside the catalogue, says how a version fares:
{"latency two": "crash", "correctness one": "wrong"}
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]
ENDINGS = ("crash", "hang", "flood", "exit")  # no answer that can be given without a process of one's own


class Call:
    """One request to one program."""

    def __init__(self, program: str, request: Json) -> None:
        self.program, self.request = program, request
        self.folder = Path(request["setup"]["catalog"]).parent
        self.told: Json = json.loads((self.folder / "told.json").read_text())
        self.timings: dict[str, Json] = request.get("timings", {})
        first = next(iter(self.timings.values()), request)
        self.versions = [version["id"] for version in first.get("versions") or [first["version"]]]

    def endings(self) -> dict[str, str]:
        """How the process ends at each of its versions, where not with an answer."""
        together = "together" if len(self.timings) > 1 else self.program
        told = {version: self.told.get(f"{together} {version}") for version in self.versions}
        return {version: how for version, how in told.items() if how in ENDINGS}

    def begin(self) -> None:
        """Note the call in the file `calls`, and take as long as was told."""
        workloads = f" x{len(self.timings)}" if len(self.timings) > 1 else ""
        with (self.folder / "calls").open("a") as calls:
            calls.write(f"{self.program} {','.join(self.versions)}{workloads}\n")
        time.sleep(self.told.get("sleep", 0) + self.told.get(f"sleep {self.program}", 0))

    def answer(self) -> Json:
        """The program's result."""
        if self.told.get(self.program) == "no GPU":
            return {"status": "skipped", "reason": "no GPU: it is gone", "machine": True}
        if self.program == "correctness":
            wrong = self.told.get(f"correctness {self.versions[0]}") == "wrong"
            status, reason, error = ("wrong", "3 wrong", 0.5) if wrong else ("done", None, 1e-4)
            return {"status": status, "reason": reason, "max_abs_error": error}
        if self.program == "ncu_target":
            return {"status": "done", "reason": None, "cells": [self._cell(name) for name in self.versions]}
        timings = {label: self._timing(timing) for label, timing in self.timings.items()}
        return {"status": "done", "reason": None, "timings": timings}

    def _cell(self, version: str) -> Json:
        refused = self.told.get(f"ncu_target {version}") == "refused"
        status, reason = ("failed", "launch refused") if refused else ("done", None)
        return {"version": version, "status": status, "reason": reason}

    def _timing(self, timing: Json) -> Json:
        versions = {
            version["id"]: self._version_timing(version["id"], timing) for version in timing["versions"]
        }
        return {
            "status": "done",
            "reason": None,
            "launch_ns": {"single": 2600.0, "events": 2000.0, "graph": 1500.0},
            "versions": versions,
            "states": {"before": None, "during": [{"sm_mhz": 1}], "after": None},
        }

    def _version_timing(self, version: str, timing: Json) -> Json:
        rounds = [number for number in timing["rounds"] for _ in range(timing["samples"])]
        # With a wobble each process has a level of its own, the same in every run of the tests.
        calls = (self.folder / "calls").read_text().count(f"{self.program} ")
        level = 1 + self.told.get("wobble", 0) * ((calls * 0.618) % 1 - 0.5)
        least_ns = self.told.get(f"ns {version}", 1000.0) * level
        blocks = [
            {
                "mode": f"events; cache {cache}; clock none",
                "ns": [least_ns + number for number in rounds],
                "rounds": rounds,
                "clocks_mhz": [],
                "throttled": [0],
            }
            for cache in ("cold", "warm")
        ]
        return {"status": "done", "reason": None, "samples": blocks, "batch": {"cold": 1, "warm": 1}}


def end(how: str) -> None:
    """End this process, or keep it from ending."""
    if how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif how == "hang":
        time.sleep(600)
    elif how == "flood":
        for _ in range(2000):
            print("x" * 10000)
    elif how == "exit":
        print("illegal address")
        sys.exit(7)


def write(result: Json, path: Path) -> None:
    """The result, whole or not at all."""
    partial = path.with_name(f"{path.name}.part")
    partial.write_text(json.dumps(result))
    partial.replace(path)


def main() -> None:
    """Answer one request in a process of its own."""
    program, request_path, result_path = sys.argv[1:4]
    call = Call(program, json.loads(Path(request_path).read_text()))
    call.begin()
    answer = call.answer()
    if not answer.get("machine"):
        for how in call.endings().values():
            end(how)
    write(answer, Path(result_path))


if __name__ == "__main__":
    main()
