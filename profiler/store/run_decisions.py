"""Decisions about runs: relabel, forget, undo that. Recorded in files, and applied to the index."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from profiler.bundles import bundle, decisions, location
from profiler.bundles.location import Root
from profiler.bundles.run import FOLDER, IMPORT, Labels
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence.naming import brief_list
from profiler.store import sync
from profiler.store.family_mix import new_families, path_of_run
from profiler.store.label_forms import (
    LabelOption,
    LabelRules,
    ReportPath,
    label_of_name,
    label_rules,
    report_stem,
)

if TYPE_CHECKING:
    from profiler.store.index import Store


def relabel(
    name: str,
    *,
    family: LabelOption = None,
    version: LabelOption = None,
    workload: LabelOption = None,
    by_folder: bool = False,
    why: str = "",
    data: str | None = None,
    store: Store | None = None,
) -> dict[str, Labels]:
    """Correct the labels of an imported run, or of all imported runs of a family in one decision.

    The labels are in the forms of label_forms; a workload "" means unknown. by_folder: each folder that
    reports of the family came from becomes a family of its own, named as an import would. Returns the labels
    of the run, or of the family's runs that changed. Raises UnknownName for neither, ProfilerError for
    a collected run, whose versions its catalogue names, for a label that is none, and where none is named.
    """
    root = location.open_root(data)
    options = {"family": family, "version": version, "workload": workload}
    rules = {kind: label_rules(kind, option) for kind, option in options.items()}
    if not by_folder and all(option is None for option in options.values()):
        raise ProfilerError(f"nothing to change about {name}: name --family, --version or --workload")
    if name in bundle.list_runs(root):
        if by_folder:
            raise ProfilerError(f"{name} is one run: --by-folder is for a family")
        return {name: _relabel_run(root, name, rules, why, data, store)}
    with sync.opened_store(data, store) as index:
        runs = [run for run in index.runs(name, hidden=True) if run.kind == IMPORT]
        if not runs and name in index.families():
            raise ProfilerError(
                f"{name} was collected, and its catalogue names its versions: nothing to relabel"
            )
        if not runs:
            check_run_id(root, name)
        families = new_families(runs, index.import_folders()) if by_folder else {}
        if by_folder and not families:
            raise ProfilerError(
                f"the runs of {name} do not record the folder of their reports: "
                "`profiler import FOLDER --relabel` labels them by it"
            )
        changes = {}
        for run in runs:
            path = path_of_run(run)
            labels = {kind: rule.label(path) for kind, rule in rules.items()}
            if labels["family"] is None and path.folder in families:
                labels["family"] = label_of_name(families[path.folder], "imported")
            current = {"family": run.family, "version": run.version, "workload": run.workload or ""}
            values = {
                kind: text for kind, text in labels.items() if text is not None and text != current[kind]
            }
            if values:
                changes[run.run_id] = values
        return relabel_runs(root, index, changes, subject=name, why=why)


def _relabel_run(
    root: Root,
    run_id: str,
    rules: Mapping[str, LabelRules],
    why: str,
    data: str | None,
    store: Store | None,
) -> Labels:
    """Record other labels of one run, unless it has them."""
    run = bundle.load_run(root, run_id)
    if run.kind != IMPORT:
        raise ProfilerError(
            f"{run_id} was collected, and its catalogue names its versions: relabel is for imports"
        )
    path = ReportPath(report_stem(run.reports[0].name), str(run.provenance.get(FOLDER) or ""))
    labels = {kind: rule.label(path) for kind, rule in rules.items()}
    values = {kind: text for kind, text in labels.items() if text is not None}
    before = decisions.effective_labels(run, decisions.load_labels(root).labels)
    if all((getattr(before, kind) or "") == text for kind, text in values.items()):
        return before
    _decide(root, decisions.RELABEL, run_id, values, why, data, store)
    return decisions.effective_labels(run, decisions.load_labels(root).labels)


def relabel_runs(
    root: Root, store: Store, changes: Mapping[str, Mapping[str, str]], *, subject: str = "", why: str = ""
) -> dict[str, Labels]:
    """Record other labels of several runs as one decision, and return those of each run after that."""
    if not changes:
        return {}
    decisions.write_decision(root, decisions.RELABEL_RUNS, subject, {"runs": changes}, why=why)
    sync.sync_store(root, store)
    decided = decisions.load_labels(root).labels
    return {run_id: decisions.effective_labels(bundle.load_run(root, run_id), decided) for run_id in changes}


def forget_run(
    run_id: str,
    *,
    undo: bool = False,
    why: str = "",
    who: str | None = None,
    data: str | None = None,
    store: Store | None = None,
) -> bool:
    """Hide a run everywhere, or with `undo` show it again; the bundle stays. False: nothing had to change.

    `who` decides; None: the user that this process runs as.
    """
    root = location.open_root(data)
    check_run_id(root, run_id)
    labels = decisions.load_labels(root).labels.get(run_id, Labels())
    if labels.hidden != undo:
        return False
    _decide(root, decisions.REMEMBER if undo else decisions.FORGET, run_id, {}, why, data, store, who)
    return True


def _decide(
    root: Root,
    kind: str,
    run_id: str,
    values: Mapping[str, str],
    why: str,
    data: str | None,
    open_index: Store | None,
    who: str | None = None,
) -> None:
    """Record a decision and apply it to the index."""
    # In this order: nothing is recorded where the index cannot be opened to apply it.
    with sync.opened_store(data, open_index) as store:
        decisions.write_decision(root, kind, run_id, values, why=why, who=who)
        sync.sync_store(root, store)


def check_run_id(root: Root, run_id: str) -> None:
    """Raise UnknownName, with similar ids, for the id of a run that does not exist."""
    run_ids = bundle.list_runs(root)
    if run_id not in run_ids:
        near = get_close_matches(run_id, run_ids, n=3, cutoff=0.5)
        hint = f"; near: {brief_list(near)}" if near else "; `profiler list runs` lists all"
        raise UnknownName(f"no run {run_id} in {root.url}{hint}")
