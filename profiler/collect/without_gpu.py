"""How a lineage becomes a run with no GPU: static facts of its functions, modelled facts of its cells."""

from __future__ import annotations

import contextlib
import platform
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from profiler import __version__
from profiler.build import (
    FailedBuild,
    FunctionResources,
    VersionResources,
    resources,
    static_facts,
    toolchain,
)
from profiler.build.library import remove_abandoned
from profiler.bundles import COLLECT, Result, Run, bundle, location
from profiler.catalog import Catalog, Problem, Version, Workload, load_problem, source_sha256
from profiler.collect import bundle_files
from profiler.collect.git_state import command_output
from profiler.emulator import CheckRun, VersionCheck, cpu_check, facts
from profiler.errors import CannotJudge

Progress = Callable[[str, str], None]  # version id, what happened


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
    examined = list(
        resources.version_resources(
            catalog, chosen, arches, launch_configs=cpu_check.launch_configs, progress=told, jobs=jobs
        )
    )
    checked = {
        one.version: one for one in cpu_check.check_versions(chosen, problem, jobs=jobs, progress=told)
    }
    by_version = {one.version.id: one for one in examined if isinstance(one, VersionResources)}
    results = [
        result
        for version in chosen
        for result in _results(catalog, version, by_version.get(version.id), checked[version.id], problem)
    ]
    code, lost = bundle_files.machine_code([one.built for one in by_version.values()], catalog.folder, jobs)
    contents = {**bundle_files.sources(catalog, chosen), **bundle_files.line_tables(checked.values()), **code}
    created = datetime.now(UTC).replace(microsecond=0)
    digest = sha256(repr((results, sorted(contents.items()))).encode()).hexdigest()
    run = Run(
        run_id=bundle.imported_run_id(created, catalog.family, "dissect", digest),
        kind=COLLECT,
        created=created,
        provenance=_provenance(catalog, tools, command_line),
        results=tuple(results),
        files=tuple(bundle_files.attachment(path, content) for path, content in contents.items()),
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
            facts.summary_line(one) for one in checked.values() if not one.as_expected and not one.error
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
            facts=tuple(static_facts(function) for function in functions),
        )
    by_workload: dict[Workload, list[CheckRun]] = {}
    for cell in checked.runs:
        by_workload.setdefault(cell.workload, []).append(cell)
    for workload, cells in by_workload.items():
        status, why = facts.result_status(cells)
        yield replace(
            about,
            workload=workload.label,
            problem=workload.sizes(),
            status=status,
            reason=why,
            check=facts.check_outcome(cells, problem),
            facts=(facts.modelled_facts(cells),),
        )


def _provenance(catalog: Catalog, tools: Mapping[str, str], command_line: str) -> dict[str, Any]:
    """What made the facts. Not the host: nothing here depends on it, and such a bundle may be published."""
    known: dict[str, Any] = {
        "created_from": "clock",
        "command_line": command_line,
        "profiler": __version__,
        "python": platform.python_version(),
        "compile_flags": list(catalog.compile_flags),
        **tools,
        "g++": command_output("g++", "-dumpfullversion"),
        "git_commit": command_output("git", "-C", str(catalog.folder), "rev-parse", "HEAD"),
    }
    if known["git_commit"]:
        diff = command_output("git", "-C", str(catalog.folder), "diff", "HEAD", "--", ".")
        known["git_diff_sha256"] = sha256(diff.encode()).hexdigest() if diff else None
    return {name: content for name, content in known.items() if content}
