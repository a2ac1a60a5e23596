"""What a run is begun with and what must not change until it is sealed: sources, metrics, GPU."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from profiler.bundles import bundle
from profiler.bundles.location import LocalRoot
from profiler.catalog.catalog import Catalog, load_catalog, parse_catalog
from profiler.catalog.sources import source_sha256
from profiler.collect import bundle_files
from profiler.collect.git_state import git_state
from profiler.collect.machine import Machine, MachineFacts
from profiler.collect.outcomes import SessionNote
from profiler.collect.settings import Settings
from profiler.collect.staging import Staging
from profiler.errors import BadBundle, BadCatalog, ProfilerError
from profiler.evidence.metric_table import load_metrics

Json = dict[str, Any]


@dataclass(frozen=True)
class RunInputs:
    """The content of plan.json in the staging folder."""

    created: datetime
    catalog_path: Path
    settings: Settings
    source_hashes: Mapping[str, str]  # by version
    metrics_sha256: str
    git: Mapping[str, Any]  # the entries of the provenance that name the commit

    def as_json(self) -> Json:
        """For plan.json."""
        return {
            "created": self.created.isoformat(),
            "catalog": str(self.catalog_path),
            "settings": self.settings.as_json(),
            "sources": dict(self.source_hashes),
            "metrics": self.metrics_sha256,
            "git": dict(self.git),
        }

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> RunInputs:
        """The inverse of as_json. Raises KeyError, TypeError, AttributeError or ValueError otherwise."""
        return RunInputs(
            created=datetime.fromisoformat(content["created"]),
            catalog_path=Path(content["catalog"]),
            settings=Settings.from_json(content["settings"]),
            source_hashes=dict(content["sources"]),
            metrics_sha256=content["metrics"],
            git=dict(content.get("git", {})),
        )


@dataclass(frozen=True)
class UnfinishedRun:
    """A run that can be measured or sealed: its folder, its catalogue, and its inputs."""

    staging: Staging
    catalog: Catalog
    inputs: RunInputs


def begin_run(root: LocalRoot, catalog: Catalog, settings: Settings) -> UnfinishedRun:
    """Begin a run in the staging folder, with a copy of its sources."""
    inputs = RunInputs(
        created=datetime.now(UTC).replace(microsecond=0),
        catalog_path=catalog.path,
        settings=settings,
        source_hashes=_source_hashes(catalog, settings.versions),
        metrics_sha256=_metrics_sha256(),
        git=_git_provenance(catalog),
    )
    versions = [catalog.by_id[name] for name in settings.versions]
    sources = bundle_files.sources(catalog, [version for version in versions if version.buildable])
    what = "noise" if settings.pairs else "collect"
    run_id = bundle.imported_run_id(inputs.created, catalog.family, what, uuid.uuid4().hex)
    return UnfinishedRun(Staging.begin(root, run_id, inputs.as_json(), sources), catalog, inputs)


def resume_run(root: LocalRoot, run_id: str, *, sealing: bool = False) -> UnfinishedRun:
    """Open an unfinished run with its inputs. Raises UnknownName, BadBundle.

    Raises ProfilerError where sources, flags or metrics.txt are no longer those that the run was begun with:
    one run would then hold two versions of the same name. sealing: nothing is measured, and the catalogue
    is the one that the run was begun with.
    """
    staging = Staging.resume(root, run_id)
    try:
        bundle.refuse_partial_import(root, staging.run_id)
        try:
            inputs = RunInputs.from_json(staging.plan)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise BadBundle(
                f"{staging.folder}: its plan is of another version of profiler ({error}): begin a new run"
            ) from None
        if sealing:
            return UnfinishedRun(staging, _begun_with(staging, inputs.catalog_path), inputs)
        catalog = load_catalog(inputs.catalog_path)
        _refuse_changes(staging.run_id, catalog, inputs)
        return UnfinishedRun(staging, catalog, inputs)
    except BaseException:
        staging.close()
        raise


def _begun_with(staging: Staging, path: Path) -> Catalog:
    """The catalogue as it was when the run began: the run's copy, where it has one."""
    copy = staging.sources.get(f"{bundle_files.SOURCES}/{path.name}")
    if copy is None:
        return load_catalog(path)
    return parse_catalog(copy.read_text(encoding="utf-8"), path, check_files=False)


def _refuse_changes(run_id: str, catalog: Catalog, inputs: RunInputs) -> None:
    versions = inputs.settings.versions
    try:
        now = _source_hashes(catalog, versions)
    except (KeyError, OSError) as error:
        raise BadCatalog(f"{catalog.path} lacks what run {run_id} was begun with: {error}") from None
    changed = [name for name in versions if now[name] != inputs.source_hashes.get(name)]
    what = f"{', '.join(changed)} changed" if changed else ""
    if not what and inputs.metrics_sha256 != _metrics_sha256():
        what = "metrics.txt changed"
    if what:
        raise ProfilerError(
            f"{what} since run {run_id} was begun: undo that, or keep what was measured "
            f"(profiler collect --resume {run_id} --seal) and begin a new run"
        )


def refuse_another_gpu(staging: Staging, machine: Machine) -> None:
    """Raise ProfilerError where the run was begun on another GPU or driver: a run is of one GPU."""
    measured = measured_on(staging.sessions())
    if not measured or not machine.gpu:
        return
    then, now = measured["gpu"] or {}, machine.gpu.as_json()
    differing = [
        f"{key} {then.get(key)} then, {now.get(key)} now"
        for key in ("name", "uuid", "driver")
        if then.get(key) != now.get(key)
    ]
    if differing:
        raise ProfilerError(
            f"run {staging.run_id} was begun on another GPU or driver ({'; '.join(differing)}): go on there, "
            f"or keep it (profiler collect --resume {staging.run_id} --seal) and begin a new run"
        )


def measured_on(sessions: Sequence[SessionNote]) -> MachineFacts | None:
    """The machine that the sessions measured on; None where none had a GPU."""
    machines = (session["machine"] for session in sessions if "machine" in session)
    return next((machine for machine in machines if machine.get("gpu")), None)


def _source_hashes(catalog: Catalog, versions: Sequence[str]) -> dict[str, str]:
    return {name: source_sha256(catalog, catalog.by_id[name]) for name in versions}


def _metrics_sha256() -> str:
    """A hash of what metrics.txt collects; its labels and thresholds do not matter before a verdict."""
    table = load_metrics()
    collected = [
        (metric.concept, metric.tier, *((name.name, sorted(name.chips)) for name in metric.alternatives))
        for metric in table.metrics
    ]
    return sha256(repr((collected, table.captured)).encode()).hexdigest()


def _git_provenance(catalog: Catalog) -> Json:
    state = git_state(catalog.folder)
    if state:
        return state
    # In a copy of the tree without git, the variable can say which commit it is.
    commit = os.environ.get("PROFILER_COMMIT", "")
    return {"git_commit": commit} if re.fullmatch(r"[0-9a-f]{7,64}", commit) else {}
