"""`delete`: bundles of runs removed for good, with a record of who did it and why."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from profiler.bundles import bundle, decisions, location
from profiler.bundles.dropped import load_dropped, stored_files
from profiler.bundles.location import LocalRoot, Root
from profiler.errors import BadBundle
from profiler.store import cache_room, report_values, sync
from profiler.store.rows import IndexNotWritable
from profiler.store.run_decisions import check_run_id


@dataclass(frozen=True)
class Deletion:
    """What deleting a run removes."""

    run_id: str
    files: int
    size_bytes: int


def plan_deletion(run_ids: Sequence[str], *, data: str | None = None) -> list[Deletion]:
    """What deleting these runs would remove. Raises UnknownName for a run that does not exist."""
    root = location.open_root(data)
    plan = []
    begun: set[str] = set()  # afar, a killed deletion leaves files without run.json: another one finishes it
    if not isinstance(root, LocalRoot):
        records = decisions.load_decisions(root)
        begun = {record.subject for record in records if record.kind == decisions.DELETE}
    for run_id in dict.fromkeys(run_ids):
        if run_id not in begun:
            check_run_id(root, run_id)
        try:
            run = bundle.load_run(root, run_id)
            files = stored_files(run, load_dropped(root, run))
        except BadBundle:  # a damaged run can be deleted as well
            files = ()
        plan.append(Deletion(run_id, len(files) + 1, sum(file.size_bytes for file in files)))
    return plan


def delete_runs(
    run_ids: Sequence[str], *, why: str, who: str | None = None, data: str | None = None
) -> list[Deletion]:
    """Remove the bundles of these runs, and what the cache holds of their reports.

    The record is written first: a kill leaves each run either whole or gone, and never gone without one.
    On a full disk the cache gives back the room for it. Raises UnknownName for a run that does not exist;
    then none is removed.
    """
    root = location.open_root(data)
    plan = plan_deletion(run_ids, data=data)
    for deletion in plan:
        run_id = deletion.run_id
        digests: list[str] = []
        with contextlib.suppress(BadBundle):
            digests = [report.sha256 for report in bundle.load_run(root, run_id).reports]
        record = partial(decisions.write_decision, root, decisions.DELETE, run_id, why=why, who=who)
        cache_room.with_room(root, digests, record)
        try:
            cache_room.with_room(root, digests, partial(bundle.remove_run, root, run_id))
        except OSError as error:
            raise location.data_unusable(root, error) from error
        report_values.forget_reports(root, digests)
    with contextlib.suppress(IndexNotWritable):  # else whoever asks it next brings it in step, or says so
        cache_room.with_room(root, (), partial(_sync, root))
    return plan


def _sync(root: Root) -> None:
    with contextlib.closing(sync.unsynced_store(root)) as store:
        sync.sync_store(root, store)
