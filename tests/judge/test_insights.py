"""What a judged candidate's numbers suggest, each statement with the numbers behind it; and what is kept."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from profiler.build.library import ResourceUsage
from profiler.errors import ProfilerError
from profiler.judge.artefacts import keep_artefacts
from profiler.judge.compilation import CandidateCode, Kernel
from profiler.judge.insights import insights_of_launch

LAUNCH: dict[str, Any] = {
    "kernel": "attend",
    "limiter": "DRAM",
    "limiter_saves": 0.4,
    "bank_conflicts": 300.0,
    "shared_wavefronts": 1000.0,
    "inputs": {"threads": 128, "shared_bytes": 40960},
}


def kernel(spilled: int = 0, **opcodes: int) -> Kernel:
    usage = ResourceUsage("attend", "sm_90a", 128, spilled, spilled, 0, 1024, 1, "")
    named = {name.replace("_", "."): count for name, count in opcodes.items()}
    return Kernel("attend", (), 128, usage, named, ())


def test_what_limits_it_comes_first_and_then_the_rules_of_the_advice() -> None:
    rows = insights_of_launch(LAUNCH, kernel(64, FFMA=40, LDG_E=12, STS=4), "sm_90a", "1x8x512x64")
    assert len(rows) == 6
    assert (rows[0]["id"], rows[0]["share_of_time"], rows[0]["evidence"]) == ("limiter", 0.4, "modelled")
    by_id = {row["id"]: row for row in rows}
    assert {"spills", "tensor:unused", "copies"} <= by_id.keys()
    assert by_id["spills"]["evidence"] == "static"
    assert "1x8x512x64 sm_90a" in by_id["spills"]["text"]
    for row in rows:
        assert row["lever"]
        assert row["metrics"], row["id"]  # no statement without its numbers
        assert all(isinstance(metric["value"], int | float) for metric in row["metrics"])
    spilled = {metric["name"]: metric["value"] for metric in by_id["spills"]["metrics"]}
    assert spilled == {"static__spill_bytes": 128, "static__registers": 128}


def test_conflicts_ask_for_a_swizzle_and_go_with_them() -> None:
    plain = {**LAUNCH, "limiter": "balanced"}
    tensor = kernel(HMMA_16816_F32=64, LDSM=16, LDGSTS_E=8)
    (conflicts,) = [
        row for row in insights_of_launch(plain, tensor, "sm_90a", "w") if row["id"] == "conflicts"
    ]
    assert "bank conflicts" in conflicts["techniques"]
    values = {metric["name"]: metric["value"] for metric in conflicts["metrics"]}
    assert values["modelled__bank_conflicts"] == 300
    assert values["modelled__shared_wavefronts_ideal"] == 700
    without = insights_of_launch({**plain, "bank_conflicts": 0.0}, tensor, "sm_90a", "w")
    assert "conflicts" not in {row["id"] for row in without}


def test_machine_code_listing_and_resources_are_kept(tmp_path: Path) -> None:
    code = CandidateCode(tmp_path, "sm_90a", {"attend": kernel(HMMA=3)}, (), (), "id")
    code.cubin.write_bytes(b"a cubin")
    with pytest.raises(ProfilerError, match="no listing"):
        keep_artefacts(code, {}, tmp_path / "kept")
    (tmp_path / "sm_90a.sass.gz").write_bytes(gzip.compress(b"Function : attend"))
    kept = keep_artefacts(code, {"w": {"launches": []}}, tmp_path / "kept")
    assert set(kept) == {"cubin", "sass", "resources", "predictions"}
    assert Path(kept["cubin"]).read_bytes() == b"a cubin"
    assert "attend" in Path(kept["sass"]).read_text()
    resources = json.loads(Path(kept["resources"]).read_text())
    assert resources["attend"]["registers"] == 128
    assert resources["attend"]["opcodes"] == {"HMMA": 3}
    (tmp_path / "file").write_text("")
    with pytest.raises(ProfilerError):
        keep_artefacts(code, {}, tmp_path / "file")
