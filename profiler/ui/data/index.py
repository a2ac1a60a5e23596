"""The index, opened once a server, and the version of the data by which all answers here are cached."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from profiler.bundles.location import LocalRoot, open_root
from profiler.compare.kernel_pairs import Pairing, pairs_digest
from profiler.compare.noise_model import NoiseModel
from profiler.errors import ProfilerError
from profiler.evidence.metric_table import DEFAULT_PATH, MetricTable, load_metrics
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from profiler.store.sync import sync_store
from profiler.ui.data.cache import cached
from profiler.ui.errors import errors_shown

_SYNC_EVERY_S = 30.0  # how often a page looks for bundles that arrived beside the server


class DataVersion(NamedTuple):
    """What every answer depends on: a new version is a new key of every cache."""

    of_index: str
    of_metrics: str  # path and time of metrics.txt
    of_pairs: str = ""  # which kernels are declared to be one


@cached()
def store() -> Store:
    """The index, opened and brought up to date once a server."""
    opened = open_store()
    opened.freeze_loaded()
    _folder_at_start()
    return opened


@cached()
def _folder_at_start() -> tuple[int, int] | None:
    """Which folder the data lie in, as its device and inode; None where they lie in no folder."""
    root = open_root()
    return _identity(root.folder) if isinstance(root, LocalRoot) else None


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@cached(seconds=_SYNC_EVERY_S)
def _sync() -> None:
    """Take up bundles and decisions that arrived beside this server, as by `git pull`.

    Raises ProfilerError where the data folder was moved away or replaced: its index is still open here.
    """
    root, at_start = open_root(), _folder_at_start()
    if isinstance(root, LocalRoot) and at_start is not None and _identity(root.folder) != at_start:
        raise ProfilerError(
            f"{root.folder} is not the folder that this dashboard was opened on: it was moved or replaced. "
            "The page shows its last content; restore the folder, or restart `profiler dashboard`"
        )
    sync_store(root, store())


def current_version() -> DataVersion:
    """The version of the data now."""
    with errors_shown():  # old data stays visible where new cannot be read
        _sync()
    path = DEFAULT_PATH
    changed = path.stat().st_mtime_ns if path.exists() else 0
    return DataVersion(store().data_version(), f"{path}:{changed}", pairs_digest(open_root()))


@cached(2)
def metric_table(data_version: DataVersion) -> MetricTable:
    """metrics.txt."""
    return load_metrics()


@cached(2)
def noise(data_version: DataVersion) -> NoiseModel:
    """What the index knows of noise."""
    return NoiseModel.of_store(store)


@cached(2)
def pairing(data_version: DataVersion) -> Pairing:
    """Which kernels are one under two names, as people declared it; other pairs are proposed and say so."""
    return Pairing.of_data()
