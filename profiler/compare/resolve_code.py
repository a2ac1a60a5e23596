"""What a name on the command line means as machine code: a binary, a launch, kept code, code built here."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profiler.build import library, toolchain
from profiler.bundles import location
from profiler.catalog import Catalog, Version, catalog, sources
from profiler.cli.output import open_store
from profiler.compare import VersionRef, kernel_filter, launch_labels, name_filter, resolve_names
from profiler.errors import BadCatalog, BuildFailed, CannotJudge, UnknownName
from profiler.evidence import NCU_DURATION, Evidence, Launch, Side, brief_list
from profiler.reports import read
from profiler.sass import CodeNotStored, Listing, StoredCode, from_runs, hotspots
from profiler.sass import listing as sass_listing

_ELF = b"\x7fELF"
_TOOLS = ("nvcc", "cuobjdump", "nvdisasm")
_BUILD = "`--build` builds them, with the CUDA toolkit"


@dataclass(frozen=True)
class Origin:
    """Where a side's machine code comes from."""

    evidence: Evidence  # measured: of a launch, with its counts; static: of a compiler, nothing was run
    run_id: str | None = None  # None: of a file, or built here
    arch: str | None = None  # None: the file says it
    compiler: str | None = None
    note: str = ""  # what the reader must know before believing it

    @property
    def words(self) -> str:
        """`static: sm_90a, nvcc 13.0.88, kept in run 2026…; nothing was run, so no samples and no counts`."""
        if self.evidence is Evidence.MEASURED:
            return ""
        place = f"kept in run {self.run_id}" if self.run_id else "built here" if self.compiler else ""
        said = ", ".join(filter(None, (self.arch, self.compiler, place)))
        none = "nothing was run, so no samples and no counts"
        return "; ".join(filter(None, (f"static: {said or 'a binary'}", none, self.note)))


@dataclass(frozen=True)
class Code:
    """One side's machine code, and the launch that it comes from; None for what was compiled and not run."""

    listing: Listing
    launch: Launch | None
    origin: Origin


@dataclass(frozen=True)
class Wanted:
    """Which code of a named side is meant."""

    kernel: str | None
    ordinal: int | None  # of the launch in its report
    like: Launch | None  # the other side's
    arch: str | None  # of what a compiler made
    workload: str | None
    gpu: str | None
    compiled: bool  # of a version what a compiler made, measured or not
    build: bool  # and that here and now, kept by a run or not
    lineage: Catalog | None
    ran_on: str | None = None  # the compute capability that the other side was measured on


def resolve_all(arguments: argparse.Namespace) -> list[Code]:
    """The code of every named side; of B the launch of A's kernel where nobody chose another.

    Raises UnknownName, and CannotJudge where a report holds no instructions.
    """
    names = [name for name in (arguments.a, arguments.b) if name is not None]
    lineage = _lineage(arguments.catalog)
    wanted = Wanted(
        arguments.kernel,
        arguments.launch,
        None,
        arguments.arch,
        arguments.workload,
        arguments.gpu,
        arguments.arch is not None or arguments.build,
        arguments.build,
        lineage,
    )
    sides = [_side(name, wanted) for name in names]
    compiled = [name for name, side in zip(names, sides, strict=True) if side is None]
    if arguments.arch is None:
        ran_on = next((side.compute_capability for side in sides if side), None)
        wanted = replace(wanted, arch=_arch(lineage, compiled, arguments.build, ran_on), ran_on=ran_on)
    found = [_resolve(names[0], sides[0], wanted)]
    if len(names) > 1:
        ordinal = arguments.launch if arguments.b_launch is None else arguments.b_launch
        again = replace(wanted, ordinal=ordinal, like=found[0].launch)
        found.append(_resolve(names[1], sides[1], again))
    return found


def scale(codes: Sequence[Code]) -> float:
    """What a sample of B is worth in samples of A; 1 where nobody knows."""
    a, b = (code.launch for code in codes)
    return (a and b and hotspots.sample_scale(a.values, b.values)) or 1.0


def _side(name: str, wanted: Wanted) -> Side | None:
    """What a GPU measured of a name; None for a binary and for what is meant as a compiler made it."""
    if _is_binary(name):
        return None
    entry = _entry(wanted.lineage, name)
    pair = _pair(wanted.lineage, name, entry)
    if wanted.compiled and pair and (entry is None or entry.buildable):
        return None
    if entry and not _is_known(name):
        return None
    with contextlib.suppress(resolve_names.NothingShared):
        kind = Evidence.MEASURED
        return resolve_names.resolve_all([name], open_store, wanted.workload, wanted.gpu, kind)[0]
    return None


def _resolve(name: str, side: Side | None, wanted: Wanted) -> Code:
    if side is not None:
        return _measured(side, name, wanted)
    if _is_binary(name):
        listing = sass_listing.disassemble(Path(name), wanted.arch)
        return _named(listing, name, wanted.kernel, Origin(Evidence.STATIC, arch=wanted.arch))
    entry = _entry(wanted.lineage, name)
    pair = _pair(wanted.lineage, name, entry)
    if entry and not entry.buildable:
        why = f"is planned: {entry.reason}" if entry.callable is None else f"is Python ({entry.callable})"
        raise CannotJudge(f"{name} {why}; its machine code comes with a report of it, and there is none")
    if pair is None:
        raise CannotJudge(f"{name} was not measured and is in no catalogue here: no machine code of it")
    return _compiled(name, pair, entry, wanted)


def _is_binary(name: str) -> bool:
    path = Path(name)
    return path.is_file() and (path.suffix in (".cubin", ".fatbin") or _starts_with(path, _ELF))


def _is_known(name: str) -> bool:
    """Whether a file or the index has something of a name."""
    if not resolve_names.is_file_name(name):
        try:
            resolve_names.check_name(name, open_store)
        except UnknownName:
            return False
    return True


def _pair(lineage: Catalog | None, name: str, entry: Version | None) -> VersionRef | None:
    """The version that a name of the catalogue, else of the index, means; None for a file."""
    if lineage and entry:
        return VersionRef(lineage.family, entry.id)
    if resolve_names.is_file_name(name):
        return None
    with contextlib.suppress(UnknownName):
        return resolve_names.resolve_version(open_store(), name)
    return None


def _compiled(name: str, pair: VersionRef, entry: Version | None, wanted: Wanted) -> Code:
    """What a compiler made of a version: as a run keeps it, or built here where that is not of these sources.

    Where the sources here have changed and no compiler is here, the kept code stands, and it is said.
    """
    why: CodeNotStored | None = None
    if pair.run_id and wanted.build:
        raise UnknownName(f"{name} is what a run has, which cannot be built: leave out --build, or the run")
    if not wanted.build:
        try:
            kept = _kept(pair, wanted.arch)
        except CodeNotStored as error:
            why = error
        else:
            changed = pair.run_id is None and _changed(wanted.lineage, entry, kept)
            if not changed or not all(map(toolchain.find_tool, _TOOLS)):
                notes = [f"the sources here are not those of that run: {_BUILD}"] if changed else []
                if wanted.ran_on and not from_runs.newest_running_on(wanted.ran_on, [kept.arch]):
                    notes.append(
                        f"the other side ran on compute capability {wanted.ran_on}, which this is not for"
                    )
                origin_of = Origin(Evidence.STATIC, kept.run_id, kept.arch, kept.compiler, "; ".join(notes))
                return _named(kept.listing, name, wanted.kernel, origin_of)
    if entry is None or not entry.buildable:
        raise why or CannotJudge(f"{name} is in no catalogue here, so it cannot be built")
    try:
        return _built(wanted.lineage, entry, name, wanted)
    except CannotJudge as error:
        raise CannotJudge(f"{why}, and it cannot be built here: {error}" if why else str(error)) from None


def _kept(pair: VersionRef, arch: str | None) -> StoredCode:
    """The code that a run keeps, for the architecture asked for or else the newest."""
    store = open_store()
    arch = arch or from_runs.common_architecture(store, [pair])
    if arch is None:
        raise CodeNotStored(f"no run keeps machine code of {pair.name}")
    return from_runs.find_code(location.open_root(), store, pair.family, pair.version, arch, pair.run_id)


def _changed(lineage: Catalog | None, entry: Version | None, kept: StoredCode) -> bool:
    """Whether the version here is not what the kept code was compiled from."""
    if lineage is None or entry is None or not entry.buildable:
        return False
    return sources.source_sha256(lineage, entry) != kept.source_sha256


def _starts_with(path: Path, first: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(first)) == first


def _measured(side: Side, name: str, wanted: Wanted) -> Code:
    """The launch meant: the one asked for by its number, else the longest that --kernel fits."""
    launch = _choose(side, name, wanted)
    with _report(side, name, launch) as path:
        if path.suffix.lower() == ".csv":
            raise CannotJudge(f"{name}: ncu's CSV holds no machine code: name the report that it was made of")
        detail = read.launch_detail(path, launch.ordinal)
    label = launch_labels(side.launches)[side.launches.index(launch)]
    if not len(detail.pcs):
        way_out = "collect with `--set full` or `--section SourceCounters`"
        way_out += (
            ", or say --arch for what the compiler made of it" if _catalogued(wanted.lineage, name) else ""
        )
        raise CannotJudge(f"{name}: the report holds no instructions of {label}: {way_out}")
    origin_of = Origin(Evidence.MEASURED, side.run_id)
    return Code(sass_listing.listing_of_launch(detail, f"{name} {label}"), launch, origin_of)


def _choose(side: Side, name: str, wanted: Wanted) -> Launch:
    fits = kernel_filter(wanted.kernel)
    kept = [one for one in side.launches if fits(one) and wanted.ordinal in (None, one.ordinal)]
    if not kept:
        asked = f"kernel like {wanted.kernel!r}" if wanted.ordinal is None else f"launch {wanted.ordinal}"
        named = zip(side.launches, launch_labels(side.launches), strict=True)
        raise UnknownName(
            f"{name} has no {asked}; there are {brief_list([f'{a.ordinal} {b}' for a, b in named])}"
        )
    if wanted.like:
        kept = [one for one in kept if one.base_name == wanted.like.base_name] or kept
        kept = [one for one in kept if one.nvtx == wanted.like.nvtx] or kept
    return max(kept, key=lambda one: (one.values.number(NCU_DURATION) or 0, -one.ordinal))


@contextlib.contextmanager
def _report(side: Side, name: str, launch: Launch) -> Iterator[Path]:
    """The file of the report that a launch of a side came from."""
    if side.run_id is None:
        yield Path(name)
        return
    result = side.result_ids[side.launches.index(launch)]
    known = open_store().results(run_id=side.run_id)
    digest = next((one.report_sha256 for one in known if one.result_id == result), None)
    if digest is None:
        raise CannotJudge(f"{name} keeps no report of {launch.base_name}")
    from profiler.store import open_report

    with open_report(side.run_id, digest) as path:
        yield path


def _lineage(path: Path | None) -> Catalog | None:
    """The catalogue asked for, else the one here, if there is one: a report is read without."""
    if path is not None:
        return catalog.load_catalog(path)
    with contextlib.suppress(BadCatalog):
        return catalog.load_catalog()
    return None


def _entry(lineage: Catalog | None, name: str) -> Version | None:
    """The catalogue's version that is called so."""
    family, _, version = name.rpartition("/")
    return lineage.by_id.get(version) if lineage and family in ("", lineage.family) else None


def _catalogued(lineage: Catalog | None, name: str) -> Version | None:
    """The catalogue's version that is called so and can be built."""
    found = _entry(lineage, name)
    return found if found and found.buildable else None


def _arch(lineage: Catalog | None, names: list[str], build_here: bool, ran_on: str | None) -> str | None:
    """The newest architecture of the named versions of the catalogue, or of what runs hold of them.

    One whose code runs where the other side was measured goes before; None where none of them is a version.
    """
    versions = [one for name in names if (one := _catalogued(lineage, name))]
    first = versions[0].arches if versions else ()
    shared = [arch for arch in first if all(one.supports(arch) for one in versions)]
    pairs = [pair for name in names if (pair := _pair(lineage, name, _entry(lineage, name)))]
    declared = (ran_on and from_runs.newest_running_on(ran_on, shared)) or (shared[-1] if shared else None)
    if build_here or not pairs:
        return declared
    store = open_store()
    if ran_on and len(pairs) == 1:
        declared = (
            from_runs.newest_running_on(ran_on, from_runs.compiled_architectures(store, *pairs[0]))
            or declared
        )
    return from_runs.common_architecture(store, pairs, declared) or declared


def _built(lineage: Catalog | None, version: Version, name: str, wanted: Wanted) -> Code:
    assert lineage
    arch = wanted.arch
    made = next(library.build(lineage, [version], [arch] if arch else None), None)
    if made is None:
        raise CannotJudge(f"{version.id} is not for {arch}; it is for {', '.join(version.arches)}")
    if isinstance(made, library.FailedBuild):
        raise BuildFailed(made.error)
    listing = sass_listing.disassemble(made.library, arch)
    return _named(listing, name, wanted.kernel, Origin(Evidence.STATIC, None, arch, made.compiler))


def _named(listing: Listing, name: str, kernel: str | None, origin_of: Origin) -> Code:
    """The functions of a binary that --kernel fits."""
    fits = name_filter(kernel) if kernel else None
    kept = sass_listing.select_functions(listing, fits) if fits else listing
    if not kept.lines:
        raise UnknownName(
            f"{name} has no function like {kernel!r}; there are {brief_list(listing.functions)}"
        )
    return Code(replace(kept, label=name), None, origin_of)
