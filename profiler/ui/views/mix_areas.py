"""The stall and opcode mix of one kernel over runs or versions, as the charts that stand under its line."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.history.stall_shares import MixPoint
from profiler.ui.charts import share_areas
from profiler.ui.charts.share_areas import Mix
from profiler.ui.charts.style import Figure
from profiler.ui.data.run_axis import RunAxis
from profiler.ui.views.trend_panels import Picture

STALLS = "stall mix of {}, % of warp latency"
OPCODES = "opcode mix of {}, % of warp instructions executed"


def chart(
    points: Sequence[MixPoint], title: str, part: str, axis: RunAxis, picture: Picture
) -> tuple[Figure, str] | None:
    """The areas and the same in words; None where no run that is shown has a share.

    `part` is the kernel; `picture` stands above and has the same axis and gutter.
    """
    mixes = []
    for found in points:
        x = axis.x_of(found.point)
        if x is not None:
            shares = "\n".join(f"{name}: {share:.1f} %" for name, share in list(found.shares.items())[::-1])
            words = f"{found.point.version} {found.point.created:%Y-%m-%d %H:%M}\n{shares}"
            mixes.append(Mix(x, found.shares, words, found.gap))
    if not any(mix.shares for mix in mixes):
        return None
    mixes.sort(key=lambda mix: mix.x)
    figure = share_areas.figure(title, f"measured, {part}", mixes, picture.axis, picture.gutter)
    return figure, f"{title} over {len(mixes)} places"
