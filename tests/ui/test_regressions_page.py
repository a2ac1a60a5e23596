"""The Regressions page: counts, rows, all that is known of the chosen one, and the command to let it pass."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from profiler import cli
from profiler.bundles import decisions, location
from profiler.compare.noise_model import NoiseModel
from profiler.evidence import metric_table
from profiler.gate import acknowledgement
from profiler.history import baselines
from profiler.regressions.report import RegressionReport, find_regressions
from profiler.regressions.search import Coverage
from profiler.store.readable_index import open_store
from profiler.ui.views import regression_list
from tests import lineages, timed_runs
from tests.timed_runs import GPU, WORKLOAD, run
from tests.ui.test_pages import page, text

pytestmark = [pytest.mark.usefixtures("pages_of"), pytest.mark.slow]  # the pages are run whole


@pytest.fixture
def data(tmp_path: Path) -> Path:
    facts, worse = {"static__spill_bytes": 0}, {"static__spill_bytes": 16}
    return timed_runs.seal(
        tmp_path,
        timed_runs.noise(170e3, 0.003),
        run({"v1": 170e3, "v2": 160e3}, 0, facts={"v1": facts}, sass={"v1": "a"}),
        run({"v1": 175.1e3, "v2": 160e3}, 1, facts={"v1": worse}, sass={"v1": "b"}),
    )


def look(data: Path) -> RegressionReport:
    store = open_store(str(data))
    found = find_regressions(store, metric_table.load_metrics(), noise=NoiseModel.of_store(lambda: store))
    store.close()
    return found


def field(app: AppTest, label: str) -> Any:
    (widget,) = [one for one in app.text_input if one.label == label]
    return widget


def press(app: AppTest, label: str) -> str:
    (button,) = [one for one in app.button if one.label == label]
    button.click().run()
    assert not app.exception, app.exception
    return text(app)


def test_a_group_is_a_row_and_the_first_is_shown_whole(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page("regressions", data, monkeypatch)
    shown = text(app)
    assert "Worse now ! 1 2 rows of 1 version" in shown
    assert re.search(
        r"v1 ! worse latency \+[23]\.\d % on 2x8x2048x64, NVIDIA H100 2026-03-02 code measured static", shown
    )
    assert "SASS of main differs; with it spills, compiled" in shown
    assert re.search(
        r"latency events; cache warm ! worse \+[23]\.\d % \+.* \(noise floor\) A/A ±1.\d %", shown
    )
    assert "spills, compiled ! worse from 0 exact" in shown
    assert "since when v1 2026-03-02 12:00; before: v1 2026-03-01 12:00 UTC" in shown
    assert re.search("cause code *: SASS of main differs", shown)
    assert "A/A floor here ±" in shown
    assert (
        f"profiler decide acknowledge flash/v1 --concept latency --workload {WORKLOAD} --gpu '{GPU}'" in shown
    )


def test_the_address_chooses_a_row(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spills = next(one for one in look(data).regressions if one.series.concept == "static_spills")
    app = page("regressions", data, monkeypatch, at=regression_list.key(spills))
    assert "--concept static_spills" in text(app)
    assert "acknowledged no" in text(app)


def test_a_group_is_acknowledged_in_the_page_as_the_command_does_and_taken_back(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("regressions", data, monkeypatch)
    assert "a reason is needed" in press(app, "Acknowledge"), "in the place of the form"
    assert decisions.decision_ids(location.open_root(str(data))) == []
    field(app, "reason").set_value("being redone")
    field(app, "until").set_value("2099-01-31")
    field(app, "up to").set_value("much")
    assert "much is no percentage above 0" in press(app, "Acknowledge")
    field(app, "up to").set_value("")
    shown = press(app, "Acknowledge")
    assert "acknowledged: 2 rows of flash/v1, until 2099-01-31, by " in shown
    assert "the user that this server runs as" in shown
    first, second = acknowledgement.list_acknowledgements(
        decisions.load_decisions(location.open_root(str(data)))
    )
    assert {first.concept, second.concept} == {"latency", "static_spills"}
    assert (first.why, first.who, first.up_to) == ("being redone", decisions.process_user(), None)
    assert (first.workload, str(first.until_day)) == (WORKLOAD, "2099-01-31")
    assert "Worse now ! 0 nothing; 1 acknowledged" in shown
    (undo, _) = [one for one in app.button if one.label == "Undo"]
    undo.click().run()
    assert "Worse now ! 1 2 rows of 1 version; 0 acknowledged" in text(app)


def test_a_limit_below_the_change_is_said_and_nothing_is_recorded(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("regressions", data, monkeypatch)
    field(app, "reason").set_value("known")
    field(app, "up to").set_value("1 %")
    shown = press(app, "Acknowledge")
    rows = rf"latency on {WORKLOAD} \+[23]\.\d %, spills, compiled on {WORKLOAD} from 0"
    assert re.search(rf"nothing is recorded: {rows} are over the limit of 1 %; leave it empty", shown)
    field(app, "up to").set_value("10 %")
    shown = press(app, "Acknowledge")
    # Spills that came from 0 have no size, so that no limit in per cent lets them pass.
    assert (
        f"spills, compiled on {WORKLOAD} from 0 is over the limit of 10 %; leave it empty or acknowledge only"
        in shown
    )
    assert decisions.decision_ids(location.open_root(str(data))) == []
    assert "Worse now ! 1 2 rows" in shown
    app.radio[0].set_value(next(one for one in app.radio[0].options if one.startswith("only latency")))
    field(app, "up to").set_value("1 %")
    assert re.search(
        r"\+[23]\.\d % is over the limit of 1 %; raise the limit or leave it", press(app, "Acknowledge")
    )
    field(app, "up to").set_value("10 %")
    assert "acknowledged: flash/v1, without an end, up to 10 %, by " in press(app, "Acknowledge")
    (recorded,) = acknowledgement.list_acknowledgements(
        decisions.load_decisions(location.open_root(str(data)))
    )
    assert (recorded.concept, recorded.up_to) == ("latency", 0.1)


def test_a_regression_that_is_not_here_is_said_and_leaves_the_address(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("regressions", data, monkeypatch, at="zzz")
    assert "The address asks for regression zzz: not here; there is only flash/v1 latency +" in text(app)
    assert "at" not in app.query_params
    assert "asks for" not in text(app.run())
    spills = next(one for one in look(data).regressions if one.series.concept == "static_spills")
    app = page("regressions", data, monkeypatch, at=regression_list.key(spills))
    assert "asks for" not in text(app)
    assert app.query_params["at"] == regression_list.key(spills)


def test_one_row_alone_can_be_let_pass_and_an_older_decision_undone(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_USER_HEADER", "X-Forwarded-User")
    app = page("regressions", data, monkeypatch)
    app.radio[0].set_value("only latency on 2x8x2048x64, NVIDIA H100, events; cache warm")
    field(app, "reason").set_value("known")
    shown = press(app, "Acknowledge")
    assert "the request has no header X-Forwarded-User" in shown
    assert "Worse now ! 1 of 1 version; 1 acknowledged" in shown
    again = page("regressions", data, monkeypatch)
    assert "Acknowledged 1, listed and not counted" in text(again)
    assert "Worse now ! 1 2 rows" in press(again, "Undo")


def test_a_baseline_is_pinned_and_taken_away(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page("regressions", data, monkeypatch)
    assert "none is pinned" in text(app)
    app.selectbox[0].set_value("v2")
    shown = press(app, "Pin")
    assert "pinned: the baseline of flash is flash/v2 (every workload · every GPU), by " in shown
    (pin,) = baselines.list_pins(decisions.load_decisions(location.open_root(str(data))))
    assert (pin.version, pin.run_id, pin.who) == ("v2", None, decisions.process_user())
    assert "flash/v2 is no longer a baseline of flash" in press(app, "Unpin")
    assert "flash/v2 every workload" in press(app, "Undo")


def test_a_dashboard_for_reading_shows_no_form(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILER_READ_ONLY", "1")
    for name in ("regressions", "runs"):
        app = page(name, data, monkeypatch)
        assert not [
            one.label for one in app.text_input if one.label not in ("find a run", "launch", "kernels")
        ]
        assert not app.file_uploader
        assert not {one.label for one in app.button} & {"Acknowledge", "Pin", "Import", "Keep", "Undo"}
    (code,) = page("regressions", data, monkeypatch).code
    assert code.value == (
        f"profiler decide acknowledge flash/v1 --concept latency --workload {WORKLOAD} --gpu '{GPU}' "
        "--why TEXT"
    )


def test_its_links_open_the_diff_of_the_two_runs_and_the_trend(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("regressions", data, monkeypatch)
    body = " ".join(element.value for element in app.html)
    (address,) = re.findall(r'href="\./diff\?([^"]*)"', body)
    asked = dict(parse_qsl(address.replace("&amp;", "&")))
    assert asked["a"].startswith("flash/v1~20260301")
    assert asked["b"].startswith("flash/v1~20260302")
    shown = text(page("diff", data, monkeypatch, **asked))
    assert "Verdict latency of calls" in shown
    assert "! worse" in shown
    assert "v1 20260301T120000" in shown


def test_what_is_acknowledged_stands_last_with_who_and_why(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(data))
    arguments = ["flash/v1", "--concept", "latency", "--why", "known", "--until", "2099-01-01"]
    page("regressions", data, monkeypatch)
    assert cli.main(["decide", "acknowledge", *arguments]) == 0
    shown = text(page("regressions", data, monkeypatch))
    assert "Worse now ! 1 of 1 version; 1 acknowledged" in shown
    assert "Acknowledged 1, listed and not counted" in shown
    assert "until 2099-01-01: known" in shown


def test_an_acknowledgement_that_ended_says_when_and_why_and_the_row_is_open(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(data))
    assert (
        cli.main(
            ["decide", "acknowledge", "flash/v1", "--concept", "latency", "--why", "known", "--up-to", "1%"]
        )
        == 0
    )
    app = page("regressions", data, monkeypatch)
    shown = text(app)
    assert "Worse now ! 1 2 rows" in shown
    assert "acknowledgement ended: over 1 %" in shown, "in its row"
    ended = r"acknowledged not covered: it allows changes up to 1 %, and this one is \+[23]\.\d % \("
    assert re.search(ended, shown)
    assert "without an end, up to 1 %: known)" in shown


def test_nothing_worse_says_what_was_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lineages.dissected(tmp_path)
    shown = text(page("regressions", tmp_path, monkeypatch))
    assert "Nothing is worse now." in shown
    assert "Checked " in shown
    assert " in 1 family" in shown
    assert "static" in shown


def test_no_run_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "profiler import PATH" in text(page("regressions", tmp_path, monkeypatch))


def test_what_cannot_be_judged_is_counted_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed_runs.seal(tmp_path, run({"v1": 170e3}, 0), run({"v1": 200e3}, 1))
    shown = text(page("regressions", tmp_path, monkeypatch))
    assert "Cannot tell ? 1 newest result of every version in all families; of the newest: Overview" in shown
    of_newest = (
        "launches of each family's newest version against the version before; what is worse now: Regressions"
    )
    assert of_newest in text(page("overview", tmp_path, monkeypatch))
    assert "? 1 newest result cannot be judged: no A/A floor of NVIDIA H100" in shown
    assert "profiler collect --noise VERSION" in shown


def test_an_index_that_holds_nothing_is_not_called_fine() -> None:
    assert "No two runs yet" in regression_list.nothing_worse(Coverage())
