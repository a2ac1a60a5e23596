"""Every run under data/runs, however old, opens in every command and page that can show it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles.bundle import list_runs, load_run
from profiler.bundles.location import LocalRoot
from profiler.bundles.run import EXAMPLE
from profiler.bundles.run_json import RUN_FILE, dump_run
from profiler.catalog.catalog import load_catalog
from profiler.catalog.sources import load_problem
from profiler.cli import main
from profiler.history.catalog_snapshot import load_snapshot
from profiler.history.lineage import load_lineage
from profiler.store.readable_index import open_store
from tests.conftest import ROOT

EVERY_RUN = list_runs(LocalRoot(ROOT / "data"))
EXAMPLES = [run_id for run_id in EVERY_RUN if "-example-" in run_id]
RUNS = [run_id for run_id in EVERY_RUN if run_id not in EXAMPLES]
ARCH = "sm_90a"
LAST_WITHOUT_CODE = "20261121T014424-attention-dissect-6aa6f66e"  # it was made before code was kept
WITH_CODE = [run_id for run_id in RUNS if run_id > LAST_WITHOUT_CODE]
Caught = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The committed runs as the data of every command, with an index of their own."""
    folder = tmp_path_factory.mktemp("committed")
    (folder / "runs").symlink_to(ROOT / "data" / "runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROFILER_DATA", str(folder))
        patch.delenv("PROFILER_DB", raising=False)
        yield folder


def asked(caught: Caught, *words: str) -> tuple[int, str]:
    """The exit code of a command and what it printed."""
    code = main(list(words))
    printed = caught.readouterr()
    return code, printed.out or printed.err


def version(name: str, run_id: str) -> str:
    return f"attention/{name}~{run_id}"


def test_there_are_runs_of_before_and_after_the_modules_lay_in_rooms() -> None:
    problems = {
        line
        for run_id in RUNS
        for line in (ROOT / "data/runs" / run_id / "kernels/catalog.toml").read_text().splitlines()
        if line.startswith("problem")
    }
    assert problems == {
        'problem = "profiler.problem:ATTENTION"',
        'problem = "profiler.catalog.attention:ATTENTION"',
    }


@pytest.mark.parametrize("run_id", EVERY_RUN)
def test_a_run_is_read_and_written_again_byte_for_byte(run_id: str) -> None:
    root = LocalRoot(ROOT / "data")
    assert dump_run(load_run(root, run_id)) == root.read(f"runs/{run_id}/{RUN_FILE}")


def test_examples_are_small_numbers_alone_with_source_and_licence() -> None:
    root = LocalRoot(ROOT / "data")
    size = 0
    for run_id in EXAMPLES:
        run = load_run(root, run_id)
        about = run.provenance[EXAMPLE]
        assert about["licence"] in ("MIT", "BSD-3-Clause")
        assert "commit" in about["source"]
        assert not {"host", "command_line", "gpu_uuid"} & run.provenance.keys()
        assert not run.files, "no source and no machine code"
        (report,) = run.reports
        size += report.size_bytes
        header, units, *launches = csv.reader(root.read(f"runs/{run_id}/{report.path}").decode().splitlines())
        assert len({len(row) for row in (header, units, *launches)}) == 1
        first = header.index("CC") + 1
        for row in launches:
            assert row[1].removesuffix("()").replace("_", "").isalnum(), "the kernel's name, no arguments"
            assert all(re.fullmatch(r"[0-9.e+-]*|nan", cell) for cell in row[first:])
    assert len(EXAMPLES) == 4
    assert size < 1_000_000


@pytest.mark.parametrize("run_id", RUNS)
def test_the_catalogue_in_a_run_finds_its_problem_and_its_torch_backends(run_id: str) -> None:
    kept = load_catalog(ROOT / "data/runs" / run_id / "kernels")
    assert load_problem(kept).name == "attention"
    backends = {entry.callable for entry in kept.versions if entry.callable}
    assert backends
    assert all(name.startswith("profiler.catalog.torch_backends:") for name in backends if name)


@pytest.mark.slow
def test_all_runs_are_listed(data: Path, capsys: Caught) -> None:
    code, text = asked(capsys, "runs", "--json")
    assert code == 0
    assert sorted(run["run_id"] for run in json.loads(text)["runs"]) == EVERY_RUN


@pytest.mark.parametrize("run_id", RUNS)
def test_two_versions_of_a_run_are_compared_by_static_and_modelled_facts(
    data: Path, capsys: Caught, run_id: str
) -> None:
    code, text = asked(capsys, "compare", version("v2d_b", run_id), version("v2d_c", run_id))
    assert code == 0
    assert "49.2 kB/block  65.5 kB/block" in text
    assert "modelled: from a run on the CPU" in text


@pytest.mark.parametrize("run_id", RUNS)
def test_what_has_no_duration_is_explained_by_saying_so(data: Path, capsys: Caught, run_id: str) -> None:
    _, text = asked(capsys, "explain", version("v2d_b", run_id), version("v2d_c", run_id))
    assert "static and modelled evidence has no duration" in text


@pytest.mark.parametrize("run_id", RUNS)
def test_the_conflicts_of_a_version_are_shown_as_the_check_found_them(
    data: Path, capsys: Caught, run_id: str
) -> None:
    found = {}
    for name in ("v2d_a", "v2d_b"):
        words = ("show", version(name, run_id), "--workload", "1x2x128x64", "--all", "--json")
        code, text = asked(capsys, *words)
        assert code == 0
        (conflicts,) = conflicts_in(json.loads(text))
        found[name] = conflicts
    assert found["v2d_a"] > 1000
    assert found["v2d_b"] <= 0.05 * found["v2d_a"]


def conflicts_in(document: Any) -> set[float]:
    """The bank conflicts in a document, wherever they stand."""
    if isinstance(document, dict):
        own = document.get("modelled__bank_conflicts")
        inner = [conflicts_in(value) for value in document.values()]
        return set().union(*inner, {own["value"]} if own else set())
    if isinstance(document, list):
        return set().union(*map(conflicts_in, document))
    return set()


@pytest.mark.parametrize("run_id", RUNS)
def test_the_pages_find_a_lineage_sources_and_traffic_in_each_run(data: Path, run_id: str) -> None:
    root = LocalRoot(data)
    snapshot = load_snapshot(root, load_run(root, run_id))
    assert snapshot
    assert len(snapshot.source_texts(root)) > 10
    assert all(row.requests for rows in snapshot.shared_traffic(root, "v2d_a").values() for row in rows)


def test_the_pages_show_the_lineage_of_the_newest_run(data: Path) -> None:
    lineage = load_lineage(LocalRoot(data), open_store(str(data)), "attention")
    assert lineage
    assert lineage.snapshot.run_id == max(RUNS)
    assert {"v2", "v2b_smem", "v2c_v2"} <= lineage.wrong.keys()


@pytest.mark.slow
@pytest.mark.parametrize("run_id", WITH_CODE)
def test_the_machine_code_of_a_run_is_shown_without_a_compiler(
    data: Path, capsys: Caught, run_id: str
) -> None:
    code, text = asked(capsys, "sass", version("v1", run_id), "--arch", ARCH)
    assert code == 0
    assert f"kept in run {run_id}" in text


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), list(pairwise(WITH_CODE)))
def test_the_same_code_in_two_runs_differs_in_nothing(
    data: Path, capsys: Caught, before: str, after: str
) -> None:
    code, text = asked(capsys, "sass", version("v1", before), version("v1", after), "--arch", ARCH)
    assert code == 0
    assert text.endswith(" equal: no difference\n")


def test_a_comparison_that_fails_by_an_exact_count_says_so_in_its_head(data: Path, capsys: Caught) -> None:
    code, told = asked(capsys, "compare", "before", "after", "--fail")
    assert code == 1
    assert "; the gate fails by executed: 127 G inst → 128 G inst (+1.2 %)" in told.splitlines()[0]
    assert "\nncu duration, not latency; a change of one launch per side is unreplicated" in told
    assert "ncu 2021.2.2.0)" in told, "the export does not say it, the run does"
    head = asked(capsys, "compare", "before", "after")[1].splitlines()[0]
    assert head.endswith("? unclear: kernel durations 1 better, 1 unclear")


def test_causes_within_the_error_of_computed_counters_are_not_certain(data: Path, capsys: Caught) -> None:
    told = asked(capsys, "explain", "before", "after")[1]
    assert "; no cause is certain: each is below 111.4 ms, the error of computed counters." in told
    assert re.search(r"^balance +\+13\.0 ms \? ", told, re.MULTILINE)
    advice = asked(capsys, "insights", "after", "--against", "before")[1]
    assert "statements 4 and 5: not certain: computed counters are off by up to 111.4 ms" in advice
    assert "even out the blocks" not in advice, "no lever rests on such a cause"


def test_a_gate_of_all_says_which_results_are_not_missed_and_lists_them_apart(
    data: Path, capsys: Caught
) -> None:
    code, told = asked(capsys, "gate")
    assert code == 0
    assert "\n\n26 informational: reported, decides nothing\n" in told
    assert (
        told.count("no attention version is checked on these 6 workloads any more, so nothing is mis") == 11
    )
    assert "profiler static --check" not in told, "no command can collect them"


def test_two_versions_that_nobody_measured_name_the_command_with_their_modelled_times(
    data: Path, capsys: Caught
) -> None:
    command = "profiler predict v2d_b --against v2d_a"
    assert asked(capsys, "compare", "v2d_a", "v2d_b")[1].splitlines()[1] == f"modelled times: {command}"
    assert f"`{command}` has modelled times" in asked(capsys, "explain", "v2d_a", "v2d_b")[1]
    assert "modelled times" not in asked(capsys, "compare", "v2d_a", "v2e")[1], "there is no model of v2e"


def test_a_table_of_versions_has_the_facts_that_the_gate_fails_by(data: Path, capsys: Caught) -> None:
    told = asked(capsys, "compare", "v2d_a", "v2d_b", "v2d_c")[1]
    assert "attention/v2d_c against attention/v2d_a: of 38 judged facts 6 same, 4 worse, 28 better" in told
    assert "1 ! worse −1" in told, "blocks per SM"
    assert (
        asked(capsys, "compare", "v2d_a", "v2d_c")[1]
        .splitlines()[0]
        .endswith("! worse: facts 28 better, 4 worse, 141 same, 31 changed")
    )
    assert "over 43 public launches" in told, "as predict says: the ranges are the same"


def test_a_report_says_on_which_places_it_judges_facts(data: Path, capsys: Caught) -> None:
    told = json.loads(asked(capsys, "report", "v2d_b", "v2d_c", "--json")[1])["table"]["sentences"]
    assert told[-1].startswith("Facts are judged on head dim 64 on sm_90a and 1x")
