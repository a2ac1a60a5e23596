"""Many versions against one: values, verdicts judged as one table, what has no number, and the forms."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import profiler
from profiler.bundles.location import open_root
from profiler.cli import main
from profiler.compare.comparison import compare
from profiler.documents.version_table import MODELLED_TIME, VersionTableDocument, sorted_rows
from profiler.documents.version_table_cells import compare_many, table_places
from profiler.errors import CannotJudge, UnknownName
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import Evidence
from profiler.history.lineage import load_lineage
from profiler.reports.read import read_report
from profiler.statistics.multiple_testing import judge_together
from profiler.statistics.verdict import Verdict
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from tests import lineages, timed_runs
from tests.documents.printed import assert_same_as_printed

TABLE = load_metrics()
LEVELS = {"v1": 200e3, "v2": 180e3, "v3": 200.1e3, "v4": 260e3}


@pytest.fixture
def timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An index of one run of four versions on two workloads, and of a fifth version on one."""
    small = {name: level / 10 for name, level in LEVELS.items()}
    folder = timed_runs.seal(
        tmp_path / "timed",
        timed_runs.run(LEVELS, 0),
        timed_runs.run(small, 1, workload="1x8x512x64"),
        timed_runs.run({"v5": 150e3}, 2),
    )
    monkeypatch.setenv("PROFILER_DATA", str(folder))
    opened = open_store()
    yield opened
    opened.close()


@pytest.fixture
def lineage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An index of a small lineage: static and modelled facts, and calls timed twice."""
    lineages.timed_twice(tmp_path / "lineage", "NVIDIA H100")
    lineages.dissected(tmp_path / "lineage", created=lineages.CREATED + timedelta(days=3))
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "lineage"))
    opened = open_store()
    yield opened
    opened.close()


def table_of(store: Store, *names: str, **options: object) -> VersionTableDocument:
    return compare_many(names, TABLE, lambda: store, **options)  # type: ignore[arg-type]


def test_every_time_is_judged_against_the_baseline_by_the_rules_of_two_sides(timed: Store) -> None:
    table = table_of(timed, "v1", "v2", "v3", "v4")
    assert [(column.workload, column.concept) for column in table.table_columns] == [
        ("1x8x512x64", "latency"),
        ("2x8x2048x64", "latency"),
    ]
    verdicts = {row.short_name: [cell.verdict for cell in row.cells] for row in table.table_rows}
    assert verdicts == {
        "v1": [None, None],
        "v2": [Verdict.BETTER] * 2,
        "v3": [Verdict.SAME] * 2,
        "v4": [Verdict.WORSE] * 2,
    }
    cell = table.table_rows[1].cells[1]
    sides = [
        timed.side(family="flash", version=name, workload="2x8x2048x64", gpu=timed_runs.GPU)
        for name in ("v1", "v2")
    ]
    (latency,) = compare(*sides, TABLE).latency
    assert latency.decision.effect is not None
    assert (cell.number, cell.change_pct) == (latency.b_ns, 100 * latency.decision.effect)
    assert cell.interval == latency.decision.interval
    assert table.sentences[0] == "flash/v2 against flash/v1: of 2 workloads 2 better"


def test_another_baseline_judges_the_same_versions_and_is_a_row(timed: Store) -> None:
    table = table_of(timed, "v1", "v2", against="v4")
    assert [row.short_name for row in table.table_rows] == ["v4", "v1", "v2"]
    assert table.verdict is Verdict.BETTER
    assert table.title == "2 versions against flash/v4"
    among_them = table_of(timed, "v1", "v2", "v4", against="v4")
    assert [row.is_baseline for row in among_them.table_rows] == [False, False, True]


def test_all_verdicts_are_judged_as_one_table(timed: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    def counted(decisions: list[object]) -> object:
        counts.append(len(decisions))
        return judge_together(decisions)  # type: ignore[arg-type]

    monkeypatch.setattr(sys.modules["profiler.compare.judged"], "judge_together", counted)
    table_of(timed, "v1", "v2", "v3", "v4")
    assert counts == [6]  # three versions on two workloads


def test_what_is_not_measured_is_last_and_no_number(timed: Store) -> None:
    table = table_of(timed, "v1", "v5", "v2", "v4")
    fifth = table.table_rows[1].cells[0]
    assert (fifth.number, fifth.state, fifth.verdict) == (None, "not measured", Verdict.MISSING)
    for reverse in (False, True):
        ordered = [row.short_name for row in sorted_rows(table, 0, reverse=reverse)]
        assert ordered == [*(["v4", "v1", "v2"] if reverse else ["v2", "v1", "v4"]), "v5"]
    by_change = [row.short_name for row in sorted_rows(table, 1, by_change=True)]
    assert by_change == ["v5", "v2", "v1", "v4"]
    assert "0" not in table.cell_text(table.table_rows[1], 0)


def test_a_lineage_without_gpu_has_its_facts_and_the_wrong_version_no_speed(lineage: Store) -> None:
    table = table_of(lineage, "zero", "bad", "alpha", "later", "theirs", gpu="NVIDIA H100")
    assert {column.evidence for column in table.table_columns} == {Evidence.MEASURED}
    rows = {row.short_name: row for row in table.table_rows}
    assert rows["bad"].is_wrong
    assert all(cell.number is None and cell.state == "wrong" for cell in rows["bad"].cells)
    assert rows["later"].is_planned
    assert rows["theirs"].is_of_others
    assert rows["theirs"].cells[0].number == 90
    assert rows["theirs"].cells[0].verdict is None
    assert [row.short_name for row in sorted_rows(table, 0)][-2:] == ["bad", "theirs"]
    facts = table_of(lineage, "zero", "bad", "alpha", evidence=[Evidence.STATIC], workload="head dim 64")
    registers = next(at for at, c in enumerate(facts.table_columns) if c.concept == "static_registers")
    assert [row.cells[registers].number for row in facts.table_rows] == [41, 43, 65]  # of sm_90a
    assert facts.table_rows[1].cells[registers].verdict is Verdict.NOT_COMPARABLE
    conflicts = table_of(lineage, "zero", "alpha", evidence=[Evidence.MODELLED])
    assert conflicts.table_rows[1].cells[0].verdict is Verdict.WORSE


def test_a_run_stands_for_all_its_versions(timed: Store) -> None:
    newest = timed.runs()[-1].run_id
    table = table_of(timed, newest, against="flash/v5")
    assert [row.name for row in table.table_rows][1:] == [f"flash/{name}~{newest}" for name in LEVELS]
    # Two versions of two runs share no rounds, and nobody measured a noise floor.
    assert {cell.verdict for row in table.table_rows[1:] for cell in row.cells} == {Verdict.UNCLEAR}


@pytest.mark.slow
def test_reports_are_compared_by_the_duration_of_their_longest_launch(ncar: tuple[str, str]) -> None:
    table = profiler.compare_many([*ncar], concepts=["registers", "occupancy"])
    assert [column.concept for column in table.table_columns] == ["duration", "registers", "occupancy"]
    (judged,) = [row for row in table.table_rows if not row.is_baseline]
    pair = profiler.compare(*ncar).comparison.pairs[0]
    assert pair.headline is not None
    assert judged.cells[0].number == pair.headline.b.number
    assert judged.cells[0].verdict is pair.headline.verdict


def test_every_column_is_of_the_kernel_whose_time_moved_most_the_baselines_too(ncar: tuple[str, str]) -> None:
    """Backwards: the baseline's longest launch is not the one that got slower."""
    before, after = ncar[1], ncar[0]
    table = compare_many([before], TABLE, lambda: pytest.fail("no index is needed"), against=after)
    assert {column.kernel for column in table.table_columns} == {"compute_tendencies_x_279_gpu"}
    own = {
        launch.base_name: launch.values.number("gpu__time_duration.sum")
        for launch in read_report(Path(after)).launches
    }
    base = next(row for row in table.table_rows if row.is_baseline)
    assert base.cells[0].number == own["compute_tendencies_x_279_gpu"]
    assert max(own.values(), key=lambda ns: ns or 0.0) != base.cells[0].number
    other = next(row for row in table.table_rows if not row.is_baseline)
    assert other.cells[0].baseline == base.cells[0].value
    assert other.cells[0].verdict is Verdict.WORSE
    (told,) = (note for note in table.notes if note.startswith(before))
    assert told.removeprefix(f"{before}: ").startswith("1 worse, ")
    assert "most: compute_tendencies_x_279_gpu +" in told


@pytest.mark.slow
def test_the_forms_hold_the_same_numbers(timed: Store, capsys: pytest.CaptureFixture[str]) -> None:
    table = table_of(timed, "v1", "v5", "v2")
    answer = assert_same_as_printed(table, capsys, "compare", "v1", "v5", "v2")
    assert len(answer["versions"]) == 3
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert len(rows) == 3 * len(table.table_columns) == len(table.rows())
    missing = next(row for row in rows if row["version"] == "flash/v5" and row["workload"] == "1x8x512x64")
    assert (missing["value"], missing["value_state"], missing["verdict"]) == ("", "not measured", "missing")
    parquet = pytest.importorskip("pyarrow.parquet")
    read = parquet.read_table(io.BytesIO(table.to_parquet())).to_pylist()
    assert [row["value"] for row in read] == [row[11] for row in table.rows()]
    assert {row["change_low_pct"] is None for row in read if row["version"] == "flash/v2"} == {False}
    markdown = table.to_markdown()
    assert markdown.count("| version |") == 2
    assert [line for line in markdown.splitlines() if line.startswith("- ")] == [
        f"- {sentence}" for sentence in table.sentences
    ]
    assert "| `v2` | " in markdown
    assert "<table>" in table._repr_html_()


@pytest.mark.slow
def test_the_command_writes_each_form_by_its_suffix(
    timed: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / f"table{suffix}" for suffix in (".csv", ".md", ".json")]
    out = [word for path in files for word in ("--out", str(path))]
    assert main(["compare", "v1", "v2", "v4", *out]) == 0
    printed = capsys.readouterr().out
    assert "flash/v4 against flash/v1: of 2 workloads 2 worse" in printed
    table = table_of(timed, "v1", "v2", "v4")
    assert files[0].read_text("utf-8") == table.to_csv()
    assert files[1].read_text("utf-8") == table.to_markdown()
    assert json.loads(files[2].read_text("utf-8")) == table.to_dict()
    for command in (
        ["compare", "v1"],
        ["compare", "v1", "v2", "v3", "--fail"],
        ["compare", "v1", "v2", "--metrics", "registers"],
        ["compare", "v1", "v2", "v3", "--metrics", "registors"],
        ["compare", "v1", "v2", "v3", "--out", "table.pdf"],
    ):
        assert main(command) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_what_cannot_be_a_table_is_said_in_one_line(timed: Store) -> None:
    with pytest.raises(UnknownName, match="near: v"):
        table_of(timed, "v1", "v22")
    with pytest.raises(CannotJudge, match="only: name another"):
        table_of(timed, "v1", "flash/v1")
    with pytest.raises(CannotJudge, match="static"):
        table_of(timed, "v1", "v2", evidence=[Evidence.MODELLED], workload="elsewhere static")


@pytest.fixture
def committed(committed_data: Path, tmp_path: Path) -> Iterator[tuple[Store, str]]:
    """The committed runs of our own lineage: static and modelled facts, and modelled times."""
    data = str(shutil.copytree(committed_data, tmp_path / "data"))
    opened = open_store(data)
    yield opened, data
    opened.close()


@pytest.mark.slow
def test_modelled_times_stand_first_and_nobody_judges_them(committed: tuple[Store, str]) -> None:
    store, data = committed
    table = table_of(store, "v2d_c", "v2d_a", "v2", "v2d_b", against="v2d_b", data=data)
    times = [at for at, column in enumerate(table.table_columns) if column.concept == MODELLED_TIME]
    assert times
    assert times[0] == 0
    rows = {row.short_name: row for row in table.table_rows}
    at = next(at for at in times if table.table_columns[at].gpu == "H100-SXM")
    slow, near, base, wrong = (rows[name].cells[at] for name in ("v2d_a", "v2d_c", "v2d_b", "v2"))
    assert slow.verdict is Verdict.CHANGED
    assert slow.change_pct is not None
    assert slow.change_pct > 100
    assert slow.interval is not None
    assert slow.interval.low < slow.change_pct / 100 < slow.interval.high
    assert near.verdict is Verdict.UNCLEAR  # the model cannot tell so near times apart
    assert base.verdict is None
    assert wrong.number is None
    counted = table.verdict_counts(rows["v2d_c"])
    assert sum(counts == Verdict.UNCLEAR for counts in counted) == 0
    assert "; modelled time, not measured: unclear on" in table.headline
    sections = [section for section in table.sections() if section.places[0].startswith("time on ")]
    of_first_gpu = [column for column in table.table_columns if column.gpu == "H100-SXM"]
    assert sections[0].header[1:] == tuple(column.workload for column in of_first_gpu)
    assert any("not measured" in note for note in table.notes)


def test_the_facts_of_the_newest_architecture_and_of_the_workload_of_most_versions_come_first(
    committed: tuple[Store, str],
) -> None:
    store, data = committed
    places = list(table_places(["v2d_a", "v2d_b"], lambda: store, data=data))
    static = [place.gpu for place in places if place.evidence is Evidence.STATIC]
    modelled = [place for place in places if place.evidence is Evidence.MODELLED]
    family = load_lineage(open_root(data), store, "attention")
    assert family is not None
    assert static[0] == "sm_90a"
    assert next(p for p in modelled if not p.is_modelled_time).workload == family.modelled_workloads[0]
    assert modelled[0].is_modelled_time


@pytest.mark.slow
def test_a_table_of_chosen_metrics_keeps_the_modelled_time(committed: tuple[Store, str]) -> None:
    store, data = committed
    table = table_of(store, "v2d_a", "v2d_b", data=data, metrics=[MODELLED_TIME, "static_registers"])
    assert {column.concept for column in table.table_columns} == {MODELLED_TIME, "static_registers"}
