"""Machine code with its names: of the report or version it is of, of its kernel and of its functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from profiler.build.kernel_names import function_name, template_integer
from profiler.sass.alignment import pair_functions
from profiler.sass.listing import Listing

_HEAD_DIM = "head dim "  # what a workload of static facts begins with


class CodeReport(NamedTuple):
    """A report that code is read from."""

    run_id: str
    sha256: str
    version: str  # or the run id, where a run is of several versions
    file: str  # its name where a run keeps several; else ""
    gpu: str
    family: str | None  # None: several

    @property
    def title(self) -> str:
        """What the report is called: version, family, and the file where a run keeps several."""
        name = f"{self.version} · {self.family or 'several families'}"
        return f"{name}: {self.file}" if self.file else name


class NamedCode(NamedTuple):
    """Machine code with what it is of."""

    version: str
    kernel: str
    listing: Listing


def function_label(mangled: str) -> str:
    """A function as it is called on screen: `v2d<64>`."""
    name, size = function_name(mangled), template_integer(mangled)
    return name if size is None else f"{name}<{size}>"


def function_labels(functions: Iterable[str]) -> dict[str, str]:
    """What each of several functions is called on screen: mangled where others would be called the same."""
    labels = {function: function_label(function) for function in functions}
    counts = Counter(labels.values())
    return {function: label if counts[label] == 1 else function for function, label in labels.items()}


def pairs_by_label(listings: Sequence[Listing]) -> dict[str, tuple[str, ...]]:
    """The functions that may be chosen, one a side, by what they are called: `v2c_v5<64> → v2d<64>`.

    Of two sides only functions that pair: those without a partner are seen where all functions are shown.
    """
    pairs: list[tuple[str, ...]] = []
    if len(listings) == 2:
        a, b = listings
        for index_a, index_b in pair_functions(a, b):
            if index_a is not None and index_b is not None:
                pairs.append((a.functions[index_a], b.functions[index_b]))
    else:
        pairs = [(function,) for listing in listings for function in listing.functions]
    by_label: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        label = " → ".join(dict.fromkeys(map(function_label, pair)))
        by_label[label if label not in by_label else f"{label} {pair[0]}"] = pair
    return by_label


def functions_of_workload(listings: Sequence[Listing], workload: str) -> list[str]:
    """The function of each side that static facts of a workload (`head dim 64`) are of.

    "" (all functions) on every side unless each side has exactly one such function.
    """
    size = workload.removeprefix(_HEAD_DIM) if workload.startswith(_HEAD_DIM) else ""
    functions = []
    for listing in listings:
        of_size = [function for function in listing.functions if str(template_integer(function)) == size]
        functions.append(of_size[0] if len(of_size) == 1 else "")
    return functions if all(functions) else [""] * len(listings)
