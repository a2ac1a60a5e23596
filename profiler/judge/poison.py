"""What memory holds before a candidate writes it: nothing that a result may depend on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

POISON = 0xFF  # of every byte: NaN in fp16 and fp32
PLAUSIBLE = -1  # in place of a byte: random numbers about 1, as an earlier result might look
# Zero is among them: a GPU's memory is often so, and the time is modelled with it.
POISONS = (POISON, PLAUSIBLE, 0x7B, 0x00)


def filled(size: int, poison: int) -> NDArray[np.uint8]:
    """So many bytes of a poison. Random numbers are others each time: code that knew them knew the check."""
    if poison != PLAUSIBLE:
        return np.full(size, poison, np.uint8)
    numbers = np.random.default_rng().standard_normal(-(-size // 2), np.float32).astype(np.float16)
    return numbers.view(np.uint8)[:size]
