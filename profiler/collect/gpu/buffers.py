"""A case's arrays on the GPU, the output between guards and poisoned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from profiler.catalog import Case
from profiler.catalog.problem import Array

GUARD_BYTES = 4096  # before and after an output: a write there is a write outside
_GUARD = 0xA5


@dataclass(frozen=True)
class Buffers:
    """One case's arrays on the GPU; numbers and None as they were."""

    arguments: tuple[Any, ...]
    operands: tuple[Any, ...]
    output: Any  # a view of `guarded`
    guarded: Any  # bytes: GUARD_BYTES before and after the output
    poison: Any  # what the output holds before a launch

    @property
    def nbytes(self) -> int:
        """What one launch reads and writes at least once, if it uses all of its arguments."""
        return sum(one.nbytes for one in self.arguments if hasattr(one, "data_ptr"))

    def reset(self) -> None:
        """Poison the output and renew its guards."""
        self.guarded.fill_(_GUARD)
        self.output.copy_(self.poison)

    def outside(self) -> bool:
        """Whether something wrote beside the output."""
        ends = (self.guarded[:GUARD_BYTES], self.guarded[-GUARD_BYTES:])
        return any(bool((end != _GUARD).any().item()) for end in ends)


def upload(torch: Any, case: Case, shift: int = 0) -> Buffers:
    """The case on the GPU. shift rolls every input by so many elements: other data of the same kind."""
    on_gpu: dict[int, Any] = {}
    kept: list[Array] = []  # ids of arrays are theirs as long as they live

    def tensor(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in on_gpu:
            array = np.ascontiguousarray(value)
            if shift:
                array = np.roll(array.reshape(-1), shift).reshape(array.shape)
            kept.append(value)
            on_gpu[id(value)] = torch.from_numpy(array).cuda()
        return on_gpu[id(value)]

    poison = torch.from_numpy(np.ascontiguousarray(case.output)).cuda()
    guarded = torch.full((case.output.nbytes + 2 * GUARD_BYTES,), _GUARD, dtype=torch.uint8, device="cuda")
    inside = guarded[GUARD_BYTES : GUARD_BYTES + case.output.nbytes]
    output = inside.view(poison.dtype).view(poison.shape)
    output.copy_(poison)
    on_gpu[id(case.output)] = output
    kept.append(case.output)
    arguments = tuple(tensor(value) for value in case.arguments)
    return Buffers(arguments, tuple(tensor(value) for value in case.operands), output, guarded, poison)
