"""Pass or fail: versions, runs and reports judged against their baselines, and what somebody let pass."""
