"""What a run is begun with and may not change until it is sealed: sources, metrics, GPU."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from profiler.bundles import LocalRoot, bundle
from profiler.catalog import Catalog, catalog, source_sha256
from profiler.collect import bundle_files
from profiler.collect.git_state import command_output
from profiler.collect.machine import Machine
from profiler.collect.settings import Settings
from profiler.collect.staging import Staging
from profiler.errors import BadBundle, BadCatalog, ProfilerError
from profiler.evidence import metric_table

Json = dict[str, Any]


def begin(root: LocalRoot, lineage: Catalog, settings: Settings) -> Staging:
    """A new run in the staging folder, with its sources as they are now."""
    chosen = [lineage.by_id[name] for name in settings.versions]
    created = datetime.now(UTC).replace(microsecond=0)
    content = {
        "created": created.isoformat(),
        "catalog": str(lineage.path),
        "settings": settings.as_json(),
        "sources": _hashes(lineage, settings.versions),
        "metrics": _metrics_sha256(),
        "git": _git(lineage),
    }
    sources = bundle_files.sources(lineage, [one for one in chosen if one.buildable])
    what = "noise" if settings.pairs else "collect"
    run_id = bundle.imported_run_id(created, lineage.family, what, uuid.uuid4().hex)
    return Staging.begin(root, run_id, content, sources)


def resume(root: LocalRoot, run_id: str, *, sealing: bool = False) -> tuple[Staging, Catalog, Settings]:
    """An unfinished run with what it was asked for. Raises UnknownName, BadBundle.

    Raises ProfilerError where sources, flags or metrics.txt are no longer those that the run was begun with:
    one run would then hold two versions of the same name. sealing: nothing is measured, and the catalogue
    is the one that the run was begun with.
    """
    staging = Staging.resume(root, run_id)
    run_id = staging.run_id  # also where the last one was asked for
    try:
        bundle.refuse_partial_import(root, run_id)
        content = staging.plan
        try:
            settings = Settings.parse(content["settings"])
            path = Path(content["catalog"])
            hashes, metrics_sha256 = content["sources"], content["metrics"]
        except (KeyError, TypeError, AttributeError) as error:
            raise BadBundle(
                f"{staging.folder}: its plan is of another version of profiler ({error}): begin a new run"
            ) from None
        if sealing:
            return staging, _begun_with(staging, path), settings
        lineage = catalog.load_catalog(path)
        _refuse_changes(run_id, lineage, settings, hashes, metrics_sha256)
        return staging, lineage, settings
    except BaseException:
        staging.close()
        raise


def _begun_with(staging: Staging, path: Path) -> Catalog:
    kept = staging.sources.get(f"{bundle_files.SOURCES}/{path.name}")
    if kept is None:
        return catalog.load_catalog(path)
    return catalog.parse_catalog(kept.read_text(encoding="utf-8"), path, check_files=False)


def _refuse_changes(
    run_id: str, lineage: Catalog, settings: Settings, hashes: Mapping[str, str], metrics_sha256: str
) -> None:
    try:
        now = _hashes(lineage, settings.versions)
    except (KeyError, OSError) as error:
        raise BadCatalog(f"{lineage.path} lacks what run {run_id} was begun with: {error}") from None
    changed = [name for name in settings.versions if now[name] != hashes.get(name)]
    what = f"{', '.join(changed)} changed" if changed else ""
    if not what and metrics_sha256 != _metrics_sha256():
        what = "metrics.txt changed"
    if what:
        raise ProfilerError(
            f"{what} since run {run_id} was begun: undo that, or keep what was measured "
            f"(profiler collect --resume {run_id} --seal) and begin a new run"
        )


def refuse_another_gpu(staging: Staging, machine: Machine) -> None:
    """Raises ProfilerError where the run was begun on another GPU or driver: it would be no one GPU's run."""
    then, now = measured_on(staging.sessions()), machine.gpu
    if not then or not now:
        return
    differing = [
        f"{key} {before.get(key)} then, {now.get(key)} now"
        for before in [then["gpu"]]
        for key in ("name", "uuid", "driver")
        if before.get(key) != now.get(key)
    ]
    if differing:
        raise ProfilerError(
            f"run {staging.run_id} was begun on another GPU or driver ({'; '.join(differing)}): go on there, "
            f"or keep it (profiler collect --resume {staging.run_id} --seal) and begin a new run"
        )


def measured_on(sessions: Sequence[Mapping[str, Any]]) -> Json | None:
    """What the sessions say of the machine with the GPU; None where none had one."""
    return next((dict(one["machine"]) for one in sessions if (one.get("machine") or {}).get("gpu")), None)


def _hashes(lineage: Catalog, versions: Sequence[str]) -> dict[str, str]:
    return {name: source_sha256(lineage, lineage.by_id[name]) for name in versions}


def _metrics_sha256() -> str:
    """Of what metrics.txt asks ncu for; labels and thresholds are read anew by whoever judges."""
    table = metric_table.load_metrics()
    asked = [
        (one.concept, one.tier, *((name.name, sorted(name.chips)) for name in one.alternatives))
        for one in table.metrics
    ]
    return sha256(repr((asked, table.captured)).encode()).hexdigest()


def _git(lineage: Catalog) -> Json:
    commit = command_output("git", "-C", str(lineage.folder), "rev-parse", "HEAD")
    if not commit:  # a copy of the tree, on a machine that is lent for example: whoever copied it can say
        told = os.environ.get("PROFILER_COMMIT", "")
        return {"git_commit": told} if re.fullmatch(r"[0-9a-f]{7,64}", told) else {}
    diff = command_output("git", "-C", str(lineage.folder), "diff", "HEAD", "--", ".")
    return {"git_commit": commit, "git_diff_sha256": sha256(diff.encode()).hexdigest() if diff else None}
