"""A run made with no GPU: static facts of a lineage's functions, modelled facts of its workloads."""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from profiler.build import resources, toolchain
from profiler.build.library import FailedBuild, remove_abandoned
from profiler.build.resources import VersionResources
from profiler.bundles import bundle
from profiler.bundles.location import LocalRoot, open_root
from profiler.bundles.run import COLLECT, Result, Run
from profiler.bundles.scratch import scratch_folder
from profiler.catalog.cases import call_problem
from profiler.catalog.catalog import Catalog
from profiler.catalog.problem import Problem
from profiler.catalog.sources import load_problem
from profiler.catalog.version import Version
from profiler.collect import bundle_files, cpu_results
from profiler.collect.git_state import command_output, git_state
from profiler.emulator import cpu_check, facts
from profiler.emulator.cpu_check import VersionCheck
from profiler.errors import CannotJudge, Exit
from profiler.evidence.gpu_parts import find_part
from profiler.package import VERSION

Progress = Callable[[str, str], None]  # version id, what happened
PREDICTED_GPUS = ("H100-SXM", "A100-80GB", "L4")


@dataclass(frozen=True)
class Dissection:
    """A run that is not sealed yet, with its files and with what is wrong."""

    run: Run
    contents: Mapping[str, bytes]  # by path inside the bundle
    failed: tuple[str, ...]  # versions that do not compile: a line each
    unexpected: tuple[str, ...]  # good versions that are wrong, rejected ones that were not caught
    over_budget: tuple[str, ...]  # good versions over their budget
    missing: tuple[str, ...]  # what is not known, and why

    @property
    def exit_code(self) -> Exit:
        """The exit code of the worst finding."""
        if self.failed:
            return Exit.UNUSABLE_INPUT
        if self.unexpected or self.over_budget:
            return Exit.REGRESSION
        return Exit.UNJUDGED if self.missing else Exit.PASS


def dissect(
    catalog: Catalog,
    versions: Sequence[Version],
    arches: Sequence[str] | None = None,
    *,
    command_line: str = "",
    predicted_gpus: Sequence[str] = PREDICTED_GPUS,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Dissection:
    """Build, disassemble and check every version on the CPU, and model the time of good ones.

    predicted_gpus: names of GPU_PARTS; on the first of them the time of every workload that is measured, on
    the others that of the first. Raises CannotJudge where a tool is missing.
    """
    chosen = [version for version in versions if version.buildable]
    if not chosen:
        raise CannotJudge(
            f"nothing to dissect: {catalog.why_none_built([version.id for version in versions])}"
        )
    problem: Problem = load_problem(catalog)
    tools = {name: toolchain.require_tool(name).version for name in ("nvcc", "cuobjdump", "nvdisasm")}
    on_progress = progress or (lambda _version, _what: None)
    examined = list(
        resources.version_resources(
            catalog, chosen, arches, launch_configs=cpu_check.launch_configs, progress=on_progress, jobs=jobs
        )
    )
    checks = {
        check.version: check
        for check in cpu_check.check_versions(chosen, problem, jobs=jobs, progress=on_progress)
    }
    built = {entry.version.id: entry for entry in examined if isinstance(entry, VersionResources)}
    results = [
        result
        for version in chosen
        for result in _results(catalog, version, built.get(version.id), checks[version.id], problem)
    ]
    libraries = [entry.built for entry in built.values()]
    code, code_problems = bundle_files.machine_code(libraries, catalog.folder, jobs)
    contents = {
        **bundle_files.sources(catalog, chosen),
        **bundle_files.line_tables(checks.values()),
        **code,
    }
    contents |= _predicted(catalog, built, checks, problem, predicted_gpus, jobs, on_progress)
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
    build_errors = [entry.error for entry in examined if isinstance(entry, FailedBuild)]
    check_errors = [facts.summary_line(check) for check in checks.values() if check.error]
    return Dissection(
        run,
        contents,
        failed=(*build_errors, *check_errors),
        unexpected=tuple(
            facts.summary_line(check)
            for check in checks.values()
            if not check.as_expected and not check.error
        ),
        over_budget=_over_budget(built.values()),
        missing=(
            *(words for entry in built.values() for words in entry.missing),
            *code_problems,
            *(
                [f"nothing is built for {', '.join(arches)}: no version takes it"]
                if arches and not built
                else []
            ),
        ),
    )


def _results(
    catalog: Catalog,
    version: Version,
    built: VersionResources | None,
    check: VersionCheck,
    problem: Problem,
) -> list[Result]:
    results = []
    if built is None or check.error:
        reason = str(check.error).splitlines()[0] if check.error else "does not compile"
        results.append(cpu_results.failed_result(catalog, version, reason))
    if built is not None:
        results += cpu_results.static_results(catalog, built)
    return results + cpu_results.modelled_results(catalog, version, check, problem)


def _predicted(
    catalog: Catalog,
    built: Mapping[str, VersionResources],
    checks: Mapping[str, VersionCheck],
    problem: Problem,
    gpus: Sequence[str],
    jobs: int | None,
    progress: Progress,
) -> dict[str, bytes]:
    """The modelled times of good versions that passed the check, by their path in the bundle.

    What has no model says so in the file.
    """
    # Here: a machine that only measures has no numba, which the model needs.
    from profiler.model.error_table import load_errors
    from profiler.model.stored_predictions import FILE, pack_predictions
    from profiler.model.version_prediction import VersionPrediction, predict_version

    if not gpus or not hasattr(problem, "acceptance_workloads"):
        return {}
    errors = load_errors()
    parts = [find_part(name) for name in gpus]

    def predict(version: Version) -> list[VersionPrediction]:
        workloads = [
            workload
            for workload in call_problem(problem, "acceptance_workloads", version.dtype, of=version.dtype)
            if workload.sizes().get("head_dim") in (None, *version.head_dims)
        ]
        predictions = [
            predict_version(catalog, version, problem, workload, part, errors, built[version.id].built)
            for part in parts
            for workload in (workloads if part is parts[0] else workloads[:1])
        ]
        progress(
            version.id, "time modelled" if any(p.launches for p in predictions) else "no model of its time"
        )
        return predictions

    versions = [entry.version for entry in built.values()]
    good = [v for v in versions if v.state == "good" and v.source and checks[v.id].as_expected]
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        predictions = [prediction for found in pool.map(predict, good) for prediction in found]
    return {FILE: pack_predictions(predictions, errors)} if predictions else {}


def _over_budget(built: Iterable[VersionResources]) -> tuple[str, ...]:
    """The functions of good versions that exceed their budget, a line each."""
    functions = [function for version in built for function in version.functions]
    return tuple(
        f"{function.version.id} on {function.arch}, head dim {function.head_dim}: "
        f"{', '.join(function.over_budget)}"
        for function in functions
        if function.over_budget and function.version.state == "good"
    )


def keep_dissection(dissection: Dissection, folder: Path | None = None) -> tuple[str, bool]:
    """Seal the run among the data, or as a bundle in a folder. Returns its place and whether it is new."""
    run = dissection.run
    with scratch_folder() as scratch:
        sources = {}
        for number, (path, content) in enumerate(dissection.contents.items()):
            sources[path] = scratch / str(number)
            sources[path].write_bytes(content)
        if folder is None:
            root = open_root(for_runs=True)
            with bundle.importing(root):
                return f"{root.url}/{bundle.RUNS_FOLDER}/{run.run_id}", bundle.seal(root, run, sources)
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=folder) as making:
            staged = bundle.stage(LocalRoot(Path(making)), run, sources)
            with contextlib.suppress(OSError):  # it exists: equal runs have equal ids
                staged.folder.rename(folder / run.run_id)
                return str(folder / run.run_id), True
        return str(folder / run.run_id), False


def _provenance(catalog: Catalog, tools: Mapping[str, str], command_line: str) -> dict[str, Any]:
    """The provenance of the facts. Not the host: nothing depends on it, and the bundle may be published."""
    known: dict[str, Any] = {
        "created_from": "clock",
        "command_line": command_line,
        "profiler": VERSION,
        "python": platform.python_version(),
        "compile_flags": list(catalog.compile_flags),
        **tools,
        "g++": command_output("g++", "-dumpfullversion"),
        **git_state(catalog.folder),
    }
    return {name: content for name, content in known.items() if content}
