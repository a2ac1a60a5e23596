"""What advice is given about: one version's measured launches and facts, each beside the baseline's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from profiler.compare import Comparison
from profiler.evidence import Evidence, Side
from profiler.history.catalog_snapshot import SharedAccess

SharedTraffic = Mapping[str, Sequence[SharedAccess]]  # by workload, as a catalogue's snapshot keeps it


@dataclass(frozen=True)
class ComparedSide:
    """A version on one workload and GPU or architecture, and its comparison with the baseline there."""

    side: Side
    comparison: Comparison | None = None  # its B is this side; None: there is no baseline here

    @property
    def place(self) -> str:
        """The workload and the GPU or architecture, in words."""
        return " ".join(filter(None, (self.side.workload, self.side.gpu)))


@dataclass(frozen=True)
class Subject:
    """What is known of one version."""

    label: str
    measured: ComparedSide | None = None
    facts: tuple[ComparedSide, ...] = ()  # static and modelled
    wrong: str | None = None  # why its results are wrong, or why it was rejected
    baseline: str | None = None  # the name of the baseline
    baseline_why: str = ""  # why that one, or why there is none
    traffic: SharedTraffic = field(default_factory=dict)  # shared-memory traffic by source line
    checked_elsewhere: bool = False  # whether it was checked on other workloads than those of `facts`
    waits_for: str = ""  # of a version of which there is nothing yet: what its catalogue says

    @property
    def checked(self) -> bool:
        """Whether a run on the CPU compared its numbers with the reference."""
        return self.checked_elsewhere or any(fact.side.evidence is Evidence.MODELLED for fact in self.facts)
