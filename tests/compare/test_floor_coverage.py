"""Which timed calls lack a noise floor, and the one command that measures what is lacking."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profiler.bundles import location
from profiler.bundles.run import Result, Run, Samples
from profiler.compare.floor_coverage import MissingFloor, calls_without_floor, floors_in, missing_floors
from profiler.compare.latency import noise_command
from profiler.compare.noise_floor import FloorKey, StoredFloor, floors_of_runs, timed_keys
from profiler.statistics.noise_floor import MIN_FLOOR_PAIRS
from profiler.store.index import Store
from tests.compare.test_noise_floor import COLD, MS, NAMES, US, WARM, run, samples, seal, sessions


def floors(*pairs: int, level_ns: float = 2 * MS, mode: str = WARM, **more: str) -> list[StoredFloor]:
    """A floor for each number of pairs, each of a run of its own."""
    return [
        floor
        for day, number in enumerate(pairs)
        for floor in floors_of_runs([run(sessions(level_ns, 0.01, number, mode), day=day, **more)])
    ]


def key(mode: str = WARM, length: str = "long", gpu: str = "H100", family: str = "fam") -> FloorKey:
    return FloorKey(gpu, mode, length, family)


def test_only_what_was_timed_and_has_too_few_pairs_is_missing() -> None:
    timed = {key(): ("fam/v1", "b1")}
    assert missing_floors(floors(MIN_FLOOR_PAIRS), timed) == []
    (few,) = missing_floors(floors(MIN_FLOOR_PAIRS - 1), timed)
    assert few == MissingFloor("H100", "long", (WARM,), MIN_FLOOR_PAIRS - 1, noise_command("v1", "b1", WARM))
    assert missing_floors(floors(3, MIN_FLOOR_PAIRS, 5), timed) == [], "any driver's, the one with most"
    (none,) = missing_floors([], timed)
    assert none.pairs == 0
    for other in ({"level_ns": 40 * US}, {"mode": COLD}, {"gpu": "L4"}):
        assert missing_floors(floors(MIN_FLOOR_PAIRS, **other), timed) == [none]  # type: ignore[arg-type]
    assert missing_floors(floors(MIN_FLOOR_PAIRS), {}) == []


def test_modes_of_one_place_are_one_line_and_short_calls_come_first() -> None:
    timed = {
        key(WARM): ("fam/v1", "b1"),
        key(WARM, "short"): ("fam/v2", ""),
        key(COLD): ("fam/v3", "b3"),
        key(gpu="A100"): ("fam/v1", "b1"),
        key(family="other"): ("other/v9", "b1"),
        key(WARM, "medium"): ("fam/v2", ""),
    }
    missing = missing_floors(floors(4, mode=COLD), timed)
    assert [(one.gpu, one.workload_class, one.modes, one.pairs) for one in missing] == [
        ("A100", "long", (WARM,), 0),
        ("H100", "short", (WARM,), 0),
        ("H100", "medium", (WARM,), 0),
        ("H100", "long", (WARM, COLD), 0),
        ("H100", "long", (WARM,), 0),
    ]
    assert missing[1].command == noise_command("v2", None, WARM)
    assert missing[3].command == noise_command("v1", "b1", WARM)
    assert missing[4].command == noise_command("v9", "b1", WARM)


def test_the_timed_calls_of_an_index_are_known_by_place_and_class(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "index.db")
    results = (
        run([samples(2 * MS, 1), samples(40 * US, 2, COLD)], purpose=None),
        run([samples(2 * MS, 3)], day=1, version="v2", workload="b2", purpose=None),
    )
    for one in results:
        store.add(one, {})
    assert timed_keys(store) == {key(): ("fam/v1", "b1"), key(COLD, "short"): ("fam/v1", "b1")}
    store.close()


def made(*results: tuple[str, str | None, tuple[Samples, ...]], **told: str) -> Run:
    plain = run((), purpose=None)
    held = tuple(Result("fam", version, workload, samples=of) for version, workload, of in results)
    return replace(plain, results=held, provenance={**plain.provenance, **told})


def test_calls_without_a_floor_are_named_with_the_version_that_covers_most() -> None:
    long, short, medium = samples(2 * MS, 1), samples(40 * US, 2), samples(500 * US, 3)
    one = made(("v1", "b1", (long,)), ("v2", "b1", (long,)), ("v2", "b2", (short,)), ("v1", None, (medium,)))
    assert calls_without_floor(one, []) == (
        "no A/A floor for short, long calls here, so this run and another stay unclear: "
        + noise_command("v2", "b1,b2", WARM)
    )
    enough = [*floors(MIN_FLOOR_PAIRS), *floors(MIN_FLOOR_PAIRS, level_ns=40 * US)]
    assert calls_without_floor(one, enough) == ""
    assert calls_without_floor(one, enough[:1]).endswith(noise_command("v2", "b2", WARM))
    assert calls_without_floor(one, floors(MIN_FLOOR_PAIRS - 1)).startswith("no A/A floor for short, long")
    for told in ({"gpu": "L4"}, {"driver": "570"}):
        other = replace(one, provenance={**one.provenance, **told})
        assert "for short, long calls" in calls_without_floor(other, enough), "a floor of another says little"
    assert calls_without_floor(made(("v1", None, (long,))), []) == "", "no workload, nothing to measure"


@pytest.mark.parametrize("told", [{}, {"gpu": "H100"}])
def test_a_run_that_does_not_say_its_gpu_has_no_floor(told: dict[str, str]) -> None:
    one = replace(made(("v1", "b1", (samples(2 * MS, 1),))), provenance=told)
    enough = floors(MIN_FLOOR_PAIRS)
    assert ("no A/A floor for long calls" in calls_without_floor(one, enough)) == (not told)


def test_the_floors_of_a_folder_are_those_of_its_noise_runs_that_can_be_read(tmp_path: Path) -> None:
    noise = run(sessions(2 * MS, 0.01, 7))
    noise = replace(noise, run_id=f"{noise.run_id}-noise-1")
    damaged = replace(noise, run_id=f"{noise.run_id}2")
    for one in (noise, damaged, run([samples(MS, 1)], day=1, purpose=None)):
        seal(tmp_path, one)
    (tmp_path / "runs" / damaged.run_id / "run.json").write_text("{")
    (floor,) = floors_in(location.open_root(str(tmp_path)))
    assert (floor.floor.pairs, floor.runs) == (7, (noise.run_id,))
    assert NAMES[0] not in floor.runs
