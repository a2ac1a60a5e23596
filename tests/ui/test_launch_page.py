"""The Launch page as Streamlit runs it: full sets, basic sets, compiled code, a baseline, its neighbours."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from profiler.documents.launch_inside import InsideLaunch
from profiler.reports.instances import Timeline
from profiler.ui.data import index, launches
from tests import lineages
from tests.ui.test_pages import NCAR, charts, page, text

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pages_of")]  # the page is run whole

PAIR = {"run": NCAR["b"], "against": NCAR["a"]}


def html(app: AppTest) -> str:
    """All markup of the page, in which the diagram is Markdown."""
    elements: list[Any] = [*app.html, *app.markdown]
    return " ".join(element.value for element in elements if "<style>" not in element.value)


def test_a_launch_shows_every_section_that_its_report_holds(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("launch", made_data, monkeypatch, run=NCAR["b"])
    shown = text(app)
    for section in (
        "What it says",
        "Speed of light",
        "Memory",
        "Warp states",
        "Occupancy",
        "What is missing",
    ):
        assert section in shown
    assert '<svg class="mem"' in html(app)
    assert "view=lines&amp;find=long_scoreboard" in html(app)  # a reason leads to its lines
    assert "in the code: its lines" in shown  # and so does a rule about it
    assert "on this run and its version" in shown  # the notes
    assert "was " not in shown.replace("was sampled", "")


def test_a_baseline_adds_numbers_ticks_and_a_verdict(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("launch", made_data, monkeypatch, **PAIR)
    shown = text(app)
    assert "┃ ncar/MW_Baseline" in shown
    assert re.search(r"was [\d.]+ (ms|µs)", shown)
    assert re.search(r"[✓!=?] ?(better|worse|same|unclear)", shown)
    assert re.search(r'<b style="left:', html(app))
    run, against = ("".join(app.query_params[name]) for name in ("run", "against"))
    assert "-ncar-MW_DivToMult-" in run  # the address names the runs, of which newer ones may come
    assert "-ncar-MW_Baseline-" in against


def test_its_neighbours_are_a_key_away_and_a_launch_is_found_by_its_kernel(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("launch", made_data, monkeypatch, run=NCAR["b"])
    launches = app.selectbox(key="launch_launch").options
    assert len(launches) > 2
    middle = page("launch", made_data, monkeypatch, run=NCAR["b"], launch=launches[1])
    assert f"launch 2 of {len(launches)}" in text(middle)
    assert 'data-key="["' in html(middle)
    assert 'data-key="]"' in html(middle)
    first = page("launch", made_data, monkeypatch, run=NCAR["b"], launch=launches[0])
    assert 'data-key="["' not in html(first)


def test_a_basic_set_says_what_was_not_collected_and_with_which_command(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("launch", made_data, monkeypatch, run="esmm/profile@a62323b2")
    shown = text(app)
    assert "not collected" in shown
    assert "ncu --section WarpStateStats PROGRAM" in shown
    assert 'class="missing"' in html(app)
    assert not re.search(r"\bnan\b|\binf\b|None", shown.replace("failed (NaN)", ""))


def test_every_launch_of_every_family_opens(made_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("cutlass/report80", "mistic/profileHIGGS", "llm.c/adamw_coalsecing_shared"):
        app = page("launch", made_data, monkeypatch, run=version)
        assert "What it says" in text(app)
        assert all("data" in chart for chart in charts(app))


def test_a_version_that_was_only_compiled_says_what_is_not_there(
    committed_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path(shutil.copytree(committed_data, tmp_path / "data"))
    app = page("launch", data, monkeypatch)
    shown = text(app)
    assert "not measured" in shown
    assert "profiler collect" in shown
    assert "<svg" not in html(app)


def test_what_nobody_measured_has_the_model_s_time_pipes_and_warp_states(
    committed_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path(shutil.copytree(committed_data, tmp_path / "data"))
    shown = text(page("launch", data, monkeypatch))
    assert "Time modelled from the machine code, not measured" in shown
    assert "tensor cores" in shown
    assert "long_scoreboard" in shown
    assert "x64 H100-SXM" in shown
    assert "x128 H100-SXM" not in shown  # of this head dimension alone
    labels = page("launch", data, monkeypatch).selectbox(key="launch_launch").options
    wide = next(
        label for label in labels if "v2d_c" in label and "head dim 128" in label and "sm_90a" in label
    )
    shown = text(page("launch", data, monkeypatch, launch=wide))
    assert "x128 H100-SXM" in shown
    assert "x64 H100-SXM" not in shown
    old = next(label for label in labels if "v2d_a" in label and "sm_89" in label and "head dim 128" in label)
    assert "Time modelled" not in text(page("launch", data, monkeypatch, launch=old))


def test_an_address_that_names_nothing_says_so(made_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = text(page("launch", made_data, monkeypatch, run="nonsense"))
    assert "nonsense" in shown
    assert "What it says" in shown
    shown = text(page("launch", made_data, monkeypatch, **PAIR, against_launch="nonsense"))
    assert "This run has no launch nonsense" in shown


def test_runs_and_diff_lead_here(made_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "./launch?run=" in html(page("runs", made_data, monkeypatch))
    links = re.findall(r'href="(\./launch[^"]*)"', html(page("diff", made_data, monkeypatch, **NCAR)))
    assert links
    assert "against=" in links[0]


def test_metrics_that_were_sampled_as_zero_are_named_and_not_drawn(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = np.arange(5, dtype="<i8")
    zero = {"pmsampling:sm__inst_issued.avg": Timeline("inst", times, np.zeros(5))}
    inside = InsideLaunch(hot=None, timelines=zero)
    monkeypatch.setattr(launches, "inside", lambda *_: inside)
    app = page("launch", made_data, monkeypatch, run=NCAR["b"])
    assert not app.exception
    assert "nothing to draw: 0 throughout, or too few samples: pmsampling:sm__inst_issued.avg" in text(app)


def test_an_address_may_name_any_version_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lineages.dissected(tmp_path)
    for name in ("zero", f"{lineages.FAMILY}/zero"):
        app = page("launch", tmp_path, monkeypatch, run=name)
        assert f"{lineages.FAMILY}/zero" in text(app)
        assert "No run or version" not in text(app)
    assert "No run or version nonsense" in text(page("launch", tmp_path, monkeypatch, run="nonsense"))


def test_the_shortened_address_of_a_comparison_shows_it(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("compare", made_data, monkeypatch, v="ncar/MW_Baseline,ncar/MW_DivToMult")
    assert "2 versions" in text(app)
    assert "nonsense" in text(page("compare", made_data, monkeypatch, v="nonsense"))


def test_code_opens_with_the_report_of_a_run_or_version(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("code", made_data, monkeypatch, a="ncar/MW_Baseline")
    assert "MW_Baseline" in text(app)
    assert "There is no report" not in text(app)
    assert "nonsense" in text(page("code", made_data, monkeypatch, a="nonsense"))


@pytest.mark.usefixtures("pages_of")
def test_a_data_folder_that_was_moved_away_is_said(
    made_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made_data, tmp_path / "data")
    app = page("runs", tmp_path / "data", monkeypatch)
    assert "moved or replaced" not in text(app)
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    index._sync.clear()  # as after half a minute
    app.run()
    assert "moved or replaced" in text(app)
