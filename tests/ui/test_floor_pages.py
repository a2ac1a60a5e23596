"""The pages over a run that was collected and timed: each latency beside the floor that the run computed."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.bundles import location
from profiler.catalog.attention import ACCEPTANCE
from profiler.collect.machine import Machine
from profiler.compare.noise_model import NoiseModel
from profiler.history.best_versions import BestVersion, load_best_versions
from profiler.history.lineage import Lineage, load_lineages
from profiler.history.version_latency import lower_bound_of, newest_latencies
from profiler.store.readable_index import open_store
from profiler.ui.views import best_versions, lineage_summary, lineage_table
from tests import lineages, standins, timed_runs
from tests.ui.test_lineage_pages import rows
from tests.ui.test_pages import page, text

pytestmark = pytest.mark.slow  # the pages are run whole

H100 = replace(
    standins.GPU,
    name="NVIDIA H100 80GB HBM3",
    sms=132,
    max_sm_mhz=1980.0,
    max_memory_mhz=2619.0,
    memory_bus_bits=5120,
    l2_bytes=50 << 20,
)
CATALOG = standins.CATALOG.replace(
    'id = "three"', 'id = "three"\nstate = "baseline"'
)  # its latency is others'


@pytest.fixture
def collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with one run of two versions and a baseline on two workloads."""
    folder = standins.prepare(tmp_path, monkeypatch)
    (folder / "catalog.toml").write_text(CATALOG)
    standins.tell(folder, ns__one=9000.0, ns__two=4000.0, ns__three=7000.0)
    workloads = tuple(one.sizes() for one in (ACCEPTANCE[0], ACCEPTANCE[4]))
    collection = standins.begin(folder, Machine(H100, None), workloads=workloads)
    collection.run_jobs()
    standins.finish(folder, collection)
    return folder / "data"


def of(data: Path, family: str = "attention") -> Lineage:
    return load_lineages(location.open_root(str(data)), open_store(str(data)))[family]


CHOICE = lineage_table.FactChoice("", "", "1x8x512x64", H100.name)


def test_the_floor_is_the_one_of_the_timer(collected: Path) -> None:
    lineage = of(collected)
    two = lineage.by_id["two"].latencies["1x8x512x64", H100.name]
    assert two.mode == "events; cache warm; clock none"
    assert (two.bound_ns, two.binding) == (2000.0, "launch"), "the empty launches in a row, by events"
    large = lineage.by_id["two"].latencies["2x8x2048x128", H100.name]
    assert large.binding == "wave"
    flops = 4 * 2 * 8 * 2048 * 2048 * 128
    assert large.bound_ns == pytest.approx(flops / (4096 * 132 * 1.98), rel=0.05)  # waves fill 97 %
    (run,) = open_store(str(collected)).runs()
    assert lower_bound_of(run.provenance, "1x8x512x64", "graph replay; cache warm; clock none") == (
        1500.0,
        "launch",
    )


def test_the_lineage_shows_every_latency_beside_its_floor(collected: Path) -> None:
    table = lineage_table.table(of(collected), CHOICE)
    head, one, two, *_, three = [line.replace("\u2009", " ") for line in rows(table)]
    assert "┃ lower bound 2.00 µs ▾ three 7.00 µs log" in head
    assert "9.00 µs ×4.50 lower bound" in one
    assert "4.00 µs ×2.00 lower bound" in two
    assert "7.00 µs ×3.50 lower bound" in three
    assert table.count('class="track"') == 3
    assert table.count('class="base"') == 2, "the baseline has no mark against itself"
    dots = [float(left) for left in re.findall(r'class="dot" style="left:([\d.]+)%', table)]
    assert dots[1] < dots[2] < dots[0]
    assert all(float(left) == 0 for left in re.findall(r'class="floor" style="left:([\d.]+)%', table))


def best_of(data: Path, family: str = "attention") -> tuple[Lineage, tuple[BestVersion, ...], str]:
    """The lineage, its best versions and their table."""
    lineage = of(data, family)
    store = open_store(str(data))
    best = load_best_versions(store, lineage, NoiseModel.of_store(lambda: store))
    table = best_versions.table(lineage, best, {})
    store.close()
    return lineage, best, table


def test_the_overview_has_the_best_of_each_workload_with_its_gap(collected: Path) -> None:
    lineage, best, table = best_of(collected)
    _, phone_head, small, large = [line.replace("\u2009", " ") for line in rows(table)]
    assert phone_head == "H100 80GB HBM3"
    assert small == "H100 80GB HBM3 1x8x512x64 two 4.00 µs ×2.00 ×1.75 three 7.00 µs first – run"
    assert "2x8x2048x128 two 4.00 µs" in large
    assert "┃ lower bound" in best_versions.caption(lineage, best)


def test_the_change_since_the_parent_is_by_the_rounds_of_one_run(tmp_path: Path) -> None:
    lineages.dissected(tmp_path)
    levels = {"zero": 170e3, "alpha": 160e3}
    nights = [timed_runs.run(levels, day, family=lineages.FAMILY, workload="1x8") for day in (1, 2, 3)]
    alone = timed_runs.run({"alpha": 150e3}, 4, family=lineages.FAMILY, workload="1x8")
    timed_runs.seal(tmp_path, *nights, alone)
    _, (best,), table = best_of(tmp_path, lineages.FAMILY)
    assert best.since_parent is not None
    assert best.since_parent.compared.live, "by the newest night that timed both"
    assert best.since_parent.times == pytest.approx(170 / 160, rel=0.01)
    assert len(best.past) == 4
    assert "✓ &nbsp;better −" in " ".join(re.sub(r"<[^>]+>", " ", table).split())
    assert "a=mine%2Fzero&amp;b=mine%2Falpha" in table
    assert "evidence=measured" in table
    assert table.count("<polyline") == 1


def test_what_is_shorter_than_its_floor_is_doubted(collected: Path) -> None:
    _, _, table = best_of(collected)
    assert "×0.121 ?" in table
    assert "the bound or the timing is wrong" in table


def test_a_run_without_floors_shows_its_latency_and_no_floor(tmp_path: Path) -> None:
    lineages.dissected(tmp_path, lineages.results(measured=True), gpu="Test GPU")
    lineage, best, table = best_of(tmp_path, lineages.FAMILY)
    choice = lineage_table.FactChoice("sm_80", "head dim 64", "1x1x8x64", "Test GPU")
    assert "track" not in lineage_table.table(lineage, choice)
    assert "lower bound" not in lineage_table.table(lineage, choice)
    assert "track" not in table
    assert "┃" not in best_versions.caption(lineage, best)


def test_a_workload_that_one_gpu_lacks_is_a_row_with_the_command(tmp_path: Path) -> None:
    lineages.dissected(tmp_path)
    levels = {"zero": 170e3, "alpha": 160e3}
    both = [timed_runs.run(levels, day, family=lineages.FAMILY, workload=f"{day}x8") for day in (1, 2)]
    other = timed_runs.run(levels, 3, family=lineages.FAMILY, workload="1x8", told={"gpu": "Test GPU"})
    timed_runs.seal(tmp_path, *both, other)
    _, best, table = best_of(tmp_path, lineages.FAMILY)
    assert [(row.gpu, row.workload, row.status is not None) for row in best] == [
        (timed_runs.GPU, "1x8", True),
        (timed_runs.GPU, "2x8", True),
        ("Test GPU", "1x8", True),
        ("Test GPU", "2x8", False),
    ]
    assert "not measured" in rows(table)[-1]
    assert "profiler collect --workloads &#x27;2x8&#x27;" in table


def test_many_workloads_are_folded_with_their_count(collected: Path) -> None:
    lineage, best, _ = best_of(collected)
    table = best_versions.table(lineage, best * 8, {})
    assert len(rows(table.partition("<details")[0])) == best_versions.ROWS_BEFORE_FOLD + 2
    assert f"{len(best) * 8 - best_versions.ROWS_BEFORE_FOLD} more GPU/workload pairs" in table


def test_nothing_timed_has_no_best_versions_and_the_command_that_makes_them(tmp_path: Path) -> None:
    lineages.dissected(tmp_path)
    lineage, best, _ = best_of(tmp_path, lineages.FAMILY)
    assert best == ()
    assert lineage_summary.measuring_command(lineage) == "profiler collect", "one command for all"
    names = [status.version.id for status in lineage_summary.unmeasured_versions(lineage)]
    assert names == ["zero", "alpha"]


def test_where_some_were_timed_the_command_names_the_rest(tmp_path: Path) -> None:
    made = lineages.results(measured=True)
    untimed = tuple(one for one in made if one.version != "alpha" or not one.samples)
    assert len(untimed) == len(made) - 1
    lineages.dissected(tmp_path, untimed, gpu="Test GPU")
    lineage = of(tmp_path, lineages.FAMILY)
    assert lineage_summary.measuring_command(lineage) == "profiler collect alpha"


def test_versions_are_compared_in_one_mode(collected: Path) -> None:
    store = open_store(str(collected))
    found = newest_latencies(store.results(family="attention"), {})
    assert {one.mode for one in found.values()} == {"events; cache warm; clock none"}
    cold = [one for one in store.results(family="attention") if "warm" not in one.mode]
    assert {one.mode for one in newest_latencies(cold, {}).values()} == {"events; cache cold; clock none"}
    assert all(one.times_bound is None for one in newest_latencies(cold, {}).values()), "no run, no floor"


@pytest.mark.usefixtures("pages_of")
def test_the_pages_show_them(collected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overview = text(page("overview", collected, monkeypatch))
    assert "Best correct version per GPU and workload" in overview
    lineage = page("lineage", collected, monkeypatch)
    assert "1x8x512x64 on NVIDIA H100 80GB HBM3: median latency, events; cache warm" in text(lineage)
    assert "static" not in text(lineage), "nothing was compiled"
    assert any("┃ lower bound" in element.value for element in lineage.markdown)
