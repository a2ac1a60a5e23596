"""The programs that hold the GPU, a process each. They need the standard library, numpy and torch alone."""
