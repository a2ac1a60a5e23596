"""How a kernel's source becomes a library for the CPU: g++, the runtime in cpucuda/, the cache of both."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from profiler.catalog.catalog import PROJECT_KERNELS
from profiler.catalog.sources import included_files
from profiler.errors import BuildFailed, CannotJudge
from profiler.package import build_folder

RUNTIME = Path(__file__).resolve().parent / "cpucuda"

# x86-64-v3 converts fp16 in hardware.
_MACHINE = ("-march=x86-64-v3",) if platform.machine() == "x86_64" else ()
# Without -fno-gnu-unique a library with a template's static variable is never unloaded, its state with it.
# With -fno-threadsafe-statics a static local is set up without calls that only the sanitizer's library has.
_COMMON = ("-std=c++17", "-g1", "-fPIC", "-fno-gnu-unique", "-fno-threadsafe-statics", *_MACHINE)
# a * b + c is rounded once, as nvcc does it: g++ contracts only with these, which -O1 leaves out.
_CONTRACT = ("-ffp-contract=fast", "-fexpensive-optimizations")
# -fsanitize=thread puts a call before every access of memory but those of memcpy and the like, and
# cpucuda/runtime.cpp defines what is called. Locals start as a pattern, since zeros would hide a mistake.
# -O2 takes longer to compile than it saves.
_CALLED_MOVES = ("-fno-builtin-memcpy", "-fno-builtin-memmove", "-fno-builtin-memset")  # inlined none is seen
_KERNEL = (
    *("-O1", *_CONTRACT, *_CALLED_MOVES),
    *("-fsanitize=thread", "-ftrivial-auto-var-init=pattern", "-w", "-x", "c++"),
)
# An expansion of LAUNCH in preprocessed code, up to where the lambda calls the kernel, by a name with
# its template arguments.
_LAUNCH = re.compile(
    r'(\bcpucuda::launch\("[^"\n]*",)([^;]*?\[[&=]\]\s*(?:\(\s*\)\s*)?\{\s*)'
    r"([\w:]+(?:<[^(){};]*>)?|\([\w:]+(?:<[^(){};]*>)?\))(\s*\()"
)
_PARENTHESIS = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[()]')  # or a literal, which may hold them
# In assembly: calls of what moves memory, and the pattern of g++ (bytes of 0xfe) where it is a number. As a
# float that pattern is finite, and a maximum that starts with it is right; with 0xfffe above it is NaN, and
# still an index far out of bounds.
_MOVES = re.compile(r"^(\s+(?:call|jmp|bl|b)\s+)(memcpy|memmove|memset)\b", re.MULTILINE)
_PATTERN = re.compile(r"(?<![\w-])(-72340172838076674|18374403900871474942|-16843010|4278124286)(?!\w)")
_BROADCAST = re.compile(  # of an array: a byte to all of a vector register, directives between
    r"movl\t\$(?:-2|254), (%\w+)((?:\n\s+\..*)*\n\s+vmovd\t\1, (%xmm\d+)(?:\n\s+\..*)*\n\s+)vpbroadcastb\t\3"
)
_NAN_PATTERN = {
    "-72340172838076674": str(0xFFFEFEFEFFFEFEFE - 2**64),
    "18374403900871474942": str(0xFFFEFEFEFFFEFEFE),
    "-16843010": str(0xFFFEFEFE - 2**32),
    "4278124286": str(0xFFFEFEFE),
}
_RUNTIME_FLAGS = (*_COMMON, "-O3", "-fvisibility=hidden")
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
    runtime = folder / runtime_name()
    words = [
        *command,
        runtime.name,
        _LAUNCH.pattern,
        _MOVES.pattern,
        _BROADCAST.pattern,
        *_NAN_PATTERN.values(),
    ]
    library = folder / f"{source.stem}-{_digest(included_files(source, folders), words)}.so"
    if library.is_file():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        assembly, compiled, linked = (Path(scratch) / f"kernel.{suffix}" for suffix in ("s", "o", "so"))
        preprocessed = Path(scratch) / "kernel.ii"
        _compile([*command, "-E", str(source), "-o", str(preprocessed)], source)
        code = preprocessed.read_bytes().decode(errors="surrogateescape")
        preprocessed.write_bytes(_with_kernel_addresses(code).encode(errors="surrogateescape"))
        _compile([*command, "-fpreprocessed", "-S", str(preprocessed), "-o", str(assembly)], source)
        assembly.write_text(_with_checked_moves(assembly.read_text()))
        _compile([_compiler(), "-c", str(assembly), "-o", str(compiled)], source)
        with _runtime_lock:
            if not runtime.is_file():
                compiled_runtime = Path(scratch) / "runtime.o"
                whole = RUNTIME / "runtime.cpp"
                command = [_compiler(), *_RUNTIME_FLAGS, f"-I{RUNTIME / 'include'}", "-c", str(whole)]
                _compile([*command, "-o", str(compiled_runtime)], whole)
                os.replace(compiled_runtime, runtime)
        # -Bsymbolic: its calls must reach its own runtime, whatever else the process has loaded.
        link = ["-shared", "-Wl,-Bsymbolic,-z,defs", "-o", str(linked), str(compiled), str(runtime), "-ldl"]
        _compile([_compiler(), *link], source)
        os.replace(linked, library)
    return library


def preprocessor() -> list[str]:
    """The command that preprocesses CUDA C++ as a build for the CPU does, without its folders and macros."""
    return [_compiler(), "-std=c++17", "-E", "-w", "-x", "c++"]


def _with_kernel_addresses(code: str) -> str:
    """Preprocessed code in which every LAUNCH hands over its kernel's address, and notes its arguments.

    The address tells the kernel's launch bound. The arguments are written a second time, before the lambda
    that calls the kernel with them: it stands in no other scope than they.
    """
    parts, end = [], 0
    for launch in _LAUNCH.finditer(code):
        close = _closing(code, launch.end())
        if close is not None:
            arguments = code[launch.end() : close]
            noted = f" cpucuda::with_arguments({launch[3]})({arguments}),"
            parts += [code[end : launch.end(1)], noted, code[launch.end(1) : close]]
            end = close
    return "".join((*parts, code[end:]))


def _closing(code: str, start: int) -> int | None:
    """Where the parenthesis closes that was opened before `start`; None where the code ends before it."""
    depth = 1
    for token in _PARENTHESIS.finditer(code, start):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if not depth:
            return token.start()
    return None


def _with_checked_moves(assembly: str) -> str:
    """Assembly in which memcpy and the like are the runtime's, and locals start as NaN."""
    assembly = _MOVES.sub(r"\1cpucuda_\2", assembly)
    assembly = _BROADCAST.sub(rf"movl\t${_NAN_PATTERN['-16843010']}, \1\2vpbroadcastd\t\3", assembly)
    return _PATTERN.sub(lambda match: _NAN_PATTERN[match[0]], assembly)


def runtime_name() -> str:
    """The file of the compiled runtime, wherever its sources lie: by the hash of them and of the flags."""
    sources = [*RUNTIME.glob("*.cpp"), *RUNTIME.glob("*.h"), *(RUNTIME / "include").glob("*.h")]
    return f"runtime-{_digest(sorted(sources), _RUNTIME_FLAGS)}.o"


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
