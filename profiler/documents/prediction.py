"""How long launches would take on GPUs that are not here: modelled times with their range, as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

from profiler.build.code_images import CODE_FILES, code_file, code_files, is_code
from profiler.build.occupancy import occupancy
from profiler.build.triton_facts import triton_facts
from profiler.bundles.scratch import scratch_folder
from profiler.catalog.cases import call_problem
from profiler.catalog.catalog import Catalog, load_catalog
from profiler.catalog.problem import Problem, Workload
from profiler.catalog.sources import load_problem
from profiler.catalog.version import Version
from profiler.documents.blocks import Block, Heading, Line, Name, Table
from profiler.documents.code_files import CodeFunction, examine_binary
from profiler.documents.document import Document
from profiler.errors import CannotJudge, Exit, UnknownName
from profiler.evidence import formatting
from profiler.evidence.gpu_arch import newest_running_on
from profiler.evidence.gpu_parts import DEFAULT_PART, GPU_PARTS, GpuPart, find_part
from profiler.evidence.values import Evidence, Value
from profiler.explain.sentence import NO_CHANGE, format_change
from profiler.explain.time_identity import (
    RESIDUE,
    TimeIdentity,
    TimeSplit,
    largest_step_us,
    split_time,
    waterfall_steps,
)
from profiler.model import report_inputs
from profiler.model.control_words import read_code_words
from profiler.model.cubin_run import (
    CubinLaunch,
    choose_kernel,
    parse_argument,
    predict_cubin,
    run_cubin,
)
from profiler.model.dimensions import parse_dimensions
from profiler.model.error_table import ErrorTable, load_errors
from profiler.model.instructions import NoModel
from profiler.model.launch_model import LaunchModel
from profiler.model.prediction import CallTimes, LaunchPrediction, WhatIf, predict_counted, what_ifs
from profiler.model.stored_predictions import PredictedRatio, predicted_ratio, range_note
from profiler.model.version_prediction import (
    VersionPrediction,
    parse_macro,
    pick_workloads,
    predict_version,
    with_macros,
)
from profiler.model.version_run import LaunchRun
from profiler.reports.read import is_report, launch_details, read_report, refuse_printed
from profiler.sass.disassembly import cubin_functions, extract_cubin

STOPPED = "stopped before it was predicted"  # why a call has no model, after Ctrl-C
Progress = Callable[[str, str], None]  # version, what happened


@dataclass(frozen=True)
class GivenLaunch:
    """A launch as a user writes it: of a file of machine code, which says nothing of it."""

    grid: str  # 64 or 64,8
    block: str | None = None  # None: as many threads as the code asks for
    arguments: tuple[str, ...] = ()  # f16[4096], i32=512 (model.cubin_run)
    shared_bytes: int | None = None  # dynamic; None: what Triton's file beside it says, else 0
    kernel: str | None = None  # plain or mangled; None: the only one
    arch: str | None = None  # of a library with several


@dataclass(frozen=True)
class PredictedCall(CallTimes):
    """A version's call on a workload, or a report's launch, on one GPU. Times in nanoseconds."""

    subject: str
    workload: str  # its label; "" of a report's launch
    gpu: GpuPart | None  # None: of a report's launch without a model
    launches: tuple[LaunchPrediction, ...]
    no_model: str = ""  # why there is none
    arch: str = ""
    ratio: PredictedRatio | None = None
    split: TimeSplit | None = None  # of the difference to what `ratio` is against, both modelled
    what_ifs: tuple[WhatIf, ...] = ()
    measured_ns: float | None = None  # what the report says of its own launch


@dataclass(frozen=True, repr=False)
class PredictionDocument(Document):
    """Modelled times; none of them was measured."""

    calls: tuple[PredictedCall, ...]
    errors: ErrorTable

    title = "Modelled time"
    columns = (
        "subject",
        "workload",
        "gpu",
        "evidence",
        "time_ns",
        "low_ns",
        "high_ns",
        "measured_ns",
        "against",
        "ratio",
        "ratio_low",
        "ratio_high",
        "limiter",
        "limiter_saves",
        "busiest",
        "busiest_share",
        "no_model",
    )

    @property
    def sentences(self) -> Sequence[str]:
        """What the model says of each call, and why it has nothing to say of some."""
        return [*(call_sentence(call) for call in self.calls), self.note]

    @property
    def note(self) -> str:
        """Where the ranges come from."""
        return range_note(self.errors, [launch for call in self.calls for launch in call.launches])

    @property
    def exit_code(self) -> Exit:
        """3 where there is a model of nothing, or it was stopped before all was predicted."""
        if any(call.no_model == STOPPED for call in self.calls):
            return Exit.UNJUDGED
        return Exit.PASS if any(call.launches for call in self.calls) else Exit.UNJUDGED

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A row a call; of a single one what stands behind it, and what changes would do."""
        yield Heading(self.title, 1)
        yield _calls_table(self.calls)
        alone = self.calls[0] if len(self.calls) == 1 else None
        if alone and alone.ratio and (causes := split_rows(alone)):
            yield Heading(("what differs from ", Name(alone.ratio.against), ", modelled"))
            yield Table(("cause", "adds"), causes, right=(1,))
        for call in self.calls:
            if call.what_ifs:
                yield from _what_if_blocks(call)
        if alone and alone.longest:
            yield from _inside_blocks(alone.longest)
        yield Line(f"{self.note}.")

    def rows(self) -> list[tuple[object, ...]]:
        """A row a call on a GPU."""
        return [_row(call) for call in self.calls]

    def _content(self) -> dict[str, object]:
        """Every call with its launches, their resources, inputs and what-ifs. Times in nanoseconds."""
        return {
            "evidence": Evidence.MODELLED.value,
            "note": self.note,
            "calls": [call_dict(call) for call in self.calls],
        }


def predict_names(
    names: Sequence[str],
    *,
    catalog: Path | None = None,
    launch: GivenLaunch | None = None,
    against: str | None = None,
    workloads: Sequence[str] = (),
    gpus: Sequence[str] = (),
    macros: Sequence[str] = (),
    with_what_ifs: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> PredictionDocument:
    """The modelled time of versions of a catalogue, all good ones where none is named, or of report files.

    Files of machine code (cubins, libraries) are predicted too, with a launch that is given.

    against: a version that all are compared with; without it each with its nearest good ancestor. gpus: names
    of `GPU_PARTS`. macros: NAME=VALUE, what the versions are built with besides; they are compared with the
    versions as they are. with_what_ifs: what changes of the launch would do; always where one version is
    asked for on one workload. Raises UnknownName, UnreadableReport, and CannotJudge where a tool is missing.
    """
    errors = load_errors()
    if launch is not None or any(_is_code(Path(name)) for name in names):
        if macros or workloads or not names:
            raise UnknownName("predict a file of machine code separately, with --grid, --block and --arg")
        if launch is None:
            raise UnknownName(f"{names[0]} says nothing of its launch: give --grid, --block and --arg")
        codes = [code_file(Path(name)) for name in names]
        return PredictionDocument(
            tuple(_cubin_calls(codes, launch, gpus, against, errors, with_what_ifs)), errors
        )
    for name in names:
        refuse_printed(Path(name), name)
    reports = [name for name in names if is_report(Path(name))]
    if reports:
        if len(reports) < len(names) or against or macros or workloads:
            raise UnknownName("predict a report separately: its launches have their own workload and code")
        if gpus:
            raise UnknownName(
                "a report's launches are predicted on the GPU that they ran on: leave --gpu out"
            )
        calls = [call for name in reports for call in _report_calls(Path(name), errors, with_what_ifs)]
        return PredictionDocument(tuple(calls), errors)
    parts = [find_part(name) for name in gpus or (DEFAULT_PART,)]
    loaded = load_catalog(catalog)
    problem = load_problem(loaded)
    chosen = [v for v in loaded.pick(names) if names or (v.state == "good" and v.buildable)]
    if not chosen:
        raise CannotJudge(f"nothing to predict: {loaded.why_none_built(names)}")
    return PredictionDocument(
        tuple(
            _version_calls(
                loaded,
                problem,
                chosen,
                parts,
                errors,
                against=against,
                labels=workloads,
                macros=dict(parse_macro(text) for text in macros),
                with_what_ifs=with_what_ifs,
                jobs=jobs,
                progress=progress or (lambda _version, _what: None),
            )
        ),
        errors,
    )


def _version_calls(
    catalog: Catalog,
    problem: Problem,
    versions: Sequence[Version],
    parts: Sequence[GpuPart],
    errors: ErrorTable,
    *,
    against: str | None,
    labels: Sequence[str],
    macros: Mapping[str, str],
    with_what_ifs: bool,
    jobs: int | None,
    progress: Progress,
) -> list[PredictedCall]:
    workloads: dict[str, list[Workload]] = {}
    lacking: dict[str, UnknownName] = {}
    for version in versions:
        try:
            workloads[version.id] = _workloads(problem, version, labels)
        except UnknownName as error:
            lacking[version.id] = error
    if lacking and not workloads:
        raise next(iter(lacking.values()))
    baselines: dict[str, Version | None] = {}
    built = []
    for version in versions:
        if version.id in lacking:
            continue
        changed = with_macros(version, macros)
        built.append(changed)
        workloads[changed.id] = workloads[version.id]
        ancestor = version if macros else catalog.correct_ancestor(version)
        baselines[changed.id] = catalog.pick([against])[0] if against else ancestor
    wanted = [
        (version, workload, part) for version in built for workload in workloads[version.id] for part in parts
    ]
    keys = {(v.id, w.label, p.name): (v, w, p) for v, w, p in wanted}
    for version, workload, part in wanted:
        baseline = baselines[version.id]
        if baseline is not None and baseline.buildable:
            keys.setdefault((baseline.id, workload.label, part.name), (baseline, workload, part))
    by_version: dict[str, list[tuple[Version, Workload, GpuPart]]] = {}
    for cell in keys.values():
        by_version.setdefault(cell[0].id, []).append(cell)

    predictions: dict[tuple[str, str, str], VersionPrediction] = {}
    is_stopped = Event()

    def predict(cells: Sequence[tuple[Version, Workload, GpuPart]]) -> None:
        found = []
        for version, workload, part in cells:
            if is_stopped.is_set():
                return
            found.append(predict_version(catalog, version, problem, workload, part, errors))
            predictions[version.id, workload.label, part.name] = found[-1]
        if not is_stopped.is_set():  # the answer was printed meanwhile
            progress(cells[0][0].id, "predicted" if any(p.launches for p in found) else found[0].no_model)

    pool = ThreadPoolExecutor(jobs or 2)
    try:
        for done in [pool.submit(predict, cells) for cells in by_version.values()]:
            done.result()
    except KeyboardInterrupt:  # what is predicted is shown at once, however long what runs still takes
        is_stopped.set()
    finally:
        pool.shutdown(wait=not is_stopped.is_set(), cancel_futures=True)
    is_alone = len(wanted) == len(parts)
    calls = []
    for version, workload, part in wanted:
        prediction = predictions.get((version.id, workload.label, part.name))
        if prediction is None:
            calls.append(PredictedCall(version.id, workload.label, part, (), STOPPED))
            continue
        baseline = baselines[version.id]
        other = predictions.get((baseline.id, workload.label, part.name)) if baseline else None
        calls.append(_version_call(prediction, other, errors, with_what_ifs or is_alone))
    return calls + [
        PredictedCall(name, ", ".join(labels), part, (), str(error), "")
        for name, error in lacking.items()
        for part in parts
    ]


def _workloads(problem: Problem, version: Version, labels: Sequence[str]) -> list[Workload]:
    """What a version is measured on; with labels also what it is checked on."""
    measured = call_problem(problem, "acceptance_workloads", version.dtype, of=version.dtype)
    able = [w for w in measured if w.sizes().get("head_dim") in (None, *version.head_dims)]
    if not labels:
        return able
    checked = call_problem(problem, "check_workloads", version.dtype, version.head_dims, of=version.dtype)
    return pick_workloads([*able, *checked], [" ".join(label.split()) for label in labels])


def _version_call(
    prediction: VersionPrediction,
    baseline: VersionPrediction | None,
    errors: ErrorTable,
    with_what_ifs: bool,
) -> PredictedCall:
    likely, other = prediction.likely_ns, baseline.likely_ns if baseline else None
    ratio = None
    if baseline is not None and likely and other and baseline.version.id != prediction.version.id:
        ratio = predicted_ratio(likely, other, baseline.version.id, errors)
    longest, split = prediction.longest, None
    if ratio is not None and baseline is not None and baseline.longest and longest:
        split = split_time(modelled_identity(baseline.longest), modelled_identity(longest))
    return PredictedCall(
        subject=prediction.version.id,
        workload=prediction.workload.label,
        gpu=prediction.gpu,
        launches=prediction.launches,
        no_model=prediction.no_model,
        arch=prediction.arch,
        ratio=ratio,
        split=split,
        what_ifs=tuple(what_ifs(longest)) if with_what_ifs and longest else (),
    )


def modelled_identity(launch: LaunchPrediction) -> TimeIdentity:
    """The factors of a launch's modelled time, as the counters of a measured one would give them."""
    return TimeIdentity(**launch.time_factors, stalls_whole=True)


def split_rows(call: PredictedCall) -> list[tuple[str, str]]:
    """The causes of a modelled difference with the time that each adds, but those that round to nothing."""
    if call.split is None or call.likely_ns is None:
        return []
    before_us = call.likely_ns / 1e3 - call.split.delta_us
    steps = waterfall_steps(before_us, call.split)
    largest = largest_step_us(steps)
    rows = [
        (step.words, format_change(step.us, max(before_us, call.likely_ns / 1e3), largest))
        for step in steps
        if step.kind != RESIDUE
    ]
    return [row for row in rows if row[1] != NO_CHANGE]


def _report_calls(path: Path, errors: ErrorTable, with_what_ifs: bool) -> list[PredictedCall]:
    """The launches of a report, predicted from their counts, beside what was measured of them."""
    calls = []
    launches = read_report(path, metrics=report_inputs.LAUNCH_METRICS).launches
    code = read_code_words(path)
    details = launch_details(path, report_inputs.INSTRUCTION_METRICS)
    for launch, detail in zip(launches, details, strict=True):
        label = f"{path.name}: {launch.base_name}"
        duration_ns = launch.values.number("gpu__time_duration.sum")
        try:
            known = report_inputs.report_launch(launch, detail, code)
        except NoModel as error:
            calls.append(PredictedCall(label, "", None, (), str(error), measured_ns=duration_ns))
            continue
        model = LaunchModel(known.inputs)
        hits = report_inputs.counted_hit_rates(launch, model)
        sources = [line.source for line in known.listing.lines]
        prediction = predict_counted(launch.base_name, model, hits, errors, sources)
        calls.append(
            PredictedCall(
                label,
                "",
                known.inputs.gpu,
                (prediction,),
                arch=known.inputs.gpu.arch,
                what_ifs=tuple(what_ifs(prediction)) if with_what_ifs else (),
                measured_ns=duration_ns,
            )
        )
    return calls


def _cubin_calls(
    paths: Sequence[Path],
    launch: GivenLaunch,
    gpus: Sequence[str],
    against: str | None,
    errors: ErrorTable,
    with_what_ifs: bool,
) -> list[PredictedCall]:
    """The launch of each file on each GPU; against: a file whose kernel is launched alike."""
    ran = [_run_code(path, launch) for path in paths]
    baseline = _run_code(Path(against), launch) if against else None
    if baseline and baseline.arch not in {code.arch for code in ran}:
        raise UnknownName(f"{against} has code for {baseline.arch}, {paths[0]} for {ran[0].arch}")
    parts = [find_part(name) for name in gpus] or [_part_that_runs(ran[0].arch)]
    calls = []
    for code in ran:
        for part in parts:
            call = code.call(part, errors)
            other = baseline.call(part, errors) if baseline else None
            if other and call.longest and other.longest:
                ratio = predicted_ratio(call.likely_ns or 0.0, other.likely_ns or 0.0, other.subject, errors)
                split = split_time(modelled_identity(other.longest), modelled_identity(call.longest))
                call = replace(call, ratio=ratio, split=split)
            if call.longest and (with_what_ifs or len(ran) * len(parts) == 1):
                call = replace(call, what_ifs=tuple(what_ifs(call.longest)))
            calls.append(call)
    return calls


@dataclass(frozen=True)
class _RanCode:
    """A kernel of a file, run with the launch that was given; or why there is no model of it."""

    path: Path
    arch: str
    code: CodeFunction
    run: LaunchRun | None
    no_model: str

    def call(self, part: GpuPart, errors: ErrorTable) -> PredictedCall:
        """What the model says of it on a GPU."""
        subject, code = f"{self.path.name}: {self.code.name}", self.code
        call = PredictedCall(subject, "", part, (), self.no_model, self.arch)
        if self.run is None:
            return call
        if newest_running_on(part.architecture.compute_capability, [self.arch]) is None:
            return replace(call, no_model=f"{self.path.name} has code for {self.arch}, not for {part.name}")
        if code.registers is None or code.static_shared_bytes is None:
            return replace(call, no_model=f"{self.path.name} does not say how many registers a thread has")
        shared = code.static_shared_bytes + self.run.launch.shared_bytes
        if not occupancy(part.arch, code.registers, self.run.launch.threads, shared).blocks:
            return replace(
                call,
                no_model=f"a block of {self.run.launch.threads} threads, {code.registers} "
                f"registers each and {shared} bytes of shared memory fits no SM of {part.name}",
            )
        try:
            with scratch_folder() as folder:
                cubin = extract_cubin(self.path, self.arch, folder, function=self.code.function)
                sizes = code.registers, code.static_shared_bytes
                launches = (predict_cubin(cubin, self.run, *sizes, part, errors),)
        except NoModel as error:
            return replace(call, no_model=str(error))
        return replace(call, launches=launches)


def _is_code(path: Path) -> bool:
    """A file of machine code, or a folder with some, such as one of Triton's cache."""
    return (
        path.suffix in CODE_FILES
        or (path.is_dir() and bool(code_files(path)))
        or (path.is_file() and is_code(str(path)))
    )


def _run_code(path: Path, given: GivenLaunch) -> _RanCode:
    """Raises UnknownName for what the file lacks, BuildFailed for a file that is no machine code."""
    if not path.is_file():
        raise UnknownName(f"there is no file {path}")
    codes = [code for code in examine_binary(path, path.name, given.arch) if code.is_kernel]
    arches = sorted({code.arch for code in codes if code.arch})
    if len(arches) > 1:
        raise UnknownName(
            f"{path.name} has code for several architectures: choose with --arch: {', '.join(arches)}"
        )
    functions = {code.function: code for code in codes}
    code = functions[choose_kernel(list(functions), given.kernel, path.name)]
    if not code.arch:
        raise UnknownName(f"{path.name} does not say which architecture its code is for")
    if given.block is None and code.threads is None:
        raise UnknownName(f"{path.name} does not say how many threads a block has: give --block")
    launch = CubinLaunch(
        parse_dimensions(given.grid),
        parse_dimensions(given.block or str(code.threads)),
        (code.dynamic_shared_bytes or 0) if given.shared_bytes is None else given.shared_bytes,
        tuple(parse_argument(text) for text in given.arguments),
    )
    run, no_model = None, ""
    with scratch_folder() as folder:
        cubin = extract_cubin(path, code.arch, folder, function=code.function)
        (function,) = [f for f in cubin_functions(cubin) if f.name == code.function]
        try:
            run = run_cubin(cubin, function, launch, has_hidden=triton_facts(path).threads is not None)
        except NoModel as error:
            no_model = str(error)
    return _RanCode(path, code.arch, code, run, no_model)


def _part_that_runs(arch: str) -> GpuPart:
    """The GPU that is taken where none is named. Raises CannotJudge where there is a model of none."""
    names = (DEFAULT_PART, *GPU_PARTS)
    for part in map(find_part, names):
        if newest_running_on(part.architecture.compute_capability, [arch]):
            return part
    raise CannotJudge(f"there is no model of a GPU that runs code for {arch}: compile it for another one")


def call_sentence(call: PredictedCall) -> str:
    """A call in one sentence."""
    longest = call.longest
    if longest is None or call.gpu is None:
        return f"{call.subject}{' on ' + call.workload if call.workload else ''}: {call.no_model}"
    where = " on ".join(part for part in (call.subject, call.workload, call.gpu.name) if part)
    sentence = (
        f"{where}: {time_words(call.likely_ns)} ({time_words(call.low_ns)} to {time_words(call.high_ns)})"
    )
    if call.ratio:
        ratio = call.ratio
        sentence += (
            f", {ratio.ratio:.2f} × {ratio.against} ({ratio.low:.2f} to {ratio.high:.2f}): {ratio.word}"
        )
    return f"{sentence}; {limiter_words(longest)}"


def limiter_words(launch: LaunchPrediction) -> str:
    """What limits a launch, and what it would save without."""
    share = 100 * launch.limiter_saves
    if launch.limiter == "waiting":
        return "limited by latency: no unit is busy, warps wait"
    if launch.limiter == "balanced":
        name, used = max(launch.utilisation.items(), key=lambda item: item[1])
        return f"balanced: {name} is {100 * used:.0f} % busy, {share:.0f} % less time if it were free"
    used = launch.utilisation[launch.limiter]
    return f"limited by {launch.limiter}, {100 * used:.0f} % busy: {share:.0f} % less time if it were free"


def time_words(ns: float | None) -> str:
    """A time in the unit that fits."""
    return "–" if ns is None else str(formatting.quantity(Value(ns, "ns")))


def _calls_table(calls: Sequence[PredictedCall]) -> Table:
    has_measured = any(call.measured_ns is not None for call in calls)
    rows = [
        (
            Name(call.subject),
            call.workload,
            call.gpu.name if call.gpu and call.launches else "",
            time_words(call.likely_ns),
            f"{time_words(call.low_ns)} to {time_words(call.high_ns)}" if call.launches else "",
            *([time_words(call.measured_ns)] if has_measured else []),
            _against(call.ratio),
            _limiter(call),
        )
        for call in calls
    ]
    measured = ["measured"] if has_measured else []
    head = ["launch" if has_measured else "version", "workload", "GPU", "modelled", "range", *measured]
    return Table([*head, "against", "limited by"], rows, right=(3,))


def _against(ratio: PredictedRatio | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio.ratio:.2f} × {ratio.against} ({ratio.low:.2f} to {ratio.high:.2f}) {ratio.word}"


def _limiter(call: PredictedCall) -> str:
    longest = call.longest
    if longest is None:
        return call.no_model
    name, share = max(longest.utilisation.items(), key=lambda item: item[1])
    if longest.limiter in ("waiting", "balanced"):
        word = "latency" if longest.limiter == "waiting" else longest.limiter
        return f"{word} (busiest unit: {name}, {100 * share:.0f} %)"
    return f"{longest.limiter} ({100 * longest.limiter_saves:.0f} % less time if it were free)"


def _what_if_blocks(call: PredictedCall) -> Iterator[Block]:
    where = ", ".join(part for part in (call.workload, call.gpu.name if call.gpu else "") if part)
    yield Heading(("what if, ", Name(call.subject), f" on {where}"))
    rows = [(what.change, f"{what.time_ratio:.2f} ×", what.needs) for what in call.what_ifs]
    yield Table(("change", "time", "needs"), rows, right=(1,))


def _inside_blocks(launch: LaunchPrediction) -> Iterator[Block]:
    """What the time of a launch comes from: its resources, and how long each alone would take."""
    inputs, clock = launch.inputs, launch.inputs.gpu.clock_hz / 1e9
    yield Heading(Name(launch.kernel))
    yield Line(
        f"{inputs.blocks} blocks of {inputs.threads} threads, {inputs.registers} registers, "
        f"{inputs.shared_bytes / 1024:.1f} KiB of shared memory; {inputs.resident_blocks} blocks on an SM, "
        f"{inputs.gpu.sms} SMs"
    )
    rows = [
        (
            name,
            f"{100 * share:.0f} %",
            f"{launch.bounds.utilisation.get(name, 0) * launch.bounds.cycles / clock / 1e3:.2f} µs",
        )
        for name, share in sorted(launch.utilisation.items(), key=lambda item: -item[1])
        if share >= 0.005
    ]
    yield Table(("resource", "busy", "time if only this"), rows, right=(1, 2))


def _row(call: PredictedCall) -> tuple[object, ...]:
    longest, ratio = call.longest, call.ratio
    busiest = max(longest.utilisation.items(), key=lambda item: item[1]) if longest else (None, None)
    return (
        call.subject,
        call.workload or None,
        call.gpu.name if call.gpu else None,
        Evidence.MODELLED.value,
        call.likely_ns,
        call.low_ns,
        call.high_ns,
        call.measured_ns,
        ratio.against if ratio else None,
        ratio.ratio if ratio else None,
        ratio.low if ratio else None,
        ratio.high if ratio else None,
        longest.limiter if longest else None,
        longest.limiter_saves if longest else None,
        *busiest,
        call.no_model or None,
    )


def call_dict(call: PredictedCall) -> dict[str, Any]:
    """A call for JSON."""
    return {
        **dict(zip(PredictionDocument.columns, _row(call), strict=True)),
        "arch": call.arch or None,
        "gpu_facts": call.gpu.as_json() if call.gpu else None,
        "word": call.ratio.word if call.ratio else None,
        "launches": [launch.as_json() for launch in call.launches],
        "causes": None
        if call.split is None
        else [{"cause": term.cause, "ns": term.us * 1e3} for term in call.split.terms],
        "what_ifs": [
            {"change": change.change, "time_ratio": change.time_ratio, "needs": change.needs or None}
            for change in call.what_ifs
        ],
    }
