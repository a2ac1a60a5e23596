"""`profiler build`: how the making of shared libraries is asked for and told."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler.cli.output import add_json, print_json, print_table
from profiler.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Callable

    from profiler.build import BuiltLibrary, FailedBuild
    from profiler.catalog import Catalog, Version
    from profiler.cli.output import Commands

_DESCRIPTION = """\
Compile versions with nvcc, each to a shared library of its own, several at a time. nvcc is the one of
$CUDA_HOME, the PATH, or the wheels of the extra `build`. What is there already (same source, headers, flags
and compiler) is not made again. Libraries lie below $PROFILER_BUILD, else below build/ here;
where pip installed the package, in the user's cache."""


def add(commands: Commands) -> None:
    """Add `build`."""
    command = commands.add_parser(
        "build",
        help="compile versions to shared libraries",
        description=_DESCRIPTION,
        epilog="exit codes: 0 all compiled · 2 a version does not compile · 3 no nvcc, or nothing to build",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_versions(command)
    add_arches(command)
    command.add_argument(
        "--stage", metavar="STAGE", help="build for one stage alone (attention: QK, SOFTMAX or PV)"
    )
    add_jobs(command)
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Build, and print a line a version; a compiler's message goes to stderr whole."""
    from profiler.build import library
    from profiler.catalog import catalog

    lineage = catalog.load_catalog(arguments.catalog)
    chosen = lineage.pick(arguments.versions)
    how = {"extra_flags": _stage_flags(lineage, arguments.stage), "jobs": arguments.jobs}
    made = list(library.build(lineage, chosen, arguments.arch, progress=progress(), **how))
    told = left_out(chosen, arguments.arch)
    if arguments.json:
        print_json({"versions": [_document(one) for one in made], "not_built": told})
    elif made:
        _print(made, told)
    return tell_failures(made) or (Exit.PASS if made else tell_left_out(told))


def add_versions(command: argparse.ArgumentParser) -> None:
    """Add VERSION… and --catalog, which all commands about a lineage take."""
    command.add_argument("versions", nargs="*", metavar="VERSION", help="versions (default: all)")
    command.add_argument(
        "--catalog", type=Path, metavar="PATH", help="a catalog.toml or its folder (default: kernels/)"
    )


def add_arches(command: argparse.ArgumentParser) -> None:
    """Add --arch."""
    command.add_argument(
        "--arch",
        type=_arches,
        metavar="LIST",
        help="such as sm_80,sm_89,sm_90a (default: each version's own)",
    )


def add_jobs(command: argparse.ArgumentParser) -> None:
    """Add --jobs."""
    from profiler.cli.output import positive

    command.add_argument("--jobs", type=positive, metavar="N", help="at a time (default: one a CPU)")


def tell_failures(made: list[Any]) -> Exit:
    """Print what the compiler said of each version that does not compile; the exit code of all together."""
    from profiler.build import FailedBuild

    failures = [one for one in made if isinstance(one, FailedBuild)]
    for one in failures:
        print(f"{one.output}\nprofiler: {one.error}", file=sys.stderr)
    return Exit.UNUSABLE_INPUT if failures else Exit.PASS


def tell_left_out(told: dict[str, str]) -> Exit:
    """Say on stderr why nothing was built of what was asked for."""
    for version, why in told.items():
        print(f"profiler: {version} is not built: {why}", file=sys.stderr)
    return Exit.UNJUDGED


def progress() -> Callable[[str, str], None]:
    """A line on stderr for each version as it is done, so that a long build or check is seen to move."""

    def tell(version: str, what: str) -> None:
        if what != "cached":
            print(f"{version}: {what}", file=sys.stderr, flush=True)

    return tell


def _arches(text: str) -> list[str]:
    from profiler.catalog.catalog import check_arch
    from profiler.errors import BadCatalog

    try:
        return [check_arch(arch.strip()) for arch in text.split(",")]
    except BadCatalog as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _stage_flags(lineage: Catalog, stage: str | None) -> tuple[str, ...]:
    from profiler.catalog import load_problem
    from profiler.errors import UnknownName

    if stage is None:
        return ()
    problem = load_problem(lineage)
    if stage not in problem.stages:
        raise UnknownName(
            f"{lineage.family} has no stage {stage}: it has {', '.join(problem.stages) or 'none'}"
        )
    return tuple(problem.stage_flags(stage))


def left_out(chosen: tuple[Version, ...], arches: list[str] | None) -> dict[str, str]:
    """Why versions that were asked for are not built."""
    from profiler.build.library import target_arches

    found = {}
    for version in chosen:
        if version.why_not_built:
            found[version.id] = version.why_not_built
        elif not target_arches(version, arches):
            found[version.id] = f"only for {', '.join(version.arches)}"
    return found


def _document(one: BuiltLibrary | FailedBuild) -> dict[str, Any]:
    from profiler.build import FailedBuild

    if isinstance(one, FailedBuild):
        return {"version": one.version, "built": False, "error": one.error, "output": one.output}
    return {
        "version": one.version,
        "built": True,
        "library": str(one.library),
        "arches": list(one.arches),
        "cached": one.cached,
        "seconds": one.seconds,
        "source_sha256": one.source_sha256,
        "compiler": one.compiler,
        "command": list(one.command),
        "warnings": one.warnings,
        "ptxas": [{"function": x.function, "arch": x.arch, "line": x.line} for x in one.resources],
    }


def _print(made: list[BuiltLibrary | FailedBuild], told: dict[str, str]) -> None:
    from profiler.build import FailedBuild

    rows = []
    for one in made:
        if isinstance(one, FailedBuild):
            rows.append((one.version, "does not compile", "", ""))
        else:
            how = "cached" if one.cached else f"{one.seconds:.1f} s"
            rows.append((one.version, how, " ".join(one.arches), str(one.library)))
    rows += [(version, "not built", why, "") for version, why in told.items()]
    print_table(("version", "", "architectures", "library"), rows)
