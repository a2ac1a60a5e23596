"""How a search is begun, or found again, and how workers are started in the background."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from profiler.bundles.location import Root
from profiler.catalog.catalog import Catalog, load_catalog
from profiler.catalog.problem import acceptance_workloads
from profiler.catalog.sources import load_problem
from profiler.catalog.trust import require_trust
from profiler.errors import UnknownName
from profiler.evidence.gpu_parts import DEFAULT_PART, find_part
from profiler.search.archive import SEATS
from profiler.search.journal import Journal, create_journal, list_journals
from profiler.search.named_generator import load_generator
from profiler.search.prompt import load_templates
from profiler.search.settings import SearchSettings
from profiler.search.variants import space_of

LOG = "worker.log"


def new_search(
    root: Root,
    family: str,
    generator: str,
    *,
    version: str | None = None,
    gpu: str = DEFAULT_PART,
    workloads: Sequence[str] = (),
    catalog: Path | None = None,
    templates: Path | None = None,
    seats: int = SEATS,
    seed: int | None = None,
    control_share: float = 0.3,
    target_ns: float | None = None,
    generator_seconds: float = 600.0,
) -> Journal:
    """Begin a search: see SearchSettings for what it is about. Nothing is judged yet.

    Raises UnknownName for a family, version or workload that there is not, ProfilerError for a generator or
    templates that cannot be used, NotTrusted for a catalogue of others.
    """
    loaded = load_catalog(catalog) if catalog else load_catalog()
    check_family(loaded, family)
    require_trust(loaded)
    chosen = version or first_version(loaded)
    space_of(loaded, loaded.pick([chosen])[0].id)
    picked = loaded.pick([chosen])[0]
    load_generator(generator, generator_seconds)
    load_templates(str(templates or ""))
    labels = [w.label for w in acceptance_workloads(load_problem(loaded), [picked.dtype], picked.head_dims)]
    if unknown := [label for label in workloads if label not in labels]:
        raise UnknownName(f"no workload {unknown[0]!r}: there are {', '.join(labels)}")
    now = datetime.now(UTC)
    settings = SearchSettings(
        id=f"{now:%Y%m%dT%H%M%S}-{family}-{secrets.token_hex(2)}",
        family=family,
        version=picked.id,
        gpu=find_part(gpu).name,
        workloads=tuple(workloads) or tuple(labels),
        generator=generator,
        created=now.isoformat(timespec="seconds"),
        seats=seats,
        seed=secrets.randbits(31) if seed is None else seed,
        control_share=control_share,
        catalog=str(catalog.resolve()) if catalog else "",
        templates=str(templates.resolve()) if templates else "",
        target_ns=target_ns,
        generator_seconds=generator_seconds,
    )
    return create_journal(root, settings)


def check_family(catalog: Catalog, family: str) -> None:
    """Raises UnknownName for a family that is not the catalogue's."""
    if family != catalog.family:
        raise UnknownName(f"{catalog.path} is of family {catalog.family}, not {family}: give --catalog")


def first_version(catalog: Catalog) -> str:
    """What a search begins with unless told: the first version that the catalogue has a [[search]] of."""
    if not catalog.spaces:
        raise UnknownName(f"{catalog.path} has no [[search]]: `profiler search --help` shows one")
    return catalog.spaces[0].versions[0]


def matching_search(
    root: Root,
    family: str,
    generator: str | None,
    version: str | None,
    gpu: str | None,
    workloads: Sequence[str],
) -> Journal | None:
    """The newest search that is about what was asked for; None where there is none."""
    for journal in reversed(list_journals(root, family)):
        settings = journal.settings
        same = (
            generator in (None, settings.generator)
            and version in (None, settings.version)
            and (gpu is None or find_part(gpu).name == settings.gpu)
            and (not workloads or tuple(workloads) == settings.workloads)
        )
        if same:
            return journal
    return None


def start_worker(journal: Journal, root: Root, extra: Sequence[str] = ()) -> int:
    """Start a worker in the background, which outlives this process; its process id.

    What it says goes to worker.log in the search's folder.
    """
    command = [sys.executable, "-m", "profiler", "search", "run", journal.settings.family]
    command += ["--search", journal.settings.id, *extra]
    with (journal.folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PROFILER_DATA": root.url},
            start_new_session=True,
        )
    return process.pid
