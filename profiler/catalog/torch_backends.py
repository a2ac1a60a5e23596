"""Attention kernels of others, called as versions are: torch's with each backend forced, and xFormers'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler.errors import CannotJudge

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn.attention import SDPBackend

# All take q [batch, heads, len_q, head_dim], k and v [batch, heads, len_kv, head_dim], and return q's shape.
# causal: key j is visible to query i where j <= i + len_kv - len_q. torch is imported inside the functions,
# since most commands never need it.


def sdpa(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> Tensor:
    """torch's attention with the backend that torch picks."""
    return _attention(q, k, v, scale, causal)


def sdpa_math(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> Tensor:
    """Unfused: scores and probabilities go through memory."""
    return _forced("MATH", q, k, v, scale, causal)


def sdpa_efficient(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> Tensor:
    """The memory-efficient kernel, which came from xFormers."""
    return _forced("EFFICIENT_ATTENTION", q, k, v, scale, causal)


def sdpa_flash(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> Tensor:
    """FlashAttention-2 as torch carries it."""
    return _forced("FLASH_ATTENTION", q, k, v, scale, causal)


def sdpa_cudnn(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> Tensor:
    """cuDNN's fused attention."""
    return _forced("CUDNN_ATTENTION", q, k, v, scale, causal)


def xformers(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> Tensor:
    """xFormers' memory_efficient_attention, whose own layout is [batch, len, heads, head_dim]."""
    try:
        from xformers import ops
        from xformers.ops.fmha import attn_bias
    except ImportError as error:
        raise CannotJudge(f"xFormers is not installed ({error}): pip install xformers") from None
    mask = attn_bias.LowerTriangularFromBottomRightMask() if causal else None
    transposed = (tensor.transpose(1, 2) for tensor in (q, k, v))
    out: Tensor = ops.memory_efficient_attention(*transposed, attn_bias=mask, scale=scale)
    return out.transpose(1, 2)


def _forced(backend: str, q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> Tensor:
    """torch's attention with one backend and no other. Raises CannotJudge where it takes no such inputs."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    forced: SDPBackend = getattr(SDPBackend, backend)
    try:
        with sdpa_kernel(forced):
            return _attention(q, k, v, scale, causal)
    except RuntimeError as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        problem = f"{list(q.shape)} {q.dtype} on {q.device}"
        raise CannotJudge(f"torch's {backend.lower()} backend does not take {problem}: {first}") from error


def _attention(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> Tensor:
    from torch.nn.attention.bias import causal_lower_right
    from torch.nn.functional import scaled_dot_product_attention as attention

    if causal and q.shape[-2] != k.shape[-2]:  # is_causal=True would align the mask at its start
        return attention(q, k, v, attn_mask=causal_lower_right(q.shape[-2], k.shape[-2]), scale=scale)
    return attention(q, k, v, is_causal=causal, scale=scale)
