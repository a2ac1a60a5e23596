"""Files of Google Benchmark: `--benchmark_out=FILE --benchmark_out_format=json`.

Source: files written by version 1.0 to 1.9. `real_time` of an entry is the mean of its iterations, in its
`time_unit`, and the time that the program gave where it times itself. Each repetition is an entry; where only
aggregates were reported there is none, and the median or mean stands for them. Before version 1.5 no field
says that an entry is an aggregate: its name ends in `_mean`, `_stddev` and the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from profiler.timings.json_fields import Fields, moment
from profiler.timings.timing import NS, NotTimes, Timing, TimingsFile, brief, in_ns

_AGGREGATES = ("median", "mean")  # that stand for repetitions which are not there, best first
_UNNAMED_AGGREGATE = re.compile(r"(.+)_(mean|median|stddev|BigO|RMS)")  # the name of one before version 1.5


@dataclass
class _Benchmark:
    times: list[float] = field(default_factory=list)  # ns, of its repetitions
    aggregates: dict[str, float] = field(default_factory=dict)  # ns
    failure: str | None = None


def read(root: Fields) -> TimingsFile:
    """The benchmarks of a file. Raises NotTimes for one that Google Benchmark does not write."""
    context = root.mapping("context")
    program = PurePosixPath((context.text("executable") or "").replace("\\", "/")).stem
    provenance = {
        "host": context.text("host_name"),
        "command_line": context.text("executable"),
        "tool": f"Google Benchmark {context.text('library_version') or ''}".strip(),
    }
    return TimingsFile(
        "google-benchmark",
        tuple(_timings(root, program or "google-benchmark")),
        moment(date := context.text("date")) or moment(date, "%Y/%m/%d-%H:%M:%S"),
        context.text("git_commit") or context.text("commit"),  # of --benchmark_context
        {key: text for key, text in provenance.items() if text},
    )


def _timings(root: Fields, program: str) -> Iterator[Timing]:
    found: dict[str, _Benchmark] = {}
    entries = list(root.list("benchmarks"))
    names = {entry.text("name") for entry in entries}
    for entry in entries:
        name = entry.text("run_name") or entry.text("name")
        if not name:
            raise NotTimes("a benchmark has no name")
        aggregate = entry.text("aggregate_name")
        if entry.text("run_type") == "aggregate" and not entry.text("run_name"):
            name = name.removesuffix(f"_{aggregate}")
        elif entry.value("run_type") is None and (match := _UNNAMED_AGGREGATE.fullmatch(name)):
            base = match[1]
            if base in names or {f"{base}_mean", f"{base}_stddev"} <= names or f"{base}_RMS" in names:
                name, aggregate = base, match[2]
        benchmark = found.setdefault(name, _Benchmark())
        if entry.value("error_occurred") is True or entry.value("skipped") is True:
            message = entry.text("error_message") or entry.text("skip_message")
            benchmark.failure = f"Google Benchmark says: {message or 'skipped'}"
        elif aggregate in _AGGREGATES:
            benchmark.aggregates[aggregate] = _time(entry, name)
        elif aggregate is None:
            benchmark.times.append(_time(entry, name))
    for name, benchmark in found.items():
        kind, times = "repetitions", benchmark.times
        best = next((kind for kind in _AGGREGATES if kind in benchmark.aggregates), None)
        if best and not times:
            kind, times = best, [benchmark.aggregates[best]]
        if times or benchmark.failure:
            mode = f"Google Benchmark; real time; {kind}"
            failure = None if times else benchmark.failure
            yield Timing(program, None, name, mode, tuple(times), failure=failure)


def _time(entry: Fields, name: str) -> float:
    unit = entry.text("time_unit") or "ns"
    if unit not in NS:
        raise NotTimes(f"{brief(name)} is in {brief(unit)}, which is no unit of time")
    return in_ns(entry.value("real_time"), unit, name)
