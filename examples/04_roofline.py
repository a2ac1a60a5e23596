"""Where a launch stands under the roofs of its GPU, and which metrics the others would take."""

import made_reports

import profiler

_, after = made_reports.write()
roofline = profiler.roofline(after)
print(*roofline.sentences, sep="\n")
for point in roofline.rooflines[0].points:
    where = f"{point.precision} from {point.level}"
    print(f"{where}: {point.intensity:.1f} operations/byte, {point.bound} is the limit")
lacking = roofline.rooflines[0].missing
print("roofs that lack metrics:", ", ".join(lacking))
