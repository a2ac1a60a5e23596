"""Finds versions, runs, reports, metrics, kernels and report files by words."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from profiler.agents.tool import echo
from profiler.agents.toolset import KINDS
from profiler.evidence.metric_table import load_metrics

if TYPE_CHECKING:
    from profiler.agents.roots import Roots
    from profiler.store.index import Store

_REPORT_SUFFIXES = (".ncu-rep", ".ncu-repz")
_MOST_VISITED, _MOST_SECONDS, _DEEPEST = 20_000, 2.0, 8  # of a walk through folders
_NO_REPORTS = frozenset({"node_modules", "__pycache__", "site-packages", "build"})
_WORKLOADS_NAMED = 2

Item = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """What fits the words, by kind, and a sentence on how many there are."""

    items: list[Item]
    sentences: list[str]


def find_names(words: str, kind: str | None, family: str | None, store: Store, roots: Roots) -> Found:
    """Everything whose texts hold all the words; where nothing does, what holds any of them, said so.

    Without words it is something of every kind but metrics, of which there are the same everywhere.
    """
    wanted = words.lower().split()
    kinds = (kind,) if kind else KINDS if wanted else tuple(k for k in KINDS if k != "metric")
    by_kind = {
        name: [
            candidate
            for candidate in _CANDIDATES[name](store, roots)
            if family is None or candidate.family == family
        ]
        for name in kinds
    }
    fitting = _fitting(by_kind, wanted, all)
    sentences = []
    if not any(fitting.values()) and wanted:
        fitting = _fitting(by_kind, wanted, any)
        sentences.append(f"Nothing holds all of {echo(words)}; these hold some of it.")
    if not any(fitting.values()):
        return Found([], [f"Nothing fits {echo(words)}: find without words lists everything."])
    listed = ", ".join(
        f"{len(items)} {name}{'s' * (len(items) != 1)}" for name, items in fitting.items() if items
    )
    if wanted or kind:
        items = [item for some in fitting.values() for item in some]
    else:
        in_turn = zip_longest(*fitting.values())
        items = [item for turn in in_turn for item in turn if item is not None]
    return Found(items, [*sentences, f"{listed}."])


def _fitting(
    by_kind: Mapping[str, Sequence[_Candidate]],
    wanted: Sequence[str],
    enough: Callable[[Iterable[bool]], bool],
) -> dict[str, list[Item]]:
    return {
        kind: [
            {"kind": kind, **candidate.item}
            for candidate in candidates
            if not wanted or enough(word in f"{kind} {candidate.text}".lower() for word in wanted)
        ]
        for kind, candidates in by_kind.items()
    }


class _Candidate(NamedTuple):
    item: Item
    text: str  # what the words are looked for in
    family: str | None = None


def _versions(store: Store, _roots: Roots) -> Iterator[_Candidate]:
    for version in store.versions():
        name = f"{version.family}/{version.version}"
        item = {
            "name": name,
            "gpus": list(version.gpus) or "none measured it",
            "workloads": len(version.workloads),
            "first_workloads": list(version.workloads[:_WORKLOADS_NAMED]),
            "last_run": version.last_created.date().isoformat(),
        }
        yield _Candidate(item, " ".join((name, *version.gpus, *version.workloads)), version.family)


def _runs(store: Store, _roots: Roots) -> Iterator[_Candidate]:
    for run in store.runs():
        item = {
            "name": run.run_id,
            "versions": list(run.versions) if len(run.versions) == 1 else len(run.versions),
            "evidence": sorted(kind.value for kind in run.evidence),
            "gpu": ", ".join(run.gpu_names) or None,
            "launches": run.launches or None,
        }
        text = " ".join((run.run_id, *run.families, *run.versions, *run.workloads, *run.gpu_names))
        yield _Candidate(item, text, run.family or (run.families[0] if len(run.families) == 1 else None))


def _reports(store: Store, _roots: Roots) -> Iterator[_Candidate]:
    for run in store.runs():
        for report in run.reports:
            item = {"name": run.run_id, "file": report.name, "content_id": f"sha256:{report.sha256[:32]}"}
            texts = (report.name, run.run_id, run.family, run.version, *run.gpu_names)
            yield _Candidate(item, " ".join(filter(None, texts)), run.family)


def _metrics(_store: Store, _roots: Roots) -> Iterator[_Candidate]:
    for metric in load_metrics().metrics:
        names = [alternative.name for alternative in metric.alternatives]
        better = metric.better if metric.better != "-" else None
        item = {"name": metric.concept, "label": metric.label, "unit": metric.unit, "better": better}
        text = " ".join((metric.concept, metric.label, metric.group, *names))
        yield _Candidate({**item, "ncu": names[0]}, text)


def _kernels(store: Store, _roots: Roots) -> Iterator[_Candidate]:
    for family, name in store.kernels():
        yield _Candidate({"name": name, "family": family}, f"{name} {family}", family)


def _files(_store: Store, roots: Roots) -> Iterator[_Candidate]:
    """Report files below the folders that may be read, the data folder's own left out."""
    visited, until = 0, time.monotonic() + _MOST_SECONDS
    base = roots.folders[0]
    data = Path(os.path.realpath(roots.data)) if "://" not in roots.data else None
    for root in roots.folders:
        for folder, folders, names in os.walk(root):
            here = Path(folder)
            is_deep = len(here.relative_to(root).parts) >= _DEEPEST
            kept = [
                name
                for name in sorted(folders)
                if not name.startswith(".") and name not in _NO_REPORTS and here / name != data
            ]
            folders[:] = [] if is_deep or here == data else kept
            for name in sorted(names) if here != data else ():
                if name.lower().endswith(_REPORT_SUFFIXES):
                    path = here / name
                    shown = str(path.relative_to(base)) if path.is_relative_to(base) else str(path)
                    yield _Candidate({"name": shown}, shown)
            visited += len(names) + len(kept)
            if visited > _MOST_VISITED or time.monotonic() > until:
                return


_CANDIDATES: dict[str, Callable[[Store, Roots], Iterator[_Candidate]]] = {
    "version": _versions,
    "run": _runs,
    "report": _reports,
    "metric": _metrics,
    "kernel": _kernels,
    "file": _files,
}
