"""Read a report whole: its launches, and any metric by its exact ncu name."""

import made_reports

import profiler

path, _ = made_reports.write()
report = profiler.read_report(path)
print(f"{report.name}: {len(report.launches)} launch on {report.gpu}")
for launch in report.launches:
    value = launch.values.value("gpu__time_duration.sum")
    print(f"{launch.base_name}: {value.number} {value.unit}")
    print("not collected:", launch.values.value("l1tex__t_bytes.sum").state.words)
