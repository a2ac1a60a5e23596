"""Files of Helion's benchmarks (`benchmarks/run.py --output FILE`): records for PyTorch's dashboard.

Source: benchmarks/run.py of Helion. A record has one metric of one kernel, a value for each shape. Times are
`IMPLEMENTATION_latency_ms`, the median of the calls as TritonBench takes it; 0 stands for a run that failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from profiler.timings.json_fields import Fields
from profiler.timings.timing import NotTimes, Timing, TimingsFile, brief, in_ns

_LATENCY = "_latency_ms"


def is_helion(records: Any) -> bool:
    """Whether a list of JSON has such records."""
    first = records[0] if isinstance(records, list) and records else None
    return isinstance(first, dict) and {"benchmark", "model", "metric"} <= first.keys()


def read(records: Sequence[Any]) -> TimingsFile:
    """The times of the records; speedups and accuracies are left out."""
    timings: list[Timing] = []
    for record in records:
        if not isinstance(record, dict):
            raise NotTimes(f"a record is {brief(record)}, which is no object")
        timings += _timings(Fields(record))
    backends = {
        Fields(record).mapping("benchmark").mapping("extra_info").text("backend") for record in records
    } - {None}
    tool = f"Helion, backend {backends.pop()}" if len(backends) == 1 else "Helion"
    return TimingsFile("helion", tuple(timings), provenance={"tool": tool})


def _timings(record: Fields) -> Iterator[Timing]:
    metric = record.mapping("metric")
    name = metric.text("name") or ""
    if not name.endswith(_LATENCY):
        return
    kernel = record.mapping("model").text("name")
    values, shapes = metric.value("benchmark_values"), record.value("shape")
    if (
        not kernel
        or not isinstance(values, list)
        or not isinstance(shapes, list)
        or len(values) != len(shapes)
    ):
        raise NotTimes(f"the record {brief(name)} has no kernel, or not one value for each shape")
    gpu = record.mapping("benchmark").mapping("extra_info").text("device")
    for shape, value in zip(shapes, values, strict=True):
        failed = value == 0
        ns = () if failed else (in_ns(value, "ms", f"{name} at {shape}"),)
        yield Timing(
            kernel,
            name.removesuffix(_LATENCY),
            str(shape),
            "TritonBench; median",
            ns,
            None if gpu == "unknown" else gpu,
            failure="Helion wrote 0, which stands for a run that failed" if failed else None,
        )
