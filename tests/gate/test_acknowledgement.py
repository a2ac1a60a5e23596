"""Acknowledged regressions: let pass while they last, for exactly what they are about, and for a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles import decisions, location
from profiler.bundles.location import LocalRoot, Root
from profiler.bundles.run import Run
from profiler.cli import main
from profiler.errors import BadBundle, ProfilerError, UnknownName
from profiler.evidence import metric_table
from profiler.gate import acknowledgement
from profiler.gate.acknowledgement import Acknowledgement, LapsedAcknowledgement, find_acknowledgement
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from tests import lineages
from tests.lineages import FAMILY

SIZE, GPU = "1x1x8x64", "NVIDIA Test 1"
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    return lineages.dissected(tmp_path, lineages.results(measured=True), gpu=GPU)


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return LocalRoot(tmp_path)


@pytest.fixture
def store(run: Run) -> Iterator[Store]:
    opened = open_store()
    yield opened
    opened.close()


def let_pass(root: Root, store: Store, why: str = "known", **about: Any) -> Acknowledgement:
    about = {"now": NOW, **about}
    return acknowledgement.acknowledge(
        root, store, metric_table.load_metrics(), FAMILY, "alpha", why=why, **about
    )


def passes(root: Root, version: str = "alpha", **about: Any) -> bool:
    acknowledgements = acknowledgement.list_acknowledgements(decisions.load_decisions(root))
    asked = {"workload": SIZE, "gpu": GPU, "concept": "latency", "now": NOW, **about}
    return isinstance(
        find_acknowledgement(acknowledgements, family=FAMILY, version=version, **asked), Acknowledgement
    )


def test_without_more_it_is_about_everything_of_the_version(root: Root, store: Store) -> None:
    made = let_pass(root, store, who="ada")
    assert acknowledgement.list_acknowledgements(decisions.load_decisions(root)) == [made]
    assert passes(root)
    assert passes(root, concept="registers", workload="other")
    assert not passes(root, version="zero")
    assert made.words == "ada, without an end: known"


@pytest.mark.parametrize(
    ("about", "other"),
    [
        ({"workload": SIZE}, {"workload": "other"}),
        ({"gpu": GPU}, {"gpu": "another"}),
        ({"concept": "latency"}, {"concept": "duration"}),
    ],
)
def test_it_lets_nothing_else_pass(
    root: Root, store: Store, about: dict[str, str], other: dict[str, str]
) -> None:
    let_pass(root, store, **about)
    assert passes(root)
    assert not passes(root, **other)


def test_a_day_counts_whole_and_then_it_is_over(root: Root, store: Store) -> None:
    let_pass(root, store, until="2026-06-01")
    assert passes(root, now=datetime(2026, 6, 1, 23, 59, tzinfo=UTC))
    assert not passes(root, now=datetime(2026, 6, 2, tzinfo=UTC))


def test_until_a_run_means_its_results_and_older_ones(root: Root, store: Store, run: Run) -> None:
    let_pass(root, store, until=run.run_id)
    assert passes(root, created=run.created)
    assert not passes(root, created=run.created + timedelta(seconds=1))
    assert not passes(root, created=None), "results of unknown age pass no limit"


def test_the_newest_that_fits_is_named(root: Root, store: Store) -> None:
    let_pass(root, store, why="first")
    let_pass(root, store, why="second", concept="latency")
    acknowledgements = acknowledgement.list_acknowledgements(decisions.load_decisions(root))
    one = find_acknowledgement(acknowledgements, family=FAMILY, version="alpha", concept="latency", now=NOW)
    assert isinstance(one, Acknowledgement)
    assert one.why == "second"


@pytest.mark.parametrize(
    ("about", "asked", "said"),
    [
        ({"until": "2026-06-01"}, {"now": NOW + timedelta(days=1)}, "its last day, 2026-06-01, is over"),
        (
            {"until": "RUN"},
            {"created": datetime(2026, 7, 1, 9, 30, tzinfo=UTC)},
            "newer, of 2026-07-01 09:30",
        ),
        ({"until": "RUN"}, {"created": None}, "of unknown age"),
        ({"up_to": 0.03}, {"effect": 0.05}, "it allows changes up to 3 %, and this one is +5.0 %"),
        ({"up_to": 0.03}, {"effect": None}, "the size of this one is unknown"),
    ],
)
def test_one_that_ended_says_when_and_why(
    root: Root, store: Store, run: Run, about: dict[str, Any], asked: dict[str, Any], said: str
) -> None:
    let_pass(root, store, **{key: run.run_id if one == "RUN" else one for key, one in about.items()})
    acknowledgements = acknowledgement.list_acknowledgements(decisions.load_decisions(root))
    place = {"family": FAMILY, "version": "alpha", "concept": "latency"}
    one = find_acknowledgement(acknowledgements, **{**place, "now": NOW, **asked})
    assert isinstance(one, LapsedAcknowledgement)
    assert one.words.startswith("not covered: ")
    assert said in one.words
    assert one.words.endswith(": known)")
    later = let_pass(root, store, why="again")
    acknowledgements = acknowledgement.list_acknowledgements(decisions.load_decisions(root))
    assert find_acknowledgement(acknowledgements, **{**place, "now": NOW, **asked}) == later, (
        "a newer one that holds comes first"
    )


def test_it_can_be_taken_back_by_the_start_of_its_id(root: Root, store: Store) -> None:
    first, second = let_pass(root, store, why="first"), let_pass(root, store, why="second")
    with pytest.raises(UnknownName, match="several"):
        acknowledgement.withdraw(root, "2")
    assert acknowledgement.withdraw(root, first.id[:-3]) == first
    assert acknowledgement.list_acknowledgements(decisions.load_decisions(root)) == [second]
    with pytest.raises(UnknownName, match=second.id):
        acknowledgement.withdraw(root, first.id)


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"why": "  "}, "--why"),
        ({"workload": "huge"}, "no workload 'huge'"),
        ({"gpu": "a toaster"}, "no GPU"),
        ({"concept": "latencies"}, "there are latency"),
        ({"until": "tomorrow"}, "neither a day"),
        ({"until": "2026-02-30"}, "no day of the calendar"),
        ({"until": "2026-05-31"}, "2026-05-31 is over and would let nothing pass: today is 2026-06-01"),
    ],
)
def test_what_would_let_nothing_pass_is_refused(
    root: Root, store: Store, about: dict[str, str], said: str
) -> None:
    with pytest.raises(ProfilerError, match=said):
        let_pass(root, store, **about)
    assert decisions.load_decisions(root) == []


def test_a_record_with_an_end_that_is_none_is_named(root: Root, store: Store) -> None:
    let_pass(root, store, until="2026-06-01")
    [one] = decisions.load_decisions(root)
    with pytest.raises(BadBundle, match=one.id):
        acknowledgement.list_acknowledgements([replace(one, values={**one.values, "until_day": "soon"})])


def test_the_command_acknowledges_lists_and_takes_back(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*command: str, code: int = 0) -> str:
        assert main(["decide", "acknowledge", *command]) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    assert said("--list") == "nothing is acknowledged\n"
    assert said("alpha", code=2).count("--why") == 1
    assert "acknowledged until 2099-01-01" in said("mine/alpha", "--why", "known", "--until", "2099-01-01")
    assert said("alpha", "--why", "known", "--until", "2020-01-01", code=2).count("2020-01-01 is over") == 1
    [future] = json.loads(said("--list", "--json"))["acknowledged"]
    assert future["ended"] is False
    said("--undo", future["id"])
    values = {"family": FAMILY, "version": "alpha", "until_day": "2020-01-01"}
    decisions.write_decision(
        location.open_root(), decisions.ACKNOWLEDGE, "mine/alpha", values, why="known", who="ada"
    )
    [one] = json.loads(said("--list", "--json"))["acknowledged"]
    assert (one["family"], one["version"], one["concept"], one["ended"]) == (FAMILY, "alpha", None, True)
    assert "until 2020-01-01 (ended)" in said("--list")
    assert "need a VERSION" in said("--list", "--gpu", GPU, code=2)
    assert "no longer acknowledged" in said("--undo", one["id"])
    assert said("--list") == "nothing is acknowledged\n"


def test_the_second_of_two_who_decide_at_once_learns_of_the_first(
    root: Root, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    first = let_pass(root, store, why="a driver bug", who="ann")
    elsewhere = let_pass(root, store, why="another place", workload=SIZE)
    second = let_pass(root, store, why="known", who="bob")
    assert acknowledgement.others_of(root, second) == [first]
    assert acknowledgement.others_of(root, elsewhere) == []
    acknowledgement.withdraw(root, first.id)
    assert acknowledgement.others_of(root, second) == []
    assert main(["decide", "acknowledge", f"{FAMILY}/alpha", "--why", "again", "--json"]) == 0
    assert [other["id"] for other in json.loads(capsys.readouterr().out)["others"]] == [second.id]
