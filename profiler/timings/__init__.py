"""Times that other programs wrote: files of benchmark tools, as timed calls by benchmark and problem size."""
