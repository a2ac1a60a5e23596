"""What the attention versions solve, O = softmax(Q K^T * scale) V: sizes, inputs, reference, tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.catalog import fp8
from profiler.catalog.problem import ALL_STAGES, Array, Case, ContractCall, Tolerance

# What the inputs are like. Standard normal ones give scores about N(0, 1), which a softmax computes without
# its maximum, or with a wrong one, and which hide what is rounded too early.
NORMAL = "normal"
INPUTS = {
    NORMAL: "standard normal",
    "offsets": "a row's scores lie up to 400 from 0, rise or fall over the keys, or one key stands out",
    "sharp": "a scale of 6 / sqrt(head_dim): few keys have all the weight",
    "flat": "scores about 0 and values about 100: every key has the same weight",
}
_SHARP_SCALE = 6.0
# Of "offsets", in scores. An exponential without the row's maximum overflows from 88 on, so that a maximum of
# a part of the keys shows where the rest lies further above it: by the steep ramp, or at a single key.
_ROW_OFFSET = 400.0  # either side of 0
_RAMP, _STEEP_RAMP = 10.0, 100.0  # either side of 0; the steep one in two rows of eight
_PEAK = 150.0  # of one key above the others of its row
_PEAK_AFTER_TILES = 40  # a key within the second tile of 32, and no first one of a warp
# Of "flat". A sum of 2,048 such values is beyond fp16.
_FLAT_SCORES, _FLAT_MEAN, _FLAT_SD = 1.0 / 64, 100.0, 20.0


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
    inputs: str = NORMAL  # of INPUTS

    def __post_init__(self) -> None:
        if min(self.batch, self.heads, self.len_q, self.len_kv, self.head_dim) < 1:
            raise ValueError(f"a workload's sizes are at least 1: {self}")
        if self.dtype not in ("fp16", "fp8"):
            raise ValueError(f"dtype {self.dtype!r} is neither fp16 nor fp8")
        if self.inputs not in INPUTS:
            raise ValueError(f"inputs are {', '.join(INPUTS)}, not {self.inputs!r}")

    @property
    def label(self) -> str:
        """batch x heads x len x head_dim (len_q:len_kv if they differ), causal, dtype, inputs.

        A dtype of fp16 and normal inputs are not in it.
        """
        length = f"{self.len_q}" if self.len_q == self.len_kv else f"{self.len_q}:{self.len_kv}"
        words = [f"{self.batch}x{self.heads}x{length}x{self.head_dim}"]
        words += ["causal"] if self.causal else []
        words += [self.dtype] if self.dtype != "fp16" else []
        words += [self.inputs] if self.inputs != NORMAL else []
        return " ".join(words)

    def sizes(self) -> dict[str, int | str | bool]:
        """See Workload; `inputs` only where they are not normal."""
        sizes = asdict(self)
        if self.inputs == NORMAL:
            del sizes["inputs"]
        return sizes

    @property
    def scale(self) -> float:
        """What scores are multiplied by."""
        return float(self.head_dim**-0.5) * (_SHARP_SCALE if self.inputs == "sharp" else 1.0)

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
# What versions are checked on, small enough for the emulator: sizes (batch, heads, len_q, len_kv, head_dim),
# causal, inputs. bench/mutants.py shows what each catches that no other does. In most of them no two sizes
# are equal, so that none can stand for another; lengths end within a tile, and some a row or key into it.
_CHECK_WORKLOADS = (
    ((1, 2, 128, 128, 64), False, NORMAL),  # whole tiles
    ((1, 2, 128, 128, 64), True, NORMAL),
    ((2, 5, 45, 78, 64), True, "offsets"),
    ((2, 2, 145, 44, 128), True, "sharp"),  # blocks whose queries see no key; 145 is 1 more than tiles of 48
    ((1, 2, 97, 65, 128), False, "offsets"),  # 97 is 1 more than tiles of 32 and 48; 65 of 32 and 64
    ((1, 1, 600, 5, 64), False, "sharp"),  # many tiles of queries, and fewer keys than a tile
    ((1, 1, 20, 260, 128), False, "sharp"),  # many tiles of keys for one of queries
    ((1, 1, 33, 2048, 64), False, "flat"),
)
_RANDOM_PAIRS = 24_000  # at most, of (query, key) pairs in a random workload with a head_dim of 64
_HEAD_DIMS = (64, 128)  # what kernels/attention.h allows
_HALF_ULP = 2.0**-11  # of fp16, relative
# O is rounded to fp16, and P before it is multiplied, so that an element errs by at most half an ulp of
# itself and half an ulp of sum(P |V|). The absolute part is for the exponentials and the order of sums, in
# fp32. 8-bit codes are judged alike: the reference is that of what they stand for.
_TOLERANCE = Tolerance(5e-5, _HALF_ULP)
# Probabilities are about 1/len, so that an absolute 1e-3 would let anything pass. The relative 1e-3 is for
# versions that round P to fp16.
_SOFTMAX_TOLERANCE = Tolerance(1e-5, 1e-3)
_SCORES_TOLERANCE = Tolerance(1e-3, 1e-3)


@dataclass(frozen=True)
class Attention:
    """O = softmax(Q K^T / sqrt(head_dim)) V, causal or not; kernels/attention.h is its C side."""

    name: str = "attention"
    symbol: str = "attention_forward"
    stages: tuple[str, ...] = ("QK", "SOFTMAX", "PV")
    may_restrict: tuple[str, ...] = ("head_dim", "causal")
    arguments: tuple[str, ...] = (
        *("q", "k", "v", "o", "scales", "batch", "heads", "len_q", "len_kv", "head_dim", "scale", "causal"),
    )

    def workload(self, **sizes: Any) -> AttentionWorkload:
        """See Problem; len_kv may be left out, and `inputs` where they are normal."""
        return AttentionWorkload(**{"len_kv": sizes.get("len_q"), **sizes})

    def check_workloads(self, dtype: str, sizes: Sequence[int]) -> list[AttentionWorkload]:
        """See Problem."""
        if unknown := [size for size in sizes if size not in _HEAD_DIMS]:
            raise ValueError(f"a head_dim is one of {_HEAD_DIMS}, not {unknown[0]}")
        return [
            AttentionWorkload(*shape, causal=causal, dtype=dtype, inputs=inputs)
            for shape, causal, inputs in _CHECK_WORKLOADS
            if shape[-1] in sizes
        ]

    def acceptance_workloads(self, dtype: str) -> list[AttentionWorkload]:
        """See Problem; the headline comes first."""
        return [replace(workload, dtype=dtype) for workload in ACCEPTANCE]

    def random_workload(
        self, rng: np.random.Generator, dtype: str, sizes: Sequence[int]
    ) -> AttentionWorkload:
        """See Problem: lengths that end anywhere in a tile, and every kind of inputs."""
        shape = int(rng.integers(4))
        if shape == 0:  # tails of several tiles
            len_q, len_kv = (int(rng.integers(33, 150)) for _ in range(2))
        elif shape == 1:  # many keys for few queries
            len_q, len_kv = int(rng.integers(1, 20)), int(rng.integers(200, 420))
        elif shape == 2:  # many queries, fewer keys than a tile
            len_q, len_kv = int(rng.integers(150, 400)), int(rng.integers(1, 30))
        else:
            len_q = len_kv = int(rng.integers(20, 180))
        head_dim = int(rng.choice(list(sizes)))
        most = max(1, _RANDOM_PAIRS * 64 // (len_q * len_kv * head_dim))
        heads = int(rng.integers(1, min(5, most) + 1))
        batch = int(rng.integers(1, min(3, max(1, most // heads)) + 1))
        kinds = [kind for kind in INPUTS if kind != NORMAL]
        inputs = str(rng.choice([NORMAL, *kinds]))
        return AttentionWorkload(batch, heads, len_q, len_kv, head_dim, bool(rng.integers(2)), dtype, inputs)

    def case(self, workload: AttentionWorkload, seed: int, stage: str = ALL_STAGES) -> Case:
        """Random inputs of the workload's kind and the reference of one stage.

        QK writes scaled scores S and SOFTMAX probabilities P, fp32 [batch, heads, len_q, len_kv]; PV takes
        the score of every visible key as 0. A row that sees no key is 0 in P and O, and -inf in S.
        """
        w = workload
        tensors, arguments, output = _draw_arguments(w, seed, stage)
        exact = tensors
        if w.dtype == "fp8":
            scales = arguments[4]
            exact = [
                fp8.dequantize(codes, head_scales)
                for codes, head_scales in zip(arguments[:3], scales, strict=True)
            ]
        writes_scores = stage in ("QK", "SOFTMAX")
        reference = attention_reference(exact, w.scale, w.causal, stage)
        magnitude = input_error = None
        if w.dtype == "fp8" and stage == ALL_STAGES:
            input_error = float(np.abs(reference - attention_reference(tensors, w.scale, w.causal)).max())
        if not writes_scores:
            q, k, v = exact
            magnitude = np.abs(reference) + attention_reference((q, k, np.abs(v)), w.scale, w.causal, stage)
        tolerances = {"QK": _SCORES_TOLERANCE, "SOFTMAX": _SOFTMAX_TOLERANCE}
        return Case(
            arguments=arguments,
            operands=(*exact, w.scale, w.causal),
            output=output,
            reference=reference,
            tolerance=tolerances.get(stage, _TOLERANCE),
            magnitude=magnitude,
            input_error=input_error,
        )

    def inputs(self, workload: AttentionWorkload, seed: int) -> tuple[tuple[Any, ...], Array]:
        """See Problem."""
        _, arguments, output = _draw_arguments(workload, seed, ALL_STAGES)
        return arguments, output

    def contract_calls(self, workload: AttentionWorkload, sizes: Sequence[int]) -> list[ContractCall]:
        """See Problem: what kernels/attention.h says is refused, by its parameters from 0."""
        pointers = dict(enumerate(("q", "k", "v", "o")))
        lengths = {5: "batch", 6: "heads", 7: "len_q", 8: "len_kv"}
        other_sizes = [size for size in (0, 32, *_HEAD_DIMS, 80, 256) if size not in sizes]
        return [
            *(
                ContractCall(
                    f"{name} {distance} bytes past a 16-byte boundary", moved_bytes={position: distance}
                )
                for position, name in pointers.items()
                for distance in (2, 8)
            ),
            *(ContractCall(f"head_dim {size}", {9: size}) for size in other_sizes),
            *(ContractCall(f"{name} {size}", {p: size}) for p, name in lengths.items() for size in (0, -1)),
            *(ContractCall(f"scale {scale:g}", {10: scale}) for scale in (0.0, -0.125, float("nan"))),
            *([ContractCall("scales NULL", {4: None})] if workload.dtype == "fp8" else []),
        ]

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


def _draw_arguments(
    workload: AttentionWorkload, seed: int, stage: str
) -> tuple[list[Array], tuple[Any, ...], Array]:
    """q, k and v as fp16, the C function's arguments, and the one of them that is its output."""
    w = workload
    tensors: list[Array] = [tensor.astype(np.float16) for tensor in _draw_inputs(w, seed)]
    # What the C function is given stands for the tensors: the same, unless it is given 8-bit codes.
    inputs, scales = tensors, None
    if w.dtype == "fp8":
        quantized = [fp8.quantize(tensor) for tensor in tensors]
        inputs = [codes for codes, _ in quantized]
        scales = np.stack([head_scales for _, head_scales in quantized])
    writes_scores = stage in ("QK", "SOFTMAX")
    output_shape = (w.batch, w.heads, w.len_q, w.len_kv if writes_scores else w.head_dim)
    output = np.full(output_shape, np.nan, np.float32 if writes_scores else np.float16)
    sizes = (w.batch, w.heads, w.len_q, w.len_kv, w.head_dim)
    return tensors, (*inputs, output, scales, *sizes, w.scale, int(w.causal)), output


def _draw_inputs(workload: AttentionWorkload, seed: int) -> list[NDArray[np.float32]]:
    """Random q, k and v of the workload's kind, before they are rounded."""
    w = workload
    rng = np.random.default_rng(seed)
    shapes = [(w.batch, w.heads, length, w.head_dim) for length in (w.len_q, w.len_kv, w.len_kv)]
    q, k, v = (rng.standard_normal(shape, np.float32) for shape in shapes)
    if w.inputs == "flat":
        q *= _FLAT_SCORES
        v = v * _FLAT_SD + _FLAT_MEAN
    elif w.inputs == "offsets":
        # A column of q and k each: 8 and 4 are k's share of the product.
        rows = np.arange(w.len_q)
        q[..., 0], k[..., 0] = rng.uniform(-_ROW_OFFSET, _ROW_OFFSET, q.shape[:3]) / w.scale / 8, 8
        height = np.where(rows % 8 < 2, _STEEP_RAMP, _RAMP) * np.where(rows % 2, -1, 1)
        q[..., 1], k[..., 1] = height / w.scale / 4, 4 * np.linspace(-1, 1, w.len_kv)
        for column, row, key in ((2, 2, _PEAK_AFTER_TILES), (3, 3, w.len_kv - 2)):
            q[..., column] = np.where(rows % 8 == row, _PEAK / w.scale / 8, 0)
            k[..., column] = np.where(np.arange(w.len_kv) == key, 8, 0)
    return [q, k, v]


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
