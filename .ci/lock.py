"""Writes requirements.lock, what `make setup` installs with the hashes of all files, and docs/licences.md.

Run by `make lock` after pyproject.toml or constraints.txt changed. Which versions, says pip under
constraints.txt; which files a version has, says the package index that pip is configured with.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from pip._internal.models.index import PyPI

ROOT = Path(__file__).resolve().parents[1]
BUILD = ["hatchling", "editables"]  # what builds the package itself: no other version of it is fetched
USABLE = re.compile(r"-(py3|py2\.py3|cp3\d*-abi3)|-cp3(11|12|13)-cp3(11|12|13)-|\.tar\.gz$")
OWN = "attention-kernel-profiler"
LINUX_ONLY = " ; sys_platform == 'linux'"
LICENCES = """# Licences of what is installed

What `make setup` installs and under which licence, as the packages say themselves; written by `make lock`.
Nothing of it is part of this repository. Two kinds are NVIDIA's and proprietary: `ncu-report`, which reads
`.ncu-rep` files, and cuobjdump and nvdisasm, which name the opcodes of machine code. NVIDIA's own terms hold.
The extra `agents` adds the MCP SDK (MIT) and what it needs, all under MIT, BSD, Apache-2.0 or PSF.

| package | licence |
|---|---|
"""
HEAD = "# What `make setup` installs, and the hashes of the files of every version. Written by `make lock`.\n"


def resolved() -> dict[str, str]:
    """The version of every package that setup needs, by name."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        asked = ["-c", str(ROOT / "constraints.txt"), *BUILD, f"{ROOT}[dashboard]"]
        pip = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", "--report"]
        subprocess.run([*pip, str(report), *asked], check=True)
        packages = [entry["metadata"] for entry in json.loads(report.read_text())["install"]]
    versions = {re.sub(r"[-_.]+", "-", package["name"]).lower(): package["version"] for package in packages}
    return {name: versions[name] for name in sorted(versions) if name != OWN}


def licence(name: str) -> str:
    """The licence in a few words, as the installed package itself names it."""
    package = importlib.metadata.metadata(name)
    named = (package["License-Expression"] or package["License"] or "").strip()
    if not named or len(named) > 60 or "\n" in named:
        kinds = [text for text in package.get_all("Classifier") or [] if text.startswith("License :: ")]
        named = ", ".join(text.rpartition(" :: ")[2] for text in kinds)
    return named or "not named"


def hashes(name: str, version: str) -> list[str]:
    """The sha256 of the files of a version that some Python from 3.11 to 3.13 can install."""
    request = urllib.request.Request(
        f"{PyPI.simple_url}/{name}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}
    )
    with urllib.request.urlopen(request) as answer:
        files = json.load(answer)["files"]
    words = "[-_.]+".join(map(re.escape, name.split("-")))
    start = re.compile(rf"{words}-{re.escape(version)}(-|\.tar\.gz$)", re.IGNORECASE)
    return sorted(
        {
            file["hashes"]["sha256"]
            for file in files
            if start.match(file["filename"]) and USABLE.search(file["filename"])
        }
    )


def main() -> None:
    """Write both files."""
    lines, rows = [HEAD], []
    for name, version in resolved().items():
        known = hashes(name, version)
        if not known:
            sys.exit(f"the index has no file of {name} {version}")
        marker = LINUX_ONLY if name.startswith("nvidia-cuda-") else ""
        digests = (f"--hash=sha256:{digest}" for digest in known)
        lines.append(" \\\n    ".join([f"{name}=={version}{marker}", *digests]) + "\n")
        rows.append(f"| {name} | {licence(name)} |\n")
    (ROOT / "requirements.lock").write_text("".join(lines), "utf-8")
    (ROOT / "docs" / "licences.md").write_text(LICENCES + "".join(rows), "utf-8")


if __name__ == "__main__":
    main()
