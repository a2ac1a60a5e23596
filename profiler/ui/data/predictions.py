"""The modelled times that a family's newest run keeps."""

from __future__ import annotations

from profiler.bundles.location import open_root
from profiler.model.stored_predictions import StoredPrediction, StoredPredictions, find_predictions
from profiler.ui.addresses import CompiledKey, parse_version
from profiler.ui.data.cache import cached
from profiler.ui.data.index import DataVersion, store


@cached()
def predictions(data_version: DataVersion, family: str) -> StoredPredictions | None:
    """The modelled times of the family's versions; None where no run keeps any."""
    return find_predictions(open_root(), store(), family)


def of_code(data_version: DataVersion, key: CompiledKey) -> tuple[StoredPrediction, str] | None:
    """The modelled time of a version's code with its shares by line, and what ranges mean; None without."""
    name = parse_version(key.version)
    stored = predictions(data_version, name.family)
    found = stored.of_code(name.version, key.arch) if stored else None
    return (found, stored.note) if stored and found else None
