"""The machine code of a launch as columns: where samples fell, what they waited for, how often each ran."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePosixPath

from profiler.evidence import formatting
from profiler.reports.instances import LaunchDetail
from profiler.sass.hotspots import EXCESS, EXECUTED, NOT_ISSUED, SAMPLES, SELECTED, STALL

# What else is worth a column where the report has it: head -> per-PC metric.
OTHER_COLUMNS = {
    "excess shared wavefronts": EXCESS,
    "excess global sectors": "derived__memory_l2_theoretical_sectors_global_excessive",
    "divergent targets": "smsp__branch_targets_threads_divergent",
}


def columns(detail: LaunchDetail, words: str) -> dict[str, list[object]]:
    """The instructions that hold every word, in address order; None where a metric has no value at one."""
    parts = words.lower().split()
    sources, places = _sources(detail), detail.places()
    indices = [
        index
        for index, text in enumerate(detail.sass)
        if all(part in f"{text or ''} {sources[index] or ''}".lower() for part in parts)
    ]
    by_head: dict[str, list[object]] = {
        "at": [f"{places[index][1]:#06x}" for index in indices],
        "SASS": [detail.sass[index] for index in indices],
        "samples": _numbers(detail, SAMPLES, indices),
        "mostly waiting for": _main_stalls(detail, indices),
        "executed": _numbers(detail, EXECUTED, indices),
    }
    for head, metric in OTHER_COLUMNS.items():
        numbers = _numbers(detail, metric, indices)
        if any(numbers):
            by_head[head] = numbers
    if any(sources):
        by_head["source"] = [sources[index] for index in indices]
    return by_head


def caption(detail: LaunchDetail) -> str:
    """How many instructions and samples there are, and what the report lacks."""
    words = f"{formatting.digits(len(detail.pcs))} instructions"
    if SAMPLES in detail.per_pc:
        total = sum(value for value in detail.per_pc[SAMPLES].values if not math.isnan(value))
        words += f", {formatting.digits(int(total))} samples"
    if not any(detail.sass):
        words += "; the report holds no SASS text"
    if not any(file.text for file in detail.files):
        words += "; no source text: collect with --import-source yes"
    if len(detail.pcs) and not detail.per_pc:
        words += "; nothing counted per instruction: collect with --set full"
    for name, reason in detail.left_out.items():
        words += f"; left out: {name}: {reason}"
    return words


def _numbers(detail: LaunchDetail, metric: str, indices: Sequence[int]) -> list[object]:
    if metric not in detail.per_pc:
        return [None] * len(indices)
    values = detail.per_pc[metric].values
    return [None if math.isnan(values[index]) else int(values[index]) for index in indices]


def _main_stalls(detail: LaunchDetail, indices: Sequence[int]) -> list[object]:
    """The stall reason with most samples; an instruction that was only ever issuing has none."""
    values_by_reason = {
        name.removeprefix(STALL): column.values
        for name, column in detail.per_pc.items()
        # NOT_ISSUED counts the same reasons once more, for cycles in which no warp issued.
        if name.startswith(STALL) and not name.endswith(NOT_ISSUED) and name != f"{STALL}{SELECTED}"
    }
    reasons: list[object] = []
    for index in indices:
        counts = {reason: values[index] for reason, values in values_by_reason.items() if values[index] > 0}
        reasons.append(max(counts, key=lambda reason: counts[reason]) if counts else None)
    return reasons


def _sources(detail: LaunchDetail) -> list[str | None]:
    """The file and line of each instruction; None without line info."""
    names = [PurePosixPath(file.name).name for file in detail.files]
    return [
        f"{names[file]}:{line}" if file >= 0 and line > 0 else None
        for file, line in zip(detail.file_index.tolist(), detail.line.tolist(), strict=True)
    ]
