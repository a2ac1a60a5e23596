"""The attention lineage itself: what its machine code, its conflicts and the committed run must show."""

from __future__ import annotations

import contextlib
import lzma
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.build import FunctionResources, VersionResources, library, resources, template_integer
from profiler.bundles import COLLECT, LocalRoot, Run, bundle
from profiler.catalog import catalog, sources
from profiler.emulator import cpu_check
from profiler.evidence import Evidence
from profiler.sass import bundle_file, stored_code
from tests.conftest import ROOT
from tests.toolchain import needs_gxx, needs_nvcc, needs_sass

ARCH = "sm_90a"
SAMPLE = ("v1", "v2d_b", "v2d_c")  # what is built where the whole lineage would take a minute of two cores
CORES = 2  # of the machine that the time limits are for
SCALAR = ("v1", "flashcore_vec", "v2b", "v2c_v3")
TENSOR = tuple(
    version.id
    for version in catalog.load_catalog(ROOT / "kernels").versions
    if version.state == "good" and version.id not in SCALAR
)
HOW = "`profiler dissect --out data/runs` makes a new one: commit it"


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
            assert function.role == "main"
            assert function.head_dim is not None
            found[one.version.id, function.head_dim] = function
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
    found = {name: opcodes(functions, name)["HMMA"] for name, _ in functions}
    assert {name for name, sites in found.items() if sites} == found.keys() & set(TENSOR), found
    assert found.keys() <= {*SCALAR, *TENSOR}
    if "v2c_v5" in found:
        assert found["v2c_v5"] > found["v2c_v4"], "P V too"


@needs_sass
@needs_gxx
def test_mma_versions_keep_everything_in_registers(
    functions: dict[tuple[str, int], FunctionResources],
) -> None:
    for name in {"v2d_a", "v2d_b", "v2d_c"} & {name for name, _ in functions}:
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


# ---- the committed run


@pytest.fixture(scope="module")
def committed(lineage: catalog.Catalog) -> Run:
    """The newest dissection of the lineage under data/runs."""
    root = LocalRoot(ROOT / "data")
    runs = [bundle.load_run(root, name) for name in bundle.list_runs(root)]
    ours = [
        run
        for run in runs
        if run.kind == COLLECT
        and any(one.kind == "catalog" for one in run.files)
        and all(result.family == lineage.family for result in run.results)
    ]
    assert ours, f"no dissection of {lineage.family} under data/runs: {HOW}"
    return max(ours, key=lambda run: run.created)


def test_the_committed_run_is_of_these_sources(lineage: catalog.Catalog, committed: Run) -> None:
    held = {result.version: result.source_sha256 for result in committed.results}
    now = {
        version.id: sources.source_sha256(lineage, version)
        for version in lineage.versions
        if version.buildable
    }
    stale = sorted(name for name in held.keys() | now.keys() if held.get(name) != now.get(name))
    assert not stale, f"{', '.join(stale)} changed since {committed.run_id}: {HOW}"


def test_the_committed_run_holds_both_kinds_of_evidence_for_every_version(
    lineage: catalog.Catalog, committed: Run
) -> None:
    kinds: dict[str, set[Evidence]] = {}
    for result in committed.results:
        kinds.setdefault(result.version, set()).update(facts.evidence for facts in result.facts)
    both = {Evidence.STATIC, Evidence.MODELLED}
    assert kinds == {version.id: both for version in lineage.versions if version.buildable}


def test_wrong_versions_stand_in_the_committed_run_as_wrong(lineage: catalog.Catalog, committed: Run) -> None:
    status: dict[str, set[str]] = {}
    for result in committed.results:
        if result.check is not None:
            assert result.check["as_expected"], (result.version, result.workload)
            status.setdefault(result.version, set()).add(result.status)
    for version in lineage.versions:
        if version.state == "good":
            assert status[version.id] == {"done"}, version.id
        if version.state == "rejected":
            assert status[version.id] <= {"wrong", "failed"}, version.id


@pytest.mark.slow
def test_the_committed_run_keeps_the_machine_code_of_every_version_and_architecture(
    lineage: catalog.Catalog, committed: Run
) -> None:
    root = LocalRoot(ROOT / "data")
    for version in lineage.versions:
        if version.buildable:
            for arch in version.arches:
                kept = stored_code.code_of_run(root, committed, lineage.family, version.id, arch)
                assert kept, (version.id, arch)
                assert kept.listing.has_text
                assert kept.listing.has_sources
                sizes = {template_integer(name) for name in kept.listing.functions}
                assert sizes >= set(version.head_dims)
    size = sum(file.size_bytes for file in committed.files if file.kind == bundle_file.SASS)
    assert size < 1_000_000, "a clone stays small"


def test_the_opcodes_of_the_committed_code_are_the_static_facts(
    lineage: catalog.Catalog, committed: Run
) -> None:
    kept = stored_code.code_of_run(LocalRoot(ROOT / "data"), committed, lineage.family, "v2d_b", ARCH)
    assert kept
    for result in committed.results:
        for facts in result.facts:
            if result.version == "v2d_b" and facts.target == ARCH:
                at = [
                    index
                    for index, name in enumerate(kept.listing.functions)
                    if template_integer(name) == result.problem["head_dim"]
                ]
                lines = [line for line in kept.listing.lines if line.function in at]
                for opcode in ("HMMA", "LDSM", "FFMA"):
                    sites = sum(line.opcode.split(".")[0] == opcode for line in lines)
                    assert sites == facts.opcodes[opcode], (result.workload, opcode)


def test_the_committed_run_names_no_machine(committed: Run) -> None:
    folder = ROOT / "data" / "runs" / committed.run_id
    every = [path for path in folder.rglob("*") if path.is_file()]
    packed = [lzma.decompress(path.read_bytes()) for path in every if path.suffix == ".xz"]
    text = b"".join([*packed, *(path.read_bytes() for path in every)])
    assert b"/root" not in text
    assert b"/home/" not in text
    assert b"/tmp/" not in text
    assert "host" not in committed.provenance


def test_the_sources_in_the_committed_run_are_a_lineage_of_their_own(
    lineage: catalog.Catalog, committed: Run
) -> None:
    held = catalog.load_catalog(Path(ROOT / "data" / "runs" / committed.run_id / "kernels"))
    assert {version.id for version in held.versions} == {version.id for version in lineage.versions}
