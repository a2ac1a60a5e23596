"""Loads what pages need as soon as the server starts, while the browser still fetches Streamlit's own files.

Without it the first visitor of a server waits for imports, for the index and for compiled loops: three times
as long as anybody after.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamlit.starlette import App

_imported = threading.Event()
_imported.set()  # nothing to wait for where no server of ours runs


def warming_up(app: Path) -> Callable[[App], AbstractAsyncContextManager[None]]:
    """What Streamlit calls when the server starts: begins to load the modules of app.py and of all pages."""
    pages = Path(__file__).parent / "pages"

    @asynccontextmanager
    async def lifespan(_: App) -> AsyncIterator[None]:
        _imported.clear()
        scripts = [app, *sorted(pages.glob("*.py"))]
        threading.Thread(target=_load, args=(scripts,), name="warm-up", daemon=True).start()
        yield

    return lifespan


def wait_for_imports() -> None:
    """Wait until pages' modules are loaded: Python may show a half loaded one to a second thread."""
    _imported.wait()


def _load(scripts: Iterable[Path]) -> None:
    """Whatever fails here fails again for the first visitor, in a page that says so."""
    try:
        with suppress(Exception):
            import pandas  # noqa: F401 - which Streamlit loads with the first element that may be a table
            import plotly.graph_objects  # noqa: F401

            for script in scripts:
                _run_imports(script)
    finally:
        _imported.set()
    with suppress(Exception):
        _answer_first_questions()


def _answer_first_questions() -> None:
    """Fill the caches with what several pages ask, and load compiled loops by a series that has a step."""
    from profiler.statistics.changepoint import change_points
    from profiler.ui.data import current_state, index, lineages, results, series, version_tables

    index.store()  # raises where there is no index, which current_version would try to show
    data_version = index.current_version()
    results.runs(data_version)
    for family in list(lineages.lineages_by_family(data_version))[:1]:  # which pages show unasked
        series.family_latencies(data_version, family)
    current_state.worse_now(data_version)
    versions = lineages.versions(data_version)
    compared, _ = version_tables.known_names(
        data_version, version_tables.default_versions(data_version, versions, "")
    )
    version_tables.places(data_version, tuple(compared))
    change_points([1.0, 1.1] * 10 + [2.0, 2.1] * 10)


def _run_imports(script: Path) -> None:
    """Run the imports at the top of a script, and nothing else of it."""
    body = ast.parse(script.read_text(encoding="utf-8"), str(script)).body
    imports = [statement for statement in body if isinstance(statement, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module([*imports], []), str(script), "exec"), {"__name__": script.stem})
