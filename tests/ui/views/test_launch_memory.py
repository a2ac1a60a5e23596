"""The memory diagram: widths are bytes, 0 is dotted with a 0, what is missing a hatch with the word."""

from __future__ import annotations

import re
from dataclasses import replace

from profiler.documents.launch import LaunchDocument, launch_document, longest_launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import State, Value, pack_values
from profiler.ui import addresses
from profiler.ui.views import launch_bars, launch_head, launch_memory
from tests.documents.test_comparison import side

TABLE = load_metrics()
TRAFFIC = {
    "gpu__time_duration.sum": Value(1e6, "ns"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": Value(1000, "sector"),
    "l1tex__m_xbar2l1tex_read_bytes.sum": Value(16000, "byte"),
    "l1tex__m_l1tex2xbar_write_bytes.sum": Value(0, "byte"),
    "l1tex__t_sector_hit_rate.pct": Value(50.0, "%"),
}


def document(values: dict[str, Value], before: dict[str, Value] | None = None) -> LaunchDocument:
    def of(own: dict[str, Value], label: str, **opcodes: float) -> object:
        (launch,) = side(1).launches
        launch = replace(launch, values=pack_values(own), opcodes=opcodes)
        return longest_launch(replace(side(1), label=label, launches=(launch,), compute_capability="8.0"))

    baseline = None if before is None else of(before, "before", FFMA=50.0)
    return launch_document(of(values, "now", FFMA=100.0), TABLE, baseline)  # type: ignore[arg-type]


def heights(diagram: str) -> list[float]:
    """The width of each drawn line, from the corners of its arrow."""
    corners = re.findall(r'<polygon class="flow[^"]*" points="\S+?,(\S+) \S+ .*?,(\S+)"', diagram)
    return [float(last) - float(first) for first, last in corners]


def test_lines_are_as_wide_as_their_bytes() -> None:
    diagram = str(launch_memory.diagram(document(TRAFFIC)))
    loads, from_l2 = heights(diagram)
    assert loads == 2 * from_l2  # 32,000 and 16,000 bytes
    assert "32 kB loads" in diagram.replace("32.0", "32")


def test_zero_is_dotted_and_missing_is_hatched_with_the_word() -> None:
    diagram = str(launch_memory.diagram(document(TRAFFIC)))
    assert diagram.count('class="zero"') == 1
    assert ">0 B<" in diagram
    assert diagram.count('class="missing"') == 5  # stores, DRAM both ways, shared memory both ways
    assert diagram.count(">not collected<") == 5 + 3  # and the hit rate and throughput of boxes
    assert ">hit<" in diagram  # of L2, in two lines
    failed = TRAFFIC | {"dram__bytes_read.sum": Value(None, "byte", state=State.FAILED)}
    assert ">failed (NaN)<" in str(launch_memory.diagram(document(failed)))


def test_without_a_baseline_nothing_is_said_of_one() -> None:
    alone, pair = document(TRAFFIC), document(TRAFFIC, TRAFFIC)
    assert "was" not in launch_memory.diagram(alone)
    assert 'class="tick"' not in launch_memory.diagram(alone)
    assert 'class="tick"' in launch_memory.diagram(pair)
    assert "<b style" not in launch_bars.instruction_mix(alone)
    assert "<b style" in launch_bars.instruction_mix(pair)
    assert launch_head.beside(alone) == ""


def test_an_opcode_leads_to_its_places_in_the_code() -> None:
    code = addresses.LaunchCode("report", "7")
    assert "href" not in launch_bars.instruction_mix(document(TRAFFIC))
    table = launch_bars.instruction_mix(document(TRAFFIC), code)
    opcode = document(TRAFFIC).sections.instruction_mix[0].label
    assert f"find={opcode}" in table
    assert "view=sass" in table


def test_the_same_links_stand_as_rows_for_a_phone() -> None:
    rows = str(launch_memory.rows(document(TRAFFIC)))
    assert rows.count("<tr>") == 1 + 8  # the head and a row a link
    assert "L2 → L1/TEX" in rows


def test_names_are_escaped_in_the_diagram() -> None:
    own = document(TRAFFIC)
    assert "<script>" not in launch_memory.diagram(own)
    subject = replace(own.subject, side=replace(own.subject.side, label="<script>"))
    pair = replace(own, baseline=subject)
    assert "<script>" not in launch_bars.speed_of_light(pair)
