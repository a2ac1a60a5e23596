"""What a manifest may say, and what its expressions may compute."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.errors import BadCatalog, UnknownName
from profiler.judge.expressions import evaluate
from profiler.judge.manifest import parse_manifest

SIZES = {"len_q": 100, "heads": 3}
PLAIN = {
    "family": "attention",
    "kernel": "attend<{heads}>",
    "grid": ["ceil_div(len_q, 64)", "heads"],
    "block": 128,
    "arguments": ["q", "len_q", "scale"],
}
PATH = Path("candidate.toml")


@pytest.mark.parametrize(
    ("text", "value"),
    [("ceil_div(len_q, 64) * heads", 6), ("-len_q % 7", 5), ("max(1, min(len_q, 2))", 2), (7, 7)],
)
def test_an_expression_is_worked_out_from_the_sizes(text: str | int, value: int) -> None:
    assert evaluate(text, SIZES) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "len_q.__class__",
        "2 ** 999",
        "len_q / 2",
        "[1][0]",
        "lambda: 1",
        "(" * 150,
        "1 if len_q else 2",
        "f'{len_q}'",
        "9 * 9 " * 60,
        "len_kv",
        "len_q // 0",
        "4611686018427387904",
        "min(1, 2, 3)",
        "",
    ],
)
def test_what_is_no_expression_of_the_sizes_is_refused(text: str) -> None:
    with pytest.raises(UnknownName):
        evaluate(text, SIZES)


def test_a_launch_is_planned_with_its_sizes_and_template_arguments() -> None:
    (launch,) = parse_manifest(PLAIN, PATH).plan(SIZES, {"q": object(), "scale": 0.5})
    assert (launch.kernel, launch.grid, launch.block) == ("attend<3>", (2, 3, 1), (128, 1, 1))
    assert launch.arguments == ("q", 100, 0.5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"flags": ["-I/etc"]}, "only -DNAME"),
        ({"flags": ["-DCPUCUDA"]}, "only -DNAME"),
        ({"flags": ["-D__CUDA_ARCH__=1"]}, "only -DNAME"),
        ({"flags": ["-DA=1 -o/tmp/x"]}, "only -DNAME"),
        ({"kernel": "attend; system(1)"}, "no name of a kernel"),
        ({"host": "main.cpp"}, "unknown key 'host'"),
        ({"cluster": [0, 1]}, "from 1 to 16"),
        ({"cluster": ["heads"]}, "from 1 to 16"),
        ({"arguments": [[1]]}, "a whole number, or an expression"),
        ({"block": [1, 1, 1, 1]}, "one to three"),
        ({"scratch": [{"name": "a b", "bytes": 4}]}, "small letters"),
        ({"launch": [{"kernel": "k"}]}, "stands beside [[launch]]"),
        ({"budget": {"registers": True}}, "whole number"),
        ({"takes": {"head_dim": 64}}, "table of lists"),
    ],
)
def test_a_manifest_that_asks_for_more_is_refused_in_a_line(change: dict[str, object], words: str) -> None:
    with pytest.raises(BadCatalog) as refused:
        parse_manifest({**PLAIN, **change}, PATH)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
