"""The prompt: its parts, its insights with their numbers, templates of one's own, and the control arm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profiler.catalog.catalog import load_catalog
from profiler.errors import ProfilerError
from profiler.search.generator import CallableGenerator
from profiler.search.insights import MOST, insights_of
from profiler.search.journal import Journal
from profiler.search.prompt import NAMES, TEMPLATES, load_templates, prompt_digest, write_prompt
from profiler.search.variants import space_of
from tests.search.simulated import make_search, run_search


def prompts_of(folder: Path, total: int = 12, **options: object) -> tuple[Journal, list[str]]:
    """A search by a generator that keeps its prompts and walks the stages."""
    prompts: list[str] = []

    def keep(prompt: str, parent: Path, candidate: Path) -> None:
        prompts.append(prompt)
        source = candidate / "v2d.cu"
        source.write_text(source.read_text() + f"// {len(prompts)}\n")

    journal = make_search(folder, **options)  # type: ignore[arg-type]
    run_search(journal, total, generator=CallableGenerator(keep))
    return journal, prompts


@pytest.mark.slow
def test_a_prompt_has_its_parts_and_ends_in_what_is_asked(tmp_path: Path) -> None:
    journal, prompts = prompts_of(tmp_path)
    records = journal.archive().records[1:]
    for record, prompt in zip(records, prompts, strict=True):
        assert record.prompt_sha256 == prompt_digest(prompt)
        for head in ("# Task", "## History", "## Evolution", "## Elites", "## What is asked"):
            assert head in prompt
        assert "| iteration | goal | status | time | finding |" in prompt
        assert prompt.rstrip().endswith("One child of c0, at most two named levers, and why\nin five lines.")
        assert '#include "ptx.cuh"' in prompt
        assert "SWIZZLE = 0, of 0, 1" in prompt
        assert ("## Insights" in prompt) == (record.arm == "insights") == bool(record.shown)
        assert record.offered
    assert {record.arm for record in records} == {"insights", "control"}


@pytest.mark.slow
def test_every_number_of_an_insight_is_in_its_record(tmp_path: Path) -> None:
    journal, prompts = prompts_of(tmp_path, control_share=0.0)
    seed = journal.archive().by_number[0]
    insights = insights_of(seed)
    assert 1 <= len(insights) <= MOST
    assert insights[0].kind == "shared conflicts" or "shared conflicts" in {i.kind for i in insights}
    for insight in insights:
        assert insight.numbers
        assert f"[{insight.kind}]" in prompts[0]
        for name, value in insight.numbers.items():
            candidate, part, *keys = name.split("/")
            found: object = getattr(journal.archive().by_number[int(candidate[1:])], part)
            for key in keys:
                found = found[key]  # type: ignore[index]
            assert found == value
            assert f"{name} = {value:g}" in prompts[0]
    assert re.search(r"lever: .*SWIZZLE", prompts[0])


def test_templates_of_ones_own_stand_in_for_those_that_ship(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "ask.md").write_text("Schreibe $parent neu; $$5.\n")
    journal = make_search(tmp_path / "data")
    run_search(journal, 0)
    archive, space = journal.archive(), space_of(load_catalog(), "v2d_a")
    folder = journal.candidate_folder(archive.by_number[0].content_id)

    def text(templates: str) -> str:
        seed = archive.by_number[0]
        return write_prompt(
            journal.settings, archive, seed, folder, insights_of(seed), space, load_templates(templates)
        )

    assert text(str(tmp_path / "own")).rstrip().endswith("Schreibe c0 neu; $5.")
    (tmp_path / "own" / "ask.md").write_text("$nobody")
    with pytest.raises(ProfilerError, match="there is no \\$nobody"):
        text(str(tmp_path / "own"))
    with pytest.raises(ProfilerError, match="has no template"):
        load_templates(str(tmp_path / "data"))
    assert {path.name for path in TEMPLATES.iterdir()} == set(NAMES)
