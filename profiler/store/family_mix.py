"""Families that mix the reports of several folders, and the families that would tell them apart."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from profiler.bundles.run import FAMILY_GIVEN, FOLDER, IMPORT
from profiler.store.folder_families import ImportFolder, family_labels, is_generic
from profiler.store.label_forms import ReportPath, report_stem
from profiler.store.rows import RunInfo


@dataclass(frozen=True)
class FamilyMix:
    """A family whose imported runs came from several folders, or nobody knows from which."""

    family: str
    folders: tuple[tuple[str, str, int], ...]  # folder, the family that it would have, runs
    unknown: int  # runs that do not say where they came from

    @property
    def way_out(self) -> str:
        """The command that tells the folders apart."""
        if not self.folders:
            return "profiler import FOLDER… --relabel"
        return f"profiler data relabel {shlex.quote(self.family)} --by-folder"


def family_mixes(runs: Iterable[RunInfo], known: Collection[ImportFolder]) -> list[FamilyMix]:
    """The families that mix folders, by name, as far as nobody named them so.

    A family of several folders is one. So may be one under a generic name (`ncu-reports`) whose runs do not
    say their folder: until runs kept it, the folder's name alone was the family.
    """
    by_family: dict[str, list[RunInfo]] = defaultdict(list)
    for run in runs:
        is_named = run.family_decided or run.provenance.get(FAMILY_GIVEN) is True
        if run.kind == IMPORT and run.family is not None and not is_named:
            by_family[run.family].append(run)
    mixes = []
    for family, members in sorted(by_family.items()):
        folders = Counter(path_of_run(run).folder for run in members)
        unknown = folders.pop("", 0)
        if len(folders) > 1:
            names = new_families(members, known)
            rows = tuple((folder, names[folder], number) for folder, number in sorted(folders.items()))
            mixes.append(FamilyMix(family, rows, unknown))
        elif unknown > 1 and is_generic(family):
            mixes.append(FamilyMix(family, (), unknown))
    return mixes


def new_families(runs: Sequence[RunInfo], known: Collection[ImportFolder]) -> dict[str, str]:
    """The family that each folder of these runs would get, were its reports imported now."""
    folders = {folder for run in runs if (folder := path_of_run(run).folder)}
    return family_labels(folders, [entry for entry in known if entry.folder not in folders])


def path_of_run(run: RunInfo) -> ReportPath:
    """The name and the folder of an imported run's report, as far as they are known."""
    folder = run.provenance.get(FOLDER)
    stem = report_stem(run.reports[0].name) if run.reports else run.version or ""
    return ReportPath(stem, folder if isinstance(folder, str) else "")
