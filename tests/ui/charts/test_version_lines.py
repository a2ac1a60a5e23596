"""Axes of versions: numbers that hardly differ do not look far apart."""

from profiler.ui.charts import version_lines
from profiler.ui.charts.version_lines import MetricAxis, VersionLine


def heights(*numbers: float, least_span: float) -> list[float]:
    versions = [VersionLine(str(number), (number,)) for number in numbers]
    metric = MetricAxis("latency", "log", "ns", True, least_span)
    return [trace["y"][0] for trace in version_lines.lines([metric], versions)["data"]]


def test_numbers_that_hardly_differ_stand_together_in_the_middle_of_a_logarithmic_axis() -> None:
    low, high = heights(100.0, 100.5, least_span=1.25)
    assert 0.45 < low < high < 0.55


def test_numbers_far_apart_span_the_axis() -> None:
    assert heights(100.0, 300.0, least_span=1.25) == [0.0, 1.0]
