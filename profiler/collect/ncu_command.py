"""Calling ncu: its command line, what differs between its versions, and what its error messages mean."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from profiler.errors import CannotJudge, ProfilerError
from profiler.evidence import ncu_names, ncu_release
from profiler.evidence.gpu_arch import find_architecture
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.ncu_release import NcuRelease

CLOCKS = ("none", "base", "boost")
CACHES = ("none", "all")
TIERS = ("lean", "full")

# The stock sections that the pages show; one that an ncu does not list is left out. The stalls, the scheduler
# and the memory tables are in no smaller set. Source: --list-sections of ncu 2024.1.
FULL_SECTIONS = (
    "SpeedOfLight",
    "SpeedOfLight_RooflineChart",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Chart",
    "MemoryWorkloadAnalysis_Tables",
    "SchedulerStats",
    "WarpStateStats",
    "InstructionStats",
    "LaunchStats",
    "Occupancy",
    "SourceCounters",
    "WorkloadDistribution",
)

# ncu takes a name that starts with derived__ only from a section file (ncu 2024.1: "derived
# metrics must be collected through their section file"), and SourceCounters would bring the sampler along.
DERIVED = {
    "derived__memory_l1_wavefronts_shared_excessive": (
        "memory_l1_wavefronts_shared - memory_l1_wavefronts_shared_ideal"
    ),
    "derived__memory_l1_conflicts_shared_nway": "memory_l1_wavefronts_shared / inst_executed",
    "derived__memory_l2_theoretical_sectors_global_excessive": (
        "memory_l2_theoretical_sectors_global - memory_l2_theoretical_sectors_global_ideal"
    ),
}
SECTION = "ProfilerDerived"

_NVTX_SPECIAL = re.compile(r"[\\@,\[\]/*+]")
_TIMEOUT_S = 120


@dataclass(frozen=True)
class Ncu:
    """An installed ncu."""

    path: Path
    version: str  # 2025.3.1.0

    @property
    def release(self) -> NcuRelease:
        """The release that the version names."""
        release = NcuRelease.parse(self.version)
        assert release is not None  # find_tools finds only an ncu that prints a version
        return release


@dataclass(frozen=True)
class NcuRequest:
    """What one ncu process is to collect, and of which launches."""

    report: Path  # ends in .ncu-rep
    metrics: tuple[str, ...]
    ranges: tuple[str, ...]  # NVTX push/pop ranges, whole names; a launch in any of them counts
    kernels: tuple[str, ...] = ()  # function names without templates; none: any kernel in the ranges
    tier: str = "lean"
    clock_control: str = "none"
    cache_control: str = "none"
    section_folder: Path | None = None  # of the file that write_section wrote
    sections: tuple[str, ...] = FULL_SECTIONS  # of the full tier
    by_profiler: bool = False  # launches between cudaProfilerStart and Stop instead of in ranges


@dataclass(frozen=True)
class NcuProblem:
    """Why ncu collected nothing."""

    reason: str
    usable: bool = True  # False: no other call would work on this machine


def command_line(ncu: Ncu, request: NcuRequest, program: Sequence[str]) -> list[str]:
    """The whole command. Clock and cache control are always given: their defaults differ between versions.

    Raises ProfilerError for what this ncu does not take. `--target-processes application-only`: a compiler
    that torch starts is not what was asked for.
    """
    _refuse_unknown(ncu, request)
    derived = [name for name in request.metrics if name in DERIVED]
    plain = [name for name in request.metrics if name not in DERIVED]
    options = [
        "--clock-control",
        request.clock_control,
        "--cache-control",
        request.cache_control,
        "--replay-mode",
        "kernel",
        "--target-processes",
        "application-only",
        "--nvtx",
    ]
    if request.by_profiler:
        options += ["--profile-from-start", "no"]
    for name in () if request.by_profiler else request.ranges:
        options += ["--nvtx-include", nvtx_filter(name)]
    if request.kernels:
        names = "|".join(re.escape(name) for name in sorted(set(request.kernels)))
        options += ["--kernel-name-base", "function", "--kernel-name", f"regex:^({names})$"]
    if request.tier == "full":
        for section in request.sections:
            options += ["--section", section]
        options += ["--import-source", "yes", "--apply-rules", "yes"]
    else:
        if derived and request.section_folder:
            options += ["--section-folder", str(request.section_folder), "--section", SECTION]
        options += ["--apply-rules", "no"]
    if plain:
        options += ["--metrics", ",".join(plain)]
    options += ["--force-overwrite", "--export", str(request.report)]
    return [str(ncu.path), *options, *program]


def _refuse_unknown(ncu: Ncu, request: NcuRequest) -> None:
    for what, word, known in (
        ("clock control", request.clock_control, CLOCKS),
        ("cache control", request.cache_control, CACHES),
        ("tier", request.tier, TIERS),
    ):
        if word not in known:
            raise ProfilerError(f"{what} {word!r} is none of {', '.join(known)}")
    if request.clock_control == "boost" and ncu.release < ncu_release.BOOST_CLOCK:
        raise ProfilerError(
            f"ncu {ncu.version} has no --clock-control boost, which came with "
            f"{ncu_release.BOOST_CLOCK.short}: write none or base"
        )
    if ncu.release < ncu_release.OLDEST_CALLED:
        raise CannotJudge(
            f"ncu {ncu.version} is older than {ncu_release.OLDEST_CALLED.short}: "
            "install the one of a newer CUDA toolkit"
        )
    if request.report.suffix != ".ncu-rep":
        raise ProfilerError(f"{request.report}: ncu appends .ncu-rep to any other name")


def nvtx_filter(name: str) -> str:
    """The filter for launches inside this push/pop range, which must be the outermost one.

    The slash makes it a push/pop range (reports of ncu 2024.1). ncu_target.range_name gives names with
    nothing to escape: no ncu has been seen yet to take what is escaped here.
    """
    return _NVTX_SPECIAL.sub(lambda match: f"\\{match[0]}", name) + "/"


def import_command(ncu: Ncu, report: Path) -> list[str]:
    """The command that prints a report as CSV. --print-metric-name is refused on this page (ncu 2024.1)."""
    return [str(ncu.path), "--import", str(report), "--page", "raw", "--csv", "--print-units", "base"]


def write_section(folder: Path, metrics: Iterable[str]) -> Path | None:
    """Write a section file for the derived metrics, to spare their whole section; None: there are none."""
    derived = [name for name in metrics if name in DERIVED]
    if not derived:
        return None
    definitions = "".join(
        f'  MetricDefinitions {{\n    Name: "{name}"\n    Expression: "{DERIVED[name]}"\n  }}\n'
        for name in derived
    )
    listed = "".join(f'  Metrics {{\n    Name: "{name}"\n  }}\n' for name in derived)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{SECTION}.section").write_text(
        f'Identifier: "{SECTION}"\nDisplayName: "Derived metrics of metrics.txt"\nOrder: 900\n'
        f"MetricDefinitions {{\n{definitions}}}\nMetrics {{\n{listed}}}\n",
        encoding="utf-8",
    )
    return folder


@cache
def known_metrics(ncu: Ncu, chip: str) -> frozenset[str] | None:
    """The base names of the metrics that this ncu has for a chip (sm_90); None where it lists none. No GPU.

    A list without the duration, which every chip has, is none that can be read: nothing is left out by it.
    """
    architecture = find_architecture(chip)
    if architecture is None or not architecture.ncu_chip:
        return None
    query = [str(ncu.path), "--query-metrics", "--chips", architecture.ncu_chip]
    names = parse_query(_output_of(query) or "")
    return names if "gpu__time_duration" in names else None


def parse_query(text: str) -> frozenset[str]:
    """The names in what `ncu --query-metrics` prints: the first word of each row, without headings."""
    words = (line.split(None, 1)[0] for line in text.splitlines() if line.strip())
    return frozenset(word for word in words if "__" in word and not word.startswith(("-", "=")))


@cache
def known_sections(ncu: Ncu) -> frozenset[str] | None:
    """The identifiers of the sections that this ncu has; None where it prints none."""
    text = _output_of([str(ncu.path), "--list-sections"]) or ""
    words = [line.split(None, 1)[0] for line in text.splitlines() if line.strip()]
    return frozenset(word for word in words if re.fullmatch(r"[A-Z]\w+", word)) - {"Identifier"} or None


def available(metrics: Iterable[str], known: frozenset[str] | None) -> tuple[list[str], list[str]]:
    """The metrics that an ncu has, and those it lacks, by `known_metrics`.

    What ncu computes itself is in no list of names, and counts as present.
    """
    present: list[str] = []
    lacking: list[str] = []
    for name in metrics:
        computed_by_ncu = ncu_names.collection_cost(name) is not None
        base = name.partition(".")[0]
        (present if computed_by_ncu or known is None or base in known else lacking).append(name)
    return present, lacking


def resolve_metrics(
    requested: Mapping[str, str], table: MetricTable, chip: str, known: frozenset[str] | None
) -> tuple[dict[str, str], list[str]]:
    """The requested names, with their concepts, as this ncu has them, and those for which it has no metric.

    Where it lacks a name, the concept's next alternative is taken: an older ncu has it under the older name.
    """
    _, lacking = available(requested, known)
    resolved: dict[str, str] = {}
    without: list[str] = []
    for name, concept in requested.items():
        if name not in lacking:
            resolved.setdefault(name, concept)
            continue
        metric = table.by_concept.get(concept)
        names = metric.names_for(chip) if metric else ()
        alternatives, _ = available([other for other in names if other != name], known)
        if alternatives:
            resolved.setdefault(alternatives[0], concept)
        else:
            without.append(name)
    return resolved, without


def refused_metrics(output: str, metrics: Iterable[str]) -> list[str]:
    """The metrics that ncu names in an error or warning: without them the rest may be collected."""
    errors = " ".join(line for line in output.splitlines() if line.startswith(("==ERROR==", "==WARNING==")))
    # Any word counts, for not every metric has a double underscore: memory_l1_… has none.
    words = {word.rstrip(".") for word in re.findall(r"[\w.]+", errors)}
    return [name for name in metrics if name in words or name.partition(".")[0] in words]


NO_KERNELS = "No kernels were profiled"  # ncu's own words
# Substring of ncu's output -> the reason, and whether another call could work here.
_KNOWN_PROBLEMS: Mapping[str, NcuProblem] = {
    "ERR_NVGPUCTRPERM": NcuProblem(
        "ncu may not read GPU counters (ERR_NVGPUCTRPERM): run as root, or let the administrator load "
        "the nvidia module with NVreg_RestrictProfilingToAdminUsers=0, or give the container CAP_SYS_ADMIN",
        usable=False,
    ),
    "LibraryNotLoaded": NcuProblem(
        "ncu cannot start on this machine (LibraryNotLoaded): its driver part is not reachable, as in some "
        "sandboxes",
        usable=False,
    ),
    "failed to connect to the CUDA driver": NcuProblem(
        "ncu finds no CUDA driver here: there is no GPU, or a stub libcuda.so comes first", usable=False
    ),
    "driver is not compatible": NcuProblem(
        "the driver does not fit this ncu: take the ncu of the driver's CUDA version", usable=False
    ),
    "driver resource was unavailable": NcuProblem(
        "another profiler holds the GPU's counters: stop it (often dcgm-exporter: dcgmi profile --pause)",
        usable=False,
    ),
}


def find_problem(output: str, exit_code: int | None) -> NcuProblem | None:
    """What went wrong by ncu's output; None where it reports nothing and ended well."""
    for words, problem in _KNOWN_PROBLEMS.items():
        if words in output:
            return problem
    errors = [
        line.removeprefix("==ERROR==").strip() for line in output.splitlines() if line.startswith("==ERROR==")
    ]
    if any("unrecognised option" in line or "is invalid" in line for line in errors):
        return NcuProblem(f"ncu does not take this command line: {errors[0]}")
    if errors:
        return NcuProblem(f"ncu: {errors[0]}")
    if NO_KERNELS in output:
        return NcuProblem("ncu profiled no kernel: none of those requested was launched in its NVTX range")
    return NcuProblem(f"ncu ended with exit code {exit_code}") if exit_code else None


def _output_of(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
