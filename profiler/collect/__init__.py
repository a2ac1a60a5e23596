"""Measuring on this machine: settings become a plan, its jobs are run apart, what has ended is sealed."""
