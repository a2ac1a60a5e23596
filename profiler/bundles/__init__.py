"""Runs, and the sealed bundles on disk that are the truth about them, with people's decisions beside them."""
