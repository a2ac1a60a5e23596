"""Which tool wrote a file of times, and what it holds."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

from profiler.errors import ProfilerError
from profiler.evidence.plain_file import read_plain
from profiler.timings import columns, google_benchmark, helion, nvbench, pytest_benchmark, tritonbench
from profiler.timings.columns import TableColumns
from profiler.timings.json_fields import Fields
from profiler.timings.timing import NotTimes, TimingsFile, brief

_HALF = re.compile(r"\\u[Dd][89A-Fa-f]")  # of a character beyond 16 bits, which JSON writes as two
MAX_BYTES = 64 << 20
_HEAD_BYTES = 1 << 16  # in which a file shows which tool wrote it
# What stands at the beginning, also where another program wrote the fields in the order of the alphabet.
_JSON_FORMS = (
    ("pytest-benchmark", re.compile(r'"(?:machine_info|disable_gc)"\s*:')),
    (
        "google-benchmark",
        re.compile(
            r'"context"\s*:\s*\{[^}]*"(?:executable|num_cpus|mhz_per_cpu)"|"(?:cpu|real)_time"\s*:[^}]*"(?:cpu|real)_time"\s*:'
        ),
    ),
    ("nvbench", re.compile(r'"(?:nvbench|sm_version|type_config_index)"\s*:')),
    ("tritonbench", tritonbench.IS_KEY),
    ("tritonbench", re.compile(r'"tritonbench_commit"\s*:')),
    ("helion", re.compile(r'^\s*\[\s*\{\s*"benchmark"\s*:.*"benchmark_values"\s*:', re.DOTALL)),
)


def timings_form(path: Path) -> str | None:
    """The tool that wrote a .json or .csv file of times, by its beginning; None for any other file.

    Raises OSError where it cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix not in (".json", ".csv"):
        return None
    head = read_plain(path, _HEAD_BYTES).decode("utf-8-sig", errors="replace")
    if suffix == ".json":
        return next((form for form, pattern in _JSON_FORMS if pattern.search(head)), None)
    lines = head.strip().splitlines()[:1]
    if lines and tritonbench.is_header(lines[0].strip()):
        return "tritonbench"
    header = _header(lines)
    if columns.plain_columns(header):
        return columns.PLAIN
    return columns.TRITON if columns.triton_columns(header) else None


def read_timings(path: Path, named: TableColumns | None = None) -> tuple[TimingsFile, ...]:
    """The runs in a file of times; named: the columns of a table that no tool here is known to write.

    Raises ProfilerError, which names the file, for one that is damaged, or that holds no times.
    """
    try:
        content = read_plain(path, MAX_BYTES)
        if len(content) > MAX_BYTES:
            raise NotTimes(f"a file of times of over {MAX_BYTES >> 20} MiB: split it")
        runs = _read(path, content, named)
        if not any(run.timings for run in runs):
            raise NotTimes("holds no times")
    except (NotTimes, csv.Error, RecursionError) as error:
        raise ProfilerError(f"{path}: {error}") from error
    return runs


def _read(path: Path, content: bytes, named: TableColumns | None) -> tuple[TimingsFile, ...]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotTimes("is no UTF-8 text: damaged, or of another kind") from error
    if named is not None and named.names:
        return columns.read(text.splitlines(), path.name, named, columns.NAMED, "times of a table")
    form = timings_form(path)
    if path.suffix.lower() == ".json":
        return (_read_json(path, _parsed(text), form),)
    lines = text.strip().splitlines()
    if form == "tritonbench":
        return (tritonbench.read_table(lines, path.name),)
    header = _header(lines)
    if form == columns.TRITON and (found := columns.triton_columns(header)):
        return columns.read(lines, path.name, found, form, "triton.testing; one value")
    if plain := columns.plain_columns(header):
        return columns.read(lines, path.name, plain, columns.PLAIN, "times of a table")
    known = f"no table of times that is known, with the columns {brief(', '.join(header))}"
    raise NotTimes(f"{known}: {columns.NAME_COLUMNS}")


def _header(lines: list[str]) -> list[str]:
    return [cell.strip() for cell in next(csv.reader(lines[:1]), [])]


def _read_json(path: Path, root: Any, form: str | None) -> TimingsFile:
    if helion.is_helion(root):
        return helion.read(root)
    if not isinstance(root, dict):
        raise NotTimes("holds no object of a benchmark tool")
    fields = Fields(root)
    if form == "pytest-benchmark":
        return pytest_benchmark.read(fields)
    if form == "google-benchmark":
        return google_benchmark.read(fields)
    if form == "nvbench":
        return nvbench.read(fields, lambda name: _read_beside(path, name))
    if form == "tritonbench":
        return tritonbench.read_json(fields)
    raise NotTimes("no file of pytest-benchmark, Google Benchmark, NVBench, TritonBench or Helion")


def _parsed(text: str) -> Any:
    try:
        root = json.loads(text)
        if _HALF.search(text):
            json.dumps(root, ensure_ascii=False).encode()
        return root
    except UnicodeEncodeError as error:
        raise NotTimes("holds half a character: damaged") from error
    except json.JSONDecodeError as error:
        raise NotTimes(f"is no JSON from line {error.lineno} on: cut short or damaged") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise NotTimes("holds a number that no program prints") from error


def _read_beside(path: Path, name: str) -> bytes | None:
    """A file by its path as it stands in the file `path`: its last two parts, beside it; None without it."""
    parts = [part for part in re.split(r"[/\\]", name) if part]
    if not parts or any(part == ".." for part in parts[-2:]):
        return None
    for beside in (Path(*parts[-2:]), Path(f"{path.name}{_kind(parts)}", parts[-1])):
        try:
            content = read_plain(path.parent / beside, MAX_BYTES)
        except OSError:
            continue
        return content
    return None


def _kind(parts: list[str]) -> str:
    """`-bin` of `result.json-bin/0.bin`: what follows the name of the file, which may have been renamed."""
    match = re.search(r"(-freqs-bin|-bin)$", parts[-2] if len(parts) > 1 else "")
    return match[1] if match else "-bin"
