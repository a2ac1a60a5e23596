"""What a measurement would do, what it left, and what a machine can do, as rows and HTML.

That their JSON is what commands print is tested with the commands, which need a GPU or a compiler.
"""

from __future__ import annotations

import pytest

from profiler.collect.doctor import DoctorReport, ToolStatus
from profiler.collect.forecast import Forecast
from profiler.collect.gpu.messages import TorchProbeResult
from profiler.collect.plan import Job
from profiler.collect.summary import RunSummary
from profiler.collect.without_gpu import Dissection
from profiler.documents.collection import CollectionDocument, DissectionDocument, ForecastDocument
from profiler.documents.doctor import DoctorDocument
from profiler.errors import Exit
from tests import timed_runs
from tests.documents.printed import assert_html_escapes

RUN = timed_runs.run({"v1": 170e3}, 0)


@pytest.mark.slow
def test_a_forecast_has_a_row_a_job_and_counts_what_a_budget_leaves_out() -> None:
    jobs = ((Job("time", "<w>", ("v1", "v2"), seconds=60), 90.0), (Job("lean", "<w>", ("v1",)), None))
    document = ForecastDocument(Forecast(None, 100.0, 2, 1, jobs))
    first, second = document.to_frame().to_dict("records")
    assert (first["versions"], first["seconds"], first["ended_s"]) == ("v1, v2", 60, 90)
    assert document.rows()[1][4] is None
    assert second["stage"] == "lean"
    assert document.sentences == ("about 1.5 min; 1 of 2 jobs are left out by --budget 100 s",)
    assert_html_escapes(document, "<w>", "&lt;w&gt;")


def test_a_sealed_run_has_a_row_a_cell_and_the_code_of_its_summary() -> None:
    document = CollectionDocument(RunSummary(RUN), "no A/A floor for <medium> calls here")
    assert document.rows() == [("v1", timed_runs.WORKLOAD, "done", None)]
    assert document.exit_code == RunSummary(RUN).exit_code == Exit.PASS
    cells = document.to_dict()["cells"]
    assert cells == [{"version": "v1", "workload": timed_runs.WORKLOAD, "status": "done", "reason": None}]
    assert_html_escapes(document, "<medium>", "&lt;medium&gt;")


def test_a_dissection_says_what_stood_out_and_its_worst_is_the_code() -> None:
    document = DissectionDocument(Dissection(RUN, {}, (), ("v1 is <wrong>",), (), ("no nvdisasm",)), "data")
    assert document.exit_code == Exit.REGRESSION
    assert document.sentences == ("v1 is <wrong>", "no nvdisasm")
    assert document.to_dict()["place"] == "data"
    assert_html_escapes(document, "<wrong>", "&lt;wrong&gt;")


def test_a_machine_without_a_gpu_has_a_row_an_ability() -> None:
    torch: TorchProbeResult = {
        "status": "failed",
        "reason": "no torch",
        "torch": None,
        "cuda": None,
        "backends": {},
    }
    report = DoctorReport(
        "Linux", "3.12", None, None, {"g++": ToolStatus("/usr/bin/g++", "12")}, None, "no <GPU>", torch
    )
    document = DoctorDocument(report)
    by_ability = document.to_frame().set_index("ability")
    assert by_ability["works"].to_dict()["check on the CPU"] is True
    assert by_ability.loc["latency", "why"] == "no GPU"
    assert document.exit_code == Exit.UNJUDGED
    assert document.to_dict()["counters_reason"] == "no <GPU>"
    assert "Nothing can be measured on this machine" in document._repr_html_()
