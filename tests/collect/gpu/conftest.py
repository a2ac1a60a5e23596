"""What tests of the programs share: a torch whose GPU is the host, and libraries that are compiled once."""

from __future__ import annotations

import shutil
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from profiler.collect.gpu.messages import VersionCode
from tests import hostgpu

FOLDER = Path(__file__).parent
SDPA = VersionCode("sdpa", callable="profiler.catalog.torch_backends:sdpa")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes a library compiles it."""
    for item in items:
        if item.path.parent == FOLDER and "version" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.compiler("g++"))


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """torch, with the host in the place of its GPU."""
    pytest.importorskip("torch", reason="torch is not installed")
    hostgpu.Graph.replays = 0
    return hostgpu.install(monkeypatch)


@pytest.fixture(scope="session")
def version(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., VersionCode]:
    """Makes a version for the host with an error planted, which is also its id; without one it is `right`."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++")
    folder = tmp_path_factory.mktemp("libraries")
    made: dict[str, Path] = {}

    def make(**planted: float) -> VersionCode:
        name = "_".join(planted) or "right"
        key = repr(sorted(planted.items()))
        if key not in made:
            made[key] = hostgpu.library(folder / str(len(made)), **planted)
        return VersionCode(name, library=str(made[key]))

    return make
