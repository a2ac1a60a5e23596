"""Whether two sides may be compared at all: what must be equal, what may differ, what nobody knows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from profiler.evidence import Evidence, Side

CORRECTNESS = "correctness"
ACROSS = ("driver", "ncu")  # what may differ when that is the question

_MUST_MATCH = (
    "GPU",
    "compute capability",
    "workload",
    "dtype",
    "evidence",
    "clock control",
    "cache control",
    "replay mode",
)
_MAY_DIFFER = ("CUDA", "command line")
_SAID_OR_NOT = ("compute capability", *_MAY_DIFFER)  # no warning where a side does not say


@dataclass(frozen=True)
class Difference:
    """One thing that is not known to be equal on both sides. None is unknown."""

    field: str
    a: str | None
    b: str | None
    kind: str  # differs, unknown or info
    blocks: bool  # whether it makes everything not comparable

    @property
    def words(self) -> str:
        """The difference as a phrase."""
        if self.kind == "unknown":
            if self.a is None and self.b is None:
                return f"{self.field} unknown on both sides"
            return (
                f"{self.field} unknown in {'A' if self.a is None else 'B'} ({self.a or self.b} in the other)"
            )
        if self.field == CORRECTNESS:
            told = [f"{side} is wrong: {why}" for side, why in (("A", self.a), ("B", self.b)) if why]
            return f"{', '.join(told)}; what is wrong has no speed and no verdict"
        if self.field == "command line":  # long, and full of somebody's paths
            return "command line differs"
        return f"{self.field} differs: {self.a} and {self.b}"


def find_differences(
    a: Side, b: Side, across: Collection[str] = frozenset()
) -> tuple[tuple[Difference, ...], tuple[tuple[str, str], ...]]:
    """What differs or is unknown between two sides, and what is the same."""
    said_a, said_b = _said(a), _said(b)
    if (a.gpu and b.gpu) or not (a.compute_capability and b.compute_capability):
        # two names say more; one capability alone says nothing
        said_a["compute capability"] = said_b["compute capability"] = None
    found: list[Difference] = []
    same: list[tuple[str, str]] = []
    if a.wrong or b.wrong:
        found.append(Difference(CORRECTNESS, a.wrong, b.wrong, "differs", True))
    for name in _asked(a, b):
        x, y = said_a[name], said_b[name]
        if x is not None and x == y:
            same.append((name, x))
        elif name in _SAID_OR_NOT:
            if x is not None and y is not None:
                blocks = name not in _MAY_DIFFER
                found.append(Difference(name, x, y, "differs" if blocks else "info", blocks))
        elif x is None or y is None:
            found.append(Difference(name, x, y, "unknown", False))
        else:
            found.append(Difference(name, x, y, "differs", name not in across))
    return tuple(found), tuple(same)


def _asked(a: Side, b: Side) -> tuple[str, ...]:
    """What has to be known of the two: without a GPU there is no clock, cache or driver to know."""
    if a.evidence is not b.evidence or a.evidence is Evidence.MEASURED:
        return (*_MUST_MATCH, *ACROSS, *_MAY_DIFFER)
    place = ("architecture",) if a.evidence is Evidence.STATIC else ()
    return (*place, "workload", "dtype", "evidence")


def _said(side: Side) -> dict[str, str | None]:
    session = side.session
    return {
        "GPU": side.gpu,
        "architecture": side.gpu,
        "compute capability": side.compute_capability,
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
