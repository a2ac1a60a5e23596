"""Attention-kernel profiler: is this version right, is it faster, why, and did anything get worse."""

import sys
from collections.abc import Callable
from importlib import import_module
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
