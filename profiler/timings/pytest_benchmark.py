"""Files of pytest-benchmark: `--benchmark-json FILE` and what `--benchmark-save` keeps.

Source: files written by pytest-benchmark 5.3. Times are seconds; `data` has one of each round, which is the
mean of `iterations` calls. A file that was saved without `--benchmark-save-data` has only statistics.
"""

from __future__ import annotations

from collections import Counter
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
    named = [_names(benchmark) for benchmark in root.list("benchmarks")]
    alike = Counter((suite, name) for suite, name, _ in named)
    for benchmark, (suite, name, full_name) in zip(root.list("benchmarks"), named, strict=True):
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
        yield Timing(
            suite,
            None,
            name if alike[suite, name] == 1 else full_name,  # in two classes, or two modules of a group
            f"pytest-benchmark; wall time; {mode}",
            all_in_ns(times, "s", name),
        )


def _names(benchmark: Fields) -> tuple[str, str, str]:
    """Its group or else its module, its name, and its name with module and class."""
    name, full_name = benchmark.text("name"), benchmark.text("fullname") or ""
    if not name:
        raise NotTimes("a benchmark has no name")
    module = PurePosixPath(full_name.partition("::")[0]).stem
    return benchmark.text("group") or module or "pytest-benchmark", name, full_name or name
