"""Write a comparison as Markdown for a pull request, as JSON for a program, and as a notebook's HTML."""

import json

import made_reports

import profiler

before, after = made_reports.write()
comparison = profiler.compare(before, after)
folder = before.parent
(folder / "comparison.md").write_text(comparison.to_markdown(), encoding="utf-8")
(folder / "comparison.json").write_text(json.dumps(comparison.to_dict()), encoding="utf-8")
(folder / "comparison.html").write_text(comparison._repr_html_(), encoding="utf-8")
print(comparison.to_markdown().splitlines()[0])
print(*sorted(path.name for path in folder.iterdir()), sep="\n")
