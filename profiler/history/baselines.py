"""Decides which baseline counts for a version on a workload and GPU. No other module does.

The order, from what the user asked for to what always exists:

1. the baseline that was named: a run or a version, or `pinned`, `parent`, `best` and `torch:ID` (`named`)
2. the pinned one: for this workload and GPU, else for the workload, for the GPU, for the whole family
3. the parent: the nearest correct ancestor in the family's catalogue
4. what came before: the last earlier run of the same version, or the version before it

Callers begin and stop at different steps on purpose, and each has a function of its own:

- `for_gate`: 2, and where nothing is pinned the gate goes on to the run before (4, `run_before`). A change
  must not make a version worse than it was; that it is slower than its parent is no regression.
- `for_regressions`: 2, then 3; the version before (4) only where no catalogue says which the parent is. A pin
  whose run is gone ends the search: nobody asked to be compared with anything else. A version that the pinned
  one was made from is compared with its own parent: that the pinned one is faster says nothing of it.
- `for_advice`: 3 alone. Advice is about the idea that separates a version from the one it was made from,
  whatever is pinned.
- `newest_and_before`: 4 alone, for the overview, which shows what changed last.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from profiler.bundles import decisions
from profiler.bundles.decisions import BASELINE, UNSET_BASELINE, DecisionRecord
from profiler.bundles.location import Root
from profiler.errors import CannotJudge, UnknownName
from profiler.evidence.naming import brief_list, natural_key
from profiler.evidence.values import Evidence
from profiler.history import lineage as history_lineage

if TYPE_CHECKING:
    from profiler.history.lineage import Lineage, VersionStatus
    from profiler.store.index import Store

PINNED, PARENT, BEST, BEFORE = "pinned", "parent", "best", "before"
TORCH = "torch:"  # prefix of the id of a catalogue's version of state baseline: torch:sdpa_flash
IMPLICIT = (PARENT, BEST)  # baselines that a catalogue implies

_Scope = tuple[str, str | None, str | None]  # family, workload, GPU; None: every one


@dataclass(frozen=True)
class Pin:
    """A baseline that somebody set for a family, on one workload and GPU or on all of them."""

    family: str
    workload: str | None
    gpu: str | None
    run_id: str | None  # either this run
    version: str | None  # or this version, by its newest results
    who: str
    created: datetime
    why: str
    id: str  # of the decision record

    @property
    def name(self) -> str:
        """The name that the command line accepts."""
        return self.run_id or f"{self.family}/{self.version}"

    @property
    def scope(self) -> str:
        """The workload and GPU that it is for, in words."""
        return " · ".join((self.workload or "every workload", self.gpu or "every GPU"))

    @property
    def words(self) -> str:
        """Who set it, when and why."""
        why = f": {self.why}" if self.why else ""
        return f"pinned by {self.who or 'somebody'} on {self.created:%Y-%m-%d}{why}"


@dataclass(frozen=True)
class Baseline:
    """What a version is compared with on one workload and GPU."""

    how: str  # pinned, parent, best, torch:… or before
    family: str
    run_id: str | None
    version: str | None
    words: str  # where it comes from
    pin: Pin | None = None

    @property
    def name(self) -> str:
        """The name that the command line accepts."""
        return self.run_id or f"{self.family}/{self.version}"

    @property
    def label(self) -> str:
        """How it was chosen, and its name, in a few words."""
        if self.how == BEFORE:
            return f"the version before, {self.version}"
        return f"{self.how} {self.name if self.pin else self.version}"


class NoBaseline(NamedTuple):
    """Why a version has no baseline."""

    why: str


class LostPin(NamedTuple):
    """Why nothing can be compared with the pinned baseline."""

    why: str
    command: str  # brings it back, or sets another
    words: str  # both in one line


class RunBefore(NamedTuple):
    """The last earlier run of a version, seen from one of its runs."""

    run_id: str | None
    tied: str | None = None  # another run of the same time, so that it is unknown which is newer


def list_pins(records: Iterable[DecisionRecord]) -> list[Pin]:
    """The baselines that are set now, from all records, oldest first; by family, most general first."""
    pins: dict[_Scope, Pin] = {}
    for record in records:
        if record.kind not in (BASELINE, UNSET_BASELINE):
            continue
        texts = {key: _text(record.values.get(key)) for key in ("workload", "gpu", "run", "version")}
        scope = (record.subject, texts["workload"], texts["gpu"])
        pins.pop(scope, None)
        if record.kind == BASELINE and (texts["run"] or texts["version"]):
            target = (texts["run"], texts["version"])
            pins[scope] = Pin(*scope, *target, record.who, record.created, record.why, record.id)
    return sorted(
        pins.values(), key=lambda pin: (pin.family, *_precision(pin), pin.workload or "", pin.gpu or "")
    )


def effective_pin(pins: Iterable[Pin], family: str, workload: str | None, gpu: str | None) -> Pin | None:
    """The pin that counts there: the most specific one, where a workload is more specific than a GPU."""
    matches = [
        pin
        for pin in pins
        if pin.family == family and pin.workload in (None, workload) and pin.gpu in (None, gpu)
    ]
    return max(matches, key=_precision, default=None)


def _precision(pin: Pin) -> tuple[bool, bool]:
    return pin.workload is not None, pin.gpu is not None


def _text(content: object) -> str | None:
    return content if isinstance(content, str) else None


def find_loss(pin: Pin, store: Store) -> LostPin | None:
    """Why a pin is lost: its run or version no longer exists; None where it does."""
    pin_another = f"profiler decide baseline set {shlex.quote(pin.family)} RUN_OR_VERSION"
    run = store.run(pin.run_id) if pin.run_id is not None else None
    if run is not None and run.hidden:
        why, undo = f"run {pin.run_id} was forgotten", f"profiler data forget --undo {pin.run_id}"
        return LostPin(why, undo, f"{why}: `{undo}` brings it back, `{pin_another}` pins another")
    if pin.run_id is not None:
        why = "" if run else f"run {pin.run_id} is gone"
    else:
        is_there = any(info.version == pin.version for info in store.versions(pin.family))
        why = "" if is_there else f"no run has {pin.name} any more"
    return LostPin(why, pin_another, f"{why}: `{pin_another}` pins another") if why else None


@dataclass(frozen=True)
class Baselines:
    """Everything that the versions of one family can be compared with, loaded once."""

    store: Store
    family: str
    pins: tuple[Pin, ...]
    lineage: Lineage | None  # None: no run has a catalogue of it

    @staticmethod
    def load(root: Root, store: Store, family: str) -> Baselines:
        """The baselines of a family, by the present decisions and catalogues."""
        pins = tuple(pin for pin in list_pins(decisions.load_decisions(root)) if pin.family == family)
        return Baselines(store, family, pins, history_lineage.load_lineage(root, store, family))

    @cached_property
    def losses(self) -> dict[str, LostPin | None]:
        """Whether each pin is lost, and why, by the pin's id."""
        return {pin.id: find_loss(pin, self.store) for pin in self.pins}

    @cached_property
    def versions(self) -> tuple[str, ...]:
        """The versions of the family, sorted by their first run."""
        return tuple(info.version for info in self.store.versions(self.family))

    def pin_for(self, workload: str | None, gpu: str | None) -> Pin | None:
        """The pin that counts for a workload and GPU."""
        return effective_pin(self.pins, self.family, workload, gpu)

    def named(self, name: str, version: str, workload: str | None = None, gpu: str | None = None) -> Baseline:
        """The baseline of a version on one workload and GPU by its name: pinned, parent, best or torch:ID.

        Raises CannotJudge, with a way to set one, where there is none, and UnknownName for another name.
        """
        way_out = f"`profiler decide baseline set {self.family} RUN_OR_VERSION`"
        if name not in (PINNED, *IMPLICIT) and not name.startswith(TORCH):
            raise UnknownName(f"no baseline is called {name!r}: {PINNED}, {PARENT}, {BEST}, or {TORCH}NAME")
        if name == PINNED:
            pinned = self.for_gate(workload, gpu)
            if pinned is None:
                raise CannotJudge(f"nothing is pinned for {self.family} there: {way_out}")
            return pinned
        if self.lineage is None:
            raise CannotJudge(f"{self.family} has no catalogue, which would say its {name}: {way_out}")
        return _implied(name, self.lineage, version, workload or "", gpu or "")

    def for_gate(self, workload: str | None = None, gpu: str | None = None) -> Baseline | None:
        """The pinned baseline, which a gate takes where none is named; None: it takes the run before.

        Raises CannotJudge for a lost pin: a gate must not pass by a baseline that nobody pinned.
        """
        pin = self.pin_for(workload, gpu)
        if pin is None:
            return None
        if loss := self.losses[pin.id]:
            raise CannotJudge(f"the baseline of {pin.family} ({pin.words}) is lost: {loss.words}")
        return Baseline(PINNED, pin.family, pin.run_id, pin.version, pin.words, pin)

    def for_regressions(
        self, version: str, workload: str, gpu: str, versions_present: Collection[str]
    ) -> Baseline | LostPin | None:
        """The baseline of a version's newest results; None without one, or if it is pinned itself.

        `versions_present` are the versions with results there, one of which is the version before.
        """
        pin = self.pin_for(workload, gpu)
        if pin is not None:
            if loss := self.losses[pin.id]:
                return loss
            is_itself = pin.version == version
            return None if is_itself else Baseline(PINNED, *_target(pin), pin.words, pin)
        if self.lineage is not None:
            status = self.lineage.by_id.get(version)
            return _parent(self.family, status)
        newest, before = newest_and_before(self.versions, versions_present)
        if before is None or version != newest:
            return None
        return Baseline(BEFORE, self.family, None, before, "the version before")

    def available(self, version: str, workload: str | None = None, gpu: str | None = None) -> list[Baseline]:
        """Every baseline that a version has on one workload and GPU, the pinned one first."""
        statuses = self.lineage.statuses if self.lineage else ()
        backends = [
            f"{TORCH}{status.version.id}" for status in statuses if status.state == history_lineage.BASELINE
        ]
        baselines = []
        for name in (PINNED, PARENT, BEST, *backends):
            with contextlib.suppress(CannotJudge):
                baselines.append(self.named(name, version, workload, gpu))
        return baselines

    def places(self, version: str) -> list[tuple[str, str]]:
        """The workloads and GPUs that a version was measured on, else those of other evidence."""
        cells = [cell for cell in self.store.cells(self.family) if cell.version == version]
        measured = [cell for cell in cells if cell.evidence is Evidence.MEASURED]
        places = {(cell.workload, cell.gpu) for cell in measured or cells}
        return sorted(places, key=lambda place: (natural_key(place[0]), natural_key(place[1])))

    def by_place(
        self, version: str, workload: str | None = None, gpu: str | None = None
    ) -> list[tuple[tuple[str, str], Baseline]]:
        """Every baseline of a version, with its workload and GPU; filtered where one is named."""
        return [
            (place, baseline)
            for place in self.places(version)
            if workload in (None, place[0]) and gpu in (None, place[1])
            for baseline in self.available(version, *place)
        ]


def _target(pin: Pin) -> tuple[str, str | None, str | None]:
    return pin.family, pin.run_id, pin.version


def _parent(family: str, status: VersionStatus | None) -> Baseline | None:
    """The nearest correct ancestor of a version; None where it has none, or is in no catalogue."""
    if status is None or status.correct_ancestor is None:
        return None
    return Baseline(PARENT, family, None, status.correct_ancestor.id, "the nearest correct ancestor")


def _implied(name: str, lineage: Lineage, version: str, workload: str, gpu: str) -> Baseline:
    """The baseline that the catalogue implies: the parent, the fastest version there, or a torch backend."""
    family, status = lineage.family, lineage.by_id.get(version)
    if name.startswith(TORCH):
        backends = {
            status.version.id: status
            for status in lineage.statuses
            if status.state == history_lineage.BASELINE
        }
        backend = backends.get(name.removeprefix(TORCH))
        if backend is None:
            backend_names = brief_list([f"{TORCH}{backend_id}" for backend_id in backends]) or "none"
            raise UnknownName(f"{family} has no {name}; its catalogue has {backend_names}")
        row = history_lineage.workload_without_dtype(workload, backend.version)
        if (row, gpu) not in backend.latency_ns:
            raise CannotJudge(
                f"{backend.version.id} was not timed there: `profiler collect {backend.version.id}`"
            )
        return Baseline(name, family, None, backend.version.id, backend.version.technique)
    if status is None:
        raise CannotJudge(
            f"{family}/{version} is in no catalogue, which would say its {name}: pin a baseline"
        )
    if name == PARENT:
        parent = _parent(family, status)
        if parent is None:
            raise CannotJudge(f"{family}/{version} has no correct ancestor: its lineage begins with it")
        return parent
    row = history_lineage.workload_without_dtype(workload, status.version)
    best = lineage.best(row, gpu)
    if best is None or (row, gpu) not in best.latency_ns:
        raise CannotJudge(f"no correct version of {family} was timed there: `profiler collect` on a GPU")
    return Baseline(BEST, family, None, best.version.id, "the fastest correct version there")


def for_advice(family: str | None, status: VersionStatus | None) -> Baseline | NoBaseline:
    """The baseline of advice where none is named: the nearest correct ancestor.

    `status` is None for a version in no catalogue, such as an imported report.
    """
    if status is None:
        return NoBaseline("no baseline (this report is not in a catalogue); use --against")
    if status.version.parent is None:
        return NoBaseline("no baseline: it has no parent in the catalogue")
    parent = _parent(family or "", status)
    if parent is None:
        return NoBaseline("no baseline: no ancestor of it in the catalogue is correct")
    if parent.version == status.version.parent:
        words = "its parent in the catalogue"
    else:
        words = f"its nearest correct ancestor: {status.version.parent} is not"
    return Baseline(PARENT, parent.family, None, parent.version, words)


def newest_and_before(
    versions: Sequence[str], versions_present: Collection[str]
) -> tuple[str | None, str | None]:
    """The newest version that is present and the one before it; `versions` are sorted by their runs."""
    present = (version for version in reversed(versions) if version in versions_present)
    return next(present, None), next(present, None)


def run_before(own: str, created: Mapping[str, datetime]) -> RunBefore:
    """The last run before a version's own run, of all its runs there with the time that each was made."""
    earlier = [(when, run_id) for run_id, when in created.items() if when < created[own]]
    tied = [run_id for run_id, when in created.items() if when == created[own] and run_id != own]
    return RunBefore(max(earlier)[1] if earlier else None, max(tied, default=None))
