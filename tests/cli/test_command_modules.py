"""A command is a module of its own, and the list of these modules is complete."""

from __future__ import annotations

import re
from pathlib import Path

from profiler import cli
from profiler.cli.old_names import OLD_NAMES, renamed
from tests.command_lines import choices

LISTED = {*cli.COMMANDS.values()} | {module for names in cli.GROUPS.values() for module in names.values()}


def test_every_module_that_adds_a_command_is_listed_and_no_other() -> None:
    modules = Path(cli.__file__).parent.glob("*.py")
    adding = {path.stem for path in modules if re.search(r"^def add\(", path.read_text("utf-8"), re.M)}
    assert sorted(LISTED - {""}) == sorted(adding)


def test_the_module_of_a_command_is_known_before_any_is_imported() -> None:
    """A command builds its own parser: one that is not named here would build all."""
    assert list(choices(cli.parser())) == list(cli.COMMANDS)
    for name in cli.COMMANDS:
        assert cli._needed([name, "x"]) == [name]
        assert list(choices(cli.parser([name]))) == [name]
    for words in ([], ["--help"], ["nosuch"]):
        assert cli._needed(words) == tuple(cli.COMMANDS)


def test_a_group_has_the_commands_that_stand_in_the_table() -> None:
    assert {name for name, module in cli.COMMANDS.items() if not module} == {*cli.GROUPS}
    for group, names in cli.GROUPS.items():
        assert set(choices(choices(cli.parser([group]))[group])) == set(names)


def test_an_old_name_is_none_of_todays_and_takes_what_it_took() -> None:
    assert not OLD_NAMES.keys() & cli.COMMANDS.keys()
    calls = {
        **dict.fromkeys(("runs", "versions", "workloads", "verify", "index", "build", "dissect"), ""),
        "metrics": "--chip sm_90 --tier lean",
        "history": "duration --version v1 --family f",
        "noise": "v1 --pairs 20 --rounds 3 --budget 8m",
        "relabel": "run --family f --why typo",
        **dict.fromkeys(("forget", "export", "restore", "backup"), "name"),
        "delete": "run --why old --yes",
        "prune": "--older 3 --dry-run",
        "baseline": "set f v1 --gpu L4",
        "acknowledge": "v1 --up-to 8%",
        "pair": "f a=b",
        "note": "v1 fans at full speed",
    }
    assert calls.keys() == OLD_NAMES.keys()
    for name, options in calls.items():
        assert callable(cli.parser().parse_args(renamed([name, *options.split()])).handler)


def test_an_old_name_is_told_on_stderr_alone(capsys) -> None:
    today = cli.main(["list", "metrics", "--json"]), capsys.readouterr()
    before = cli.main(["metrics", "--json"]), capsys.readouterr()
    assert (before[0], before[1].out, today[1].err) == (today[0], today[1].out, "")
    assert before[1].err == "profiler: `profiler metrics` is now `profiler list metrics`\n"
    assert renamed(["noise", "--list", "--json"]) == ["list", "noise", "--json"]
    assert "`profiler list noise`" in capsys.readouterr().err
    assert renamed(["compare", "noise", "index"]) == ["compare", "noise", "index"]
    assert capsys.readouterr().err == ""
