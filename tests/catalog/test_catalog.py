"""The lineage's catalogue: what it declares, what it refuses, and that the sources agree with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from profiler.catalog import cases, catalog, sources
from profiler.emulator import cpu_check
from profiler.errors import BadCatalog, UnknownName
from tests.conftest import ROOT

KERNELS = ROOT / "kernels"
GOOD = {
    *("v1", "v2b", "v2c_v3", "v2c_v4", "v2c_v5", "v2d_a", "v2d_b", "v2d_c", "v2d_d"),
    *("v2e", "v2f", "v2g", "v2g_multicast"),
    *("flashcore_vec", "flashcore_wmma", "fp8_stage_c"),
}
REJECTED = {
    "v2": "race",
    "v2b_smem": "over-budget",
    "v2b_warp7": "numbers",
    "v2c_v1": "launch-refused",
    "v2c_v2": "numbers",
    "v2c_v3_syncwarp": "race",
    "v2c_v3_reduce32": "numbers",
    "flashcore_wmma_broken": "race",
    "flashcore_wmma_pnorm": "numbers",
    "fp8_lane_scores": "race",
}
BASELINES = {"sdpa", "sdpa_math", "sdpa_efficient", "sdpa_flash", "sdpa_cudnn", "xformers"}
HAVE_NO_LINE = {"numbers", "over-budget", "launch-refused", "crash", "timeout"}

ENTRY = """
family = "mine"
problem = "profiler.catalog.attention:ATTENTION"
[[version]]
id = "one"
technique = "the first"
file = "one.cu"
"""


@pytest.fixture(scope="module")
def lineage() -> catalog.Catalog:
    return catalog.load_catalog(KERNELS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A lineage of a user's own, in a folder of its own."""
    (tmp_path / "one.cu").write_text("#if BUG == BUG_ONE\n#endif\n")
    (tmp_path / "catalog.toml").write_text(ENTRY)
    return tmp_path


def read(folder: Path, text: str) -> catalog.Catalog:
    (folder / "catalog.toml").write_text(text)
    return catalog.load_catalog(folder)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(BadCatalog) as caught:
        read(folder, text)
    assert str(folder / "catalog.toml") in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- our own


def test_no_version_of_the_lineage_is_lost(lineage: catalog.Catalog) -> None:
    """A new one may come; docs/lineage.md says which there are."""
    by_state: dict[str, set[str]] = {}
    for version in lineage.versions:
        by_state.setdefault(version.state, set()).add(version.id)
    assert by_state["good"] >= GOOD
    assert by_state["rejected"] >= set(REJECTED)
    assert by_state["baseline"] >= BASELINES


def test_every_rejected_version_says_what_must_catch_it(lineage: catalog.Catalog) -> None:
    assert {one: lineage.by_id[one].caught_by[0] for one in REJECTED} == REJECTED


def test_the_main_line_leads_back_to_v1_over_the_wrong_versions(lineage: catalog.Catalog) -> None:
    line = ["v2g"]
    while (parent := lineage.by_id[line[-1]].parent) is not None:
        line.append(parent)
    assert " ".join(line) == "v2g v2f v2e v2d_c v2d_b v2d_a v2c_v5 v2c_v4 v2c_v3 v2c_v2 v2c_v1 v2b v2 v1"


def test_a_version_is_compared_with_its_nearest_ancestor_that_is_right(lineage: catalog.Catalog) -> None:
    found = {one: lineage.correct_ancestor(lineage.by_id[one]) for one in ("v2b", "v2c_v3", "v2d_b", "v1")}
    assert {one: version and version.id for one, version in found.items()} == {
        "v2b": "v1",
        "v2c_v3": "v2b",
        "v2d_b": "v2d_a",
        "v1": None,
    }


def test_catalogue_and_sources_agree(lineage: catalog.Catalog) -> None:
    assert sources.inconsistencies(lineage) == []


def test_a_marker_stands_where_a_rejected_version_must_be_caught_by_line(lineage: catalog.Catalog) -> None:
    for name in REJECTED:
        version = lineage.by_id[name]
        words = {word for mark in cpu_check.expected_defects(version) for word in mark.words}
        assert words == set(version.caught_by) - HAVE_NO_LINE, name


def test_the_problem_and_every_stage_are_known(lineage: catalog.Catalog) -> None:
    problem = sources.load_object(lineage, lineage.problem)
    assert problem.name == lineage.family
    for version in lineage.versions:
        assert set(version.stages) <= set(problem.stages)
    good = {version.id: version.stages for version in lineage.versions if version.state == "good"}
    # Whoever holds a part of the keys alone cannot rescale P by what another block has seen.
    split = dict.fromkeys(("v2g", "v2g_multicast"), ("QK", "PV"))
    assert good == {**dict.fromkeys(good, problem.stages), **split}


def test_the_owners_figures_are_labelled_and_complete(lineage: catalog.Catalog) -> None:
    problem = sources.load_object(lineage, lineage.problem)
    from profiler.catalog.attention import ACCEPTANCE

    labels = {workload.label for workload in ACCEPTANCE}
    assert problem.name == "attention"
    for version in lineage.versions:
        for claim in version.claims:
            assert claim.source == "the project owner's notes"
            assert claim.gpu == ("NVIDIA H100" if version.id == "v2g" else "NVIDIA L4")
            assert claim.workload is None or claim.workload in labels

    def latencies(name: str) -> list[float]:
        claims = lineage.by_id[name].claims
        return [claim.value / 1000 for claim in claims if claim.fact == "latency"]

    assert latencies("v1") == [1378]
    assert latencies("v2b") == [2452, 2465, 46907, 47387, 61527]
    assert latencies("v2c_v3") == [1750, 1843, 31446, 33108, 44057]
    assert latencies("sdpa") == [25.94, 33, 33.69]
    assert latencies("xformers") == [24.22]
    assert [claim.workload for claim in lineage.by_id["v2b"].claims[:5]] == [one.label for one in ACCEPTANCE]


def test_planned_and_baseline_versions_are_not_built(lineage: catalog.Catalog) -> None:
    built = {version.id for version in lineage.versions if version.buildable}
    assert built == {version.id for version in lineage.versions if version.state in ("good", "rejected")}


def test_versions_are_picked_in_the_catalogues_order(lineage: catalog.Catalog) -> None:
    assert [version.id for version in lineage.pick(["v2d_c", "v1"])] == ["v1", "v2d_c"]
    assert lineage.pick([]) == lineage.versions


def test_an_unknown_version_is_answered_with_the_nearest(lineage: catalog.Catalog) -> None:
    with pytest.raises(UnknownName, match="no version v2d_zz; did you mean v2d_"):
        lineage.pick(["v2d_zz"])


def test_registers_are_judged_by_head_dim(lineage: catalog.Catalog) -> None:
    budget = lineage.by_id["v2d_c"].budget
    assert [budget.limits(size)["registers"] for size in (64, 128, None)] == [128, 168, 168]
    assert lineage.by_id["v1"].budget.limits(64) == {
        "registers": 72,
        "shared_bytes": 99 * 1024,
        "spill_bytes": 0,
        "stack_bytes": None,
        "serialized_wgmma": 0,
        "barriers": 15,
    }


def test_an_architecture_with_a_suffix_stands_for_itself_alone(lineage: catalog.Catalog) -> None:
    mma, wgmma = lineage.by_id["v2d_c"], lineage.by_id["v2e"]
    assert [mma.supports(arch) for arch in ("sm_75", "sm_80", "sm_86", "sm_90a", "sm_120")] == [
        False,
        True,
        True,
        True,
        True,
    ]
    assert [wgmma.supports(arch) for arch in ("sm_90", "sm_90a", "sm_100")] == [False, True, False]


# ---- disagreement, in either direction


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Our own lineage in a copy."""
    return Path(shutil.copytree(KERNELS, tmp_path / "kernels"))


def test_a_source_without_an_entry_is_named(copied: Path) -> None:
    (copied / "v9.cu").write_text('#include "common.cuh"\n')
    assert sources.inconsistencies(catalog.load_catalog(copied)) == [
        "v9.cu is no version's file: add an entry to catalog.toml, or remove it"
    ]


def test_a_bug_without_an_entry_is_named(copied: Path) -> None:
    with (copied / "v1.cu").open("a") as file:
        file.write("#define BUG_V1_NEW 90\n")
    assert sources.inconsistencies(catalog.load_catalog(copied)) == [
        "v1.cu defines BUG_V1_NEW, and no version has the flag -DBUG=BUG_V1_NEW: add its entry"
    ]


def test_an_entry_whose_bug_is_gone_from_the_source_is_named(copied: Path) -> None:
    text = (copied / "v2b.cu").read_text()
    (copied / "v2b.cu").write_text(text.replace("BUG == BUG_V2B_WARP7", "false"))
    assert sources.inconsistencies(catalog.load_catalog(copied)) == [
        "v2b_warp7: its bug BUG_V2B_WARP7 is not in v2b.cu"
    ]


def test_an_entry_without_its_source_is_refused(copied: Path) -> None:
    (copied / "v1.cu").unlink()
    with pytest.raises(BadCatalog, match=r"version v1: its file .*v1\.cu is not there"):
        catalog.load_catalog(copied)


def test_a_misspelt_macro_is_named(copied: Path) -> None:
    text = (copied / "catalog.toml").read_text()
    (copied / "catalog.toml").write_text(text.replace('"-DSTAGES=3"', '"-DSTAGEZ=3"'))
    assert sources.inconsistencies(catalog.load_catalog(copied)) == [
        "v2d_c: its flag -DSTAGEZ is a macro that v2d.cu never asks for"
    ]


def test_a_rejected_version_is_a_bug_build_and_no_other_is(copied: Path) -> None:
    text = (copied / "catalog.toml").read_text()
    (copied / "catalog.toml").write_text(text.replace('"-DSWIZZLE=0"', '"-DSWIZZLE=0", "-DBUG=BUG_V2"'))
    found = sources.inconsistencies(catalog.load_catalog(copied))
    assert found[0] == "v2d_a is good: a rejected version, and no other, is a -DBUG build"


def test_two_bugs_of_one_number_are_named(copied: Path) -> None:
    text = (copied / "common.cuh").read_text()
    (copied / "common.cuh").write_text(text.replace("#define BUG_V2B_WARP7 3", "#define BUG_V2B_WARP7 1"))
    found = sources.inconsistencies(catalog.load_catalog(copied))
    assert "v2: BUG_V2 has the number 1 of another bug" in found


@pytest.mark.slow
def test_a_bug_or_a_file_may_be_another_catalogues_that_lies_beside(copied: Path) -> None:
    (copied / "v9.cu").write_text("#define BUG_NINE 99\nint x = BUG == BUG_NINE;\n")
    assert len(sources.inconsistencies(catalog.load_catalog(copied))) == 2
    entry = (
        ENTRY.replace('"one.cu"', '"v9.cu"')
        + 'state = "rejected"\nreason = "r"\ncaught_by = ["race"]\nflags = ["-DBUG=BUG_NINE"]\n'
    )
    (copied / "more.toml").write_text(entry)
    assert sources.inconsistencies(catalog.load_catalog(copied)) == []
    (copied / "more.toml").write_text("no catalogue")
    assert len(sources.inconsistencies(catalog.load_catalog(copied))) == 2


# ---- what a version is checked on


def test_a_version_may_name_more_workloads_to_check_it_on(folder: Path) -> None:
    more = "check = [{ batch = 3, heads = 9, len_q = 515, len_kv = 21, head_dim = 64, causal = true }]\n"
    for entry in (ENTRY + more, ENTRY + more.replace("21, ", '21, dtype = "fp16", ')):
        mine = read(folder, entry)
        problem = sources.load_problem(mine)
        (one,) = mine.versions
        every = [workload.label for workload in cases.version_workloads(problem, one)]
        assert every[:-1] == [w.label for w in problem.check_workloads("fp16", (64, 128))]
        assert every[-1] == "3x9x515:21x64 causal"


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ("{ batch = 3, rows = 4 }", "version one: check: { batch = 3, rows = 4 }: "),
        ("{ batch = 0, heads = 1, len_q = 1, head_dim = 64 }", "a workload's sizes are at least 1"),
    ],
)
def test_sizes_that_the_problem_does_not_have_are_named(folder: Path, sizes: str, says: str) -> None:
    mine = read(folder, f"{ENTRY}check = [{sizes}]\n")
    with pytest.raises(BadCatalog) as caught:
        cases.own_workloads(sources.load_problem(mine), mine.versions[0])
    assert says in str(caught.value)


@pytest.mark.parametrize("value", ['"3x9x515"', "[]\ncheck2 = 1", "[1]", "[{}]"])
def test_workloads_that_are_no_sizes_are_refused(folder: Path, value: str) -> None:
    says = refusal(folder, f"{ENTRY}check = {value}\n")
    assert "unknown key check2" in says or "check must be a list of tables of sizes" in says


# ---- a user's own lineage, from any folder


def test_a_lineage_of_another_folder_loads(folder: Path) -> None:
    mine = catalog.load_catalog(folder)
    assert (mine.family, [version.id for version in mine.versions]) == ("mine", ["one"])
    assert mine.versions[0].source == folder / "one.cu"
    assert catalog.load_catalog(folder / "catalog.toml") == mine


def test_a_python_callable_is_a_version(folder: Path) -> None:
    (folder / "mine.py").write_text("def f(q, k, v, scale, causal):\n    return q * scale\n")
    mine = read(folder, ENTRY + '[[version]]\nid="two"\nparent="one"\ntechnique="t"\ncallable="mine.py:f"\n')
    two = mine.by_id["two"]
    assert sources.load_object(mine, two.callable or "")(2, 0, 0, 3, False) == 6
    assert not two.buildable
    before = sources.source_sha256(mine, two)
    (folder / "mine.py").write_text("def f(q, k, v, scale, causal):\n    return q\n")
    assert sources.source_sha256(mine, two) != before


@pytest.mark.parametrize("place", ["profiler.problem", "profiler.catalog.problem"])
def test_a_problem_that_is_named_by_an_earlier_place_is_found_where_it_lies_now(
    folder: Path, place: str
) -> None:
    mine = read(folder, ENTRY.replace("profiler.catalog.attention:ATTENTION", f"{place}:ATTENTION"))
    assert mine.problem == "profiler.catalog.attention:ATTENTION"
    assert sources.load_problem(mine).name == "attention"


def test_a_callable_that_is_named_by_an_earlier_place_is_found_where_it_lies_now(folder: Path) -> None:
    theirs = '[[version]]\nid="two"\ntechnique="t"\nstate="baseline"\ncallable="profiler.baselines:sdpa"\n'
    mine = read(folder, ENTRY + theirs)
    assert mine.by_id["two"].callable == "profiler.catalog.torch_backends:sdpa"
    assert sources.load_object(mine, mine.by_id["two"].callable or "").__name__ == "sdpa"


def test_a_problem_of_the_users_own_lies_beside_the_catalogue(folder: Path) -> None:
    (folder / "gemm.py").write_text("PROBLEM = 'C = A B'\n")
    mine = read(folder, ENTRY.replace("profiler.catalog.attention:ATTENTION", "gemm.py:PROBLEM"))
    assert sources.load_object(mine, mine.problem) == "C = A B"


def test_a_users_file_may_postpone_its_annotations_and_is_read_again_after_a_mistake(folder: Path) -> None:
    file = folder / "own.py"
    mine = read(folder, ENTRY.replace("profiler.catalog.attention:ATTENTION", "own.py:Size"))
    file.write_text("1 / 0\n")
    with pytest.raises(BadCatalog, match="division by zero"):
        sources.load_object(mine, mine.problem)
    imports = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    file.write_text(f"{imports}@dataclass\nclass Size:\n    rows: int\n")
    assert sources.load_object(mine, mine.problem)(3).rows == 3


@pytest.mark.parametrize(
    "reference", ["nowhere.py:f", "no.such.module:f", "profiler.catalog.attention:nothing", "math"]
)
def test_an_object_that_cannot_be_loaded_is_one_line(folder: Path, reference: str) -> None:
    with pytest.raises(BadCatalog, match=f"{reference} cannot be loaded") as caught:
        sources.load_object(catalog.load_catalog(folder), reference)
    assert "write module:name" in str(caught.value)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),  # which would pass for a check that found nothing
        ("X = 5", "is no problem: it has no name or symbol"),
    ],
)
def test_a_problem_that_is_none_is_one_line(folder: Path, code: str, says: str) -> None:
    (folder / "mine.py").write_text(code)
    mine = read(folder, ENTRY.replace("profiler.catalog.attention:ATTENTION", "mine.py:X"))
    with pytest.raises(BadCatalog, match=says) as caught:
        sources.load_problem(mine)
    assert "\n" not in str(caught.value)


def test_a_catalogue_may_begin_with_a_byte_order_mark_and_not_nest_for_ever(folder: Path) -> None:
    path = folder / "catalog.toml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert catalog.load_catalog(folder).family == "mine"
    path.write_text("a = " + "[" * 5000)
    with pytest.raises(BadCatalog, match="recursion"):
        catalog.load_catalog(folder)


def test_no_catalogue_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(BadCatalog, match=r"no catalogue at .*: name one with --catalog PATH"):
        catalog.load_catalog(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("[[version", "Expected ']]'"),
        (ENTRY.replace('family = "mine"', ""), "family must be a text"),
        (ENTRY.replace("[[version]]", "[version]"), "write [[version]]"),
        (ENTRY.replace('technique = "the first"', ""), "technique must be a text"),
        (ENTRY.replace('"one"', '"one/two"'), "write letters, digits"),
        (ENTRY + "techniqe = 1", "unknown key techniqe; did you mean technique?"),
        (ENTRY + 'state = "fine"', "state 'fine' is none of good, rejected, baseline, planned"),
        (ENTRY + 'callable = "m:f"', "give either file or callable"),
        (ENTRY + 'parent = "zero"', "has parent zero, which no entry before it is"),
        (ENTRY + '[[version]]\nid="one"\ntechnique="t"\nfile="one.cu"', "version one is there twice"),
        (ENTRY + 'state = "rejected"\nreason = "r"', "says what must catch it (caught_by)"),
        (ENTRY + 'caught_by = ["race"]', "says what must catch it (caught_by)"),
        (ENTRY + 'state = "rejected"\ncaught_by = ["race"]', "a rejected version needs a reason"),
        (
            ENTRY + 'state = "rejected"\nreason = "r"\ncaught_by = ["rase"]',
            "caught_by 'rase' is none of numbers",
        ),
        (ENTRY + 'state = "planned"', "a planned version needs a reason"),
        (ENTRY + 'flags = "-DX"', "flags must be a list of texts"),
        (ENTRY + 'arches = ["90"]', "'90' is no architecture: write sm_80"),
        (ENTRY + 'head_dims = ["64"]', "head_dims must be a list of whole numbers"),
        (ENTRY + "budget = { registers = -1 }", "registers must be a whole number from 0"),
        (ENTRY + "budget = { register = 1 }", "unknown key register; did you mean registers?"),
        (ENTRY + "budget = { registers = { d64 = 1 } }", "registers by head dim are written"),
        (ENTRY + 'claims = [{ fact = "latency", value = "fast" }]', "value must be a number"),
        (ENTRY + 'claims = [{ fact = "latency", value = 1 }]', "claims: source must be a text"),
        ('family = "mine"\nproblem = "m:p"\n', "has no [[version]]"),
        ('family = "mine"\nproblem = "m:p"\nversion = 3\n', "write [[version]]"),
        (ENTRY + "roles = 3", "roles must be a table"),
        (ENTRY + "claims = 3", "claims must be a list of tables"),
        (ENTRY + 'flags = ["-D", "FOO=1"]', "write -D... as one word"),
        (ENTRY + 'budget = { registers = { 64 = 1, 128 = "a" } }', "128 must be a whole number from 0"),
    ],
)
def test_a_catalogue_that_cannot_be_used_is_refused_in_one_line(folder: Path, wrong: str, says: str) -> None:
    assert says in refusal(folder, wrong)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ('dtypes = ["bf16"]', "refuses bf16"),
        ("head_dims = [96]", "a head_dim is one of (64, 128), not 96"),
        ('stages = ["FOO"]', "has no stage FOO: it has QK, SOFTMAX, PV"),
    ],
)
def test_what_does_not_fit_the_problem_is_one_line(folder: Path, wrong: str, says: str) -> None:
    with pytest.raises(BadCatalog) as caught:
        sources.load_problem(read(folder, ENTRY + wrong))
    assert str(caught.value).startswith(f"{folder / 'catalog.toml'}: version one: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_catalogue_can_be_read_where_its_sources_are_not(tmp_path: Path) -> None:
    mine = catalog.parse_catalog(ENTRY, tmp_path / "catalog.toml", check_files=False)
    assert mine.versions[0].source == tmp_path / "one.cu"
