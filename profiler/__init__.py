"""Attention-kernel profiler: is this version right, is it faster, why, and did anything get worse.

The functions here are the library. Every answer is a document: it has its verdict, `to_dict()`, `to_frame()`
for pandas and `to_markdown()`, and shows itself in a notebook. Importing this package loads none of what an
answer needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from profiler.package import VERSION

if TYPE_CHECKING:
    from typing import TypeAlias, TypeVar

    from profiler.compare.resolve_names import StoreOpener
    from profiler.documents.check import CheckDocument
    from profiler.documents.comparison import ComparisonDocument
    from profiler.documents.explanation import ExplanationDocument, UnmeasuredDocument
    from profiler.documents.gate import GateDocument
    from profiler.documents.judgement import JudgementDocument
    from profiler.documents.launch import LaunchDocument
    from profiler.documents.prediction import GivenLaunch, PredictionDocument
    from profiler.documents.prune import PruneDocument
    from profiler.documents.report import ReportDocument
    from profiler.documents.version_report import VersionReportDocument
    from profiler.documents.version_table import VersionTableDocument
    from profiler.evidence.launch import Report
    from profiler.evidence.metric_table import MetricTable
    from profiler.evidence.side import Side
    from profiler.store.index import Store

    Name: TypeAlias = str | os.PathLike[str]  # a report file, run id, family/version or version
    Subject: TypeAlias = Report | Side | Name
    Data: TypeAlias = str | os.PathLike[str]  # a data folder, or a URL that fsspec knows
    Pairs: TypeAlias = Mapping[str, str] | Collection[str | tuple[str, str]]  # kernels of A and B
    _Answer = TypeVar("_Answer")
    Metrics: TypeAlias = MetricTable | str | os.PathLike[str]  # a table that was read, or its file

__version__ = VERSION
# What is written here; `__all__` has the answers of `profiler.documents.declared` too.
_OWN = [
    "check",
    "compare",
    "compare_many",
    "explain",
    "gate",
    "judge",
    "launch",
    "open_store",
    "predict",
    "prune",
    "read_report",
    "record",
    "report",
]


def __dir__() -> list[str]:
    """What a notebook offers after `profiler.`: the functions of the library, and not what they need."""
    return [*__getattr__("__all__"), "__version__"]


def __getattr__(name: str) -> Any:
    """The functions of the answers that are declared in `profiler.documents.declared`, and all names."""
    from profiler.documents.declared import LIBRARY

    if name == "__all__":
        return sorted([*_OWN, *LIBRARY])
    if name not in LIBRARY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from profiler.documents.library import library_function

    function = globals()[name] = library_function(name, _ask)
    return function


class _Package(ModuleType):
    """The package as a module, in which `profiler.compare` stays the function when the room is imported.

    When a submodule is first imported, Python sets it as an attribute of its package. Four rooms are called
    as functions of the library are; for those the attribute stays the function. `from profiler.compare import
    …` takes the room from sys.modules and does not look here; `import profiler.compare as x` does.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _OWN and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def read_report(path: Name) -> ReportDocument:
    """Read a `.ncu-rep` file, or a CSV that ncu exported, whole: every launch with every metric.

    Values are in base units (ns, bytes, hz), each with a state: a metric that failed or was not collected has
    no number. The file is read in a process of its own. Raises UnreadableReport with the reason and the way
    out.

        report = profiler.read_report("a.ncu-rep")
        report.launches[0].values.number("gpu__time_duration.sum")
        report.to_frame()[["kernel", "metric", "value", "unit"]]
    """
    from profiler.documents.report import ReportDocument
    from profiler.reports.read import read_report as read

    return ReportDocument.of(read(Path(path)))


def record(
    family: str,
    times: Mapping[str, Sequence[float]],
    *,
    version: str | None = None,
    unit: str = "ns",
    mode: str = "recorded",
    gpu: str | None = None,
    data: Data | None = None,
) -> str:
    """Store times that a benchmark of yours took as a run, and give its id: a history without a file.

    `times` has for each workload the time of every call, in `unit` (ns, us, ms or s) and in their order.
    Without `version` it is the commit of the working directory's repository, `-dirty` where files differ from
    it. Without `gpu` it is that of a torch that is loaded already. `mode` says how the calls were timed: only
    times of one mode are compared. Raises ProfilerError for what is no time.

        profiler.record("softmax", {"N=1024": [12.1, 12.3, 12.2]}, unit="us", version="v7", gpu="NVIDIA L4")
        profiler.list_regressions(family="softmax").sentences
    """
    from profiler.collect.git_state import git_state
    from profiler.errors import ProfilerError
    from profiler.store.timed_runs import record_times

    git = git_state(Path.cwd())
    commit = git.get("git_commit") or os.environ.get("PROFILER_COMMIT")
    if version is None:
        if not commit:
            raise ProfilerError("version= is needed: the working directory is in no git repository")
        version = f"{commit[:12]}{'-dirty' if git.get('git_diff_sha256') else ''}"
    torch = sys.modules.get("torch")
    if gpu is None and torch is not None and torch.cuda.is_available():
        gpu = torch.cuda.get_device_name()
    return record_times(
        family,
        times,
        version,
        unit=unit,
        mode=mode,
        gpu=gpu,
        commit=commit,
        data=None if data is None else os.fspath(data),
    )


def compare(
    a: Subject,
    b: Subject,
    *,
    metrics: Metrics | None = None,
    store: Store | None = None,
    data: Data | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    evidence: str | None = None,
    kernel: str | None = None,
    across: str | Collection[str] = (),
    top: int | None = None,
    pairs: Pairs = (),
    guess: bool = True,
) -> ComparisonDocument:
    """What differs between `a` and `b`: calls mode by mode, launches pair by pair, metric by metric.

    `a` and `b` are reports, sides, files or names. `metrics` is another metrics.txt. A name is looked for in
    `store`, with the bundles and decisions of its own folder, else in the index of `data` (a folder or URL;
    PROFILER_DATA's where None), which is opened only for names. `workload`, `gpu` and `evidence` ("measured",
    "static", "modelled") choose among what a version has, `gpu` also among the launches of a report, and
    `kernel` and `top` among launches; `across` names what may differ ("driver", "ncu", "gpu"). `pairs` are
    kernels of `a` that have another name in `b`, as a mapping, tuples or "A=B"; without `guess` no such pair
    is proposed.

    Raises UnreadableReport; UnknownName for a name that stands for nothing or for several things, and where
    the sides share nothing that was asked for; and CannotJudge for a version without results. What cannot be
    compared is an answer: its verdict says so.

        c = profiler.compare("a.ncu-rep", "b.ncu-rep")
        c.verdict, c.sentence
        c.to_frame().query("verdict == 'worse'")[["kernel", "metric", "a", "b", "change_pct"]]
    """
    from profiler.documents.comparison import compare_names

    return _ask(compare_names, locals())


def compare_many(
    names: Sequence[Name],
    *,
    against: Name | None = None,
    concepts: Sequence[str] = (),
    metrics: Metrics | None = None,
    store: Store | None = None,
    data: Data | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    evidence: str | Collection[str] = (),
    kernel: str | None = None,
    across: str | Collection[str] = (),
    pairs: Pairs = (),
    guess: bool = True,
) -> VersionTableDocument:
    """A table of versions, runs or reports by workload and metric, with verdicts against one of them.

    `against` is the baseline, the first name where None. `concepts` of metrics.txt stand beside the time of
    each workload, a few of each kind where none is named. All verdicts are judged as one table.
    The other arguments and what it raises are as for `compare`.

        t = profiler.compare_many(["v2d_a", "v2d_b", "v2d_c"], against="v2d_a")
        t.to_frame().pivot(index="version", columns=["workload", "gpu", "concept"], values="value")
    """
    from profiler.documents.version_table_cells import compare_many as table_of_names

    _check_names("compare_many", names, against)
    return _ask(table_of_names, locals(), metrics=concepts)


def report(
    names: Name | Sequence[Name],
    *,
    against: Name | None = None,
    diffs: Sequence[Name] | None = None,
    concepts: Sequence[str] = (),
    metrics: Metrics | None = None,
    store: Store | None = None,
    data: Data | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    evidence: str | Collection[str] = (),
    kernel: str | None = None,
    pairs: Pairs = (),
    guess: bool = True,
) -> VersionReportDocument:
    """Versions as one HTML page without script or network: their table, times over the runs, and diffs.

    `diffs` names the versions that are explained against the baseline, the three that moved most where None.
    The other arguments and what it raises are as for `compare_many`; the page is `to_html()`.

        page = profiler.report(["v2d_a", "v2d_b", "v2d_c"], against="v2d_a")
        Path("report.html").write_text(page.to_html(), encoding="utf-8")
    """
    from profiler.documents.version_report import report_versions

    _check_names("report", names, against, diffs)
    return _ask(report_versions, locals(), metrics=concepts)


def launch(
    name: Name,
    *,
    against: Name | None = None,
    metrics: Metrics | None = None,
    store: Store | None = None,
    data: Data | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
) -> LaunchDocument:
    """The longest launch of a report file, run or version in the sections of Nsight Compute.

    Of the launches that fit `kernel`; with `against` beside the longest launch of the same kernel there. A
    section that was not collected is in `sections.missing` with the command that collects it. Raises
    UnknownName, UnreadableReport, and CannotJudge for a version without results.

        launch = profiler.launch("b.ncu-rep", against="a.ncu-rep")
        launch.sections.warp_states.states[0].label
        launch.to_frame()[["section", "metric", "value", "unit", "baseline"]]
    """
    from profiler.documents.launch import launch_of_name

    _check_names("launch", name, against)
    return _ask(launch_of_name, locals())


def explain(
    a: ComparisonDocument | Subject,
    b: Subject | None = None,
    *,
    metrics: Metrics | None = None,
    store: Store | None = None,
    data: Data | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    across: str | Collection[str] = (),
    top: int | None = None,
    pairs: Pairs = (),
    guess: bool = True,
) -> ExplanationDocument | UnmeasuredDocument:
    """Why `b` takes another time than `a`: work, waiting, parallelism, balance, clock, residue.

    `a` is a comparison, or `a` and `b` are what `compare` takes. Times are in microseconds, and the terms add
    up to the change. A pair whose time did not move has no causes, and its sentence says why; two versions
    that no GPU measured have no time to explain. Raises as `compare`.

        e = profiler.explain(profiler.compare("a.ncu-rep", "b.ncu-rep"))
        e.sentence
        e.to_frame()[["kernel", "cause", "us"]]
    """
    from profiler.documents.comparison import ComparisonDocument
    from profiler.documents.explanation import explain_comparison, explain_names

    if isinstance(a, ComparisonDocument):
        if b is not None or any((workload, gpu, kernel, across, top, pairs, not guess)):
            raise TypeError("explain(comparison) explains what compare() chose: give compare() the choice")
        return explain_comparison(a.shown()[0], _table(metrics))
    if b is None:
        raise TypeError("explain(a, b) takes two subjects, or explain(comparison) what compare() returned")
    return _ask(explain_names, locals())


def gate(
    names: Name | Sequence[Name] = (),
    *,
    baseline: Name | None = None,
    metrics: Metrics | None = None,
    store: Store | None = None,
    data: Data | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    evidence: str | Collection[str] = (),
    on: str | Sequence[str] = (),
    across: str | Collection[str] = (),
    allow: str | Collection[str] = (),
    pairs: Pairs = (),
    guess: bool = True,
    kernel: str | None = None,
    lock: Name | None = None,
) -> GateDocument:
    """Whether versions, a run or reports got worse than a baseline; without names the newest run is judged.

    `baseline` is a report, run, version, "parent" or "best"; None stands for what is pinned, else the last
    run of the same version. `on` names concepts to judge besides time and exact counts, `allow` lets
    "unclear" pass; `pairs`, `guess` and `kernel` are as for `compare`, the baseline's kernel first. A cubin,
    library or wheel is judged against `lock`, kernels.lock where None, or another build as `baseline`.
    `exit_code` is 0 where nothing got worse, 1 where something did, 3 where something could not be judged and
    nothing got worse. Raises as `compare`.

        g = profiler.gate(["attention/v2d_c"], baseline="parent")
        g.exit_code, g.title
    """
    from profiler.documents.gate import gate_versions

    _check_names("gate", names, baseline)
    return _ask(gate_versions, locals())


def check(
    versions: str | Sequence[str] = (),
    *,
    catalog: Name | None = None,
    seeds: int | None = None,
    landing: str | None = None,
    stage: str | None = None,
    jobs: int | None = None,
) -> CheckDocument:
    """Run versions on the CPU, thread by thread: numbers against the reference, races, waits, accesses.

    Without versions the whole catalogue is checked; `catalog` is another catalog.toml. `seeds` is the number
    of schedules (3 for good versions, 10 for rejected ones), `jobs` of processes, `landing` when TMA and
    wgmma take effect: late, rows, at-once, or all of these in each schedule. No GPU and no CUDA toolkit is
    needed, but g++ 12. `exit_code` is 0 where all is as expected, 1 where a good version is wrong or a
    rejected one is not caught. Raises UnknownName, BadCatalog, and CannotJudge where nothing can be checked.

        profiler.check("v2d_c", seeds=1).to_frame()[["version", "passed", "max_abs_error"]]
    """
    from profiler.documents.check import check_names

    return _ask(check_names, locals(), names=versions)


def predict(
    names: Name | Sequence[Name] = (),
    *,
    catalog: Name | None = None,
    launch: GivenLaunch | None = None,
    against: str | None = None,
    workloads: str | Sequence[str] = (),
    gpus: str | Sequence[str] = (),
    macros: Mapping[str, object] | None = None,
    what_ifs: bool = False,
    jobs: int | None = None,
) -> PredictionDocument:
    """How long versions would take on GPUs that are not here, or what the model says of a report's launches.

    Modelled times in nanoseconds, with the range that held eight of ten public launches; ratios are to
    `against`, else to the nearest good ancestor. Without names every good version of the catalogue. `gpus`
    are names as H100-SXM or L4, `workloads` labels, `macros` what to build the versions with besides. A cubin
    says nothing of its launch: `launch` does (profiler.documents.prediction.GivenLaunch). Raises
    UnknownName, UnreadableReport, and CannotJudge where nvcc or g++ is missing.

        profiler.predict("v2d_c", gpus="L4", macros={"WARPS": 8}).sentences
    """
    from profiler.documents.prediction import predict_names

    _check_names("predict", names, against)
    built_with = [f"{name}={value}" for name, value in (macros or {}).items()]
    return _ask(predict_names, locals(), macros=built_with, with_what_ifs=what_ifs)


def judge(
    candidate: Name,
    *,
    against: Name | None = None,
    catalog: Name | None = None,
    gpu: str | None = None,
    workloads: str | Sequence[str] = (),
    seed: int | None = None,
    trust: bool = False,
) -> JudgementDocument:
    """Judge untrusted device code: is it right, what does it cost, is it better than `against`.

    `candidate` and `against` are a folder with candidate.toml and CUDA C++, PTX or a cubin, or the name of a
    version. It is compiled and run in isolation, on shapes and random inputs unless `seed` is given;
    `workloads` are labels, the acceptance workloads unless given; `trust` runs it where nothing isolates.
    `valid` is None where it is not known. Raises UnknownName, BadCatalog, and CannotJudge where nothing
    isolates or nvcc is missing.

        profiler.judge("my_kernel", against="v2d_b").sentences
    """
    from profiler.documents.judgement import judge_name

    _check_names("judge", candidate, against)
    return _ask(judge_name, locals())


def open_store(data: Data | None = None, db: str | None = None, *, sync: bool = True) -> Store:
    """The index of a data folder (PROFILER_DATA, PROFILER_DB where None), brought in step with its bundles.

    It is a context manager, and one index may serve many questions: pass it as `store`. Raises ProfilerError
    where the index or the folder cannot be read, for a folder that is not there, and for one of reports
    alone, which have to be imported. A folder without runs is left as it is.

        with profiler.open_store("data") as store:
            [version.version for version in store.versions()]
    """
    from profiler.store.readable_index import open_store as open_index

    folder = _folder(None, data)
    if folder is not None:
        _refuse_folder_of_reports(folder)
    return open_index(folder, db, sync=sync)


def _refuse_folder_of_reports(folder: str) -> None:
    """Raise UnknownName for a folder of report files alone: an index of it would be empty."""
    from profiler.errors import UnknownName
    from profiler.reports.read import is_report

    if "://" in folder or os.path.isdir(os.path.join(folder, "runs")):
        return
    if any(map(is_report, Path(folder).iterdir())):
        raise UnknownName(
            f"{folder} holds reports and no runs: `profiler import {folder}` takes them into a data folder"
        )


def prune(
    older_days: float,
    *,
    family: str | None = None,
    why: str = "",
    do_it: bool = False,
    data: Data | None = None,
) -> PruneDocument:
    """Drop the reports of runs made more than so many days ago, and keep all numbers read from them.

    Without `do_it` it only says which. `why` is kept with each run; a run whose report is damaged keeps it,
    and `exit_code` is then 2. Raises ProfilerError for a family that is not there.

        profiler.prune(365).to_frame()["report_bytes"].sum()
    """
    from profiler.documents.prune import prune_reports

    return prune_reports(older_days, family=family, why=why, do_it=do_it, data=_folder(None, data))


def _folder(store: Store | None, data: Data | None) -> str | None:
    """Where bundles and decisions are read: what was named, else what the given index was made from."""
    from profiler.errors import UnknownName

    if data is None:
        return None if store is None else store.data
    folder = os.fspath(data)
    if "://" not in folder and not os.path.isdir(folder):
        raise UnknownName(f"no data folder {folder!r}: `profiler import PATH` with PROFILER_DATA makes one")
    return folder


def _ask(answer: Callable[..., _Answer], given: Mapping[str, Any], **named: object) -> _Answer:
    """Ask with the arguments of a function here; `named` are those that the answer calls otherwise.

    What it raises names arguments in place of the options of the command line.
    """
    from profiler.documents.asking import ask

    store = given.get("store")
    folder = _folder(store, given.get("data"))
    with _index(store, folder) as opener:
        return ask(answer, {**given, "table": given.get("metrics"), **named}, opener, data=folder)


@contextmanager
def _index(store: Store | None, data: str | None) -> Iterator[StoreOpener]:
    """How an answer opens the index: the given one, else the data folder's own, which is closed again."""
    from profiler.errors import ProfilerError

    own: list[Store] = []

    def opener() -> Store:
        if store is not None:
            return store
        if not own:
            own.append(open_store(data))
        return own[0]

    try:
        yield opener
    except ProfilerError as error:
        error.name_argument()
        raise
    finally:
        for opened in own:
            opened.close()


def _table(metrics: Metrics | None) -> MetricTable:
    from profiler.evidence.metric_table import MetricTable, load_metrics

    if isinstance(metrics, MetricTable):
        return metrics
    return load_metrics(None if metrics is None else Path(metrics))


def _check_names(function: str, *given: object) -> None:
    """Raise TypeError where one of these, or one in a collection of them, is neither a name nor a file."""
    for one in given:
        names = one if isinstance(one, Collection) and not isinstance(one, str) else (one,)
        for name in names:
            if name is not None and not isinstance(name, str | os.PathLike):
                takes = f"{function}() takes names and files, not {type(name).__name__}"
                raise TypeError(f"{takes}: pass the report's file")
