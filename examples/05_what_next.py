"""At most six statements about a report against another: each with its share of the time and its evidence."""

import made_reports

import profiler

before, after = made_reports.write()
insights = profiler.insights(after, against=before)
for statement in insights.statements:
    print(f"- {statement.kind}: {statement.text}")
    if statement.lever:
        print(f"  → {statement.lever}")
