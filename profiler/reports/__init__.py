"""Reports of Nsight Compute, .ncu-rep files and CSV exports, read into launches in a process apart."""
