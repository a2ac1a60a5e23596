"""The attention lineage itself: what its machine code, its conflicts and the committed run must show."""

from __future__ import annotations

import contextlib
import gzip
import json
import lzma
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.build import library, resources
from profiler.build.kernel_names import template_integer
from profiler.build.resources import FunctionResources, VersionResources
from profiler.bundles import bundle
from profiler.bundles.location import LocalRoot
from profiler.bundles.run import COLLECT, Facts, Result, Run
from profiler.catalog import catalog, sources
from profiler.emulator import cpu_check
from profiler.evidence.values import Evidence
from profiler.sass import bundle_file, stored_code
from tests.conftest import ROOT
from tests.toolchain import needs_gxx, needs_nvcc, needs_sass

ARCH = "sm_90a"
SAMPLE = (
    "v1",
    "v2d_b",
    "v2d_c",
    "v2e",
)  # what is built where the whole lineage would take a minute of two cores
CORES = 2  # of the machine that the time limits are for
SCALAR = ("v1", "flashcore_vec", "v2b", "v2c_v3")
TENSOR = tuple(
    version.id
    for version in catalog.load_catalog(ROOT / "kernels").versions
    if version.state == "good" and version.id not in SCALAR
)
HOW = "`profiler static --check --out data/runs` makes a new one: commit it"


@pytest.fixture(scope="module")
def lineage() -> catalog.Catalog:
    return catalog.load_catalog(ROOT / "kernels")


@pytest.fixture(
    scope="module",
    params=[pytest.param(SAMPLE, id="sample"), pytest.param((), id="lineage", marks=pytest.mark.long)],
)
def built(lineage: catalog.Catalog, request: pytest.FixtureRequest) -> tuple[catalog.Version, ...]:
    """The versions that are built: some, or the whole lineage."""
    return tuple(lineage.by_id[name] for name in request.param) or lineage.versions


@pytest.fixture(scope="module")
def cold_build(
    lineage: catalog.Catalog,
    built: tuple[catalog.Version, ...],
    build_cache: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[float, list[object]]]:
    """The versions built for one architecture into an empty cache: CPU seconds, and what was made.

    What g++ makes for the CPU check is not timed here. That, and what nvcc made, is then there for all tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("lineage")
        (build_cache / "cpu").mkdir(exist_ok=True)
        (folder / "cpu").symlink_to(build_cache / "cpu")
        patch.setenv("PROFILER_BUILD", str(folder))
        before = _children_s()
        made: list[object] = list(library.build(lineage, built, [ARCH]))
        seconds = _children_s() - before
        for build in folder.glob(f"{lineage.family}/*/*"):
            shared = build_cache / build.relative_to(folder)
            shared.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # another test was first
                shared.symlink_to(build)
        yield seconds, made


@pytest.fixture(scope="module")
def functions(
    lineage: catalog.Catalog, built: tuple[catalog.Version, ...], cold_build: object
) -> dict[tuple[str, int], FunctionResources]:
    """The main function of each good version by head dim."""
    good = [version for version in built if version.state == "good"]
    found = {}
    for one in resources.version_resources(lineage, good, [ARCH], launch_configs=cpu_check.launch_configs):
        assert isinstance(one, VersionResources), one
        assert one.missing == ()
        for function in one.functions:
            assert function.role == "main" or one.version.roles
            assert function.head_dim is not None
            if function.role == "main":
                found[one.version.id, function.head_dim] = function
            else:
                assert (function.over_budget, function.unjudged) == ((), ()), function.role
    assert {name for name, _ in found} == {version.id for version in good}
    return found


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def opcodes(functions: dict[tuple[str, int], FunctionResources], name: str) -> dict[str, int]:
    """Sites of both head dims together."""
    total: dict[str, int] = {}
    for (version, _), function in functions.items():
        if version == name:
            assert function.code is not None
            for opcode, sites in function.code.classes.items():
                total[opcode] = total.get(opcode, 0) + sites
    return total


# ---- building


@needs_nvcc
def test_every_version_compiles_without_a_warning(
    cold_build: tuple[float, list[library.BuiltLibrary]],
) -> None:
    for made in cold_build[1]:
        assert isinstance(made, library.BuiltLibrary), made
        assert not made.cached
        assert made.warnings == "", made.version


@needs_nvcc
def test_the_whole_lineage_builds_in_a_minute_on_two_cores(cold_build: tuple[float, object]) -> None:
    assert cold_build[0] / CORES < 60, "CPU seconds, so that other work on the machine does not count"


@needs_nvcc
def test_nothing_is_done_again_where_nothing_changed(
    lineage: catalog.Catalog, built: tuple[catalog.Version, ...], cold_build: object
) -> None:
    begun, before = time.process_time(), _children_s()
    made = list(library.build(lineage, built, [ARCH]))
    assert all(isinstance(one, library.BuiltLibrary) and one.cached for one in made)
    assert time.process_time() - begun + _children_s() - before < 2


@needs_nvcc
def test_no_library_is_linked_with_the_driver(cold_build: tuple[float, list[library.BuiltLibrary]]) -> None:
    """Tensor maps are encoded by a function of it, which the runtime is asked for at a launch."""
    for made in cold_build[1]:
        needed = subprocess.run(["readelf", "--dynamic", str(made.library)], capture_output=True, text=True)
        assert "NEEDED" in needed.stdout, made.version
        assert "libcuda.so" not in needed.stdout, made.version


# ---- the machine code


@needs_sass
@needs_gxx
def test_no_good_version_spills_at_head_dim_64_or_128(
    functions: dict[tuple[str, int], FunctionResources],
) -> None:
    assert {key: one.usage.spill_bytes for key, one in functions.items()} == dict.fromkeys(functions, 0)


@needs_sass
@needs_gxx
def test_every_good_version_keeps_its_budget(functions: dict[tuple[str, int], FunctionResources]) -> None:
    for key, one in functions.items():
        assert (one.over_budget, one.unjudged) == ((), ()), key


@needs_sass
@needs_gxx
def test_tensor_cores_come_in_with_wmma_and_not_before(
    functions: dict[tuple[str, int], FunctionResources],
) -> None:
    counts = {name: opcodes(functions, name) for name, _ in functions}
    found = {name: count["HMMA"] + count["HGMMA"] for name, count in counts.items()}
    assert {name for name, sites in found.items() if sites} == found.keys() & set(TENSOR), found
    assert found.keys() <= {*SCALAR, *TENSOR}
    if "v2c_v5" in found:
        assert found["v2c_v5"] > found["v2c_v4"], "P V too"


@needs_sass
@needs_gxx
def test_mma_versions_keep_everything_in_registers(
    functions: dict[tuple[str, int], FunctionResources],
) -> None:
    for name in {"v2d_a", "v2d_b", "v2d_c", "v2d_d"} & {name for name, _ in functions}:
        found = opcodes(functions, name)
        assert (found["LDL"], found["STL"]) == (0, 0), name
        assert found["LDSM.T"] > 0, "V is transposed by ldmatrix"
        assert found["LDGSTS"] > 0, "cp.async"


@needs_sass
@needs_gxx
def test_no_good_version_uses_local_memory(functions: dict[tuple[str, int], FunctionResources]) -> None:
    for name, _ in functions:
        found = opcodes(functions, name)
        assert (found["LDL"], found["STL"]) == (0, 0), name


@needs_sass
@needs_gxx
def test_the_third_stage_costs_shared_memory(functions: dict[tuple[str, int], FunctionResources]) -> None:
    two, three = functions["v2d_b", 64], functions["v2d_c", 64]
    assert (two.most_shared_bytes, three.most_shared_bytes) == (40 << 10, 56 << 10)


@needs_sass
@needs_gxx
def test_versions_for_hopper_leave_operands_in_shared_memory_and_copies_to_tma(
    functions: dict[tuple[str, int], FunctionResources],
) -> None:
    for name in {"v2e", "v2f", "v2g"} & {name for name, _ in functions}:
        found = opcodes(functions, name)
        assert min(found["HGMMA"], found["UTMALDG"], found["UTMASTG"], found["SYNCS"]) > 0, name
        assert [found[opcode] for opcode in ("HMMA", "LDSM", "LDGSTS", "LDG", "STG")] == [0] * 5, name
        assert (found["STAS"] > 0) == name.startswith("v2g"), "what blocks of a cluster send each other"
    for (name, head_dim), function in functions.items():
        assert function.usage.serialized_wgmma == (), (name, head_dim)
        pool = function.register_pool
        assert (pool and pool.words) == ("24 + 240 + 240 of 504" if name == "v2f" else None), name


@needs_sass
@needs_gxx
def test_a_fragment_of_keys_is_used_twice_where_registers_allow_it(
    lineage: catalog.Catalog, cold_build: object, built: tuple[catalog.Version, ...]
) -> None:
    """In v2d_d at d=64: a warp's 32 rows take half as many ldmatrix a product as 16 do."""
    if lineage.by_id["v2d_d"] not in built:
        pytest.skip("v2d_d is built with the whole lineage: -m long")
    (one,) = resources.version_resources(
        lineage, [lineage.by_id["v2d_d"]], [ARCH], launch_configs=cpu_check.launch_configs
    )
    assert isinstance(one, VersionResources), one
    share = {}
    for function in one.functions:
        assert function.code is not None
        share[function.role, function.head_dim] = (
            function.code.classes["LDSM"] / function.code.classes["HMMA"]
        )
    assert share["main", 64] < 0.6 * share["few", 64]
    assert share["main", 128] > 0.9 * share["few", 64], "registers leave a warp 16 rows there"
    shared = {(function.role, function.head_dim): function.most_shared_bytes for function in one.functions}
    assert shared == {("main", 64): 48 << 10, ("few", 64): 40 << 10, ("main", 128): 48 << 10}


# ---- the banks, by the model


@needs_gxx
def test_the_swizzle_removes_the_modelled_conflicts(lineage: catalog.Catalog) -> None:
    problem = sources.load_object(lineage, lineage.problem)
    for workload in problem.check_workloads("fp16", (64, 128))[::2]:
        conflicts = {}
        for name in ("v2d_a", "v2d_b"):
            (run,) = cpu_check.check(lineage.by_id[name], problem, [workload], [0])
            assert run.passed
            conflicts[name] = run.bank_conflicts
        assert conflicts["v2d_a"] > 10_000
        assert conflicts["v2d_b"] <= 0.05 * conflicts["v2d_a"], workload.label


# ---- the committed runs


@pytest.fixture(scope="module")
def runs(lineage: catalog.Catalog) -> list[Run]:
    """The dissections of the lineage under data/runs, oldest first. One may be of some versions alone."""
    root = LocalRoot(ROOT / "data")
    every = [bundle.load_run(root, name) for name in bundle.list_runs(root)]
    ours = [
        run
        for run in every
        if run.kind == COLLECT
        and any(one.kind == "catalog" for one in run.files)
        and all(result.family == lineage.family for result in run.results)
    ]
    assert ours, f"no dissection of {lineage.family} under data/runs: {HOW}"
    return sorted(ours, key=lambda run: run.created)


@pytest.fixture(scope="module")
def newest(runs: list[Run]) -> dict[str, Run]:
    """The newest run that has results of a version, by version."""
    return {result.version: run for run in runs for result in run.results}


@pytest.fixture(scope="module")
def results(lineage: catalog.Catalog, newest: dict[str, Run]) -> list[Result]:
    """Of every version that is built, from its newest run."""
    built = {version.id for version in lineage.versions if version.buildable}
    return [
        result
        for name in newest
        for result in newest[name].results
        if result.version == name and name in built
    ]


def test_the_committed_runs_are_of_these_sources(lineage: catalog.Catalog, results: list[Result]) -> None:
    held = {result.version: result.source_sha256 for result in results}
    now = {
        version.id: sources.source_sha256(lineage, version)
        for version in lineage.versions
        if version.buildable
    }
    stale = sorted(name for name in held.keys() | now.keys() if held.get(name) != now.get(name))
    assert not stale, f"{', '.join(stale)} changed since the newest run: {HOW}"


def test_the_committed_runs_hold_both_kinds_of_evidence_for_every_version(
    lineage: catalog.Catalog, results: list[Result]
) -> None:
    kinds: dict[str, set[Evidence]] = {}
    for result in results:
        kinds.setdefault(result.version, set()).update(facts.evidence for facts in result.facts)
    both = {Evidence.STATIC, Evidence.MODELLED}
    assert kinds == {version.id: both for version in lineage.versions if version.buildable}


def test_wrong_versions_stand_in_the_committed_runs_as_wrong(
    lineage: catalog.Catalog, results: list[Result]
) -> None:
    status: dict[str, set[str]] = {}
    for result in results:
        if result.check is not None:
            assert result.check["as_expected"], (result.version, result.workload)
            status.setdefault(result.version, set()).add(result.status)
    for version in lineage.versions:
        if version.state == "good":
            assert status[version.id] == {"done"}, version.id
        if version.state == "rejected":
            assert status[version.id] <= {"wrong", "failed"}, version.id


@pytest.mark.slow
def test_the_committed_runs_keep_the_machine_code_of_every_version_and_architecture(
    lineage: catalog.Catalog, newest: dict[str, Run]
) -> None:
    root = LocalRoot(ROOT / "data")
    for version in lineage.versions:
        if version.buildable:
            for arch in version.arches:
                kept = stored_code.code_of_run(root, newest[version.id], lineage.family, version.id, arch)
                assert kept, (version.id, arch)
                assert kept.listing.has_text
                assert kept.listing.has_sources
                sizes = {template_integer(name) for name in kept.listing.functions}
                assert sizes >= set(version.head_dims)
    held = {run.run_id: run for run in newest.values()}.values()
    size = sum(file.size_bytes for run in held for file in run.files if file.kind == bundle_file.SASS)
    assert size < 1_500_000, "a clone stays small"


def test_the_opcodes_of_the_committed_code_are_the_static_facts(
    lineage: catalog.Catalog, newest: dict[str, Run]
) -> None:
    for version in ("v2d_b", "v2e"):
        run = newest[version]
        kept = stored_code.code_of_run(LocalRoot(ROOT / "data"), run, lineage.family, version, ARCH)
        assert kept
        for result in run.results:
            for facts in result.facts:
                if result.version == version and facts.target == ARCH:
                    at = [
                        index
                        for index, name in enumerate(kept.listing.functions)
                        if template_integer(name) == result.problem["head_dim"]
                    ]
                    lines = [line for line in kept.listing.lines if line.function in at]
                    for opcode in ("HMMA", "LDSM", "FFMA") if version == "v2d_b" else ("HGMMA", "UTMALDG"):
                        sites = sum(line.opcode.split(".")[0] == opcode for line in lines)
                        assert sites == facts.opcodes[opcode], (result.workload, opcode)


def test_the_committed_runs_name_no_machine(newest: dict[str, Run]) -> None:
    for run in {run.run_id: run for run in newest.values()}.values():
        folder = ROOT / "data" / "runs" / run.run_id
        every = [path for path in folder.rglob("*") if path.is_file()]
        packed = [lzma.decompress(path.read_bytes()) for path in every if path.suffix == ".xz"]
        text = b"".join([*packed, *(path.read_bytes() for path in every)])
        assert b"/root" not in text
        assert b"/home/" not in text
        assert b"/tmp/" not in text
        assert "host" not in run.provenance


def test_the_sources_in_the_newest_run_are_a_lineage_of_their_own(
    lineage: catalog.Catalog, runs: list[Run]
) -> None:
    held = catalog.load_catalog(Path(ROOT / "data" / "runs" / runs[-1].run_id / "kernels"))
    assert {version.id for version in held.versions} == {version.id for version in lineage.versions}


# ---- what docs/kernels.md says of them

STORY = ROOT / "docs" / "kernels.md"
TIMED = ("1x8x512x64", "2x8x2048x64", "2x8x2048x128")


def story_rows(results: list[Result], newest: dict[str, Run], lineage: catalog.Catalog) -> list[str]:
    """The rows of the tables of docs/kernels.md, by the newest runs; `d = 64 / d = 128` in a cell."""
    static: dict[tuple[str, str, int], Facts] = {}
    conflicts: dict[str, float | None] = {}
    for result in results:
        for facts in result.facts:
            if facts.evidence is Evidence.STATIC and facts.target == ARCH:
                static[result.version, facts.part, int(result.problem["head_dim"])] = facts
            elif result.workload == "1x2x128x64" + (" fp8" if result.version.startswith("fp8") else ""):
                conflicts[result.version] = facts.values["modelled__bank_conflicts"].number
    times: dict[tuple[str, str], float] = {}
    for run in {run.run_id: run for run in newest.values()}.values():
        for path in (ROOT / "data" / "runs" / run.run_id / "predictions").glob("*.json.gz"):
            for one in json.loads(gzip.decompress(path.read_bytes()))["predictions"]:
                if one["gpu"] == "H100-SXM" and one["time_ns"] is not None and newest[one["version"]] is run:
                    times[one["version"], one["workload"].removesuffix(" fp8")] = one["time_ns"] / 1000

    rows = []
    for version in lineage.versions:
        if version.state != "good":
            continue
        for part in dict.fromkeys(part for name, part, _ in static if name == version.id):
            sizes = [size for size in version.head_dims if (version.id, part, size) in static]

            def cell(
                fact: str, form: str, part: str = part, sizes: list[int] = sizes, name: str = version.id
            ) -> str:
                numbers = [static[name, part, size].values[f"static__{fact}"].number or 0 for size in sizes]
                return " / ".join(form.format(number) for number in numbers)

            opcodes = {
                name: [int(static[version.id, part, size].opcodes.get(name, 0)) for size in sizes]
                for name in ("HMMA", "HGMMA", "LDSM", "LDGSTS", "UTMALDG", "UTMASTG", "SYNCS", "STAS")
            }
            sites = {name: " / ".join(map(str, counts)) for name, counts in opcodes.items()}
            shared = " / ".join(
                f"{(static[version.id, part, size].values['static__shared_bytes'].number or 0) / 1024:.1f}"
                for size in sizes
            )
            is_main = part == "main"
            matrix = f"{sites['HGMMA']} (wgmma)" if any(opcodes["HGMMA"]) else sites["HMMA"]
            cells = [
                f"`{version.id}`" + ("" if is_main else f" {part}"),
                cell("registers", "{:.0f}"),
                shared,
                cell("instructions", "{:.0f}"),
                matrix,
                f"{conflicts[version.id]:,.0f}" if is_main else "",
                *(
                    (_microseconds(times[version.id, label]) if (version.id, label) in times else "–")
                    if is_main
                    else ""
                    for label in TIMED
                ),
            ]
            rows.append(f"| {' | '.join(cells)} |")
            if any(opcodes["HGMMA"]):
                serialized = cell("serialized_wgmma", "{:.0f}")
                columns = [sites[name] for name in ("HGMMA", "UTMALDG", "UTMASTG", "SYNCS", "STAS")]
                columns += [cell("registers", "{:.0f}"), cell("spill_bytes", "{:.0f}"), serialized]
                rows.append(f"| `{version.id}` | {' | '.join(columns)} |")
    return rows


def _microseconds(time: float) -> str:
    return f"{time:,.0f}" if time >= 99.5 else f"{time:.1f}"


def test_the_story_of_the_lineage_has_the_figures_of_the_newest_runs(
    results: list[Result], newest: dict[str, Run], lineage: catalog.Catalog
) -> None:
    text = STORY.read_text(encoding="utf-8")
    missing = [row for row in story_rows(results, newest, lineage) if row not in text]
    assert not missing, "\n".join(missing)


def test_the_story_of_the_lineage_names_every_good_version_and_counts_the_planted_mistakes(
    lineage: catalog.Catalog,
) -> None:
    text = STORY.read_text(encoding="utf-8")
    assert not [
        version.id
        for version in lineage.versions
        if version.state == "good" and f"`{version.id}`" not in text
    ]
    planted = catalog.load_catalog(ROOT / "kernels" / "planted.toml")
    assert f"has {len(planted.versions)} mistakes" in text
