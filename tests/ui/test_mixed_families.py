"""A family that mixes several folders is parted from the page Runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from profiler.store.begin_import import import_paths
from profiler.store.index import Store
from profiler.store.readable_index import open_store

pytestmark = pytest.mark.slow

APP = Path(__file__).resolve().parents[2] / "app.py"


def test_the_button_gives_each_folder_its_own_family(
    made_reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    with monkeypatch.context() as patch:  # as on two machines of which neither knows the other's folder
        patch.setattr(Store, "import_folders", lambda _store: [])
        for name, source in (("silu", "prof1"), ("rms", "prof2")):
            report = tmp_path / name / "mm" / "v1.ncu-rep"
            report.parent.mkdir(parents=True)
            shutil.copyfile(made_reports / "mistic" / f"{source}.ncu-rep", report)
            import_paths([report])
    app = AppTest.from_file(str(APP), default_timeout=60).run()
    app.switch_page("profiler/ui/pages/runs.py").run()
    [button] = [button for button in app.button if "folder" in button.label]
    button.click().run()
    assert not app.exception
    assert not [button for button in app.button if "folder" in button.label]
    store = open_store()
    assert store.families() == ["rms-mm", "silu-mm"]
    store.close()
