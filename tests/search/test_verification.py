"""What `profiler data verify` says of searches."""

from __future__ import annotations

from pathlib import Path

from profiler.bundles.location import LocalRoot
from profiler.documents.verify import verify_data
from profiler.search.verification import verify_searches
from tests.search.simulated import make_search, run_search


def test_a_search_that_is_whole_has_no_findings_and_one_that_was_changed_is_named(tmp_path: Path) -> None:
    journal = make_search(tmp_path)
    run_search(journal, 3)
    root = LocalRoot(tmp_path)
    assert list(verify_searches(root)) == []
    records = journal.archive().records
    source = journal.candidate_folder(records[1].content_id) / "v2d.cu"
    source.write_text(source.read_text() + "// changed\n")
    (journal.candidate_folder(records[2].content_id) / "candidate.toml").unlink()
    found = dict.fromkeys(message for _, message in verify_searches(root))
    assert any(text.startswith(f"{records[1].name}: ") and "another candidate" in text for text in found)
    assert any(text.startswith(f"{records[2].name}: ") and "no manifest" in text for text in found)
    assert len(found) == 2
    document = verify_data(quick=True, data=str(tmp_path))
    assert {finding.subject for finding in document.verification.findings} == {journal.settings.id}
    (journal.folder / "records" / "20261101T000000.000001-c9.json").write_text("{")
    assert [subject for subject, _ in verify_searches(root)] == [journal.settings.id]
