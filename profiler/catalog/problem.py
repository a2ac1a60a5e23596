"""What the versions of a family solve, declared once: inputs, float64 reference, tolerance, FLOPs, bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Argument = Array | int | float | None

ALL_STAGES = "ALL"  # the stage that is the whole problem


@dataclass(frozen=True)
class Tolerance:
    """How far an element may be from the reference: absolute + relative * |reference|."""

    absolute: float
    relative: float


@dataclass(frozen=True)
class OutputCheck:
    """An output against its reference."""

    max_abs_error: float | None  # None: an element that should be finite is not, or the reverse
    wrong: int  # elements out of tolerance, those that are not finite included
    not_finite: int  # elements that should be finite and are not
    first_wrong: tuple[int, ...] | None = None  # index of the first element out of tolerance


@dataclass(frozen=True)
class Case:
    """One call, and all that decides whether it was right.

    arguments are those of the C function in its order, without the stream, which every function takes last.
    operands are what a Python version gets instead. output is one of arguments and starts as NaN.
    """

    arguments: tuple[Argument, ...]
    operands: tuple[Argument, ...]
    output: Array
    reference: NDArray[np.float64]
    tolerance: Tolerance
    input_error: float | None = None  # what rounding the inputs to codes alone does to the result


class Workload(Protocol):
    """The size of one problem."""

    @property
    def label(self) -> str:
        """Its name in every output: equal labels are equal workloads."""

    def sizes(self) -> dict[str, int | str | bool]:
        """Every size by name, for JSON."""


class Problem(Protocol):
    """What a family is: attention below, a GEMM or any other in a file of the user's."""

    name: str
    symbol: str  # of the C function in every version's library
    stages: tuple[str, ...]  # parts that a version can be built to stop after, in order

    def workload(self, **sizes: Any) -> Any:
        """A workload from its sizes. Raises TypeError or ValueError for sizes it does not have."""

    def check_workloads(self, dtype: str, sizes: Sequence[int]) -> list[Any]:
        """The workloads that a good version is checked on; the first is the one for rejected versions.

        sizes: those of its compile-time dimension (head_dim) that the version takes. Raises ValueError for
        a dtype or a size that the problem does not have.
        """

    def case(self, workload: Any, seed: int, stage: str = ALL_STAGES) -> Case:
        """Fresh random inputs, their reference and an output full of NaN."""

    def stage_flags(self, stage: str) -> tuple[str, ...]:
        """The compiler flags that build a version for one stage."""

    def flops(self, workload: Any) -> int:
        """The arithmetic that cannot be avoided."""

    def minimal_bytes(self, workload: Any) -> int:
        """Every input read once and every output written once."""


def check_output(output: Array, reference: NDArray[np.float64], tolerance: Tolerance) -> OutputCheck:
    """Compare element by element; an infinity is right only where the reference has the same."""
    got = output.astype(np.float64)
    finite = np.isfinite(reference)
    with np.errstate(invalid="ignore"):
        error = np.where(got == reference, 0.0, np.abs(got - reference))
    allowed = tolerance.absolute + tolerance.relative * np.abs(np.where(finite, reference, 0.0))
    wrong = ~(error <= allowed)  # NaN compares false
    indices = np.argwhere(wrong)
    return OutputCheck(
        max_abs_error=float(error.max()) if np.isfinite(error).all() else None,
        wrong=len(indices),
        not_finite=int((finite & ~np.isfinite(got)).sum()),
        first_wrong=tuple(int(i) for i in indices[0]) if len(indices) else None,
    )


@dataclass(frozen=True)
class AttentionWorkload:
    """[batch, heads, len, head_dim] of q and o (len_q) and of k and v (len_kv)."""

    batch: int
    heads: int
    len_q: int
    len_kv: int
    head_dim: int
    causal: bool = False
    dtype: str = "fp16"  # fp16, or fp8: 8-bit codes with a scale a head

    def __post_init__(self) -> None:
        if min(self.batch, self.heads, self.len_q, self.len_kv, self.head_dim) < 1:
            raise ValueError(f"a workload's sizes are at least 1: {self}")
        if self.dtype not in ("fp16", "fp8"):
            raise ValueError(f"dtype {self.dtype!r} is neither fp16 nor fp8")

    @property
    def label(self) -> str:
        """batch x heads x len x head_dim (len_q:len_kv where they differ), causal, a dtype if not fp16."""
        length = f"{self.len_q}" if self.len_q == self.len_kv else f"{self.len_q}:{self.len_kv}"
        words = [f"{self.batch}x{self.heads}x{length}x{self.head_dim}"]
        words += ["causal"] if self.causal else []
        words += [self.dtype] if self.dtype != "fp16" else []
        return " ".join(words)

    def sizes(self) -> dict[str, int | str | bool]:
        """See Workload."""
        return asdict(self)

    @property
    def visible_pairs(self) -> int:
        """(query, key) pairs that a head computes."""
        if not self.causal:
            return self.len_q * self.len_kv
        keys = np.clip(np.arange(self.len_q) + 1 + self.len_kv - self.len_q, 0, self.len_kv)
        return int(keys.sum())


def _square(
    batch: int, heads: int, length: int, head_dim: int, causal: bool = False, dtype: str = "fp16"
) -> AttentionWorkload:
    return AttentionWorkload(batch, heads, length, length, head_dim, causal, dtype)


HEADLINE = _square(1, 8, 512, 64)
ACCEPTANCE = (
    HEADLINE,
    _square(1, 8, 512, 64, causal=True),
    _square(2, 8, 2048, 64),
    _square(2, 8, 2048, 64, causal=True),
    _square(2, 8, 2048, 128),
)
# Small ones that reach every branch, (batch, heads, len_q, len_kv, head_dim) and the masks: whole tiles, a
# ragged end, the other head_dim; several tiles of keys for one of queries (a tile is overwritten while some
# may still read it), and blocks whose queries see no key.
_BOTH = (False, True)
_CHECKED = (
    ((1, 2, 128, 128, 64), _BOTH),
    ((1, 2, 100, 100, 64), _BOTH),
    ((1, 1, 96, 96, 128), _BOTH),
    ((1, 1, 40, 200, 64), (False,)),
    ((1, 1, 200, 40, 64), (True,)),
)
_HEAD_DIMS = (64, 128)  # that attention.h has
_TOLERANCE = {
    # Half an ulp of fp16 is already 9.8e-4 between 2 and 4: a bare 1e-3 would fail a perfect kernel.
    "fp16": Tolerance(1e-3, 1e-3),
    "fp8": Tolerance(1e-2, 1e-2),
}
# Probabilities are about 1/len: 1e-3 would let anything pass. Relative 1e-3: a version may round P to fp16.
_SOFTMAX_TOLERANCE = Tolerance(1e-5, 1e-3)


@dataclass(frozen=True)
class Attention:
    """O = softmax(Q K^T / sqrt(head_dim)) V, causal or not; kernels/attention.h is its C side."""

    name: str = "attention"
    symbol: str = "attention_forward"
    stages: tuple[str, ...] = ("QK", "SOFTMAX", "PV")

    def workload(self, **sizes: Any) -> AttentionWorkload:
        """See Problem; len_kv may be left out."""
        return AttentionWorkload(**{"len_kv": sizes.get("len_q"), **sizes})

    def check_workloads(self, dtype: str, sizes: Sequence[int]) -> list[AttentionWorkload]:
        """See Problem."""
        if unknown := [size for size in sizes if size not in _HEAD_DIMS]:
            raise ValueError(f"a head_dim is one of {_HEAD_DIMS}, not {unknown[0]}")
        return [
            AttentionWorkload(*shape, causal=causal, dtype=dtype)
            for shape, masks in _CHECKED
            if shape[-1] in sizes
            for causal in masks
        ]

    def case(self, workload: AttentionWorkload, seed: int, stage: str = ALL_STAGES) -> Case:
        """Standard normal inputs.

        QK writes scaled scores and SOFTMAX probabilities, fp32 [batch, heads, len_q, len_kv]; PV has a score
        of 0 for every visible key. A row that sees no key is 0 in P and O, and -inf in S.
        """
        w = workload
        draw = np.random.default_rng(seed).standard_normal
        shapes = [(w.batch, w.heads, length, w.head_dim) for length in (w.len_q, w.len_kv, w.len_kv)]
        tensors: list[Array] = [draw(shape, np.float32).astype(np.float16) for shape in shapes]
        exact, scales, codes = tensors, None, tensors
        if w.dtype == "fp8":
            from profiler.catalog import fp8

            pairs = [fp8.quantize(tensor) for tensor in tensors]
            codes = [code for code, _ in pairs]
            scales = np.stack([scale for _, scale in pairs])
            exact = [fp8.dequantize(code, scale) for code, scale in pairs]
        scale = w.head_dim**-0.5
        matrix = stage in ("QK", "SOFTMAX")
        shape = (w.batch, w.heads, w.len_q, w.len_kv if matrix else w.head_dim)
        output = np.full(shape, np.nan, np.float32 if matrix else np.float16)
        reference = attention_reference(exact, scale, w.causal, stage)
        error = None
        if exact is not tensors and stage == ALL_STAGES:
            error = float(np.abs(reference - attention_reference(tensors, scale, w.causal)).max())
        lengths = (w.batch, w.heads, w.len_q, w.len_kv, w.head_dim)
        return Case(
            arguments=(*codes, output, scales, *lengths, scale, int(w.causal)),
            operands=(*exact, scale, w.causal),
            output=output,
            reference=reference,
            tolerance=_SOFTMAX_TOLERANCE if stage == "SOFTMAX" else _TOLERANCE[w.dtype],
            input_error=error,
        )

    def stage_flags(self, stage: str) -> tuple[str, ...]:
        """See Problem."""
        return () if stage == ALL_STAGES else (f"-DONLY=ONLY_{stage}",)

    def flops(self, workload: AttentionWorkload) -> int:
        """Two products of 2 * head_dim a visible pair; what the mask hides does not count."""
        return 4 * workload.batch * workload.heads * workload.visible_pairs * workload.head_dim

    def minimal_bytes(self, workload: AttentionWorkload) -> int:
        """q, k, v and o once; the fp8 scales too."""
        w = workload
        heads, element = w.batch * w.heads, 1 if w.dtype == "fp8" else 2
        inputs = heads * (w.len_q + 2 * w.len_kv) * w.head_dim * element + (
            3 * heads * 4 if element == 1 else 0
        )
        return inputs + heads * w.len_q * w.head_dim * 2


def attention_reference(
    tensors: Sequence[Array], scale: float, causal: bool, stage: str = ALL_STAGES
) -> NDArray[np.float64]:
    """The result of a stage in float64, a head at a time: the largest workload's scores take 32 MB."""
    q, k, v = tensors
    len_q, len_kv = q.shape[2], k.shape[2]
    visible = np.tri(len_q, len_kv, len_kv - len_q, dtype=bool) if causal else np.ones((len_q, len_kv), bool)
    heads = []
    for head in np.ndindex(*q.shape[:2]):
        scores = q[head].astype(np.float64) @ k[head].astype(np.float64).T * scale
        scores = np.where(visible, 0.0 if stage == "PV" else scores, -np.inf)
        if stage == "QK":
            heads.append(scores)
            continue
        largest = scores.max(axis=1, keepdims=True, initial=-1e300)  # finite: -inf - -inf would be NaN
        weights = np.exp(scores - largest)
        total = weights.sum(axis=1, keepdims=True)
        weights /= np.where(total == 0, 1.0, total)
        heads.append(weights if stage == "SOFTMAX" else weights @ v[head].astype(np.float64))
    return np.stack(heads).reshape(*q.shape[:2], *heads[0].shape)


ATTENTION = Attention()


def workload_json(workload: Workload) -> Mapping[str, int | str | bool]:
    """Its sizes; `causal`, which stands beside the sizes in every output, left out."""
    return {name: size for name, size in workload.sizes().items() if name != "causal"}
