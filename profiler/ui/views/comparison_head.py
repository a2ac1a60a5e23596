"""What stands above a comparison: which side is which, and whether the two may be compared."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.compare.comparability import CORRECTNESS
from profiler.compare.comparison import Comparison
from profiler.evidence.values import Evidence
from profiler.store.rows import VersionInfo
from profiler.ui import addresses, markup
from profiler.ui.markup import Html


def page_head(
    view: addresses.Diff, versions: Sequence[VersionInfo], comparison: Comparison | None, kernel: str
) -> Html:
    """The title that says which side is which, once for the whole page, and where the reader is."""
    label_a, label_b = (markup.muted(markup.code(side)) for side in "AB")
    names = [addresses.parse_version(text) for text in (view.a, view.b)]
    a, b = (_side_name(name) for name in names)
    title = markup.join((label_a, a, "→", label_b, b))
    context: list[object] = [" and ".join(sorted({name.family for name in names} - {""}))]
    if kernel:
        context.append(kernel)
    if comparison:
        sides = (comparison.a, comparison.b)
        gpus = [
            ", ".join(side.gpus) or ("" if side.evidence is Evidence.MODELLED else "unknown GPU")
            for side in sides
        ]
        context.append(" and ".join(dict.fromkeys(filter(None, gpus))))
        context.append(markup.evidence_badge(comparison.a.evidence.value))
    return markup.page_head(title, markup.join((markup.join(context, " · "), view.links(versions))))


def tab_title(view: addresses.Diff) -> str:
    """The two sides in few words, for the browser's tab."""
    a, b = (addresses.parse_version(text).version for text in (view.a, view.b))
    return f"{a} → {b}"


def comparability(comparison: Comparison) -> Html:
    """The grey strip: whether the two may be compared, what is the same, what differs, what is not known."""
    unknown = comparison.unknown
    head = "Comparable: yes" if comparison.comparable else "Comparable: no"
    if comparison.comparable and unknown:
        head += f", with {len(unknown)} unknown" + ("s" if len(unknown) > 1 else "")
    parts: list[object] = [head]
    for difference in comparison.blocked_by:
        # A wrong side is named in a line of its own, with its reason.
        is_wrong = difference.field == CORRECTNESS
        words = "wrong results have no speed and no verdict" if is_wrong else f"≠ {difference.words}"
        parts.append(markup.tag("b", words))
    if comparison.same:
        parts.append(markup.muted("same: " + ", ".join(field for field, _ in comparison.same)))
    parts += [
        markup.muted(difference.words)
        for difference in comparison.differences
        if difference.kind != "unknown" and not difference.blocks
    ]
    unknown_in_both = [item.field for item in unknown if item.a is None and item.b is None]
    if unknown_in_both:
        parts.append(f"? not recorded on either side: {', '.join(unknown_in_both)}")
    parts += [f"? {item.words}" for item in unknown if item.field not in unknown_in_both]
    return markup.grey_strip(parts)


def wrong_sides(comparison: Comparison) -> list[Html]:
    """A line for each side whose results are wrong: it has no speed."""
    return [
        markup.note(
            markup.join(
                (
                    markup.status_tag("wrong"),
                    markup.tag("b", f"{label} {(side.version or side.label)}:"),
                    side.wrong,
                )
            )
        )
        for label, side in (("A", comparison.a), ("B", comparison.b))
        if side.wrong
    ]


def _side_name(name: addresses.VersionName) -> Html:
    """A side without its family; of a version as one run has it, when that run was."""
    version = markup.code(name.version)
    if not name.run_id:
        return version
    return markup.join((version, markup.tag("small", name.run_date, "m", name.run_id)))
