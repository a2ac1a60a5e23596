"""What the pages ask for, cached until the data changes: here alone the dashboard reads the store."""
