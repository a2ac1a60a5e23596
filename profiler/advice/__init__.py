"""Advice on a version: what limits it, what changed and what to try next, each with its numbers."""
