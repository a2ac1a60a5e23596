"""Sets and removes the baselines of a family: decisions that are stored beside the bundles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler.bundles import decisions
from profiler.bundles.decisions import BASELINE, UNSET_BASELINE
from profiler.bundles.location import Root
from profiler.errors import UnknownName
from profiler.evidence.naming import brief_list, nearest_first
from profiler.history.baselines import TORCH, Pin, list_pins

if TYPE_CHECKING:
    from profiler.store.index import Store

_NOT_RESULTS = ("noise", "cell")  # kinds of rows that cannot be a baseline


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

    Without a workload or GPU it counts on every one. Raises UnknownName for a family, workload, GPU, run or
    version that has no results.
    """
    _check_place(store, family, workload, gpu)
    version = name.removeprefix(TORCH).removeprefix(f"{family}/")
    run = store.run(name)
    if run is not None:
        if family not in run.families:
            raise UnknownName(f"run {name} holds nothing of {family}: it is of {brief_list(run.families)}")
        if run.hidden:
            raise UnknownName(
                f"run {name} was forgotten: `profiler data forget --undo {name}` brings it back"
            )
        if all(row.kind in _NOT_RESULTS for row in store.results(run_id=name, latest=False)):
            raise UnknownName(f"run {name} holds nothing to compare with: A/A sessions, or what failed")
    elif version not in (versions := [info.version for info in store.versions(family)]):
        names = brief_list(nearest_first(version, versions))
        raise UnknownName(f"no run and no version of {family} is called {name}; there are {names}")
    # A run before a version of the same name, as everywhere else on the command line.
    target = {"run": name} if run is not None else {"version": version}
    values = {"workload": workload, "gpu": gpu, **target}
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
    """Remove the baseline set for exactly this place, and return it. Raises UnknownName where none is set."""
    pins = [pin for pin in list_pins(decisions.load_decisions(root)) if pin.family == family]
    for pin in pins:  # exactly this place: a more general pin is another decision
        if (pin.workload, pin.gpu) == (workload, gpu):
            decisions.write_decision(
                root, UNSET_BASELINE, family, {"workload": workload, "gpu": gpu}, why=why, who=who
            )
            return pin
    scopes = brief_list([pin.scope for pin in pins])
    where = f"it has one for {scopes}" if scopes else "it has none anywhere: `profiler decide baseline list`"
    scope = " · ".join((workload or "every workload", gpu or "every GPU"))
    raise UnknownName(f"{family} has no baseline set for {scope}; {where}")


def _check_place(store: Store, family: str, workload: str | None, gpu: str | None) -> None:
    """Raise UnknownName where the family has no results: after a typing error nothing would match."""
    families = store.families()
    if family not in families:
        names = brief_list(nearest_first(family, families))
        way_out = f"there are {names}" if names else "the index is empty: `profiler import PATH`"
        raise UnknownName(f"no family {family!r} in the index; {way_out}")
    cells = store.cells(family)
    for kind, name, names_present in (
        ("workload", workload, {cell.workload for cell in cells}),
        ("GPU", gpu, {cell.gpu for cell in cells}),
    ):
        if name is not None and name not in names_present:
            names = brief_list(nearest_first(name, sorted(names_present - {""}))) or "none"
            raise UnknownName(f"{family} has no {kind} {name!r}; there are {names}")
