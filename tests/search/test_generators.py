"""Generators: commands that fail, hang and write nonsense; functions by name; rewrites of a source."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import pytest

from profiler.catalog.catalog import load_catalog
from profiler.errors import ProfilerError
from profiler.judge.candidate import load_candidate
from profiler.judge.manifest import read_manifest
from profiler.search.command import CommandGenerator
from profiler.search.generator import CandidateProposal, GeneratorFailed, Request
from profiler.search.insights import insights_of
from profiler.search.named_generator import load_generator
from profiler.search.record import Status
from profiler.search.rewrites import rewrites_of
from profiler.search.variants import space_of, write_manifest
from tests.search.simulated import LandscapeJudge, make_search, run_search

SWITCH = """\
import os, pathlib, re, sys
prompt = sys.stdin.read()
assert prompt == open(os.environ["PROFILER_PROMPT"]).read()
path = pathlib.Path(os.environ["PROFILER_CANDIDATE"]) / "candidate.toml"
text = path.read_text()
text = re.sub("-DSWIZZLE=.", "-DSWIZZLE=1", text)
path.write_text(re.sub("levers = .*", 'levers = ["swizzle on"]', text))
print("because\\nit\\nsays\\nconflicts\\nare\\nmany")
"""


def by_script(tmp_path: Path, body: str, seconds: float = 20) -> CommandGenerator:
    script = tmp_path / "propose.py"
    script.write_text(body)
    return CommandGenerator([sys.executable, str(script)], seconds, "script")


def test_a_command_reads_the_prompt_and_leaves_a_candidate(tmp_path: Path) -> None:
    journal = make_search(tmp_path / "data")
    run_search(journal, 1, generator=by_script(tmp_path, SWITCH))
    record = journal.archive().by_number[1]
    assert (record.status, record.levers, record.generator) == (Status.VALID, ("swizzle on",), "script")
    assert record.why == "it\nsays\nconflicts\nare\nmany"
    assert record.facts["bank_conflicts"] == 0
    assert journal.archive().elites[0] is record or journal.archive().elites[0].number == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("import sys; print('out of tokens'); sys.exit(3)", "it ended with 3: out of tokens"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "it ended with -11"),
        ("import time; time.sleep(60)", "it did not end within 1 s"),
        (
            "import os\nfor i in range(300): open(os.environ['PROFILER_CANDIDATE'] + f'/{i}.h', 'w')",
            "it left over 200 files",
        ),
        ("while True: print('again' * 1000)", "it did not end within 1 s"),
        (
            "import os; os.symlink('/etc/passwd', os.environ['PROFILER_CANDIDATE'] + '/x.h')",
            "no links",
        ),
    ],
)
def test_a_command_that_goes_wrong_is_recorded(tmp_path: Path, body: str, reason: str) -> None:
    journal = make_search(tmp_path / "data")
    started = time.monotonic()
    run_search(journal, 1, generator=by_script(tmp_path, body, 1 if "did not end" in reason else 20))
    record = journal.archive().by_number[1]
    assert record.status is Status.NO_CANDIDATE
    assert reason in record.reason
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("start", [["sh"], ["setsid", "--fork", "sh"]], ids=["a child", "a daemon"])
def test_a_command_is_ended_with_what_it_started(tmp_path: Path, start: list[str]) -> None:
    mark = tmp_path / "mark"
    body = (
        f"import subprocess, time\n"
        f"subprocess.Popen({[*start, '-c', f'sleep 2; touch {mark}']})\ntime.sleep(60)\n"
    )
    journal = make_search(tmp_path / "data")
    run_search(journal, 1, generator=by_script(tmp_path, body, 0.5))
    time.sleep(2.2)
    assert not mark.exists()


def test_what_a_command_does_to_its_parent_leaves_the_archive_alone(tmp_path: Path) -> None:
    journal = make_search(tmp_path / "data")
    run_search(journal, 0, generator=by_script(tmp_path, SWITCH))
    seed = journal.archive().by_number[0]
    folder = journal.candidate_folder(seed.content_id)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    wipe = "import os, pathlib\nparent = pathlib.Path(os.environ['PROFILER_PARENT'])\n"
    wipe += "for path in parent.iterdir(): path.write_text('')\n"
    run_search(journal, 1, generator=by_script(tmp_path, wipe))
    assert journal.archive().by_number[1].status is Status.SAME_SOURCE
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_of_what_lies_beside_a_candidate_nothing_is_kept(tmp_path: Path) -> None:
    beside = (
        "folder = os.environ['PROFILER_CANDIDATE']\n"
        "os.symlink('/dev/zero', folder + '/notes.txt')\nos.mkfifo(folder + '/pipe')\n"
    )
    journal = make_search(tmp_path / "data")
    run_search(journal, 1, generator=by_script(tmp_path, SWITCH + beside))
    record = journal.archive().by_number[1]
    assert record.status is Status.VALID
    folder = journal.candidate_folder(record.content_id)
    assert {path.name for path in folder.iterdir()} == {"candidate.toml", "v2d.cu"}


def test_a_function_by_name_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "def propose(prompt, parent, candidate):\n"
        "    path = candidate / 'candidate.toml'\n"
        "    path.write_text(path.read_text().replace('-DSWIZZLE=0', '-DSWIZZLE=1'))\n"
        "    return f'{len(prompt)} characters'\n"
    )
    journal = make_search(tmp_path / "data", generator=f"{script}:propose")
    run_search(journal, 1, generator=load_generator(journal.settings.generator, 20))
    record = journal.archive().by_number[1]
    assert record.status is Status.VALID
    assert record.why.endswith("characters")


def test_a_generator_that_is_nothing_is_refused_at_once(tmp_path: Path) -> None:
    for words in ("flagz", "./not_there --x", ""):
        with pytest.raises(ProfilerError, match="flags, rewrites"):
            make_search(tmp_path, generator=words)
    assert not (tmp_path / "searches").exists()


# ---- rewrites

PLAIN = """\
__global__ void __launch_bounds__(128, 4) f(float* x) {
#pragma unroll
  for (int i = 0; i < 4; ++i) x[i] = 0;
  int n = 3;
  for (int j = 0; j < n; ++j) x[j] = 1;
  *reinterpret_cast<uint4*>(a + 8 * i) = *reinterpret_cast<const uint4*>(b + f(i));
}
__device__ int at(int row, int chunk) { return row * D + chunk * 8; }
__device__ int at2(int row, int chunk) { return row * D + (SWIZZLE ? chunk ^ (row & 7) : chunk) * 8; }
"""


def test_rewrites_follow_the_patterns_of_a_source() -> None:
    found = {rewrite.lever: rewrite.text for rewrite in rewrites_of(PLAIN)}
    assert "#pragma unroll 2\n  for (int i" in found["line 2: unroll 2"]
    assert "#pragma unroll 2\n  for (int j" in found["line 5: unroll 2"]
    assert "return row * D + (chunk ^ (row & 7)) * 8;" in found["XOR swizzle on"]
    assert "+ (chunk ^ (row & 7)) * 8" in found["SWIZZLE as if 1"]
    assert "+ (chunk) * 8" in found["SWIZZLE as if 0"]
    assert "__launch_bounds__(128, (4) + 1)" in found["launch bounds: one block more"]
    assert "__launch_bounds__(128)" in found["launch bounds: as many registers as there are"]
    halves = found["line 6: copies of uint2"]
    assert "reinterpret_cast<uint2*>(a + 8 * i)[1] = reinterpret_cast<const uint2*>(b + f(i))[1];" in halves
    for lever, text in found.items():
        assert text != PLAIN, lever
        assert text.count("\n") - PLAIN.count("\n") in (0, 1)
    assert not list(rewrites_of("int x;"))
    swizzled = found["XOR swizzle on"]
    assert PLAIN in {rewrite.text for rewrite in rewrites_of(swizzled)} or "XOR swizzle off" in {
        rewrite.lever for rewrite in rewrites_of(swizzled)
    }


def request_of(folder: Path, number: int = 1, shown: bool = False) -> Request:
    journal = make_search(folder)
    run_search(journal, 0)
    archive, catalog = journal.archive(), load_catalog()
    seed = archive.by_number[0]
    return Request(
        number,
        "",
        seed,
        journal.candidate_folder(seed.content_id),
        archive,
        insights_of(seed) if shown else (),
        random.Random(number),
        catalog,
        catalog.by_id["v2d_a"],
        space_of(catalog, "v2d_a"),
        {seed.content_id},
        lambda record: journal.candidate_folder(record.content_id),
    )


def propose(request: Request, folder: Path, words: str) -> CandidateProposal:
    folder.mkdir()
    return load_generator(words, 10).propose(request, folder)


@pytest.mark.slow
def test_rewrites_of_v2d_reach_the_swizzle_and_never_repeat(tmp_path: Path) -> None:
    request = request_of(tmp_path / "data")
    taken, levers = {request.parent.content_id}, set()
    for number in range(60):
        folder = tmp_path / str(number)
        proposal = propose(
            Request(**{**request.__dict__, "rng": random.Random(number), "taken": taken}), folder, "rewrites"
        )
        candidate = load_candidate(folder, request.catalog)
        assert candidate.id not in taken
        taken.add(candidate.id)
        levers.add(proposal.levers[0])
    assert "SWIZZLE as if 1" in levers
    assert any(lever.startswith("STAGES") for lever in levers)
    assert any(lever.startswith("launch bounds") for lever in levers)


@pytest.mark.slow
def test_rewrites_follow_the_insight_that_names_them(tmp_path: Path) -> None:
    named = []
    for shown in (True, False):
        request = request_of(tmp_path / f"data{shown}", shown=shown)
        levers = [
            propose(
                Request(**{**request.__dict__, "rng": random.Random(number)}),
                tmp_path / f"{shown}{number}",
                "rewrites",
            ).levers[0]
            for number in range(40)
        ]
        named.append(sum("SWIZZLE" in lever for lever in levers))
    assert named[0] > named[1] + 5


@pytest.mark.slow
def test_flags_follow_the_insight_that_names_them(tmp_path: Path) -> None:
    named = []
    for shown in (True, False):
        request = request_of(tmp_path / f"data{shown}", shown=shown)
        changed = [
            propose(
                Request(**{**request.__dict__, "rng": random.Random(number)}),
                tmp_path / f"{shown}{number}",
                "flags",
            ).macros["SWIZZLE"]
            for number in range(40)
        ]
        named.append(changed.count("1"))
    assert named[0] > named[1] + 5


def test_a_manifest_of_macros_launches_what_the_launcher_does(tmp_path: Path) -> None:
    """The expressions of [[search]] give what v2d.cu's own launcher asks for."""
    catalog = load_catalog()
    version, space = catalog.by_id["v2d_a"], space_of(catalog, "v2d_a")
    assert version.source is not None
    for number, values in enumerate(({}, {"WARPS": "8", "KEYS": "32", "STAGES": "3"})):
        macros = {**space.values_of(version.flags), **values}
        folder = tmp_path / str(number)
        folder.mkdir()
        write_manifest(folder, "attention", version, space, macros)
        warps, keys, stages = (int(macros[name]) for name in ("WARPS", "KEYS", "STAGES"))
        manifest = read_manifest(folder / "candidate.toml")
        for head_dim, per_tile in ((64, keys), (128, keys // 2)):
            sizes = {"batch": 2, "heads": 3, "len_q": 200, "len_kv": 77, "head_dim": head_dim, "causal": 0}
            (launch,) = manifest.plan(sizes, dict.fromkeys(("q", "k", "v", "o", "scale"), 1.0))
            assert launch.kernel == f"v2d<{head_dim}>"
            assert launch.grid == (-(-200 // (16 * warps)), 3, 2)
            assert launch.block == (32 * warps, 1, 1)
            assert launch.shared_bytes == (16 * warps + 2 * stages * per_tile) * head_dim * 2


def test_a_version_without_ranges_has_no_flags_to_walk(tmp_path: Path) -> None:
    request = request_of(tmp_path / "data")
    with pytest.raises(GeneratorFailed, match=r"\[\[search\]\]"):
        propose(Request(**{**request.__dict__, "space": None}), tmp_path / "out", "flags")


def test_the_landscape_judge_knows_what_it_is_asked(tmp_path: Path) -> None:
    request = request_of(tmp_path / "data")
    assert LandscapeJudge().screen(request.parent_folder).code_id == request.parent.code_id
