"""[[search]] in a catalogue: what is read, and what is refused with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.catalog.catalog import load_catalog
from profiler.errors import BadCatalog

HEAD = """\
family = "f"
problem = "profiler.catalog.attention:ATTENTION"
[[version]]
id = "a"
technique = "t"
file = "a.cu"
flags = ["-DTILE=8"]
[[version]]
id = "b"
technique = "t"
file = "b.cu"
"""
GOOD = """\
[[search]]
versions = ["a"]
kernel = "k"
grid = "len_q"
block = "TILE"
arguments = ["q"]
macros = { TILE = { values = [4, 8], techniques = ["occupancy/block size"] } }
"""


def catalogue(folder: Path, search: str) -> Path:
    (folder / "a.cu").write_text("#ifndef TILE\n#define TILE 4\n#endif\n")
    (folder / "b.cu").write_text("")
    (folder / "catalog.toml").write_text(HEAD + search)
    return folder / "catalog.toml"


def test_a_space_says_the_macros_and_their_values(tmp_path: Path) -> None:
    catalog = load_catalog(catalogue(tmp_path, GOOD))
    space = catalog.space_of("a")
    assert space is not None
    assert space.macros["TILE"].values == (4, 8)
    assert space.defaults == {"TILE": "4"}
    assert space.values_of(catalog.by_id["a"].flags) == {"TILE": "8"}
    assert space.values_of(()) == {"TILE": "4"}
    assert catalog.space_of("b") is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (('["a"]', '["c"]'), "c is no version"),
        (('["a"]', '["a", "b"]'), "share one source"),
        (('["a"]', "[]"), "needs versions"),
        (("kernel", "colonel"), "unknown key colonel"),
        (('block = "TILE"\n', ""), "block is missing"),
        (("[4, 8]", "[4]"), "at least two"),
        (("[4, 8]", '["4", "8"]'), "whole numbers"),
        (("TILE = {", "tile = {"), "a name of capitals"),
        (("TILE = {", "OTHER = {"), "does not say `#ifndef OTHER`"),
        (('grid = "len_q"', "grid = [1, 2, 3, 4]"), "grid, block"),
        (("[[search]]", "[search]"), "search must be a list"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    text = GOOD.replace(*change)
    assert text != GOOD
    with pytest.raises(BadCatalog) as refused:
        load_catalog(catalogue(tmp_path, text))
    assert reason in str(refused.value)
