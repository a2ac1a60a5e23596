"""Nothing stands in the package for tests alone: a function, class or constant is named where it is used."""

from __future__ import annotations

import ast
import re
from collections import Counter

from profiler.documents.declared import ANSWERS
from tests.test_layers import ROOT, SOURCES

# Words that a test holds others against, a type of a type, and a generator for a search that a program makes.
USED_OTHERWISE = {
    "advice.techniques.TECHNIQUES",
    "model.error_table.WRITE_COMMAND",
    "search.generator.CallableGenerator",
}


def defined(tree: ast.Module) -> set[str]:
    """The functions, classes and constants of a module."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and not node.decorator_list):
            names.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets += [node.target] if isinstance(node, ast.AnnAssign) else []
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("__")}


def used(tree: ast.Module) -> Counter[str]:
    """How often each name is read in a module; an import alone is no use."""
    names: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            names[node.id] += 1
        elif isinstance(node, ast.Attribute):
            names[node.attr] += 1
    return names


def test_what_the_package_defines_is_used() -> None:
    trees = {module: ast.parse(path.read_text("utf-8")) for module, path in SOURCES.items()}
    others = [*(ROOT / "bench").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *ROOT.rglob("catalog.toml")]
    told = set(re.findall(r"\w+", " ".join(path.read_text("utf-8") for path in others)))
    everywhere = sum((used(tree) for tree in trees.values()), Counter[str]())
    everywhere.update(answer.function.partition(":")[2] for answer in ANSWERS.values())
    dead = {
        f"{module}.{name}"
        for module, tree in trees.items()
        for name in defined(tree)
        if not everywhere[name] and name not in told and not module.startswith(("ui.pages", "__init__"))
    }
    assert dead == USED_OTHERWISE
