"""Who holds the seats: rules on records made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.errors import BadBundle
from profiler.evidence.values import Evidence
from profiler.search.archive import confirmed, mean_time_ns, path_to, replay
from profiler.search.evaluation import measured_verdict, modelled_verdict
from profiler.search.record import PairVerdict, SearchRecord, Status, parse_record, record_content
from profiler.statistics.verdict import Verdict, over_workloads
from tests.search.simulated import code_of, judged, modelled

W = "2x8x2048x64"


def record(
    number: int,
    ns: float,
    verdicts: dict[int, Verdict] | None = None,
    measured: bool = False,
    **changes: object,
) -> SearchRecord:
    """A candidate that is right, with verdicts against others by their numbers."""
    evidence = Evidence.MEASURED if measured else Evidence.MODELLED
    found = SearchRecord(
        number,
        Status.VALID,
        order=number,
        content_id=code_of(f"source {number}"),
        code_id=code_of(f"code {number}"),
        parent=number - 1 if number else None,
        times={W: {"likely_ns": ns, "evidence": str(evidence)}},
        verdicts={
            code_of(f"source {other}"): PairVerdict(word, evidence, None, confirmed=measured)
            for other, word in (verdicts or {}).items()
        },
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def names(records: tuple[SearchRecord, ...]) -> list[str]:
    return [found.name for found in records]


THREE = [record(0, 300), record(1, 200), record(2, 250)]


def test_three_seats_fill_and_then_only_better_replaces() -> None:
    assert names(replay(THREE).elites) == ["c1", "c2", "c0"]
    unclear = record(3, 180, {0: Verdict.UNCLEAR, 1: Verdict.UNCLEAR, 2: Verdict.UNCLEAR})
    assert names(replay([*THREE, unclear]).elites) == ["c1", "c2", "c0"], "ties stay, though it is faster"
    better = record(4, 100, {0: Verdict.BETTER, 1: Verdict.BETTER, 2: Verdict.BETTER})
    archive = replay([*THREE, unclear, better])
    assert names(archive.elites) == ["c4", "c1", "c2"], "the slowest of those it is better than falls"
    assert archive.changes[-1].replaced == 0


def test_worse_on_one_workload_replaces_nobody() -> None:
    assert over_workloads([Verdict.BETTER, Verdict.WORSE]) is Verdict.WORSE
    assert over_workloads([Verdict.BETTER, Verdict.UNCLEAR, Verdict.SAME]) is Verdict.BETTER
    assert over_workloads([Verdict.BETTER, Verdict.MISSING]) is Verdict.MISSING
    assert over_workloads([Verdict.UNCLEAR]) is Verdict.UNCLEAR
    assert over_workloads([Verdict.SAME, Verdict.SAME]) is Verdict.SAME
    assert over_workloads([]) is Verdict.MISSING


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.VALID])
def test_nothing_but_what_is_right_takes_a_seat(status: Status) -> None:
    wrong = replace(record(3, 1, dict.fromkeys(range(3), Verdict.BETTER)), status=status)
    assert names(replay([*THREE, wrong]).elites) == ["c1", "c2", "c0"]
    assert names(replay([THREE[0], wrong]).elites) == ["c0"]


def test_a_measured_verdict_outranks_a_modelled_one() -> None:
    measured = [record(number, 300 - number, measured=True) for number in range(3)]
    by_model = record(3, 10, dict.fromkeys(range(3), Verdict.BETTER))
    assert names(replay([*measured, by_model]).elites) == ["c2", "c1", "c0"]
    by_clock = record(3, 10, dict.fromkeys(range(3), Verdict.BETTER), measured=True)
    assert names(replay([*measured, by_clock]).elites) == ["c3", "c2", "c1"]
    once = {name: replace(verdict, confirmed=False) for name, verdict in by_clock.verdicts.items()}
    assert names(replay([*measured, replace(by_clock, verdicts=once)]).elites) == ["c2", "c1", "c0"]


def test_the_same_code_takes_no_second_seat() -> None:
    twin = replace(record(1, 100), code_id=THREE[0].code_id)
    assert names(replay([THREE[0], twin]).elites) == ["c0"]
    assert names(replay([THREE[0], replace(twin, code_id="", content_id=THREE[0].content_id)]).elites) == [
        "c0"
    ]


def test_a_second_measurement_has_to_agree() -> None:
    first = PairVerdict(Verdict.BETTER, Evidence.MEASURED, 0.9)
    assert confirmed(first, replace(first, ratio=0.95)).confirmed
    for second in (replace(first, verdict=Verdict.UNCLEAR), None):
        found = confirmed(first, second)
        assert (found.verdict, found.confirmed) == (Verdict.UNCLEAR, False)


def test_modelled_times_within_the_error_are_unclear() -> None:
    elite = record(0, 100_000)
    for ns, word in ((95_000, Verdict.UNCLEAR), (20_000, Verdict.BETTER), (500_000, Verdict.WORSE)):
        verdict = modelled_verdict({W: {"likely_ns": ns}}, elite, [W])
        assert verdict.verdict is word
        assert verdict.evidence is Evidence.MODELLED
    assert modelled_verdict({}, elite, [W]).verdict is Verdict.MISSING
    assert modelled_verdict({W: {"likely_ns": 1}}, elite, [W, "another"]).verdict is Verdict.MISSING
    assert modelled_verdict({W: {"likely_ns": 100_000}}, elite, [W], same_code=True).verdict is Verdict.SAME


def test_a_judgement_without_measurements_gives_no_measured_verdict() -> None:
    elite = record(0, 100)
    found = judged("x", "y", (modelled(50.0),), elite=elite.content_id[:24])
    assert measured_verdict(found, elite, [W]) is None


def test_a_record_is_read_as_it_was_written() -> None:
    found = record(3, 180, {0: Verdict.UNCLEAR})
    assert parse_record(record_content(found), "here") == found
    for broken in (b"", b"{}", b'{"schema": 99}', b'{"schema": 1, "number": "x", "status": "valid"}', b"[1]"):
        with pytest.raises(BadBundle, match="here"):
            parse_record(broken, "here")


def test_a_path_leads_from_the_seed() -> None:
    archive = replay(THREE)
    assert names(tuple(path_to(archive, THREE[2]))) == ["c0", "c1", "c2"]
    assert mean_time_ns(THREE[1]) == pytest.approx(200)
    assert mean_time_ns(SearchRecord(5, Status.REFUSED)) is None
