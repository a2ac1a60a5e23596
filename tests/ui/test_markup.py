"""What the pages' HTML must hold: escaping, signs beside colours, states in words."""

from profiler.evidence.values import NOT_COLLECTED, State, Value
from profiler.statistics.verdict import Verdict
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row


def test_a_kernel_name_with_angle_brackets_is_escaped_in_a_table_cell() -> None:
    shown = markup.table("t", (Column("kernel"),), [Row(("void f<A<1>, &B>(int)",))])
    assert "void f&lt;A&lt;1&gt;, &amp;B&gt;(int)" in shown
    assert "<A" not in shown


def test_markup_made_here_is_not_escaped_twice() -> None:
    assert markup.code(markup.code("a<b")).count("&lt;") == 1
    assert "&amp;lt;" not in markup.section_head(markup.code("a<b"))


def test_a_quote_in_a_title_or_an_address_cannot_end_the_attribute() -> None:
    assert '"><script>' not in markup.link('diff?a="><script>', "x", title='"><script>')
    assert '"><script>' not in markup.verdict(Verdict.BETTER, reason='"><script>')


def test_text_with_blank_lines_stays_on_one_line() -> None:
    assert "\n" not in markup.escaped("one\n\n  two")


def test_every_verdict_has_its_sign_and_word_and_only_two_are_coloured() -> None:
    for verdict in Verdict:
        shown = markup.verdict(verdict)
        assert f"<i>{verdict.traits.sign}</i>&nbsp;{verdict.words}" in shown
        assert (f"v {verdict}" in shown) == (verdict in (Verdict.BETTER, Verdict.WORSE))
    assert "≠</i>&nbsp;not comparable" in markup.verdict(Verdict.NOT_COMPARABLE)


def test_a_missing_value_is_a_hatch_with_its_reason_and_no_digit() -> None:
    for state, words in ((State.FAILED, "failed"), (State.NOT_AVAILABLE, "not available on this GPU")):
        shown = markup.value(Value(None, "ns", state=state))
        assert words in shown
        assert 'class="hatch"' in shown
        assert not any(character.isdigit() for character in shown)
    assert "not collected" in markup.value(NOT_COLLECTED)


def test_a_value_keeps_its_unit_small_beside_it_and_its_whole_number_for_an_export() -> None:
    shown = '6.19<span class="u">\u2009ms</span>'
    number = 'data-value="6190944.0" data-unit="ns"'
    assert markup.value(Value(6190944.0, "ns")) == f"<span {number}>{shown}</span>"
    assert markup.value(Value(3)) == '<span data-value="3">3</span>'
    assert "data-value" not in markup.value(Value(None, text="sm_90"))


def test_a_view_says_its_context_and_its_whole_address() -> None:
    said = markup.view_state("./trends?family=f", {"family": 'a"b'})
    assert 'data-family="a&quot;b"' in said
    assert 'href="./trends?family=f"' in said
    assert "href" not in markup.view_state("", {})


def test_a_link_names_the_key_that_opens_it() -> None:
    assert 'data-key="["' in markup.link("./diff", "previous", key="[")


def test_an_address_carries_the_view_and_leaves_out_what_is_not_chosen() -> None:
    address = markup.href("diff", {"a": "ncar/A&B", "b": "x y", "gpu": None, "kernel": ""})
    assert address == "./diff?a=ncar%2FA%26B&b=x+y"


def test_a_link_stays_in_its_tab() -> None:
    assert 'target="_self"' in markup.link("/diff", "diff")


def test_a_change_bar_is_capped_and_points_to_the_side_of_its_sign() -> None:
    grown, fallen = markup.change_bar(3.0, "worse"), markup.change_bar(-0.5, "better")
    assert "left:50.00%" in grown
    assert "50.00%)" in grown
    assert "left:25.00%" in fallen
    assert "25.00%)" in fallen
    assert markup.change_bar(None) == ""
    assert 'class="bar over"' in grown
    assert "over" not in fallen


def test_a_change_nobody_judges_has_a_grey_bar() -> None:
    assert "class=" not in markup.change_bar(0.5).split("<i")[1]


def test_a_table_keeps_its_own_class_whatever_its_rows_are() -> None:
    rows = [Row(("a",)), Row(("b",), selected=True), markup.closing_row("c")]
    assert markup.table("t", (Column("x"),), rows, css="lin").startswith('<div class="k k-box lin"><table')
    assert markup.table("t", (Column("x"),), rows).startswith('<div class="k k-box"><table')
    assert '<tr class="sel"><td>b</td></tr><tr class="last">' in markup.table("t", (Column("x"),), rows)


def test_a_row_with_too_few_cells_is_refused() -> None:
    try:
        markup.table("t", (Column("a"), Column("b")), [Row(("only one",))])
    except ValueError:
        return
    raise AssertionError("a short row shifts every number under the wrong head")


def test_joining_leaves_out_what_is_empty() -> None:
    assert markup.join(["a", "", Html("<b>c</b>")], " · ") == "a · <b>c</b>"


def test_a_command_in_an_error_is_code_and_the_rest_is_escaped() -> None:
    shown = markup.error_box("no <b>: run `profiler list metrics` first")
    assert 'no &lt;b&gt;: run <span class="c">profiler list metrics</span> first' in shown
    assert markup.backticks_as_code("it`s") == "it`s"


def test_a_long_name_is_cut_in_its_middle_and_reads_as_itself() -> None:
    shown = markup.cut_name("range/hd_enc<A>_packed_cuda#12", title="all of it")
    head, tail = shown.split('</span><span class="end">')
    assert tail.removesuffix("</span></span>") == "uda#12"
    assert "hd_enc&lt;A&gt;" in head
    assert 'title="all of it"' in head
    assert markup.cut_name("basic#3") == markup.code("basic#3")


def test_a_table_says_its_name_to_a_screen_reader() -> None:
    assert markup.table('all "launches"', (), []).count('<table aria-label="all &quot;launches&quot;">') == 1
    assert 'role="heading" aria-level="2">Why</span>' in markup.section_head("Why", "measured")
