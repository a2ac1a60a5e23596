"""What next: the statements that call for something, on the diff and on a launch, as the pages show them."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from profiler.advice.statement import BOTTLENECK, CHANGE, LEVER, UNKNOWN, Statement
from profiler.compare import resolve_names
from profiler.compare.comparison import Comparison, compare
from profiler.evidence import metric_table
from profiler.evidence.values import Evidence, pack_values
from profiler.ui.data.advice import statements_of_launch, statements_of_pair
from profiler.ui.views import advice
from tests.ui.test_pages import NCAR, page, text

TABLE = metric_table.load_metrics()
DRAM = "→ more bytes in flight"


def no_store() -> None:
    raise AssertionError("two files need no store")


@pytest.fixture(scope="module")
def ncar(reports: Path) -> Comparison:
    names = [str(reports / "ncar" / f"{name}.ncu-rep") for name in ("MW_Baseline", "MW_DivToMult")]
    return compare(*resolve_names.resolve_all(names, no_store), TABLE)


def plain(markup: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def statement(kind: str, words: str, lever: str | None = None, share: float | None = None) -> Statement:
    return Statement(words, kind, words, (), Evidence.MEASURED, "one launch", lever, share)


def unknown(question: str, *to_collect: str) -> Statement:
    words = " ".join((f"Unknown: {question}.", *to_collect))
    return Statement(
        "time", UNKNOWN, words, (), Evidence.MEASURED, "no data", question=question, to_collect=to_collect
    )


def test_the_advice_is_of_the_chosen_launch_and_not_of_the_longest(ncar: Comparison) -> None:
    for kernel, at_most in (("compute_tendencies_x_279_gpu", 81), ("semi_discrete_step_232_gpu", 17)):
        (pair,) = [pair for pair in ncar.pairs if pair.kernel == kernel]
        words = plain(advice.table(statements_of_pair(ncar, pair, TABLE), "sm_70"))
        assert f"{at_most} %" in words
        assert words.count(DRAM) == 1, "what several statements ask for stands once"


def test_a_launch_alone_is_told_the_same_without_a_change(ncar: Comparison) -> None:
    (pair,) = [pair for pair in ncar.pairs if pair.kernel == "semi_discrete_step_232_gpu"]
    words = plain(advice.table(statements_of_launch(pair.b, "7.0", TABLE), "sm_70"))
    assert DRAM in words
    assert "17 %" in words


def test_what_changed_is_left_to_why_unless_only_it_calls_for_something() -> None:
    words = plain(
        advice.table(
            [
                statement(BOTTLENECK, "DRAM limits this launch.", "reuse tiles", 0.8),
                statement(CHANGE, "2 ms faster."),
                statement(CHANGE, "+1 ms from more waiting for data.", "reuse tiles", 0.2),
                statement(CHANGE, "+1 ms by barriers.", "fewer barriers", 0.1),
                unknown("whether SMs are idle", "To collect: a."),
            ]
        )
    )
    assert "faster" not in words
    assert "waiting for data" not in words
    assert "→ fewer barriers +1 ms by barriers. 10 %" in words
    assert words.endswith("unknown: whether SMs are idle. To collect: a.")


def test_an_open_question_comes_with_the_counters_that_would_answer_it(ncar: Comparison) -> None:
    """Counters of the compared launch that nobody collected, and from which nothing else follows."""
    (pair,) = [pair for pair in ncar.pairs if pair.kernel == "semi_discrete_step_232_gpu"]
    kept = {name: value for name, value in pair.b.values.items() if not name.startswith("smsp__")}
    bare = replace(pair.b, values=pack_values(kept))
    words = plain(advice.table(statements_of_launch(bare, "7.0", TABLE), "sm_70"))
    assert "unknown: " in words
    assert "ncu --metrics $(profiler list metrics --chip sm_70) PROGRAM" in words


def test_a_share_that_nobody_knows_is_a_dash_and_no_zero() -> None:
    words = plain(advice.table([statement(LEVER, "a", "b", 0.5), statement(LEVER, "c", "d")]))
    assert words == "try of its time → b a 50 % → d c –"


def test_a_command_in_a_statement_is_code_and_no_backtick_is_shown() -> None:
    output = advice.table([statement(BOTTLENECK, "The compiler tells <them> apart (`profiler static`).")])
    assert 'tells &lt;them&gt; apart (<span class="c">profiler static</span>).' in output
    assert "`" not in output


def test_nothing_to_say_is_said() -> None:
    assert "Nothing stands out" in advice.table([])


def test_what_was_measured_elsewhere_needs_no_measuring() -> None:
    question = unknown("where its time goes")
    assert "where its time goes" in advice.table([question])
    assert "where its time goes" not in advice.table([question], is_measured_elsewhere=True)


@pytest.mark.slow
@pytest.mark.usefixtures("pages_of")
def test_the_diff_answers_what_next_below_why(full_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = text(page("diff", full_data, monkeypatch, **NCAR))
    assert words.index("Why") < words.index("What next") < words.index(DRAM)


@pytest.mark.slow
@pytest.mark.usefixtures("pages_of")
def test_a_launch_of_a_run_answers_what_next(made_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = text(page("runs", made_data, monkeypatch, find="MW_DivToMult"))
    assert DRAM in words
