"""What is worse now in the index, since when, how sure, and why."""
