"""What commands about a catalogue's versions share, and `profiler static --build-only`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import print_document

if TYPE_CHECKING:
    from profiler.build.library import FailedBuild
    from profiler.catalog.catalog import Catalog

INTERRUPTED = 130  # as a shell says it of a program that Ctrl-C ended


def build(arguments: argparse.Namespace) -> int:
    """Build, and print a line a version; a compiler's message goes to stderr whole."""
    from profiler.documents.build import build_versions

    trusted_catalog(arguments)
    options = {"catalog": arguments.catalog, "arches": arguments.arch, "stage": arguments.stage}
    document = build_versions(arguments.versions, **options, jobs=arguments.jobs, progress=progress())
    print_document(document, arguments)
    print_failures(document.failures)
    if not document.outcomes:
        print_not_built(document.not_built)
    return document.exit_code


def print_failures(failures: Sequence[FailedBuild]) -> None:
    """What the compiler said of each version that does not compile, on stderr."""
    for failure in failures:
        print(f"{failure.output}\nprofiler: {failure.error}", file=sys.stderr)


def print_not_built(not_built: Mapping[str, str]) -> None:
    """Why nothing was built of what was asked for, on stderr."""
    for version, why in not_built.items():
        print(f"profiler: {version} is not built: {why}", file=sys.stderr)


def add_versions(command: argparse.ArgumentParser) -> None:
    """Add VERSION… and --catalog, which all commands about a lineage take."""
    command.add_argument("versions", nargs="*", metavar="VERSION", help="versions (default: all)")
    add_catalog(command)


def add_catalog(command: argparse.ArgumentParser) -> None:
    """Add --catalog and --trust."""
    command.add_argument(
        "--catalog", type=Path, metavar="PATH", help="a catalog.toml or its folder (default: kernels/)"
    )
    command.add_argument(
        "--trust",
        action="store_true",
        help="allow the catalogue's Python, compiler flags and kernels to run, until they change",
    )


def trusted_catalog(arguments: argparse.Namespace) -> Catalog:
    """The catalogue that was named, which may run its author's code; raises NotTrusted where it may not."""
    from profiler.catalog.catalog import load_catalog
    from profiler.catalog.trust import remember_trust, require_trust

    catalog = load_catalog(arguments.catalog)
    if arguments.trust:
        remember_trust(catalog)
    require_trust(catalog)
    return catalog


def add_arches(command: argparse.ArgumentParser) -> None:
    """Add --arch."""
    command.add_argument(
        "--arch",
        type=_arches,
        metavar="LIST",
        help="architectures, such as sm_80,sm_89,sm_90a (default: each version's own)",
    )


def add_jobs(command: argparse.ArgumentParser) -> None:
    """Add --jobs."""
    from profiler.cli.output import positive

    command.add_argument("--jobs", type=positive, metavar="N", help="parallel jobs (default: one per CPU)")


def progress() -> Callable[[str, str], None]:
    """A line on stderr for each version as it is done, so that a long build or check is seen to move."""

    def print_progress(version: str, what: str) -> None:
        if what != "cached":
            print(f"{version}: {what}", file=sys.stderr, flush=True)

    return print_progress


def split_list(text: str) -> list[str]:
    """The words of a comma-separated list."""
    return [word.strip() for word in text.split(",") if word.strip()]


def arch(text: str) -> str:
    """One architecture, for argparse."""
    (one,) = _arches(text.replace(",", " "))
    return one


def _arches(text: str) -> list[str]:
    from profiler.catalog.catalog import check_arch
    from profiler.errors import BadCatalog

    try:
        return [check_arch(arch.strip()) for arch in text.split(",")]
    except BadCatalog as error:
        raise argparse.ArgumentTypeError(str(error)) from None
