"""How a kernel's source becomes a library for the CPU: g++, the runtime in cpucuda/, the cache of both."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from profiler import build_folder
from profiler.catalog.catalog import PROJECT_KERNELS
from profiler.catalog.sources import included_files
from profiler.errors import BuildFailed, CannotJudge

RUNTIME = Path(__file__).resolve().parent / "cpucuda"

# x86-64-v3 converts fp16 in hardware.
_MACHINE = ("-march=x86-64-v3",) if platform.machine() == "x86_64" else ()
_COMMON = ("-std=c++17", "-g1", "-fPIC", *_MACHINE)
# a * b + c is rounded once, as nvcc does it: g++ contracts only with these, which -O1 leaves out.
_CONTRACT = ("-ffp-contract=fast", "-fexpensive-optimizations")
# -fsanitize=thread puts a call before every access of memory, and cpucuda/runtime.cpp defines what is called.
# Locals start as a pattern, since zeros would hide a mistake. -O2 takes longer to compile than it saves.
_KERNEL = ("-O1", *_CONTRACT, "-fsanitize=thread", "-ftrivial-auto-var-init=pattern", "-w", "-x", "c++")
_KEPT_FLAGS = ("-D", "-U")  # of a version's flags; the others are nvcc's, and folders come in `include`


_runtime_lock = threading.Lock()  # threads compile side by side; the runtime is compiled once


def cache_folder() -> Path:
    """Where CPU builds are kept: a folder of their own beside the libraries for the GPU."""
    return build_folder() / "cpu"


def build_cpu_library(
    source: Path, flags: Sequence[str] = (), include: Sequence[Path] = (), folder: Path | None = None
) -> Path:
    """Compile a source and the runtime to a shared library, cached by the hash of all that goes into it.

    Headers are looked for in `include`, beside the source and in the project's kernels/. Raises BuildFailed
    with the compiler's message, CannotJudge where there is no g++ 12 or newer.
    """
    source, folder = source.resolve(), folder or cache_folder()
    folders = list(dict.fromkeys((*(path.resolve() for path in include), source.parent, PROJECT_KERNELS)))
    command = [
        *(_compiler(), *_COMMON, *_KERNEL),
        *(f"-I{path}" for path in (RUNTIME / "include", *folders)),
        *(flag for flag in flags if flag.startswith(_KEPT_FLAGS)),
    ]
    runtime_sources, runtime_command = _runtime()
    runtime = folder / f"runtime-{_digest(runtime_sources, runtime_command)}.o"
    library = (
        folder / f"{source.stem}-{_digest(included_files(source, folders), [*command, runtime.name])}.so"
    )
    if library.is_file():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        compiled, linked = Path(scratch) / "kernel.o", Path(scratch) / "kernel.so"
        _compile([*command, "-c", str(source), "-o", str(compiled)], source)
        with _runtime_lock:
            if not runtime.is_file():
                compiled_runtime = Path(scratch) / "runtime.o"
                _compile([*runtime_command, "-o", str(compiled_runtime)], RUNTIME / "runtime.cpp")
                os.replace(compiled_runtime, runtime)
        # -Bsymbolic: its calls must reach its own runtime, whatever else the process has loaded.
        link = ["-shared", "-Wl,-Bsymbolic,-z,defs", "-o", str(linked), str(compiled), str(runtime), "-ldl"]
        _compile([_compiler(), *link], source)
        os.replace(linked, library)
    return library


def _runtime() -> tuple[list[Path], list[str]]:
    """The runtime's files and the command that compiles them."""
    include, source = RUNTIME / "include", RUNTIME / "runtime.cpp"
    command = [_compiler(), *_COMMON, "-O2", "-fvisibility=hidden", f"-I{include}", "-c", str(source)]
    return [source, *sorted((*RUNTIME.glob("*.h"), *include.glob("*.h")))], command


def _compile(command: Sequence[str], source: Path) -> None:
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        first_error = next((line for line in process.stderr.splitlines() if "error" in line), "")
        message = f"{source.name} does not compile for the CPU: {first_error}\n{process.stderr}"
        raise BuildFailed(message.rstrip())


@cache
def _compiler() -> str:
    path = shutil.which("g++")
    hint = "install g++ 12 or newer (Debian, Ubuntu: apt-get install g++), which the CPU check compiles with"
    if path is None:
        raise CannotJudge(f"there is no g++: {hint}")
    version = subprocess.run([path, "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    if not version or int(version.split(".")[0]) < 12:
        raise CannotJudge(f"g++ {version or 'of unknown version'} has no half precision: {hint}")
    return path


@cache
def _compiler_version() -> bytes:
    return subprocess.run([_compiler(), "-v"], capture_output=True).stderr


def _digest(files: Iterable[Path], words: Iterable[str]) -> str:
    digest = hashlib.sha256(_compiler_version())
    for path in files:
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    digest.update("\0".join(words).encode())
    return digest.hexdigest()[:16]
