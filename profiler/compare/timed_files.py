"""Two files of times that other tools wrote, as sides: one pair for each benchmark and problem size."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from profiler.bundles.bundle import hash_file
from profiler.bundles.run import Result, Run
from profiler.compare.resolve_names import NothingShared
from profiler.evidence.cell import Cell
from profiler.evidence.launch import Session
from profiler.evidence.naming import brief_list
from profiler.evidence.side import Latency, Side
from profiler.store.timed_runs import timed_runs
from profiler.timings.read import read_timings, timings_form

_NOTHING_GIVEN = {"family": None, "version": None, "workload": None}


def are_timed_files(names: Iterable[str]) -> bool:
    """Whether all names are those of files of times."""
    return all(os.path.isfile(name) and timings_form(Path(name)) for name in names)


def timed_pairs(a: str, b: str, workload: str | None, gpu: str | None) -> list[tuple[Side, Side]]:
    """What both files timed, in B's order; of several dates in a file the newest.

    Where both have only one family, version or GPU, these may differ, as the version mostly does. Raises
    NothingShared, and ProfilerError for a damaged file.
    """
    of_a, of_b = _sides(a), _sides(b)
    fields = [
        place
        for place, name in enumerate(Cell._fields)
        if any(len({getattr(cell, name) for cell in of}) > 1 for of in (of_a, of_b))
    ]
    by_key = {tuple(cell[place] for place in fields): side for cell, side in of_a.items()}
    keys = {cell: tuple(cell[place] for place in fields) for cell in of_b}
    pairs = [
        (by_key[keys[cell]], side)
        for cell, side in of_b.items()
        if keys[cell] in by_key and workload in (None, cell.workload) and gpu in (None, cell.gpu)
    ]
    if not pairs:
        asked = f" on {' and '.join(filter(None, (workload, gpu)))}" if workload or gpu else ""
        raise NothingShared(f"{b} and {a} have timed nothing alike{asked}: {a} has {_there(of_a)}")
    return pairs


def _there(cells: Collection[Cell]) -> str:
    names = dict.fromkeys(f"{cell.family}/{cell.version} {cell.workload}".strip() for cell in cells)
    return brief_list(list(names))


def _sides(name: str) -> dict[Cell, Side]:
    path = Path(name)
    digest, _ = hash_file(path)
    file_time = datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
    runs = [run for run, _ in timed_runs(read_timings(path), digest, path.stem, file_time, _NOTHING_GIVEN)]
    sides: dict[Cell, Side] = {}
    for run in sorted(runs, key=lambda run: run.created):
        for result in run.results:
            gpu = run.provenance.get("gpu")
            cell = Cell(result.family, result.version, result.workload or "", gpu or "")
            sides[cell] = _side(name, run, result)
    return sides


def _side(name: str, run: Run, result: Result) -> Side:
    provenance = run.provenance
    return Side(
        name,
        (),
        gpu=provenance.get("gpu"),
        compute_capability=provenance.get("compute_capability"),
        workload=result.workload,
        session=Session(driver=provenance.get("driver"), cuda=provenance.get("cuda")),
        family=result.family,
        version=result.version,
        latencies=tuple(
            Latency(
                name,
                block.mode,
                np.asarray(block.ns, "<f4"),
                np.asarray(block.rounds, "<u2"),
                np.asarray(block.clocks_mhz, "<f4"),
                np.asarray(block.throttled, "<u4"),
                run.created,
            )
            for block in result.samples
        ),
    )
