"""Finding ncu and compute-sanitizer, which toolkits and packages often keep off the PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from profiler.build.toolchain import ToolkitProgram
from profiler.evidence.naming import natural_key

# Where the installers of NVIDIA and the distributions put them. The newest of several wins.
_FOLDERS = (
    "/usr/local/cuda/bin",
    "/usr/local/cuda*/bin",
    "/usr/local/cuda*/compute-sanitizer",
    "/opt/nvidia/nsight-compute/*",
    "/usr/lib/nsight-compute",
)
_VERSION = re.compile(r"\bVersion (\d+(?:\.\d+)+)")


def find(name: str) -> ToolkitProgram | None:
    """ncu or compute-sanitizer; None where it is not installed. $CUDA_HOME wins over the PATH."""
    return _find(name, os.environ.get("CUDA_HOME", ""), os.environ.get("PATH", ""))


@cache
def _find(name: str, cuda_home: str, path: str) -> ToolkitProgram | None:
    candidates = [Path(cuda_home) / "bin" / name, Path(cuda_home) / name / name] if cuda_home else []
    if on_path := shutil.which(name, path=path):
        candidates.append(Path(on_path))
    for pattern in _FOLDERS:
        folders = Path("/").glob(pattern.lstrip("/"))
        programs = [folder / name for folder in folders]
        candidates += sorted(programs, key=lambda program: natural_key(str(program)), reverse=True)
    for program in candidates:
        if program.is_file() and os.access(program, os.X_OK) and (version := version_of(program)):
            return ToolkitProgram(program, version, None)
    return None


def version_of(program: Path) -> str | None:
    """The version that the program prints, such as 2025.3.1.0; None where it does not run or prints none."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stdout)
    return match[1] if match else None
