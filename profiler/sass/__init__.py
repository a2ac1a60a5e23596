"""Machine code: read, aligned with other machine code, its hot spots, and what runs keep of it."""
