"""Which baseline counts for a family, workload and GPU: what somebody pinned, or what is always there."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from profiler.bundles import DecisionRecord, Root, decisions
from profiler.bundles.decisions import BASELINE, UNSET_BASELINE
from profiler.errors import CannotJudge, UnknownName
from profiler.evidence import Evidence, brief_list, natural_key, nearest_first
from profiler.history import lineage as history_lineage

if TYPE_CHECKING:
    from profiler.history.lineage import Lineage
    from profiler.store import Store

PINNED, PARENT, BEST = "pinned", "parent", "best"
TORCH = "torch:"  # before the id of a catalogue's version of state baseline: torch:sdpa_flash
IMPLICIT = (PARENT, BEST)

_Place = tuple[str, str | None, str | None]  # family, workload, GPU; None: every one


@dataclass(frozen=True)
class Pin:
    """A baseline that somebody set. No workload or GPU: on every one."""

    family: str
    workload: str | None
    gpu: str | None
    run_id: str | None  # either a run
    version: str | None  # or a version, by its newest results
    who: str
    created: datetime
    why: str
    id: str  # of the decision record

    @property
    def name(self) -> str:
        """What the command line takes for it."""
        return self.run_id or f"{self.family}/{self.version}"

    @property
    def place(self) -> str:
        """Where it holds."""
        return " · ".join((self.workload or "every workload", self.gpu or "every GPU"))

    @property
    def words(self) -> str:
        """Who set it, when and why."""
        why = f": {self.why}" if self.why else ""
        return f"pinned by {self.who or 'somebody'} on {self.created:%Y-%m-%d}{why}"


@dataclass(frozen=True)
class Baseline:
    """What a version is held against in one place."""

    how: str  # pinned, parent, best or torch:…
    family: str
    run_id: str | None
    version: str | None
    words: str  # where it comes from
    pin: Pin | None = None

    @property
    def name(self) -> str:
        """What the command line takes for it."""
        return self.run_id or f"{self.family}/{self.version}"


class LostPin(NamedTuple):
    """Why nothing can be held against a pin."""

    why: str
    command: str  # the way out
    words: str  # both, in one line


def find_loss(one: Pin, store: Store) -> LostPin | None:
    """What became of a pin whose run or version is not there any more; None where all is well."""
    another = f"profiler baseline set {shlex.quote(one.family)} RUN_OR_VERSION"
    run = store.run(one.run_id) if one.run_id is not None else None
    if run is not None and run.hidden:
        why, back = f"run {one.run_id} was forgotten", f"profiler forget --undo {one.run_id}"
        return LostPin(why, back, f"{why}: `{back}` brings it back, `{another}` pins another")
    if one.run_id is not None:
        why = "" if run else f"run {one.run_id} is gone"
    else:
        there = any(version.version == one.version for version in store.versions(one.family))
        why = "" if there else f"no run has {one.name} any more"
    return LostPin(why, another, f"{why}: `{another}` pins another") if why else None


def list_pins(records: Iterable[DecisionRecord]) -> list[Pin]:
    """The baselines that are set now, of all records oldest first; by family, the most general first."""
    found: dict[_Place, Pin] = {}
    for one in records:
        if one.kind not in (BASELINE, UNSET_BASELINE):
            continue
        given = {key: _text(one.values.get(key)) for key in ("workload", "gpu", "run", "version")}
        place = (one.subject, given["workload"], given["gpu"])
        found.pop(place, None)
        if one.kind == BASELINE and (given["run"] or given["version"]):
            target = (given["run"], given["version"])
            found[place] = Pin(*place, *target, one.who, one.created, one.why, one.id)
    return sorted(
        found.values(), key=lambda pin: (pin.family, *_weight(pin), pin.workload or "", pin.gpu or "")
    )


def effective_pin(found: Iterable[Pin], family: str, workload: str | None, gpu: str | None) -> Pin | None:
    """The pin that counts there: one for this workload and GPU before one for all, workload before GPU."""
    fits = [
        pin
        for pin in found
        if pin.family == family and pin.workload in (None, workload) and pin.gpu in (None, gpu)
    ]
    return max(fits, key=_weight, default=None)


@dataclass(frozen=True)
class Baselines:
    """All that one family can be held against, looked up once."""

    store: Store
    family: str
    pins: tuple[Pin, ...]
    lineage: Lineage | None  # None: no run keeps a catalogue of it

    @staticmethod
    def of(root: Root, store: Store, family: str) -> Baselines:
        """Of a family, by the decisions and catalogues there are now."""
        found = tuple(one for one in list_pins(decisions.load_decisions(root)) if one.family == family)
        return Baselines(store, family, found, history_lineage.load_lineages(root, store, family).get(family))

    def resolve(
        self, name: str | None, version: str, workload: str | None = None, gpu: str | None = None
    ) -> Baseline:
        """The baseline of a version in one place, by its name: pinned, parent, best or torch:ID.

        None: the pinned one, else the parent. Raises CannotJudge where there is none, with the way to one;
        UnknownName for another name.
        """
        way_out = f"`profiler baseline set {self.family} RUN_OR_VERSION`"
        if name is not None and name not in (PINNED, *IMPLICIT) and not name.startswith(TORCH):
            raise UnknownName(f"no baseline is called {name!r}: {PINNED}, {PARENT}, {BEST}, or {TORCH}NAME")
        if name in (None, PINNED):
            pin = effective_pin(self.pins, self.family, workload, gpu)
            if pin is not None:
                return _of_pin(pin, self.store)
            if name == PINNED:
                raise CannotJudge(f"nothing is pinned for {self.family} there: {way_out}")
        if self.lineage is None:
            raise CannotJudge(
                f"{self.family} has no catalogue, which would say its {name or PARENT}: {way_out}"
            )
        return _implied(name or PARENT, self.lineage, version, workload or "", gpu or "")

    def available(self, version: str, workload: str | None = None, gpu: str | None = None) -> list[Baseline]:
        """Every baseline that there is for a version in one place: the pinned one first."""
        held = self.lineage.statuses if self.lineage else ()
        backends = [f"{TORCH}{one.version.id}" for one in held if one.state == history_lineage.BASELINE]
        found = []
        for name in (PINNED, PARENT, BEST, *backends):
            with contextlib.suppress(CannotJudge):
                found.append(self.resolve(name, version, workload, gpu))
        return found

    def places(self, version: str) -> list[tuple[str, str]]:
        """The workloads and GPUs of a version: where it was measured, else where it has other evidence."""
        cells = [one for one in self.store.cells(self.family) if one.version == version]
        measured = [one for one in cells if one.evidence is Evidence.MEASURED]
        found = {(one.workload, one.gpu) for one in measured or cells}
        return sorted(found, key=lambda place: (natural_key(place[0]), natural_key(place[1])))


def set_baseline(
    root: Root,
    store: Store,
    family: str,
    name: str,
    *,
    workload: str | None = None,
    gpu: str | None = None,
    why: str = "",
    who: str | None = None,
) -> Pin:
    """Set the baseline of a family: a run id, a version, family/version or torch:ID.

    Raises UnknownName for a family, workload, GPU, run or version that is not there.
    """
    _check(store, family, workload, gpu)
    target = name.removeprefix(TORCH).removeprefix(f"{family}/")
    run = store.run(name)
    if run is not None:
        if family not in run.families:
            raise UnknownName(f"run {name} holds nothing of {family}: it is of {brief_list(run.families)}")
        if run.hidden:
            raise UnknownName(f"run {name} was forgotten: `profiler forget --undo {name}` brings it back")
        if all(one.kind in ("noise", "cell") for one in store.launches(run_id=name, latest=False)):
            raise UnknownName(f"run {name} holds nothing to compare with: A/A sessions, or what failed")
    elif target not in (there := [one.version for one in store.versions(family)]):
        listed = brief_list(nearest_first(target, there))
        raise UnknownName(f"no run and no version of {family} is called {name}; there are {listed}")
    values = {"workload": workload, "gpu": gpu, **({"run": name} if run is not None else {"version": target})}
    return list_pins([decisions.write_decision(root, BASELINE, family, values, why=why, who=who)])[0]


def unset_baseline(
    root: Root,
    family: str,
    *,
    workload: str | None = None,
    gpu: str | None = None,
    why: str = "",
    who: str | None = None,
) -> Pin:
    """Take away the baseline set for exactly this place; what it was. UnknownName where none is set there."""
    set_now = [one for one in list_pins(decisions.load_decisions(root)) if one.family == family]
    for one in set_now:
        if (one.workload, one.gpu) == (workload, gpu):
            decisions.write_decision(
                root, UNSET_BASELINE, family, {"workload": workload, "gpu": gpu}, why=why, who=who
            )
            return one
    there = brief_list([one.place for one in set_now])
    where = f"it has one for {there}" if there else "it has none anywhere: `profiler baseline list`"
    place = " · ".join((workload or "every workload", gpu or "every GPU"))
    raise UnknownName(f"{family} has no baseline set for {place}; {where}")


def _check(store: Store, family: str, workload: str | None, gpu: str | None) -> None:
    families = store.families()
    if family not in families:
        there = brief_list(nearest_first(family, families))
        way_out = f"there are {there}" if there else "the index is empty: `profiler import PATH`"
        raise UnknownName(f"no family {family!r} in the index; {way_out}")
    cells = store.cells(family)
    for kind, name, held in (
        ("workload", workload, {cell.workload for cell in cells}),
        ("GPU", gpu, {cell.gpu for cell in cells}),
    ):
        if name is not None and name not in held:
            there = brief_list(nearest_first(name, sorted(held - {""}))) or "none"
            raise UnknownName(f"{family} has no {kind} {name!r}; there are {there}")


def _of_pin(pin: Pin, store: Store) -> Baseline:
    if gone := find_loss(pin, store):
        raise CannotJudge(f"the baseline of {pin.family} ({pin.words}) is lost: {gone.words}")
    return Baseline(PINNED, pin.family, pin.run_id, pin.version, pin.words, pin)


def _implied(name: str, held: Lineage, version: str, workload: str, gpu: str) -> Baseline:
    family, standing = held.snapshot.catalog.family, held.by_id.get(version)
    if name.startswith(TORCH):
        backends = {one.version.id: one for one in held.statuses if one.state == history_lineage.BASELINE}
        wanted = backends.get(name.removeprefix(TORCH))
        if wanted is None:
            listed = brief_list([f"{TORCH}{one}" for one in backends]) or "none"
            raise UnknownName(f"{family} has no {name}; its catalogue has {listed}")
        if (history_lineage.workload_without_dtype(workload, wanted.version), gpu) not in wanted.latency_ns:
            raise CannotJudge(
                f"{wanted.version.id} was not timed there: `profiler collect {wanted.version.id}`"
            )
        return Baseline(name, family, None, wanted.version.id, wanted.version.technique)
    if standing is None:
        raise CannotJudge(
            f"{family}/{version} is in no catalogue, which would say its {name}: pin a baseline"
        )
    if name == PARENT:
        if standing.correct_ancestor is None:
            raise CannotJudge(f"{family}/{version} has no correct ancestor: its lineage begins with it")
        return Baseline(PARENT, family, None, standing.correct_ancestor.id, "the nearest correct ancestor")
    size = history_lineage.workload_without_dtype(workload, standing.version)
    best = held.best(size, gpu)
    if best is None or (size, gpu) not in best.latency_ns:
        raise CannotJudge(f"no correct version of {family} was timed there: `profiler collect` on a GPU")
    return Baseline(BEST, family, None, best.version.id, "the fastest correct version there")


def _weight(pin: Pin) -> tuple[bool, bool]:
    return pin.workload is not None, pin.gpu is not None


def _text(content: object) -> str | None:
    return content if isinstance(content, str) else None
