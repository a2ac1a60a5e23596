"""Which run keeps the machine code of a version, so that nobody needs a compiler to read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from profiler.bundles import Root, Run, bundle
from profiler.errors import CannotJudge
from profiler.evidence import Evidence, brief_list, natural_key
from profiler.sass import bundle_file
from profiler.sass import listing as sass_listing
from profiler.sass.listing import Listing

if TYPE_CHECKING:
    from profiler.store import Store

_ARCH = re.compile(r"sm_(\d+)(\d)([af]?)")


@dataclass(frozen=True)
class StoredCode:
    """The machine code of one version on one architecture, and where it comes from."""

    run_id: str
    created: datetime
    family: str
    version: str
    arch: str
    compiler: str
    source_sha256: str | None  # of what it was compiled from
    listing: Listing  # without counts: nothing was run

    @property
    def words(self) -> str:
        """Where it comes from: `sm_90a, nvcc 13.0.88, run 2026…`."""
        return f"{self.arch}, {self.compiler}, run {self.run_id}"


class CodeNotStored(CannotJudge):
    """No run keeps the code that is asked for."""


def compiled_architectures(store: Store, family: str, version: str, run_id: str | None = None) -> list[str]:
    """What the version was compiled for in its newest runs, or in one, be the code of it kept or not."""
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
    """The newest code of the version for the architecture, or the code that one run keeps.

    Where the newest run with such facts keeps no code, an older one counts only if it is of the same source
    and flags. Raises NotKept, with the command that builds the code, and BadBundle for a damaged file.
    """
    name = f"{family}/{version}"
    newest: Run | None = None
    for run in _runs(root, store, family, version, arch, run_id):
        newest = newest or run
        if _source(run, family, version, arch) != _source(newest, family, version, arch):
            break
        if found := code_of_run(root, run, family, version, arch):
            return found
    way_out = f"`profiler sass {name} --arch {arch}` " + ("shows the newest" if run_id else "builds it")
    if newest is None:
        there = brief_list(compiled_architectures(store, family, version, run_id))
        where = f"run {run_id} has" if run_id else "no run has"
        raise CodeNotStored(
            f"{name} was compiled for {there}, not for {arch}"
            if there
            else f"{where} anything of a compiler about {name}: {way_out}"
        )
    raise CodeNotStored(
        f"the machine code of {name} for {arch} is not kept in run {newest.run_id}: {way_out}"
    )


def code_of_run(root: Root, run: Run, family: str, version: str, arch: str) -> StoredCode | None:
    """The code that a run keeps of a version for an architecture; None where it keeps none."""
    path = bundle_file.code_path(version)
    file = next((one for one in run.files if one.kind == bundle_file.SASS and one.path == path), None)
    if file is None or not any(one.family == family for one in run.results if one.version == version):
        return None
    code = bundle_file.unpack_code(bundle.read_content(root, run.run_id, file), f"run {run.run_id}: {path}")
    if arch not in code.functions:
        return None
    functions = code.functions[arch]
    named = {source[0] for one in functions for source in one.sources if source}
    texts = {
        source.name: bundle.read_content(root, run.run_id, source).decode(errors="replace")
        for source in run.files
        if source.kind == "source" and source.name in named
    }
    listing = sass_listing.make_listing(functions, f"{family}/{version}", texts)
    source = _source(run, family, version, arch)
    return StoredCode(run.run_id, run.created, family, version, arch, code.compiler, source, listing)


def common_architecture(
    store: Store,
    names: Sequence[tuple[str, str] | tuple[str, str, str | None]],
    preferred: str | None = None,
) -> str | None:
    """The newest architecture that all of the versions (family, version, and the run) were compiled for."""
    shared: set[str] | None = None
    for one in names:
        there = set(compiled_architectures(store, *one))
        shared = there if shared is None else shared & there
    if preferred in (shared or ()):
        return preferred
    return max(shared or (), key=natural_key, default=None)


def newest_running_on(capability: str, arches: Iterable[str]) -> str | None:
    """The newest of the architectures whose code runs on a GPU of a compute capability ("9.0").

    Code runs on GPUs of its major number and its minor number or a higher one, that of sm_90a on 9.0 alone.
    Source: CUDA C++ Programming Guide, "Binary Compatibility" and "Feature-Set Compiler Targets".
    """
    major, minor = (int(part) for part in capability.split("."))
    fitting = []
    for arch in arches:
        known = _ARCH.fullmatch(arch)
        if known and int(known[1]) == major:
            here = int(known[2])
            if here == minor if known[3] == "a" else here <= minor:
                fitting.append((here, known[3] == "a", arch))
    return max(fitting)[2] if fitting else None


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
    order = sorted({(row.created, row.run_id) for row in rows}, reverse=True)
    for _, held in order:
        yield bundle.load_run(root, held)


def _source(run: Run, family: str, version: str, arch: str) -> str | None:
    """The hash of what the run's static facts of a version are of."""
    return next(
        (
            one.source_sha256
            for one in run.results
            if (one.family, one.version) == (family, version)
            and any(facts.target == arch for facts in one.facts)
        ),
        None,
    )
