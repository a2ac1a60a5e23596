"""The pages that app.py lists, a file each: filters, data, then what the views make of it."""
