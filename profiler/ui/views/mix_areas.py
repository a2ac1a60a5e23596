"""The stall and opcode mix of one kernel over runs or versions, as the charts that stand under its line."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.evidence.naming import brief_list
from profiler.evidence.opcodes import class_shares
from profiler.history.lineage import Lineage
from profiler.history.stall_shares import MixPoint
from profiler.ui.charts import share_areas
from profiler.ui.charts.share_areas import Mix
from profiler.ui.charts.style import Figure
from profiler.ui.data.run_axis import RunAxis
from profiler.ui.views.trend_panels import Picture

STALLS = "stall mix of {}, % of warp latency"
_OF_VERSIONS_PX = 260  # high, for the names of versions slant into it
CODE_NOTE = "Opcode mix: places in the code, not how often they run."
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


def of_versions(
    lineage: Lineage, versions: Sequence[str], size: str, arch: str, picture: Picture
) -> tuple[Figure, str]:
    """What each version's machine code consists of, a column a version, and the same in words."""
    mixes = []
    for x, version in enumerate(versions):
        status = lineage.by_id.get(version)
        launch = status.static.get((arch, size)) if status else None
        shares = class_shares(launch.opcodes) if launch and launch.opcodes else {}
        gap = "" if shares else "not collected"
        if status is not None and status.is_wrong:
            shares, gap = {}, status.state
        words = [version, *(f"{name}: {share:.1f} %" for name, share in list(shares.items())[::-1])]
        mixes.append(Mix(float(x), shares, "\n".join(words), gap, joined=False))
    place = picture.axis, picture.gutter, _OF_VERSIONS_PX
    figure = share_areas.figure("opcode mix, %", f"static, {size}, {arch}", mixes, *place)
    return figure, f"opcode mix of {brief_list(list(versions))}"
