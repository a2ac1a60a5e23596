"""What the README and docs/ claim, held against the code."""

import ast
import re
import shlex
from pathlib import Path

import pytest

from profiler.catalog.catalog import load_catalog
from profiler.cli import GROUPS, parser
from profiler.documents.declared import ANSWERS
from profiler.errors import Exit
from tests.command_lines import choices, commands, flags
from tests.docs_rows import written

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
MEASURING = (ROOT / "docs/measuring.md").read_text(encoding="utf-8")
LINEAGE = (ROOT / "docs/lineage.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def _named(row: str) -> list[str]:
    """The commands that a row is about, by their whole names."""
    texts = [
        text.removeprefix("profiler ").split()
        for text in re.findall(r"`([^`]+)`", re.split(r"(?<!\\)\|", row)[1])
    ]
    return [" ".join(words[: 2 if words[0] in GROUPS else 1]) for words in texts]


def test_every_command_stands_in_the_list_of_commands_and_no_other() -> None:
    rows = [line for line in COMMANDS.splitlines() if line.startswith("| `profiler ")]
    assert {name for row in rows for name in _named(row)} == commands().keys()


def test_a_flag_in_the_list_of_commands_is_one_of_its_command() -> None:
    known, unknown = commands(), []
    for row in (line for line in COMMANDS.splitlines() if line.startswith("| `profiler ")):
        taken = {flag for name in _named(row) for flag in flags(known[name])}
        named = re.findall(r"(?<!-)--[a-z][a-z-]*", row.replace("`ncu --metrics`", ""))
        unknown += [(_named(row)[0], flag) for flag in named if flag not in taken]
    assert unknown == []


def test_the_rows_of_declared_answers_are_what_they_declare() -> None:
    assert written(COMMANDS) == COMMANDS, "write them again: python -m tests.docs_rows"


def test_every_command_answers_one_of_the_readmes_questions() -> None:
    rows = README.partition("| question | command |")[2].partition("\n\n")[0].splitlines()[2:]
    named = [name for row in rows for name in re.findall(r"`(?:profiler )?([a-z]+)`", row.split("|")[2])]
    assert set(named) <= set(choices(parser()))
    assert set(choices(parser())) - set(named) <= set(ANSWERS), "what is declared stands in docs/commands.md"


def test_the_exit_codes_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| (\d) \| ", COMMANDS, re.M)
    assert [int(row) for row in rows] == sorted(Exit)


def test_every_call_of_the_half_hour_with_a_gpu_is_one_that_the_commands_take() -> None:
    text = MEASURING.replace("… ", "profiler ").replace("$OUT", "out").replace(" 2>&1", "")
    code = "\n".join(re.findall(r"^    .*$|`[^`]+`", text, re.M))
    lines = [shlex.split(line) for line in re.findall(r"\bprofiler ([^;|#`\n]+)", code)]
    calls = [parser().parse_args(line) for line in lines]
    assert {call.command for call in calls} >= {"doctor", "collect", "import", "list", "compare"}
    assert {call.noise for call in calls if call.command == "collect"} == {False, True}
    named = {name for call in calls if call.command == "collect" for name in call.versions}
    assert {"v2d_b", "fp8_stage_c"} < named <= set(load_catalog().by_id)
    sections = re.findall(r"^## (\d)\. (\w+)", text, re.M)
    assert [int(number) for number, _ in sections] == list(range(1, 7))


def test_the_lineage_table_is_the_catalogues() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:`(\w+)`|–) \| (.+?) \| (.+?) \|$", LINEAGE, re.M)
    table = [(name, parent or None, idea, state.partition(":")[0]) for name, parent, idea, state in rows]
    versions = [version for version in load_catalog().versions if version.state != "baseline"]
    assert table == [(entry.id, entry.parent, entry.technique, entry.state) for entry in versions]
    caught = {name: state.partition(": caught by ")[2] for name, _, _, state in rows}
    assert caught == {version.id: ", ".join(version.caught_by) for version in versions}


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^    make (\w+)", README, re.M)
    assert targets == ["dashboard", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_picture_and_file_that_a_document_names_is_there(document: Path) -> None:
    text = document.read_text("utf-8")
    links = re.findall(r"\]\(([\w./-]+)\)", text)
    assert [link for link in links if not (document.parent / link).exists()] == []
    named = re.findall(r"`((?:profiler|kernels|tests|docs|bench|examples)/[\w./-]*\w/?)`", text)
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_anchor_that_a_document_links_to_is_a_heading_there(document: Path) -> None:
    links = re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", document.read_text("utf-8"))
    targets = [(document.parent / path if path else document, anchor) for path, anchor in links]
    assert [anchor for path, anchor in targets if anchor not in _anchors(path)] == []


def _anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives the document's headings."""
    headings = re.findall(r"^#+ (.+)$", document.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    ("name", "words"),
    [("README.md", 900), ("CONTRIBUTING.md", 1200), ("docs/verdicts.md", 2000), ("CHANGELOG.md", 1100)],
)
def test_a_document_that_everyone_reads_stays_short(name: str, words: int) -> None:
    assert len((ROOT / name).read_text("utf-8").split()) <= words  # 200 words a minute


def test_the_readme_shows_three_pictures() -> None:
    assert len(re.findall(r"^!\[", README, re.M)) == 3


def test_no_message_names_a_file_that_an_installed_wheel_lacks() -> None:
    """Docstrings are for whoever reads the code, which has docs/ beside it."""
    named = []
    for path in sorted((ROOT / "profiler").rglob("*.py")):
        text = path.read_text("utf-8")
        if "docs/" not in text:
            continue
        tree = ast.parse(text)
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        named += [
            f"{path.relative_to(ROOT)}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
            if re.search(r"\bdocs/\w+\.md", node.value)
        ]
    assert named == []
