"""A command is a module of its own, and the list of these modules is complete."""

from __future__ import annotations

import re
from pathlib import Path

from profiler import cli


def test_every_module_that_adds_a_command_is_listed_and_no_other() -> None:
    modules = Path(cli.__file__).parent.glob("*.py")
    adding = {path.stem for path in modules if re.search(r"^def add\(", path.read_text("utf-8"), re.M)}
    assert sorted(cli.COMMAND_MODULES) == sorted(adding)
