"""Whether a candidate is right, what it costs and whether it is better, for untrusted code."""
