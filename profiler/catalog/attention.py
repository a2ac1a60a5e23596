"""What the attention versions solve: O = softmax(Q K^T / sqrt(head_dim)) V, its sizes and its reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.catalog import fp8
from profiler.catalog.problem import ALL_STAGES, Array, Case, Tolerance


@dataclass(frozen=True)
class AttentionWorkload:
    """The sizes of a call: q and o are [batch, heads, len_q, head_dim], k and v have len_kv for len_q."""

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
        """(query, key) pairs that a head computes: those that the mask does not hide."""
        if not self.causal:
            return self.len_q * self.len_kv
        # The masks' ends meet, so that the last query sees every key (kernels/attention.h).
        keys_of_query = np.clip(np.arange(self.len_q) + 1 + self.len_kv - self.len_q, 0, self.len_kv)
        return int(keys_of_query.sum())


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
# What versions are checked on, small enough for the emulator: (batch, heads, len_q, len_kv, head_dim), and
# without and with the causal mask.
_BOTH_MASKS = (False, True)
_CHECK_SHAPES = (
    ((1, 2, 128, 128, 64), _BOTH_MASKS),  # whole tiles
    ((1, 2, 100, 100, 64), _BOTH_MASKS),  # a ragged end
    ((1, 1, 96, 96, 128), _BOTH_MASKS),  # the other head_dim
    ((1, 1, 40, 200, 64), (False,)),  # several tiles of keys for one of queries: a tile may still be read
    ((1, 1, 200, 40, 64), (True,)),  # blocks whose queries see no key
)
_HEAD_DIMS = (64, 128)  # what kernels/attention.h allows
_TOLERANCE = {
    # Half an ulp of fp16 is already 9.8e-4 between 2 and 4: a bare 1e-3 would fail a perfect kernel.
    "fp16": Tolerance(1e-3, 1e-3),
    "fp8": Tolerance(1e-2, 1e-2),
}
# Probabilities are about 1/len, so that an absolute 1e-3 would let anything pass. The relative 1e-3 is for
# versions that round P to fp16.
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
            for shape, masks in _CHECK_SHAPES
            if shape[-1] in sizes
            for causal in masks
        ]

    def acceptance_workloads(self, dtype: str) -> list[AttentionWorkload]:
        """See Problem; the headline comes first."""
        return [replace(workload, dtype=dtype) for workload in ACCEPTANCE]

    def case(self, workload: AttentionWorkload, seed: int, stage: str = ALL_STAGES) -> Case:
        """Standard normal inputs and the reference of one stage.

        QK writes scaled scores S and SOFTMAX probabilities P, fp32 [batch, heads, len_q, len_kv]; PV takes
        the score of every visible key as 0. A row that sees no key is 0 in P and O, and -inf in S.
        """
        w = workload
        draw = np.random.default_rng(seed).standard_normal
        shapes = [(w.batch, w.heads, length, w.head_dim) for length in (w.len_q, w.len_kv, w.len_kv)]
        tensors: list[Array] = [draw(shape, np.float32).astype(np.float16) for shape in shapes]
        # What the C function is given and what that stands for: the same, unless it is given 8-bit codes.
        inputs, exact, scales = tensors, tensors, None
        if w.dtype == "fp8":
            quantized = [fp8.quantize(tensor) for tensor in tensors]
            inputs = [codes for codes, _ in quantized]
            scales = np.stack([head_scales for _, head_scales in quantized])
            exact = [fp8.dequantize(codes, head_scales) for codes, head_scales in quantized]
        scale = w.head_dim**-0.5
        writes_scores = stage in ("QK", "SOFTMAX")
        output_shape = (w.batch, w.heads, w.len_q, w.len_kv if writes_scores else w.head_dim)
        output = np.full(output_shape, np.nan, np.float32 if writes_scores else np.float16)
        reference = attention_reference(exact, scale, w.causal, stage)
        input_error = None
        if w.dtype == "fp8" and stage == ALL_STAGES:
            input_error = float(np.abs(reference - attention_reference(tensors, scale, w.causal)).max())
        sizes = (w.batch, w.heads, w.len_q, w.len_kv, w.head_dim)
        return Case(
            arguments=(*inputs, output, scales, *sizes, scale, int(w.causal)),
            operands=(*exact, scale, w.causal),
            output=output,
            reference=reference,
            tolerance=_SOFTMAX_TOLERANCE if stage == "SOFTMAX" else _TOLERANCE[w.dtype],
            input_error=input_error,
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
        heads = w.batch * w.heads
        input_elements = heads * (w.len_q + 2 * w.len_kv) * w.head_dim
        output_bytes = heads * w.len_q * w.head_dim * 2
        if w.dtype == "fp8":
            return (
                input_elements + 3 * heads * 4 + output_bytes
            )  # a code is a byte, a scale of q, k or v four
        return 2 * input_elements + output_bytes


def attention_reference(
    tensors: Sequence[Array], scale: float, causal: bool, stage: str = ALL_STAGES
) -> NDArray[np.float64]:
    """The result of a stage for q, k and v in float64, head by head: the scores of one take 32 MB."""
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
        # The initial value is finite, so that a row without a visible key gives 0 and not -inf - -inf = NaN.
        largest = scores.max(axis=1, keepdims=True, initial=-1e300)
        weights = np.exp(scores - largest)
        total = weights.sum(axis=1, keepdims=True)
        weights /= np.where(total == 0, 1.0, total)
        heads.append(weights if stage == "SOFTMAX" else weights @ v[head].astype(np.float64))
    return np.stack(heads).reshape(*q.shape[:2], *heads[0].shape)


ATTENTION = Attention()
