"""Whether two sides may be compared at all: what has to be equal, what may differ, what is unknown."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from profiler.evidence.library_kernels import library_kernels_alone
from profiler.evidence.one_measurement import is_one_measurement
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence

CORRECTNESS = "correctness"
OWN_KERNELS = "own kernels"
MEASUREMENT = "measurement"
# What the user may allow to differ, when its effect is the question, and the fields that follow from it.
ACROSS: dict[str, tuple[str, ...]] = {
    "driver": ("driver",),
    "ncu": ("ncu",),
    "gpu": ("GPU", "compute capability", "multiprocessors", "architecture"),
}

_MUST_MATCH = (
    "GPU",
    "compute capability",
    "multiprocessors",
    "workload",
    "dtype",
    "evidence",
    "clock control",
    "cache control",
    "replay mode",
)
_SOFTWARE = ("driver", "ncu")
_MAY_DIFFER = ("CUDA", "command line")
_NO_WARNING_IF_UNKNOWN = ("compute capability", "multiprocessors", *_MAY_DIFFER)


@dataclass(frozen=True)
class Difference:
    """A property that is not known to be equal on both sides."""

    field: str  # its name: "GPU", "workload", …
    a: str | None  # None: unknown, as for b
    b: str | None
    kind: str  # differs, unknown, info, or same: both sides are one measurement
    blocks: bool  # whether it makes the sides not comparable

    @property
    def words(self) -> str:
        """The difference as a phrase for a reader."""
        if self.kind == "unknown":
            if self.a is None and self.b is None:
                return f"{self.field} unknown on both sides"
            return (
                f"{self.field} unknown in {'A' if self.a is None else 'B'} ({self.a or self.b} in the other)"
            )
        if self.field == MEASUREMENT:
            same = f"{self.a} and {self.b} hold the same launches"
            return f"one measurement: {same}, so there is nothing to compare"
        if self.field == CORRECTNESS:
            clauses = [f"{side} is wrong: {why}" for side, why in (("A", self.a), ("B", self.b)) if why]
            return f"{', '.join(clauses)}; what is wrong has no speed and no verdict"
        if self.field == OWN_KERNELS:
            sides = [
                f"only {kernels} in {side}" for side, kernels in (("A", self.a), ("B", self.b)) if kernels
            ]
            return f"no kernel of yours was captured: {', '.join(sides)}"
        if self.field == "command line":  # too long to print, and full of private paths
            return "command line differs"
        return f"{self.field} differs: {self.a} and {self.b}"


def find_libraries_alone(a: Side, b: Side) -> tuple[Difference, ...]:
    """That a side holds only kernels of libraries, whose time says nothing of a program; else nothing."""
    alone_a, alone_b = library_kernels_alone(a) or None, library_kernels_alone(b) or None
    if alone_a is None and alone_b is None:
        return ()
    return (Difference(OWN_KERNELS, alone_a, alone_b, "differs", True),)


def find_differences(
    a: Side, b: Side, across: Collection[str] = frozenset()
) -> tuple[tuple[Difference, ...], tuple[tuple[str, str], ...]]:
    """The differences of two sides, known or possible, and the (name, value) of what is equal.

    `across` names what of ACROSS may differ without making the sides not comparable. Reports with launches
    of several GPUs are comparable where they share one.
    """
    allowed = {field for name in across for field in ACROSS[name]}
    fields_a, fields_b = _known_fields(a), _known_fields(b)
    if (a.gpus and b.gpus) or not (a.capabilities and b.capabilities):
        # Two names of GPUs say more than their capabilities, and one capability alone cannot be compared.
        fields_a["compute capability"] = fields_b["compute capability"] = None
    if len(a.gpus) != 1 or a.gpus != b.gpus:  # what has one name is told apart by its size
        fields_a["multiprocessors"] = fields_b["multiprocessors"] = None
    differences: list[Difference] = []
    same: list[tuple[str, str]] = []
    if is_same_measurement(a, b):
        differences.append(Difference(MEASUREMENT, a.label, b.label, "same", True))
    if a.wrong or b.wrong:
        differences.append(Difference(CORRECTNESS, a.wrong, b.wrong, "differs", True))
    for name in _fields_to_check(a, b):
        value_a, value_b = fields_a[name], fields_b[name]
        if value_a is not None and value_a == value_b:
            same += [(name, value_a)] if name != "multiprocessors" else []
        elif name in _HARDWARE and value_a and value_b and _share(name, a, b):
            differences.append(Difference(name, value_a, value_b, "differs", False))
        elif name in _NO_WARNING_IF_UNKNOWN:
            if value_a is not None and value_b is not None:
                blocks = name not in _MAY_DIFFER and name not in allowed
                differences.append(
                    Difference(name, value_a, value_b, "info" if name in _MAY_DIFFER else "differs", blocks)
                )
        elif value_a is None or value_b is None:
            differences.append(Difference(name, value_a, value_b, "unknown", False))
        else:
            differences.append(Difference(name, value_a, value_b, "differs", name not in allowed))
    return tuple(differences), tuple(same)


def is_same_measurement(a: Side, b: Side) -> bool:
    """Whether both sides are reports of the same launches: one report, its copy, or an export.

    Timed calls are compared by themselves: sides that have any are two measurements.
    """
    if a.evidence is not Evidence.MEASURED or b.evidence is not Evidence.MEASURED:
        return False
    if not (a.launches and b.launches) or (a.latencies and b.latencies):
        return False
    if a.report_sha256 and a.report_sha256 == b.report_sha256:
        return True
    created = (a.launch_session.created, b.launch_session.created)
    if None not in created and created[0] != created[1]:
        return False
    return is_one_measurement(a.launches, b.launches)


def _fields_to_check(a: Side, b: Side) -> tuple[str, ...]:
    """The properties to compare: facts that need no GPU have no clock, cache or driver."""
    if a.evidence is not b.evidence or a.evidence is Evidence.MEASURED:
        return (*_MUST_MATCH, *_SOFTWARE, *_MAY_DIFFER)
    place = ("architecture",) if a.evidence is Evidence.STATIC else ()
    return (*place, "workload", "dtype", "evidence")


def _share(name: str, a: Side, b: Side) -> bool:
    """Whether some launches of both sides have the same hardware, where a side has several."""
    values_a, values_b = _HARDWARE[name](a), _HARDWARE[name](b)
    return max(len(values_a), len(values_b)) > 1 and not set(values_a).isdisjoint(values_b)


def _multiprocessors(side: Side) -> tuple[str, ...]:
    """How many multiprocessors its GPUs have: of one name an instance of MIG has fewer."""
    known = (launch.multiprocessors for launch in side.launches)
    return tuple(dict.fromkeys(str(number) for number in known if number is not None))


# What the launches of one report may have differently.
_HARDWARE: dict[str, Callable[[Side], tuple[str, ...]]] = {
    "GPU": lambda side: side.gpus,
    "compute capability": lambda side: side.capabilities,
    "multiprocessors": _multiprocessors,
}


def _known_fields(side: Side) -> dict[str, str | None]:
    session = side.session
    return {
        **{name: ", ".join(values(side)) or None for name, values in _HARDWARE.items()},
        "architecture": side.gpu,
        "workload": side.workload,
        "dtype": side.dtype,
        "evidence": side.evidence.value,
        "clock control": session.clock_control,
        "cache control": session.cache_control,
        "replay mode": session.replay_mode,
        "driver": session.driver,
        "ncu": session.ncu_version,
        "CUDA": session.cuda,
        "command line": session.command_line,
    }
