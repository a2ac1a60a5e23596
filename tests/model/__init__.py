"""Tests of profiler/model."""
