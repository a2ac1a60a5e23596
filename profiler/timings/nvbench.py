"""Files of NVBench: `--json FILE`, and `--jsonbin FILE` with the samples in files beside it.

Source: nvbench/json_printer.cu of NVBench and files that it wrote, JSON version 1.0. Times are seconds, and
numbers stand as text. A state is one benchmark on one device with one value of each axis. Its samples are
little-endian float32 in FILE-bin/N.bin, and the mean SM clock of each, in Hz, in FILE-freqs-bin/N.bin.
"""

from __future__ import annotations

import array
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from profiler.timings.json_fields import Fields
from profiler.timings.timing import NotTimes, Timing, TimingsFile, all_in_ns, brief, in_ns

_SAMPLES = "nv/json/bin:nv/cold/sample_times"
_CLOCKS = "nv/json/freqs-bin:nv/cold/sample_freqs"
# What one number stands for the calls, where their samples are not kept: tag, and what it is.
_SUMMARIES = (
    ("nv/cold/time/gpu/median", "cold; median"),
    ("nv/cold/time/gpu/mean", "cold; mean"),
    ("nv/cpu_only/time/cpu/mean", "CPU only; mean"),
)
_TOO_OLD = "an NVBench before its JSON version 1.0 wrote it, with other fields: measure with a newer one"
_BATCH = "nv/batch/time/gpu/mean"  # calls one after the other, with a warm cache

ReadBeside = Callable[
    [str], bytes | None
]  # the content of a file beside this one; None where it is not there


def read(root: Fields, read_beside: ReadBeside) -> TimingsFile:
    """The states of a file. Raises NotTimes for one that NVBench does not write, or without its samples' end.

    read_beside: reads a file by its path as it stands in this one.
    """
    devices = {device.text("id"): device for device in root.list("devices")}
    warnings: dict[str, None] = {}
    timings = tuple(_timings(root, devices, read_beside, warnings))
    meta = root.mapping("meta")
    version = meta.mapping("version").mapping("nvbench")
    arguments = meta.value("argv")
    capabilities = {device.text("sm_version") for device in devices.values()}
    provenance = {
        "command_line": " ".join(map(str, arguments)) if isinstance(arguments, list) else None,
        "tool": f"NVBench {version.text('git_version') or version.text('string') or ''}".strip(),
        "compute_capability": _capability(capabilities.pop()) if len(capabilities) == 1 else None,
    }
    return TimingsFile(
        "nvbench",
        timings,
        provenance={key: text for key, text in provenance.items() if text},
        warnings=tuple(warnings),
    )


def _capability(sm_version: str | None) -> str | None:
    """900 is 9.0."""
    return (
        f"{int(sm_version) // 100}.{int(sm_version) % 100 // 10}"
        if sm_version and sm_version.isdecimal()
        else None
    )


def _timings(
    root: Fields, devices: Mapping[str | None, Fields], read_beside: ReadBeside, warnings: dict[str, None]
) -> Iterator[Timing]:
    alike = Counter(device.text("name") for device in devices.values())
    for benchmark in root.list("benchmarks"):
        name = benchmark.text("name")
        if not name:
            raise NotTimes("a benchmark has no name")
        if isinstance(benchmark.value("states"), dict):
            raise NotTimes(_TOO_OLD)
        for state in benchmark.list("states"):
            axes = [(axis.text("name"), axis.text("value")) for axis in state.list("axis_values")]
            device = devices.get(state.text("device"))
            gpu = device.text("name") if device else None
            if alike[gpu] > 1:  # of which each is measured
                axes.append(("Device", state.text("device")))
            parameters = " ".join(f"{axis}={value}" for axis, value in axes)
            place = f"{name} {parameters}".strip()
            if state.value("is_skipped") is True:
                reason = f"NVBench skipped it: {state.text('skip_reason') or 'no reason given'}"
                yield Timing(name, None, parameters, "NVBench; cold; samples", (), gpu, failure=reason)
                continue
            summaries = {summary.text("tag"): summary for summary in state.list("summaries")}
            if None in summaries:
                raise NotTimes(_TOO_OLD)
            cold = _cold(summaries, place, read_beside, warnings)
            if cold is not None:
                mode, ns, clocks = cold
                yield Timing(name, None, parameters, f"NVBench; {mode}", ns, gpu, clocks)
            if _BATCH in summaries:
                ns = (in_ns(_number(summaries[_BATCH], "value"), "s", place),)
                yield Timing(name, None, parameters, "NVBench; batch; mean", ns, gpu)


def _cold(
    summaries: Mapping[str | None, Fields], place: str, read_beside: ReadBeside, warnings: dict[str, None]
) -> tuple[str, tuple[float, ...], tuple[float, ...]] | None:
    """Mode, ns and clocks of the calls that were timed one by one; None where there are none."""
    if _SAMPLES in summaries:
        seconds = _binary(summaries[_SAMPLES], read_beside)
        if seconds:
            ns = all_in_ns(seconds, "s", place)
            hertz = _binary(summaries[_CLOCKS], read_beside) if _CLOCKS in summaries else None
            clocks = tuple(clock / 1e6 for clock in hertz or ())
            are_known = len(clocks) == len(ns) and all(0 < clock < math.inf for clock in clocks)
            return "cold; samples", ns, clocks if are_known else ()
        warnings |= {"the files with its samples do not lie beside it: only their mean is known": None}
    for tag, mode in _SUMMARIES:
        if tag in summaries:
            return mode, (in_ns(_number(summaries[tag], "value"), "s", place),), ()
    return None


def _binary(summary: Fields, read_beside: ReadBeside) -> array.array[float] | None:
    """The numbers of a file beside this one; None where it is not there."""
    values = {value.text("name"): value for value in summary.list("data")}
    name = values["filename"].text("value") if "filename" in values else None
    content = read_beside(name) if name else None
    if content is None:
        return None
    count = _number(summary, "size")
    if len(content) != 4 * count:
        named = brief(PurePosixPath(name or "").name)
        raise NotTimes(f"{named} has {len(content):,} bytes, and should hold {count:,} samples of 4")
    numbers = array.array("f", content)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _number(summary: Fields, name: str) -> Any:
    """A number of a summary, which NVBench writes as text."""
    for value in summary.list("data"):
        if value.text("name") == name:
            text = value.text("value") or ""
            try:
                return int(text) if value.text("type") == "int64" else float(text)
            except ValueError as error:
                raise NotTimes(f"{brief(text)} of {summary.text('tag')} is no number") from error
    raise NotTimes(f"{brief(summary.text('tag'))} has no {name}")
