"""What every document can be turned into, from its title, sentences and rows."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence

import pytest

from profiler.documents import document, markdown
from profiler.documents.document import Document
from profiler.errors import Exit, ProfilerError
from profiler.statistics.verdict import Verdict
from tests.test_layers import SOURCES


class Launches(Document):
    """Two launches, one of which nobody timed."""

    columns = ("kernel", "duration_ns", "count", "timed")

    def __init__(self, *names: str) -> None:
        self.names = names

    title = "a|b <i>"
    sentences: Sequence[str] = ("better & <b>faster</b>",)

    def rows(self) -> list[tuple[object, ...]]:
        return [
            (name, None if index else 1234567.5, index, not index) for index, name in enumerate(self.names)
        ]

    def _content(self) -> dict[str, object]:
        return {"launches": list(self.names)}


def test_the_frame_has_the_columns_and_a_gap_where_there_is_no_number() -> None:
    frame = Launches("x<y>", "z").to_frame()
    assert list(frame.columns) == ["kernel", "duration_ns", "count", "timed"]
    assert frame["duration_ns"].tolist()[0] == 1234567.5
    assert frame["duration_ns"].isna().tolist() == [False, True]
    assert str(frame["duration_ns"].dtype) == "float64"


class Judged(Launches):
    """An answer with a verdict, data of every type that answers hold, and a title of several lines."""

    title = "a\n" + "long " * 60
    verdict = Verdict.BETTER

    def _content(self) -> dict[str, object]:
        return {"tuple": (1, (2, None)), "rows": [{"verdict": Verdict.WORSE, "code": Exit.UNJUDGED}]}


def test_the_dictionary_is_what_json_reads_back() -> None:
    answer = Judged().to_dict()
    assert answer == json.loads(json.dumps(answer))
    assert repr(answer) == "{'tuple': [1, [2, None]], 'rows': [{'verdict': 'worse', 'code': 3}]}"


def test_the_repr_is_one_short_line_with_the_verdict() -> None:
    assert repr(Launches()) == "<Launches a|b <i>>"
    words = repr(Judged())
    assert words.startswith("<Judged a long long")
    assert words.endswith(" …: better>")
    assert len(words) < document.REPR_LENGTH + 30


def test_no_document_has_the_repr_that_dataclass_makes() -> None:
    for module in SOURCES:
        if module.startswith("documents."):
            importlib.import_module(f"profiler.{module}")
    kinds = [kind for kind in Document.__subclasses__() if kind.__module__.startswith("profiler.")]
    assert len(kinds) > 20
    assert {kind.__repr__ for kind in kinds} == {Document.__repr__}


def test_a_frame_of_nothing_still_has_its_columns() -> None:
    assert list(Launches().to_frame().columns) == list(Launches.columns)


def test_what_needs_a_library_of_the_dashboard_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for library, ask in (("pandas", Launches().to_frame), ("pyarrow", Launches().to_parquet)):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(ProfilerError, match=rf"{library}: `pip install .*\[dashboard\]"):
            ask()


def test_markdown_is_a_heading_the_sentences_and_a_table() -> None:
    assert Launches("x|<y>", "z").to_markdown().splitlines() == [
        "### a\\|b &lt;i>",
        "",
        "better & &lt;b>faster&lt;/b>",
        "",
        "| kernel | duration_ns | count | timed |",
        "| --- | ---: | ---: | --- |",
        "| x\\|&lt;y> | 1.23457e+06 | 0 | yes |",
        "| z | – | 1 | no |",
    ]
    assert Launches().to_markdown().endswith("faster&lt;/b>\n")


def test_a_line_ending_in_a_name_does_not_end_its_row() -> None:
    for ending in ("\n", "\r", "\r\n"):
        lines = Launches(f"x{ending}y").to_markdown().splitlines()
        assert lines[-1] == "| x y | 1.23457e+06 | 0 | yes |"
        assert markdown.code(f"x{ending}y") == "`x y`"


def test_html_escapes_every_text_and_holds_no_script() -> None:
    html = Launches("<script>alert(1)</script>", "z")._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<h3>a|b &lt;i&gt;</h3><p>better &amp; &lt;b&gt;faster&lt;/b&gt;</p>" in html
    assert '<td align="right">–</td>' in html


def test_html_says_how_many_rows_it_leaves_out() -> None:
    names = [str(number) for number in range(document.HTML_ROWS + 2)]
    html = Launches(*names)._repr_html_()
    assert html.count("<tr>") == document.HTML_ROWS + 1
    assert "and 2 more rows" in html
