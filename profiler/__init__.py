"""Attention-kernel profiler: is this version right, is it faster, why, and did anything get worse."""

__version__ = "0.1.0"
