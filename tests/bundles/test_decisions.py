"""Decision records: what is valid now follows from all of them, in the order they were made."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from time import process_time

import pytest

from profiler.bundles import decisions
from profiler.bundles.decisions import FORGET, RELABEL, REMEMBER
from profiler.bundles.location import LocalRoot, Root, open_root
from profiler.bundles.run import Labels
from profiler.errors import BadBundle, ProfilerError

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(params=["local", "memory"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    return open_root(f"memory://{tmp_path.name}") if request.param == "memory" else LocalRoot(tmp_path)


def test_a_record_comes_back_with_who_when_and_why(where: Root) -> None:
    made = decisions.write_decision(where, FORGET, "run-1", why="ünfair clocks", who="ada", created=NOON)
    assert decisions.load_decisions(where) == [made]
    assert (made.who, made.why, made.created, made.subject) == ("ada", "ünfair clocks", NOON, "run-1")
    assert made.id.startswith("20250301T120000000000-forget-")


def test_the_latest_word_on_each_field_is_valid(where: Root) -> None:
    decisions.write_decision(where, RELABEL, "a", {"workload": ""})
    decisions.write_decision(where, RELABEL, "a", {"family": "f", "version": "v1"})
    decisions.write_decision(where, RELABEL, "a", {"version": "v2"})
    decisions.write_decision(where, FORGET, "b")
    assert decisions.current_labels(decisions.load_decisions(where)) == {
        "a": Labels("f", "v2", "", hidden=False),
        "b": Labels(hidden=True),
    }
    decisions.write_decision(where, REMEMBER, "b")
    assert decisions.current_labels(decisions.load_decisions(where))["b"] == Labels(hidden=False)


def test_a_decision_comes_after_all_that_are_there_whatever_the_clocks_say(where: Root) -> None:
    """Two machines an hour apart share a folder, and decide in turns: the answers are those of a model."""
    random = Random(16)
    hidden: dict[str, bool] = {}
    for number in range(150):
        run, kind = random.choice("abcdefgh"), random.choice((FORGET, REMEMBER))
        hidden[run] = kind == FORGET
        clock = NOON + random.choice((timedelta(0), timedelta(hours=1))) + timedelta(seconds=number)
        made = decisions.write_decision(where, kind, run, created=clock)
        assert made.created == clock
        if number % 50 == 0 or number == 149:
            records = decisions.load_decisions(where)
            assert records[-1] == made
            assert {run: labels.hidden for run, labels in decisions.current_labels(records).items()} == hidden
    assert decisions.decision_ids(where) == [record.id for record in decisions.load_decisions(where)]


def test_a_renamed_record_and_one_of_an_earlier_profiler_keep_their_place(tmp_path: Path) -> None:
    where = LocalRoot(tmp_path)
    first = decisions.write_decision(where, FORGET, "run-1", created=NOON)
    path = tmp_path / "decisions" / f"{first.id}.json"
    body = json.loads(path.read_text())
    del body["order"]
    path.unlink()
    for name in ("zzz", "20250231T000000000000-forget-1"):  # no time, and a day that there is not
        (tmp_path / "decisions" / f"{name}.json").write_text(json.dumps(body))
    second = decisions.write_decision(where, REMEMBER, "run-1", created=NOON - timedelta(hours=1))
    assert second.order == first.order + 1
    assert decisions.load_decisions(where)[-1] == second
    assert second.id.startswith("20250301T120000000001-remember-")


def test_a_clock_at_the_end_of_time_is_refused_before_anything_is_written(where: Root) -> None:
    with pytest.raises(ProfilerError, match="clock says 9999-12-31"):
        decisions.write_decision(where, FORGET, "run-1", created=datetime.max.replace(tzinfo=UTC))
    assert decisions.load_decisions(where) == []


def test_a_record_of_a_time_to_come_is_named_by_whoever_decides_and_the_clock_is_not_blamed(
    tmp_path: Path,
) -> None:
    where, now = LocalRoot(tmp_path), datetime.now(UTC)
    near = decisions.write_decision(where, FORGET, "run-1", created=now + timedelta(days=6))
    after = decisions.write_decision(where, REMEMBER, "run-1")
    assert after.order == near.order + 1
    far = decisions.write_decision(where, FORGET, "run-2", created=now + timedelta(days=9))
    with pytest.raises(
        BadBundle, match=rf"{far.id}\.json is of \d{{8}}, over 7 days ahead .*remove the file"
    ):
        decisions.write_decision(where, REMEMBER, "run-2")
    assert decisions.load_decisions(where) == [near, after, far]
    (tmp_path / "decisions" / f"{far.id}.json").unlink()
    assert decisions.write_decision(where, REMEMBER, "run-2").order == after.order + 1


@pytest.mark.parametrize(
    "values", ['{"a": [' + "[]," * 5_000_000 + "0]}", '{"a": "' + "x" * (17 << 20) + '"}']
)
def test_a_decision_that_would_take_much_memory_is_refused_at_once(tmp_path: Path, values: str) -> None:
    where = LocalRoot(tmp_path)
    made = decisions.write_decision(where, FORGET, "run-1", created=NOON)
    path = tmp_path / "decisions" / f"{made.id}.json"
    path.write_text(path.read_text().replace('"values": {}', f'"values": {values}'))
    began = process_time()
    with pytest.raises(BadBundle, match=r"forget-\w+\.json (would take|has).*correct or remove the file"):
        decisions.load_decisions(where)
    assert process_time() - began < 2


@pytest.mark.slow
def test_a_decision_that_nobody_could_read_is_not_written(where: Root) -> None:
    with pytest.raises(BadBundle, match="bytes or more"):
        decisions.write_decision(where, FORGET, "run-1", why="x" * (17 << 20))
    assert decisions.load_decisions(where) == []


def test_nothing_decided_is_no_labels(where: Root) -> None:
    assert decisions.load_decisions(where) == []
    assert decisions.current_labels([]) == {}


def test_a_record_of_a_later_kind_is_kept_and_changes_no_label(where: Root) -> None:
    made = decisions.write_decision(where, "baseline", "family/v1", {"gpu": "H100"}, created=NOON)
    assert decisions.load_decisions(where) == [made]
    assert decisions.current_labels([made]) == {}


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"schema": 9, "kind": "forget"}', "\ufffd"])
def test_a_file_that_is_no_record_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "decisions").mkdir()
    (tmp_path / "decisions" / "x.json").write_text(content)
    with pytest.raises(BadBundle, match=r"decisions/x\.json"):
        decisions.load_decisions(LocalRoot(tmp_path))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"values": {"version": 5}}, "version"),
        ({"values": {"family": "a/b"}}, "family"),
        ({"values": []}, "values"),
        ({"created": "2025-03-01T12:00:00"}, "time zone"),
        ({"created": 5}, "created"),
        ({"schema": True}, "schema"),
        ({"subject": None}, "subject"),
        ({"order": "1"}, "order"),
        ({"order": 10**18}, "order"),
    ],
)
def test_a_record_with_a_field_of_another_type_is_named(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    made = decisions.write_decision(LocalRoot(tmp_path), RELABEL, "run", {"version": "v"}, created=NOON)
    path = tmp_path / "decisions" / f"{made.id}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BadBundle, match=said) as caught:
        decisions.load_decisions(LocalRoot(tmp_path))
    assert str(path) in str(caught.value)
    assert "correct or remove" in str(caught.value)


def test_a_reason_that_is_no_text_is_kept_as_far_as_it_is(where: Root) -> None:
    decisions.write_decision(where, FORGET, "a", why="k\udce9")
    assert decisions.load_decisions(where)[0].why == "k?"


def test_two_records_of_one_moment_do_not_overwrite_each_other(tmp_path: Path) -> None:
    where = LocalRoot(tmp_path)
    for run in ("a", "b"):
        decisions.write_decision(where, FORGET, run, who="ada", created=NOON)
    assert [decision.subject for decision in decisions.load_decisions(where)] in (["a", "b"], ["b", "a"])
    [first, second] = sorted((tmp_path / "decisions").iterdir())
    assert json.loads(first.read_text())["subject"] != json.loads(second.read_text())["subject"]


def test_a_hidden_file_is_no_record_and_one_that_cannot_be_read_says_the_way_out(tmp_path: Path) -> None:
    where = LocalRoot(tmp_path)
    made = decisions.write_decision(where, FORGET, "run-1", created=NOON)
    (tmp_path / "decisions" / "._record.json").write_bytes(b"what a Mac leaves")
    assert decisions.load_decisions(where) == [made]
    (tmp_path / "decisions" / "gone.json").symlink_to("nowhere")
    with pytest.raises(BadBundle, match=r"gone\.json cannot be read .*correct or remove the file"):
        decisions.load_decisions(where)
