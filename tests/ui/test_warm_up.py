"""What is loaded when the server starts, before the first visitor."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from profiler.ui import warm_up
from profiler.ui.data import current_state, index, lineages, results, series

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
    import asyncio, sys
    from pathlib import Path
    from profiler.ui import warm_up

    async def start() -> None:
        async with warm_up.warming_up(Path(sys.argv[1]))(None):
            warm_up.wait_for_imports()
            print(*sorted({"pandas", "plotly.graph_objects", "profiler.ui.data.series"} & set(sys.modules)))

    asyncio.run(start())
"""


def started(app: Path, data: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(app)],
        env={"PROFILER_DATA": str(data), "PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


@pytest.mark.slow
def test_modules_of_every_page_are_there_when_the_waiting_ends(tmp_path: Path) -> None:
    assert started(ROOT / "app.py", tmp_path).stdout.split() == [
        "pandas",
        "plotly.graph_objects",
        "profiler.ui.data.series",
    ]


@pytest.mark.slow
def test_a_page_that_cannot_be_imported_keeps_no_visitor_waiting(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text("import no_such_module\n")
    assert started(app, tmp_path / "data").returncode == 0


def test_only_imports_at_the_top_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_by_warm_up.py").write_text("")
    script = tmp_path / "page.py"
    script.write_text("import imported_by_warm_up\nif True:\n    import no_such_module\nraise SystemExit\n")
    monkeypatch.syspath_prepend(tmp_path)
    warm_up._run_imports(script)
    assert sys.modules.pop("imported_by_warm_up")


def test_nobody_waits_where_no_server_of_ours_runs() -> None:
    thread = threading.Thread(target=warm_up.wait_for_imports)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()


@pytest.mark.slow
@pytest.mark.usefixtures("pages_of")
def test_what_pages_ask_first_is_in_the_caches(full_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(full_data))
    warm_up._answer_first_questions()

    def asked_again(*_: object, **__: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr(index, "open_store", asked_again)
    monkeypatch.setattr(current_state, "search_index", asked_again)
    monkeypatch.setattr(series, "load_latency_trends", asked_again)
    data_version = index.current_version()
    assert results.runs(data_version)
    for family in list(lineages.lineages_by_family(data_version))[:1]:
        assert series.family_latencies(data_version, family)
    current_state.worse_now(data_version)
