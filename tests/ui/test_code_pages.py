"""The Code page and the drill-down, as Streamlit runs them on real reports, and their markup."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest

from profiler.reports import file_format, read
from profiler.reports.instances import PcColumn
from profiler.sass import alignment, hotspots
from profiler.sass.listing import Listing, SassLine, listing_of_launch
from profiler.store.begin_import import import_paths
from profiler.ui.data.named_code import NamedCode
from profiler.ui.views import aligned_code, code_grid, code_listing, drilldown, embedded_sources
from tests.reportfiles import is_made
from tests.ui.test_pages import page, text

pytestmark = pytest.mark.slow  # the pages are run whole


def key(reports: Path, name: str) -> str:
    """What a report is called in an address."""
    return file_format.check_framing(reports / f"{name}.ncu-rep").sha256[:16]


def listing(reports: Path, name: str, ordinal: int) -> Listing:
    return listing_of_launch(read.launch_detail(reports / f"{name}.ncu-rep", ordinal))


def plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


@pytest.fixture
def clone(tmp_path: Path, committed_data: Path) -> Path:
    """The committed data, of a machine without compilers: nothing here runs one."""
    return Path(shutil.copytree(committed_data, tmp_path / "data"))


@pytest.mark.usefixtures("pages_of")
class TestCode:
    def test_a_launch_shows_its_instructions_under_their_source_lines(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page(
            "code",
            full_data,
            monkeypatch,
            a=key(reports, "llm.c/adamw_coalsecing_shared"),
            launch="0",
            view="sass",
        )
        shown = text(app)
        count, line, instruction = (
            (596, r"v1\.cu:81 O_rmem\[e\] \+= P_smem\[n\] \* .*?; · 1 5\d\d samples", "LDG.E.U16.CONSTANT R")
            if is_made(reports)
            else (
                64,
                r"adamw\.cu:95 shared_g\[local_i\] = grads_memory\[i\]; · 2 1\d\d samples",
                "LDG.E R15, [",
            )
        )
        assert f"{count} instructions" in shown
        assert re.search(line, shown)
        assert instruction in shown
        assert len(set(re.findall(r"\+0x\w{4}", shown))) == count, "branches name addresses again"

    def test_a_report_without_text_says_so_and_shows_the_counts_of_every_place(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        where = {"a": key(reports, "ncar/MW_Baseline"), "launch": "2", "rows": "address", "view": "sass"}
        shown = text(page("code", full_data, monkeypatch, **where))
        assert "The report holds no SASS text (it prints ???)" in shown
        told, count = ("1 036", 1036) if is_made(reports) else ("951", 951)
        assert f"{told} instructions 3 code regions" in shown
        assert shown.count("+0x") == count
        assert "313 k samples" in shown
        assert "compute_tendencies_x_279_gpu [2 of 3] · " in shown

    def test_two_reports_without_text_are_aligned_region_by_region(
        self, made_data: Path, made_reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, b = (key(made_reports, f"ncar/MW_{name}") for name in ("Baseline", "DivToMult"))
        app = page("code", made_data, monkeypatch, a=a, launch="2", b=b, b_launch="2")
        shown = text(app)
        assert "without text it is unknown whether they are equal" in shown
        for told in (
            "[1 of 3], paired by offsets",
            "[2 of 3], paired by offsets",
            "[3 of 3], paired by source",
        ):
            assert told in shown

    def test_two_launches_of_one_binary_show_no_difference(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        same = key(reports, "cutlass/report80")
        shown = text(page("code", full_data, monkeypatch, a=same, launch="0", b=same, b_launch="1"))
        count = 430 if is_made(reports) else 985
        assert f"No difference {count} equal" in shown
        assert f"⋯ {count} rows that do not differ" in shown

    def test_the_sources_of_two_reports_show_the_line_that_was_edited(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, b = (key(reports, f"ncar/MW_{name}") for name in ("Baseline", "DivToMult"))
        shown = text(page("code", full_data, monkeypatch, a=a, launch="2", b=b, b_launch="2", view="diff"))
        embedded, line, text_of_line = (
            ("2 files", 46, "#pragma unroll 8")
            if is_made(reports)
            else ("1 file", 288, "vals(ll) = -stencil(1)/12 + 7*stencil(2)/12")
        )
        assert f"{embedded} embedded, 1 of them differs" in shown
        assert re.search(rf"{line} (\d+ k )?{re.escape(text_of_line)}", shown)
        assert f"≠ {line}" in shown
        assert shown.count("≠") == 1

    def test_a_launch_without_instructions_says_how_to_collect_them(
        self, made_data: Path, made_reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("code", made_data, monkeypatch, a=key(made_reports, "esmm/profile@049ec612"), launch="0")
        assert "the report holds no instructions; collect with --set full" in text(app)

    def test_an_address_of_a_report_that_is_not_here_says_so(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = text(page("code", made_data, monkeypatch, a="0123456789abcdef"))
        assert "There is no report 0123456789abcdef here" in shown

    def test_a_launch_that_a_report_does_not_have_is_said(
        self, made_data: Path, made_reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        where = {"a": key(made_reports, "cutlass/report80"), "launch": "99", "from": "9" * 5_000}
        shown = text(page("code", made_data, monkeypatch, **where))
        assert "Report A has no launch 99: it has 0 to 2. Launch 2 is shown instead." in shown
        shown = text(page("code", made_data, monkeypatch, a=where["a"], launch="1"))
        assert "has no launch" not in shown

    def test_sources_that_one_report_alone_embeds_are_not_called_different(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, b = (key(reports, f"cutlass/report{name}") for name in ("75", "80"))
        where = {"a": a, "launch": "2", "b": b, "b_launch": "2", "view": "diff"}
        shown = text(page("code", full_data, monkeypatch, **where))
        files = 2 if is_made(reports) else 52
        assert f"{files} files embedded, {files} only in B" in shown
        assert "what A was built from is not in its report" in shown
        assert "lines without instructions" in shown, "B's own lines with their cost"

    def test_without_a_report_the_code_of_a_version_shows_with_where_it_is_from(
        self, clone: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = text(page("code", clone, monkeypatch, a="attention/v2d_b", kernel="v2d<64>", view="sass"))
        assert re.search(r"static sm_90a · nvcc 13\.\S+ · kept in run \S+-attention-dissect-", shown)
        assert "nothing was run: no samples, no counts" in shown
        assert "HMMA.16816.F32" in shown
        listed = shown.partition(" SASS ")[2]
        assert "samples" not in listed, "no column of counts, and no 0"
        assert "profiler collect v2d_b --full v2d_b" in shown

    def test_two_versions_without_a_report_are_aligned(
        self, clone: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        where = {"a": "attention/v2d_a", "b": "attention/v2d_b", "arch": "sm_80"}
        app = page("code", clone, monkeypatch, **where)
        shown = text(app)
        assert re.search(r"Instructions \d+ equal, [\d ]+ renamed, [\d ]+ changed", shown)
        assert app.query_params["arch"] == "sm_80"
        same = {**where, "b": "attention/v2d_a"}
        assert "No difference" in text(page("code", clone, monkeypatch, **same))
        view = {**where, "view": "source", "file": "v2d.cu"}
        shown = text(page("code", clone, monkeypatch, **view))
        assert "ldmatrix" in shown.partition("3 files embedded")[2], (
            "one source, two builds: both sides' sites"
        )

    def test_the_sources_of_two_versions_stand_beside_each_other(
        self, clone: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        where = {"a": "attention/v2c_v5", "b": "attention/v2d_a", "view": "diff"}
        shown = text(page("code", clone, monkeypatch, **where))
        assert "v2c_v5.cu → v2d.cu" in shown

    def test_functions_are_called_as_in_the_source_and_their_numbers_are_explained(
        self, clone: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        where = {"evidence": "static", "a": "attention/v2d_b"}
        one = text(page("code", clone, monkeypatch, **where, view="sass"))
        assert re.search(r"instructions \[1\] v2d<\d+> \[2\] v2d<\d+> ", one)
        assert "[2]+0x0000" in one
        two = text(page("code", clone, monkeypatch, **where, b="attention/v2d_c"))
        assert re.search(r" v2d<128> ⋯ 1 row that does not differ \+0x0010 S2R ", two)
        assert "_Z3v2d" not in one + two

    def test_the_diff_of_two_versions_leads_to_their_code(
        self, clone: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        where = {"a": "attention/v2d_a", "b": "attention/v2d_b", "evidence": "static", "gpu": "sm_80"}
        app = page("diff", clone, monkeypatch, workload="head dim 64", **where)
        shown = text(app)
        told = shown.partition("Machine code")[2]
        assert re.match(r" static, sm_80: nothing was run: no samples, no counts v2d<64> \d+ equal", told)
        body = unescape(" ".join(element.value for element in app.html))
        (address,) = re.findall(r"\./code\?(\S*?)\"", body)
        query = dict(parse_qsl(address))
        assert query == {
            "evidence": "static",
            "a": "attention/v2d_a",
            "b": "attention/v2d_b",
            "arch": "sm_80",
            "kernel": "v2d<64>",
            "view": "sass",
        }
        counts = told.partition("v2d<64> ")[2].partition(" code of both")[0].replace(" : no difference", "")
        assert counts in text(page("code", clone, monkeypatch, **query)), "the same function on both pages"

    def test_a_run_that_keeps_no_code_says_how_to_build_it(
        self, clone: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for path in (clone / "runs").glob("*/run.json"):
            body = json.loads(path.read_text())
            body["files"] = [one for one in body["files"] if one["kind"] != "sass"]
            path.write_text(json.dumps(body))
        shown = text(page("code", clone, monkeypatch, a="attention/v2d_b", arch="sm_80", view="sass"))
        assert "is not kept in run " in shown
        assert "profiler sass attention/v2d_b --arch sm_80 builds it" in shown
        where = {"a": "attention/v2d_a", "b": "attention/v2d_b", "evidence": "static", "gpu": "sm_80"}
        shown = text(page("diff", clone, monkeypatch, workload="head dim 64", **where))
        assert "profiler sass attention/v2d_a attention/v2d_b --arch sm_80" in shown

    def test_code_of_reports_and_of_versions_is_never_mixed(
        self, clone: Path, made_reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import_paths([made_reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep"], data=str(clone))
        app = page("code", clone, monkeypatch)
        assert "samples" in text(app)
        assert "report A" in [box.label for box in app.selectbox]
        app = page("code", clone, monkeypatch, a="attention/v2d_b")
        assert "nothing was run" in text(app)
        assert "report A" not in [box.label for box in app.selectbox]

    def test_no_code_is_offered_of_a_csv(
        self, made_reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        paths = [made_reports / "csv" / f"kernel_{one}.details.csv" for one in ("0009", "0013")]
        import_paths(paths, family="csv", data=str(tmp_path / "data"))
        name = "csv/kernel_0009.details"
        for drill in drilldown.VIEWS:
            app = page("diff", tmp_path / "data", monkeypatch, a=name, b=name, drill=drill)
            assert "no report of both launches is kept: no code" in text(app)
        assert drilldown.NO_CODE in text(
            page("diff", tmp_path / "data", monkeypatch, a=name, b=name, drill="waiting")
        )
        app = page("runs", tmp_path / "data", monkeypatch)
        assert "./code?" not in " ".join(element.value for element in app.html)

    def test_instructions_can_be_searched_and_ordered_by_heat(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        where = {"a": key(reports, "cutlass/report75"), "launch": "0", "rows": "hottest", "view": "sass"}
        opcode = "LDS" if is_made(reports) else "LDSM"
        shown = text(page("code", full_data, monkeypatch, find=opcode.lower(), **where))
        listed = shown.partition(" SASS ")[2]
        assert len(re.findall(rf"\b{opcode}\b", listed)) == sum(
            line.opcode.split(".")[0] == opcode for line in listing(reports, "cutlass/report75", 0).lines
        )
        counts = [int(one) for one in re.findall(r"\+0x\w{4} (\d+) [a-z_]+ \d+ %", listed)]
        assert len(counts) > 5
        assert counts == sorted(counts, reverse=True)

    def test_the_diff_page_and_the_runs_page_lead_here(
        self, made_data: Path, made_reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, b = (key(made_reports, f"ncar/MW_{name}") for name in ("Baseline", "DivToMult"))
        app = page("diff", made_data, monkeypatch, a="ncar/MW_Baseline", b="ncar/MW_DivToMult")
        body = unescape(" ".join(element.value for element in app.html))
        assert f"./code?a={a}&launch=2&b={b}&b_launch=2&view=sass" in body
        app = page("runs", made_data, monkeypatch, find="MW_Baseline", kernels="tendencies")
        body = unescape(" ".join(element.value for element in app.html))
        assert f"./code?a={a}&launch=2" in body


@pytest.mark.usefixtures("pages_of")
class TestHottest:
    def test_a_launch_opens_with_its_hottest_lines_and_instructions_of_all_files(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        where = {"a": key(reports, "llm.c/adamw_coalsecing_shared"), "launch": "0"}
        app = page("code", full_data, monkeypatch, **where)
        shown = text(app)
        head = "at samples share waits for excess wavefronts excess sectors executed code"
        place = "v1.cu:81" if is_made(reports) else "adamw.cu:95"
        assert f"{head} {place} " in shown
        assert app.query_params.get("view", "hottest") == "hottest"
        body = unescape(" ".join(element.value for element in app.html))
        number = place.partition(":")[2]
        assert re.search(rf"view=source&file=[^&]+&mark={number}\b", body), "the way to the source"
        assert f"view=sass&rows=line&mark={place.replace(':', '%3A')}" in body, "the way to the machine code"

    def test_the_way_to_a_line_begins_there_in_source_and_machine_code(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = "v1.cu:81" if is_made(reports) else "adamw.cu:95"
        where = {"a": key(reports, "llm.c/adamw_coalsecing_shared"), "launch": "0"}
        for view in ({"view": "source", "mark": place.partition(":")[2]}, {"view": "sass", "mark": place}):
            app = page("code", full_data, monkeypatch, **where, **view)
            body = unescape(" ".join(element.value for element in app.html))
            grid = body.partition('aria-label="code"')[2]
            above, _, below = grid.partition("</details>")
            assert "rows above" in above
            assert ' sel"' not in above.replace('class="sel"', ' sel"')
            (first, *_) = re.findall(r'<div class="(?:g )?sel">(.*?)</div>', below)
            assert ("81" if is_made(reports) else "95") in plain(first)

    def test_places_are_ordered_by_what_was_chosen_and_narrowed_by_words(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        where = {"a": key(reports, "llm.c/adamw_coalsecing_shared"), "launch": "0"}
        asked = {"places": "instructions", "most": "executed", "find": "LDG"}
        app = page("code", full_data, monkeypatch, **where, **asked)
        rows = text(app).partition("executed code")[2]
        assert rows.count("LDG") == rows.count("SASS")
        assert rows.count("LDG") > 0

    def test_code_that_nobody_ran_shows_modelled_conflicts_by_line_and_what_is_missing(
        self, clone: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("code", clone, monkeypatch, a="attention/v2d_a", kernel="v2d<64>")
        shown = text(app)
        assert "at modelled time conflicts wavefronts ideal access SASS code" in shown
        assert "modelled wavefronts of shared memory on " in shown
        assert "Not available for code that was not run: samples" in shown
        assert "profiler collect v2d_a --full v2d_a" in shown
        first = re.search(r"SASS code [\w.]+:\d+ ([\d.]+) %", shown)
        assert first
        assert float(first[1]) > 20, "most of the modelled time is spent where shared memory is waited for"
        app = page("code", clone, monkeypatch, a="attention/v2d_a", kernel="v2d<64>", most="conflicts")
        first = re.search(r"SASS code v2d\.cu:\d+ ([\d. k]+) ", text(app))
        assert first
        assert first[1].strip() != "0", "v2d_a has no swizzle: its lines have conflicts"


@pytest.mark.usefixtures("pages_of")
class TestDrillDown:
    def drill(self, data: Path, monkeypatch: pytest.MonkeyPatch, view: str, family: str = "cutlass") -> str:
        a, b = {
            "cutlass": ("cutlass/report75", "cutlass/report80"),
            "ncar": ("ncar/MW_Baseline", "ncar/MW_DivToMult"),
            "esmm": ("esmm/profile@049ec612", "esmm/profile@17f278cb"),
        }[family]
        shown = text(page("diff", data, monkeypatch, a=a, b=b, drill=view))
        return shown.partition("Drill-down")[2].partition("What next")[0]

    def test_it_is_closed_at_first_and_nothing_waits_for_the_instructions(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from profiler.errors import UnreadableReport
        from profiler.ui.data import results

        def fails(*_: object) -> None:
            raise UnreadableReport("no instructions today")

        monkeypatch.setattr(results, "launch_detail", fails)
        closed = self.drill(made_data, monkeypatch, "").replace("link to this view", "")
        assert closed.strip() == "code of both side by side ›"
        assert "Work" in self.drill(made_data, monkeypatch, "work")
        a, b = "cutlass/report75", "cutlass/report80"
        shown = text(page("diff", made_data, monkeypatch, a=a, b=b))
        assert "no instructions today" in shown.partition("Hottest lines")[2].partition("Metrics")[0]
        assert "NVIDIA's rules" in shown

    def test_a_stall_reason_of_the_waterfall_shows_its_own_lines(
        self, full_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, b = "ncar/MW_Baseline", "ncar/MW_DivToMult"
        asked = {"a": a, "b": b, "drill": "waiting", "reason": "long_scoreboard"}
        app = page("diff", full_data, monkeypatch, **asked)
        shown = text(app).partition("Waiting for long_scoreboard")[2].partition("What next")[0]
        assert "A at B at code A B change" in shown
        assert "by reason" not in shown
        assert "lg_throttle" not in shown
        assert app.query_params["reason"] == "long_scoreboard"

    def test_the_counters_behind_the_other_causes_are_a_view(
        self, full_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = self.drill(full_data, monkeypatch, "counters", "ncar")
        assert "active warps, scheduler smsp__warps_active.avg.per_cycle_active" in shown
        assert "gpu__time_duration.sum" in shown

    def test_the_three_hottest_lines_of_b_stand_on_the_page_with_the_way_to_their_code(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("diff", full_data, monkeypatch, a="ncar/MW_Baseline", b="ncar/MW_DivToMult")
        shown = text(app).partition("Hottest lines")[2].partition("Metrics measured")[0]
        first = "v1.cu:" if is_made(reports) else "miniWeather_mpi_openacc.F90:288"
        assert shown.partition("waits for ")[2].startswith(first)
        body = unescape(" ".join(element.value for element in app.html))
        table = body.partition("hottest lines")[2].partition("</table>")[0]
        assert table.count("<tr>") == 1 + drilldown.HOTTEST_SHOWN
        assert f"./code?a={key(reports, 'ncar/MW_DivToMult')}" in table

    def test_work_names_what_came_and_what_went(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = self.drill(made_data, monkeypatch, "work")
        assert "added STL , LDL" in shown
        assert "tensor core tensor 221 k 221 k ±0" in shown
        assert "<span" not in shown, "markup must not be escaped"

    def test_waiting_names_the_line_that_moved_most_first(
        self, full_data: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = self.drill(full_data, monkeypatch, "waiting", "ncar")
        table = shown.partition("by reason")[2]
        first, moved, others = (
            ("v1.cu:81 same O_rmem[e] += P_smem[n]", "76 010 45 148 −30 862", 21)
            if is_made(reports)
            else (
                "miniWeather_mpi_openacc.F90:288 same vals(ll) = (-stencil(1)",
                "137 185 82 355 −54 830 wait −21 677",
                148,
            )
        )
        assert table.startswith(f" {first}")
        assert moved in table
        assert f"{others} more places moved less, together" in shown

    def test_a_pair_without_instructions_says_what_to_collect(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for view in drilldown.VIEWS_OF_CODE:
            assert drilldown.NO_CODE in self.drill(made_data, monkeypatch, view, "esmm")

    def test_tensor_cores_stand_beside_the_opcodes(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = self.drill(made_data, monkeypatch, "tensor cores")
        assert "busy with matrix work only not available on this GPU" in shown
        assert "matrix instructions executed 221 k 221 k" in shown


def test_conflicts_without_excess_are_called_arbitration(made_reports: Path) -> None:
    """llm.c: the counter says 11,596 and 10,604 conflicts, the addresses of the instructions say none."""
    from profiler.compare import comparison, resolve_names
    from profiler.evidence import metric_table

    path = str(made_reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep")
    side = resolve_names.resolve(path, lambda: pytest.fail("a file needs no store"))
    pair = comparison.compare(side, side, metric_table.load_metrics()).pairs[0]
    code = listing(made_reports, "llm.c/adamw_coalsecing_shared", pair.a.ordinal)
    shown = plain(" ".join(drilldown.parts(drilldown.SHARED, pair, (code, code))))
    assert re.search(r"arbitration residue 1[01]\.\d k", shown)
    assert "excess wavefronts, by instruction 0 0 ±0" in shown
    assert "A: no line has a wavefront over the ideal." in shown


def test_lines_with_excess_wavefronts_are_named_most_first(reports: Path) -> None:
    from profiler.compare import comparison, resolve_names
    from profiler.evidence import metric_table

    path = reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep"
    side = resolve_names.resolve(str(path), lambda: pytest.fail("a file needs no store"))
    pair = comparison.compare(side, side, metric_table.load_metrics()).pairs[0]
    detail = read.launch_detail(path, pair.a.ordinal)
    file, line, source = (
        ("v1.cu", 74, "P_smem[thread] = p; 9 000")
        if is_made(reports)
        else ("adamw.cu", 97, "shared_v[local_i] = v_memory[i]; 9 000")
    )
    excess = detail.per_pc[hotspots.EXCESS]
    planted = np.where(np.isnan(excess.values), np.nan, np.where(detail.line == line, 9000.0, 70.0))
    per_pc = {**detail.per_pc, hotspots.EXCESS: PcColumn(excess.unit, planted)}
    b = listing_of_launch(replace(detail, per_pc=per_pc))
    shown = plain(" ".join(drilldown.parts(drilldown.SHARED, pair, (listing_of_launch(detail), b))))
    lines = shown.partition("Lines of B")[2]
    assert re.findall(rf"{file}:\d+", lines)[0] == f"{file}:{line}"
    assert source in lines


def test_whatever_code_and_source_hold_is_escaped(made_reports: Path) -> None:
    evil = '<img src=x onerror="alert(1)">'
    one = listing(made_reports, "llm.c/adamw_coalsecing_shared", 0)
    lines = tuple(replace(line, text=evil, masked=evil, source=(evil, 95)) for line in one.lines)
    bad = replace(one, label=evil, functions=(evil,), lines=lines, texts={evil: f"{evil}\n" * 99})
    places = hotspots.spots_by_instruction(bad)
    rows = code_listing.ordered(bad, places, "line", "")
    aligned = alignment.align(bad, one)
    both = aligned_code.rows(aligned, bad, one, "all", "")
    files = embedded_sources.files(bad)
    html = [
        code_listing.page_head([NamedCode(evil, evil, bad)], [evil]),
        code_listing.table(bad, rows, code_grid.window(len(rows), "", 100), "line"),
        aligned_code.table(both, bad, one, code_grid.window(len(both), "", 200)),
        embedded_sources.section(files, files[0].name, [bad], whole=True),
        embedded_sources.section(embedded_sources.files(bad, bad), files[0].name, [bad, bad], whole=True),
    ]
    for part in html:
        assert "<img" not in part
        assert "&lt;img" in part


def test_what_reorders_text_or_overflows_a_row_is_made_visible() -> None:
    """U+202E turns what follows it: the line on the screen would not be the one that was compiled."""
    _, told = code_grid.cell("if (admin\u202e) { ")
    assert "⟨U+202E⟩" in told
    assert "\u202e" not in told
    _, told = code_grid.cell("x" * 20_000)
    assert told.endswith("x ⋯ 19.5 k more characters")
    assert len(code_grid.head("y" * 20_000)) < 700
    assert code_grid.cell("漢字 é <b>")[1] == "漢字 é &lt;b&gt;"


def test_every_row_of_a_long_listing_is_on_exactly_one_page() -> None:
    lines = tuple(SassLine(0, 16 * n, f"NOP {n}", "NOP", "NOP") for n in range(13_001))
    long = Listing("long", ("k",), lines)
    rows = code_listing.ordered(long, hotspots.spots_by_instruction(long), "address", "")
    seen: list[str] = []
    start = ""
    for _ in range(10):
        shown = code_grid.window(len(rows), start, code_listing.ROWS_A_PAGE)
        seen += re.findall(r"NOP (\d+)", code_listing.table(long, rows, shown, "address"))
        told = plain(code_grid.pager(shown, str))
        assert f"of {code_grid.count(13_001)}" in told
        if "after ›" not in told:
            break
        start = str(shown.stop)
    assert [int(one) for one in seen] == list(range(13_001))


def test_five_thousand_lines_stand_on_one_page() -> None:
    assert code_grid.window(5_000, "", code_listing.ROWS_A_PAGE).is_whole
    assert code_grid.pager(code_grid.window(5_000, "", code_listing.ROWS_A_PAGE), str) == ""


@pytest.mark.parametrize(
    ("asked", "start"), [("", 0), ("nonsense", 0), ("2999", 0), ("3000", 3000), ("999999", 6000)]
)
def test_a_page_that_does_not_exist_is_the_nearest_one(asked: str, start: int) -> None:
    assert code_grid.window(7_000, asked, 3_000).start == start


def test_files_of_one_name_are_told_apart(reports: Path) -> None:
    one = listing(reports, "cutlass/report80", 2)
    found = embedded_sources.files(one)
    count = 2 if is_made(reports) else 52
    assert len(found) == len(one.texts) == count
    assert len({file.name for file in found}) == count
    assert found[0].cost == max(file.cost for file in found)
