"""What a collection is asked for and of which machine, and what of both may not change until it is sealed."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

from profiler.build import toolchain
from profiler.bundles import LocalRoot, bundle
from profiler.catalog import Catalog, catalog, source_sha256
from profiler.collect import find_tools, subprocesses, without_gpu
from profiler.collect.ncu_command import Ncu
from profiler.collect.staging import Staging
from profiler.errors import BadBundle, BadCatalog, ProfilerError
from profiler.evidence import metric_table, nvperf

Json = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What a collection is asked for. Kept with the run, so that going on means the same."""

    versions: tuple[str, ...]
    workloads: tuple[Json, ...]  # sizes, the most important first
    rounds: int = 25
    samples: int = 4
    processes: int = 3  # fresh ones that the rounds are spread over
    clock_control: str = "none"
    cache_control: str = "none"
    full: tuple[str, ...] = ()
    full_on: tuple[str, ...] = ()  # workload labels; none: all
    sanitize: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    counters: bool = True
    keep_session: bool = False  # reports keep host names, users and paths
    seed: int = 0
    command_line: str = ""
    pairs: int = 0  # A/A pairs of a noise run: twice as many sessions of `rounds`, a process each; 0: no such

    def as_json(self) -> Json:
        """For the plan of the staging folder."""
        return asdict(self)

    @staticmethod
    def parse(content: Mapping[str, Any]) -> Settings:
        """What as_json gave. Raises TypeError for the settings of another version of this program."""
        known: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in content.items()
        }
        return Settings(**known)


@dataclass
class Machine:
    """What this machine can do; a tool that is missing leaves out what it is for, and says so."""

    gpu: Json | None
    ncu: Ncu | None
    sanitizer: Path | None = None
    missing: list[str] = field(default_factory=list)  # why something is left out, a sentence each
    passes: dict[str, int | None] = field(default_factory=dict)  # replay passes by tier; None: not known

    @property
    def chip(self) -> str | None:
        """sm_90."""
        capability = (self.gpu or {}).get("compute_capability")
        return metric_table.chip_of(capability) if capability else None

    def facts(self) -> Json:
        """What a run says of the machine that it was measured on."""
        nvcc = toolchain.find_tool("nvcc")
        return {
            "gpu": self.gpu,
            "ncu_version": self.ncu.version if self.ncu else None,
            "nvcc": nvcc.version if nvcc else None,
            "torch": _torch(),
            "python": platform.python_version(),
            "host": platform.node(),
        }


def look(counters: bool = True) -> Machine:
    """The GPU, asked for in a process of its own so that this one holds nothing of it, and the tools."""
    gpu, ended = _apart(
        "from profiler.collect.gpu import device; gpu = device.describe(); "
        "print(json.dumps(gpu and gpu.as_json()))"
    )
    ncu, sanitizer = find_tools.find("ncu") if counters else None, find_tools.find("compute-sanitizer")
    machine = Machine(gpu, Ncu(ncu.path, ncu.version) if ncu else None, sanitizer.path if sanitizer else None)
    if gpu is None:
        why = "" if ended.ok else f" (the look at it {ended.words}: {ended.last_line})"
        machine.missing.append(f"no GPU here: nothing can be measured; static and modelled facts alone{why}")
    elif counters and ncu is None:
        machine.missing.append("no ncu here: latency is measured, counters are not; install Nsight Compute")
    elif counters and machine.chip:
        count_passes(machine, machine.chip)
    return machine


def count_passes(machine: Machine, chip: str) -> None:
    """Replay passes of both tiers, by NVIDIA's library; where it ends the process that calls it, without."""
    counted, ended = _apart(
        "from profiler.evidence import chip_metrics as chips, load_metrics; "
        "table = load_metrics(); "
        f"chip = {chip!r}; "
        "print(json.dumps({tier: chips.replay_passes(chips.names_to_collect(table, chip, tier), chip) "
        "for tier in ('lean', 'full')}))"
    )
    if counted is None:
        nvperf.disable()
        machine.missing.append(
            f"replay passes are not known: {nvperf.LIBRARY} cannot be used here, it {ended.words}"
        )
    machine.passes = counted or {}


def _apart(code: str) -> tuple[Json | None, subprocesses.ProcessResult]:
    """The JSON object that a few lines of Python print, in a process of their own; None: it brought none."""
    with tempfile.TemporaryDirectory(prefix="profiler-") as folder:
        ended = subprocesses.run(
            [sys.executable, "-c", f"import json; {code}"],
            timeout_s=120,
            log=Path(folder) / "log",
            env=subprocesses.stage_environment(),
        )
    return (json.loads(ended.last_line) if ended.ok and ended.last_line.startswith("{") else None), ended


# ---------------------------------------------------------------- beginning and going on


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
    sources = without_gpu.sources(lineage, [one for one in chosen if one.buildable])
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
    kept = staging.sources.get(f"{without_gpu.SOURCES}/{path.name}")
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


def command_line(argv: Sequence[str]) -> str:
    """A command line as it may be published: file names without their folders."""

    def plain(word: str) -> str:
        option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
        return f"{option}{equals}{Path(value).name if value.startswith('/') else value}"

    return shlex.join(plain(word) for word in argv)


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
    commit = without_gpu.said("git", "-C", str(lineage.folder), "rev-parse", "HEAD")
    if not commit:  # a copy of the tree, on a machine that is lent for example: whoever copied it can say
        told = os.environ.get("PROFILER_COMMIT", "")
        return {"git_commit": told} if re.fullmatch(r"[0-9a-f]{7,64}", told) else {}
    diff = without_gpu.said("git", "-C", str(lineage.folder), "diff", "HEAD", "--", ".")
    return {"git_commit": commit, "git_diff_sha256": sha256(diff.encode()).hexdigest() if diff else None}


def _torch() -> str | None:
    """The version of torch, without importing it."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None
