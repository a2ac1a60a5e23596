"""Which place in the code a rule result is about."""

from profiler.evidence.launch import RuleResult
from profiler.reports.rule_places import address_of, place_of, stall_of


def rule(title: str = "", message: str = "") -> RuleResult:
    return RuleResult("R", "a rule", "SourceCounters", "warning", title, message)


def test_a_message_names_an_instruction_by_its_address() -> None:
    told = rule(message="Uncoalesced access, got 3 sectors at PC @source:1454befadea0:0x1454befadea0@")
    assert address_of(told) == 0x1454BEFADEA0
    assert address_of(rule(message="see @section:SourceCounters:Source Counters@")) is None


def test_an_address_is_an_offset_in_the_function_that_holds_it() -> None:
    assert place_of(0x1A0, (0x100, 0x180)) == (1, 0x20)
    assert place_of(0x110, (0x100, 0x180)) == (0, 0x10)
    assert place_of(0x10, (0x100,)) is None
    assert place_of(0x10, ()) is None


def test_a_stall_is_known_by_titles_of_old_and_new_reports() -> None:
    reasons = {"long_scoreboard", "wait"}
    assert stall_of(rule("long_scoreboard"), reasons) == "long_scoreboard"
    assert stall_of(rule("Long Scoreboard Stalls"), reasons) == "long_scoreboard"
    assert stall_of(rule("Warp Stall"), reasons) == stall_of(rule(""), reasons) == ""
