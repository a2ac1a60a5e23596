"""The worker process that reads ncu's CSV: started as a script, limited and asked as the one for reports is.

Unlike that one it needs this package and numpy, from the places where the parent found them.
"""

from __future__ import annotations

import json
import sys
from typing import Any

Json = dict[str, Any]


def answer(request: Json) -> tuple[Json, bytes]:
    """The report in a CSV as a worker's answer: what a `.ncu-rep` gives, with what its framing would say."""
    from dataclasses import astuple
    from pathlib import Path

    from profiler.errors import UnreadableReport
    from profiler.reports.csv_export import read_csv

    path = Path(request["path"])
    try:
        report = read_csv(path, request["max_bytes"])
    except UnreadableReport as error:
        return {"error": str(error).removeprefix(f"{path}: "), "whole": True}, b""
    sets: dict[int, int] = {}  # place among the shared ones, by identity: launches share their sets
    shared: list[Json] = []
    launches: list[Json] = []
    columns: list[bytes] = []
    for launch in report.launches:
        values = launch.values
        metric_set = values.metric_set
        if id(metric_set) not in sets:
            sets[id(metric_set)] = len(shared)
            shared.append({"names": metric_set.names, "units": metric_set.units, "kinds": metric_set.kinds})
        columns += (values.slots, values.states)
        launches.append(
            {
                "set": sets[id(metric_set)],
                "function": launch.function,
                "demangled": launch.demangled,
                "mangled": launch.mangled,
                "grid": launch.grid,
                "block": launch.block,
                "stream": launch.stream,
                "device": launch.device_column,
                "nvtx": launch.nvtx,
                "opcodes": dict(launch.opcodes),
                "rules": [astuple(rule) for rule in launch.rules],
                "texts": [list(values.texts), list(values.texts.values())],
            }
        )
    head = {
        "sha256": report.sha256,
        "size_bytes": report.size_bytes,
        "form": report.form,
        "warnings": report.warnings,
        "sets": shared,
        "launches": launches,
    }
    return head, b"".join(columns)


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[1])
    from profiler.reports import reader_process

    reader_process.serve("", int(sys.argv[2]), answer)
