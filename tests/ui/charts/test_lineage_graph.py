"""The lanes of a lineage: nothing crosses, edges meet their dots, the path to the best is straight."""

import re

from profiler.ui.charts import lineage_graph
from profiler.ui.charts.lineage_graph import VersionNode

#      0 ─ 1 ─ 2 ─ 5 (path)      3, 4: branches of 0 and 1
NODES = [
    VersionNode(None, "best", True),
    VersionNode(0, "wrong", True),
    VersionNode(0, "good"),
    VersionNode(1, "wrong"),
    VersionNode(2, "good"),
    VersionNode(1, "best", True),
    VersionNode(5, "planned"),
]


def test_the_path_has_the_first_lane_and_branches_keep_clear_of_each_other() -> None:
    assert lineage_graph.assign_lanes(NODES) == [0, 0, 1, 2, 1, 0, 0]


def test_a_lane_is_used_again_once_it_is_free() -> None:
    nodes = [
        VersionNode(None, "best", True),
        VersionNode(0, "good"),
        VersionNode(0, "best", True),
        VersionNode(2, "good"),
        VersionNode(2, "best", True),
    ]
    assert lineage_graph.assign_lanes(nodes) == [0, 1, 0, 1, 0]


def test_roots_of_their_own_stand_beside_each_other() -> None:
    assert lineage_graph.assign_lanes(
        [VersionNode(None, "good"), VersionNode(None, "good"), VersionNode(0, "good")]
    ) == [0, 1, 0]


def test_every_row_is_one_svg_of_one_size_with_one_dot() -> None:
    pictures = lineage_graph.row_pictures(NODES)
    assert len(pictures) == len(NODES)
    assert {re.search(r'width="(\d+)" height="(\d+)"', one).groups() for one in pictures} == {("70", "46")}  # type: ignore[union-attr]
    assert [len(re.findall("<circle", one)) for one in pictures] == [1] * len(NODES)


def test_lines_run_through_rows_between_parent_and_child() -> None:
    pictures = lineage_graph.row_pictures(NODES)
    assert 'class="t" d="M11 0V46"' in pictures[3]  # 1 to 5 passes
    assert 'class="l" d="M33 0V46"' in pictures[3]  # 2 to 4 passes
    assert 'class="d"' in pictures[6]
    assert pictures[0].count('class="l" d="M11 31C') == 1  # the bend towards lane 1


def test_no_node_is_no_picture() -> None:
    assert lineage_graph.row_pictures([]) == []
