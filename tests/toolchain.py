"""Which compilers this machine has: what a test needs of them, and what it says where one is missing."""

import shutil

import pytest

from profiler.build import toolchain

# Markers with the programs that a test runs; tests/conftest.py skips it where one of them is missing.
needs_nvcc = pytest.mark.compiler("nvcc")
needs_sass = pytest.mark.compiler("nvcc", "cuobjdump", "nvdisasm")
needs_gxx = pytest.mark.compiler("g++")


def missing(*names: str) -> str:
    """Why a test that needs these programs is skipped; empty where all of them are here."""
    host = [name for name in names if name in ("g++", "gcc") and shutil.which(name) is None]
    cuda = [name for name in names if name not in ("g++", "gcc") and toolchain.find_tool(name) is None]
    reasons = [f"there is no {name} here" for name in host]
    if cuda:
        reasons.append(f"{' and '.join(cuda)} missing here: {toolchain.INSTALL_HINT}")
    return "; ".join(reasons)
