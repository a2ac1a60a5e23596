"""Verdict rules as pure functions of numbers: each with its source and its assumptions."""
