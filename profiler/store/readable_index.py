"""Opens the index; where nothing can be written, as it is, or a temporary one made from the bundles."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.bundles import bundle, decisions, location
from profiler.bundles.location import LocalRoot, Root
from profiler.bundles.scratch import scratch_folder
from profiler.errors import ProfilerError
from profiler.store.rows import IndexNotWritable
from profiler.store.sync import sync_store, unsynced_store

if TYPE_CHECKING:
    from profiler.store.index import Store


def open_store(data: str | None = None, db: str | None = None, *, sync: bool = True) -> Store:
    """The index of a data folder, brought in step with its bundles unless `sync` is False.

    `data` and `db` default to PROFILER_DATA and PROFILER_DB. Close the index after use. Where the index
    cannot be written, it is opened as it is, or made in a temporary folder: `Store.behind` says so.
    """
    root = location.open_root(data)
    try:
        store = unsynced_store(root, db)
    except IndexNotWritable as error:
        return _open_readable(root, location.index_location(root, db), error)
    try:
        if sync:
            sync_store(root, store)
    except IndexNotWritable as error:
        store.behind = _behind_words(root, store, error)
    return store


def _open_readable(root: Root, place: str | Path, reason: IndexNotWritable) -> Store:
    """The index of a data folder, which `reason` keeps from being written; raises it as a last resort."""
    from profiler.store.index import Store

    if isinstance(root, LocalRoot) and not os.path.isdir(root.folder):
        raise reason  # there are no data
    if isinstance(place, Path) and place.exists():
        with contextlib.suppress(ProfilerError):
            store = Store.open_unchanged(place, root.url, str(reason))
            store.behind = _behind_words(root, store, reason)
            return store
    openers: tuple[Callable[[Root], Store], ...] = (_in_scratch_folder, _in_memory)
    for opener in openers:
        with contextlib.suppress(ProfilerError, OSError):
            store = opener(root)
            sync_store(root, store)
            store.behind = f"answers are from a temporary index made for this command: {reason}"
            return store
    raise reason


def _behind_words(root: Root, store: Store, reason: IndexNotWritable) -> str:
    """The sentence that says how an index that cannot be written differs from the bundles; "" where not."""
    applied, notes, sealed = store.applied_labels(), store.notes(), bundle.list_runs(root)
    missing = len(set(sealed) - applied.keys() - json.loads(notes.get("refused", "{}")).keys())
    lacks = [f"{missing} sealed run{'s' * (missing != 1)}"] if missing else []
    if decisions.decisions_digest(decisions.decision_ids(root)) != notes.get("decisions"):
        lacks.append("the newest decisions")
    gone = len(applied.keys() - set(sealed))
    differs = [f"without {' and '.join(lacks)}"] if lacks else []
    if gone:
        differs.append(f"with {gone} run{'s' * (gone != 1)} that {'are' if gone != 1 else 'is'} gone")
    return f"answers are {' and '.join(differs)}: {reason}" if differs else ""


def _in_scratch_folder(root: Root) -> Store:
    from profiler.store.index import Store

    with contextlib.ExitStack() as stack:
        store = Store.open(stack.enter_context(scratch_folder()) / "index.db", root.url)
        weakref.finalize(store, stack.pop_all().close)
    return store


def _in_memory(root: Root) -> Store:
    """For where the temporary folder is full as well: one database in memory for all threads."""
    from profiler.store.index import Store

    return Store.open(f"sqlite:///file:{uuid.uuid4().hex}?mode=memory&cache=shared&uri=true", root.url)
