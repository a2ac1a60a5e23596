"""The runs that a file of times becomes: one for each date, commit and GPU in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from profiler.bundles import bundle, location
from profiler.bundles.run import COLLECT, NOISE, Json, Result, Run, Samples, check_label
from profiler.errors import ProfilerError
from profiler.evidence.naming import brief_list
from profiler.store.label_forms import label_of_name
from profiler.timings.timing import NS, NotTimes, Timing, TimingsFile, in_ns

TIMINGS = "timings_sha256"  # provenance key: the digest of what the run was made of
_RUNS = "timings_runs"  # and how many runs that file became, where it is more than one
MOST_SAMPLES = 250_000  # of a run: run.json has a limit, and more of one measurement say nothing new


class TimedRun(NamedTuple):
    """A run, and what has to be said of it."""

    run: Run
    warnings: tuple[str, ...]


def timed_runs(
    files: Sequence[TimingsFile],
    digest: str,
    stem: str,
    file_time: datetime,
    given: Mapping[str, str | None],
    gpu: str | None = None,
    of_commit: Mapping[str, Json] | None = None,
) -> Iterator[TimedRun]:
    """The runs of one file, in its order.

    digest: its sha256. stem: its name, which is the version where neither an implementation nor a commit is
    known. file_time: when it was written, for a file that does not say. given: what the user said of family,
    version and workload, None for nothing. gpu: where it ran, for a file that does not say.
    of_commit: what its provenance says of the commit that the file is from.
    """
    parts = [(file, *part) for file in files for part in _by_gpu(file.timings, gpu).items()]
    for number, (file, name, timings) in enumerate(parts):
        own = part_digest(digest, number)
        results, warnings = _results(timings, file.commit or stem, given)
        created = file.created or file_time
        provenance: dict[str, Json] = {
            **file.provenance,
            "created_from": "session" if file.created else "file time",
            "timings_form": file.form,
            TIMINGS: own,
            **({_RUNS: len(parts)} if len(parts) > 1 else {}),
            **(of_commit or {}),
        }
        if file.commit:
            provenance["git_commit"] = file.commit
        if name:
            provenance["gpu"] = name
        family, version = results[0].family, results[0].version
        run_id = bundle.imported_run_id(created, family, version, own)
        run = Run(run_id, COLLECT, created, provenance, results)
        yield TimedRun(run, (*file.warnings, *warnings))


def part_digest(digest: str, number: int) -> str:
    """What tells apart the runs of one file: of the first its own digest."""
    return digest if number == 0 else sha256(f"{digest} {number}".encode()).hexdigest()


def runs_of_file(provenance: Mapping[str, Json]) -> int:
    """How many runs the file of a run of times became."""
    count = provenance.get(_RUNS, 1)
    return count if isinstance(count, int) else 1


def _by_gpu(timings: Sequence[Timing], gpu: str | None) -> dict[str | None, list[Timing]]:
    by_gpu: dict[str | None, list[Timing]] = {}
    for timing in timings:
        by_gpu.setdefault(timing.gpu or gpu, []).append(timing)
    return by_gpu


def record_times(
    family: str,
    times: Mapping[str, Sequence[float]],
    version: str,
    *,
    unit: str = "ns",
    mode: str = "recorded",
    gpu: str | None = None,
    commit: str | None = None,
    data: str | None = None,
) -> str:
    """Seal the times [calls] of each workload as a run, made now; its id. Another time is another run.

    Raises ProfilerError for a label or unit that is none, for what is no time, and for no times at all.
    """
    if unit not in NS:
        raise ProfilerError(f"unit={unit}: write one of {', '.join(NS)}")
    try:
        timings = tuple(
            Timing(family, version, workload, mode, tuple(in_ns(time, unit, workload) for time in calls))
            for workload, calls in times.items()
            if len(calls)
        )
    except NotTimes as error:
        raise ProfilerError(str(error)) from error
    if not timings:
        raise ProfilerError("there are no times to record")
    for kind, label in (("family", family), ("version", version)):
        check_label(kind, label)
    now = datetime.now(UTC)
    digest = sha256(f"{now.isoformat()} {family} {version} {sorted(times.items())}".encode()).hexdigest()
    file = TimingsFile("recorded", timings, now, commit)
    given = {"family": family, "version": None, "workload": None}
    ((run, _),) = timed_runs([file], digest, version, now, given, gpu)
    root = location.open_root(data, for_runs=True)
    with bundle.importing(root):
        bundle.seal_import(root, run, {})
    return run.run_id


def noise_runs(runs: Sequence[Run]) -> list[Run]:
    """Runs of one unchanged build as the A/A pairs of a noise floor: one run for each GPU.

    The first and the second file are a pair, the third and the fourth, and so on, oldest first. Raises
    ProfilerError where the files are of several builds, or fewer than two.
    """
    by_gpu: dict[Json, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.created):
        by_gpu.setdefault(run.provenance.get("gpu"), []).append(run)
    return [_noise_run(sessions) for sessions in by_gpu.values()]


def _noise_run(sessions: Sequence[Run]) -> Run:
    commits = {str(run.provenance["git_commit"]) for run in sessions if "git_commit" in run.provenance}
    if len(commits) > 1:
        named = brief_list(sorted(commits))
        raise ProfilerError(f"--noise wants files of one unchanged build, and these are of commits {named}")
    if len(sessions) < 2:
        raise ProfilerError("--noise wants two files of times or more: each is one session of the same build")
    results: dict[tuple[str, str, str | None], Result] = {}
    for result in (result for run in sessions for result in run.results):
        key = result.family, result.version, result.workload
        known = results.get(key) or replace(result, samples=(), status="done", reason=None)
        results[key] = replace(known, samples=(*known.samples, *result.samples))
    newest = sessions[-1]
    digests = sorted(str(run.provenance[TIMINGS]) for run in sessions)
    own = sha256(f"{NOISE} {digests}".encode()).hexdigest()
    first = next(iter(results.values()))
    run_id = bundle.imported_run_id(newest.created, first.family, first.version, own)
    provenance = {**newest.provenance, "purpose": NOISE, TIMINGS: own}
    return Run(run_id, COLLECT, newest.created, provenance, tuple(results.values()))


def _results(
    timings: Sequence[Timing], otherwise: str, given: Mapping[str, str | None]
) -> tuple[tuple[Result, ...], list[str]]:
    """A result for each version and workload, with its samples in every mode."""
    results: dict[tuple[str, str, str | None], Result] = {}
    versions: dict[str, int] = {}
    seen: Counter[tuple[str, str, str | None, str]] = Counter()
    repeated: list[str] = []
    most = max(1, MOST_SAMPLES // len(timings))
    thinned = 0
    for timing in timings:
        family, version, workload = _labels(timing, otherwise, given)
        seen[family, version, workload, timing.mode] += 1
        count = seen[family, version, workload, timing.mode]
        if count > 1:  # two inputs that the tool names alike
            workload = f"{workload or ''} #{count}".strip()
            repeated.append(workload)
        result = results.get((family, version, workload)) or Result(family, version, workload)
        if timing.ns:
            step = -(-len(timing.ns) // most)
            thinned += step > 1
            ns = timing.ns[::step]
            # Not one version after the other in each round: no round is shared.
            number = versions.setdefault(version, len(versions)) % (1 << 16)
            block = Samples(timing.mode, ns, (number,) * len(ns), timing.clocks_mhz[::step])
            result = replace(result, samples=(*result.samples, block), status="done", reason=None)
        elif not result.samples:
            result = replace(result, status="failed", reason=timing.failure)
        results[family, version, workload] = result
    warnings = []
    if repeated:
        warnings.append(f"{len(repeated)} problem sizes are named like another, such as {repeated[0]}")
    if thinned:
        warnings.append(f"of {thinned} measurements only every n-th call is kept, at most {most:,}")
    return tuple(results.values()), warnings


def _labels(timing: Timing, otherwise: str, given: Mapping[str, str | None]) -> tuple[str, str, str | None]:
    """Family, version and workload; an implementation that is not the version is part of the workload."""
    family = given["family"] or label_of_name(timing.benchmark.replace("/", "_"), "imported")
    version = given["version"] or label_of_name(timing.implementation or otherwise, "unnamed")
    if given["workload"] is not None:
        return family, version, given["workload"] or None
    beside = timing.implementation if given["version"] else None
    words = " ".join(filter(None, (beside, timing.parameters)))
    return family, version, label_of_name(words, "") or None


def timings_digest(provenance: Mapping[str, Json]) -> str | None:
    """The digest of what a run of times was made of; None for another run."""
    digest = provenance.get(TIMINGS)
    return digest if isinstance(digest, str) else None
