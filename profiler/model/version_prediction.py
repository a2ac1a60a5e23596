"""How long a version's call takes on a GPU that is not here, with other macros where some are asked for."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import re
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from profiler import evidence
from profiler.build.library import BuiltLibrary, FailedBuild, build
from profiler.bundles.scratch import scratch_folder
from profiler.catalog.catalog import Catalog
from profiler.catalog.problem import Problem, Workload
from profiler.catalog.version import Version
from profiler.errors import BuildFailed, UnknownName
from profiler.evidence.gpu_arch import newest_running_on
from profiler.evidence.gpu_parts import GpuPart
from profiler.model.control_words import read_code_words
from profiler.model.error_table import ErrorTable
from profiler.model.instructions import NoModel
from profiler.model.prediction import CallTimes, LaunchPrediction, launch_inputs, predict_run
from profiler.model.version_run import LauncherTimeout, VersionExecution, run_version
from profiler.sass.disassembly import extract_cubin

_MACRO = re.compile(r"(\w+)=([\w.+-]+)")


@dataclass(frozen=True)
class VersionPrediction(CallTimes):
    """A version's call on a workload and a GPU, or why there is no model of it. Times in nanoseconds."""

    version: Version
    workload: Workload
    gpu: GpuPart
    arch: str  # of the machine code; "" where there is none for the GPU
    launches: tuple[LaunchPrediction, ...] = ()
    no_model: str = ""


def with_macros(version: Version, macros: Mapping[str, str]) -> Version:
    """The version built with other values of its source's macros. Raises UnknownName for one that it lacks.

    Only what the source guards with `#ifndef NAME` can be set: anything else would be a redefinition.
    """
    if not macros:
        return version
    source = version.source
    text = source.read_text(encoding="utf-8", errors="replace") if source else ""
    known = re.findall(r"^\s*#\s*ifndef\s+(\w+)", text, re.M)
    for name in macros:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise UnknownName(f"{version.id} has no macro {name} to set: {has}")
    flags = [flag for flag in version.flags if not any(flag.startswith(f"-D{name}=") for name in macros)]
    flags += [f"-D{name}={value}" for name, value in macros.items()]
    label = "_".join(f"{name}{value}" for name, value in macros.items())
    return replace(version, id=f"{version.id}_{label}", flags=tuple(flags), parent=version.id)


def parse_macro(text: str) -> tuple[str, str]:
    """NAME=VALUE taken apart. Raises UnknownName."""
    match = _MACRO.fullmatch(text)
    if match is None:
        raise UnknownName(f"{text!r} is no NAME=VALUE: write --set STAGES=4")
    return match[1], match[2]


def predict_version(
    catalog: Catalog,
    version: Version,
    problem: Problem,
    workload: Workload,
    gpu: GpuPart,
    errors: ErrorTable,
    built: BuiltLibrary | None = None,
) -> VersionPrediction:
    """The prediction of a version's call; one without a model says why.

    built: its library, of whose architectures one is taken; without, it is built for the one that is needed.
    Raises CannotJudge where a tool is missing.
    """
    arches = version.arches if built is None else {usage.arch for usage in built.resources}
    arch = newest_running_on(gpu.architecture.compute_capability, arches) or ""
    prediction = VersionPrediction(version, workload, gpu, arch)
    if not version.buildable:
        return replace(prediction, no_model=f"{version.id} is {version.why_not_built}")
    if not arch:
        return replace(prediction, no_model=f"{version.id} has no machine code that runs on {gpu.name}")
    outcome = built or next(build(catalog, [version], [arch]))
    if isinstance(outcome, FailedBuild):
        return replace(prediction, no_model=outcome.error)
    try:
        return replace(prediction, launches=_launches(version, problem, workload, gpu, errors, outcome, arch))
    except (NoModel, BuildFailed) as error:
        return replace(prediction, no_model=str(error))


def _launches(
    version: Version,
    problem: Problem,
    workload: Workload,
    gpu: GpuPart,
    errors: ErrorTable,
    built: BuiltLibrary,
    arch: str,
) -> tuple[LaunchPrediction, ...]:
    """The prediction of each launch of a call, from the disk or anew. Raises NoModel, BuildFailed."""
    run_path = _kept_path(built, arch, workload)
    words = f"{gpu!r} {errors!r} {_model_digest()}"
    path = run_path.with_name(f"{run_path.stem}-{hashlib.sha256(words.encode()).hexdigest()[:24]}.prediction")
    kept = _load(path)
    if isinstance(kept, tuple):
        return kept
    run, words_of = _run(version, problem, workload, built, arch)
    launches = []
    for launch in run.launches:
        usage = next(
            usage
            for usage in built.resources
            if usage.function == launch.function.name and usage.arch == arch
        )
        code = words_of.get(launch.function.name)
        inputs = launch_inputs(launch, code, usage.registers, usage.static_shared_bytes, gpu)
        launches.append(predict_run(launch, inputs, errors))
    _keep(path, tuple(launches))
    return tuple(launches)


_Run = tuple[VersionExecution, Mapping[str, NDArray[np.uint64]]]
_RUNS: dict[Path, _Run] = {}  # GPUs of one architecture share the run
_MOST_RUNS = 64
_MAKE_A_RUN = (
    "accesses",
    "arithmetic",
    "block_sample",
    "control_slice",
    "control_words",
    "cubin",
    "instructions",
    "interpreter",
    "machine",
    "memory",
    "version_run",
    "warp_wide",
)


def _run(version: Version, problem: Problem, workload: Workload, built: BuiltLibrary, arch: str) -> _Run:
    """The sampled run of a call and the control words of its code, from this process, the disk, or anew.

    Raises NoModel, which is kept as a run is, and BuildFailed.
    """
    path = _kept_path(built, arch, workload)
    if path not in _RUNS:
        kept = _load(path)
        if isinstance(kept, NoModel):
            raise kept
        if not isinstance(kept, tuple):
            try:
                run = run_version(version, problem, workload, built, arch, check_output=False)
            except NoModel as error:
                if not isinstance(error, LauncherTimeout):
                    _keep(path, NoModel(str(error)))
                raise
            with scratch_folder() as folder:
                kept = run, read_code_words(extract_cubin(built.library, arch, folder))
            _keep(path, kept)
        while len(_RUNS) >= _MOST_RUNS:
            _RUNS.pop(next(iter(_RUNS)), None)
        _RUNS[path] = kept
    return _RUNS[path]


def _kept_path(built: BuiltLibrary, arch: str, workload: Workload) -> Path:
    """Where a run is kept: beside the library that it ran, by all that it depends on besides."""
    words = f"{arch} {workload!r} {_code_digest()} {sys.version_info[:2]} {np.__version__}"
    return built.library.parent / "runs" / f"{hashlib.sha256(words.encode()).hexdigest()[:24]}.run"


@cache
def _code_digest() -> str:
    """A hash of the modules that make a run: runs made by other code are not taken."""
    files = [Path(__file__).with_name(f"{name}.py").read_bytes() for name in _MAKE_A_RUN]
    return hashlib.sha256(b"".join(files)).hexdigest()


@cache
def _model_digest() -> str:
    """A hash of all that makes a prediction of a run: predictions of other code are not taken."""
    rooms = [Path(__file__).parent, Path(evidence.__file__).parent]
    files = [file.read_bytes() for room in rooms for file in sorted(room.glob("*.py"))]
    return hashlib.sha256(b"".join(files)).hexdigest()


def _load(path: Path) -> object:
    """What was kept; None where there is nothing, or it cannot be read.

    The file is a pickle, which may run code, and so may the library beside it that this user built.
    """
    try:
        kept: object = pickle.loads(zlib.decompress(path.read_bytes()))
    except (OSError, zlib.error, pickle.UnpicklingError, EOFError, AttributeError, TypeError, ValueError):
        return None
    return kept


def _keep(path: Path, result: object) -> None:
    """Keep a result for the next process; a folder that cannot be written to keeps none."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".making-", delete=False) as file:
            making = Path(file.name)
            try:
                file.write(zlib.compress(pickle.dumps(result, pickle.HIGHEST_PROTOCOL), 1))
                file.close()
                making.replace(path)
            finally:
                making.unlink(missing_ok=True)


def pick_workloads(workloads: Sequence[Workload], labels: Sequence[str]) -> list[Workload]:
    """The workloads with these labels; all without. Raises UnknownName with those that there are."""
    by_label = {workload.label: workload for workload in workloads}
    for label in labels:
        if label not in by_label:
            raise UnknownName(f"no workload {label!r}: there are {', '.join(by_label)}")
    return [by_label[label] for label in labels] if labels else list(workloads)
