"""Whether two runs of a version have the same machine code, and what else changed between runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from profiler.bundles.run import COLLECT, Facts, Result, Run
from profiler.compare.environment_change import RunChanges, environment_changes, run_changes
from profiler.compare.same_code import CHANGED, SAME, SASS_HASH, UNKNOWN, CodeChange, code_change
from profiler.evidence.values import Evidence, Value
from profiler.store.rows import RunInfo

START = datetime(2026, 5, 1, tzinfo=UTC)
MEASURED, STATIC = Evidence.MEASURED, Evidence.STATIC


def facts(sass: str | None, part: str = "main", target: str = "sm_80") -> Facts:
    values = {} if sass is None else {SASS_HASH: Value(None, text=sass)}
    return Facts(STATIC, part, values, target=target)


def run(*parts: Facts, source: str | None = "s", nvcc: str | None = "13.0", **more: Any) -> Run:
    """A run of the version v and of another."""
    result = Result("fam", "v", "b1", source_sha256=source, facts=parts, **more)
    other = Result("fam", "w", "b1", source_sha256="other", facts=(facts("other"),))
    return Run("run", COLLECT, START, {"nvcc": nvcc} if nvcc else {}, (result, other))


def changed(a: Run | None, b: Run | None, part: str = "main", capability: str | None = None) -> CodeChange:
    return code_change((a, "v"), (b, "v"), part, capability)


def test_hashes_of_machine_code_decide_whatever_the_source() -> None:
    assert changed(run(facts("x")), run(facts("x"))) == CodeChange(SAME, "SASS has the same hash")
    assert changed(run(facts("x")), run(facts("y"))).word == CHANGED
    edited = changed(run(facts("x")), run(facts("x"), source="t"))
    assert (edited.word, edited.other_source, edited.is_same_build) == (SAME, True, False)
    unknown = changed(run(facts("x")), run(facts("x"), source=None))
    assert (unknown.other_source, unknown.is_same_build) == (False, True), "not known to differ"


def test_the_part_that_is_asked_for_decides_and_of_a_whole_call_all_parts() -> None:
    a = run(facts("x"), facts("p", "reduce"))
    b = run(facts("x"), facts("q", "reduce"))
    assert changed(a, b, "main").word == changed(a, b, "main#2").word == SAME
    assert changed(a, b, "total") == CodeChange(CHANGED, "SASS of reduce differs")
    both = changed(a, run(facts("y"), facts("q", "reduce")), "total")
    assert both.why == "SASS of main, reduce differs"


def test_of_several_architectures_that_of_the_gpu_counts() -> None:
    a = run(facts("x"), facts("p", target="sm_90a"))
    b = run(facts("x"), facts("q", target="sm_90a"))
    assert changed(a, b, capability="8.0").word == SAME
    assert changed(a, b, capability="9.0").word == CHANGED
    assert changed(a, b).word == CHANGED, "of an unknown GPU all count"


@pytest.mark.parametrize(
    ("a", "b", "word", "why"),
    [
        (run(facts(None)), run(facts(None)), SAME, "same source, flags and nvcc 13.0"),
        (run(), run(source="t"), CHANGED, "source or flags differ; SASS was not kept"),
        (run(), run(nvcc="13.1"), UNKNOWN, "same source and flags, nvcc 13.0 and 13.1"),
        (run(), run(nvcc=None), UNKNOWN, "same source and flags; the compiler is not known"),
        (run(nvcc=None), run(), UNKNOWN, "same source and flags; the compiler is not known"),
        (run(source=None), run(), UNKNOWN, "the runs keep no hash of SASS or source"),
        (run(), run(source=None), UNKNOWN, "the runs keep no hash of SASS or source"),
        (run(), None, UNKNOWN, "the runs keep no hash of SASS or source"),
        (run(facts("x")), run(), SAME, "same source, flags and nvcc 13.0"),
    ],
)
def test_without_hashes_the_source_and_the_compiler_tell(
    a: Run | None, b: Run | None, word: str, why: str
) -> None:
    assert changed(a, b) == CodeChange(word, why)


def info(number: int, **more: Any) -> RunInfo:
    """A run on a GPU, made so many days after the first."""
    provenance = {key: more.pop(key) for key in ("nvcc", "torch", "compile_flags", "states") if key in more}
    plain = RunInfo(
        f"r{number}", "fam", "v", "b1", COLLECT, START + timedelta(days=number), "H100", "9.0", "580",
        "2025.1", "13.0", "node", None, "none", "all", 1, (), frozenset({MEASURED}), False,
        provenance=provenance,
    )  # fmt: skip
    return plain._replace(**more)


def clocks(*mhz: float | None) -> list[dict[str, Any]]:
    return [{"during": [{"sm_mhz": clock} for clock in mhz]}, {"during": None}]


def test_what_changed_of_the_machine_names_the_first_run_that_has_it() -> None:
    runs = [info(0), info(1, driver=None), info(2, driver="590"), info(3, driver="590", host="other")]
    found = environment_changes(runs, MEASURED)
    assert [(one.field, one.before, one.after, one.run_id) for one in found] == [
        ("driver", "580", "590", "r2"),
        ("host", "node", "other", "r3"),
    ]
    assert environment_changes(runs, STATIC) == (), "a compiler asks for no driver"
    compilers = [info(0, nvcc="13.0"), info(1, nvcc="13.1")]
    assert [one.field for one in environment_changes(compilers, STATIC)] == ["nvcc"]
    flags = [info(0, compile_flags=["-O3"]), info(1, compile_flags=["-O3", "-lineinfo"])]
    assert [one.after for one in environment_changes(flags, MEASURED)] == ["-O3 -lineinfo"]


def test_a_clock_changed_where_its_median_moved_by_more_than_it_does_by_itself() -> None:
    steady = [info(0, states=clocks(1700, 1710, 1000)), info(1, states=clocks(1710, None, 1700, 1720))]
    assert environment_changes(steady, MEASURED) == ()
    for before, after in ((1700, 1500), (1500, 1700)):
        (one,) = environment_changes(
            [info(0, states=clocks(before)), info(1, states=clocks()), info(2, states=clocks(after))],
            MEASURED,
        )
        assert (one.field, one.before, one.after) == ("SM clock, MHz", str(before), str(after))


def test_what_neither_end_says_and_matters_is_unknown() -> None:
    code = (run(facts("x")), "v"), (run(facts("x")), "v")
    ends = [info(0, driver=None), info(1), info(2, driver=None, cache_control=None)]
    found = run_changes(ends, *code, "main", MEASURED)
    assert "driver" in found.unknown
    assert not {"ncu", "cache control"} & {*found.unknown}, "one end says it, or it does not matter"
    assert run_changes(ends, *code, "main", STATIC).unknown == ()
    assert run_changes([], *code, "main", MEASURED).environment == ()
    two = (
        (run(facts("x"), facts("p", target="sm_90a")), "v"),
        (run(facts("y"), facts("p", target="sm_90a")), "v"),
    )
    assert run_changes(ends, *two, "main", MEASURED).code.word == SAME, "on the GPU of the last run"


def test_the_cause_is_what_changed_and_of_one_build_on_one_machine_unknown() -> None:
    (change,) = environment_changes([info(0), info(1, driver="590")], MEASURED)
    same = CodeChange(SAME, "")
    for code, alone, beside in (
        (same, "unknown", "environment"),
        (CodeChange(SAME, "", other_source=True), "code or environment", "code or environment"),
        (CodeChange(CHANGED, ""), "code", "code or environment"),
        (CodeChange(UNKNOWN, ""), "unknown", "unknown"),
    ):
        assert RunChanges((), (), code).cause == alone
        assert RunChanges((change,), (), code).cause == beside
