"""The overview over a lineage: what is known without a GPU, what was measured, and what is worse."""

import re
import shutil
from pathlib import Path

import pytest

from profiler.bundles import location
from profiler.bundles.decisions import load_decisions
from tests import lineages, timed_runs
from tests.conftest import ROOT
from tests.ui.test_pages import charts, page, text

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pages_of")]  # the pages are run whole

WORKLOAD = "1x1x8x64"


def test_without_a_measurement_the_facts_stand_in_the_place_of_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineages.dissected(tmp_path)
    app = page("overview", tmp_path, monkeypatch)
    shown = text(app)
    assert shown.index("Best correct") < shown.index("Known without a GPU") < shown.index("To measure")
    zero, alpha = (
        re.search(rf"{name} .*?e−4", shown.partition("conflicts max error")[2])
        for name in ("zero the", "alpha a")
    )
    assert zero
    assert alpha
    assert re.search(r" 1\.?0*\W?µs 41 ", zero[0]), "the owner's claim, and registers on sm_90a"
    assert " – 65 " in alpha[0]
    assert " 4 000 " in alpha[0].replace("\u2009", " "), "bank conflicts"
    assert "claimed: by an earlier notebook for L4, not checked" in shown
    assert not charts(app)
    assert "1 version wrong or rejected, each with why bad ⊘ wrong a race on the row" in shown
    assert "Best correct version per GPU" not in shown


def test_measured_latencies_replace_what_is_known_and_worse_is_what_regressions_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineages.dissected(tmp_path)
    nights = [
        timed_runs.run(
            {"zero": 170e3, "alpha": 140e3 * (1.08 if day > 8 else 1.0)},
            day,
            family=lineages.FAMILY,
            workload=WORKLOAD,
            sass={"alpha": f"alpha{day > 8}"},
        )
        for day in range(1, 15)
    ]
    timed_runs.seal(tmp_path, *nights)
    app = page("overview", tmp_path, monkeypatch)
    shown = text(app)
    assert not charts(app)
    (table,) = [element.value for element in app.markdown if "best correct version" in element.value]
    assert "alpha" in table
    regressions = text(page("regressions", tmp_path, monkeypatch, family=lineages.FAMILY))
    counted = re.search(r"Worse now ! (\d+)", regressions)
    assert counted
    assert f"Worse now ! {counted[1]}" in shown
    assert counted[1] != "0"
    assert "due to code" in shown
    assert 'class="worse"' in table, "the sparkline marks where it got worse"


def test_the_lineage_leads_and_other_families_are_one_line_each(
    made_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = text(page("overview", made_data, monkeypatch))
    assert "Families the newest version of each" in shown
    (line,) = re.findall(r"ncar MW_DivToMult.*?2022-06-16", shown)[:1]
    assert "✓ better −43.8 % compute_tendencies_x_279_gpu unreplicated" in line


@pytest.fixture
def with_examples(tmp_path: Path) -> Path:
    """A small lineage beside the example runs of the repository."""
    lineages.dissected(tmp_path)
    for folder in (ROOT / "data" / "runs").glob("*-example-*"):
        shutil.copytree(folder, tmp_path / "runs" / folder.name)
    return tmp_path


def test_examples_stand_apart_with_their_source_and_licence(
    with_examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("overview", with_examples, monkeypatch)
    shown = text(app)
    assert "mine 3 versions" in shown, "the own lineage leads"
    assert "1 run ·" in shown, "examples are no runs of it"
    tour = shown.partition("Example runs")[2]
    assert "example-join after" in tour
    assert "better −31.9 % one_warptiling" in tour
    assert "MIT" in tour
    assert "Other families" not in shown
    assert text(page("regressions", with_examples, monkeypatch)).count("example") == 0


def test_one_click_hides_the_examples_for_good_and_the_same_place_shows_them_again(
    with_examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("overview", with_examples, monkeypatch)
    app.button(key="examples_hide").click().run()
    assert not app.exception
    assert "example-join" not in text(app)
    assert "4 example runs are hidden for good" in text(app)
    kinds = [record.kind for record in load_decisions(location.open_root(str(with_examples)))]
    assert kinds == ["forget"] * 4
    app.button(key="examples_undo").click().run()
    assert "example-join after" in text(app)
    app.button(key="examples_hide").click().run()
    fresh = page("overview", with_examples, monkeypatch)
    assert "example" not in text(fresh), "another session does not see them"


def test_a_server_for_reading_only_offers_no_click_that_hides(
    with_examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_READ_ONLY", "1")
    app = page("overview", with_examples, monkeypatch)
    assert "example-join after" in text(app)
    assert not [button for button in app.button if button.key == "examples_hide"]


def test_a_bare_diff_and_trends_open_the_lineage_and_not_an_example(
    with_examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diff = page("diff", with_examples, monkeypatch)
    assert [box.value for box in diff.selectbox][:2] == ["mine/zero", "mine/alpha"]
    trends = page("trends", with_examples, monkeypatch)
    assert trends.selectbox[0].value == "mine"
