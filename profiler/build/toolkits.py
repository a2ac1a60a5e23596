"""CUDA toolkits of other releases: from wheels, each in a folder of its own, or from a folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from profiler.build.library import first_error, run_compiler
from profiler.build.toolchain import find_tool, program_version
from profiler.errors import BuildFailed, CannotJudge, UnknownName
from profiler.package import build_folder

INSTALLED = "installed"  # the toolkit that every other command uses
_RELEASE = re.compile(r"\d+\.\d+(\.\d+)?")
_INSTALL_LIMIT_S = 900
_COMPILE_LIMIT_S = 600
_FLAGS = ("-lineinfo", "-std=c++17")


@dataclass(frozen=True)
class Toolkit:
    """The compiler and the assembler of one release."""

    name: str  # as it was asked for: 13.0, installed, or a folder
    nvcc: Path | None  # None: its wheels hold the assembler alone
    ptxas: Path
    version: str  # of ptxas: 13.0.88


def find_toolkit(name: str, *, progress: Callable[[str], None] | None = None) -> Toolkit:
    """The toolkit of a release such as 13.0 or 13.0.2, of a folder, or the one that is installed.

    A release is installed once from NVIDIA's wheels, below the folder of built kernels, and touches no Python
    environment. Raises UnknownName for what is none of the three, CannotJudge where it cannot be installed.
    """
    if name == INSTALLED:
        nvcc, ptxas = find_tool("nvcc"), find_tool("ptxas")
        if not nvcc or not ptxas:
            raise CannotJudge("no CUDA toolkit is installed: name a release, such as 13.0")
        return Toolkit(name, nvcc.path, ptxas.path, ptxas.version)
    if Path(name).is_dir():
        return _in_folder(name, Path(name))
    if not _RELEASE.fullmatch(name):
        raise UnknownName(f"{name!r} is no CUDA release (13.0), no folder of a toolkit, nor {INSTALLED!r}")
    folder = build_folder() / "toolkits" / name
    if not folder.is_dir():
        (progress or (lambda _: None))(f"installing the CUDA {name} compiler")
        _install(name, folder)
    return _in_folder(name, folder)


def _in_folder(name: str, folder: Path) -> Toolkit:
    found = {}
    for program in ("nvcc", "ptxas"):
        inside = ("bin", "nvidia/cu*/bin", "nvidia/cuda_nvcc/bin")
        places = [path for part in inside for path in sorted(folder.glob(f"{part}/{program}"))]
        found[program] = next((path for path in places if path.is_file()), None)
    ptxas = found["ptxas"]
    version = program_version(ptxas) if ptxas else None
    if ptxas is None or version is None:
        raise CannotJudge(f"{folder} holds no ptxas that runs")
    return Toolkit(name, found["nvcc"], ptxas, version)


def _install(name: str, folder: Path) -> None:
    wanted = f"cuda-toolkit[nvcc,cccl,cudart]=={name}" + (".*" if name.count(".") == 1 else "")
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        done = _pip(["install", "--target", str(making / "toolkit"), wanted])
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
            raise CannotJudge(
                f"the compiler of CUDA {name} cannot be installed: {(lines or ['pip failed'])[-1].strip()}"
            )
        try:
            (making / "toolkit").rename(folder)
        except OSError:  # another process was first
            if not folder.is_dir():
                raise
    except subprocess.TimeoutExpired:
        raise CannotJudge(
            f"the compiler of CUDA {name} was not installed within {_INSTALL_LIMIT_S} s"
        ) from None
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _pip(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=_INSTALL_LIMIT_S, stdin=subprocess.DEVNULL
    )


def compile_cubin(
    toolkit: Toolkit, source: Path, arch: str, defines: tuple[str, ...], flags: tuple[str, ...], output: Path
) -> None:
    """Make the cubin of a CUDA C++ or PTX file for one architecture.

    defines: STAGES=2, for CUDA C++ alone. flags: of nvcc. Raises BuildFailed with the compiler's first error,
    or the reason why the toolkit cannot compile such a file.
    """
    if source.suffix == ".ptx":
        command = [str(toolkit.ptxas), f"-arch={arch}", *flags]
    elif toolkit.nvcc is None:
        raise BuildFailed(
            f"the wheels of CUDA {toolkit.name} hold ptxas without nvcc: give PTX, "
            "or the folder of an installed toolkit"
        )
    else:
        command = [str(toolkit.nvcc), "-cubin", f"-arch={arch}", *_FLAGS, *(f"-D{one}" for one in defines)]
        command += flags
    passed, text = run_compiler([*command, "-o", str(output), str(source)], _COMPILE_LIMIT_S)
    if not passed or not output.is_file():
        raise BuildFailed(first_error(text).replace(f"{source.parent}{os.sep}", ""))
