"""How numbers read."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from profiler.evidence import formatting
from profiler.evidence.formatting import Quantity
from profiler.evidence.values import State, Value


def shown(number: float, unit: str = "") -> str:
    return str(formatting.quantity(Value(number, unit)))


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (6190944.0, "6.19 ms"),
        (11360.0, "11.4 µs"),
        (999.9, "1.00 µs"),
        (999.4, "999 ns"),
        (128.0, "128 ns"),
        (6_000_000.0, "6.00 ms"),
        (1_129_093_408.0, "1.13 s"),
        (0, "0 ns"),
    ],
)
def test_a_time_reads_in_the_unit_of_its_size(nanoseconds: float, text: str) -> None:
    assert shown(nanoseconds, "ns") == text


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (1_420_000, "", "1.42 M"),
        (1_379_000_000, "inst", "1.38 G inst"),
        (12_600_000, "byte", "12.6 MB"),
        (1_024, "byte", "1.02 kB"),
        (49_152, "byte/block", "49.2 kB/block"),
        (1_300_000_000.0, "hz", "1.30 GHz"),
        (900_000_000_000.0, "byte/s", "900 GB/s"),
        (900_000_000_000.0, "byte/second", "900 GB/s"),
        (64.0, "register/thread", "64 register/thread"),
        (2_048, "", "2\u2009048"),
        (9_999.4, "cycle", "10.0 k cycle"),
        (0.779, "warp", "0.779 warp"),
        (0.00123, "", "0.00123"),
        (0.0000123, "", "1.23e\u22125"),
        (-14.42, "cycle", "\u221214.4 cycle"),
        (61.94, "%", "61.9 %"),
        (100.0, "%", "100.0 %"),
        (-0.04, "%", "0.0 %"),
    ],
)
def test_a_number_has_three_digits_and_its_unit(number: float, unit: str, text: str) -> None:
    assert shown(number, unit) == text


def test_one_scale_serves_a_whole_column() -> None:
    scale = formatting.scale_for("ns", 6_190_944.0)
    assert str(formatting.quantity(Value(11_360.0, "ns"), scale)) == "0.0114 ms"
    assert str(formatting.quantity(Value(0, "ns"), scale)) == "0 ms"


@pytest.mark.parametrize("state", [state for state in State if state is not State.PRESENT])
def test_a_state_reads_as_words_and_never_as_a_number(state: State) -> None:
    value = Value(None, "ns", state=state)
    text = str(formatting.quantity(value))
    assert state.words in text
    assert not any(character.isdigit() for character in text)
    assert formatting.as_json(value) == {"state": state.words}


@pytest.mark.parametrize(
    ("a", "b", "unit", "text"),
    [
        (6190944.0, 3482240.0, "ns", "\u221243.8 %"),
        (3625056.0, 3625120.0, "ns", "±0 %"),
        (44.6, 80.7, "%", "+36.1 pp"),
        (44.6, 44.61, "%", "±0 pp"),
        (64, 62, "register/thread", "\u22122"),
        (64.0, 64.0, "register/thread", "±0"),
        (0, 3, "", "from 0"),
        (0, 1_000_000, "inst", "from 0"),
        (0.0, 0.5, "warp", "from 0"),
        (1_000_000, 0, "inst", "\u2212100.0 %"),
        (0.0, 0.0, "ns", "±0 %"),
        (1_000, 22_000, "inst", "+2\u2009100 %"),
        (2.29e-6, 3.8, "inst", "from ~0"),
        (512, 640, "byte", "+25.0 %"),
    ],
)
def test_a_change_reads_as_its_unit_asks(a: float, b: float, unit: str, text: str) -> None:
    assert formatting.change(Value(a, unit), Value(b, unit)) == text


def test_a_change_has_its_number_apart_from_its_unit() -> None:
    assert formatting.change_quantity(Value(44.6, "%"), Value(80.7, "%")) == Quantity("+36.1", "pp")
    assert formatting.change_quantity(Value(512, "byte"), Value(640, "byte")) == Quantity("+25.0", "%")
    assert formatting.change_quantity(Value(0, ""), Value(3, "")) == Quantity("from 0")


def test_no_change_is_shown_against_a_missing_side_or_another_unit() -> None:
    assert formatting.change(Value(1.0, "ns"), Value(None, "ns", state=State.FAILED)) == ""
    assert formatting.change(Value(1, "byte"), Value(1, "sector")) == ""


def test_a_size_drops_its_trailing_ones() -> None:
    assert formatting.dimensions((65_535, 1, 1)) == "65\u2009535"
    assert formatting.dimensions((24, 4, 1)) == "24 × 4"
    assert formatting.dimensions((1, 1, 8)) == "1 × 1 × 8"
    assert formatting.dimensions((1, 1, 1)) == "1"
    assert formatting.dimensions(None) == "–"


def test_json_keeps_integers_and_base_units() -> None:
    assert (
        json.dumps(formatting.as_json(Value(2**64 - 1, "inst")))
        == '{"value": 18446744073709551615, "unit": "inst"}'
    )
    assert formatting.as_json(Value(None, "", text="NVIDIA A10G")) == {"value": "NVIDIA A10G", "unit": ""}


def test_a_moment_is_shown_in_utc() -> None:
    assert (
        formatting.timestamp(datetime(2026, 11, 20, 16, 2, tzinfo=timezone(timedelta(hours=2))))
        == "2026-11-20 14:02 UTC"
    )
    assert formatting.timestamp(datetime(2026, 11, 20, 16, 2, tzinfo=UTC)) == "2026-11-20 16:02 UTC"
    assert formatting.timestamp(None) == "–"
