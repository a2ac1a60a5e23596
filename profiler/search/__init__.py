"""Candidates that a generator makes are judged, and the best are kept: a search that can be replayed."""
