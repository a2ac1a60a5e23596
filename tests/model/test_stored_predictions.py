"""Predictions as a run keeps them: there and back, damaged files, and what pages make of them."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profiler.bundles import bundle
from profiler.bundles.location import LocalRoot
from profiler.bundles.run import COLLECT, Attachment, Facts, Result, Run
from profiler.catalog.attention import ATTENTION
from profiler.catalog.catalog import load_catalog
from profiler.errors import BadBundle
from profiler.evidence.values import Evidence, Value
from profiler.explain.time_identity import TimeIdentity, split_time
from profiler.history.version_latency import VersionLatency
from profiler.model.error_table import load_errors
from profiler.model.launch_model import HitRates, LaunchModel
from profiler.model.prediction import predict_counted
from profiler.model.stored_predictions import (
    FILE,
    KIND,
    StoredPredictions,
    find_predictions,
    pack_predictions,
    predicted_ratio,
    range_note,
    unpack_predictions,
)
from profiler.model.version_prediction import VersionPrediction
from profiler.store.readable_index import open_store
from profiler.ui.views import hot_table, lineage_table, modelled_pair
from tests.model.test_cycle_simulation import A100
from tests.model.test_prediction import conflicting

ERRORS = load_errors()
CREATED = datetime(2026, 11, 23, tzinfo=UTC)
WORKLOAD = ATTENTION.acceptance_workloads("fp16")[0]


def prediction(version: str, wavefronts: float) -> VersionPrediction:
    """A version whose kernel waits for shared memory."""
    (entry,) = load_catalog().pick([version])
    launch = predict_counted("k", LaunchModel(conflicting(wavefronts)), HitRates(0.0, 1.0, 1.0), ERRORS)
    lines = tuple(("/elsewhere/v2d.cu", 1 + position % 2) for position in range(200))
    return VersionPrediction(entry, WORKLOAD, A100, "sm_80", (replace(launch, sources=lines),))


@pytest.fixture(scope="module")
def packed() -> bytes:
    unknown = VersionPrediction(
        load_catalog().by_id["v1"], WORKLOAD, A100, "sm_80", no_model="no model of `X`"
    )
    return pack_predictions([prediction("v2d_a", 8), prediction("v2d_b", 1), unknown], ERRORS)


@pytest.fixture(scope="module")
def stored(packed: bytes) -> StoredPredictions:
    return unpack_predictions(packed, "run", CREATED)


def test_predictions_come_back_as_they_were_kept(stored: StoredPredictions) -> None:
    slow, fast, unknown = stored.predictions
    assert stored.workloads == (WORKLOAD.label,)
    assert stored.gpus == ("A100-80GB",)
    assert slow.time_ns == prediction("v2d_a", 8).likely_ns
    assert slow.limiter == "L1 data"
    assert {name for name, _ in slow.lines} == {"v2d.cu"}  # without its folder
    assert math.isclose(sum(slow.lines.values()), 1, abs_tol=0.05)
    assert math.isclose(sum(slow.instructions.values()), 1, abs_tol=0.3)
    assert unknown.time_ns is None
    assert unknown.no_model == "no model of `X`"
    assert stored.of("v2d_b", WORKLOAD.label, "A100-80GB") is fast
    assert set(stored.on(f"{WORKLOAD.label} fp8", "A100-80GB")) == {"v2d_a", "v2d_b", "v1"}
    assert stored.of_code("v2d_a", "sm_80") is slow
    assert stored.of_code("v1", "sm_80") is None


def test_the_causes_of_a_modelled_difference_add_up(stored: StoredPredictions) -> None:
    slow, fast, _ = stored.predictions
    before, after = (TimeIdentity(**side.factors, stalls_whole=True) for side in (slow, fast))
    assert before.modelled_us == pytest.approx(before.time_us)
    split = split_time(before, after)
    assert before.time_us is not None
    assert after.time_us is not None
    assert sum(term.us for term in split.terms) + split.residue_us == pytest.approx(
        after.time_us - before.time_us
    )
    assert split.total("waiting") < 0.8 * split.delta_us < 0
    assert abs(split.residue_us) < 1e-6 * before.time_us


def sealed(
    root: LocalRoot, folder: Path, name: str, created: datetime, content: bytes, *versions: str
) -> None:
    """A run of versions whose compiler's facts it has, with a file of predictions."""
    facts = Facts(Evidence.STATIC, "main", {"registers": Value(40, "register/thread")}, "sm_80", "", {})
    results = tuple(Result("attention", version, facts=(facts,)) for version in versions)
    file = folder / name
    file.write_bytes(content)
    entry = Attachment(KIND, FILE, sha256(content).hexdigest(), len(content), FILE)
    bundle.seal(root, Run(name, COLLECT, created, {}, results, (), (entry,)), {FILE: file})


def test_a_run_of_a_few_versions_leaves_the_others_their_times(packed: bytes, tmp_path: Path) -> None:
    root = LocalRoot(tmp_path / "data")
    newer = pack_predictions([prediction("v2d_b", 4)], ERRORS)
    sealed(root, tmp_path, "whole", CREATED, packed, "v2d_a", "v2d_b", "v1")
    sealed(root, tmp_path, "few", CREATED + timedelta(days=1), newer, "v2d_b")
    found = find_predictions(root, open_store(str(tmp_path / "data")), "attention")
    assert found is not None
    (alone,) = unpack_predictions(newer, "few", CREATED).predictions
    slow, _, unknown = unpack_predictions(packed, "whole", CREATED).predictions
    assert found.predictions == (slow, unknown, alone)
    assert found.run_id == "few", "the newest"
    assert found.note == range_note(ERRORS, prediction("v2d_b", 4).launches), "both runs say the same"


def test_the_note_of_an_older_run_has_the_words_of_now_where_its_ranges_are_nows(tmp_path: Path) -> None:
    """The same ranges are not said to rest on two numbers of launches."""
    root = LocalRoot(tmp_path / "data")
    low, high = ERRORS.cycles_range(1.0, has_traffic=True, has_controls=True, has_addresses=True)
    for version, width in (("v2d_a", 1.0), ("v2d_b", 2.0)):
        content = json.loads(gzip.decompress(pack_predictions([prediction(version, 4)], ERRORS)))
        (one,) = content["predictions"]
        one |= {"time_ns": 100.0, "low_ns": 100 * low / width, "high_ns": 100 * high * width}
        older = gzip.compress(json.dumps({**content, "note": f"older words, {width}"}).encode())
        sealed(root, tmp_path, version, CREATED, older, version)
    found = find_predictions(root, open_store(str(tmp_path / "data")), "attention")
    assert found is not None
    now = f"over {ERRORS.launches_behind(has_traffic=True)} public launches with measured traffic"
    assert now in found.note
    assert "older words, 1.0" not in found.note
    assert "older words, 2.0" in found.note, "its ranges are of other errors"


def test_the_fastest_are_those_that_the_model_cannot_tell_apart(stored: StoredPredictions) -> None:
    slow, fast, _ = stored.predictions
    assert fast.time_ns is not None
    close = replace(fast, version="close", time_ns=1.17 * fast.time_ns)
    apart = replace(fast, version="apart", time_ns=1.19 * fast.time_ns)
    several = replace(stored, predictions=(*stored.predictions, close, apart))
    names = ["close", "apart", "v2d_a", "v1", "v2d_b", "never predicted"]
    assert [found.version for found in several.fastest(names)] == ["close", "v2d_b"]
    assert several.fastest(["v1"]) == [], "it has no model"
    assert [found.version for found in stored.fastest([slow.version])] == [slow.version]


@pytest.mark.parametrize(
    "damage",
    [b"", b"no gzip", gzip.compress(b"{}"), gzip.compress(b'{"predictions":[1]}')],
    ids=["empty", "no gzip", "no predictions", "a number"],  # what gzip makes changes with the second
)
def test_a_damaged_file_is_named(damage: bytes) -> None:
    with pytest.raises(BadBundle, match=r"run r1: predictions/times.json.gz is damaged"):
        unpack_predictions(damage, "r1", CREATED)


def test_a_cut_file_is_damaged(packed: bytes) -> None:
    with pytest.raises(BadBundle):
        unpack_predictions(packed[:-20], "r1", CREATED)


def test_a_small_modelled_difference_is_unclear() -> None:
    assert predicted_ratio(105.0, 100.0, "a", ERRORS).word == "unclear"
    assert predicted_ratio(10.0, 100.0, "a", ERRORS).word == "faster"
    assert predicted_ratio(1000.0, 100.0, "a", ERRORS).word == "slower"


def test_pages_show_them_beside_their_parent(stored: StoredPredictions) -> None:
    slow, fast, _ = stored.predictions
    lineage = load_catalog()

    def status(name: str, ancestor: str | None) -> Any:
        version = SimpleNamespace(id=name)
        return SimpleNamespace(
            version=version, correct_ancestor=lineage.by_id[ancestor] if ancestor else None
        )

    predicted = stored.on(WORKLOAD.label, "A100-80GB")
    cell = lineage_table._modelled_time(status("v2d_b", "v2d_a"), predicted, None)
    assert "modelled, not measured" in cell
    assert f"{(fast.time_ns or 0) / (slow.time_ns or 1):.2f} × v2d_a" in cell
    assert "no model" in lineage_table._modelled_time(status("v1", None), predicted, None)
    # Once its GPU has measured the version, that stands in the parent's place.
    for factor, words in ((0.95, "in the range"), (0.01, "outside the range")):
        measured = VersionLatency((fast.time_ns or 0) * factor, "events", "run")
        beside = lineage_table._modelled_time(status("v2d_b", "v2d_a"), predicted, measured)
        assert f"{1 / factor:.2f} × measured" in beside
        assert words in beside
    assert "limited by L1 data" in lineage_table.limiter_words(slow)
    (shown,) = modelled_pair.pairs(stored, "v2d_a", "v2d_b")
    table = modelled_pair.table([shown])
    assert "faster" in table
    assert "A100-80GB" in table
    assert "stall: wait (fixed latency)" in modelled_pair.causes(*shown)
    assert "Modelled, not measured" in hot_table.time_note(slow, stored.note)
