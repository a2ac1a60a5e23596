"""The address of every view: the page and its whole state as query parameters, and how versions are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from profiler.evidence.values import Evidence
from profiler.store.rows import VersionInfo
from profiler.ui import markup
from profiler.ui.markup import Html

SHA256_DIGITS = 16  # of a report's hash in an address
_RUN_MARK = "~"  # between a version and the run that is meant


class VersionName(NamedTuple):
    """What an address calls one side: a version, a version as one run has it, or a run."""

    family: str  # "" of a run
    version: str  # the run id of a run
    run_id: str | None = None  # of several runs that have the version, the one that is meant

    @property
    def without_run(self) -> str:
        """`family/version`, or the run id."""
        return f"{self.family}/{self.version}" if self.family else self.version

    @property
    def run_date(self) -> str:
        """When the run was made, as run ids begin: `20260301T120000`."""
        return (self.run_id or "").partition("-")[0]


def version_name(version: VersionInfo) -> str:
    """What a version is called in an address."""
    return f"{version.family}/{version.version}"


def version_of_run(version: str, run_id: str) -> str:
    """The name of a version (family/version) as one run has it."""
    return f"{version}{_RUN_MARK}{run_id}"


def parse_version(name: str) -> VersionName:
    """The parts of a name in an address."""
    version, mark, run_id = name.rpartition(_RUN_MARK)
    family, _, short = (version if mark else name).rpartition("/")
    return VersionName(family, short, run_id if mark else None)


def version_label(name: str) -> str:
    """What a version is called where there is little room: first what tells it from its neighbours."""
    version = parse_version(name)
    parts = (version.version, version.run_date, version.family)
    return " · ".join(filter(None, parts))


@dataclass(frozen=True)
class Diff:
    """The address of one diff."""

    a: str
    b: str
    workload: str | None = None
    gpu: str | None = None
    kernels: str = ""
    launch: str | None = None
    evidence: str | None = None
    drill: str | None = None
    mode: str | None = None  # of the timed calls

    @property
    def href(self) -> str:
        """The address with every choice in it."""
        return markup.href("diff", asdict(self))

    def links(self, versions: Sequence[VersionInfo]) -> Html:
        """Swap, and the pairs of versions before and after this one in its family."""
        links = [markup.link(replace(self, a=self.b, b=self.a).href, "⇄ swap", key="s")]
        family = parse_version(self.a).family
        order = [version_name(version) for version in versions if version.family == family]
        if self.a in order and self.b in order:
            first, last = sorted((order.index(self.a), order.index(self.b)))
            steps = (("‹ previous", first - 1, first, "["), ("next ›", last, last + 1, "]"))
            links += [
                markup.link(replace(self, a=order[a], b=order[b], launch=None).href, words, key=key)
                for words, a, b, key in steps
                if a >= 0 and b < len(order)
            ]
        return markup.join(links)


class LaunchKey(NamedTuple):
    """A launch in a report."""

    report: str  # the first digits of the file's sha256
    launch: str  # its ordinal in the report


class CompiledKey(NamedTuple):
    """Code that a compiler made, not run."""

    version: str  # family/version, or that as one run has it
    arch: str
    function: str = ""  # mangled; "": all of them


CodeKey = LaunchKey | CompiledKey


@dataclass(frozen=True)
class LaunchCode:
    """The address of a launch's code, or of two launches' side by side."""

    report: str
    launch: str
    b: str = ""  # the report of B
    b_launch: str = ""
    view: str = ""

    @property
    def href(self) -> str:
        """The address with every choice in it."""
        return self.at()

    def at(self, start: int = 0, **choices: str) -> str:
        """The address from one row on, with the choices of the view."""
        return markup.href(
            "code",
            {
                "a": self.report,
                "launch": self.launch,
                "b": self.b,
                "b_launch": self.b_launch,
                "view": self.view,
                **choices,
                "from": str(start) if start else None,
            },
        )

    @property
    def swapped(self) -> LaunchCode:
        """B against A."""
        return replace(self, report=self.b, launch=self.b_launch, b=self.report, b_launch=self.launch)


@dataclass(frozen=True)
class CompiledCode:
    """The address of a version's code as a compiler made it, or of two versions' side by side."""

    version: str
    arch: str
    b: str = ""  # the version of B
    kernel: str = ""  # as the page calls it; "": all functions
    view: str = ""

    @property
    def href(self) -> str:
        """The address with every choice in it."""
        return self.at()

    def at(self, start: int = 0, **choices: str) -> str:
        """The address from one row on, with the choices of the view."""
        return markup.href(
            "code",
            {
                "evidence": Evidence.STATIC.value,
                "a": self.version,
                "b": self.b,
                "arch": self.arch,
                "kernel": self.kernel,
                "view": self.view,
                **choices,
                "from": str(start) if start else None,
            },
        )

    @property
    def swapped(self) -> CompiledCode:
        """B against A."""
        return replace(self, version=self.b, b=self.version)


@dataclass(frozen=True)
class LaunchView:
    """The address of a launch by its sections, beside a baseline launch where one is named.

    `run` and `against` are run ids or family/version, whose newest run is meant.
    """

    run: str
    launch: str = ""  # as the page calls it, its part, or its kernel; "": the longest
    against: str = ""
    against_launch: str = ""

    @property
    def href(self) -> str:
        """The address with every choice in it."""
        return markup.href("launch", asdict(self))

    def at(self, launch: str) -> LaunchView:
        """Another launch of the run, beside the launch of its own kernel in the same baseline."""
        return replace(self, launch=launch, against_launch="")


def run(run_id: str, launch: str | None = None) -> str:
    """The address of a run, or of one of its launches."""
    return markup.href("runs", {"run": run_id, "launch": launch})


def trends(
    family: str,
    *,
    workload: str | None = None,
    gpu: str | None = None,
    kernels: str = "",
    metrics: Sequence[str] = (),
    evidence: str | None = None,
    over: str | None = None,
    isolate: str | None = None,
) -> str:
    """The address of a family's history; `isolate` is the version whose line stands out, along time."""
    return markup.href(
        "trends",
        {
            "family": family,
            "workload": workload,
            "gpu": gpu,
            "kernels": kernels,
            "metrics": ",".join(metrics),
            "evidence": evidence,
            "over": over,
            "isolate": isolate,
        },
    )


def compare(versions: Sequence[str], against: str | None = None, **choices: str | None) -> str:
    """The address of many versions or runs beside each other."""
    return markup.href("compare", {"versions": ",".join(versions), "against": against, **choices})


def regressions(family: str | None = None, at: str | None = None) -> str:
    """The address of what is worse now, or of one regression."""
    return markup.href("regressions", {"family": family, "at": at})
