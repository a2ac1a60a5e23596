"""What a report brought of the cells that were asked for: which launches are whose, and what is missing."""

from __future__ import annotations

import math
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiler.collect import ncu_command
from profiler.collect.ncu_command import Ncu
from profiler.errors import UnreadableReport
from profiler.evidence import NCU_DURATION, Launch
from profiler.reports import csv_export, file_format

_READ_S = 300


@dataclass(frozen=True)
class CellLaunches:
    """The launches of one cell in a report."""

    ordinals: tuple[int, ...]
    parts: tuple[str, ...]  # one a launch: the kernel's role, or its name, and its number within the cell
    reason: str | None  # why they cannot be used; None: they can


def read_launches(ncu: Ncu, report: Path) -> list[Launch]:
    """The launches of a report as ncu itself prints them. Raises UnreadableReport.

    The report's framing is checked first; the reading library need not be installed.
    """
    declared = file_format.check_framing(report).declared
    with tempfile.TemporaryDirectory(prefix="profiler-") as folder:
        text = Path(folder) / "raw.csv"
        with text.open("wb") as out:
            try:
                done = subprocess.run(
                    ncu_command.import_command(ncu, report),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.PIPE,
                    timeout=_READ_S,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise UnreadableReport(f"{report}: ncu cannot read it again: {error}") from error
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise UnreadableReport(f"{report}: ncu cannot read it again: {' '.join(last) or done.returncode}")
        found = list(csv_export.read_csv(text).launches)
    if len(found) != declared:
        raise UnreadableReport(f"{report}: {len(found)} of {declared} launches can be read")
    return found


def launches_of_cell(
    found: Sequence[Launch],
    range_name: str,
    kernels: Sequence[str] = (),
    roles: Mapping[str, str] | None = None,
) -> CellLaunches:
    """The launches in a cell's NVTX range; without any of the kernels that were asked for it is failed."""
    mine = [one for one in found if range_name in one.nvtx]
    if not mine:
        there = sorted({one.base_name for one in found})
        seen = f"; it holds {', '.join(there[:3])}" if there else ""
        return CellLaunches((), (), f"the report holds no launch in the range {range_name}{seen}")
    wanted = set(kernels)
    missing = wanted and not wanted & {_short(one) for one in mine}
    if missing:
        there = sorted({_short(one) for one in mine})
        return CellLaunches(
            (),
            (),
            f"the kernel {' or '.join(sorted(wanted))} is not in the report: {', '.join(there[:3])} is",
        )
    bad = next((one for one in mine if not _measured(one)), None)
    reason = f"the counters of {bad.base_name} came back as NaN or not at all" if bad else None
    return CellLaunches(tuple(one.ordinal for one in mine), tuple(_parts(mine, roles or {})), reason)


def _measured(launch: Launch) -> bool:
    duration = launch.values.number(NCU_DURATION)
    return duration is not None and math.isfinite(duration) and duration > 0


def _short(launch: Launch) -> str:
    return launch.base_name.rpartition("::")[2]


def _parts(mine: Sequence[Launch], roles: Mapping[str, str]) -> list[str]:
    """The role where the catalogue gives one; `main` where a version has a single kernel; else its name."""
    names = list(dict.fromkeys(_short(one) for one in mine))
    seen: dict[str, int] = {}
    parts = []
    for launch in mine:
        name = _short(launch)
        part = roles.get(name) or name
        if roles == {} and len(names) > 1:
            part = name
        number = seen.get(part, 0)
        seen[part] = number + 1
        parts.append(part if not number else f"{part}#{number}")
    return parts
