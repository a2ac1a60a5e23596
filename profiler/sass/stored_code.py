"""The machine code that runs store of versions: it is read without a compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from profiler.bundles import bundle
from profiler.bundles.location import Root
from profiler.bundles.run import Run
from profiler.errors import CannotJudge
from profiler.evidence.naming import brief_list, natural_key
from profiler.evidence.values import Evidence
from profiler.sass import bundle_file
from profiler.sass.listing import Listing, make_listing

if TYPE_CHECKING:
    from profiler.store.index import Store


@dataclass(frozen=True)
class StoredCode:
    """The machine code of one version on one architecture, and the run that it comes from."""

    run_id: str
    created: datetime
    family: str
    version: str
    arch: str
    compiler: str
    source_sha256: str | None  # of the source that it was compiled from
    listing: Listing  # without counts: it was not run

    @property
    def words(self) -> str:
        """Where it comes from: `sm_90a, nvcc 13.0.88, run 2026…`."""
        return f"{self.arch}, {self.compiler}, run {self.run_id}"


class CodeNotStored(CannotJudge):
    """No run stores the code that is asked for."""


def compiled_architectures(store: Store, family: str, version: str, run_id: str | None = None) -> list[str]:
    """What the version was compiled for in its newest runs or in one, whether they store its code or not."""
    rows = store.results(
        family=family, version=version, evidence=Evidence.STATIC, kind="facts", run_id=run_id
    )
    return sorted({row.gpu for row in rows if row.gpu}, key=natural_key)


def find_code(
    root: Root,
    store: Store,
    family: str,
    version: str,
    arch: str,
    run_id: str | None = None,
) -> StoredCode:
    """The newest code of the version for the architecture, or the code that one run stores.

    Where the newest run with such facts stores no code, an older one counts only if its source and flags are
    the same. Raises CodeNotStored, with the command that builds the code, and BadBundle for a damaged file.
    """
    name = f"{family}/{version}"
    newest: Run | None = None
    for run in _runs(root, store, family, version, arch, run_id):
        newest = newest or run
        if _source_sha256(run, family, version, arch) != _source_sha256(newest, family, version, arch):
            break
        if code := code_of_run(root, run, family, version, arch):
            return code
    command = f"`profiler sass {name} --arch {arch}` " + ("shows the newest" if run_id else "builds it")
    if newest is not None:
        raise CodeNotStored(
            f"the machine code of {name} for {arch} is not kept in run {newest.run_id}: {command}"
        )
    if arches := brief_list(compiled_architectures(store, family, version, run_id)):
        raise CodeNotStored(f"{name} was compiled for {arches}, not for {arch}")
    subject = f"run {run_id} has" if run_id else "no run has"
    raise CodeNotStored(f"{subject} anything of a compiler about {name}: {command}")


def code_of_run(root: Root, run: Run, family: str, version: str, arch: str) -> StoredCode | None:
    """The code that a run stores of a version for an architecture; None where it stores none."""
    path = bundle_file.code_path(version)
    entry = next((file for file in run.files if file.kind == bundle_file.SASS and file.path == path), None)
    of_version = [result for result in run.results if (result.family, result.version) == (family, version)]
    if entry is None or not of_version:
        return None
    code = bundle_file.unpack_code(bundle.read_content(root, run.run_id, entry), f"run {run.run_id}: {path}")
    if arch not in code.functions:
        return None
    functions = code.functions[arch]
    named_files = {source[0] for function in functions for source in function.sources if source}
    texts = {
        file.name: bundle.read_content(root, run.run_id, file).decode(errors="replace")
        for file in run.files
        if file.kind == "source" and file.name in named_files
    }
    listing = make_listing(functions, f"{family}/{version}", texts)
    sha256 = _source_sha256(run, family, version, arch)
    return StoredCode(run.run_id, run.created, family, version, arch, code.compiler, sha256, listing)


def common_architecture(
    store: Store,
    names: Sequence[tuple[str, str] | tuple[str, str, str | None]],
    preferred: str | None = None,
) -> str | None:
    """The preferred architecture, else the newest, that all of some versions were compiled for; None without.

    names: family and version of each, and, where only one run counts, the run.
    """
    common: set[str] | None = None
    for name in names:
        arches = set(compiled_architectures(store, *name))
        common = arches if common is None else common & arches
    if preferred in (common or ()):
        return preferred
    return max(common or (), key=natural_key, default=None)


def _runs(
    root: Root, store: Store, family: str, version: str, arch: str, run_id: str | None
) -> Iterator[Run]:
    """The runs with static facts of the version on the architecture, newest first."""
    rows = store.results(
        family=family,
        version=version,
        gpu=arch,
        evidence=Evidence.STATIC,
        kind="facts",
        run_id=run_id,
        latest=False,
    )
    for _, id_of_run in sorted({(row.created, row.run_id) for row in rows}, reverse=True):
        yield bundle.load_run(root, id_of_run)


def _source_sha256(run: Run, family: str, version: str, arch: str) -> str | None:
    """The hash of the source that the run's static facts of a version on an architecture are of."""
    for result in run.results:
        is_of_version = (result.family, result.version) == (family, version)
        if is_of_version and any(facts.target == arch for facts in result.facts):
            return result.source_sha256
    return None
