"""The machine code of launches and of compiled versions: which there is, as listings, two of them aligned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profiler.build.kernel_names import function_name
from profiler.bundles.location import open_root
from profiler.compare.comparison import Comparison
from profiler.compare.pair_comparison import PairComparison
from profiler.evidence.naming import natural_key
from profiler.evidence.values import Evidence
from profiler.sass import hotspots
from profiler.sass.alignment import Alignment, align
from profiler.sass.hotspots import SAMPLES, HotSpot, HotSpotChange, spots_by_instruction
from profiler.sass.listing import Listing, listing_of_launch, select_functions
from profiler.sass.source_diff import TrafficRow
from profiler.sass.stored_code import StoredCode, compiled_architectures, find_code
from profiler.store.rows import ResultInfo
from profiler.ui.addresses import (
    SHA256_DIGITS,
    CodeKey,
    CompiledKey,
    LaunchKey,
    parse_version,
    version_name,
    version_of_run,
)
from profiler.ui.data import lineages, results
from profiler.ui.data.cache import cached
from profiler.ui.data.index import DataVersion, store
from profiler.ui.data.named_code import CodeReport, NamedCode, function_label, functions_of_workload
from profiler.ui.data.part_names import short_names


@cached(2)
def reports(data_version: DataVersion) -> dict[str, CodeReport]:
    """Every report of every run by the first digits of its sha256, newest first; CSV holds no code."""
    by_digits: dict[str, CodeReport] = {}
    for run in results.runs(data_version):
        for file in run.reports:
            if file.name.endswith(".csv"):  # it has no instructions
                continue
            report = CodeReport(
                run.run_id,
                file.sha256,
                run.version or run.run_id,
                file.name if len(run.reports) > 1 else "",
                ", ".join(run.gpu_names) or "unknown GPU",
                run.family,
            )
            by_digits.setdefault(file.sha256[:SHA256_DIGITS], report)
    return by_digits


def report_of_name(data_version: DataVersion, name: str) -> str | None:
    """The first digits of the newest report of a run id or version, as an address may name it."""
    for digits, report in reports(data_version).items():
        if name in (report.run_id, report.version, f"{report.family}/{report.version}"):
            return digits
    return None


def newest_sampled_report(data_version: DataVersion, chosen: str = "") -> str | None:
    """The newest report of a family with samples per instruction; one of the family chosen comes first."""
    for digits, report in sorted(reports(data_version).items(), key=lambda item: item[1].family != chosen):
        if report.family and SAMPLES in results.metric_names(data_version, report.family):
            return digits
    return None


@cached(64)
def launches_of_report(data_version: DataVersion, digits: str) -> dict[str, ResultInfo]:
    """The launches of a report by their ordinal in it, which is how an address names them."""
    report = reports(data_version)[digits]
    of_run = sorted(results.launches(data_version, report.run_id), key=lambda launch: launch.ordinal)
    return {str(launch.ordinal): launch for launch in of_run if launch.report_sha256 == report.sha256}


def code(data_version: DataVersion, key: CodeKey) -> NamedCode:
    """The machine code of a launch with its counts, or what a compiler made, without any."""
    if isinstance(key, CompiledKey):
        return _compiled_code(data_version, key)
    return _launch_code(data_version, key)


@cached(8, saying="Reading the instructions …")
def _launch_code(data_version: DataVersion, key: LaunchKey) -> NamedCode:
    report = reports(data_version)[key.report]
    launches = launches_of_report(data_version, key.report)
    detail = results.launch_detail(report.run_id, report.sha256, int(key.launch))
    names = short_names(launch.part for launch in launches.values())
    version = f"{report.version}: {report.file}" if report.file else report.version
    kernel = names[launches[key.launch].part]
    return NamedCode(version, kernel, listing_of_launch(detail, f"{version} {kernel}"))


@cached(8)
def _compiled_code(data_version: DataVersion, key: CompiledKey) -> NamedCode:
    """The code of the key's function, or of all functions of its version."""
    stored = stored_code(data_version, key.version, key.arch)
    listing = stored.listing
    if key.function:
        listing = select_functions(listing, lambda name: name == key.function)
        kernel = function_label(key.function)
    else:
        kernel = ", ".join(dict.fromkeys(map(function_name, listing.functions)))
    label = f"{stored.version} {kernel}"
    labelled = Listing(label, listing.functions, listing.lines, listing.counts, listing.texts)
    return NamedCode(stored.version, kernel, labelled)


@cached(16)
def stored_code(data_version: DataVersion, name: str, arch: str) -> StoredCode:
    """The code that a run keeps of a version; CodeNotStored where none does."""
    family, version, run_id = parse_version(name)
    return find_code(open_root(), store(), family, version, arch, run_id)


@cached(8)
def aligned(data_version: DataVersion, a: CodeKey, b: CodeKey) -> Alignment:
    """Two pieces of code, instruction by instruction."""
    return align(code(data_version, a).listing, code(data_version, b).listing)


@cached(8)
def hot_spots(data_version: DataVersion, key: CodeKey) -> tuple[HotSpot, ...]:
    """The counts of every instruction of a launch; none of what was not run."""
    return spots_by_instruction(code(data_version, key).listing)


@cached(8)
def hot_spot_pairs(
    data_version: DataVersion, a: LaunchKey, b: LaunchKey, scale: float
) -> tuple[HotSpotChange, ...]:
    """Every place of two launches with its waiting samples on both sides; those of B count `scale`."""
    return hotspots.hot_spot_pairs(code(data_version, a).listing, code(data_version, b).listing, scale)


def modelled_traffic(data_version: DataVersion, key: CompiledKey) -> Mapping[str, Sequence[TrafficRow]]:
    """The shared-memory traffic by line of a version by workload, as the model of the banks has it."""
    name = parse_version(key.version)
    kept = lineages.version_source(data_version, name.family, name.run_id, name.version)
    return kept.traffic if kept else {}


def compiled_versions(data_version: DataVersion) -> list[str]:
    """Every version (family/version) that a compiler made something of, in the order of all pages."""
    compiled = {name for name, cell in results.cells(data_version) if cell.evidence is Evidence.STATIC}
    return [name for name in map(version_name, lineages.versions(data_version)) if name in compiled]


def shared_architectures(data_version: DataVersion, names: Sequence[str]) -> list[str]:
    """What all of the named were compiled for, the newest first."""
    architectures = [
        set(compiled_architectures(store(), *parse_version(name))) for name in dict.fromkeys(names)
    ]
    return sorted(set.intersection(*architectures), key=natural_key, reverse=True) if architectures else []


def versions_to_measure(data_version: DataVersion, keys: Sequence[CodeKey]) -> list[str]:
    """The versions of compiled code that a catalogue names and that are not wrong: they can be measured."""
    versions = []
    for key in keys:
        if isinstance(key, CompiledKey):
            name = parse_version(key.version)
            lineage = lineages.lineage(data_version, name.family)
            if lineage and name.version in lineage.by_id and not lineage.by_id[name.version].is_wrong:
                versions.append(name.version)
    return list(dict.fromkeys(versions))


def compiled_pair(
    data_version: DataVersion, comparison: Comparison, names: tuple[str, str]
) -> list[CompiledKey]:
    """The code of the two functions that two static sides are of; CodeNotStored where no run keeps one."""
    sides = (comparison.a, comparison.b)
    versions = [
        name if "/" in name else version_of_run(f"{side.family}/{side.version}", name)  # a run's name
        for name, side in zip(names, sides, strict=True)
    ]
    arches = [side.gpu or "" for side in sides]
    listings = [
        stored_code(data_version, name, arch).listing for name, arch in zip(versions, arches, strict=True)
    ]
    functions = functions_of_workload(listings, comparison.a.workload or "")
    return [CompiledKey(*parts) for parts in zip(versions, arches, functions, strict=True)]


def launch_keys_of_pair(
    data_version: DataVersion, comparison: Comparison, pair: PairComparison
) -> list[LaunchKey | None]:
    """The keys of both launches of a pair; None where its run keeps no report of one, or a CSV."""
    rows = [
        results.result_of_launch(data_version, side, launch)
        for side, launch in ((comparison.a, pair.a), (comparison.b, pair.b))
    ]
    return [None if row is None else launch_key(data_version, row) for row in rows]


def launch_key(data_version: DataVersion, launch: ResultInfo) -> LaunchKey | None:
    """A launch as an address names it; None where no code came with it."""
    digits = (launch.report_sha256 or "")[:SHA256_DIGITS]
    if launch.kind != "launch" or digits not in reports(data_version):
        return None
    return LaunchKey(digits, str(launch.ordinal))
