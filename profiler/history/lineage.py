"""How the versions of a catalogue stand: its entries, as a run keeps them, joined with the index."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.bundles import bundle
from profiler.bundles.location import Root
from profiler.bundles.run import COLLECT, Run
from profiler.catalog import catalog as catalog_catalog
from profiler.catalog.catalog import Catalog, Version
from profiler.errors import BadBundle, BadCatalog
from profiler.evidence.launch import Launch
from profiler.evidence.naming import natural
from profiler.evidence.values import Evidence
from profiler.history.timed_calls import Attained, attained

if TYPE_CHECKING:
    from profiler.store import LaunchInfo, Store

LOOK_BACK = 50  # newest runs of a family in which a catalogue is looked for
MAIN = "main"  # the role of a version's kernel function where it has several
GOOD, WRONG, REJECTED, PLANNED, BASELINE = "good", "wrong", "rejected", "planned", "baseline"
_REFUSED = {"over-budget", "launch-refused"}  # rejected before a number could be wrong
_DONE = "done"


@dataclass(frozen=True)
class Attached:
    """The catalogue, sources and line tables that one run keeps: what was dissected then."""

    run_id: str
    created: datetime
    catalog: Catalog
    sha256: str  # of the catalogue's text
    files: Mapping[str, str]  # sha256 by path inside the bundle
    older: Mapping[str, str] = field(default_factory=dict)  # the run that keeps a file, where it is another

    def read(self, root: Root, path: str) -> bytes:
        """A file's content, out of the run that keeps it."""
        return root.read(f"{bundle.RUNS}/{self.older.get(path, self.run_id)}/{path}")

    def source_path(self, version: Version) -> str | None:
        """Where the bundle has the version's source; None where it keeps none, as of a callable."""
        path = _source(self, version)
        return path if path in self.files else None


@dataclass(frozen=True)
class Standing:
    """One version: what its catalogue says, what was found, and what it is compared with."""

    version: Version
    state: str  # good, wrong, rejected, planned or baseline
    reason: str  # why it is not good, or what a planned version waits for
    note: str  # what a good or rejected version still lacks: not checked, not caught, over its budget
    against: Version | None  # the nearest correct ancestor
    static: Mapping[tuple[str, str], Launch]  # the main function's facts by architecture and workload
    modelled: Mapping[str, Launch]  # the facts of the CPU's run by workload, without the dtype
    attained: Mapping[tuple[str, str], Attained]  # the newest latency by workload and GPU
    evidence: frozenset[Evidence]

    @property
    def latency_ns(self) -> dict[tuple[str, str], float]:
        """The medians by workload and GPU."""
        return {place: one.ns for place, one in self.attained.items()}

    @property
    def is_wrong(self) -> bool:
        """Whether it has no speed, whatever was measured of it."""
        return self.state in (WRONG, REJECTED)


@dataclass(frozen=True)
class Lineage:
    """Every version of a catalogue in its order, and what the index has beside them."""

    attached: Attached
    standings: tuple[Standing, ...]
    others: tuple[str, ...] = ()  # versions of the family that the catalogue does not name
    gpus: tuple[str, ...] = ()  # that a latency was measured on

    @cached_property
    def by_id(self) -> Mapping[str, Standing]:
        """The standing of each version."""
        return {one.version.id: one for one in self.standings}

    @property
    def order(self) -> tuple[str, ...]:
        """Version ids in the catalogue's order, then those that it does not name."""
        return (*(one.version.id for one in self.standings), *self.others)

    @property
    def wrong(self) -> dict[str, str]:
        """The versions that have no speed, each with the word for it."""
        return {one.version.id: one.state for one in self.standings if one.is_wrong}

    @property
    def architectures(self) -> list[str]:
        """What static facts were compiled for, in the catalogue's order of naming."""
        return sorted({arch for one in self.standings for arch, _ in one.static}, key=natural)

    @property
    def sizes(self) -> list[str]:
        """The workloads that static facts are told apart by, those of most versions first."""
        return _most_first(label for one in self.standings for label in {label for _, label in one.static})

    @property
    def workloads(self) -> list[str]:
        """The workloads that versions were run on, on the CPU or a GPU, those of most versions first."""
        return _most_first(
            label
            for one in self.standings
            for label in {*one.modelled, *(workload for workload, _ in one.latency_ns)}
        )

    def best(self, workload: str = "", gpu: str = "") -> Standing | None:
        """The fastest correct version there; the furthest along where nothing was measured."""
        good = self.furthest
        measured = [one for one in good if (workload, gpu) in one.latency_ns]
        if measured:
            return min(measured, key=lambda one: one.latency_ns[workload, gpu])
        return good[0] if good else None

    @property
    def furthest(self) -> list[Standing]:
        """The correct versions, those of most ancestors first; of as many, the catalogue's later one."""
        good = [one for one in self.standings if one.state == GOOD]
        good.reverse()
        return sorted(good, key=lambda one: -len(self.path_to(one)))

    @property
    def places(self) -> list[tuple[str, str]]:
        """The GPUs and workloads that a version with a speed was timed on."""
        there = {place for one in self.standings if not one.is_wrong for place in one.attained}
        return sorted(((gpu, workload) for workload, gpu in there), key=lambda one: (one[0], natural(one[1])))

    def best_baseline(self, workload: str, gpu: str) -> Standing | None:
        """The fastest of others' kernels there; None where none was timed."""
        timed = [one for one in self.standings if one.state == BASELINE and (workload, gpu) in one.attained]
        return min(timed, key=lambda one: one.attained[workload, gpu].ns, default=None)

    def path_to(self, standing: Standing | None) -> frozenset[str]:
        """A version and all that it descends from."""
        found = set()
        while standing is not None:
            found.add(standing.version.id)
            parent = standing.version.parent
            standing = self.by_id[parent] if parent is not None else None
        return frozenset(found)


def newest(root: Root, store: Store, family: str) -> Attached | None:
    """The catalogue that the family's newest run with one keeps; None where no run has any.

    A run may be of some versions alone, and one on a GPU need not have run the CPU's model. What it lacks is
    taken from older runs: sources, and the line tables of versions whose sources are still the same.
    """
    found: Attached | None = None
    for run in store.runs(family, limit=LOOK_BACK):
        if run.kind != COLLECT:
            continue
        try:
            older = of_run(root, bundle.load(root, run.run_id), family)
        except BadBundle:
            if found is None:
                raise
            continue  # what it would add is missing; the catalogue is there
        found = older if found is None else found if older is None else _completed(found, older)
        if found is not None and not _lacking(found):
            break
    return found


def _lacking(attached: Attached) -> set[str]:
    """The sources and line tables that a run of the whole catalogue would keep and this one does not."""
    there = [one for one in attached.catalog.versions if one.buildable]
    wanted = {_source(attached, one) for one in there} | {_lines(one.id) for one in there}
    return wanted - set(attached.files) - {""}


def _completed(attached: Attached, older: Attached) -> Attached:
    """With what an older run keeps and this one lacks, as far as it is of the same sources."""
    folder = f"{attached.catalog.folder.name}/"
    taken = {path for path in _lacking(attached) if path.startswith(folder)} & set(older.files)
    if taken:  # headers come with the first source
        taken |= {path for path in older.files if path.startswith(folder) and not path.endswith(".toml")}
    files = {path: older.files[path] for path in taken if path not in attached.files} | dict(attached.files)
    for version in attached.catalog.versions:
        lines = _lines(version.id)
        if lines in older.files and lines not in files and _same_code(version, files, older, attached):
            files[lines] = older.files[lines]
    places = {path: older.older.get(path, older.run_id) for path in files if path not in attached.files}
    return replace(attached, files=files, older={**attached.older, **places})


def _same_code(version: Version, files: Mapping[str, str], older: Attached, attached: Attached) -> bool:
    """Whether an older run has the version's source, every header and its flags as they are now."""
    before = older.catalog.by_id.get(version.id)
    path = _source(attached, version)
    if before is None or before.flags != version.flags or files.get(path) != older.files.get(path):
        return False
    headers = [one for one in {*files, *older.files} if one.endswith((".h", ".cuh"))]
    return all(files.get(one) == older.files.get(one) for one in headers)


def _source(attached: Attached, version: Version) -> str:
    """Where a bundle has a version's source, if it has it; "" for a callable."""
    if version.source is None:
        return ""
    folder = attached.catalog.folder
    inside = version.source.is_relative_to(folder)
    name = version.source.relative_to(folder).as_posix() if inside else version.source.name
    return f"{folder.name}/{name}"


def _lines(version: str) -> str:
    return f"lines/{version}.json"


def of_run(root: Root, run: Run, family: str | None = None) -> Attached | None:
    """The catalogue that a run keeps, of that family; its sources need not lie anywhere else."""
    for file in run.files:
        if file.kind == "catalog":
            content = root.read(f"{bundle.RUNS}/{run.run_id}/{file.path}")
            where = Path(f"/{run.run_id}") / file.path
            try:
                found = catalog_catalog.parse(content.decode(), where, check_files=False)
            except (BadCatalog, UnicodeDecodeError) as error:
                raise BadBundle(f"run {run.run_id} keeps a catalogue that cannot be read: {error}") from None
            if family in (None, found.family):
                files = {other.path: other.sha256 for other in run.files}
                return Attached(run.run_id, run.created, found, file.sha256, files)
    return None


def stands(store: Store, attached: Attached) -> Lineage:
    """How each version of the catalogue stands, by the newest results in the index."""
    family = attached.catalog.family
    rows = store.launches(family=family)
    launches = dict(
        zip(
            (row.result_id for row in rows if row.kind == "facts"),
            store.load([row.result_id for row in rows if row.kind == "facts"]),
            strict=True,
        )
    )
    by_version: dict[str, list[LaunchInfo]] = defaultdict(list)
    for row in rows:
        by_version[row.version].append(row)
    took: dict[str, dict[tuple[str, str], Attained]] = defaultdict(dict)
    provenance = {one.run_id: one.provenance for one in store.runs(family)}
    for (name, workload, gpu), one in attained(rows, provenance).items():
        if name in attached.catalog.by_id:
            took[name][shape(workload, attached.catalog.by_id[name]), gpu] = one
    found: dict[str, Standing] = {}
    for version in attached.catalog.versions:
        mine = by_version.get(version.id, [])
        found[version.id] = _standing(version, mine, launches, took[version.id], attached, found)
    others = [one.version for one in store.versions(family) if one.version not in found]
    gpus = {gpu for one in found.values() for _, gpu in one.attained}
    return Lineage(attached, tuple(found.values()), tuple(others), tuple(sorted(gpus)))


def every(root: Root, store: Store, family: str | None = None) -> dict[str, Lineage]:
    """The lineage of each family that has a catalogue, or of one family."""
    found = {}
    for name in store.families() if family is None else [family]:
        attached = newest(root, store, name)
        if attached is not None:
            found[name] = stands(store, attached)
    return found


def unmade(root: Root, store: Store, name: str) -> tuple[str, Version] | None:
    """The family and the entry of a version that a catalogue names and no run has anything of.

    `name` is `family/version`, or `version`; None where no catalogue names it, or several do.
    """
    known = {(one.family, one.version) for one in store.versions()}
    found = []
    for family in store.families():
        attached = newest(root, store, family)
        entries = attached.catalog.versions if attached else ()
        found += [
            (family, one)
            for one in entries
            if name in (one.id, f"{family}/{one.id}") and (family, one.id) not in known
        ]
    return found[0] if len(found) == 1 else None


def source(root: Root, attached: Attached, version: Version) -> str | None:
    """The version's source as the run keeps it."""
    path = attached.source_path(version)
    if path is None:
        return None
    return attached.read(root, path).decode(errors="replace")


def texts(root: Root, attached: Attached) -> dict[str, str]:
    """Every source that the run keeps, by file name."""
    folder = f"{attached.catalog.folder.name}/"
    return {
        path.rpartition("/")[2]: attached.read(root, path).decode(errors="replace")
        for path in attached.files
        if path.startswith(folder) and not path.endswith(".toml")
    }


def lines(
    root: Root, attached: Attached, version: str
) -> dict[str, list[tuple[str, int, str, int, int, int]]]:
    """Shared-memory traffic by workload: file, line, kind, requests, wavefronts, ideal wavefronts."""
    path = _lines(version)
    if path not in attached.files:
        return {}
    document = json.loads(attached.read(root, path))
    return {workload: [tuple(row) for row in rows] for workload, rows in document["workloads"].items()}


def apart(attached: Attached, where: Path | None = None) -> str:
    """How the catalogue in the working tree differs from the one shown; "" where it does not, or is none."""
    path = where or catalog_catalog.default_path()
    if not path.is_file():
        return ""
    try:
        here = catalog_catalog.load(path)
    except BadCatalog as error:
        return f"the catalogue in the working tree cannot be read: {error}"
    if here.family != attached.catalog.family:
        return ""
    then, now = attached.catalog.by_id, here.by_id
    words = [
        f"{label} {', '.join(names)}"
        for label, names in (
            ("it adds", [name for name in now if name not in then]),
            ("it lacks", [name for name in then if name not in now]),
        )
        if names
    ]
    if not words and sha256(path.read_bytes()).hexdigest() != attached.sha256:
        words = ["entries differ"]
    changed = _changed_sources(attached, here)
    if changed:
        words.append(f"sources differ: {', '.join(changed)}")
    return f"{path} is not what was dissected: {'; '.join(words)}" if words else ""


def _changed_sources(attached: Attached, here: Catalog) -> list[str]:
    folder = f"{attached.catalog.folder.name}/"
    found = []
    for path, digest in attached.files.items():
        local = here.folder / path.removeprefix(folder)
        is_source = path.startswith(folder) and not path.endswith(".toml") and local.is_file()
        if is_source and sha256(local.read_bytes()).hexdigest() != digest:
            found.append(local.name)
    return found


def _standing(
    version: Version,
    rows: Sequence[LaunchInfo],
    launches: Mapping[int, Launch],
    took: Mapping[tuple[str, str], Attained],
    attached: Attached,
    before: Mapping[str, Standing],
) -> Standing:
    static: dict[tuple[str, str], Launch] = {}
    modelled: dict[str, Launch] = {}
    for row in rows:
        where = (row.gpu or "", row.workload or "")
        if row.kind == "facts" and row.evidence is Evidence.STATIC:
            if row.part == MAIN or where not in static:
                static[where] = launches[row.result_id]
        elif row.kind == "facts" and row.evidence is Evidence.MODELLED:
            modelled[shape(row.workload or "", version)] = launches[row.result_id]
    state, reason, note = _state(version, rows)
    return Standing(
        version,
        state,
        reason,
        note,
        _against(version, attached.catalog, before),
        static,
        modelled,
        took,
        frozenset(row.evidence for row in rows if row.kind != "cell"),
    )


def shape(workload: str, version: Version) -> str:
    """A workload without the dtype that its label names, so that versions of several dtypes share a row."""
    return workload.removesuffix(f" {version.dtype}")


def _state(version: Version, rows: Sequence[LaunchInfo]) -> tuple[str, str, str]:
    """The state, the reason for it, and what is left to say."""
    checked = [row for row in rows if row.evidence is Evidence.MODELLED]
    failing = [row for row in rows if row.status == "wrong"]
    failing += [row for row in checked if row.status not in (_DONE, "wrong")]
    # Without a workload: it does not compile. What failed on a GPU, or was left out there, has no number, and
    # nothing follows for whether it is right.
    failing += [row for row in rows if row.status == "failed" and row.workload is None]
    broken = [row for row in rows if row.status == "failed" and row not in failing]
    if version.state == REJECTED:
        word = REJECTED if set(version.caught_by) <= _REFUSED else WRONG
        note = "" if failing else "not caught by the check" if checked else "not checked"
        return word, version.reason.removeprefix("wrong: "), note
    if version.state != GOOD:
        return version.state, version.reason, ""
    if failing:
        row = min(failing, key=lambda row: row.status != "wrong")
        return WRONG, row.reason or row.status, "the catalogue says good"
    timed = any(row.kind == "latency" for row in rows)  # only what a check on the GPU has passed is timed
    notes = [] if checked or timed else ["not checked"]
    notes += [f"failed on {row.gpu or 'a GPU'}, {row.workload}: {row.reason}" for row in broken[:1]]
    return GOOD, "", "; ".join(notes)


def _against(version: Version, entries: Catalog, before: Mapping[str, Standing]) -> Version | None:
    """The nearest ancestor whose results are right, by what was found as well as by the catalogue."""
    parent = version.parent
    while parent is not None:
        if before[parent].state == GOOD:
            return entries.by_id[parent]
        parent = entries.by_id[parent].parent
    return None


def _most_first(labels: Iterable[str]) -> list[str]:
    counts = Counter(labels)
    return sorted(counts, key=lambda label: (-counts[label], natural(label)))
