"""Files of pytest-benchmark: `--benchmark-json FILE` and what `--benchmark-save` keeps.

Source: files written by pytest-benchmark 5.3. Times are seconds; `data` has one of each round, which is the
mean of `iterations` calls. A file that was saved without `--benchmark-save-data` has only statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from profiler.timings.json_fields import Fields, moment
from profiler.timings.timing import NotTimes, Timing, TimingsFile, all_in_ns, brief

_NO_COMMITS = ("unversioned", "unknown", "")


def read(root: Fields) -> TimingsFile:
    """The benchmarks of a file. Raises NotTimes for one that pytest-benchmark does not write."""
    machine, commit = root.mapping("machine_info"), root.mapping("commit_info")
    identifier = commit.text("id") or ""
    if identifier in _NO_COMMITS:
        name = None
    else:
        name = f"{identifier[:12]}-dirty" if commit.value("dirty") is True else identifier[:12]
    provenance = {
        "host": machine.text("node"),
        "cpu": machine.mapping("cpu").text("brand_raw"),
        "python": machine.text("python_version"),
        "branch": commit.text("branch"),
        "tool": f"pytest-benchmark {root.text('version') or ''}".strip(),
    }
    return TimingsFile(
        "pytest-benchmark",
        tuple(_timings(root)),
        moment(root.text("datetime")),
        name,
        {key: text for key, text in provenance.items() if text},
    )


def _timings(root: Fields) -> Iterator[Timing]:
    for benchmark in root.list("benchmarks"):
        name = benchmark.text("name")
        if not name:
            raise NotTimes("a benchmark has no name")
        stats = benchmark.mapping("stats")
        data: Any = stats.value("data")
        if data is not None and not isinstance(data, list):
            raise NotTimes(f"the data of {brief(name)} is {brief(data)}, which is no list")
        if data:
            mode, times = "rounds", data
        elif stats.value("median") is not None:
            mode, times = "median", [stats.value("median")]
        else:
            raise NotTimes(f"{brief(name)} has neither data nor a median")
        module = PurePosixPath((benchmark.text("fullname") or "").partition("::")[0]).stem
        yield Timing(
            benchmark.text("group") or module or "pytest-benchmark",
            None,
            name,
            f"pytest-benchmark; wall time; {mode}",
            all_in_ns(times, "s", name),
        )
