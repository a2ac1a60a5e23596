"""What a version and a problem are: catalogues, sources, references, torch's own kernels.

A problem of another folder takes `Case`, `ContractCall`, `OutputCheck`, `Problem`, `Tolerance` and `Workload`
from here.
"""

from importlib import import_module

_FOR_PROBLEMS = ("Case", "ContractCall", "OutputCheck", "Problem", "Tolerance", "Workload", "check_output")


def __getattr__(name: str) -> object:
    if name not in _FOR_PROBLEMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("profiler.catalog.problem"), name)
