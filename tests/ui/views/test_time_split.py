"""The Why of a diff: the sentence, the waterfall and what is missing, as the page shows them."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from profiler.compare import resolve_names
from profiler.compare.comparison import compare
from profiler.evidence import metric_table
from profiler.explain.explanation import Explanation
from profiler.ui.data.comparisons import explain_pair
from profiler.ui.theme import HATCH, light
from profiler.ui.views import time_split
from tests.ui.test_pages import NCAR, charts, page, text

TABLE = metric_table.load_metrics()
CHANGED = "compute_tendencies_x_279_gpu"


def no_store() -> None:
    raise AssertionError("two files need no store")


def of(reports: Path, a: str, b: str) -> dict[str, Explanation]:
    names = [str(reports / f"{name}.ncu-rep") for name in (a, b)]
    comparison = compare(*resolve_names.resolve_all(names, no_store), TABLE)
    return {pair.kernel: explain_pair(comparison, pair, TABLE) for pair in comparison.pairs}


@pytest.fixture(scope="module")
def ncar(reports: Path) -> dict[str, Explanation]:
    return of(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult")


def plain(markup: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def bars(figure: dict) -> dict[str, dict]:
    labels = figure["layout"]["yaxis"]["ticktext"]
    return dict(zip(labels, figure["data"], strict=True))


def test_every_bar_says_what_it_opens_and_the_open_one_is_marked(ncar: dict[str, Explanation]) -> None:
    figure = time_split.waterfall(ncar[CHANGED], ("work", ""))
    assert figure is not None
    opens = {re.sub("<[^>]+>", "", label): bar["customdata"][0] for label, bar in bars(figure).items()}
    assert opens["work"] == ["work", ""]
    stalls = [label.partition(": ")[2] for label in opens if label.startswith("waiting: ")]
    assert stalls
    for reason in stalls:
        shown = "" if reason == "other reasons" else reason
        assert opens[f"waiting: {reason}"] == ["waiting", shown]
    assert opens["parallelism"] == opens["balance"] == opens["clock"] == ["counters", ""]
    assert opens["A"] == opens["B"] == opens["residue"] == []
    marked = [label for label in bars(figure) if light("accent") in label]
    assert [re.sub("<[^>]+>", "", label) for label in marked] == ["work"]


def test_the_waterfall_leads_from_a_through_every_cause_to_b(ncar: dict[str, Explanation]) -> None:
    figure = time_split.waterfall(ncar[CHANGED])
    assert figure is not None
    bar_by_label = bars(figure)
    labels = list(bar_by_label)
    assert (labels[0], labels[1], labels[-2], labels[-1]) == ("A", "work", "residue", "B")
    assert (bar_by_label["A"]["base"], bar_by_label["A"]["x"]) == ([0.0], [pytest.approx(6.190944)])
    reached = bar_by_label["A"]["x"][0]
    for label in labels[1:-1]:
        assert bar_by_label[label]["base"] == [pytest.approx(reached)], label
        reached += bar_by_label[label]["x"][0]
    assert reached == pytest.approx(bar_by_label["B"]["x"][0]), "the last step ends where B ends"
    low, high = figure["layout"]["xaxis"]["range"]
    assert all(
        low <= edge <= high
        for bar in bar_by_label.values()
        for edge in (*bar["base"], bar["base"][0] + bar["x"][0])
    )


def test_a_cause_has_the_colour_of_its_direction_and_the_residue_is_hatched(
    ncar: dict[str, Explanation],
) -> None:
    figure = time_split.waterfall(ncar[CHANGED])
    assert figure is not None
    bar_by_label = {label: bar["marker"] for label, bar in bars(figure).items()}
    assert bar_by_label["work"]["color"] == light("better")
    assert bar_by_label["waiting: long_scoreboard"]["color"] == light("worse")
    assert bar_by_label["residue"]["pattern"]["fgcolor"] == HATCH[0]
    assert (bar_by_label["A"]["color"], bar_by_label["B"]["color"]) == (light("muted"), light("ink"))


def test_a_cause_that_rounds_to_nothing_has_no_direction(ncar: dict[str, Explanation]) -> None:
    changed = ncar[CHANGED]
    assert changed.split is not None
    terms = [replace(term, us=0.01) if term.cause == "balance" else term for term in changed.split.terms]
    figure = time_split.waterfall(replace(changed, split=replace(changed.split, terms=tuple(terms))))
    assert figure is not None
    assert bars(figure)["balance"]["marker"]["color"] == light("neutral")


def test_what_nobody_judged_is_grey_and_says_that_it_is_no_cause(ncar: dict[str, Explanation]) -> None:
    unclear = ncar["set_halo_values_x_419_gpu"]
    figure = time_split.waterfall(unclear)
    assert figure is not None
    colours = {bar["marker"]["color"] for bar in figure["data"]}
    assert not colours & {light("better"), light("worse")}
    assert {note["font"]["color"] for note in figure["layout"]["annotations"]} == {
        light("ink"),
        light("muted"),
    }
    output = plain(time_split.answer(unclear))
    assert "the verdict is unclear: this is how the counters split, and no cause" in output


def test_what_a_flag_doubts_has_no_colour(ncar: dict[str, Explanation]) -> None:
    explanation = ncar[CHANGED]
    assert explanation.split is not None

    def coloured(**flags: str) -> set[str]:
        assert explanation.split is not None
        figure = time_split.waterfall(replace(explanation, split=replace(explanation.split, **flags)))  # type: ignore[arg-type]
        assert figure is not None
        judged = (light("better"), light("worse"))
        return {label for label, bar in bars(figure).items() if bar["marker"]["color"] in judged}

    assert {"work", "parallelism", "waiting: wait"} <= coloured()
    assert coloured(reasons_flagged="40 % of the change") == {"work", "parallelism", "balance", "clock"}
    assert coloured(flagged="40 % of the change") == set()


def test_every_value_stands_in_the_margin_with_its_sign(ncar: dict[str, Explanation]) -> None:
    figure = time_split.waterfall(ncar[CHANGED])
    assert figure is not None
    values = [note["text"] for note in figure["layout"]["annotations"]]
    assert (values[0], values[1], values[-1]) == ("<b>6.19 ms</b>", "−3.71 ms", "<b>3.48 ms</b>")
    assert len(values) == len(figure["data"])
    assert all("text" not in bar for bar in figure["data"]), "never on a bar"


def test_an_unchanged_launch_has_a_sentence_and_no_chart(ncar: dict[str, Explanation]) -> None:
    same = ncar["semi_discrete_step_232_gpu"]
    assert time_split.waterfall(same) is None
    assert plain(time_split.answer(same)) == "Unchanged, 5.62 ms → 5.59 ms : within 2 % , so no causes."


def test_what_to_collect_stands_where_there_is_no_split_and_not_where_nothing_changed(reports: Path) -> None:
    explanations = of(reports, "esmm/profile@ee5ce738", "esmm/profile@049ec612")
    moved, same = explanations["one_warptiling"], explanations["basic"]
    assert time_split.waterfall(moved) is None
    output = plain(time_split.missing_counters(moved))
    assert output.startswith("no split from what these reports carry. Collect:")
    assert "gpc__cycles_elapsed.max not collected in B" in output
    assert (
        f"{TABLE.by_concept['inst_issued'].line} issued smsp__inst_issued.sum not collected in either"
        in output
    )
    assert same.missing
    assert time_split.missing_counters(same) == ""


def test_a_number_keeps_its_unit_on_its_line(ncar: dict[str, Explanation]) -> None:
    output = time_split.answer(ncar[CHANGED])
    assert '<span class="nw">−3.71 ms</span>' in output
    assert '<span class="m">Residue ±0.</span>' in output


@pytest.mark.usefixtures("pages_of")
class TestPage:
    @pytest.mark.slow
    def test_the_diff_says_why_and_draws_it(self, made_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page("diff", made_data, monkeypatch, **NCAR)
        assert "2.71 ms faster, mainly by work" in " ".join(text(app).replace("\t", " ").split())
        assert any("work" in (chart["layout"]["yaxis"].get("ticktext") or ()) for chart in charts(app))

    @pytest.mark.slow
    def test_another_launch_of_the_same_address_has_its_own_why(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("diff", made_data, monkeypatch, launch="semi_discrete_step_232_gpu", **NCAR)
        assert "Unchanged, 5.62 ms" in " ".join(text(app).split())
        assert not any("work" in (chart["layout"]["yaxis"].get("ticktext") or ()) for chart in charts(app))

    @pytest.mark.slow
    def test_without_counters_the_page_names_what_to_collect(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sides = {"a": "esmm/profile@ee5ce738", "b": "esmm/profile@049ec612"}
        app = page("diff", made_data, monkeypatch, launch="one_warptiling", **sides)
        assert "no split from what these reports carry" in text(app)
