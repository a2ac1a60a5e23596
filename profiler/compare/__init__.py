"""What differs between two sides: names to sides, launches to pairs, noise to verdicts."""
