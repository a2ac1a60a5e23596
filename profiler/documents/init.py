"""The files that other commands ask for, written for what a folder holds, as a document."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import NamedTuple

from profiler.build.code_images import architectures
from profiler.documents.blocks import Block, Line, Table
from profiler.documents.document import Document
from profiler.errors import CannotJudge, ProfilerError, UnknownName
from profiler.gate.code_lock import LOCK_FILE
from profiler.gate.library import pin_library
from profiler.judge.manifest import FILE as MANIFEST

_TEMPLATES = Path(__file__).with_name("starting_files")
_WORKFLOW = Path(".github/workflows/kernels.yml")
_MOST_FILES = 50_000  # that are looked at
_MOST_BYTES = 4 << 20  # of a source
_SKIPPED = frozenset(("node_modules", "site-packages", "__pycache__", "CMakeFiles"))
# What somebody ships comes before what a build makes on its way.
_CODE = ((".so", ".whl"), (".cubin", ".fatbin"))
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(
    r"(?:template\s*<(?P<template>[^;{}]*?)>\s*)?(?:extern\s+\"C\"\s*)?(?:static\s+|inline\s+)*__global__\s+"
    r"(?:void\s+)?(?:__launch_bounds__\s*\(\s*(?P<bounds>\w+)[^)]*\)\s*)?(?:void\s+)?(?P<name>\w+)\s*"
    r"\((?P<parameters>[^{};]*?)\)\s*\{"
)
# How the problem of attention calls what kernels call otherwise.
_ATTENTION = {
    **{name: name for name in ("q", "k", "v", "o", "scale", "batch", "heads", "head_dim", "causal")},
    **{"len_q": "len_q", "len_kv": "len_kv", "out": "o", "output": "o", "is_causal": "causal"},
    **{"softmax_scale": "scale", "sm_scale": "scale", "b": "batch", "h": "heads", "d": "head_dim"},
    **{"n": "len_q", "seq_len": "len_q", "seqlen": "len_q", "seqlen_q": "len_q", "seqlen_k": "len_kv"},
}


class StartingFile(NamedTuple):
    """One file, written or already there."""

    path: Path
    is_new: bool
    what: str
    next_command: str


@dataclass(frozen=True, repr=False)
class InitDocument(Document):
    """What was written; a row a file."""

    folder: Path
    files: tuple[StartingFile, ...]
    notes: tuple[str, ...] = ()  # what needs no file

    columns = ("file", "state", "what", "next")

    @property
    def title(self) -> str:
        """The folder."""
        return f"Files for {self.folder}"

    @property
    def sentences(self) -> Sequence[str]:
        """What each file is for, then what needs none."""
        return [
            *(
                f"{'written' if one.is_new else 'kept'} {one.path}: {one.what}; next: {one.next_command}"
                for one in self.files
            ),
            *self.notes,
        ]

    def rows(self) -> list[tuple[object, ...]]:
        """A row a file; `state` is written or kept."""
        return [
            (str(one.path), "written" if one.is_new else "kept", one.what, one.next_command)
            for one in self.files
        ]

    def _content(self) -> dict[str, object]:
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows()]
        return {"folder": str(self.folder), "files": rows, "notes": self.notes}

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """The files, then what needs none."""
        if self.files:
            yield Table(self.columns, [tuple(map(str, row)) for row in self.rows()])
        yield from map(Line, self.notes)


def init_folder(*, folder: Path | None = None, library: Path | None = None) -> InitDocument:
    """Write the files that other commands ask for, by what a folder holds.

    For a library, cubins or a wheel: kernels.lock and a workflow of ten lines that gates pull requests. For
    CUDA C++: a candidate.toml beside it, for `profiler judge`. For Triton, and kernels that are no attention:
    a catalog.toml and the problem that it names. Reports need no file: what to do with them is said. A file
    that is there is kept as it is.

    Exit codes: 0, 2 where the folder is not there, 3 where it holds none of these.

    Arguments:
        folder: where to look, and to write (default: the working folder)
        library: the machine code that is pinned, where several are there

    Raises UnknownName for a folder that is not there, CannotJudge where it holds no kernel and no report.

        profiler.init(folder="my_kernels").to_frame()
    """
    root = Path(folder or ".")
    if not root.is_dir():
        raise UnknownName(f"{root} is no folder")
    found = list(_walk(root))
    files: list[StartingFile] = []
    notes: list[str] = []
    if code := library or _machine_code(root, found):
        files += _of_machine_code(root, Path(code))
    files += _of_sources(root, [path for path in found if path.suffix == ".cu"])
    files += _of_triton([path for path in found if path.suffix == ".py"])
    if reports := [path for path in found if path.suffix in (".ncu-rep", ".ncu-repz")]:
        command = f"profiler import {shlex.quote(str(root))}"
        needs = "1 report needs" if len(reports) == 1 else f"{len(reports):,} reports need"
        notes.append(f"{needs} no file: `{command}`, then `profiler gate NEW --baseline OLD`")
    if not files and not notes:
        raise CannotJudge(
            f"{root} holds no kernel in CUDA C++, no function that launches one in Triton, no machine code, "
            "no report: name their --folder"
        )
    return InitDocument(root, tuple(files), tuple(notes))


def _walk(root: Path) -> Iterator[Path]:
    """The files below a folder; not those of environments, hidden folders, and of folders of packages."""
    count = 0
    for folder, inside, names in os.walk(root):
        inside[:] = sorted(
            name
            for name in inside
            if name not in _SKIPPED
            and not name.startswith(".")
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        )
        for name in sorted(names):
            count += 1
            if count > _MOST_FILES:
                return
            path = Path(folder, name)
            if path.is_file():
                yield path


def _machine_code(root: Path, found: Sequence[Path]) -> Path | None:
    """The file that holds kernels; of several the folder that they are in."""
    for suffixes in _CODE:
        holds = [path for path in found if path.suffix in suffixes and _has_kernels(path)]
        if len(holds) == 1:
            return holds[0]
        if holds:
            return Path(os.path.commonpath(path.parent for path in holds)) or root
    return None


def _has_kernels(path: Path) -> bool:
    if path.suffix == ".whl":
        return True
    try:
        return bool(architectures(path))
    except ProfilerError:
        return False


def _of_machine_code(root: Path, code: Path) -> Iterator[StartingFile]:
    lock = root / LOCK_FILE
    option = "" if lock == Path(LOCK_FILE) else f" --lock {shlex.quote(str(lock))}"
    is_new = not lock.exists()
    what = "what each kernel of the library is"
    if is_new:
        what += f": {len(pin_library(code, lock=lock).functions):,} functions"
    yield StartingFile(lock, is_new, what, f"profiler gate {shlex.quote(str(code))}{option}")
    try:
        shown = code.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        shown = str(code)
    text = _filled("workflow.yml", library=json.dumps(shown) if re.search(r"[^\w./-]", shown) else shown)
    what = "pull requests are held against the lock; say how the library is built, and OWNER and COMMIT"
    yield _written(root / _WORKFLOW, text, what, f"git add {_WORKFLOW} {LOCK_FILE}")


class _Kernel(NamedTuple):
    name: str
    template: tuple[str, ...]  # its parameters as they are written
    block: int | None  # by its launch bounds
    parameters: tuple[str, ...]  # names


def _kernels(path: Path) -> list[_Kernel]:
    """The kernels that a source of CUDA C++ defines."""
    if path.stat().st_size > _MOST_BYTES:
        return []
    text = _COMMENT.sub(" ", path.read_text("utf-8", "replace"))
    found = []
    for match in _KERNEL.finditer(text):
        bounds = match["bounds"] or ""
        parameters = [re.findall(r"\w+", part) for part in match["parameters"].split(",")]
        found.append(
            _Kernel(
                match["name"],
                tuple(part.strip() for part in (match["template"] or "").split(",") if part.strip()),
                int(bounds) if bounds.isdigit() else None,
                tuple(words[-1] for words in parameters if words),
            )
        )
    return found


def _of_sources(root: Path, sources: Sequence[Path]) -> Iterator[StartingFile]:
    by_folder: dict[Path, dict[Path, list[_Kernel]]] = {}
    for source in sources:
        if kernels := _kernels(source):
            by_folder.setdefault(source.parent, {})[source] = kernels
    for folder, kernels_of in by_folder.items():
        if (folder / "catalog.toml").exists():
            continue  # its versions are declared there
        kernels = [kernel for of_source in kernels_of.values() for kernel in of_source]
        names = dict.fromkeys(name for kernel in kernels for name in kernel.parameters)
        is_attention = {"q", "k", "v"} <= {name.lower() for name in names}
        family = "attention" if is_attention else _identifier(folder.resolve().name)
        text = _filled(
            "candidate.toml",
            family=family,
            sources=", ".join(json.dumps(source.name) for source in kernels_of),
            launches="".join(_launch(kernel, is_attention) for kernel in kernels).rstrip(),
        )
        place = shlex.quote(str(folder))
        option = "" if is_attention else f" --catalog {shlex.quote(str(folder / 'catalog.toml'))}"
        what = "how the kernels are launched; look over grid, block and arguments"
        yield _written(folder / MANIFEST, text, what, f"profiler judge {place}{option}")
        if not is_attention:
            yield from _family(folder, family, [], list(names))


def _launch(kernel: _Kernel, is_attention: bool) -> str:
    """An entry of a manifest, with what the source says and what attention usually is."""
    names = [name.lower() for name in kernel.parameters]
    known = [_ATTENTION.get(name, name) for name in names] if is_attention else list(kernel.parameters)
    unknown = [name for name in known if is_attention and name not in _ATTENTION.values()]
    arguments = ", ".join(json.dumps(name) for name in known)
    grid = '["ceil_div(len_q, 64)", "heads", "batch"]' if is_attention else '["ceil_div(n, 128)"]'
    instance = ", ".join(_template_argument(part) for part in kernel.template)
    lines = [
        "",
        "[[launch]]",
        f"kernel = {json.dumps(f'{kernel.name}<{instance}>' if instance else kernel.name)}",
        f"grid = {grid}",
        f"block = {kernel.block or 128}",
        f"arguments = [{arguments}]",
    ]
    if unknown:
        lines[-1] += f"  # the problem has other names than {', '.join(unknown)}"
    return "\n".join(lines) + "\n"


def _template_argument(parameter: str) -> str:
    kind = parameter.partition(" ")[0]
    return {"bool": "{causal}", "typename": "float", "class": "float"}.get(kind, "{head_dim}")


def _of_triton(sources: Sequence[Path]) -> Iterator[StartingFile]:
    """A catalogue of the functions that launch Triton's kernels, for each folder that has some."""
    by_folder: dict[Path, list[str]] = {}
    for source in sources:
        if source.stat().st_size <= _MOST_BYTES:
            by_folder.setdefault(source.parent, []).extend(
                f"{source.name}:{name}" for name in _launchers(source.read_text("utf-8", "replace"))
            )
    for folder, callables in by_folder.items():
        if callables:
            yield from _family(folder, _identifier(folder.resolve().name), callables, ["x", "output", "n"])


def _launchers(text: str) -> list[str]:
    """The functions of a Python module that launch a kernel of its own, as `kernel[grid](…)`."""
    if "triton" not in text or ".jit" not in text:
        return []
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    kernels = {
        node.name
        for node in module.body
        if isinstance(node, ast.FunctionDef)
        and any(".jit" in ast.unparse(one) for one in node.decorator_list)
    }
    return [
        node.name
        for node in module.body
        if isinstance(node, ast.FunctionDef) and node.name not in kernels and _launches(node, kernels)
    ]


def _launches(function: ast.FunctionDef, kernels: set[str]) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in kernels
        for node in ast.walk(function)
    )


def _family(
    folder: Path, family: str, callables: Sequence[str], arguments: Sequence[str]
) -> Iterator[StartingFile]:
    """A catalogue, and the problem that it names."""
    versions = [
        f'id = {json.dumps(one.partition(":")[2])}\ncallable = {json.dumps(one)}\ntechnique = "as it is"\n'
        for one in callables
    ]
    if not versions:  # the candidate may become one
        versions = ['id = "first"\nstate = "planned"\nreason = "not a version yet"\ntechnique = "as it is"\n']
    tables = "".join(f"\n[[version]]\n{version}" for version in versions)
    text = _filled("catalog.toml", family=family, versions=tables.rstrip())
    catalog = folder / "catalog.toml"
    command = f"profiler collect --catalog {shlex.quote(str(catalog))} --dry-run"
    what = "the versions of the family" if callables else "the problem that the candidate solves"
    yield _written(
        catalog, text, what, command if callables else f"profiler judge {shlex.quote(str(folder))}"
    )
    names = ", ".join(json.dumps(name) for name in arguments)
    text = _filled("problem.txt", family=family, arguments=f"{names}," if names else "")
    problem = folder / f"{family}_problem.py"
    what = "what is solved: fill in the inputs, the reference and what a call needs"
    yield _written(problem, text, what, f"$EDITOR {shlex.quote(str(problem))}")


def _identifier(name: str) -> str:
    """A name that a module and a family may have."""
    word = re.sub(r"\W+", "_", name).strip("_").lower() or "kernels"
    return f"family_{word}" if word[0].isdigit() else word


def _filled(template: str, **words: str) -> str:
    return Template((_TEMPLATES / template).read_text("utf-8")).substitute(words)


def _written(path: Path, text: str, what: str, command: str) -> StartingFile:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return StartingFile(path, False, what, command)
    except OSError as error:
        raise ProfilerError(f"{path} cannot be written: {error.strerror}") from None
    return StartingFile(path, True, what, command)
