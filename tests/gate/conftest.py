"""What the tests of the gate share."""

import pytest

from profiler.evidence.metric_table import MetricTable, load_metrics


@pytest.fixture(scope="session")
def table() -> MetricTable:
    """metrics.txt as it is."""
    return load_metrics()
