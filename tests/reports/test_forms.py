"""Every form in which ncu prints a report gives its numbers, states and launches, or says why not."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from profiler.reports import read as reports_read
from tests.conftest import FAMILIES
from tests.reports.forms import FORMS, LOCALES, RECORDED, RECORDED_REPORTS, Form, print_form, what_differs

NCU = os.environ.get("PROFILER_TEST_NCU", "")


@pytest.fixture(scope="module")
def recorded() -> dict[str, bytes]:
    with zipfile.ZipFile(RECORDED) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED_REPORTS)
def test_each_recorded_form_gives_what_the_report_holds(
    made_reports: Path, recorded: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    original = reports_read.read_report(made_reports / f"{name}.ncu-rep")
    wrong = {}
    for form in FORMS:
        for locale in form.locales:
            path = tmp_path / f"{form.name}.{locale}.csv"
            path.write_bytes(recorded[f"{name}.{form.name}.{locale}.csv"])
            if words := what_differs(original, path, form):
                wrong[form.name, locale] = words[:3]
    assert wrong == {}


def test_the_recorded_forms_are_those_of_the_table(recorded: dict[str, bytes]) -> None:
    assert set(recorded) == {
        f"{name}.{form.name}.{locale}.csv"
        for name in RECORDED_REPORTS
        for form in FORMS
        for locale in form.locales
    }


@pytest.mark.long
@pytest.mark.skipif(not NCU, reason="no ncu: PROFILER_TEST_NCU names one; it needs no GPU to print a report")
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_each_form_that_an_ncu_prints_gives_what_the_report_holds(
    reports: Path, tmp_path: Path, form: Form
) -> None:
    wrong, cells = {}, 0
    locales = [name for name in form.locales if name == "C" or _has_locale(LOCALES[name])]
    for path in sorted(path for family in FAMILIES for path in (reports / family).glob("*.ncu-rep")):
        original = reports_read.read_report(path)
        for locale in locales:
            printed = tmp_path / f"{path.stem}.{locale}.csv"
            printed.write_bytes(print_form(NCU, path, form, locale))
            cells += 1
            if words := what_differs(original, printed, form):
                wrong[path.stem, locale] = words[:3]
    assert cells >= 16
    assert wrong == {}


def _has_locale(name: str) -> bool:
    """Whether the machine has a locale, or LOCPATH names a folder that does."""
    known = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout
    folder = os.environ.get("LOCPATH")
    return name.lower().replace("-", "") in known.lower() or bool(folder and (Path(folder) / name).is_dir())
