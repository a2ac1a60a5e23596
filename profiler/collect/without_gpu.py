"""How a lineage becomes a run with no GPU: static facts of its functions, modelled facts of its cells."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from profiler import __version__
from profiler.build import (
    BuiltLibrary,
    FailedBuild,
    FunctionResources,
    VersionResources,
    facts,
    resources,
    toolchain,
)
from profiler.build.library import remove_abandoned
from profiler.bundles import COLLECT, Attachment, Result, Run, bundle, location
from profiler.catalog import Catalog, Problem, Version, Workload, load_problem, source_files, source_sha256
from profiler.emulator import CheckRun, VersionCheck, cpu_check
from profiler.errors import CannotJudge, ProfilerError
from profiler.sass import bundle_file

Progress = Callable[[str, str], None]  # version id, what happened

SOURCES = "kernels"  # folder of the bundle: the catalogue and all sources, a lineage of their own
LINES = "lines"  # folder of the bundle: shared-memory traffic by source line, a file a version


@dataclass(frozen=True)
class Dissection:
    """A run that is not sealed yet, with its files, and what stood out."""

    run: Run
    contents: Mapping[str, bytes]  # by path inside the bundle
    failed: tuple[str, ...]  # versions that do not compile: a line each
    unexpected: tuple[str, ...]  # good versions that are not, rejected ones that were not caught
    over_budget: tuple[str, ...]  # good versions over their budget
    missing: tuple[str, ...]  # what is not known, and why


def dissect(
    catalog: Catalog,
    versions: Sequence[Version],
    arches: Sequence[str] | None = None,
    *,
    command_line: str = "",
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Dissection:
    """Build every version, take it apart, run it on the CPU. Raises CannotJudge where a tool is missing."""
    chosen = [version for version in versions if version.buildable]
    if not chosen:
        raise CannotJudge(f"nothing to dissect: {catalog.why_none_built([one.id for one in versions])}")
    problem: Problem = load_problem(catalog)
    tools = {name: toolchain.require_tool(name).version for name in ("nvcc", "cuobjdump", "nvdisasm")}
    told = progress or (lambda _version, _what: None)
    examined = list(resources.version_resources(catalog, chosen, arches, progress=told, jobs=jobs))
    checked = {
        one.version: one for one in cpu_check.check_versions(chosen, problem, jobs=jobs, progress=told)
    }
    by_version = {one.version.id: one for one in examined if isinstance(one, VersionResources)}
    results = [
        result
        for version in chosen
        for result in _results(catalog, version, by_version.get(version.id), checked[version.id], problem)
    ]
    code, lost = machine_code([one.built for one in by_version.values()], catalog.folder, jobs)
    contents = {**sources(catalog, chosen), **line_tables(checked.values()), **code}
    created = datetime.now(UTC).replace(microsecond=0)
    digest = sha256(repr((results, sorted(contents.items()))).encode()).hexdigest()
    run = Run(
        run_id=bundle.imported_run_id(created, catalog.family, "dissect", digest),
        kind=COLLECT,
        created=created,
        provenance=_provenance(catalog, tools, command_line),
        results=tuple(results),
        files=tuple(attachment(path, content) for path, content in contents.items()),
    )
    functions = [function for one in by_version.values() for function in one.functions]
    return Dissection(
        run,
        contents,
        failed=tuple(
            [one.error for one in examined if isinstance(one, FailedBuild)]
            + [str(one.error).splitlines()[0] for one in checked.values() if one.error]
        ),
        unexpected=tuple(
            facts.check_line(one) for one in checked.values() if not one.as_expected and not one.error
        ),
        over_budget=tuple(
            f"{one.version.id} on {one.arch}, head dim {one.head_dim}: {', '.join(one.over_budget)}"
            for one in functions
            if one.over_budget and one.version.state == "good"
        ),
        missing=(*(words for one in by_version.values() for words in one.missing), *lost),
    )


def keep(dissection: Dissection, folder: Path | None = None) -> tuple[str, bool]:
    """Seal the run where the data lies, or as a bundle in a folder: its place, and whether it is new."""
    run = dissection.run
    with tempfile.TemporaryDirectory(prefix="profiler-") as scratch:
        sources = {}
        for number, (path, content) in enumerate(dissection.contents.items()):
            sources[path] = Path(scratch) / str(number)
            sources[path].write_bytes(content)
        if folder is None:
            root = location.open_root()
            with bundle.importing(root):
                return f"{root.url}/{bundle.RUNS_FOLDER}/{run.run_id}", bundle.seal(root, run, sources)
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=folder) as making:
            staged = bundle.stage(location.LocalRoot(Path(making)), run, sources)
            with contextlib.suppress(OSError):
                staged.rename(folder / run.run_id)
                return str(folder / run.run_id), True
        return str(folder / run.run_id), False


def _results(
    catalog: Catalog,
    version: Version,
    anatomy_of: VersionResources | None,
    checked: VersionCheck,
    problem: Problem,
) -> Iterator[Result]:
    about = Result(
        version.family, version.id, source_sha256=source_sha256(catalog, version), flags=version.flags
    )
    if anatomy_of is None or checked.error:
        reason = str(checked.error).splitlines()[0] if checked.error else "does not compile"
        yield replace(about, status="failed", reason=reason)
    by_head_dim: dict[int | None, list[FunctionResources]] = {}
    for function in anatomy_of.functions if anatomy_of else ():
        by_head_dim.setdefault(function.head_dim, []).append(function)
    for head_dim, functions in by_head_dim.items():
        yield replace(
            about,
            workload=None if head_dim is None else f"head dim {head_dim}",
            problem={} if head_dim is None else {"head_dim": head_dim, "dtype": version.dtype},
            facts=tuple(facts.static_facts(function) for function in functions),
        )
    by_workload: dict[Workload, list[CheckRun]] = {}
    for cell in checked.runs:
        by_workload.setdefault(cell.workload, []).append(cell)
    for workload, cells in by_workload.items():
        status, why = facts.status(cells)
        yield replace(
            about,
            workload=workload.label,
            problem=workload.sizes(),
            status=status,
            reason=why,
            check=facts.outcome(cells, problem),
            facts=(facts.modelled_facts(cells),),
        )


def sources(catalog: Catalog, versions: Sequence[Version]) -> dict[str, bytes]:
    """The catalogue and every file that a version is made from, by its place in the bundle."""
    found = {f"{SOURCES}/{catalog.path.name}": catalog.path.read_bytes()}
    for version in versions:
        for path in source_files(version):
            inside = path.is_relative_to(catalog.folder)
            name = path.relative_to(catalog.folder).as_posix() if inside else path.name
            found[f"{SOURCES}/{name}"] = path.read_bytes()
    return found


def line_tables(checked: Iterable[VersionCheck]) -> dict[str, bytes]:
    """Shared-memory traffic by source line of each version, of the first schedule of each workload."""
    found = {}
    for one in checked:
        tables: dict[str, list[list[Any]]] = {}
        for cell in one.runs:
            tables.setdefault(
                cell.workload.label,
                [
                    [row.source.file, row.source.line, row.kind, row.requests, row.wavefronts, row.ideal]
                    for row in cell.traffic
                ],
            )
        columns = ["file", "line", "kind", "requests", "wavefronts", "ideal"]
        document = {"version": one.version, "evidence": "modelled", "columns": columns, "workloads": tables}
        if tables:
            found[f"{LINES}/{one.version}.json"] = json.dumps(document, separators=(",", ":")).encode()
    return found


def machine_code(
    built: Iterable[BuiltLibrary], folder: Path, jobs: int | None = None
) -> tuple[dict[str, bytes], list[str]]:
    """The disassembly of built versions, by its place in the bundle, and why some of it is not kept."""
    kept: dict[str, bytes] = {}
    lost: dict[str, None] = {}

    def one(made: BuiltLibrary) -> bytes | ProfilerError:
        try:
            return bundle_file.pack_build(made, folder)
        except ProfilerError as error:
            return error

    several = list(built)
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        for made, content in zip(several, pool.map(one, several), strict=True):
            if isinstance(content, bytes):
                kept[bundle_file.code_path(made.version)] = content
            else:
                lost[f"machine code is not kept: {str(content).splitlines()[0]}"] = None
    return kept, list(lost)


def attachment(path: str, content: bytes) -> Attachment:
    """A file of the bundle by its folder there."""
    kind = {SOURCES: "source", LINES: "lines", bundle_file.SASS: bundle_file.SASS}[path.split("/")[0]]
    name = path.split("/", 1)[1]
    kind = "catalog" if name.endswith(".toml") else kind
    return Attachment(kind, name, sha256(content).hexdigest(), len(content), path)


def _provenance(catalog: Catalog, tools: Mapping[str, str], command_line: str) -> dict[str, Any]:
    """What made the facts. Not the host: nothing here depends on it, and such a bundle may be published."""
    known: dict[str, Any] = {
        "created_from": "clock",
        "command_line": command_line,
        "profiler": __version__,
        "python": platform.python_version(),
        "compile_flags": list(catalog.compile_flags),
        **tools,
        "g++": said("g++", "-dumpfullversion"),
        "git_commit": said("git", "-C", str(catalog.folder), "rev-parse", "HEAD"),
    }
    if known["git_commit"]:
        diff = said("git", "-C", str(catalog.folder), "diff", "HEAD", "--", ".")
        known["git_diff_sha256"] = sha256(diff.encode()).hexdigest() if diff else None
    return {name: content for name, content in known.items() if content}


def said(*command: str) -> str:
    """What a command prints, or nothing where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
