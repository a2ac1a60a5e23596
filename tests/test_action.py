"""The GitHub Action: its scripts, run by bash as a runner does it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from profiler.cli import parser
from tests import lineages
from tests.gate.test_library_gate import build_library
from tests.toolchain import needs_sass

pytestmark = pytest.mark.slow  # each command is a process

ROOT = Path(__file__).resolve().parent.parent


def script(step: str) -> str:
    """The script of one step of action.yml."""
    text = (ROOT / "action.yml").read_text()
    lines = text[text.index(f"- name: {step}\n") :].split("run: |\n", 1)[1].splitlines()
    own = [line for line in lines if not line or line.startswith(" " * 8)]
    stop = next((at for at, line in enumerate(lines) if line and not line.startswith(" " * 8)), len(lines))
    return textwrap.dedent("\n".join(own[:stop])) + "\n"


class Runner:
    """A workspace with a small lineage, and what a runner gives to the step that judges."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.temp = folder / "work space", folder / "temp"
        (self.workspace / "data").mkdir(parents=True)
        (self.temp / "profiler/bin").mkdir(parents=True)
        for name, words in (("python", ""), ("profiler", " -m profiler")):
            program = self.temp / "profiler/bin" / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
            program.chmod(0o755)
        self.summary, self.output = self.temp / "summary.md", self.temp / "output"
        self.said = ""  # on stderr, by the last step

    def gate(
        self, names: str = "", baseline: str = "", arguments: str = "", link: str = "", library: str = ""
    ) -> int:
        for file in (self.summary, self.output):
            file.write_text("")
        environment = {
            key: words for key, words in os.environ.items() if key not in ("PROFILER_DATA", "PROFILER_DB")
        }
        environment |= {"NAMES": names, "BASELINE": baseline, "ARGUMENTS": arguments, "LINK": link}
        environment["LIBRARY"] = library
        environment |= {"RUNNER_TEMP": str(self.temp), "PYTHONPATH": str(ROOT)}
        environment |= {"GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_OUTPUT": str(self.output)}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script("Gate")]
        done = subprocess.run(command, cwd=self.workspace, env=environment, capture_output=True, text=True)
        self.said = done.stderr
        return done.returncode

    def run(self, *words: str) -> None:
        """Run the program in the workspace, as somebody does before a commit."""
        program = str(self.temp / "profiler/bin/profiler")
        subprocess.run(
            [program, *words], cwd=self.workspace, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True
        )


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_a_step_judges_the_runs_of_its_workspace_and_tells_the_pull_request(runner: Runner) -> None:
    lineages.dissected(runner.workspace / "data")
    arguments = "--evidence static --workload 'head dim 64'"
    assert runner.gate("mine/alpha", "mine/zero", arguments, "https://a.example") == 1
    assert runner.output.read_text() == "exit-code=1\n"
    assert "registers: 40 → 64" in runner.summary.read_text()
    answer = json.loads((runner.workspace / "gate.json").read_text())
    assert {one["workload"] for one in answer["findings"]} == {"head dim 64"}
    assert runner.gate("mine/zero", "mine/alpha", arguments) == 0


def test_a_step_that_cannot_judge_says_why_and_shows_nothing_of_the_step_before(runner: Runner) -> None:
    lineages.dissected(runner.workspace / "data")
    assert runner.gate("mine/alpha", "mine/zero") == 1
    assert runner.gate("mine/alpha", "mine/zeero") == 2
    assert runner.output.read_text() == "exit-code=2\n"
    assert "could not run" in runner.summary.read_text()
    assert "mine/zeero: neither a file nor a run" in runner.summary.read_text()
    assert not (runner.workspace / "gate.md").exists()


@needs_sass
def test_a_repository_with_a_library_alone_is_red_on_a_planted_spill_and_green_else(runner: Runner) -> None:
    (runner.workspace / "data").rmdir()
    example = (ROOT / "docs/static.md").read_text()
    (workflow,) = re.findall(r"```yaml\n(.*?)```", example, re.S)
    assert len(workflow.splitlines()) == 10
    library = re.search(r"library: (.*)", workflow)
    assert library
    file = runner.workspace / library[1]
    file.parent.mkdir()
    good, bad = (build_library(runner.temp, blocks=blocks) for blocks in (1, 2))
    file.write_bytes(good.read_bytes())
    runner.run("pin", library[1])
    assert runner.gate(library=library[1]) == 0
    assert "Functions: 4 unchanged" in runner.summary.read_text()
    file.write_bytes(bad.read_bytes())
    assert runner.gate(library=library[1]) == 1
    assert "in an innermost loop" in runner.summary.read_text()
    assert "spills" in (runner.workspace / "gate.xml").read_text()
    assert json.loads((runner.workspace / "gate.sarif").read_text())["runs"][0]["results"]
    runner.run("pin", library[1], "--reason", "two blocks are worth it")
    assert runner.gate(library=library[1]) == 0
    assert "two blocks are worth it" in runner.summary.read_text()


def test_nothing_of_an_input_is_run(runner: Runner) -> None:
    lineages.dissected(runner.workspace / "data")
    mark = runner.temp / "mark"
    touch = f"touch '{mark}'"
    assert runner.gate(f"$({touch}) `{touch}` ; {touch}", f"$({touch})", f"'; {touch}'") == 2
    assert not mark.exists()


def test_a_quote_that_never_ends_is_one_line_and_an_exit_code(runner: Runner) -> None:
    for inputs in ({"names": 'mine/"alpha'}, {"arguments": "--evidence 'static"}):
        assert runner.gate(**inputs) == 2
        ((name, text),) = inputs.items()
        assert runner.said == f"profiler: input {name}: No closing quotation in {text!r}\n"
        assert runner.said.strip() in runner.summary.read_text()
        assert runner.output.read_text() == "exit-code=2\n"


def test_a_workspace_without_runs_is_not_judged_by_the_runs_of_this_project(runner: Runner) -> None:
    (runner.workspace / "data").rmdir()
    assert runner.gate() == 2
    assert "the index is empty" in runner.summary.read_text()


def test_the_action_calls_the_command_as_it_is() -> None:
    """Every option that action.yml and its example give to `profiler gate` and `dissect` is one they take."""
    action = (ROOT / "action.yml").read_text()
    script = action[action.index("- name: Gate") :].replace("\\\n", " ")
    (call,) = [line for line in script.splitlines() if '/profiler" gate' in line]
    options = set(re.findall(r"--[a-z]+", call))
    assert options == {"--baseline", "--link", "--out"}
    example = (ROOT / "docs/gate-workflow.yml").read_text()
    given = re.search(r"arguments: (.*)", example)
    assert given
    parsed = parser().parse_args(
        ["gate", "--baseline", "b", "--link", "l", "--out", "o.md", *given[1].split()]
    )
    assert parsed.evidence == ["static", "modelled"]
    inputs = set(re.findall(r"inputs\.([a-z]+)", action))
    declared = set(re.findall(r"^  ([a-z]+):$", action[: action.index("outputs:")], re.M))
    assert inputs == declared
