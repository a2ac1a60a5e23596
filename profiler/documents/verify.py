"""What `verify` found, as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from profiler.documents.blocks import Block, Line
from profiler.documents.document import Document
from profiler.errors import Exit

if TYPE_CHECKING:
    from profiler.store.sync import Progress
    from profiler.store.verify import Verification


@dataclass(frozen=True, repr=False)
class VerifyDocument(Document):
    """A row a finding."""

    verification: Verification

    title = "Verify"
    columns = ("subject", "path", "message")

    @property
    def sentences(self) -> Sequence[str]:
        """What was checked, and how much is wrong."""
        seen = self.verification
        index = "the index" if seen.index_compared else "without the index"
        checked = (
            f"{seen.runs} runs, {seen.files} files ({seen.size_bytes:,} bytes), "
            f"{seen.decisions} decisions, {index}"
        )
        found = len(seen.findings)
        return (f"{checked}: {'all as it should be' if not found else f'{found} found'}",)

    @property
    def exit_code(self) -> Exit:
        """Unusable input where anything is wrong."""
        return Exit.UNUSABLE_INPUT if self.verification.findings else Exit.PASS

    def rows(self) -> list[tuple[object, ...]]:
        """A row a finding."""
        return [(finding.subject, finding.path, finding.message) for finding in self.verification.findings]

    def _content(self) -> dict[str, object]:
        seen = self.verification
        return {
            "runs": seen.runs,
            "files": seen.files,
            "size_bytes": seen.size_bytes,
            "decisions": seen.decisions,
            "index_compared": seen.index_compared,
            "findings": [
                {"subject": finding.subject, "path": finding.path, "message": finding.message}
                for finding in seen.findings
            ],
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A line a finding, then what was checked."""
        yield from (Line(f"{finding.subject}: {finding.message}") for finding in self.verification.findings)
        yield from map(Line, self.sentences)


def verify_data(
    *, quick: bool = False, data: str | None = None, progress: Progress | None = None
) -> VerifyDocument:
    """Check bundles against their hashes, and the index against the bundles.

    The sha256 of every file is checked, every decision and search is read, and the index is compared with a
    new one made from them. Nothing is changed; one line per finding, exit code 2 if there are any.

    Arguments:
        quick: skip the index

    Raises ProfilerError where the folder cannot be reached.

        profiler.verify(quick=True).to_frame()
    """
    from profiler.bundles.location import open_root
    from profiler.search.verification import verify_searches
    from profiler.store.verify import Fault
    from profiler.store.verify import verify_data as verify_stored

    found = verify_stored(quick=quick, data=data, progress=progress)
    searches = [Fault(search_id, message) for search_id, message in verify_searches(open_root(data))]
    return VerifyDocument(replace(found, findings=(*found.findings, *searches)))
