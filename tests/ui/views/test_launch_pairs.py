"""The diff page's markup over real reports: every number of the comparison is there, none is invented."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from profiler.compare import resolve_names
from profiler.compare.comparison import Comparison, compare
from profiler.compare.kernel_pairs import Pairing
from profiler.compare.repeated_numbers import split_repeats
from profiler.evidence import formatting, metric_table
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Value, pack_values
from profiler.ui import addresses
from profiler.ui.data.pair_choice import choose_pair
from profiler.ui.views import comparison_head, launch_pairs, metric_changes
from tests import made


def no_store() -> None:
    raise AssertionError("two files need no store")


def of(reports: Path, a: str, b: str) -> Comparison:
    names = [str(reports / f"{name}.ncu-rep") for name in (a, b)]
    return compare(*resolve_names.resolve_all(names, no_store), metric_table.load_metrics())


@pytest.fixture(scope="module")
def ncar(reports: Path) -> Comparison:
    return of(reports, "ncar/MW_Baseline", "ncar/MW_DivToMult")


@pytest.fixture(scope="module")
def esmm(reports: Path) -> Comparison:
    return of(reports, "esmm/profile@5c6231e5", "esmm/profile@049ec612")


def text(markup: str) -> str:
    """What a person reads: tags away, small units with a space before them as on the screen."""
    spaced = re.sub(r'<span class="u[^"]*">', " ", markup)
    return " ".join(unescape(re.sub(r"<[^>]+>", "\t", spaced).replace("\t ", " ")).split())


def rows(markup: str) -> list[str]:
    return [text(row) for row in re.findall(r"<tr.*?</tr>", markup)]


VIEW = addresses.Diff("ncar/MW_Baseline", "ncar/MW_DivToMult")


def test_the_longest_pair_is_shown_first_with_its_verdict(ncar: Comparison) -> None:
    pair = choose_pair(ncar, None)
    assert pair is not None
    assert text(launch_pairs.verdict(ncar, pair)) == "✓ better −43.8 % unreplicated: one launch per side"


@pytest.mark.slow
def test_every_metric_with_a_number_is_in_the_table_as_the_comparison_has_it(ncar: Comparison) -> None:
    for pair in ncar.pairs:
        output = rows(metric_changes.table(pair))
        with_row, repeats = split_repeats(
            change
            for change in pair.metrics
            if None not in (change.a.number, change.b.number) and (change.a.number or change.b.number)
        )
        for change in repeats:
            again = [row.partition("also in another row: ")[2].split(" · ") for row in output]
            assert sum(change.label in labels for labels in again) == 1
        for change in with_row:
            a, b = (str(formatting.quantity(value)) for value in (change.a, change.b))
            moved = formatting.change(change.a, change.b)
            verdict = change.verdict.label
            expected = " ".join(f"{change.label} {change.metric} {a} {b} {moved} {verdict}".split())
            assert expected in output


def test_metrics_without_a_number_stand_once_in_a_closing_line_and_never_as_zero(ncar: Comparison) -> None:
    pair = ncar.pairs[0]
    output = rows(metric_changes.table(pair))
    absent = [change for change in pair.metrics if change.a.number is None and change.b.number is None]
    assert absent
    for change in absent:
        (line,) = [row for row in output if change.label in row.partition(": ")[2].split(" · ")]
        assert line.startswith(formatting.state_words(change.a))


def test_a_metric_that_only_one_side_has_keeps_its_row_and_is_missing(esmm: Comparison) -> None:
    pair = next(pair for pair in esmm.pairs if pair.kernel == "one_d_vec")
    output = rows(metric_changes.table(pair))
    assert "ncu duration gpu__time_duration.sum failed (NaN) 343 µs – missing" in output


def test_what_only_one_side_has_is_folded_where_the_changed_are_shown(esmm: Comparison) -> None:
    pair = next(pair for pair in esmm.pairs if pair.kernel == "one_d_vec")
    changed = metric_changes.table(pair, metric_changes.CHANGED)
    folded = changed[changed.index("Only one side has a number in") :]
    assert "failed (NaN) 343 µs – missing" in text(folded)
    assert "– missing" not in text(changed.partition("Only one side has a number in")[0])


@pytest.mark.slow
def test_what_did_not_change_is_folded_and_whole_in_the_page(ncar: Comparison) -> None:
    """A browser's search finds a folded name: only the page's look hides it."""
    pair = ncar.pairs[0]
    changed = metric_changes.table(pair, metric_changes.CHANGED)
    for change in pair.metrics:
        assert text(changed).count(change.label) >= 1
    unfolded = changed[: changed.index("Nothing changed in")]
    unfolded = re.sub(r'<details class="k k-fold rest">.*?</details>', "", unfolded)
    assert "✓ better" in text(unfolded)
    assert "= same" not in unfolded
    assert "not collected" not in unfolded
    assert "= same" in text(metric_changes.table(pair, metric_changes.ALL))


def test_the_largest_change_comes_first_within_a_group(ncar: Comparison) -> None:
    output = metric_changes.table(ncar.pairs[0], metric_changes.CHANGED)
    stalls = output[output.index("<b>Stalls</b>") :].partition("</table>")[0]
    changes = [float(share) for share in re.findall(r"[+−]([\d.]+) %", text(stalls))]
    assert len(changes) > 3
    assert changes == sorted(changes, reverse=True)


def test_metrics_stand_in_one_table_by_change_or_by_name(ncar: Comparison) -> None:
    by_name = rows(metric_changes.table(ncar.pairs[0], order=metric_changes.BY_NAME))[2:]
    # A label alone stands before those that say what they are of in brackets.
    assert by_name == sorted(by_name, key=lambda row: row.lower().replace("(", "\x7f"))
    by_change = rows(metric_changes.table(ncar.pairs[0], metric_changes.CHANGED, metric_changes.BY_CHANGE))
    assert "lg_throttle" in by_change[2], "it was next to nothing in A"
    assert len(by_change) < len(by_name)


def test_words_narrow_the_metrics_by_label_group_or_ncu_name(ncar: Comparison) -> None:
    found = text(metric_changes.table(ncar.pairs[0], words="dram__ read"))
    assert "dram__bytes_read.sum" in found
    assert "inst_executed" not in found
    assert text(metric_changes.table(ncar.pairs[0], words="no_such")) == "No metric holds no_such"


def test_launches_without_a_partner_are_listed_with_their_side(esmm: Comparison) -> None:
    output = rows(launch_pairs.table(esmm, None, VIEW))
    assert len(output) == 1 + len(esmm.pairs) + len(esmm.only_in_a) + len(esmm.only_in_b)
    assert "warptiling – 195 µs only in B" in output


def test_a_failed_duration_reads_as_failed(esmm: Comparison) -> None:
    (row,) = [row for row in rows(launch_pairs.table(esmm, None, VIEW)) if row.startswith("one_d_vec")]
    assert row == "one_d_vec failed (NaN) 343 µs – missing"


def test_a_link_leads_to_the_same_view_of_another_launch(ncar: Comparison) -> None:
    output = launch_pairs.table(ncar, ncar.pairs[0], VIEW)
    assert 'href="./diff?a=ncar%2FMW_Baseline&amp;b=ncar%2FMW_DivToMult&amp;launch=set_halo' in output
    assert output.count('class="sel"') == 1


@pytest.mark.slow
def test_ambiguous_launches_are_listed_with_the_reason(reports: Path) -> None:
    comparison = of(reports, "cutlass/report75", "cutlass/report80@eba551e9")
    output = text(launch_pairs.table(comparison, None, VIEW))
    notes = " ".join(map(text, launch_pairs.notes(comparison)))
    for group in comparison.ambiguous:
        assert f"{len(group.a)} launches {len(group.b)} launches ? unclear" in output
        assert f"{group.base_name}: ambiguous, {group.why}" in notes
    listed = len(rows(launch_pairs.table(comparison, None, VIEW))) - 1
    pairs, alone = len(comparison.pairs), len(comparison.only_in_a) + len(comparison.only_in_b)
    assert listed == pairs + alone + len(comparison.ambiguous)


def test_other_gpus_are_not_comparable_and_the_strip_says_why(reports: Path) -> None:
    comparison = of(reports, "mistic/prof1", "hyperspec/profile")
    output = text(comparison_head.comparability(comparison))
    assert output.startswith("Comparable: no ≠ GPU differs")


def test_what_neither_report_says_is_named_and_not_taken_as_equal(ncar: Comparison) -> None:
    output = text(comparison_head.comparability(ncar))
    assert "not recorded on either side: workload, dtype, clock control" in output
    assert "same: GPU" in output
    assert "clock control not in the report" in text(metric_changes.environment(ncar, ncar.pairs[0]))


def test_the_command_line_of_a_report_is_not_spread_over_the_diff(ncar: Comparison) -> None:
    page = comparison_head.comparability(ncar) + metric_changes.environment(ncar, ncar.pairs[0])
    assert "/glade" not in page
    assert "/scratch" not in page
    assert "command line differs" in page


def test_opcodes_show_how_many_more_or_fewer_ran(ncar: Comparison) -> None:
    output = rows(metric_changes.opcodes(ncar.pairs[0].opcodes))
    assert output[1].startswith("IMAD 274 M 110 M −164 M")
    assert len(output) == 1 + metric_changes.OPCODES_SHOWN


def test_long_template_arguments_are_cut_to_where_they_begin_to_differ() -> None:
    a, b = (f"<{'x' * 200}, {size}, {'y' * 200}>" for size in (64, 128))
    for text, size in zip(metric_changes.excerpt(a, b), ("64", "128"), strict=True):
        assert size in text
        assert text.startswith("…x")
        assert text.endswith("y…")
        assert len(text) <= 62
    assert metric_changes.excerpt("<1>", "<1>") == ("<1>", "<1>")


def test_a_pair_of_two_names_shows_both_and_how_it_was_paired() -> None:
    old, new = (made.launch(name, 1e6) for name in ("gemm_v6", "gemm_v7"))
    comparison = compare(Side("A", (old,)), Side("B", (new,)), load_metrics())
    (pair,) = comparison.pairs
    shown = rows(launch_pairs.table(comparison, None, VIEW))[1].replace(" ", "")  # the name has two parts
    assert shown.startswith("gemm_v6→gemm_v7")
    assert "paired by similar name, names differ" in text(launch_pairs.verdict(comparison, pair))
    notes = " ".join(map(text, launch_pairs.notes(comparison)))
    assert notes == "gemm_v6 → gemm_v7: paired by similar name, names differ"


def test_a_launch_of_another_size_says_so_below_the_pairs(ncar: Comparison) -> None:
    a = ncar.pairs[0].a
    larger = replace(
        a, grid=(9, 9, 9), opcodes={}, values=pack_values({"gpu__time_duration.sum": Value(9e9, "ns")})
    )
    sides = (replace(ncar.a, launches=(replace(a, opcodes={}),)), replace(ncar.b, launches=(larger,)))
    comparison = compare(*sides, metric_table.load_metrics())
    (pair,) = comparison.pairs
    assert "≠ not comparable" in text(launch_pairs.verdict(comparison, pair))
    note, command = map(text, launch_pairs.notes(comparison))
    assert note.startswith(f"{pair.kernel}: not comparable, another workload: grid ")
    assert note.endswith("→ 9 × 9 × 9")
    assert command.startswith("to compare them anyway: profiler compare ")
    assert command.endswith(f" --pair {a.base_name}={a.base_name}")
    assert list(map(text, launch_pairs.notes(comparison, pair))) == [command], "the big verdict says why"


def test_kernels_that_may_be_one_have_the_command_that_keeps_the_pair() -> None:
    a, b = (
        Side(name, (made.launch(kernel, 1e6),), family="silu") for name, kernel in (("A", "x"), ("B", "yz"))
    )
    left_over = compare(a, replace(b, launches=(replace(b.launches[0], grid=(1, 1, 1)),)), load_metrics())
    assert left_over.pairs == ()
    words = "if they are one kernel: profiler decide pair silu x=yz"
    assert list(map(text, launch_pairs.notes(left_over))) == [words]
    proposed = compare(a, b, load_metrics())
    notes = list(map(text, launch_pairs.notes(proposed, proposed.pairs[0])))
    assert notes == [
        "x → yz: paired by position, names differ",
        "not declared to be one kernel: profiler decide pair silu x=yz",
    ]


def test_of_many_launches_without_a_partner_the_longest_are_listed_and_the_others_counted() -> None:
    names = [f"kernel_{letter}" for letter in "abcdefghijklmnop"]
    a = Side("A", tuple(made.launch(name, 1e6 * (index + 1)) for index, name in enumerate(names)))
    failed = Side("B", (made.launch("failed", None), *(made.launch(f"other{n}", 1e3) for n in range(9))))
    comparison = compare(a, failed, load_metrics(), pairing=Pairing(propose=False))
    output = rows(launch_pairs.table(comparison, None, VIEW))[1:]
    only_a = [row for row in output if row.endswith("only in A")]
    assert len(only_a) == launch_pairs.UNPAIRED_SHOWN
    assert only_a[0].replace(" ", "").startswith("kernel_p16.0ms")
    assert output[len(only_a)].startswith("6 shorter launches are only in A")
    assert output[len(only_a) + 1].startswith("failed – failed (NaN)")
    assert len(output) == len(only_a) + 1 + 10


def test_a_derived_number_that_another_row_has_is_named_below_the_rows(ncar: Comparison) -> None:
    output = metric_changes.table(ncar.pairs[0])
    group = output[output.index("<b>Time</b>") :].partition("</table>")[0]
    labels = ["elapsed cycles", "active cycles, SM", "ncu duration"]
    rest = [row for row in rows(group)[1:] if not row.startswith(tuple(labels))]
    assert rest[0].startswith("also in another row: active cycles, scheduler (derived) · ")
    assert [row for row in rest[1:] if not row.startswith("not collected: ")] == []


def test_launches_that_are_ambiguous_are_not_called_without_a_partner() -> None:
    one, two, three = (made.launch("gemm", 1e6 + n, ordinal=n) for n in range(3))
    comparison = compare(Side("A", (one,)), Side("B", (two, three)), load_metrics())
    assert comparison.ambiguous
    words = "no pair is certain: which launches of gemm are partners is ambiguous"
    assert words in text(launch_pairs.verdict(comparison, None))
    assert text(launch_pairs.why_unpaired(comparison)) == f"{words}."


def test_the_ranges_of_a_kernel_that_were_renamed_are_said_below_the_pairs() -> None:
    old, new = (made.launch("gemm", 1e6, nvtx=(name,)) for name in ("step", "epoch"))
    comparison = compare(Side("A", (old,)), Side("B", (new,)), load_metrics())
    assert not comparison.pairs
    note, command = map(text, launch_pairs.notes(comparison))
    assert note == "gemm: launches pair within a range: NVTX step in A, epoch in B"
    assert command.endswith("profiler compare A B --pair gemm=gemm")
