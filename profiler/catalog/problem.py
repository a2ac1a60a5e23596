"""What a family declares once for all its versions: inputs, float64 reference, tolerance, FLOPs, bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Argument = Array | int | float | None

ALL_STAGES = "ALL"  # where a stage is asked for: none of them alone, but the whole problem


@dataclass(frozen=True)
class Tolerance:
    """How far an element may be from the reference: absolute + relative * magnitude.

    The magnitude is the reference's, unless a case has its own. One under which an output passes that
    computes nothing (weak_check.py) is refused.
    """

    absolute: float
    relative: float


@dataclass(frozen=True)
class OutputCheck:
    """How an output compares with its reference."""

    max_abs_error: float | None  # None: an element that should be finite is not, or the reverse
    wrong: int  # how many elements are out of tolerance, those that are not finite included
    not_finite: int  # how many elements should be finite and are not
    first_wrong: tuple[int, ...] | None = None  # index of the first element out of tolerance


@dataclass(frozen=True)
class Case:
    """One call of a version, and all that decides whether its result is right."""

    arguments: tuple[Argument, ...]  # of the C function, in its order, without the stream that comes last
    operands: tuple[Argument, ...]  # what a Python version is called with instead
    output: Array  # one of `arguments`; NaN everywhere before the call
    reference: NDArray[np.float64]
    tolerance: Tolerance
    input_error: float | None = None  # what rounding the inputs to codes alone does to the result
    # What the relative tolerance is of, shaped as the output; None: |reference|. A sum of large terms errs by
    # them, however small it is.
    magnitude: NDArray[np.float64] | None = None

    def check(self, output: Array | None = None) -> OutputCheck:
        """Compare an output, this case's own unless given, with the reference."""
        return check_output(
            self.output if output is None else output, self.reference, self.tolerance, self.magnitude
        )


@dataclass(frozen=True)
class ContractCall:
    """A call of a case with something changed, which the C function must refuse.

    Positions count Case.arguments from 0.
    """

    passed: str  # what is changed, in words: "head_dim 96"
    # In place of the case's, by position; None: a null pointer.
    numbers: Mapping[int, int | float | None] = field(default_factory=dict)
    moved_bytes: Mapping[int, int] = field(default_factory=dict)  # how far on a pointer is moved, by position
    returned: int = 1  # what the function must return, having written nothing


class Workload(Protocol):
    """The size of one problem."""

    @property
    def label(self) -> str:
        """Its name in every output: equal labels are equal workloads."""

    def sizes(self) -> dict[str, int | str | bool]:
        """Every size by name, for JSON."""


class Problem(Protocol):
    """What a family solves: attention in attention.py, a GEMM or anything else in a file of the user's.

    It may also have `acceptance_workloads(dtype)`: the workloads that are measured on a GPU. Without it these
    are the ones of check_workloads.
    It may have `inputs(workload, seed)`: the arguments of its case and the output among them, without the
    reference, which takes long for large workloads and is not needed where nothing is compared with it.
    For `profiler judge` it has `arguments`, the names of the C function's arguments in the order of
    Case.arguments, and may have `random_workload(rng, dtype, sizes)`: a small workload, drawn by a NumPy
    generator from all that the contract allows; `sizes` as for check_workloads. `may_restrict` names the
    sizes of which a candidate may take some values alone (head_dim).
    It may have `contract_calls(workload, sizes)`: the calls of a workload's case with something changed that
    the C function must refuse (ContractCall); `sizes` as for check_workloads. With it `profiler check` makes
    them of every good version, and an equal call twice; the workload is the one with the fewest flops.
    Without contract_calls `profiler check` also does without flops and minimal_bytes, and calls the first
    workload that fails the smallest. What a method raises, and an answer of another kind than is said here,
    is an error that names its line.
    """

    name: str
    symbol: str  # of the C function in every version's library
    stages: tuple[str, ...]  # parts that a version can be built to stop after, in order

    def workload(self, **sizes: Any) -> Any:
        """A workload from its sizes. Raises TypeError or ValueError for sizes it does not have."""

    def check_workloads(self, dtype: str, sizes: Sequence[int]) -> list[Any]:
        """The workloads that a good version is checked on; a rejected one is checked on the first alone.

        sizes: the values of its compile-time dimension (head_dim) that the version takes. Raises ValueError
        for a dtype or a size that the problem does not have.
        """

    def case(self, workload: Any, seed: int, stage: str = ALL_STAGES) -> Case:
        """Fresh random inputs, their reference and an output full of NaN."""

    def stage_flags(self, stage: str) -> tuple[str, ...]:
        """The compiler flags that build a version for one stage."""

    def flops(self, workload: Any) -> int:
        """The arithmetic that cannot be avoided."""

    def minimal_bytes(self, workload: Any) -> int:
        """Every input read once and every output written once."""


def check_output(
    output: Array,
    reference: NDArray[np.float64],
    tolerance: Tolerance,
    magnitude: NDArray[np.float64] | None = None,
) -> OutputCheck:
    """Compare element by element; an infinity is right only where the reference has the same."""
    values = output.astype(np.float64)
    finite = np.isfinite(reference)
    with np.errstate(invalid="ignore"):  # inf - inf, where both are the same infinity
        error = np.where(values == reference, 0.0, np.abs(values - reference))
    if magnitude is None:
        magnitude = np.abs(np.where(finite, reference, 0.0))
    allowed = tolerance.absolute + tolerance.relative * magnitude
    wrong = ~(error <= allowed)  # not `error > allowed`, which is false for NaN
    indices = np.argwhere(wrong)
    return OutputCheck(
        max_abs_error=float(error.max()) if np.isfinite(error).all() else None,
        wrong=len(indices),
        not_finite=int((finite & ~np.isfinite(values)).sum()),
        first_wrong=tuple(int(i) for i in indices[0]) if len(indices) else None,
    )


def acceptance_workloads(problem: Problem, dtypes: Sequence[str], sizes: Sequence[int]) -> list[Any]:
    """What versions of these dtypes are measured on, dtype by dtype: see Problem."""
    own = getattr(problem, "acceptance_workloads", None)
    by_dtype = (own(dtype) if own else problem.check_workloads(dtype, sizes) for dtype in dtypes)
    return [workload for workloads in by_dtype for workload in workloads]


def workload_json(workload: Workload) -> Mapping[str, int | str | bool]:
    """The workload's sizes without `causal`, which stands beside them in every output."""
    return {name: size for name, size in workload.sizes().items() if name != "causal"}
