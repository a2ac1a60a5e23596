"""Whether two runs ran equal machine code: by the hash of the SASS, else by source and compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import NamedTuple

from profiler.bundles import bundle, location
from profiler.bundles.location import Root
from profiler.bundles.run import Result, Run
from profiler.errors import ProfilerError
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.values import Evidence

SAME, CHANGED, UNKNOWN = "same", "changed", "unknown"
SASS_HASH = "static__sass_sha256"  # the fact that holds the hash of a function's machine code

RunVersion = tuple[str, str]  # run id, version
# Whether two results ran equal machine code; None: unknown.
SameCodeLookup = Callable[[RunVersion, RunVersion], bool | None]
# Whether two results are known to be of one build: with equal machine code, and source not known to differ.
SameBuildLookup = Callable[[RunVersion, RunVersion], bool]
_CodePlace = tuple[str, str, str]  # architecture, workload, part


class CodeChange(NamedTuple):
    """Whether the machine code changed, and how that is known."""

    word: str  # same, changed or unknown
    why: str
    other_source: bool = False  # whether the source is known to differ: it may launch equal code otherwise

    @property
    def is_same_build(self) -> bool:
        """Whether the machine code is equal, and the source is not known to differ."""
        return self.word == SAME and not self.other_source


def code_change(
    before: tuple[Run | None, str],
    after: tuple[Run | None, str],
    part: str,
    capability: str | None = None,
) -> CodeChange:
    """Compare the machine code in two runs, each given with the name of the version there.

    The hashes of `part` decide where both runs have them, else those of all parts, as for the latency of a
    whole call. `capability` is the GPU's compute capability: of code for several architectures, that for it
    counts.
    """
    results_before, results_after = (_results(run, version) for run, version in (before, after))
    sources_a, sources_b = (
        {result.source_sha256 for result in results if result.source_sha256}
        for results in (results_before, results_after)
    )
    chip = chip_of(capability)
    hashes_a, hashes_b = (_sass_hashes(results, chip) for results in (results_before, results_after))
    if shared := hashes_a.keys() & hashes_b.keys():
        shared = {place for place in shared if place[2] == part.partition("#")[0]} or shared
        changed_parts = sorted({place[2] for place in shared if hashes_a[place] != hashes_b[place]})
        if changed_parts:
            return CodeChange(CHANGED, f"SASS of {', '.join(changed_parts)} differs")
        if sources_a and sources_b and sources_a != sources_b:
            return CodeChange(SAME, "SASS has the same hash; source or flags differ", other_source=True)
        return CodeChange(SAME, "SASS has the same hash")
    if len(sources_a) != 1 or len(sources_b) != 1:
        return CodeChange(UNKNOWN, "the runs keep no hash of SASS or source")
    if sources_a != sources_b:
        return CodeChange(CHANGED, "source or flags differ; SASS was not kept")
    # Equal sources give equal code only from the same compiler.
    nvcc_a, nvcc_b = (run.provenance.get("nvcc") if run else None for run, _ in (before, after))
    if nvcc_a is None or nvcc_b is None:
        return CodeChange(UNKNOWN, "same source and flags; the compiler is not known")
    if nvcc_a != nvcc_b:
        return CodeChange(UNKNOWN, f"same source and flags, nvcc {nvcc_a} and {nvcc_b}")
    return CodeChange(SAME, f"same source, flags and nvcc {nvcc_a}")


def same_code_lookup(data: str | None = None) -> SameCodeLookup:
    """The lookup over the bundles of a data folder or URL; None means PROFILER_DATA."""

    change = _change_lookup(data)

    def same_code(a: RunVersion, b: RunVersion) -> bool | None:
        return {SAME: True, CHANGED: False}.get(change(a, b).word)

    return same_code


def same_build_lookup(data: str | None = None) -> SameBuildLookup:
    """The lookup over the bundles of a data folder or URL; None means PROFILER_DATA."""

    change = _change_lookup(data)

    def same_build(a: RunVersion, b: RunVersion) -> bool:
        return change(a, b).is_same_build

    return same_build


def run_code_loader(root: Root) -> Callable[[str], Run | None]:
    """A function that loads runs by id, reduced to what identifies their machine code, each once per process.

    It returns None for a run that cannot be read: nothing is known about its code.
    """

    def load(run_id: str) -> Run | None:
        try:
            return _load_run_code(root.url, run_id)
        except ProfilerError:
            return None

    return load


@lru_cache(maxsize=4096)  # a sealed run never changes
def _load_run_code(url: str, run_id: str) -> Run:
    run = bundle.load_outline(location.open_root(url), run_id, (SASS_HASH,))
    provenance = {"nvcc": nvcc} if (nvcc := run.provenance.get("nvcc")) else {}
    return replace(run, provenance=provenance, reports=(), files=())


def _change_lookup(data: str | None) -> Callable[[RunVersion, RunVersion], CodeChange]:
    @cache  # opened when first asked, and once
    def loader() -> Callable[[str], Run | None]:
        return run_code_loader(location.open_root(data))

    def change(a: RunVersion, b: RunVersion) -> CodeChange:
        load = loader()
        return code_change((load(a[0]), a[1]), (load(b[0]), b[1]), "total")

    return change


def _results(run: Run | None, version: str) -> list[Result]:
    """The version's results. A run with one result has that: an imported report may have been relabelled."""
    if run is None:
        return []
    return [result for result in run.results if result.version == version] or (
        list(run.results) if len(run.results) == 1 else []
    )


def _sass_hashes(results: Sequence[Result], chip: str | None) -> dict[_CodePlace, str]:
    """The hashes for the chip's own architecture where there are any, else those for all architectures."""
    hashes: dict[_CodePlace, str] = {}
    for result in results:
        for facts in result.facts:
            value = facts.values.get(SASS_HASH)
            if facts.evidence is Evidence.STATIC and value is not None and value.text:
                hashes[facts.target or "", result.workload or "", facts.part] = value.text
    own = {place: text for place, text in hashes.items() if chip and place[0].startswith(chip)}
    return own or hashes
