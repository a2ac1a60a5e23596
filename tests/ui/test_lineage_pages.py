"""The pages over a lineage that no GPU has run: real state and facts, wrong versions as wrong, no speed."""

import re
import shutil
from pathlib import Path

import pytest

from profiler.bundles import location
from profiler.errors import BadBundle
from profiler.history.lineage import Lineage, load_lineages
from profiler.store.readable_index import open_store
from profiler.ui.views import lineage_table
from tests import lineages
from tests.conftest import ROOT
from tests.ui.test_pages import charts, page, text

pytestmark = pytest.mark.slow  # the pages are run whole

RUNS = sorted((ROOT / "data" / "runs").glob("*-attention-dissect-*"))


def rows(markup: str) -> list[str]:
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in re.findall(r"<tr.*?</tr>", markup)]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A small lineage."""
    lineages.dissected(tmp_path)
    return tmp_path


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """The committed run of our own lineage."""
    if not RUNS:
        pytest.skip("no dissected run under data/runs: `profiler static --check --out data/runs` makes one")
    shutil.copytree(RUNS[-1], tmp_path / "runs" / RUNS[-1].name)
    return tmp_path


def of(data: Path) -> Lineage:
    return load_lineages(location.open_root(str(data)), open_store(str(data)))[lineages.FAMILY]


CHOICE = lineage_table.FactChoice("sm_80", "head dim 64", "1x1x8x64")


class TestTable:
    def test_each_version_is_a_row_with_its_idea_state_and_numbers(self, mine: Path) -> None:
        shown = rows(lineage_table.table(of(mine), CHOICE))
        zero, bad, alpha, later = shown[1:5]
        assert zero.startswith("the plain &lt;one&gt; zero not measured first good 40 0 B 50.0 % 0 1.00e−4")
        assert "⊘ wrong a race on the row" in bad
        assert alpha.startswith("↳ a warp a row alpha not measured diff zero good 64")
        assert "parent wrong" in alpha
        assert later.startswith("↳ not yet later planned planned needs a GPU – – – – –")

    def test_a_version_that_nobody_measured_says_so_and_a_wrong_one_has_no_speed(self, mine: Path) -> None:
        _, zero, bad, alpha, *_ = rows(lineage_table.table(of(mine), CHOICE))
        assert "not measured" in zero
        assert "not measured" in alpha
        assert "not measured" not in bad

    def test_a_measured_latency_stands_beside_the_claim_of_others(self, tmp_path: Path) -> None:
        lineages.dissected(tmp_path, lineages.results(measured=True), gpu="Test GPU")
        choice = lineage_table.FactChoice("sm_80", "head dim 64", "1x1x8x64", "Test GPU")
        head, zero, bad, alpha, *_ = rows(lineage_table.table(of(tmp_path), choice))
        assert "claimed, L4" in head
        assert "400 ns 1.00 µs big" in zero.replace("\u2009", " ")
        assert "420" not in bad
        assert "×0.625" in alpha

    def test_a_phone_has_latency_change_and_the_way_to_the_diff_in_one_column(self, tmp_path: Path) -> None:
        lineages.dissected(tmp_path, lineages.results(measured=True), gpu="Test GPU")
        choice = lineage_table.FactChoice("sm_80", "head dim 64", "1x1x8x64", "Test GPU")
        cells = re.findall(r'<td class="phone">(.*?)</td>', lineage_table.table(of(tmp_path), choice))
        zero, bad, alpha, later, *_ = (" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells)
        assert zero.endswith("first")
        assert bad == "⊘ wrong diff zero"
        assert alpha.endswith("×0.625")
        assert later == "planned"
        assert all('href="' in cells[at] for at in (1, 2))

    def test_the_diff_of_a_version_is_with_its_nearest_correct_ancestor(self, mine: Path) -> None:
        table = lineage_table.table(of(mine), CHOICE)
        assert (
            "a=mine%2Fzero&amp;b=mine%2Falpha&amp;workload=head+dim+64&amp;gpu=sm_80&amp;evidence=static"
            in table
        )
        assert "a=mine%2Fbad" not in table


@pytest.mark.usefixtures("pages_of")
class TestPages:
    def test_the_lineage_page_without_data_names_the_command(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "profiler static --check" in text(page("lineage", tmp_path, monkeypatch))

    def test_the_lineage_page_shows_graph_and_choice(
        self, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("lineage", mine, monkeypatch, arch="sm_80", size="head dim 128")
        (table,) = [element.value for element in app.markdown if "lanes" in element.value]
        assert table.count("<svg") == 4
        assert " 64 " in rows(table)[3]
        assert app.query_params["arch"] == "sm_80"
        assert "Lineage of mine" in text(app)

    def test_the_lineage_page_of_imported_reports_alone_is_empty(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "profiler static --check" in text(page("lineage", made_data, monkeypatch))

    def test_a_catalogue_that_cannot_be_read_is_one_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = lineages.dissected(tmp_path, catalog="family = [")
        shown = text(page("lineage", tmp_path, monkeypatch))
        assert f"run {run.run_id} keeps a catalogue that cannot be read" in shown

    def test_the_overview_names_what_is_wrong_and_how_to_measure_the_rest(
        self, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("overview", mine, monkeypatch)
        shown = text(app)
        assert "⊘ 1 of 3 versions bad" in shown
        assert "a race on the row" in shown
        assert "Not measured – 2 of 2 correct versions 1 more planned" in shown
        assert "not timed · diff with zero" in shown
        assert "To measure, on a machine with a GPU" in shown
        assert [element.value for element in app.code] == ["profiler collect"]
        assert "Worse now not measured" in shown, "nothing measured is not 0"
        assert "Got worse" not in shown

    def test_the_runs_page_shows_cells_checks_and_files(
        self, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = text(page("runs", mine, monkeypatch))
        assert "15 cells of 3 versions; 3 checked, 6 schedules" in shown
        assert "⊘ wrong" in shown
        assert "race at k.cu:6 in bad (as the catalogue says)" in shown
        assert "line tables 2 files" in shown

    @pytest.mark.parametrize("evidence", ["static", "modelled"])
    def test_a_diff_shows_facts_of_one_kind_and_both_sources(
        self, evidence: str, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("diff", mine, monkeypatch, a="mine/zero", b="mine/alpha", evidence=evidence)
        shown = text(app)
        assert ("registers, compiled 41" in shown) == (evidence == "static")
        assert ("! worse bank conflicts, modelled" in shown) == (evidence == "modelled")
        assert "Flags that differ TILE not set → 64" in shown
        assert "#define TILE 32 Δ 3 #define TILE 32" in shown
        assert ("k.cu:10" in shown) == (evidence == "modelled")
        assert not app.get("plotly_chart")

    def test_a_diff_with_a_wrong_version_gives_no_verdict(
        self, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = text(page("diff", mine, monkeypatch, a="mine/zero", b="mine/bad", evidence="modelled"))
        assert "⊘ wrong B bad: race at k.cu:6 in bad" in shown
        assert "Comparable: no wrong results have no speed and no verdict" in shown
        assert "worse" not in shown
        assert "better" not in shown

    def test_versions_of_two_dtypes_stand_side_by_side_and_are_not_comparable(
        self, real: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        query = {"a": "attention/flashcore_wmma", "b": "attention/fp8_stage_c", "evidence": "modelled"}
        shown = text(page("diff", real, monkeypatch, **query))
        assert "dtype differs: fp16 and fp8" in shown
        assert "fp8_stage_c.cu:" in shown
        assert "No workload on which both were examined." in shown

    def test_trends_come_in_the_catalogues_order_with_wrong_versions_hatched(
        self, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("trends", mine, monkeypatch, family="mine")
        panels, mix = charts(app)
        assert panels["layout"]["xaxis"]["ticktext"] == ["zero", "bad", "alpha"]
        (line,) = [trace for trace in panels["data"] if trace["type"] == "scatter" and trace["yaxis"] == "y"]
        assert [number for number in line["y"] if number is not None] == [41, 65]
        assert "wrong" in [note["text"] for note in panels["layout"]["annotations"]]
        assert mix["layout"]["xaxis"]["ticktext"] == ["zero", "bad", "alpha"]
        tensor = next(trace for trace in mix["data"] if trace.get("name") == "tensor core")
        assert [x for x in tensor["x"] if x is not None] == [
            pytest.approx(x) for x in (-0.47, 0.47, 0.47, -0.47, 1.53, 2.47, 2.47, 1.53)
        ]
        heights = [y for y in tensor["y"] if y is not None]
        assert max(heights) - min(heights) == 75.0

    def test_trends_of_one_kind_never_hold_the_other(
        self, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("trends", mine, monkeypatch, family="mine", evidence="modelled")
        (chart,) = charts(app)
        titles = " ".join(note["text"] for note in chart["layout"]["annotations"])
        assert "modelled" in titles
        assert "static" not in titles

    def test_the_overview_names_the_fastest_by_the_model_and_counts_wgmma_among_tensor_sites(
        self, real: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("overview", real, monkeypatch)
        said = text(app)
        assert re.search(r"Best correct v2d_d 9\.\d+ µs modelled, H100-SXM, 1x8x512x64", said)
        assert "too close to tell" in said
        assert "no model of v2g" in said
        (table,) = [element.value for element in app.html if "newest versions" in element.value]
        lines = rows(table)
        (v2e,) = [line for line in lines if line.startswith("v2e ")]
        assert v2e.startswith("v2e wgmma, TMA and mbarrier no model – 142 1 368 12 ")
        assert sum(bool(re.search(r" [\d.]+ [mµ]s ", line.replace("\u2009", " "))) for line in lines) > 10
        assert sum(" goal " in line for line in lines) == 3, "what the owner aims at"
        assert table.count('class="track" title="modelled, not measured: ') > 10

    def test_a_phone_has_the_modelled_times_in_the_table_of_the_lineage(
        self, real: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("lineage", real, monkeypatch)
        tables = " ".join(element.value for element in [*app.html, *app.markdown])
        cells = re.findall(r'<td class="(?:r )?phone(?: r)?">(.*?)</td>', tables)
        words = [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells]
        assert sum(bool(re.match(r"[\d.]+ [mµ]s modelled", cell)) for cell in words) > 10
        assert any(cell.startswith("no model") for cell in words), "v2g"

    def test_what_is_missing_a_model_is_named_with_its_opcode(
        self, real: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("trends", real, monkeypatch, family="attention")
        (note,) = [element.value for element in app.html if "no model of" in element.value]
        assert "`" not in note
        assert "FENCE" in note

    def test_trends_of_the_model_begin_with_modelled_times_and_their_ranges(
        self, real: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page(
            "trends", real, monkeypatch, family="attention"
        )  # where nothing is measured, they come first
        hatch, mark = charts(app)[0]["data"]
        ticks = charts(app)[0]["layout"]["xaxis"]["ticktext"]
        by_name = {ticks[int(x)]: number for x, number in zip(mark["x"], mark["y"], strict=True) if number}
        assert "v2g" in {ticks[int(x)] for x in hatch["x"]}, "there is no model of its time"
        assert "v2g" not in by_name
        assert by_name["v2d_b"] < by_name["v2d_a"]
        ranges = [*mark["error_y"]["array"], *mark["error_y"]["arrayminus"]]
        assert sum(length is not None and length > 0 for length in ranges) == 2 * len(by_name) > 20
        assert "not measured" in text(app)

    def test_a_bare_diff_opens_good_versions_and_no_wrong_one(
        self, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("diff", mine, monkeypatch)
        assert [box.value for box in app.selectbox][:2] == ["mine/zero", "mine/alpha"]

    def test_metrics_of_other_evidence_leave_the_address(
        self, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        query = {"family": "mine", "evidence": "modelled", "metrics": "static_registers,modelled_error"}
        app = page("trends", mine, monkeypatch, **query)
        assert app.query_params["metrics"] == "modelled_error"

    def test_a_run_whose_bundle_broke_after_indexing_is_one_line(
        self, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(now: object, run_id: str) -> None:
            raise BadBundle(f"{run_id}/run.json: broken since it was indexed")

        monkeypatch.setattr(
            "profiler.ui.data.results.bundled_run", broken
        )  # a real one is left out as soon as the index syncs
        app = page("runs", mine, monkeypatch)
        assert "broken since it was indexed" in text(app)
        assert "command line" in text(app)  # the provenance, which the index holds, stays

    @pytest.mark.parametrize("name", ["overview", "lineage", "trends", "diff", "runs"])
    def test_every_page_opens_with_our_own_lineage(
        self, name: str, real: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page(name, real, monkeypatch)
        assert "profiler import PATH" not in text(app)
        assert not re.search(r"\bnan\b|\binf\b|None", text(app).replace("failed (NaN)", ""))
