"""Where the programs of the CUDA toolkit are: in $CUDA_HOME, on the PATH, or in wheels."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from profiler.errors import CannotJudge

# A checkout is installed from its folder, a wheel by its name.
_IS_CHECKOUT = (Path(__file__).resolve().parents[2] / "pyproject.toml").is_file()
_PACKAGE = "-e '.[build]'" if _IS_CHECKOUT else "'attention-kernel-profiler[build]'"
INSTALL_HINT = f"install the CUDA toolkit, or its wheels: `pip install {_PACKAGE}`"


@dataclass(frozen=True)
class ToolkitProgram:
    """One program of the CUDA toolkit."""

    path: Path
    version: str  # 13.0.88
    wheel_root: Path | None  # the toolkit's folder in the wheel; None where it comes from no wheel


def find_tool(name: str) -> ToolkitProgram | None:
    """The program; None where there is none. $CUDA_HOME comes before the PATH, the PATH before the wheels."""
    return _find(name, os.environ.get("CUDA_HOME", ""), os.environ.get("PATH", ""))


def require_tool(name: str) -> ToolkitProgram:
    """The program. Raises CannotJudge where there is none, with how to install it."""
    tool = find_tool(name)
    if tool is None:
        raise CannotJudge(
            f"{name} is neither in $CUDA_HOME/bin, nor on the PATH, nor in a wheel: {INSTALL_HINT}"
        )
    return tool


@cache
def _find(name: str, cuda_home: str, path: str) -> ToolkitProgram | None:
    candidates: list[tuple[Path, Path | None]] = []
    if cuda_home:
        candidates.append((Path(cuda_home) / "bin" / name, None))
    if on_path := shutil.which(name, path=path):
        candidates.append((Path(on_path), None))
    candidates.extend((root / "bin" / name, root) for root in _wheel_roots())
    for program, root in candidates:
        if program.is_file() and (version := program_version(program)):
            return ToolkitProgram(program, version, root)
    return None


def _wheel_roots() -> list[Path]:
    """The toolkits that NVIDIA's wheels installed: …/site-packages/nvidia/cu13."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return sorted(path for folder in folders for path in Path(folder).glob("cu[0-9]*") if path.is_dir())


def program_version(program: Path) -> str | None:
    try:
        text = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"V(\d+\.\d+\.\d+)", text) or re.search(r"release (\d+\.\d+)", text)
    return match[1] if match else None
