"""What `backup` wrote and what `restore` took, as documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.documents.blocks import Block, Line, Notes
from profiler.documents.document import Document
from profiler.errors import Exit

if TYPE_CHECKING:
    from profiler.bundles.backup import BackupSummary, RestoreSummary
    from profiler.store.sync import Progress


@dataclass(frozen=True, repr=False)
class BackupDocument(Document):
    """A row for each run or decision that is damaged and therefore left out."""

    summary: BackupSummary

    title = "Backup"
    columns = ("left_out", "message")

    @property
    def sentences(self) -> Sequence[str]:
        """What the file holds."""
        held = self.summary
        what = f"{held.runs} runs and {held.decisions} decisions"
        if held.searches:
            what = f"{held.runs} runs, {held.decisions} decisions and {held.searches} searches"
        return (f"{held.path}: {what}, {held.size_bytes:,} bytes",)

    @property
    def exit_code(self) -> Exit:
        """Unusable input where anything is left out."""
        return Exit.UNUSABLE_INPUT if self.summary.left_out else Exit.PASS

    def rows(self) -> list[tuple[object, ...]]:
        """A row for each that is left out."""
        return list(self.summary.left_out)

    def _content(self) -> dict[str, object]:
        held = self.summary
        return {
            "path": str(held.path),
            "runs": held.runs,
            "decisions": held.decisions,
            "searches": held.searches,
            "size_bytes": held.size_bytes,
            "left_out": [{"name": name, "message": message} for name, message in held.left_out],
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """What the file holds, then each that is left out."""
        yield from map(Line, self.sentences)
        yield Notes([f"left out: {message}" for _, message in self.summary.left_out])


def write_backup(out: Path, *, data: str | None = None, progress: Progress | None = None) -> BackupDocument:
    """Write all runs, decisions and searches as one tar.gz.

    The file is written whole or not at all. The sha256 of every file is checked: a damaged run is left out
    and named, and the exit code is then 2. `sha256sum -c` reads its last file, SHA256SUMS; `profiler data
    restore` puts it back.

    Arguments:
        out: the file, such as runs.tar.gz; an existing one is replaced

    Raises ProfilerError where the file cannot be written.

        profiler.backup("backup.tar.gz").sentences
    """
    from profiler.store.backups import back_up

    return BackupDocument(back_up(out, data=data, progress=progress))


@dataclass(frozen=True, repr=False)
class RestoreDocument(Document):
    """What became of the runs of a backup; a row for each run or decision that was refused."""

    summary: RestoreSummary
    refused: tuple[tuple[str, str], ...]  # name, message: by the folder or by the index

    title = "Restore"
    columns = ("refused", "message")

    @property
    def sentences(self) -> Sequence[str]:
        """How many were taken, and how many not."""
        counts = {
            "runs restored": len(self.summary.restored),
            "decisions restored": self.summary.decisions,
            "searches restored": self.summary.searches,
            "runs already there": len(self.summary.already),
            "runs left out, deleted here since": len(self.summary.deleted),
            "refused": len(self.refused),
        }
        taken = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        return (taken or "the backup is empty",)

    @property
    def exit_code(self) -> Exit:
        """Unusable input where anything is refused."""
        return Exit.UNUSABLE_INPUT if self.refused else Exit.PASS

    def rows(self) -> list[tuple[object, ...]]:
        """A row for each that is refused."""
        return list(self.refused)

    def _content(self) -> dict[str, object]:
        return {
            "restored": self.summary.restored,
            "already": self.summary.already,
            "deleted": self.summary.deleted,
            "decisions": self.summary.decisions,
            "searches": self.summary.searches,
            "refused": [{"name": name, "message": message} for name, message in self.refused],
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """How many were taken, then each that is refused."""
        yield from map(Line, self.sentences)
        yield Notes([message for _, message in self.refused])


def restore(path: Path, *, data: str | None = None, progress: Progress | None = None) -> RestoreDocument:
    """Put a backup into the data folder and its index. Raises BadBundle for a file that is damaged."""
    from profiler.store.backups import restore_backup

    restored, indexed = restore_backup(path, data=data, progress=progress)
    return RestoreDocument(restored, (*restored.refused, *indexed.refused))
