"""Files of TritonBench: the table of an operator (CSV with `;`, or JSON), and the result of a nightly run.

Source: tritonbench/utils/triton_op.py and benchmarks/nightly/run.py of TritonBench. A column is
IMPLEMENTATION-METRIC, of which the times are `latency` and `walltime`, in ms, the median of the calls; a row
is an input, named by its size. In place of a time stands the error of an implementation that failed. The last
rows, `average` and `hashes`, are no inputs.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from profiler.timings.json_fields import Fields, moment
from profiler.timings.timing import NotTimes, Timing, TimingsFile, brief, in_ns

_TIMES = ("latency", "walltime")
_NO_INPUTS = ("average", "hashes")
_INPUT = r"tritonbench_(?P<operator>.+?)\[x_(?P<size>.*)-(?P<name>[^-\]]*)"
_KEYS = (  # of `naive-softmax` the brackets have `naive`; until October 2024 they had the metric too
    re.compile(_INPUT + r"\]_(?:(?P<rest>.*)-)?(?P<metric>latency|walltime)"),
    re.compile(_INPUT + r"(?P<rest>)-(?P<metric>latency|walltime)\]"),
)
IS_KEY = re.compile(r'"tritonbench_[^"\n]*(?:\]|-pass)')
_VARIANCE = re.compile(r"\s*\(±[0-9.]+ ?%\)\s*")  # of the style that prints it beside the median
# `op_softmax_k3x0.csv`, as --output-dir names it; `softmax.csv`
_FILE_NAME = re.compile(r"op_(?P<operator>.+)_[a-z0-9_]{8}")


def is_header(line: str) -> bool:
    """Whether this is the first line of a table."""
    cells = line.split(";")
    return len(cells) > 1 and any(cell.strip().endswith(_TIMES) and "-" in cell for cell in cells[1:])


def read_table(lines: Sequence[str], name: str) -> TimingsFile:
    """The table of an operator; name: of its file, which alone may say the operator."""
    rows = csv.reader(lines, delimiter=";")
    header = [cell.strip() for cell in next(rows)]
    columns = [
        (place, cell[: -len(metric) - 1], metric)
        for place, cell in enumerate(header)
        for metric in _TIMES
        if place and cell.endswith(f"-{metric}")
    ]
    stem = PurePosixPath(name).stem
    match = _FILE_NAME.fullmatch(stem)
    operator = match["operator"] if match else stem
    timings = []
    for row in rows:
        if not row or row[0] in _NO_INPUTS:
            continue
        if len(row) > len(header):
            raise NotTimes(
                f"the row of {brief(row[0])} has {len(row)} of {len(header)} cells: cut or damaged"
            )
        row += [""] * (len(header) - len(row))
        for place, implementation, metric in columns:
            timings.append(_timing(operator, row[0].strip(), implementation, metric, row[place]))
    return TimingsFile("tritonbench", tuple(filter(None, timings)), provenance={"tool": "TritonBench"})


def read_json(root: Fields) -> TimingsFile:
    """The JSON of an operator, or of a nightly run, which says where it ran."""
    environment = root.mapping("env")
    metrics = root.mapping("metrics") if root.value("metrics") is not None else root
    gpu = environment.text("device")
    timings = tuple(_json_timings(metrics, None if gpu == "unknown" else gpu))
    known = {
        "cuda": environment.text("cuda_version"),
        "triton_commit": environment.text("triton_commit"),
        "pytorch_commit": environment.text("pytorch_commit"),
        "tritonbench_commit": environment.text("tritonbench_commit"),
    }
    commit = known["triton_commit"] or ""
    return TimingsFile(
        "tritonbench",
        timings,
        moment(environment.text("benchmark_date"), "%Y%m%d%H%M%S"),
        commit[:12] if commit not in ("", "unknown") else None,
        {"tool": "TritonBench"} | {key: text for key, text in known.items() if text and text != "unknown"},
    )


def _json_timings(metrics: Fields, gpu: str | None) -> Iterator[Timing]:
    for key, value in metrics.items():
        match = next(filter(None, (pattern.fullmatch(key) for pattern in _KEYS)), None)
        if match is None or match["size"] in _NO_INPUTS:
            continue
        name = "-".join(filter(None, (match["name"], match["rest"])))
        timing = _timing(match["operator"], match["size"], name, match["metric"], value, gpu)
        if timing is not None:
            yield timing


def _timing(
    operator: str, size: str, implementation: str, metric: str, value: Any, gpu: str | None = None
) -> Timing | None:
    """The time in a cell; None where it is empty: that input was not run."""
    if value is None or value == "":
        return None
    failure: str | None = None
    ns: tuple[float, ...] = ()
    if isinstance(value, str):
        try:
            value = float(_VARIANCE.sub("", value))
        except ValueError:
            failure = f"TritonBench says: {brief(value)}"
    if failure is None:
        ns = (in_ns(value, "ms", f"{implementation} at {size}"),)
    mode = "TritonBench; median" if metric == "latency" else f"TritonBench; {metric}; median"
    return Timing(operator, implementation, size, mode, ns, gpu, failure=failure)
