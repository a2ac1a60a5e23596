"""Names of functions with the types of their parameters, where a demangler is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection

_DEMANGLERS = ("cu++filt", "c++filt", "llvm-cxxfilt")  # of CUDA, of binutils, of LLVM
_LIMIT_S = 30.0


def signatures(names: Collection[str]) -> dict[str, str]:
    """By mangled name `void rows<64>(float*, int)`, all asked for at once.

    Without what no demangler knows; empty where none is installed, or it fails.
    """
    mangled = [name for name in dict.fromkeys(names) if name.startswith("_Z") and "\n" not in name]
    program = next(filter(None, map(shutil.which, _DEMANGLERS)), None)
    if not mangled or program is None:
        return {}
    try:
        done = subprocess.run(
            [program], input="\n".join(mangled) + "\n", capture_output=True, text=True, timeout=_LIMIT_S
        )
    except (OSError, UnicodeError, subprocess.TimeoutExpired):
        return {}
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != len(mangled):
        return {}
    return {name: line for name, line in zip(mangled, lines, strict=True) if line != name}
