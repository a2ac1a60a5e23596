"""How rule results read on the pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.compare.comparison import compare
from profiler.compare.pair_comparison import PairComparison
from profiler.compare.resolve_names import side_of_report
from profiler.evidence import metric_table
from profiler.reports import read
from profiler.ui.views import rule_results


def pair_of(reports: Path, kernel: str) -> PairComparison:
    a, b = (
        side_of_report(read.read_report(reports / "ncar" / f"{name}.ncu-rep"), name)
        for name in ("MW_Baseline", "MW_DivToMult")
    )
    return compare(a, b, metric_table.load_metrics(), kernel=kernel).pairs[0]


@pytest.mark.slow
def test_the_pair_of_an_edited_kernel_lists_what_is_new_and_counts_what_stayed(reports: Path) -> None:
    pair = pair_of(reports, "279")
    output = rule_results.changed(pair)
    assert output.index("new in B") < output.index("long_scoreboard") < output.index("changed")
    assert "10 the same in both" in output
    assert "High Utilization → Balanced" in output
    assert "gone from A" not in output
    assert '<b class="nw">High Throughput</b>' in output
    assert rule_results.caption(pair) == "in their own words; 2 new, 2 changed"


@pytest.mark.slow
def test_a_pair_whose_rules_stayed_says_so_in_one_line(reports: Path) -> None:
    pair = pair_of(reports, "309")
    assert "new in B" not in rule_results.changed(pair)
    assert rule_results.caption(pair).endswith("none new, gone or changed")


def test_an_old_report_says_that_its_rules_carry_no_estimate(reports: Path) -> None:
    rules = read.read_report(reports / "ncar" / "MW_Baseline.ncu-rep").launches[0].rules
    assert "No estimates" in rule_results.ranked(rules)
    assert "<td" not in rule_results.ranked(())
    assert "holds no rule results" in rule_results.ranked(())


def test_the_way_to_nsight_compute_names_the_file_and_quotes_it() -> None:
    assert "ncu-ui report75.ncu-rep" in rule_results.how_to_open("report75.ncu-rep")
    assert "ncu-ui &#x27;my report.ncu-rep&#x27;" in rule_results.how_to_open("my report.ncu-rep")
    assert rule_results.how_to_open("kernel.details.csv") == rule_results.how_to_open(None) == ""


def test_what_a_rule_says_cannot_break_the_page(reports: Path) -> None:
    from dataclasses import replace

    rule = read.read_report(reports / "ncar" / "MW_Baseline.ncu-rep").launches[0].rules[0]
    assert "<script" not in rule_results.ranked([replace(rule, title="<script>", message="<script>")])
