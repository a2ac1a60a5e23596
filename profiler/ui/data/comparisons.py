"""Two sides that an address names, and what differs between them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches

from profiler.bundles.run import IMPORT
from profiler.compare.comparison import Comparison
from profiler.compare.judged import Judge
from profiler.compare.pair_comparison import PairComparison
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.naming import brief_list
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.explain.explanation import Explanation, explain
from profiler.history.lineage import Lineage
from profiler.history.speedups import Speedup
from profiler.store.rows import VersionInfo
from profiler.ui.addresses import parse_version, version_name
from profiler.ui.data import lineages, results
from profiler.ui.data.cache import cached
from profiler.ui.data.cells import WorkloadOnGpu, workloads_on_gpus
from profiler.ui.data.index import DataVersion, metric_table, noise, pairing, store
from profiler.ui.data.version_choice import families_of, last_pair, lineage_pairs, measured_pairs
from profiler.ui.data.version_source import VersionSource

_PAIRS_TRIED = 6  # pairs of a family that are compared until one has a verdict
_MOST_COMPARED = 20  # workloads and GPUs on which one page compares a pair
_DTYPES = ("fp8", "fp16", "bf16")  # as a workload names them


@cached()
def default_pair(data_version: DataVersion, chosen: str = "") -> tuple[str, str]:
    """What the Diff page opens with: the last pair with a verdict, of the first family that has one.

    The family `chosen` comes first, and where nothing of it has a verdict, its last two versions do.
    In a lineage that is a version after its nearest correct ancestor, the deepest pair that was timed
    together; where nothing was timed, the pair that leads to the best by the model. In another family it is
    the last two versions of which a launch or a call can be judged.
    """
    versions = lineages.versions(data_version)
    for family in sorted(families_of(versions), key=lambda family: family != chosen):
        lineage = None
        with suppress(ProfilerError):
            lineage = lineages.lineage(data_version, family)
        if lineage is not None and (pair := _pair_of_lineage(data_version, versions, lineage)):
            return pair
        if lineage is None and (pair := _pair_of_family(data_version, versions, family)):
            return pair
        of_family = [version for version in versions if version.family == family]
        if family == chosen and len(of_family) > 1:
            return last_pair(of_family)
    return last_pair(versions)


def _pair_of_lineage(
    data_version: DataVersion, versions: Sequence[VersionInfo], lineage: Lineage
) -> tuple[str, str] | None:
    pairs = lineage_pairs(versions, lineage)
    if lineage.first_timed_cell is not None:
        gpu, workload = lineage.first_timed_cell
        speedups = lineages.speedups(data_version, lineage.family, workload, gpu)
        with_verdict = [pair for pair in pairs if _has_verdict(speedups.get(parse_version(pair[1]).version))]
        pairs = with_verdict or pairs
    else:
        best = lineages.best_version(data_version, lineage.family)
        pairs.sort(key=lambda pair: parse_version(pair[1]).version != best)
    return pairs[0] if pairs else None


def _has_verdict(speedup: Speedup | None) -> bool:
    return speedup is not None and speedup.compared.verdict.traits.decided


def _pair_of_family(
    data_version: DataVersion, versions: Sequence[VersionInfo], family: str
) -> tuple[str, str] | None:
    pairs = measured_pairs(versions, family, results.cells(data_version))
    for pair, (workload, gpu) in pairs[:_PAIRS_TRIED]:
        with suppress(ProfilerError):
            compared = comparison(data_version, *pair, workload, gpu, None, Evidence.MEASURED)
            verdicts = [call.verdict for call in compared.latency]
            verdicts += [launches.verdict for launches in compared.pairs]
            if any(verdict and verdict.traits.decided for verdict in verdicts):
                return pair
    return None


@cached()
def side(data_version: DataVersion, name: str, workload: str, gpu: str, evidence: Evidence) -> Side:
    """The launches of a run id or family/version; never of a path, since an address comes from outside."""
    if any(run.run_id == name for run in results.runs(data_version)):
        return store().side(run_id=name)
    parsed = parse_version(name)
    versions = lineages.versions(data_version)
    for version in versions:
        if version_name(version) == parsed.without_run:
            own_workload, own_gpu = _nearest_cell(data_version, name, workload, gpu, evidence)
            return store().side(
                run_id=parsed.run_id,
                family=version.family,
                version=version.version,
                workload=own_workload,
                gpu=own_gpu,
                evidence=evidence,
            )
    names = [version_name(version) for version in versions]
    near = get_close_matches(name, names, n=3, cutoff=0.4) or names
    raise UnknownName(f"{name}: no such run or version in the index; there are {brief_list(near)}")


def _nearest_cell(
    data_version: DataVersion, name: str, workload: str, gpu: str, evidence: Evidence
) -> tuple[str | None, str | None]:
    """The workload and GPU asked for, else the version's only ones that come near; None where several do.

    So two versions can be compared that ran on two GPUs or with two dtypes: they are shown side by side,
    not comparable.
    """
    own = workloads_on_gpus(results.cells_with_runs_of(data_version, (name,)), (name,), evidence)
    if (workload, gpu) in own:
        return workload, gpu
    # In the order of preference: another GPU, another dtype on the same GPU, anything.
    near = [pair for pair in own if pair[0] == workload]
    shape = _without_dtype(workload)
    near = near or [pair for pair in own if _without_dtype(pair[0]) == shape and pair[1] == gpu] or own
    return near[0] if len(near) == 1 else (None, None)


def _without_dtype(workload: str) -> list[str]:
    return [word for word in workload.split() if word not in _DTYPES]


@cached()
def comparison(
    data_version: DataVersion,
    a: str,
    b: str,
    workload: str,
    gpu: str,
    kernel: str | None,
    evidence: Evidence,
) -> Comparison:
    """B against A."""
    side_a, side_b = (side(data_version, name, workload, gpu, evidence) for name in (a, b))
    judge = Judge(
        metric_table(data_version), noise(data_version), pairing(data_version), kernel=kernel or None
    )
    return judge.sides(side_a, side_b)


def comparisons_elsewhere(
    data_version: DataVersion,
    a: str,
    b: str,
    pairs: Sequence[WorkloadOnGpu],
    kernels: str,
    evidence: Evidence,
) -> dict[WorkloadOnGpu, Comparison]:
    """The same two on each workload and GPU, where both were measured there and have such a kernel."""
    comparisons = {}
    for workload, gpu in pairs[:_MOST_COMPARED]:
        with suppress(UnknownName):
            comparisons[workload, gpu] = comparison(data_version, a, b, workload, gpu, kernels, evidence)
    return comparisons


def explain_pair(compared: Comparison, pair: PairComparison, table: MetricTable) -> Explanation:
    """Why one pair of a comparison differs in time."""
    return explain(replace(compared, pairs=(pair,)), table)[0]


def are_both_imported(data_version: DataVersion, compared: Comparison) -> bool:
    """Whether both sides come from imported reports."""
    kinds = {run.run_id: run.kind for run in results.runs(data_version)}
    return all(kinds.get(side.run_id or "") == IMPORT for side in (compared.a, compared.b))


def version_sources(
    data_version: DataVersion, compared: Comparison
) -> tuple[VersionSource, VersionSource] | None:
    """What the runs keep of both sides, where both are versions of a catalogue."""
    a, b = (
        lineages.version_source(data_version, side.family, side.run_id, side.version)
        if side.family and side.version
        else None
        for side in (compared.a, compared.b)
    )
    return None if a is None or b is None else (a, b)
