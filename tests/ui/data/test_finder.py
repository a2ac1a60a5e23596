"""The palette's search: by any part of a name, the best fit first, and everything that has a page."""

from pathlib import Path

import pytest

from profiler.ui.data import finder, index
from profiler.ui.data.finder import Entry


def entry(label: str, detail: str = "", group: str = "versions") -> Entry:
    return Entry(group, label, detail, f"./diff?b={label}")


ENTRIES = (
    entry("attention/v2d_b", "against v2c"),
    entry("attention/v2"),
    entry("gemm/v2"),
    entry("v2", group="runs"),
)


def labels(text: str) -> dict[str, list[str]]:
    return {group: [entry.label for entry in found] for group, found in finder.find(ENTRIES, text).items()}


def test_the_name_itself_comes_before_one_that_begins_so() -> None:
    assert labels("v2") == {"versions": ["attention/v2", "gemm/v2", "attention/v2d_b"], "runs": ["v2"]}


def test_every_word_must_be_somewhere() -> None:
    assert labels("att V2C") == {"versions": ["attention/v2d_b"]}
    assert labels("att nothing") == {}


def test_no_words_find_all_and_a_group_is_cut() -> None:
    assert sum(map(len, finder.find(ENTRIES, "").values())) == len(ENTRIES)
    assert len(finder.find(ENTRIES, "v2", per_group=1)["versions"]) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("pages_of")
def test_versions_kernels_metrics_runs_and_pages_are_found(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(made_data))
    entries = finder.entries(index.current_version(), (("Overview", ""), ("Trends", "trends")))
    found = {
        text: {group: found[0].href for group, found in finder.find(entries, text).items()}
        for text in ("MW_DivToMult", "set_halo", "occupancy", "trends")
    }
    assert "family=ncar" in found["MW_DivToMult"]["versions"]
    assert "run=" in found["MW_DivToMult"]["runs"]
    assert "kernels=set_halo" in found["set_halo"]["kernels"]
    assert "metrics=" in found["occupancy"]["metrics"]
    assert found["trends"]["pages"] == "./trends"
