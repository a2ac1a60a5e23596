"""Which launch the Launch page shows, and which it is held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from profiler.store.rows import ResultInfo, RunInfo
from profiler.ui import addresses, controls, markup
from profiler.ui.data import launches
from profiler.ui.data.index import DataVersion
from profiler.ui.data.launches import LaunchId
from profiler.ui.markup import Html

_NO_BASELINE = ""


@dataclass(frozen=True)
class LaunchChoice:
    """A launch and its baseline, and where they are."""

    info: ResultInfo
    labels: Sequence[str]  # of all launches of the run, in its order
    baseline: LaunchId | None
    address: addresses.LaunchView
    lines: Sequence[Html]  # what the address asked for and is not there

    @property
    def launch(self) -> LaunchId:
        """The launch that is shown."""
        return LaunchId(self.info.run_id, self.info.result_id)


def choose(
    data_version: DataVersion, runs: Sequence[RunInfo], filters: controls.Filters, boxes: Sequence[Any]
) -> LaunchChoice | None:
    """Run and launch, then run and launch of the baseline; None where the run holds neither."""
    lines: list[Html] = []
    asked_run, asked_launch = (st.query_params.get(name) for name in ("run", "launch"))
    named = _named_run(runs, asked_run, lines)
    offered = launches.runs_to_offer(runs, named)
    with boxes[0]:
        run_id = filters.select("run", list(offered), "run", named, offered.__getitem__, is_said=True)
    labels = launches.by_label(data_version, run_id)
    if not labels:
        return None
    if asked_launch is None and named is not None and named == run_id:
        asked_launch = launches.label_of_version(labels, asked_run)
    label = _choose_launch(
        data_version, "launch", "launch", labels, asked_launch, None, filters, boxes[1], lines
    )
    info = labels[label]
    run = next(run for run in runs if run.run_id == run_id)
    asked_run, asked_launch = (st.query_params.get(name) for name in ("against", "against_launch"))
    named = _named_run(runs, asked_run, lines)
    baselines = {_NO_BASELINE: "none", **launches.runs_to_offer(runs, named, run.family)}
    with boxes[2]:
        against = filters.select(
            "baseline",
            list(baselines),
            "against",
            named or _NO_BASELINE,
            baselines.__getitem__,
            is_said=True,
        )
    baseline, against_launch = None, ""
    if against:
        of_baseline = launches.by_label(data_version, against)
        if of_baseline:
            against_launch = _choose_launch(
                data_version,
                "baseline launch",
                "against_launch",
                of_baseline,
                asked_launch,
                info,
                filters,
                boxes[3],
                lines,
            )
            own = of_baseline[against_launch]
            baseline = LaunchId(own.run_id, own.result_id)
    view = addresses.LaunchView(run_id, label, against, against_launch)
    return LaunchChoice(info, list(labels), baseline, view, lines)


def _choose_launch(
    data_version: DataVersion,
    title: str,
    parameter: str,
    labels: dict[str, ResultInfo],
    asked: str | None,
    like: ResultInfo | None,
    filters: controls.Filters,
    box: Any,
    lines: list[Html],
) -> str:
    """A launch of a run: what the address asks for, else the longest or the one like another launch."""
    found = launches.find_label(labels, asked)
    if asked and found is None and like is not None:  # of the launch itself the address bar's line says so
        words = ("This run has no launch", markup.code(asked), "; another is shown.")
        lines.append(markup.note(markup.join(words)))
    with box:
        default = found or launches.default_label(data_version, labels, like)
        is_said = like is not None or found is not None  # found by another spelling, such as its part
        return filters.select(title, list(labels), parameter, default, is_said=is_said)


def _named_run(runs: Sequence[RunInfo], asked: str | None, lines: list[Html]) -> str | None:
    """The id of the run that an address names, by its id or its version."""
    run = launches.find_run(runs, asked)
    if run is None and asked:
        words = ("No run or version", markup.code(asked), "is here; another is shown.")
        lines.append(markup.note(markup.join(words)))
    return run.run_id if run else None
