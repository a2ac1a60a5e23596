"""How a version becomes a shared library: nvcc's command line, the cache, and what ptxas says."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from profiler.build.toolchain import ToolkitProgram, require_tool
from profiler.catalog.catalog import Catalog
from profiler.catalog.sources import include_folders, source_sha256, without_include_flags
from profiler.catalog.version import Version
from profiler.package import build_folder

TIME_LIMIT_S = 600
DAY_S = 24 * 3600
LIBRARY = "kernel.so"
RECORD = "build.json"
PTXAS = "ptxas.txt"  # what nvcc printed
Progress = Callable[[str, str], None]  # version id, what happened


@dataclass(frozen=True)
class ResourceUsage:
    """What ptxas says of one kernel function on one architecture."""

    function: str  # mangled
    arch: str
    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    static_shared_bytes: int
    barriers: int
    line: str  # ptxas' own words
    # Its warnings that wgmma are serialized, by number and reason: "C7511 insufficient register resources …".
    serialized_wgmma: tuple[str, ...] = ()

    @property
    def spill_bytes(self) -> int:
        """Stores and loads together: 0 only where nothing is spilled."""
        return self.spill_store_bytes + self.spill_load_bytes


@dataclass(frozen=True)
class BuiltLibrary:
    """A version's shared library, and what was learnt when it was made."""

    version: str
    library: Path
    arches: tuple[str, ...]
    key: str
    source_sha256: str
    compiler: str  # nvcc 13.0.88
    command: tuple[str, ...]
    resources: tuple[ResourceUsage, ...]
    warnings: str
    seconds: float  # that the compiler took when it was made
    cached: bool  # whether it was there already


@dataclass(frozen=True)
class FailedBuild:
    """A version that does not compile."""

    version: str
    error: str  # one line, with the compiler's own first error
    output: str  # all that the compiler printed


def build(
    catalog: Catalog,
    versions: Sequence[Version],
    arches: Sequence[str] | None = None,
    *,
    extra_flags: Sequence[str] = (),
    progress: Progress | None = None,
    jobs: int | None = None,
    limit_s: float = TIME_LIMIT_S,
) -> Iterator[BuiltLibrary | FailedBuild]:
    """Compile versions side by side, in the order given; one that fails does not stop the others.

    arches: for example ("sm_90a",); None takes each version's own. A version without a source, or for none of
    the architectures, is left out. limit_s: of one version, which has failed after it. Raises CannotJudge
    where there is no nvcc.
    """
    nvcc = require_tool("nvcc")
    report = progress or (lambda _version, _what: None)

    def build_version(version: Version) -> BuiltLibrary | FailedBuild:
        outcome = _build_version(
            catalog, version, target_arches(version, arches), tuple(extra_flags), nvcc, limit_s
        )
        if isinstance(outcome, FailedBuild):
            report(version.id, "does not compile")
        else:
            report(version.id, "cached" if outcome.cached else f"built in {outcome.seconds:.1f} s")
        return outcome

    buildable = [version for version in versions if target_arches(version, arches)]
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        yield from pool.map(build_version, buildable)


def target_arches(version: Version, arches: Sequence[str] | None = None) -> tuple[str, ...]:
    """The architectures to compile a version for: those of `arches` that it supports, else its own."""
    if not version.buildable:
        return ()
    return tuple(arch for arch in dict.fromkeys(arches or version.arches) if version.supports(arch))


def why_not_compiled(versions: Sequence[Version], arches: Sequence[str] | None = None) -> dict[str, str]:
    """Why `build` leaves out some of the versions, by their ids."""
    reasons = {}
    for version in versions:
        if version.why_not_built:
            reasons[version.id] = version.why_not_built
        elif not target_arches(version, arches):
            reasons[version.id] = f"only for {', '.join(version.arches)}"
    return reasons


def nvcc_command(
    catalog: Catalog,
    version: Version,
    arches: Sequence[str],
    extra_flags: Sequence[str],
    nvcc: ToolkitProgram,
    output: Path,
) -> list[str]:
    """The nvcc call: -lineinfo so that counters land on source lines, ptxas -v for registers and spills."""
    targets = [f"-gencode=arch={arch.replace('sm_', 'compute_')},code={arch}" for arch in arches]
    includes = [f"-I{folder}" for folder in include_folders(version)]
    # The wheel's nvcc.profile does not name the folder that its own runtime library is in.
    library_folders = [f"-L{nvcc.wheel_root / 'lib'}"] if nvcc.wheel_root else []
    return [
        str(nvcc.path),
        "-shared",
        "-Xcompiler=-fPIC",
        "-lineinfo",
        "-Xptxas=-v",
        *without_include_flags(catalog.compile_flags),
        *targets,
        *without_include_flags(version.flags),
        *extra_flags,
        *includes,
        *library_folders,
        "-o",
        str(output),
        str(version.source),
    ]


def _build_version(
    catalog: Catalog,
    version: Version,
    arches: tuple[str, ...],
    extra_flags: tuple[str, ...],
    nvcc: ToolkitProgram,
    limit_s: float,
) -> BuiltLibrary | FailedBuild:
    source_hash = source_sha256(catalog, version, extra_flags)
    key = hashlib.sha256(f"{source_hash} {nvcc.version} {' '.join(sorted(arches))}".encode()).hexdigest()[:20]
    folder = build_folder() / version.family / version.id / key
    if _complete(folder):
        return _load(folder, cached=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(folder.parent)
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        command = nvcc_command(catalog, version, arches, extra_flags, nvcc, making / LIBRARY)
        started = time.perf_counter()
        passed, text = run_compiler(command, limit_s)
        if not passed:
            return FailedBuild(
                version.id, f"{version.id} does not compile: {first_error(text)}", text.strip()
            )
        final_command = [word.replace(str(making), str(folder)) for word in command]
        record = {
            "version": version.id,
            "arches": arches,
            "key": key,
            "source_sha256": source_hash,
            "compiler": f"nvcc {nvcc.version}",
            "command": final_command,
            "warnings": "\n".join(line for line in text.splitlines() if "warning" in line.lower()),
            "seconds": round(time.perf_counter() - started, 2),
        }
        (making / PTXAS).write_text(text, encoding="utf-8")
        (making / RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")
        if not _complete(folder):
            shutil.rmtree(folder, ignore_errors=True)  # somebody deleted a part of it
        # Renaming puts the folder there whole or not at all. It fails where another process was first.
        with contextlib.suppress(OSError):
            making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return _load(folder, cached=False)


def remove_abandoned(folder: Path) -> None:
    """Remove what killed processes were making in a folder, a day after."""
    for making in folder.glob(".making-*"):
        with contextlib.suppress(OSError):
            if time.time() - making.stat().st_mtime > DAY_S:
                shutil.rmtree(making, ignore_errors=True)


def _complete(folder: Path) -> bool:
    return (folder / RECORD).is_file() and (folder / LIBRARY).is_file()


def run_compiler(command: list[str], limit_s: float) -> tuple[bool, str]:
    """Whether the compiler succeeded, and what it printed. What it started ends with it."""
    # Into a file: a pipe would stay open as long as anything that the compiler started lives.
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            _kill_tree(process.pid)
            process.wait()
            return False, f"error: nvcc did not finish within {limit_s:g} s"
        output.seek(0)
        return code == 0, output.read()


def _kill_tree(pid: int) -> None:
    """Kill a process of ours and all below it. Each is stopped first, so that it starts none meanwhile."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    for child in _children(pid):
        _kill_tree(child)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    children = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # pid (name) state parent …: the name may hold spaces and parentheses.
            if path.read_text(errors="replace").rpartition(")")[2].split()[1] == str(pid):
                children.append(int(path.parent.name))
    return children


def first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b(error|fatal|undefined reference)\b", line)]
    return (errors or lines[-1:] or ["the compiler printed nothing"])[0]


def _load(folder: Path, *, cached: bool) -> BuiltLibrary:
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    return BuiltLibrary(
        version=record["version"],
        library=folder / LIBRARY,
        arches=tuple(record["arches"]),
        key=record["key"],
        source_sha256=record["source_sha256"],
        compiler=record["compiler"],
        command=tuple(record["command"]),
        resources=tuple(parse_ptxas((folder / PTXAS).read_text(encoding="utf-8"))),
        warnings=record["warnings"],
        seconds=record["seconds"],
        cached=cached,
    )


_ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(sm_\w+)'")
# (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to … in the function 'f'
_SERIALIZED = re.compile(
    r"\((C75\d\d)\).*\bwgmma\b.*\bserialized due to (.*?)(?: in the function| in function) '(\S+)'"
)
_SPILL = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def parse_ptxas(text: str) -> list[ResourceUsage]:
    """What `ptxas -v` printed, one record for each entry function and architecture."""
    usages: list[ResourceUsage] = []
    function = arch = ""
    stack = stores = loads = 0
    is_callee = False
    serialized: dict[str, list[str]] = {}  # by function; said before its own lines
    for line in text.splitlines():
        if match := _SERIALIZED.search(line):
            serialized.setdefault(match[3], []).append(f"{match[1]} {match[2]}")
        elif match := _ENTRY.search(line):
            function, arch, is_callee = match[1], match[2], False
        elif match := _SPILL.search(line):
            if is_callee and usages:  # its own function, which the kernel before it calls
                usages[-1] = _with_callee(usages[-1], int(match[2]), int(match[3]))
            else:
                stack, stores, loads = (int(number) for number in match.groups())
        elif function and (match := re.search(r"Used (\d+) registers", line)):
            barriers = re.search(r"used (\d+) barriers", line)
            shared = re.search(r"(\d+) bytes smem", line)
            spilled = f"{stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads"
            warnings = tuple(serialized.pop(function, ()))
            usages.append(
                ResourceUsage(
                    function=function,
                    arch=arch,
                    registers=int(match[1]),
                    spill_store_bytes=stores,
                    spill_load_bytes=loads,
                    stack_bytes=stack,
                    static_shared_bytes=int(shared[1]) if shared else 0,
                    barriers=int(barriers[1]) if barriers else 0,
                    line="; ".join(
                        (
                            spilled,
                            line.partition(":")[2].strip(),
                            *(f"wgmma serialized: {w}" for w in warnings),
                        )
                    ),
                    serialized_wgmma=warnings,
                )
            )
            function, is_callee = "", True
    return usages


def _with_callee(usage: ResourceUsage, stores: int, loads: int) -> ResourceUsage:
    """A kernel with what a function spills that it calls: ptxas prints that behind the kernel's own lines."""
    if not stores and not loads:
        return usage
    return replace(
        usage,
        spill_store_bytes=usage.spill_store_bytes + stores,
        spill_load_bytes=usage.spill_load_bytes + loads,
        line=f"{usage.line}; a called function: {stores} bytes spill stores, {loads} bytes spill loads",
    )
