"""A short campaign of the fuzzer, and that it sees what it counts. The long one is `make fuzz`."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.fuzz import campaign, code_campaign, mutations
from tests.toolchain import needs_sass


@pytest.mark.slow
def test_no_damaged_input_crashes_hangs_or_takes_memory(made_reports: Path) -> None:
    result = campaign.run(80, seed=7, reports=made_reports)
    assert result.is_sound, "\n".join(result.table())
    assert sum(result.tried.values()) == 80
    assert result.refused.total() > 20


@needs_sass
@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "with_static"), [(60, False), pytest.param(5000, True, marks=pytest.mark.long)]
)
def test_no_damaged_machine_code_crashes_hangs_or_takes_memory(count: int, with_static: bool) -> None:
    result = code_campaign.run(count, seed=3, with_static=with_static)
    assert result.is_sound, "\n".join(result.table())
    assert result.refused.total() > count / 4
    assert not result.silent, "\n".join(result.table())


@pytest.mark.slow
def test_a_campaign_counts_crashes_and_silent_changes(
    made_reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyError("x")

    kinds = {"a": crash, "b": lambda *_: "launches lost", "c": lambda *_: campaign.WARNED}
    monkeypatch.setattr(campaign.Targets, "all", lambda _: kinds)
    result = campaign.run(6, seed=1, reports=made_reports)
    assert len(result.crashes) == 2
    assert result.silent == {"b: launches lost": 2}
    assert result.warned == {"c": 2}
    assert not result.is_sound
    assert "b: launches lost: 1/1 1/4" in result.table()


@pytest.mark.parametrize("change", [mutations.change_bytes, mutations.change_lines, mutations.lengthen_field])
def test_a_change_follows_from_its_seed(change: object) -> None:
    content = bytes(range(256)) * 8
    assert callable(change)
    assert change(content, Random(3)) == change(content, Random(3))
    assert any(change(content, Random(seed)) != content for seed in range(5))
