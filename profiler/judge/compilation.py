"""How a candidate becomes machine code: nvcc or ptxas in isolation, and what they say of it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from profiler.build.code_images import architectures
from profiler.build.elf import read_contents
from profiler.build.kernel_names import function_name
from profiler.build.library import FailedBuild, ResourceUsage, build, parse_ptxas
from profiler.build.toolchain import require_tool
from profiler.catalog.catalog import Catalog
from profiler.errors import BuildFailed, CannotJudge
from profiler.evidence.gpu_arch import find_architecture, newest_running_on
from profiler.judge.candidate import Candidate
from profiler.judge.isolation import Isolation, ProcessLimits
from profiler.package import shipped
from profiler.sass.disassembly import TOO_NEW, extract_cubin

CUBIN = "kernel.cubin"
_COMPILER = ProcessLimits(120, memory_bytes=8 << 30)
_READER = ProcessLimits(120)
_MOST_CUBIN_BYTES = 32 << 20
_RESERVED_SINCE = 80  # from sm_80 on a part of shared memory is the system's, and stands in .nv.shared
_USAGE = re.compile(r"Function (\S+):\s*REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
_TEMPLATE = re.compile(r"^(?P<name>[\w:]+)(?:<(?P<arguments>.*)>)?$")


class NoAnswer(CannotJudge):
    """The process that reads a candidate's machine code ended without an answer: the candidate's doing."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of the machine code."""

    function: str  # mangled
    parameters: tuple[tuple[int, int], ...]  # offset and size in bytes
    block_threads: int | None  # that a block has, or has at most; None where the code does not say
    usage: ResourceUsage
    opcodes: Mapping[str, int]  # with modifiers
    special: tuple[str, ...]  # registers as SR_CLOCKLO

    def count(self, *names: str) -> int:
        """How many instructions have one of these opcodes, whatever their modifiers."""
        return sum(count for opcode, count in self.opcodes.items() if opcode.partition(".")[0] in names)


@dataclass(frozen=True)
class CandidateCode:
    """What a candidate was compiled to."""

    folder: Path  # with the cubin and its listing; a worker reads it
    arch: str
    kernels: Mapping[str, Kernel]  # by mangled name
    sections: tuple[tuple[str, int, int, int], ...]  # name, size, flags, kind
    symbols: tuple[tuple[str, str, int, int], ...]  # name, section, size, binding
    code_id: str
    log: str = ""
    relocations: tuple[tuple[str, int, str, str], ...] = ()  # as build.elf.Relocation has them
    # Slots of constant bank 4 that any function reads, where addresses of global memory are; -1: any of them.
    pointers: frozenset[int] = frozenset({-1})
    writes_own_data: tuple[str, ...] = ()  # instructions that write to global memory that the binary holds
    may_write_own_data: tuple[str, ...] = ()  # those that may, for all that is known

    @property
    def cubin(self) -> Path:
        """The file."""
        return self.folder / CUBIN

    def find(self, kernel: str) -> Kernel:
        """The kernel that a manifest names. Raises BuildFailed where none is it, or several are."""
        match = _TEMPLATE.match(kernel)
        assert match is not None
        plain = match["name"].split("::")[-1]
        named = [k for k in self.kernels.values() if function_name(k.function) == plain]
        if match["arguments"] is not None:
            wanted = _mangled_arguments(match["arguments"])
            named = [k for k in named if re.search(rf"{len(plain)}{plain}I{wanted}E", k.function)]
        if kernel in self.kernels:
            named = [self.kernels[kernel]]
        if len(named) != 1:
            there = ", ".join(sorted(self.kernels)) or "none"
            raise BuildFailed(f"{len(named)} kernels could be {kernel!r}; the binary has {there}")
        return named[0]


def _mangled_arguments(text: str) -> str:
    """A pattern of template arguments as the Itanium ABI writes them: integers, true and false; else any."""
    parts = []
    for word in text.split(","):
        word = word.strip()
        if word in ("true", "false"):
            parts.append(f"Lb{int(word == 'true')}E")
        elif re.fullmatch(r"-?\d+", word):
            parts.append(f"L[a-z]{word.replace('-', 'n')}E")
        else:
            parts.append(r"\w+?")
    return "".join(parts)


def compile_candidate(
    candidate: Candidate,
    catalog: Catalog,
    kernels: Sequence[str],
    arch: str,
    folder: Path,
    isolation: Isolation,
) -> CandidateCode:
    """Compile for one architecture into the folder. kernels: as launches name them, each once.

    Raises BuildFailed with the compiler's first error, CannotJudge where a tool is missing.
    """
    log = ""
    if candidate.version is not None:
        usages = _build_version(candidate, catalog, arch, folder)
    else:
        log = _compile(candidate, kernels, arch, folder, isolation)
        usages = {usage.function: usage for usage in parse_ptxas(log)}
    cubin = folder / CUBIN
    if not cubin.is_file() or cubin.is_symlink() or cubin.stat().st_size > _MOST_CUBIN_BYTES:
        raise BuildFailed(
            f"{candidate.name}: there is no machine code, or more than {_MOST_CUBIN_BYTES} bytes"
        )
    if candidate.version is None and candidate.source.endswith(".cubin"):
        arch = _architecture_that_runs(cubin, arch, candidate.name)
    return _inspect(folder, arch, usages, isolation, log)


def _architecture_that_runs(cubin: Path, arch: str, name: str) -> str:
    """What a given cubin is for. Raises CannotJudge where the GPU that was asked for does not run that."""
    (own,) = architectures(cubin)
    wanted = find_architecture(arch)
    if wanted and newest_running_on(wanted.compute_capability, [own]) is None:
        raise CannotJudge(
            f"{name}: the cubin is for {own}, which {wanted.name} does not run: choose a GPU with --gpu",
            option="--gpu",
        )
    return own


def compile_command(candidate: Candidate, arch: str, source: str) -> list[str]:
    """What compiles a candidate in its folder: device code alone, so that nothing is made for a host."""
    assert candidate.manifest is not None
    if source.endswith(".ptx"):
        return [str(require_tool("ptxas").path), "-v", f"-arch={arch}", f"src/{source}", "-o", CUBIN]
    return [
        str(require_tool("nvcc").path),
        *("-cubin", f"-arch={arch}", "-std=c++17", "-O3", "-lineinfo", "-Xptxas=-v"),
        *("-Isrc", f"-I{shipped('kernels')}"),
        *candidate.manifest.flags,
        *("-o", CUBIN, "launch.cu"),
    ]


def write_sources(candidate: Candidate, folder: Path) -> None:
    """The candidate's files below src/ in the folder."""
    for name, content in candidate.files.items():
        path = folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _compile(
    candidate: Candidate, kernels: Sequence[str], arch: str, folder: Path, isolation: Isolation
) -> str:
    source = candidate.source
    write_sources(candidate, folder)
    if source.endswith(".cubin"):
        shutil.copyfile(folder / "src" / source, folder / CUBIN)
        return ""
    # To take a kernel's address makes the compiler instantiate its template.
    uses = [f"  (void)(void*)(&{kernel});" for kernel in kernels]
    text = "\n".join([f'#include "{source}"', "void profiler_instances() {", *uses, "}", ""])
    (folder / "launch.cu").write_text(text)
    done = isolation.run(compile_command(candidate, arch, source), folder, _COMPILER)
    log = done.stderr + done.stdout.decode(errors="replace")
    if done.code is None:
        raise BuildFailed(f"{candidate.name}: the compiler did not end within {_COMPILER.seconds:g} s")
    if done.code != 0:
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        errors = [line for line in lines if re.search(r"\b(error|fatal)\b", line)]
        first = (errors or lines[-1:] or [f"the compiler ended with {done.code}"])[0]
        if source.endswith(".ptx") and TOO_NEW.search(first):
            raise CannotJudge(
                f"{candidate.name}: this ptxas cannot compile it for {arch}: {first}: take a newer ptxas, or "
                "choose a GPU with --gpu",
                option="--gpu",
            )
        raise BuildFailed(first)
    return log


def _build_version(
    candidate: Candidate, catalog: Catalog, arch: str, folder: Path
) -> dict[str, ResourceUsage]:
    assert candidate.version is not None
    built = next(build(catalog, [candidate.version], [arch]), None)
    if built is None:
        raise BuildFailed(f"{candidate.name} is only for {', '.join(candidate.version.arches)}")
    if isinstance(built, FailedBuild):
        raise BuildFailed(built.error)
    extracted = extract_cubin(built.library, arch, folder)
    if extracted != folder / CUBIN:
        extracted.rename(folder / CUBIN)
    return {usage.function: usage for usage in built.resources if usage.arch == arch}


def _inspect(
    folder: Path, arch: str, usages: Mapping[str, ResourceUsage], isolation: Isolation, log: str
) -> CandidateCode:
    answer = run_worker({"kind": "inspect", "cubin": CUBIN, "arch": arch}, folder, isolation, _READER)
    if "error" in answer:
        raise BuildFailed(str(answer["error"]))
    if not answer["kernels"]:
        raise BuildFailed("the binary holds no kernel")
    if missing := answer["kernels"].keys() - usages.keys():
        usages = {**usages, **_dumped_usages(folder, arch, answer, missing, isolation)}
    kernels = {
        name: Kernel(
            name,
            tuple((offset, size) for offset, size in row["parameters"]),
            row["block_threads"],
            usages[name],
            answer["functions"][name]["opcodes"],
            tuple(answer["functions"][name]["special"]),
        )
        for name, row in answer["kernels"].items()
        if name in usages and name in answer["functions"]
    }
    if not kernels:
        raise BuildFailed("the binary holds no kernel that the disassembler knows")
    data = (folder / CUBIN).read_bytes()
    return CandidateCode(
        folder,
        arch,
        kernels,
        tuple((str(s[0]), int(s[1]), int(s[2]), int(s[3])) for s in answer["sections"]),
        tuple((str(s[0]), str(s[1]), int(s[2]), int(s[3])) for s in answer["symbols"]),
        _code_id(data),
        log,
        tuple((str(r[0]), int(r[1]), str(r[2]), str(r[3])) for r in answer["relocations"]),
        pointers=frozenset(int(slot) for row in answer["functions"].values() for slot in row["pointers"]),
        writes_own_data=_texts(answer, "sure"),
        may_write_own_data=_texts(answer, "possible"),
    )


def _texts(answer: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    """Instructions that may write to the binary's own global memory, of all functions."""
    return tuple(str(text) for row in answer["data_writes"].values() for text in row[kind])


def _code_id(data: bytes) -> str:
    """The sha256 of the instructions and constants: names of files and lines of the source do not count."""
    digest = hashlib.sha256()
    names = (".text.", ".nv.constant", ".nv.global", ".nv.info.")
    for section, content in sorted(read_contents(data)):
        if section.name.startswith(names):
            digest.update(f"\0{section.name}\0{section.size}\0".encode() + content)
    return digest.hexdigest()


def _dumped_usages(
    folder: Path, arch: str, answer: Mapping[str, Any], missing: Any, isolation: Isolation
) -> dict[str, ResourceUsage]:
    """What cuobjdump says of kernels that no compiler spoke of. Bytes spilled stand nowhere in a cubin."""
    tool = require_tool("cuobjdump")
    done = isolation.run([str(tool.path), "--dump-resource-usage", CUBIN], folder, _READER)
    architecture = find_architecture(arch)
    reserved = 0
    if architecture is not None and int(architecture.name[3:]) >= _RESERVED_SINCE:
        reserved = architecture.reserved_shared_bytes
    usages = {}
    for match in _USAGE.finditer(done.stdout.decode(errors="replace")):
        name, registers, stack = match[1], int(match[2]), int(match[3])
        if name in missing:
            opcodes = answer["functions"][name]["opcodes"]
            local = sum(n for op, n in opcodes.items() if op.partition(".")[0] in ("LDL", "STL"))
            static = max(0, answer["kernels"][name]["static_shared_bytes"] - reserved)
            words = f"{local} accesses of local memory"
            usages[name] = ResourceUsage(name, arch, registers, 0, 0, stack, static, 0, words)
    return usages


def run_worker(
    job: Mapping[str, Any],
    folder: Path,
    isolation: Isolation,
    limits: ProcessLimits,
    readable: Sequence[Path] = (),
) -> dict[str, Any]:
    """The answer of machine_worker.py to a job, run in the folder. Raises NoAnswer where it gives none."""
    package = Path(__file__).resolve().parent.parent.parent
    script = (
        f"import sys; sys.path.insert(0, {str(package)!r}); "
        "from profiler.judge.machine_worker import main; main()"
    )
    command = [sys.executable, "-I", "-c", script]
    done = isolation.run(command, folder, limits, stdin=json.dumps(job).encode(), readable=readable)
    if done.code is None:
        return {"error": f"it did not end within {limits.seconds:g} s", "no_model": True, "timeout": True}
    if done.code != 0:
        raise NoAnswer(f"the machine code could not be read ({done.code}): {done.last_words}")
    try:
        answer = json.loads(done.stdout)
    except (ValueError, RecursionError):
        raise NoAnswer("the process that reads machine code gave no answer") from None
    if not isinstance(answer, dict):
        raise NoAnswer("the process that reads machine code gave no answer")
    return answer


def usage_json(code: CandidateCode) -> dict[str, Any]:
    """What a worker needs of the kernels' resources."""
    return {name: asdict(kernel.usage) for name, kernel in code.kernels.items()}
