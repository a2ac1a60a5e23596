"""The dashboard: `pages` a file each, drawn of `views` and `charts` from what `data` reads."""
