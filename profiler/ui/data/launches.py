"""One launch of a run beside a launch of another: which there are, and its sections as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from profiler.compare.comparison import Comparison
from profiler.compare.pair_comparison import PairComparison
from profiler.documents.launch import LaunchDocument, LaunchOfSide, launch_document
from profiler.documents.launch_inside import InsideLaunch, inside_launch
from profiler.errors import UnknownName
from profiler.evidence.launch import Launch, Session, place_of_most_time
from profiler.evidence.naming import natural_key
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.reports.instances import LaunchDetail
from profiler.store.rows import ResultInfo, RunInfo
from profiler.ui.addresses import LaunchView, parse_version
from profiler.ui.data import comparisons, lineages, results
from profiler.ui.data.cache import cached
from profiler.ui.data.index import DataVersion, metric_table, noise, pairing
from profiler.ui.data.part_names import short_names

_RUNS_OFFERED = 100  # of a select box; an address reaches the others
_PARTS_OF_ALL = ("main", "total")  # of facts: the only function, or all of a workload


class LaunchId(NamedTuple):
    """A launch or kernel function as the index has it."""

    run_id: str
    result_id: int


def runs_with_launches(data_version: DataVersion) -> list[RunInfo]:
    """Every run that holds launches or facts, by the order of the families and the newest first."""
    order = {family: place for place, family in enumerate(lineages.families(data_version))}
    newest_first = sorted(results.runs(data_version), key=lambda run: run.created, reverse=True)
    holding = [run for run in newest_first if run.launches or not run.evidence <= {Evidence.MEASURED}]
    return sorted(holding, key=lambda run: (order.get(run.family or "", len(order)), not run.launches))


def runs_to_offer(runs: Sequence[RunInfo], asked: str | None, family: str | None = None) -> dict[str, str]:
    """Run ids with what a select box calls them, those of a family first, and what the address asks for."""
    nearest = sorted(runs, key=lambda run: run.family != family)[:_RUNS_OFFERED]
    found = find_run(runs, asked)
    if found is not None and found not in nearest:
        nearest.insert(0, found)
    versions = Counter(_version_words(run) for run in nearest)
    return {
        run.run_id: _version_words(run)
        + (f" · {run.created:%Y-%m-%d %H:%M}" if versions[_version_words(run)] > 1 else "")
        for run in nearest
    }


def find_run(runs: Sequence[RunInfo], name: str | None) -> RunInfo | None:
    """The run of that id, else the newest with that version (`family/version`, or the version alone).

    A run of that version alone comes before one of several versions.
    """
    if not name:
        return None
    by_id = next((run for run in runs if run.run_id == name), None)
    named = [run for run in runs if name in (run.version, f"{run.family}/{run.version}")] or [
        run for run in runs if any(name in (one, f"{run.family}/{one}") for one in run.versions)
    ]
    return by_id or max(named, key=lambda run: run.created, default=None)


def label_of_version(labels: Mapping[str, ResultInfo], name: str | None) -> str | None:
    """The first launch or function of the version that an address names; None where it names none."""
    own = (key for key, one in labels.items() if name in (one.version, f"{one.family}/{one.version}"))
    return next(own, None) if name else None


def _version_words(run: RunInfo) -> str:
    if run.version:
        return f"{run.family}/{run.version}"
    return f"{run.family or 'several families'}, {len(run.versions)} versions"


@cached()
def by_label(data_version: DataVersion, run_id: str) -> dict[str, ResultInfo]:
    """The launches of a run in its order, else its kernel functions, by what the page calls them."""
    launches = results.launches(data_version, run_id)
    infos = launches or results.facts(data_version, run_id)
    names = short_names(info.part for info in infos)
    if not launches:
        names = {part: "" if part in _PARTS_OF_ALL else name for part, name in names.items()}
    fields = [
        [info.version for info in infos],
        [info.workload or "" for info in infos],
        ["" if launches else info.gpu or "" for info in infos],
        ["" if launches else info.evidence.value for info in infos],
    ]
    told_apart = [values for values in fields if len(set(values)) > 1]
    labels: dict[str, ResultInfo] = {}
    for place, info in enumerate(infos):
        words = [names[info.part], *(values[place] for values in told_apart)]
        label = " · ".join(filter(None, words)) or info.part
        labels.setdefault(label, info)
    if not launches:  # the functions of a lineage by version, as a person would look for them
        kinds = list(Evidence)
        ordered = sorted(
            labels.items(), key=lambda item: (kinds.index(item[1].evidence), natural_key(item[0]))
        )
        labels = dict(ordered)
    return labels


def find_label(labels: dict[str, ResultInfo], asked: str | None) -> str | None:
    """The label that an address asks for: itself, a part (`range/kernel#0`), or a kernel's name."""
    if not asked:
        return None
    if asked in labels:
        return asked
    names = short_names(info.part for info in labels.values())
    return next(
        (
            label
            for label, info in labels.items()
            if asked in (info.part, names[info.part], info.base_name, str(info.ordinal))
        ),
        None,
    )


def default_label(
    data_version: DataVersion, labels: dict[str, ResultInfo], like: ResultInfo | None = None
) -> str | None:
    """The longest launch of the kernel with most time; beside another launch that of the same kernel.

    Of kernel functions that were not measured that of the version which the Diff page opens with.
    """
    if like is not None:
        same = [
            label
            for label, info in labels.items()
            if info.base_name == like.base_name and info.evidence is like.evidence
        ]
        ranked = sorted(same, key=lambda label: _distance(labels[label], like))
        if ranked:
            return ranked[0]
    if any(info.evidence is Evidence.MEASURED for info in labels.values()):
        infos = list(labels.values())
        kernels, times = [info.base_name or "" for info in infos], [-_minus_ns(info) for info in infos]
        return list(labels)[place_of_most_time(kernels, times)]
    family = next((info.family for info in labels.values()), "")
    shown = parse_version(comparisons.default_pair(data_version, family)[1])
    of_version = [label for label, info in labels.items() if info.version == shown.version]
    architectures = {labels[label].gpu or "" for label in of_version}
    newest = max(architectures, key=natural_key, default="")  # as on the other pages
    of_newest = (label for label in of_version if (labels[label].gpu or "") == newest)
    return next(of_newest, next(iter(labels), None))


@cached()
def document(data_version: DataVersion, launch: LaunchId, baseline: LaunchId | None) -> LaunchDocument:
    """The sections of a launch beside those of a baseline; without what its report holds within it."""
    return launch_document(
        _launch_of_side(data_version, launch),
        metric_table(data_version),
        None if baseline is None else _launch_of_side(data_version, baseline),
        noise=noise(data_version),
        pairing=pairing(data_version),
    )


def view_of_result(data_version: DataVersion, run_id: str, result_id: int | None) -> LaunchView | None:
    """The address of a launch by its sections; None for what is no launch of that run, such as a call."""
    labels = by_label(data_version, run_id)
    label = next((label for label, own in labels.items() if own.result_id == result_id), None)
    return None if label is None else LaunchView(run_id, label)


def view_of_pair(
    data_version: DataVersion, comparison: Comparison, pair: PairComparison
) -> LaunchView | None:
    """B's launch of a pair beside A's; None where a side is not in the index."""
    views = [
        _view_of_side(data_version, side, launch)
        for side, launch in ((comparison.a, pair.a), (comparison.b, pair.b))
    ]
    a, b = views
    return a and b and replace(b, against=a.run, against_launch=a.launch)


def detail_of_side(data_version: DataVersion, side: Side, launch: Launch) -> LaunchDetail | None:
    """What the report holds of each instruction of a side's launch; None where no run keeps its report.

    Raises a ProfilerError where the report was dropped, or is a CSV, which holds no instructions.
    """
    row = results.result_of_launch(data_version, side, launch)
    if row is None or row.report_sha256 is None:
        return None
    return results.launch_detail(row.run_id, row.report_sha256, launch.ordinal)


def _view_of_side(data_version: DataVersion, side: Side, launch: Launch) -> LaunchView | None:
    row = results.result_of_launch(data_version, side, launch)
    return None if row is None else view_of_result(data_version, row.run_id, row.result_id)


# The key is the report's hash: no new data changes what a report holds.
@cached(16)
def inside(run_id: str, sha256: str, ordinal: int) -> InsideLaunch:
    """Timelines and hot places of a launch; its report is read on first view."""
    return inside_launch(results.launch_detail(run_id, sha256, ordinal))


@cached(16)
def function_starts(run_id: str, sha256: str, ordinal: int) -> tuple[int, ...]:
    """Where each function of a launch starts, ascending."""
    return results.launch_detail(run_id, sha256, ordinal).functions


def _launch_of_side(data_version: DataVersion, launch: LaunchId) -> LaunchOfSide:
    """A launch with the side it is of, which holds no other: a run may have a thousand."""
    run = next((run for run in results.runs(data_version) if run.run_id == launch.run_id), None)
    labels = by_label(data_version, launch.run_id)
    label, info = next((item for item in labels.items() if item[1].result_id == launch.result_id), ("", None))
    if run is None or info is None:
        raise UnknownName(f"{launch.run_id} has no such launch: it was forgotten, or the run was made again")
    is_measured = info.evidence is Evidence.MEASURED
    side = Side(
        f"{info.family}/{info.version}",
        (results.launch(data_version, launch.result_id),),
        info.gpu or run.gpu,
        run.capability_on(info.gpu) if is_measured else None,
        info.workload,
        evidence=info.evidence,
        session=Session(
            run.ncu_version,
            run.driver,
            run.cuda,
            run.created,
            run.command_line,
            run.clock_control,
            run.cache_control,
        ),
        family=info.family,
        version=info.version,
        run_id=run.run_id,
        result_ids=(launch.result_id,),
        wrong=_why_wrong(data_version, info),
    )
    return LaunchOfSide(side, label, side.launches[0])


def _why_wrong(data_version: DataVersion, info: ResultInfo) -> str | None:
    if not lineages.is_wrong(data_version, info.family, info.version):
        return None
    lineage = lineages.lineage(data_version, info.family)
    status = lineage.by_id[info.version] if lineage else None
    return (status.reason or status.state) if status else None


def _distance(info: ResultInfo, like: ResultInfo) -> tuple[bool, bool, bool, bool, float]:
    """How far a launch of a kernel is from another: label, workload, GPU, grid; then the longest first."""
    return (
        info.part != like.part,
        info.workload != like.workload,
        info.gpu != like.gpu,
        info.grid != like.grid,
        _minus_ns(info),
    )


def _minus_ns(info: ResultInfo) -> float:
    number = info.duration_ns.number
    return 0.0 if number is None else -float(number)
