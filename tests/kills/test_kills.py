"""A few kills of the campaign, and that it sees a loss. The long one is `make kills`."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.bundles import bundle
from profiler.bundles.location import LocalRoot
from tests.kills.campaign import Campaign

pytestmark = pytest.mark.slow


def test_killed_decisions_and_backups_lose_nothing(
    tmp_path: Path, made_reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = Campaign(tmp_path, made_reports, None, dissects=False)
    campaign.actions = [action for action in campaign.actions if action.name in ("decisions", "backup")]
    counts = campaign.run(3, seed=1, databases=["sqlite"])
    assert counts.kills.total() == 3
    assert counts.wrong == []

    def lose(*_: object) -> list[tuple[str, ...]]:
        bundle.remove_run(LocalRoot(tmp_path / "trial" / "data"), campaign._runs[3])
        return [("list", "runs")]

    monkeypatch.setattr(campaign, "_again", lose)
    assert "answers differ" in "\n".join(campaign.run(1, seed=1, databases=["sqlite"]).wrong)
