"""The Why of a diff: the sentence, the waterfall and what is missing, as the page shows them."""

import re
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path

import pytest

from profiler.compare import resolve_names
from profiler.compare.comparison import compare
from profiler.evidence import metric_table
from profiler.explain.explanation import Explanation
from profiler.ui.data.comparisons import explain_pair
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


@dataclass(frozen=True)
class Bar:
    """A row as the page shows it: where its bar lies in per cent, colour, value, and where it leads."""

    left: float
    width: float
    css: str
    value: str
    leads_to: str
    is_open: bool

    @property
    def right(self) -> float:
        return self.left + self.width


def bars(waterfall: str) -> dict[str, Bar]:
    found = {}
    for row in re.findall(r"<tr.*?</tr>", waterfall):
        label, bar, value = re.findall(r"<td.*?</td>", row)
        css, left, width = re.findall(r'<i class="(.*?)" style="left:(.*?)%;width:max\(1px,(.*?)%\)"', bar)[0]
        link = re.search(r'href="(.*?)"', label)
        leads_to = unescape(link[1]) if link else ""
        found[plain(label)] = Bar(float(left), float(width), css, plain(value), leads_to, "sel" in row[:20])
    return found


def test_every_cause_leads_to_what_is_behind_it_and_the_open_one_is_marked(
    ncar: dict[str, Explanation],
) -> None:
    shown = bars(time_split.waterfall(ncar[CHANGED], ("work", ""), "/".join))
    assert shown["work"].leads_to == "work/"
    stalls = [label for label in shown if label.startswith("stall: ")]
    assert stalls
    for label in stalls:
        reason = label.removeprefix("stall: ").removesuffix(" (fixed latency)")
        behind = "" if reason == "other reasons" else reason
        assert shown[label].leads_to == f"waiting/{behind}"
    assert {shown[label].leads_to for label in ("parallelism", "balance", "clock")} == {"counters/"}
    assert {shown[label].leads_to for label in ("A", "B", "residue")} == {""}
    assert [label for label, bar in shown.items() if bar.is_open] == ["work"]


def test_the_waterfall_leads_from_a_through_every_cause_to_b(ncar: dict[str, Explanation]) -> None:
    shown = bars(time_split.waterfall(ncar[CHANGED]))
    labels = list(shown)
    assert (labels[0], labels[1], labels[-2], labels[-1]) == ("A", "work", "residue", "B")
    assert shown["A"].left == shown["B"].left == 0
    assert shown["B"].width / shown["A"].width == pytest.approx(3.482 / 6.191, rel=1e-3)
    reached = shown["A"].right
    for label in labels[1:-1]:
        bar = shown[label]
        is_back = bar.value.startswith("−")
        assert (bar.right if is_back else bar.left) == pytest.approx(reached, abs=0.02), label
        reached = bar.left if is_back else bar.right
    assert reached == pytest.approx(shown["B"].right, abs=0.02), "the last step ends where B ends"
    assert all(0 <= bar.left <= bar.right <= 100.01 for bar in shown.values())


def test_a_cause_has_the_colour_of_its_direction_and_the_residue_is_hatched(
    ncar: dict[str, Explanation],
) -> None:
    shown = bars(time_split.waterfall(ncar[CHANGED]))
    assert shown["work"].css == "better"
    assert shown["stall: long_scoreboard"].css == "worse"
    assert shown["residue"].css == "residue"
    assert (shown["A"].css, shown["B"].css) == ("", "ink")


def test_a_cause_that_rounds_to_nothing_has_no_direction(ncar: dict[str, Explanation]) -> None:
    changed = ncar[CHANGED]
    assert changed.split is not None
    terms = [replace(term, us=0.01) if term.cause == "balance" else term for term in changed.split.terms]
    shown = time_split.waterfall(replace(changed, split=replace(changed.split, terms=tuple(terms))))
    assert bars(shown)["balance"].css == ""


def test_what_nobody_judged_is_grey_and_says_that_it_is_no_cause(ncar: dict[str, Explanation]) -> None:
    unclear = ncar["set_halo_values_x_419_gpu"]
    shown = time_split.waterfall(unclear)
    assert {bar.css for bar in bars(shown).values()} == {"", "ink", "residue"}
    assert "better" not in shown
    assert "worse" not in shown
    output = plain(time_split.answer(unclear))
    assert "the verdict is unclear: this is how the counters split, and no cause" in output


def test_what_a_flag_doubts_has_no_colour(ncar: dict[str, Explanation]) -> None:
    explanation = ncar[CHANGED]
    assert explanation.split is not None

    def coloured(**flags: str) -> set[str]:
        assert explanation.split is not None
        shown = time_split.waterfall(replace(explanation, split=replace(explanation.split, **flags)))  # type: ignore[arg-type]
        return {label for label, bar in bars(shown).items() if bar.css in ("better", "worse")}

    assert {"work", "parallelism", "stall: wait (fixed latency)"} <= coloured()
    assert coloured(reasons_flagged="40 % of the change") == {"work", "parallelism", "balance", "clock"}
    assert coloured(flagged="40 % of the change") == set()


def test_every_bar_has_its_value_with_its_sign(ncar: dict[str, Explanation]) -> None:
    values = [bar.value for bar in bars(time_split.waterfall(ncar[CHANGED])).values()]
    assert (values[0], values[1], values[-1]) == ("6.19 ms", "−3.71 ms", "3.48 ms")
    assert all(values)


def test_an_unchanged_launch_has_a_sentence_and_no_causes(ncar: dict[str, Explanation]) -> None:
    same = ncar["semi_discrete_step_232_gpu"]
    assert list(bars(time_split.waterfall(same))) == ["A", "B"]
    assert plain(time_split.answer(same)) == "Unchanged, 5.62 ms → 5.59 ms : within 2 % , so no causes."


def test_what_to_collect_stands_where_there_is_no_split_and_not_where_nothing_changed(reports: Path) -> None:
    explanations = of(reports, "esmm/profile@ee5ce738", "esmm/profile@049ec612")
    moved, same = explanations["one_warptiling"], explanations["basic"]
    assert list(bars(time_split.waterfall(moved))) == ["A", "B"]
    assert time_split.waterfall(replace(moved, a_us=None)) == "", "a time that failed is not drawn"
    output = plain(time_split.missing_counters(moved))
    assert output.startswith("no split from what these reports carry. Collect:")
    assert "gpc__cycles_elapsed.max not collected in B" in output
    assert "issued smsp__inst_issued.sum not collected in either" in output
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
        assert "2.71 ms faster, mainly from less work" in " ".join(text(app).replace("\t", " ").split())
        (shown,) = [element.value for element in app.html if "time by cause" in element.value]
        assert "work" in bars(shown)
        assert "drill=work" in bars(shown)["work"].leads_to
        assert not charts(app)

    @pytest.mark.slow
    def test_another_launch_of_the_same_address_has_its_own_why(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("diff", made_data, monkeypatch, launch="semi_discrete_step_232_gpu", **NCAR)
        assert "Unchanged, 5.62 ms" in " ".join(text(app).split())
        (shown,) = [element.value for element in app.html if "time by cause" in element.value]
        assert list(bars(shown)) == ["A", "B"]

    @pytest.mark.slow
    def test_without_counters_the_page_names_what_to_collect(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sides = {"a": "esmm/profile@ee5ce738", "b": "esmm/profile@049ec612"}
        app = page("diff", made_data, monkeypatch, launch="one_warptiling", **sides)
        assert "no split from what these reports carry" in text(app)
