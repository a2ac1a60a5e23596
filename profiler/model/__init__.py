"""Machine code run on the CPU: how often each instruction is executed, and what its accesses cost."""
