"""What insights brought, by records made by hand and in a simulated search."""

from __future__ import annotations

from dataclasses import replace

from profiler.evidence.values import Evidence
from profiler.search.archive import replay
from profiler.search.effects import ALL_INSIGHTS, ENOUGH, insight_effects
from profiler.search.record import PairVerdict, SearchRecord, Status
from profiler.statistics.verdict import Verdict

SEED = SearchRecord(0, Status.VALID, order=0, content_id="seed", code_id="x")


def child(number: int, kinds: tuple[str, ...], shown: bool, better: bool, valid: bool = True) -> SearchRecord:
    word = Verdict.BETTER if better else Verdict.UNCLEAR
    return SearchRecord(
        number,
        Status.VALID if valid else Status.REFUSED,
        order=number,
        content_id=str(number),
        code_id=f"code {number}",
        parent=0,
        arm="insights" if shown else "control",
        offered=kinds,
        shown=kinds if shown else (),
        verdicts={"seed": PairVerdict(word, Evidence.MODELLED, None)},
    )


def test_an_effect_is_unknown_until_ten_of_each_arm() -> None:
    records = [child(n, ("conflicts",), n % 2 == 0, n % 2 == 0) for n in range(1, 2 * ENOUGH + 1)]
    effects = {e.kind: e for e in insight_effects(replay([SEED, *records]))}
    assert effects["conflicts"].word == "better"
    assert (effects["conflicts"].shown, effects["conflicts"].better_with) == (10, 10)
    difference = effects["conflicts"].difference
    assert difference is not None
    assert difference.low > 0.5
    fewer = {e.kind: e for e in insight_effects(replay([SEED, *records[:-1]]))}
    assert (fewer["conflicts"].word, fewer["conflicts"].difference) == ("unknown", None)
    assert fewer[ALL_INSIGHTS].to_dict()["needs"] == 1


def test_what_came_to_nothing_counts_and_a_kind_counts_where_there_was_one() -> None:
    records = [
        child(1, ("a",), True, True),
        child(2, ("a", "b"), True, True, valid=False),
        replace(child(3, ("b",), False, False), status=Status.NO_CANDIDATE),
        child(4, (), True, True),
    ]
    effects = {e.kind: e for e in insight_effects(replay([SEED, *records]))}
    assert effects.keys() == {"a", "b", ALL_INSIGHTS}
    assert (effects["a"].better_with, effects["a"].shown, effects["a"].withheld) == (1, 2, 0)
    assert (effects["b"].better_with, effects["b"].shown, effects["b"].withheld) == (0, 1, 1)
    assert (effects[ALL_INSIGHTS].shown, effects[ALL_INSIGHTS].withheld) == (2, 1)


def test_no_effect_is_unclear() -> None:
    records = [child(n, ("a",), n % 2 == 0, n % 4 < 2) for n in range(1, 41)]
    (effect, *_) = insight_effects(replay([SEED, *records]))
    assert effect.word == "unclear"
