"""What the mangled name of a kernel function says: its plain name and its first template integer."""

from __future__ import annotations

import re

# What a compiler puts into the names of an anonymous namespace, made of the path that it was given.
_ANONYMOUS = re.compile(r"(_GLOBAL__N__)[0-9a-f]{8}_")


def function_name(mangled: str) -> str:
    """The plain function name of an Itanium-mangled one, without namespace and template."""
    return _split(mangled)[0]


def template_integer(mangled: str) -> int | None:
    """The first integer template argument of an Itanium-mangled name, or None: `_Z1kILi64EE…` gives 64.

    By convention that is the head dimension.
    """
    match = re.search(r"L[ijlm](\d+)E", _split(mangled)[1])
    return int(match[1]) if match else None


def without_path_hash(mangled: str) -> str:
    """The name without what the compiler makes of the source's path: builds in two folders then agree."""
    return _ANONYMOUS.sub(r"\1", mangled)


def _split(mangled: str) -> tuple[str, str]:
    """The function's name and what follows it. Source: Itanium C++ ABI, "External Names"."""
    prefix = re.match(r"_ZN?", mangled)
    if not prefix:
        return mangled, ""  # extern "C"
    name, rest = mangled, mangled[prefix.end() :]
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        name, rest = rest[length.end() : end], rest[end:]
    return name, rest
