"""Checks that cannot fail: a tolerance under which an output that computes nothing passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from profiler.catalog.problem import Array, Case

_SAMPLE = 4096  # elements that are compared first: of most outputs one of them is out of tolerance
_ULPS = 4  # how far from the reference an output may be and still be the answer, in steps of its dtype


@dataclass(frozen=True)
class TrivialOutput:
    """An output that takes no computing and passes a check all the same."""

    words: str  # "zeros", "argument 1"
    output: Array


def find_trivial_output(case: Case) -> TrivialOutput | None:
    """The first of zeros, any other constant and an array argument that passes as the case's output.

    None where none passes, and where the one that passes is the answer up to the rounding of the output's
    dtype: attention over one key returns `v`, a softmax over one column ones.
    """
    return next((output for output in _trivial_outputs(case) if _passes_wrongly(case, output.output)), None)


def find_confused(cases: Sequence[Case]) -> tuple[int, int] | None:
    """The first two cases, by place, of which the reference of the second passes as the output of the first.

    Cases of other shapes and with the same answer are no such pair.
    """
    for first, second in permutations(range(len(cases)), 2):
        other = cases[second].reference
        if other.shape == cases[first].reference.shape and _passes_wrongly(cases[first], other):
            return first, second
    return None


def spread(case: Case) -> float:
    """Half the distance between the smallest and the largest finite element of the reference.

    An absolute tolerance from here on lets a constant pass.
    """
    finite = case.reference[np.isfinite(case.reference)]
    return float(finite.max() - finite.min()) / 2 if finite.size else 0.0


def _trivial_outputs(case: Case) -> Iterator[TrivialOutput]:
    reference = case.reference
    if not reference.size:
        return
    yield TrivialOutput("zeros", np.broadcast_to(0.0, reference.shape))
    if _constant(_sampled(case)) is not None and (constant := _constant(case)) is not None:
        yield TrivialOutput(f"the constant {constant:.3g}", np.broadcast_to(constant, reference.shape))
    for number, argument in enumerate(case.arguments, 1):
        if not isinstance(argument, np.ndarray) or argument is case.output:
            continue
        if argument.size == reference.size and argument.dtype.kind in "biuf":
            yield TrivialOutput(f"argument {number} unchanged", argument.reshape(reference.shape))


def _constant(case: Case) -> float | None:
    """A number that is within tolerance of every element; None where there is none."""
    reference = case.reference
    if not np.isfinite(reference).all():
        return None
    magnitude = np.abs(reference) if case.magnitude is None else case.magnitude
    allowed = case.tolerance.absolute + case.tolerance.relative * magnitude
    lowest, highest = float((reference - allowed).max()), float((reference + allowed).min())
    return (lowest + highest) / 2 if lowest <= highest else None


def _sampled(case: Case) -> Case:
    """The case with at most about _SAMPLE of its elements, which lie apart from each other."""
    magnitude = case.magnitude
    return replace(
        case,
        reference=_some(case.reference),
        magnitude=None if magnitude is None else _some(magnitude),
    )


def _some(values: Array) -> Array:
    step = max(1, values.size // _SAMPLE) | 1  # odd: no power of two, in which sizes repeat
    return values.reshape(-1)[::step]


def _passes_wrongly(case: Case, output: Array) -> bool:
    """Whether an output passes that is not the answer."""
    if _sampled(case).check(_some(output)).wrong or case.check(output).wrong:
        return False
    # From here on the output is finite wherever the reference is.
    finite = np.isfinite(case.reference)
    answer, given = case.reference[finite], output.astype(np.float64)[finite]
    step = np.finfo(case.output.dtype).eps if case.output.dtype.kind == "f" else 0.0
    rounding = _ULPS * float(step) * np.abs(answer).max(initial=0.0)
    return bool((np.abs(given - answer) > rounding).any())
