"""Why the time changed: causes in microseconds that add up to the change."""

import made_reports

import profiler

explanation = profiler.explain(profiler.compare(*made_reports.write()))
print(explanation.sentence)
causes = explanation.to_frame()
print(causes[["cause", "us", "share_of_a_pct"]].round(1).to_string(index=False))
assert abs(causes.us.sum() - causes.delta_us[0]) < 1e-6
