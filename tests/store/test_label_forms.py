"""The forms of a label: what each says of a report, and that one which says nothing is refused."""

from __future__ import annotations

import pytest

from profiler.errors import ProfilerError
from profiler.store.label_forms import ReportPath, label_rules

PATH = ReportPath("prof_n4096_h8", "github.com/lab/norms/silu/triton")


@pytest.mark.parametrize(
    ("option", "label"),
    [
        ("silu", "silu"),
        (" N=4096 ", "N=4096"),  # an = alone makes no rule: workloads are written so
        ("{folder}", "triton"),
        ("{folder[-2]}-{stem}", "silu-prof_n4096_h8"),
        ("silu*=act", "act"),
        ("prof_n????_*={folder[-2]}", "silu"),
        ("[ab]*=act", None),
        ("*/silu/*=act", "act"),
        ("*/rms/*=act", None),
        (r"/_n(\d+)/", "4096"),
        (r"/n\d+/", "n4096"),
        (r"/_n(\d+)_h(\d+)/=n{1} h{2}", "n4096 h8"),
        (r"/_n(?P<length>\d+)/={folder}={length}", "triton=4096"),
        (r"/tri(\w+)/", "ton"),
        (["rms*=norm", "silu*=act", "rest"], "act"),
        (["rms*=norm", "rest"], "rest"),
        (None, None),
    ],
)
def test_a_form_says_the_label(option: str | list[str] | None, label: str | None) -> None:
    assert label_rules("workload", option).label(PATH) == label


def test_the_name_is_searched_before_the_path() -> None:
    assert label_rules("version", r"/v(\d+)/").label(ReportPath("mm_v7", "lab/v2/reports")) == "7"


@pytest.mark.parametrize(
    ("kind", "option", "words"),
    [
        ("family", "{parent}", "no field {parent}; there are {stem}, {commit}, {folder}"),
        ("family", r"/(\d)/={2}", "no field {2}"),
        ("family", "/(/", "not a regular expression"),
        ("family", "silu*=", "needs a name after the ="),
        ("family", "", "needs a name"),
        ("family", "a/b", "cannot contain '/'"),
        ("family", ["silu", "rms*=norm"], "never counts"),
        ("workload", "a\nb", "printable"),
    ],
)
def test_a_form_that_says_nothing_is_refused_at_once(kind: str, option: str | list[str], words: str) -> None:
    with pytest.raises(ProfilerError) as refused:
        label_rules(kind, option)
    assert words in str(refused.value)


def test_a_path_that_is_too_short_or_not_known_is_said() -> None:
    with pytest.raises(ProfilerError, match="has 5 folders"):
        label_rules("family", "{folder[-9]}").label(PATH)
    with pytest.raises(ProfilerError, match="is not known"):
        label_rules("family", "{folder}").label(ReportPath("v1", ""))
    with pytest.raises(ProfilerError, match="cannot contain '/'"):
        label_rules("family", r"/lab.norms/").label(PATH)
