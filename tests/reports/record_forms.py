"""Record what a real ncu prints of the made reports.

    PROFILER_TEST_NCU=/path/to/ncu python -m tests.reports.record_forms

LOCPATH may name a folder of locales that the machine lacks.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path

from tests.reportfiles import made_reports
from tests.reports.forms import FORMS, RECORDED, RECORDED_REPORTS, print_form

if __name__ == "__main__":
    ncu = os.environ["PROFILER_TEST_NCU"]
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(RECORDED, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target,
    ):
        made_reports.write(Path(folder))
        for name in RECORDED_REPORTS:
            for form in FORMS:
                for locale in form.locales:
                    text = print_form(ncu, Path(folder) / f"{name}.ncu-rep", form, locale)
                    entry = zipfile.ZipInfo(f"{name}.{form.name}.{locale}.csv")
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    target.writestr(entry, text)
