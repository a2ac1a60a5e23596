"""The pages that app.py lists, one file each: filters, then data, then what the views make of it."""
