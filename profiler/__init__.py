"""Attention-kernel profiler: is this version right, is it faster, why, and did anything get worse."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def lazy(room: str, **modules: str) -> Callable[[str], Any]:
    """The `__getattr__` of a room: each module with the public names it defines, imported on first use.

    Importing a room costs nothing until a name of it is used (PEP 562), so that a command loads what it needs
    and a bare GPU machine never meets a library that only the dashboard has.
    """
    places = {name: module for module, names in modules.items() for name in names.split()}
    package = sys.modules[room]
    package.__dict__["__all__"] = list(places)
    package.__dict__["__dir__"] = lambda: sorted({*package.__dict__, *places})

    def attribute(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(import_module(f"{room}.{places[name]}"), name)
        package.__dict__[name] = value
        return value

    return attribute


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
