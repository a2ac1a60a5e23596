"""The dashboard: each page is a file, which shows `views` and `charts` of what `data` reads."""
