"""The dashboard: each page is a file, which shows `views` and `charts` of what `data` reads.

To add a page: a module in `data`, one cached function of the state of the index, with no HTML; a module in
`views`, pure functions from that to HTML with the parts of `markup`, where the answer of a command has no
blocks for it (`views.answer` writes those); a module in `pages`, which has the title, the choices
(`controls`), one call for the data, an empty state that names the command which fills it, and the views;
and its line in the menu of `app.py`. Several controls, or a figure with its choices, are a module of
`sections`. A page has no arithmetic on measurements, no SQL and no paths, and what was chosen is in its
URL. Tests: the view on made values (`tests/ui/views/`), the page opened by `AppTest` (`tests/ui/`).
"""
