"""The page Changes: two builds that a browser sends are compared, and nothing of them is kept on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.build.toolchain import require_tool
from profiler.build.toolkits import Toolkit, compile_cubin
from profiler.ui.data import uploads
from tests.toolchain import needs_sass
from tests.ui.test_pages import page, text

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pages_of")]

_SOURCE = (
    "__global__ void scale(float *x, float a) { x[threadIdx.x] *= a; }\n"
    "__global__ void sum(float *x) { x[0] = x[threadIdx.x] + FACTOR * x[1]; }\n"
)


def _cubin(folder: Path, name: str, factor: str) -> tuple[str, bytes, str]:
    (folder / "a.cu").write_text(_SOURCE)
    toolkit = Toolkit("installed", require_tool("nvcc").path, require_tool("ptxas").path, "")
    compile_cubin(toolkit, folder / "a.cu", "sm_90a", (f"FACTOR={factor}",), (), folder / name)
    return name, (folder / name).read_bytes(), "application/octet-stream"


@needs_sass
def test_two_builds_are_compared_and_what_is_allowed_changes_no_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    app = page("changes", data, monkeypatch)
    old, new = _cubin(tmp_path, "old.cubin", "3.5f"), _cubin(tmp_path, "new.cubin", "4.5f")
    app.file_uploader[0].set_value([old])
    app.run()
    assert "functions changed" not in text(app)
    app.file_uploader[1].set_value([new])
    app.run()
    assert not app.exception
    assert "new.cubin against old.cubin" in text(app)
    assert "1 of 2 functions changed" in text(app)
    assert "sum constants" in text(app).replace("\t", " ")
    assert [button.label for button in app.get("download_button")] == ["CSV", "Markdown"]

    def unwanted(*_: object, **__: object) -> None:
        raise AssertionError("read twice")

    monkeypatch.setattr(uploads.documents_changes, "code_changes", unwanted)
    app.selectbox[0].set_value("resources").run()
    assert not app.exception
    assert "0 of them allowed: resources, or less" in text(app)


@needs_sass
def test_a_file_without_machine_code_is_one_line_with_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    app = page("changes", data, monkeypatch)
    app.file_uploader[0].set_value([_cubin(tmp_path, "old.cubin", "1.0f")])
    app.file_uploader[1].set_value([("new.cubin", b"no cubin at all", "application/octet-stream")])
    app.run()
    assert not app.exception
    assert "new.cubin" in text(app)
    assert str(tmp_path) not in text(app)
    assert "scratch" not in text(app)
