"""What this package is: its version, where its own files are, and where it keeps what it builds."""

from __future__ import annotations

import os
from pathlib import Path

VERSION = "0.1.0"


def shipped(name: str) -> Path:
    """Where metrics.txt, kernels or app.py is: beside the package in a checkout, inside it once installed."""
    package = Path(__file__).resolve().parent
    inside = package / "shipped" / name
    return inside if inside.exists() else package.parent / name


def build_folder() -> Path:
    """Where compiled kernels are kept: $PROFILER_BUILD, else build/ in the working directory.

    An installed package keeps them in the user's cache: it must not leave folders wherever it is called.
    """
    if named := os.environ.get("PROFILER_BUILD"):
        return Path(named).resolve()
    if shipped("kernels").parent.name != "shipped":
        return Path("build").resolve()
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "attention-kernel-profiler" / "build"
