"""What kernels are called on screen."""

from profiler.evidence.values import Evidence
from profiler.history.trend import Trend
from profiler.ui.data.part_names import line_names, short_names


def test_a_kernel_that_ran_once_goes_without_its_number() -> None:
    assert short_names(["a#0", "r/a#0", "b#0", "b#1"]) == {
        "a#0": "a",
        "r/a#0": "r/a",
        "b#0": "b#0",
        "b#1": "b#1",
    }


def test_a_kernel_of_two_names_shows_both_before_its_number() -> None:
    trends = [
        Trend("duration", "d", "lower", "ns", "f", None, None, Evidence.MEASURED, "ncu", part, "b", (), names)
        for part, names in (("b#0", ("a",)), ("b#1", ("a",)), ("c#0", ("d", "e")))
    ]
    assert list(line_names(trends).values()) == ["b (also a)#0", "b (also a)#1", "c (also d, e)"]
