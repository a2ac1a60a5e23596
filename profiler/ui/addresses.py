"""Where every view lives: the address of each page, and which view comes before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from profiler.evidence import Evidence, natural_key
from profiler.history import Lineage
from profiler.store import CellInfo, RunInfo, VersionInfo
from profiler.ui import markup
from profiler.ui.markup import Html

_OF_RUN = "~"  # between a version and the run that is meant


def name(version: VersionInfo) -> str:
    """What a version is called in an address."""
    return f"{version.family}/{version.version}"


def families(versions: Sequence[VersionInfo]) -> list[str]:
    """Every family, the one measured last first."""
    newest: dict[str, datetime] = {}
    for version in versions:
        newest[version.family] = max(newest.get(version.family, version.last_created), version.last_created)
    return sorted(newest, key=lambda family: newest[family], reverse=True)


def names(versions: Sequence[VersionInfo], asked: str | None) -> list[str]:
    """What the diff offers: every version, newest family first, and whatever the address asks for."""
    order = families(versions)
    known = [name(version) for version in sorted(versions, key=lambda version: order.index(version.family))]
    return known if asked is None or asked in known else [asked, *known]


def newest_pair(versions: Sequence[VersionInfo]) -> tuple[str, str]:
    """The last two versions of the family that was measured last and has two; else the same one twice."""
    families: dict[str, list[VersionInfo]] = {}
    for version in versions:
        families.setdefault(version.family, []).append(version)
    several = [group for group in families.values() if len(group) > 1] or list(families.values())
    group = max(several, key=lambda group: max(version.last_created for version in group))
    return name(group[-2] if len(group) > 1 else group[-1]), name(group[-1])


def good_pair(versions: Sequence[VersionInfo], lineage: Lineage) -> tuple[str, str] | None:
    """The furthest good version and its nearest correct ancestor, of one dtype and both with results."""
    family, there = lineage.snapshot.catalog.family, {name(version) for version in versions}
    for one in lineage.correct_deepest_first:
        if one.correct_ancestor is not None and one.correct_ancestor.dtype == one.version.dtype:
            pair = f"{family}/{one.correct_ancestor.id}", f"{family}/{one.version.id}"
            if there.issuperset(pair):
                return pair
    return None


DIGITS = 16  # of a report's sha256 in an address


def of_run(version: str, run_id: str) -> str:
    """The address of a version (family/version) as one run has it."""
    return f"{version}{_OF_RUN}{run_id}"


def parts(name: str) -> tuple[str, str | None]:
    """A name of an address: the version or run, and the run of a version where one is meant."""
    version, mark, run_id = name.rpartition(_OF_RUN)
    return (version, run_id) if mark else (name, None)


class Cell(NamedTuple):
    """What a name was measured or examined on; an empty text stands for what nobody said."""

    name: str  # family/version, or a run id
    workload: str
    gpu: str  # of static facts the architecture
    evidence: Evidence


def every_cell(found: Sequence[CellInfo], runs: Sequence[RunInfo]) -> list[Cell]:
    """The cells of every version, and of every run."""
    cells = [Cell(f"{one.family}/{one.version}", one.workload, one.gpu, one.evidence) for one in found]
    for run in runs:
        for workload in run.workloads or ("",):
            cells += [Cell(run.run_id, workload, run.gpu or "", kind) for kind in run.evidence]
    return cells


def kinds(found: Sequence[Cell], asked: Sequence[str]) -> list[Evidence]:
    """The evidence that all of the named have, measured first; what any has where they share none."""
    sets = [{cell.evidence for cell in found if cell.name == name} for name in asked]
    there = (set.intersection(*sets) or set.union(*sets)) if sets else set()
    return [kind for kind in (Evidence.MEASURED, Evidence.STATIC, Evidence.MODELLED) if kind in there]


def nothing_shared(found: Sequence[Cell], asked: Sequence[str]) -> str:
    """Why the named cannot be held together, where each has evidence and none is of one kind."""
    own = {name: kinds(found, (name,)) for name in asked}
    if not all(own.values()) or set.intersection(*map(set, own.values())):
        return ""
    has = ", ".join(f"{name} is {' and '.join(there)}" for name, there in own.items())
    return f"{has}: no evidence of one kind, nothing to compare"


def kinds_of(found: Sequence[Cell], family: str) -> list[Evidence]:
    """The evidence that any version of a family has, measured first."""
    there = {cell.evidence for cell in found if cell.name.startswith(f"{family}/")}
    return [kind for kind in (Evidence.MEASURED, Evidence.STATIC, Evidence.MODELLED) if kind in there]


def cells(found: Sequence[Cell], asked: Sequence[str], evidence: Evidence) -> list[tuple[str, str]]:
    """Workload and GPU of what the named have of that evidence, cells that most of them have first."""
    counts = Counter(place for places in _places(found, asked, evidence).values() for place in places)
    newest = evidence is Evidence.STATIC  # the newest architecture first
    by_gpu = sorted(counts, key=lambda place: natural_key(place[1]), reverse=newest)
    return sorted(by_gpu, key=lambda place: (-counts[place], natural_key(place[0])))


def common(found: Sequence[Cell], asked: Sequence[str], evidence: Evidence) -> list[tuple[str, str]]:
    """The cells that all of the named have."""
    counts = Counter(place for places in _places(found, asked, evidence).values() for place in places)
    everyone = len(set(asked))
    return [place for place in cells(found, asked, evidence) if counts[place] == everyone]


def _places(
    found: Sequence[Cell], asked: Sequence[str], evidence: Evidence
) -> dict[str, set[tuple[str, str]]]:
    places: dict[str, set[tuple[str, str]]] = {name: set() for name in asked}
    for cell in found:
        if cell.name in places and cell.evidence is evidence:
            places[cell.name].add((cell.workload, cell.gpu))
    return places


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
        return markup.href(
            "diff",
            {
                "a": self.a,
                "b": self.b,
                "workload": self.workload,
                "gpu": self.gpu,
                "kernels": self.kernels,
                "launch": self.launch,
                "evidence": self.evidence,
                "drill": self.drill,
                "mode": self.mode,
            },
        )

    def links(self, versions: Sequence[VersionInfo]) -> Html:
        """Swap, and the pairs of versions before and after this one in its family."""
        found = [markup.link(replace(self, a=self.b, b=self.a).href, "⇄ swap")]
        order = [name(version) for version in versions if name(version).startswith(self._family)]
        if self._family and self.a in order and self.b in order:
            first, last = sorted((order.index(self.a), order.index(self.b)))
            steps = (("‹ previous", first - 1, first), ("next ›", last, last + 1))
            found += [
                markup.link(replace(self, a=order[a], b=order[b], launch=None).href, words)
                for words, a, b in steps
                if a >= 0 and b < len(order)
            ]
        return markup.join(found)

    @property
    def _family(self) -> str:
        """The part of the names up to the version, where both have the same."""
        left, right = (text.rpartition("/")[0] for text in (self.a, self.b))
        return f"{left}/" if left == right and left else ""


class CodeReport(NamedTuple):
    """A report that code is read from."""

    run_id: str
    sha256: str
    title: str  # family/version, and the file where a run keeps several
    gpu: str
    family: str | None  # None: several


@dataclass(frozen=True)
class Code:
    """The address of a launch's code, or of two launches' side by side."""

    report: str  # the first digits of the file's sha256
    launch: str  # its place in the report
    b: str = ""
    b_launch: str = ""
    view: str = ""

    @property
    def href(self) -> str:
        """The address with every choice in it."""
        return self.at()

    def at(self, start: int = 0, **choices: str) -> str:
        """The address from one row on, with the choices of the view."""
        named = {"report": self.report, "launch": self.launch, "b": self.b, "b_launch": self.b_launch}
        return markup.href(
            "code", {**named, "view": self.view, **choices, "from": str(start) if start else None}
        )

    @property
    def swapped(self) -> Code:
        """B against A."""
        return replace(self, report=self.b, launch=self.b_launch, b=self.report, b_launch=self.launch)


class CompiledPlace(NamedTuple):
    """Code that a compiler made and nobody ran."""

    version: str  # family/version, or that as one run has it
    arch: str
    function: str = ""  # mangled; "": all of them


@dataclass(frozen=True)
class Compiled:
    """The address of a version's code as a compiler made it, or of two versions' side by side."""

    version: str
    arch: str
    against: str = ""
    kernel: str = ""  # as the page calls it; "": all functions
    view: str = ""

    @property
    def href(self) -> str:
        """The address with every choice in it."""
        return self.at()

    def at(self, start: int = 0, **choices: str) -> str:
        """The address from one row on, with the choices of the view."""
        named = {"evidence": Evidence.STATIC.value, "version": self.version, "against": self.against}
        place = {"arch": self.arch, "kernel": self.kernel, "view": self.view}
        rows = {"from": str(start) if start else None}
        return markup.href("code", {**named, **place, **choices, **rows})

    @property
    def swapped(self) -> Compiled:
        """B against A."""
        return replace(self, version=self.against, against=self.version)


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
) -> str:
    """The address of a family's history."""
    return markup.href(
        "trends",
        {
            "family": family,
            "workload": workload,
            "gpu": gpu,
            "kernels": kernels,
            "metrics": ",".join(metrics),
            "evidence": evidence,
        },
    )


def regressions(family: str | None = None, at: str | None = None) -> str:
    """The address of what is worse now, or of one regression."""
    return markup.href("regressions", {"family": family, "at": at})
