"""Comparisons of sides that a test made, without an index."""

from __future__ import annotations

from typing import Any

from profiler.compare.judged import Judge
from profiler.compare.kernel_pairs import Pairing
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.documents.comparison import ComparisonDocument
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.side import Side


def compare_sides(
    a: Side,
    b: Side,
    table: MetricTable,
    noise: NoiseModel = UNKNOWN_NOISE,
    *,
    top: int | None = None,
    guess: bool = True,
    **options: Any,
) -> ComparisonDocument:
    """What `compare_names` answers of two sides where no run is known."""
    pairing = Pairing.of_data(None, (), propose=guess)
    return ComparisonDocument((Judge(table, noise, pairing, **options).sides(a, b),), top)
