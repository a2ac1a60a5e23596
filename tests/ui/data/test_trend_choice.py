"""Which kernels and steps the Trends page shows."""

import pytest

from profiler.errors import UnknownName
from profiler.ui.data import trend_choice
from tests.ui.views.test_history_steps import history, series
from tests.ui.views.test_trend_panels import kernel, ns, point


def test_a_filter_that_fits_no_kernel_names_those_that_are_there() -> None:
    with pytest.raises(UnknownName, match="no kernel matches 'x'; there are k"):
        trend_choice.trends_of_kernels({"duration": [kernel("k", point("v1", ns(1e6)))]}, [], "x")


def test_a_filter_keeps_the_metrics_that_other_kernels_lack() -> None:
    by_metric = {"duration": [kernel("k", point("v1", ns(1e6)))], "occupancy": []}
    assert trend_choice.trends_of_kernels(by_metric, by_metric["duration"], "k") == (
        by_metric,
        by_metric["duration"],
    )


def test_only_the_kernels_that_are_shown_keep_their_steps() -> None:
    a, b = history(series((5e6, 6e6), "a#0")), history(series((5e6, 6e6), "b#0"))
    assert trend_choice.histories_of_lines([a, b], [b.series]) == [b]
