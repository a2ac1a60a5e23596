"""What kernels are called on screen."""

from profiler.ui.data.part_names import short_names


def test_a_kernel_that_ran_once_goes_without_its_number() -> None:
    assert short_names(["a#0", "r/a#0", "b#0", "b#1"]) == {
        "a#0": "a",
        "r/a#0": "r/a",
        "b#0": "b#0",
        "b#1": "b#1",
    }
