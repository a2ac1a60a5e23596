"""Why a launch takes the time it takes: the split of a change, the roofline, occupancy, and drill-downs."""
