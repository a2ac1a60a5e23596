"""Every page opened as Streamlit runs it: with all reports, and with none."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from profiler.compare import resolve_names
from profiler.compare.comparison import compare
from profiler.evidence import formatting, metric_table
from profiler.store.begin_import import import_paths
from profiler.store.pruning import prune_runs
from tests.reportfiles import is_made

pytestmark = pytest.mark.slow  # the pages are run whole

APP = Path(__file__).resolve().parents[2] / "app.py"
PAGES = ("overview", "trends", "diff", "code", "runs")  # that show reports of any family
ALL_PAGES = sorted(path.stem for path in APP.parent.glob("profiler/ui/pages/[a-z]*.py"))
NCAR = {"a": "ncar/MW_Baseline", "b": "ncar/MW_DivToMult"}


def page(name: str, data: Path, monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    monkeypatch.setenv("PROFILER_DATA", str(data))
    app = AppTest.from_file(str(APP), default_timeout=300)  # a busy machine takes long
    if name != "overview":
        app.switch_page(f"profiler/ui/pages/{name}.py")
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception, app.exception
    return app


def text(app: AppTest) -> str:
    """What the page's HTML reads as, a space before each small unit as on the screen."""
    body = " ".join(element.value for element in app.html if "<style>" not in element.value)
    body = body.replace('</span><span class="end">', "")  # the halves of a name
    spaced = re.sub(r'<span class="u[^"]*">', " ", body)
    return " ".join(unescape(re.sub(r"<[^>]+>", "\t", spaced).replace("\t ", " ")).split())


def charts(app: AppTest) -> list[dict[str, Any]]:
    return [json.loads(element.proto.spec) for element in app.get("plotly_chart")]


def test_every_page_is_in_the_menu_and_each_entry_is_a_page() -> None:
    assert sorted(set(re.findall(r'PAGES / "(\w+)\.py"', APP.read_text("utf-8")))) == ALL_PAGES


@pytest.mark.usefixtures("pages_of")
class TestEmpty:
    @pytest.mark.parametrize("name", ALL_PAGES)
    def test_a_page_without_data_names_the_command_that_fills_it(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page(name, tmp_path, monkeypatch)
        said = " ".join([text(app), *(code.value for code in app.code)])
        assert re.search(
            r"profiler (import PATH|static --check|collect|noise|search start|changes OLD)\b", said
        )
        assert not app.get("plotly_chart")

    def test_the_runs_page_takes_a_report_and_the_other_pages_show_it(
        self, made_reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("runs", tmp_path, monkeypatch)
        content = (made_reports / "ncar" / "MW_Baseline.ncu-rep").read_bytes()
        app.file_uploader[0].set_value([("MW_Baseline.ncu-rep", content, "application/octet-stream")])
        app.button[0].click().run()
        assert not app.exception
        assert "Imported 1." in text(app)
        assert "imported MW_Baseline" in text(app)
        assert "MW_Baseline" in text(page("overview", tmp_path, monkeypatch))

    def test_a_run_whose_report_was_dropped_shows_its_numbers_and_who_did_it(
        self, made_reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import_paths([made_reports / "ncar" / "MW_Baseline.ncu-rep"], data=str(tmp_path))
        assert len(prune_runs(0.001, why="<b>", who="me", data=str(tmp_path)).runs) == 1
        app = page("runs", tmp_path, monkeypatch, view="instructions")
        assert text(app).count("by me (<b>)") == 2  # in place of the download, and of the instructions
        assert not app.get("download_button")
        assert "MW_Baseline" in text(page("runs", tmp_path, monkeypatch, view="metrics"))

    def test_a_refused_file_shows_one_clear_line_without_the_folder_it_was_copied_to(
        self, made_reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("runs", tmp_path, monkeypatch)
        content = (made_reports / "bad" / "random.ncu-rep").read_bytes()
        app.file_uploader[0].set_value([("random.ncu-rep", content, "application/octet-stream")])
        app.button[0].click().run()
        assert "1 refused" in text(app)
        assert "random.ncu-rep: " in text(app)
        assert "/tmp" not in text(app)


@pytest.mark.usefixtures("pages_of")
class TestBroken:
    @pytest.mark.parametrize("name", PAGES)
    def test_an_index_that_cannot_be_opened_is_one_line_and_no_traceback(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PROFILER_DB", "nonsense")
        assert "PROFILER_DB" in text(page(name, tmp_path, monkeypatch))

    def test_a_damaged_bundle_is_named_and_the_others_stay(
        self, made_reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import_paths([made_reports / "ncar"], data=str(tmp_path))
        broken = tmp_path / "runs" / "20260101T000000-f-v-00000000"
        broken.mkdir()
        (broken / "run.json").write_text("{")
        shown = text(page("runs", tmp_path, monkeypatch))
        assert "20260101T000000-f-v-00000000 is left out" in shown
        assert "MW_Baseline" in shown


@pytest.mark.usefixtures("pages_of")
class TestFull:
    @pytest.mark.parametrize("name", PAGES)
    def test_a_page_opens_with_all_reports(
        self, name: str, full_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = text(page(name, full_data, monkeypatch))
        assert "profiler import PATH" not in shown
        assert not re.search(r"\bnan\b|\binf\b|None", shown.replace("failed (NaN)", ""))

    def test_the_overview_shows_the_newest_version_of_every_family(
        self, full_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = text(page("overview", full_data, monkeypatch))
        assert "ncar MW_DivToMult since MW_Baseline" in shown
        assert "compute_tendencies_x_279_gpu 3.48 ms ✓ better −43.8 %" in shown
        for family in ("cutlass", "esmm", "hyperspec", "llm.c", "mistic"):
            assert family in shown

    def test_the_diff_shows_the_numbers_of_the_comparison(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = text(page("diff", full_data, monkeypatch, **NCAR))
        paths = [str(reports / f"{name}.ncu-rep") for name in NCAR.values()]
        comparison = compare(*resolve_names.resolve_all(paths, lambda: None), metric_table.load_metrics())
        for pair in comparison.pairs:
            assert pair.headline is not None
            a, b = (formatting.quantity(value) for value in (pair.headline.a, pair.headline.b))
            moved = formatting.change(pair.headline.a, pair.headline.b)
            assert f"{pair.kernel} {a} {b} {moved} {pair.verdict.label}" in shown

    def test_another_launch_is_chosen_by_the_address(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("diff", made_data, monkeypatch, **NCAR, launch="set_halo_values_x_396_gpu")
        assert "= same +12.4 %" in text(app)

    @pytest.mark.parametrize("family", ["cutlass", "ncar"])
    def test_the_family_that_the_menu_carries_decides_which_pair_the_diff_opens_with(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch, family: str
    ) -> None:
        app = page("diff", made_data, monkeypatch, family=family)
        assert [box.value.partition("/")[0] for box in app.selectbox[:2]] == [family, family]

    def test_an_unknown_version_in_the_address_is_an_error_in_place_and_not_another_pair(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("diff", made_data, monkeypatch, a="ncar/nobody", b=NCAR["b"])
        assert "ncar/nobody: no such run or version" in text(app)
        assert "Verdict" not in text(app)

    def test_a_path_in_the_address_is_not_read(
        self, made_data: Path, made_reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = str(made_reports / "ncar" / "MW_Baseline.ncu-rep")
        app = page("diff", made_data, monkeypatch, a=path, b=NCAR["b"])
        assert "no such run or version" in text(app)

    def test_a_kernel_filter_that_fits_nothing_says_what_there_is(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("diff", made_data, monkeypatch, **NCAR, kernels="gemm")
        assert "no kernel matches 'gemm'" in text(app)

    def test_the_history_of_a_failed_kernel_has_a_gap_and_no_zero(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("trends", made_data, monkeypatch, family="esmm", kernels="one_d_vec", metrics="duration")
        (chart,) = charts(app)
        lines = [trace for trace in chart["data"] if trace["type"] == "scatter"]
        assert all(number is None or number > 0 for trace in lines for number in trace["y"])
        assert any("failed" in note["text"] for note in chart["layout"]["annotations"])

    def test_kernels_that_come_and_go_are_gaps_that_say_so(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page(
            "trends", made_data, monkeypatch, family="esmm", kernels="warptiling_two", metrics="duration"
        )
        (chart,) = charts(app)
        (hatch,) = [trace for trace in chart["data"] if trace["type"] == "bar"]
        assert set(hatch["hovertext"]) == {"not in this run"}
        assert len(hatch["x"]) == 5

    def test_the_kernel_in_focus_has_its_stalls_and_opcodes_as_areas(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("trends", made_data, monkeypatch, family="ncar")
        _, stalls, opcodes = charts(app)
        for figure, title, areas in ((stalls, "stall mix of ", 6), (opcodes, "opcode mix of ", 7)):
            assert title in figure["layout"]["annotations"][0]["text"]
            assert sum(trace.get("fill") == "toself" for trace in figure["data"]) == areas

    def test_any_ncu_name_can_be_charted(self, made_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        name = "launch__registers_per_thread"
        app = page("trends", made_data, monkeypatch, family="esmm", metrics=f"duration,{name}")
        (chart,) = charts(app)
        assert any(name in note["text"] for note in chart["layout"]["annotations"])

    def test_a_name_that_does_not_exist_is_an_error_in_place(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "no concept 'durration'" in text(
            page("trends", made_data, monkeypatch, family="esmm", metrics="durration")
        )

    def test_many_names_that_do_not_exist_are_one_error(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        names = ",".join(f"nothing{index}" for index in range(200))
        app = page("trends", made_data, monkeypatch, family="esmm", metrics=names)
        assert sum("k-error" in element.value for element in app.html if "<style" not in element.value) == 1
        assert "199 more are not shown" in text(app)

    def test_a_bad_kernel_filter_is_not_called_a_flag(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = text(page("trends", made_data, monkeypatch, family="esmm", kernels="regex:(x"))
        assert "kernels regex:(x: not a regular expression" in shown
        assert "--kernel" not in shown

    def test_every_metric_of_a_launch_is_in_its_table(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("runs", full_data, monkeypatch, family="ncar", find="Baseline")
        shown = app.dataframe[0].value
        derived = shown["metric"].str.startswith(("derived from", "stand-in"))
        assert len(shown[~derived]) == (195 if is_made(reports) else 676)
        assert derived.sum() == 7, "concepts of metrics.txt that this report has by other counters"
        row = shown[shown["metric"] == "gpu__time_duration.sum"].iloc[0]
        assert row["value"] == "6.19 ms"
        assert row["in base units"] == 6190944.0

    def test_the_metrics_of_a_launch_can_be_searched(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("runs", made_data, monkeypatch, family="ncar", find="Baseline", metric="time duration")
        assert list(app.dataframe[0].value["metric"]) == ["gpu__time_duration.sum"]

    def test_a_failed_value_has_no_number_in_the_table(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("runs", made_data, monkeypatch, family="mistic", find="HIGGS", metric="time_duration")
        row = app.dataframe[0].value.iloc[0]
        assert row["value"] == "failed (NaN)"
        assert row["in base units"] != row["in base units"] or row["in base units"] is None

    def test_the_instructions_of_a_launch_are_read_on_first_view(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = "v1.cu" if is_made(reports) else "adamw.cu"
        app = page("runs", full_data, monkeypatch, family="llm.c", view="instructions", sass=f"LDG {file}")
        shown = app.dataframe[0].value
        assert len(shown) > 0
        columns = zip(shown["SASS"], shown["source"], strict=True)
        assert all("LDG" in sass and f"{file}:" in source for sass, source in columns)
        assert shown["samples"].sum() > 0

    def test_a_report_without_machine_code_says_so(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("runs", made_data, monkeypatch, family="ncar", find="Baseline", view="instructions")
        assert "the report holds no SASS text" in text(app)

    def test_the_original_report_can_be_downloaded_whole(
        self, made_data: Path, made_reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from profiler.store.index import Store
        from profiler.ui.data import results

        monkeypatch.setenv("PROFILER_DATA", str(made_data))
        (run,) = [
            one
            for one in Store.open(f"sqlite:///{made_data}/index.db").runs("ncar")
            if one.version == "MW_Baseline"
        ]
        content = results.report_reader(run.run_id, run.reports[0].sha256)()
        assert content == (made_reports / "ncar" / "MW_Baseline.ncu-rep").read_bytes()

    @pytest.mark.parametrize("name", PAGES)
    def test_no_user_path_or_host_is_shown_outside_the_provenance(
        self, name: str, full_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = text(page(name, full_data, monkeypatch))
        assert ("/home/" in shown or "/glade" in shown or "/scratch" in shown) <= (name == "runs")


@pytest.fixture(scope="session")
def two_cells(made_reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One family with two versions on two workloads, which were measured on different GPUs."""
    data = tmp_path_factory.mktemp("cells")
    for workload, before, after in (
        ("weather", "ncar/MW_Baseline", "ncar/MW_DivToMult"),
        ("join", "mistic/prof1", "mistic/prof2"),
    ):
        for version, name in (("v1", before), ("v2", after)):
            import_paths(
                [made_reports / f"{name}.ncu-rep"],
                family="f",
                version=version,
                workload=workload,
                data=str(data),
            )
    return data


@pytest.mark.usefixtures("pages_of")
class TestWorkloads:
    def test_the_same_pair_is_shown_on_every_workload(
        self, two_cells: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("diff", two_cells, monkeypatch, a="f/v1", b="f/v2", workload="weather")
        shown = text(app)
        assert "The same pair elsewhere" in shown
        assert "weather · Tesla V100-SXM2-32GB 6.19 ms 3.48 ms −43.8 % ✓ better" in shown
        assert "join · NVIDIA A100-PCIE-40GB 1.15 s 1.10 s" in shown
        assert [box.options for box in app.selectbox if box.label == "workload"] == [["join", "weather"]]

    def test_another_workload_is_another_comparison(
        self, two_cells: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = text(page("diff", two_cells, monkeypatch, a="f/v1", b="f/v2", workload="join"))
        assert "distanceCalculationsKernel" in shown
        assert "A100-PCIE" in shown

    def test_versions_without_a_common_gpu_are_held_together_and_not_comparable(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = text(page("diff", made_data, monkeypatch, a="ncar/MW_Baseline", b="mistic/prof1"))
        assert "Comparable: no ≠ GPU differs: Tesla V100-SXM2-32GB and NVIDIA A100-PCIE-40GB" in shown
        assert "The same pair elsewhere" not in shown

    def test_a_trend_holds_one_workload_and_gpu_only(
        self, two_cells: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("trends", two_cells, monkeypatch, family="f", workload="weather", metrics="duration")
        names = {trace["name"] for trace in charts(app)[0]["data"] if trace["type"] == "scatter"}
        assert len(names) == 5
        assert not any("distance" in name for name in names)
