"""What else differed between two runs of a series: the machine, the tools, and the code that ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from profiler.bundles import Facts, Json, Result, Root, Run, bundle, location
from profiler.errors import ProfilerError
from profiler.evidence import Evidence, chip_of

if TYPE_CHECKING:
    from profiler.store import RunInfo

SAME, CHANGED, UNKNOWN = "same", "changed", "unknown"
SASS = "static__sass_sha256"  # the fact that holds the hash of a function's machine code
_CLOCK = 0.01  # of the SM clock: less is no other clock
_TOOLS = ("CUDA", "nvcc", "compile flags")  # what facts without a GPU can depend on
_TOLD = {  # what every run could say, and whether its absence is worth a word
    "driver": True,
    "ncu": False,
    "CUDA": True,
    "nvcc": False,
    "torch": False,
    "GPU UUID": True,
    "host": False,
    "clock control": True,
    "cache control": False,
    "compile flags": False,
    "SM clock, MHz": True,
}


class EnvironmentChange(NamedTuple):
    """One thing that a later run says otherwise than the run before it."""

    field: str
    before: str
    after: str
    run_id: str  # the first with the new one


class CodeChange(NamedTuple):
    """Whether the machine code is another, and how that is known."""

    word: str  # same, changed or unknown
    why: str


@dataclass(frozen=True)
class RunChanges:
    """What differed from the last run of the old level to the first that is surely of the new one."""

    environment: tuple[EnvironmentChange, ...]
    unknown: tuple[str, ...]  # what neither run says
    code: CodeChange

    @property
    def cause(self) -> str:
        """What the step can be due to: environment, code, code or environment; unknown."""
        if self.code.word == SAME:
            return "environment"
        if self.code.word == CHANGED:
            return "code or environment" if self.environment else "code"
        return UNKNOWN


def run_changes(
    runs: Sequence[RunInfo],
    before: tuple[Run | None, str],
    after: tuple[Run | None, str],
    part: str,
    evidence: Evidence,
) -> RunChanges:
    """`runs` in time order from the last of the old level to the first surely of the new one.

    `before` and `after` are the bundles of the first and the last of them, each with the version in question;
    `part` and `evidence` are those of the series.
    """
    on_gpu = evidence is Evidence.MEASURED
    told = [_said(run) for run in runs]
    found = []
    for field in _TOLD if on_gpu else _TOOLS:
        last: str | None = None
        for run, facts in zip(runs, told, strict=True):
            now = facts.get(field)
            if now is None:
                continue
            if last is not None and _differ(field, last, now):
                found.append(EnvironmentChange(field, last, now, run.run_id))
            last = now
    ends = (told[0], told[-1]) if told else ()
    unknown = tuple(
        field
        for field, matters in _TOLD.items()
        if matters and on_gpu and all(field not in facts for facts in ends)
    )
    capability = runs[-1].compute_capability if runs else None
    return RunChanges(tuple(found), unknown, code_change(before, after, part, capability))


def code_change(
    before: tuple[Run | None, str],
    after: tuple[Run | None, str],
    part: str,
    capability: str | None = None,
) -> CodeChange:
    """Whether two runs ran the same machine code of a version: by its hash, else by source and compiler.

    Of the part alone where its hash was kept, else of all parts, as for the latency of a whole call.
    """
    sides = [_results(run, version) for run, version in (before, after)]
    a, b = (_sass(results, chip_of(capability) if capability else None) for results in sides)
    if shared := a.keys() & b.keys():
        shared = {place for place in shared if place[2] == part.partition("#")[0]} or shared
        moved = sorted({part for _, _, part in shared if any(a[k] != b[k] for k in shared if k[2] == part)})
        if moved:
            return CodeChange(CHANGED, f"SASS of {', '.join(moved)} differs")
        return CodeChange(SAME, "SASS has the same hash")
    hashes = [{one.source_sha256 for one in results if one.source_sha256} for results in sides]
    if not all(len(one) == 1 for one in hashes):
        return CodeChange(UNKNOWN, "the runs keep no hash of SASS or source")
    if hashes[0] != hashes[1]:
        return CodeChange(CHANGED, "source or flags differ; SASS was not kept")
    tools = [run.provenance.get("nvcc") if run else None for run, _ in (before, after)]
    if None in tools:
        return CodeChange(UNKNOWN, "same source and flags; the compiler is not known")
    if tools[0] != tools[1]:
        return CodeChange(UNKNOWN, f"same source and flags, nvcc {tools[0]} and {tools[1]}")
    return CodeChange(SAME, f"same source, flags and nvcc {tools[0]}")


def run_code_loader(root: Root) -> Callable[[str], Run | None]:
    """What the runs of a data folder say of the code that ran, each read once in a process.

    None for a run that cannot be read: then nothing is known of its code.
    """

    def read(run_id: str) -> Run | None:
        try:
            return _of_code(root.url, run_id)
        except ProfilerError:
            return None

    return read


def same_code_lookup(root: Root | None = None) -> Callable[[tuple[str, str], tuple[str, str]], bool | None]:
    """What says whether two results, each run id and version, ran one machine code; None: nobody knows."""

    def asked(a: tuple[str, str], b: tuple[str, str]) -> bool | None:
        load = run_code_loader(root or location.open_root())
        found = code_change((load(a[0]), a[1]), (load(b[0]), b[1]), "total")
        return {SAME: True, CHANGED: False}.get(found.word)

    return asked


@lru_cache(maxsize=4096)
def _of_code(url: str, run_id: str) -> Run:
    """A run, which never changes, with no more of it than tells one machine code from another."""
    run = bundle.load_run(location.open_root(url), run_id)
    results = (
        replace(one, samples=(), captures=(), check=None, facts=tuple(filter(None, map(_hash, one.facts))))
        for one in run.results
    )
    told = {"nvcc": nvcc} if (nvcc := run.provenance.get("nvcc")) else {}
    return replace(run, provenance=told, results=tuple(results), reports=(), files=())


def _hash(facts: Facts) -> Facts | None:
    """Only the hash of the machine code; None for facts without one."""
    value = facts.values.get(SASS) if facts.evidence is Evidence.STATIC else None
    return None if value is None else replace(facts, values={SASS: value}, opcodes={})


def _results(run: Run | None, version: str) -> list[Result]:
    """The version's results; an imported report holds one, whatever it was called since."""
    if run is None:
        return []
    return [one for one in run.results if one.version == version] or (
        list(run.results) if len(run.results) == 1 else []
    )


def _sass(results: Sequence[Result], chip: str | None) -> dict[tuple[str, str, str], str]:
    """Hashes by architecture, workload and part; only of the chip's own architecture where it is there."""
    found = {}
    for one in results:
        for facts in one.facts:
            value = facts.values.get(SASS)
            if facts.evidence is Evidence.STATIC and value is not None and value.text:
                found[facts.target or "", one.workload or "", facts.part] = value.text
    own = {place: text for place, text in found.items() if chip and place[0].startswith(chip)}
    return own or found


def _said(run: RunInfo) -> dict[str, str]:
    known: Mapping[str, Json] = run.provenance
    flags = known.get("compile_flags")
    clock = _sm_clock(known.get("states"))
    told = {
        "driver": run.driver,
        "ncu": run.ncu_version,
        "CUDA": run.cuda,
        "nvcc": known.get("nvcc"),
        "torch": known.get("torch"),
        "GPU UUID": known.get("gpu_uuid"),
        "host": run.host,
        "clock control": run.clock_control,
        "cache control": run.cache_control,
        "compile flags": " ".join(map(str, flags)) if isinstance(flags, list) else None,
        "SM clock, MHz": None if clock is None else f"{clock:.0f}",
    }
    return {field: str(text) for field, text in told.items() if text}


def _sm_clock(states: Json) -> float | None:
    """The median clock during a run's timings."""
    found = [
        moment["sm_mhz"]
        for one in (states if isinstance(states, list) else [])
        for moment in (one.get("during") or [])
        if moment.get("sm_mhz") is not None
    ]
    return float(median(found)) if found else None


def _differ(field: str, a: str, b: str) -> bool:
    if field.startswith("SM clock"):
        return abs(float(b) - float(a)) > _CLOCK * float(a)
    return a != b
