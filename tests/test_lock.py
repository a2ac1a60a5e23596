"""requirements.lock follows pyproject.toml and constraints.txt, with hashes, and the licences follow it."""

from __future__ import annotations

import re
import tomllib

from tests.conftest import ROOT

LOCK = (ROOT / "requirements.lock").read_text("utf-8")
LOCKED = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, re.MULTILINE))


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_version_has_hashes_and_is_the_one_of_the_constraints() -> None:
    entries = LOCK.split("\n\n")[-1].replace(" \\\n", " ").splitlines()
    entries = [entry for entry in entries if not entry.startswith("#")]
    assert len(entries) == len(LOCKED) > 40
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    constrained = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    constrained = {plain(name): version for name, version in constrained.items()}
    assert {name: constrained.get(name) for name in LOCKED} == LOCKED


def test_what_the_package_depends_on_is_locked_and_its_licence_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["sass"]]
    names = {plain(re.split(r"[^\w.-]", text)[0]) for text in asked}
    assert names <= LOCKED.keys()
    extra = plain(re.split(r"[^\w.-]", project["optional-dependencies"]["agents"][0])[0])
    assert f"{extra}==" in (ROOT / "constraints.txt").read_text("utf-8"), "the tests install it"
    table = (ROOT / "docs" / "licences.md").read_text("utf-8")
    assert set(re.findall(r"^\| ([a-z0-9-]+) \|", table, re.MULTILINE)) == LOCKED.keys() | {"package"}


def test_the_actions_of_the_example_are_pinned_and_may_only_read() -> None:
    example = (ROOT / "docs" / "gate-workflow.yml").read_text("utf-8")
    used = re.findall(r"uses: \S+@(\S+)", example)
    assert len(used) == 4
    assert all(re.fullmatch(r"[0-9a-f]{40}|COMMIT", commit) for commit in used)
    assert "permissions:\n  contents: read\n" in example
