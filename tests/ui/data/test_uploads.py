"""Names of uploaded files: whatever a browser sends becomes the name of a file in its own folder."""

import pytest

from profiler.ui.data.uploads import file_name


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("v1.ncu-rep", "v1.ncu-rep"),
        ("../../etc/v1.csv", "v1.csv"),
        ("C:\\reports\\v1.csv", "v1.csv"),
        ("..", "upload"),
        ("", "upload"),
        ("a/", "upload"),
        ("a\0b.csv", "ab.csv"),
        ("é" * 300 + ".ncu-rep", "é" * 75 + ".ncu-rep"),
        ("x." + "y" * 300, "x." + "y" * 148 + "y" * 20),
        ("\udc80.csv", "?.csv"),
    ],
)
def test_a_name_that_was_sent_becomes_a_files_name(sent: str, kept: str) -> None:
    assert file_name(sent) == kept
    assert len(kept.encode()) <= 255
