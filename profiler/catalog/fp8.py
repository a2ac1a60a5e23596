"""The 8-bit codes of the fp8 versions: what a code stands for, and how a tensor becomes codes.

A code is an unsigned byte and stands for (code - 128) * scale, with one float32 scale a head. So 128 is zero.
The kernels look code - 128 up in a table of 256 halves, where it is exact, and apply the scale later. The
codes are linear ("fp8" is the owner's name for the branch; in e4m3, 128 would be minus zero) and symmetric:
1 to 255 stand for -127 to 127 scales, and 0 is left unused, so that every value's negative has a code.
"""

import numpy as np
from numpy.typing import NDArray

ZERO_CODE = 128
_STEPS = 127  # scales from zero to the largest code


def quantize(x: NDArray[np.float16]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Codes of the shape of x, [batch, heads, len, head_dim], and scales [batch, heads].

    A head's largest absolute value gets the code 1 or 255; every other value is at most half a scale off. A
    head of zeros has no largest value to take the scale from: its scale is 1 and its codes are 128 (with a
    scale of 0 they would be 0 / 0). Raises ValueError for values that are not finite.
    """
    if not np.isfinite(x).all():
        raise ValueError("quantize: infinite or NaN values have no code")
    values = x.astype(np.float64)
    largest = np.abs(values).max(axis=(-2, -1))
    scales = np.where(largest == 0, 1.0, largest / _STEPS).astype(np.float32)
    # Divided by the scale as it was rounded to float32: it is what the kernel is given.
    steps = np.rint(values / scales[..., None, None])
    return (np.clip(steps, -_STEPS, _STEPS) + ZERO_CODE).astype(np.uint8), scales


def dequantize(codes: NDArray[np.uint8], scales: NDArray[np.float32]) -> NDArray[np.float64]:
    """What the codes stand for: the inputs of the reference that a kernel is judged against.

    The reference on these, less the reference on the fp16 inputs, is the quantisation error. It is the codes'
    and not the kernel's, and is reported apart.
    """
    return (codes.astype(np.float64) - ZERO_CODE) * scales.astype(np.float64)[..., None, None]
