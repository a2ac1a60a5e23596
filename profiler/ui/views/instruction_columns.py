"""The machine code of a launch as columns: where samples fell, what they waited for, how often each ran."""

from __future__ import annotations

import math
from pathlib import PurePosixPath

from profiler.evidence import formatting
from profiler.reports import LaunchDetail

SAMPLES = "smsp__pcsamp_sample_count"
EXECUTED = "inst_executed"
STALL = "smsp__pcsamp_warps_issue_stalled_"
NOT_ISSUED = "_not_issued"
# What else is worth a column where the report has it: head -> per-PC metric.
OTHERS = {
    "excess shared wavefronts": "derived__memory_l1_wavefronts_shared_excessive",
    "excess global sectors": "derived__memory_l2_theoretical_sectors_global_excessive",
    "divergent targets": "smsp__branch_targets_threads_divergent",
}


def columns(detail: LaunchDetail, words: str) -> dict[str, list[object]]:
    """The instructions that hold every word, in address order; None where a metric has no value at one."""
    wanted = words.lower().split()
    sources, places = _sources(detail), detail.places()
    kept = [
        index
        for index, text in enumerate(detail.sass)
        if all(word in f"{text or ''} {sources[index] or ''}".lower() for word in wanted)
    ]
    found: dict[str, list[object]] = {
        "at": [f"{places[index][1]:#06x}" for index in kept],
        "SASS": [detail.sass[index] for index in kept],
        "samples": _numbers(detail, SAMPLES, kept),
        "mostly waiting for": _reasons(detail, kept),
        "executed": _numbers(detail, EXECUTED, kept),
    }
    for head, name in OTHERS.items():
        numbers = _numbers(detail, name, kept)
        if any(numbers):
            found[head] = numbers
    if any(sources):
        found["source"] = [sources[index] for index in kept]
    return found


def caption(detail: LaunchDetail) -> str:
    """How much there is, and what the report does not hold."""
    words = f"{formatting.digits(len(detail.pcs))} instructions"
    if SAMPLES in detail.per_pc:
        total = sum(value for value in detail.per_pc[SAMPLES].values if not math.isnan(value))
        words += f", {formatting.digits(int(total))} samples"
    if not any(detail.sass):
        words += "; the report holds no SASS text"
    if not any(file.text for file in detail.files):
        words += "; no source text: collect with --import-source yes"
    return words


def _numbers(detail: LaunchDetail, name: str, kept: list[int]) -> list[object]:
    if name not in detail.per_pc:
        return [None] * len(kept)
    values = detail.per_pc[name].values
    return [None if math.isnan(values[index]) else int(values[index]) for index in kept]


def _reasons(detail: LaunchDetail, kept: list[int]) -> list[object]:
    """The stall reason with most samples; an instruction that was only ever issuing has none."""
    stalls = {
        name.removeprefix(STALL): column.values
        for name, column in detail.per_pc.items()
        if name.startswith(STALL) and not name.endswith(NOT_ISSUED) and name != f"{STALL}selected"
    }
    found: list[object] = []
    for index in kept:
        counts = {name: values[index] for name, values in stalls.items() if values[index] > 0}
        found.append(max(counts, key=lambda name: counts[name]) if counts else None)
    return found


def _sources(detail: LaunchDetail) -> list[str | None]:
    names = [PurePosixPath(file.name).name for file in detail.files]
    return [
        f"{names[file]}:{line}" if file >= 0 and line > 0 else None
        for file, line in zip(detail.file_index.tolist(), detail.line.tolist(), strict=True)
    ]
