"""One verdict on two sides, whoever is asked: launches weigh by their time."""

from __future__ import annotations

from pathlib import Path

import pytest

import profiler
from profiler.errors import Exit
from profiler.statistics.verdict import Verdict

HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC","gpu__time_duration.sum"\n"","","","","","","","","","","","ns"\n'
)


def report(folder: Path, name: str, times: dict[str, float]) -> str:
    rows = "".join(
        f'"{place}","7","app","h","{kernel}","1","7","(128, 1, 1)","(64, 1, 1)","0","8.0","{us * 1e3:.0f}"\n'
        for place, (kernel, us) in enumerate(times.items())
    )
    path = folder / f"{name}.csv"
    path.write_text(HEAD + rows)
    return str(path)


LAUNCHES = {
    "a short unclear launch beside a gain": ({"gemm": (900, 600), "halo": (10, 12)}, "better", Exit.PASS),
    "as many unclear as the gain": ({"gemm": (900, 870), "halo": (45, 65)}, "unclear", Exit.UNJUDGED),
    "a short unclear launch in much time": ({"gemm": (9000, 9000), "halo": (10, 12)}, "same", Exit.PASS),
    "unclear alone": ({"halo": (10, 12)}, "unclear", Exit.UNJUDGED),
    "a loss beside a larger gain": ({"gemm": (900, 600), "rows": (100, 120)}, "worse", Exit.REGRESSION),
    "a loss and an unclear launch": ({"gemm": (900, 990), "halo": (10, 12)}, "worse", Exit.REGRESSION),
}


@pytest.mark.parametrize(("launches", "word", "code"), LAUNCHES.values(), ids=LAUNCHES)
def test_a_comparison_an_explanation_and_a_gate_give_one_verdict(
    tmp_path: Path, launches: dict[str, tuple[float, float]], word: str, code: Exit
) -> None:
    a, b = (
        report(tmp_path, name, {kernel: times[place] for kernel, times in launches.items()})
        for place, name in enumerate("ab")
    )
    compared = profiler.compare(a, b)
    assert compared.verdict.value == word
    assert compared.verdict is compared.comparison.verdict
    assert profiler.compare(a, b, top=1).verdict is compared.verdict
    assert profiler.explain(a, b).verdict is compared.verdict
    assert profiler.gate([b], baseline=a).exit_code is code


def test_nothing_paired_is_missing(tmp_path: Path) -> None:
    a, b = report(tmp_path, "a", {"gemm": 100}), report(tmp_path, "b", {"softmax": 100})
    assert profiler.compare(a, b).verdict is profiler.explain(a, b).verdict is Verdict.MISSING
