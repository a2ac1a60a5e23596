"""One side of a comparison: launches that belong together, timed calls, and where both come from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.errors import UnknownName
from profiler.evidence.launch import Launch, Session, only
from profiler.evidence.naming import brief_list
from profiler.evidence.values import Evidence

if TYPE_CHECKING:  # whoever reads reports alone need not wait for numpy
    import numpy as np
    from numpy.typing import NDArray


def _no_processes() -> NDArray[np.uint16]:
    import numpy as np

    return np.empty(0, np.uint16)


@dataclass(frozen=True, eq=False)
class Latency:
    """Timed calls of one version in one mode and run, in time order."""

    run_id: str
    mode: str  # timer, cache and clock: "events; cache warm; clock none"
    ns: NDArray[np.float32]
    rounds: NDArray[np.uint16]  # equal numbers of one run are one round of A and B
    clocks_mhz: NDArray[np.float32]  # one a sample, or none
    throttled: NDArray[np.uint32]  # positions of the samples taken while the GPU throttled
    created: datetime | None = None  # when the run was made
    build: str | None = None  # source and flags: equal ones are one build; None where nobody said
    # The process that each sample is from, or none where the run does not say.
    processes: NDArray[np.uint16] = field(default_factory=_no_processes)


@dataclass(frozen=True)
class EarlierCounters:
    """The run before a side's own whose launches the side has, since its own run was only timed."""

    run_id: str
    created: datetime
    session: Session  # of its report
    is_same_code: bool  # whether both runs say which source and flags, and say the same; else nobody said


@dataclass(frozen=True)
class Side:
    """One side of a comparison: launches that belong together, and where they come from.

    Every field that is None is unknown, which is a warning and never a match.
    """

    label: str  # what the user called it: a path, a run id, family/version
    launches: tuple[Launch, ...]
    gpu: str | None = None  # None: unknown, or several (see gpus)
    compute_capability: str | None = None  # "9.0"; None as for gpu
    workload: str | None = None
    dtype: str | None = None
    evidence: Evidence = Evidence.MEASURED
    session: Session = field(default_factory=Session)
    family: str | None = None
    version: str | None = None
    run_id: str | None = None
    result_ids: tuple[int, ...] = ()  # index rows, in the order of launches; empty for a bare file
    wrong: str | None = None  # why the version's results are wrong, which leaves it without a speed
    latencies: tuple[
        Latency, ...
    ] = ()  # of its newest runs, newest first; of the one run where a run is meant
    earlier_counters: EarlierCounters | None = None  # None: the launches are of run_id
    report_path: Path | None = None  # of the file that the launches were read from; None for those of a run
    report_sha256: str | None = None  # of that file

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs that it is of: for a report, in which each launch has its own, all of them."""
        if self.gpu is not None:
            return (self.gpu,)
        return tuple(dict.fromkeys(launch.gpu for launch in self.launches if launch.gpu))

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The compute capabilities of these GPUs."""
        if self.compute_capability is not None:
            return (self.compute_capability,)
        known = (launch.compute_capability for launch in self.launches)
        return tuple(dict.fromkeys(capability for capability in known if capability))

    def gpu_of(self, launch: Launch) -> str | None:
        """The GPU that one of its launches ran on."""
        return self.gpu or launch.gpu

    def capability_of(self, launch: Launch) -> str | None:
        """The compute capability of the GPU that one of its launches ran on."""
        return self.compute_capability or launch.compute_capability

    def on_gpu(self, gpu: str | None) -> Side:
        """Its launches on one of its GPUs; None: all of them. UnknownName for a GPU that it does not have."""
        if gpu is None or self.gpu == gpu:
            return self
        launches = tuple(launch for launch in self.launches if self.gpu_of(launch) == gpu)
        if not launches:
            there = f"it has {brief_list(self.gpus)}" if self.gpus else "it names no GPU"
            raise UnknownName(f"--gpu {gpu}: {self.label} has no launch on it; {there}", option="--gpu")
        capability = only(launch.compute_capability for launch in launches)
        return replace(self, launches=launches, gpu=gpu, compute_capability=capability)

    @property
    def launch_run_id(self) -> str | None:
        """The run that the launches are of."""
        return self.earlier_counters.run_id if self.earlier_counters else self.run_id

    @property
    def launch_session(self) -> Session:
        """The session in which the launches were profiled."""
        return self.earlier_counters.session if self.earlier_counters else self.session
