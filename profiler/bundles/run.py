"""What a run is: the provenance and the results of some versions x workloads, immutable once it is sealed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from profiler.errors import ProfilerError
from profiler.evidence.launch import Launch, Session
from profiler.evidence.values import Evidence, Value

Json = Any  # what json.loads gives

IMPORT = "import"  # reports that someone else made
COLLECT = "collect"  # what `profiler collect`, `static` and `check` make
NOISE = "noise"  # provenance["purpose"] of a run of A/A pairs: each block of samples is a session
FOLDER = "folder"  # provenance key: where an imported report lay, as store/folder_families.py writes it
EXAMPLE = "example"  # provenance key: the source and licence of an example run's numbers
FAMILY_GIVEN = "family_given"  # provenance key: true where the import named the family
MAX_LABEL_LENGTH = 200  # characters
STATUSES = ("done", "wrong", "failed", "skipped")


class ReportFile(NamedTuple):
    """A report that a run keeps. Its identity is the sha256."""

    name: str  # as the user gave it
    sha256: str
    size_bytes: int
    path: str  # inside the bundle: reports/NAME


class Attachment(NamedTuple):
    """Any other file that a run keeps: a source, a table per source line."""

    kind: str
    name: str
    sha256: str
    size_bytes: int
    path: str  # inside the bundle


@dataclass(frozen=True)
class Capture:
    """Which launches of which report are the counters of a result."""

    report: str  # sha256
    ordinals: tuple[int, ...] | None = None  # None: every launch of the report
    parts: tuple[str, ...] | None = None  # one a launch; None: base name + ordinal, as for imported reports
    mode: str | None = None  # None: what the report's session says


@dataclass(frozen=True)
class Samples:
    """Latencies of single calls in time order, one round number each."""

    mode: str  # timer and cache: "events; cache warm; clock none"
    ns: tuple[float, ...]
    rounds: tuple[int, ...]
    clocks_mhz: tuple[float, ...] = ()  # one a sample, or none at all
    throttled: tuple[int, ...] = ()  # positions of the samples taken while the GPU throttled
    processes: tuple[int, ...] = ()  # the process of each sample, counted from 0; or none: nobody noted it


@dataclass(frozen=True)
class Facts:
    """Values that no report holds: from the compiler (static) or from a run on the CPU (modelled)."""

    evidence: Evidence
    part: str  # the kernel's base name or role
    values: Mapping[str, Value]
    target: str | None = None  # the GPU or architecture they hold for
    mode: str = ""
    opcodes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What a run has of one version and workload."""

    family: str
    version: str
    workload: str | None = None  # its label; None: nobody said
    problem: Mapping[str, Json] = field(default_factory=dict)  # the workload's sizes and dtype
    status: str = "done"  # one of STATUSES
    reason: str | None = None
    source_sha256: str | None = None
    flags: tuple[str, ...] = ()
    check: Mapping[str, Json] | None = None  # outcome against the reference, with max_abs_error
    samples: tuple[Samples, ...] = ()
    facts: tuple[Facts, ...] = ()
    captures: tuple[Capture, ...] = ()

    @property
    def outcome(self) -> tuple[str, str | None]:
        """Status and reason; where the status contradicts the check, the worse of the two.

        A result whose own check failed is wrong, whatever its status, and has no speed. Only of a version
        that its catalogue rejects is `done` the worse: it should have been caught. The profiler writes no
        such contradiction, but a bundle made elsewhere may hold one.
        """
        check = self.check or {}
        has_results = self.status == "done" or self.samples or self.captures
        is_consistent = check.get("passed") is not False or check.get("state") == "rejected"
        if is_consistent or not has_results or self.status == "wrong":
            return self.status, self.reason
        contradiction = f"its own check did not pass, and it is called {self.status}"
        return "wrong", "; ".join(filter(None, (contradiction, self.reason)))


@dataclass(frozen=True)
class Run:
    """One collection or one imported report.

    `provenance` holds what is known of the making; a key that is left out is unknown. Known keys: host, gpu,
    compute_capability, gpu_uuid, driver, cuda, ncu_version, command_line, clock_control, cache_control,
    created_from ("session", or "file time" where the report does not say), purpose (NOISE, or not there);
    of an import also FOLDER and FAMILY_GIVEN; of an example run EXAMPLE.
    """

    run_id: str
    kind: str  # IMPORT or COLLECT
    created: datetime  # when it was made, always UTC
    provenance: Mapping[str, Json]
    results: tuple[Result, ...]
    reports: tuple[ReportFile, ...] = ()
    files: tuple[Attachment, ...] = ()
    continues: str | None = None

    @property
    def contents(self) -> tuple[ReportFile | Attachment, ...]:
        """Every file of the bundle but run.json."""
        return (*self.reports, *self.files)


@dataclass(frozen=True)
class Labels:
    """The labels that people decided for a run; None leaves the run's own."""

    family: str | None = None
    version: str | None = None
    workload: str | None = None
    hidden: bool = False


def check_label(kind: str, text: str | None) -> str | None:
    """The label without the spaces around it; None stays None. kind: family, version or workload.

    Raises ProfilerError for a label that nobody could type again, or that would be read in another way.
    """
    if text is None:
        return None
    text = text.strip()
    if not text.isprintable() or len(text) > MAX_LABEL_LENGTH:
        raise ProfilerError(
            f"a {kind} has at most {MAX_LABEL_LENGTH} characters, all printable, not {text[:40]!r}…"
        )
    if kind != "workload" and not text:
        raise ProfilerError(f"a {kind} needs a name: leave --{kind} out, or give it one")
    if kind == "family" and "/" in text:
        raise ProfilerError(f"{text}: a family's name cannot contain '/', which separates family and version")
    return text


def launch_parts(launches: Sequence[Launch]) -> list[str]:
    """The part of each launch: its NVTX range, base name and ordinal there: `Fused-GEMM/Kernel#0`.

    The launches of each GPU are counted by themselves: a series is of one GPU.
    """
    seen: dict[tuple[str | None, str], int] = defaultdict(int)
    parts = []
    for launch in launches:
        name = "/".join((*launch.nvtx, launch.base_name))
        parts.append(f"{name}#{seen[launch.gpu, name]}")
        seen[launch.gpu, name] += 1
    return parts


def ncu_mode(session: Session) -> str:
    """The mode of counters from ncu: what decides whether two of them may be compared."""
    clock, cache = session.clock_control or "unknown", session.cache_control or "unknown"
    mode = f"ncu; clock {clock}; cache {cache}"
    return mode if session.replay_mode in (None, "kernel") else f"{mode}; {session.replay_mode} replay"
