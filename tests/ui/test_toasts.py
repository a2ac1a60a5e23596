"""What a page that stays open says when runs arrive."""

from datetime import timedelta
from pathlib import Path

import pytest

from profiler.store.sync import sync_index
from tests import lineages
from tests.ui.test_pages import page

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pages_of")]  # a page is run whole


def test_new_runs_are_announced_once_with_the_way_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineages.dissected(tmp_path)
    app = page("lineage", tmp_path, monkeypatch)
    assert not app.toast, "what was there when the page was opened is not new"
    run = lineages.dissected(tmp_path, created=lineages.CREATED + timedelta(days=1))
    sync_index(str(tmp_path))
    app.run()
    (toast,) = app.toast
    assert toast.value == f"New: run {run.run_id} · [open](./runs?run={run.run_id}) · [show here](#refresh)"
    assert not app.run().toast
