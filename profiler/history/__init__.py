"""What happened over versions and runs: trends, change points, the overview, the lineage, and baselines."""
