"""Numbers that never travel without unit and state, the kinds of evidence, and what metrics.txt declares."""
