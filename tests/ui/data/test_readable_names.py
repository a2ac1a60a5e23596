"""What an abbreviated name in an address means: one known name, or a line on what there is."""

from pathlib import Path

import pytest

from profiler.ui.data.readable_names import (
    Fit,
    matching_names,
    meant_name,
    meant_option,
    meant_options,
    refusal,
)
from tests.ui.test_pages import page, text

VERSIONS = ("attention/v2", "attention/v2d_b", "gemm/v2", "gemm/v3")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("v2d_b", "attention/v2d_b"),
        ("ATTENTION/V2", "attention/v2"),
        ("gemm/v2", "gemm/v2"),
        ("v3", "gemm/v3"),
    ],
)
def test_a_version_is_meant_by_the_part_that_only_it_has(asked: str, meant: str) -> None:
    assert meant_name(asked, VERSIONS, Fit.LAST_PART) == meant


def test_what_fits_several_or_none_means_nothing() -> None:
    assert meant_name("v2", VERSIONS) is None
    assert meant_name("v9", VERSIONS) is None
    assert meant_name("", VERSIONS) is None
    assert "attention/v2, gemm/v2" in refusal("version", "v2", VERSIONS)
    assert "there are" in refusal("version", "v9", VERSIONS)


def test_a_version_is_not_meant_by_its_beginning_lest_a_misspelt_one_shows_another() -> None:
    assert meant_name("v2d", VERSIONS, Fit.LAST_PART) is None
    assert meant_name("v2d", VERSIONS, Fit.BEGINNING) == "attention/v2d_b"


def test_a_workload_is_meant_by_its_words() -> None:
    workloads = ("2x8x2048x64 fp16", "2x8x2048x64 fp8", "NVIDIA H100 80GB HBM3")
    assert meant_name("2048x64 fp8", workloads) == "2x8x2048x64 fp8"
    assert meant_name("h100", workloads) == "NVIDIA H100 80GB HBM3"
    assert matching_names("2x8", workloads) == list(workloads[:2])


LABELS = {
    "static_registers": "registers, compiled",
    "conflicts": "bank conflicts, modelled",
    "wavefronts": "wavefronts, modelled",
    "ideal": "wavefronts, modelled ideal",
    "spills": "SPILLS",
}


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("spills", "spills"),
        ("registers, compiled", "static_registers"),
        ("Registers", "static_registers"),
        ("Wavefronts, Modelled", "wavefronts"),
        ("bank", None),
        ("compiled", None),
    ],
)
def test_an_option_is_meant_by_its_name_or_its_label_and_by_no_part_of_either(
    asked: str, meant: str | None
) -> None:
    assert meant_option(asked, list(LABELS), LABELS.__getitem__, Fit.LAST_PART) == meant


def test_in_a_list_a_label_may_hold_commas() -> None:
    asked = "spills,registers, compiled,nope,,bank conflicts"
    assert meant_options(asked, list(LABELS), LABELS.__getitem__) == [
        ("spills", "spills"),
        ("registers, compiled", "static_registers"),
        ("nope", None),
        ("bank conflicts", "conflicts"),
    ]
    assert meant_options(" , ,", ["a"]) == []


def test_a_line_on_what_is_not_there_says_what_there_is_or_that_there_is_none() -> None:
    assert refusal("workload", "zzz", []) == "The address asks for workload zzz: not here; there is none"
    assert refusal("workload", "zzz", ["a"], "a").endswith("zzz: not here; there is only a")
    assert refusal("gpu", "zzz", ["a", "b"], "a").endswith("zzz: not here; there are a, b. Shown: a")
    labels = refusal("metrics", "zzz", list(LABELS), "", LABELS.__getitem__)
    assert (
        "there are “registers, compiled”, “bank conflicts, modelled”, “wavefronts, modelled” and 2" in labels
    )


@pytest.mark.slow
@pytest.mark.usefixtures("pages_of")
class TestPages:
    def test_the_sides_of_a_diff_may_be_abbreviated(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("diff", made_data, monkeypatch, a="MW_Baseline", b="mw_divtomult")
        assert app.query_params["a"] == "ncar/MW_Baseline"
        assert app.query_params["b"] == "ncar/MW_DivToMult"
        assert "A MW_Baseline → B MW_DivToMult" in text(app)

    def test_a_run_may_be_abbreviated_and_one_that_is_not_there_is_named(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (run_id,) = [path.name for path in (made_data / "runs").glob("*-ncar-MW_Baseline-*")]
        app = page("runs", made_data, monkeypatch, run=run_id[:-4])
        assert app.query_params["run"] == run_id
        assert "asks for" not in text(app)
        app = page("runs", made_data, monkeypatch, run="nothing-like-it")
        assert "The address asks for run nothing-like-it" in text(app)

    def test_a_workload_that_a_page_has_not_is_named_in_one_line(
        self, made_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page("trends", made_data, monkeypatch, family="ncar", workload="2x8")
        assert "The address asks for workload 2x8" in text(app)
        assert "asks for" not in text(page("trends", made_data, monkeypatch, family="ncar"))
