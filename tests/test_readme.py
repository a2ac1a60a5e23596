"""What the README claims, held against the code."""

import re
from pathlib import Path

from profiler.catalog import catalog
from profiler.cli import parser
from profiler.errors import Exit

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _commands() -> set[str]:
    (choices,) = [action.choices for action in parser()._actions if hasattr(action, "_choices_actions")]
    return set(choices)


def test_every_command_stands_in_the_readme_and_no_other() -> None:
    rows = [line for line in README.splitlines() if line.startswith("| `profiler ")]
    named = {name for row in rows for name in re.findall(r"`(?:profiler )?([a-z]+)", row.split("|")[1])}
    assert named == _commands()


def test_the_exit_codes_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| (\d) \| ", README, re.M)
    assert [int(row) for row in rows] == sorted(Exit)


def test_the_lineage_table_is_the_catalogues() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:`(\w+)`|–) \| (.+?) \| (.+?) \|$", README, re.M)
    told = [(name, parent or None, idea, state.partition(":")[0]) for name, parent, idea, state in rows]
    entries = [one for one in catalog.load_catalog().versions if one.state != "baseline"]
    assert told == [(one.id, one.parent, one.technique, one.state) for one in entries]
    caught = {name: state.partition(": caught by ")[2] for name, _, _, state in rows}
    assert caught == {one.id: ", ".join(one.caught_by) for one in entries}


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    asked = re.findall(r"^    make (\w+)", README, re.M)
    assert asked == ["dashboard", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in asked)


def test_every_picture_and_file_that_the_readme_names_is_there() -> None:
    for path in re.findall(r"\]\(([\w./-]+)\)", README) + re.findall(
        r"`((?:profiler|kernels|tests)/[\w./]+)`", README
    ):
        assert (ROOT / path).exists(), path
