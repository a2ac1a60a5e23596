"""Decisions about runs: relabel one, forget one or undo that. Recorded in files, and applied to the index."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from profiler.bundles import IMPORT, Labels, Root, bundle, check_label, decisions, location
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence import brief_list
from profiler.store import sync

if TYPE_CHECKING:
    from profiler.store.index import Store


def relabel_run(
    run_id: str,
    *,
    family: str | None = None,
    version: str | None = None,
    workload: str | None = None,
    why: str = "",
    data: str | None = None,
    store: Store | None = None,
) -> Labels:
    """Correct the family, version or workload of an imported report; workload "" means unknown.

    Returns the labels after that; nothing is recorded where they do not change. Raises UnknownName for a run
    that does not exist, and ProfilerError for a collected one, whose versions its catalogue names.
    """
    root = location.open_root(data)
    named = {"family": family, "version": version, "workload": workload}
    values = {kind: check_label(kind, text) for kind, text in named.items() if text is not None}
    if not values:
        raise ProfilerError(f"nothing to change about {run_id}: name --family, --version or --workload")
    check_run_id(root, run_id)
    run = bundle.load_run(root, run_id)
    if run.kind != IMPORT:
        raise ProfilerError(
            f"{run_id} was collected, and its catalogue names its versions: relabel is for imports"
        )
    before = decisions.effective_labels(run, decisions.load_labels(root).labels)
    if all((getattr(before, kind) or "") == text for kind, text in values.items()):
        return before
    _decide(root, decisions.RELABEL, run_id, values, why, data, store)
    return decisions.effective_labels(run, decisions.load_labels(root).labels)


def forget_run(
    run_id: str, *, undo: bool = False, why: str = "", data: str | None = None, store: Store | None = None
) -> bool:
    """Hide a run everywhere, or with `undo` show it again; the bundle stays. False: nothing had to change."""
    root = location.open_root(data)
    check_run_id(root, run_id)
    labels = decisions.load_labels(root).labels.get(run_id, Labels())
    if labels.hidden != undo:
        return False
    _decide(root, decisions.REMEMBER if undo else decisions.FORGET, run_id, {}, why, data, store)
    return True


def _decide(
    root: Root,
    kind: str,
    run_id: str,
    values: Mapping[str, str | None],
    why: str,
    data: str | None,
    open_index: Store | None,
) -> None:
    """Record a decision and apply it to the index."""
    # In this order: nothing is recorded where the index cannot be opened to apply it.
    with sync.opened_store(data, open_index) as store:
        decisions.write_decision(root, kind, run_id, values, why=why)
        sync.sync_store(root, store)


def check_run_id(root: Root, run_id: str) -> None:
    """Raise UnknownName, with similar ids, for the id of a run that does not exist."""
    run_ids = bundle.list_runs(root)
    if run_id not in run_ids:
        near = get_close_matches(run_id, run_ids, n=3, cutoff=0.5)
        hint = f"; near: {brief_list(near)}" if near else "; `profiler runs` lists what there is"
        raise UnknownName(f"no run {run_id} in {root.url}{hint}")
