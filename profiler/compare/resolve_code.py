"""What a name means as machine code: a binary, a launch, code that a run keeps, or code built here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profiler.build import library, toolchain
from profiler.bundles import location
from profiler.catalog import Catalog, Version, catalog, sources
from profiler.compare import resolve_names
from profiler.compare.match_launches import kernel_filter, launch_labels, name_filter
from profiler.compare.resolve_names import NothingShared, StoreOpener, VersionRef
from profiler.errors import BadCatalog, BuildFailed, CannotJudge, UnknownName
from profiler.evidence import NCU_DURATION, Evidence, Launch, Side, brief_list
from profiler.reports import read
from profiler.sass import (
    CodeNotStored,
    Listing,
    StoredCode,
    disassemble,
    hotspots,
    listing_of_launch,
    select_functions,
    stored_code,
)
from profiler.store import open_report

_ELF = b"\x7fELF"  # how a library or cubin begins, whatever it is called
_TOOLS = ("nvcc", "cuobjdump", "nvdisasm")  # that a build here needs
_BUILD_HINT = "`--build` builds them, with the CUDA toolkit"


@dataclass(frozen=True)
class CodeOrigin:
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
        known = ", ".join(filter(None, (self.arch, self.compiler, place)))
        not_run = "nothing was run, so no samples and no counts"
        return "; ".join(filter(None, (f"static: {known or 'a binary'}", not_run, self.note)))


@dataclass(frozen=True)
class SideCode:
    """One side's machine code, and the launch that it comes from; None for what was compiled and not run."""

    listing: Listing
    launch: Launch | None
    origin: CodeOrigin


@dataclass(frozen=True)
class CodeChoice:
    """Which code of the named sides is meant, where they have several."""

    kernel: str | None = None  # a pattern for `kernel_filter`
    launch: int | None = None  # its ordinal in the report
    b_launch: int | None = None  # that of the second side; None: as the first
    arch: str | None = None  # of a binary with several; of a version: what the compiler made for it
    workload: str | None = None
    gpu: str | None = None
    build: bool = False  # of a version: built here, whatever a run keeps of it
    catalog: Path | None = None  # of versions; None: the one here, if there is one


def resolve_code(names: Sequence[str], choice: CodeChoice, store_opener: StoreOpener) -> list[SideCode]:
    """The code of one or two named sides; of B the launch of A's kernel where nobody chose another.

    Raises UnknownName, and CannotJudge where a report holds no instructions.
    """
    resolver = _Resolver(choice, store_opener, _find_catalog(choice.catalog), choice.arch)
    sides = [resolver.measured_side(name) for name in names]
    if choice.arch is None:
        compiled = [name for name, side in zip(names, sides, strict=True) if side is None]
        ran_on = next((side.compute_capability for side in sides if side), None)
        resolver = replace(resolver, arch=resolver.choose_arch(compiled, ran_on), ran_on=ran_on)
    codes = [resolver.code(names[0], sides[0], choice.launch, None)]
    if len(names) > 1:
        ordinal = choice.launch if choice.b_launch is None else choice.b_launch
        codes.append(resolver.code(names[1], sides[1], ordinal, codes[0].launch))
    return codes


def sample_scale(codes: Sequence[SideCode]) -> float:
    """What a sample of B is worth in samples of A; 1 where nobody knows."""
    a, b = (code.launch for code in codes)
    return (a and b and hotspots.sample_scale(a.values, b.values)) or 1.0


@dataclass(frozen=True)
class _Resolver:
    """Finds the code of each name; the index is opened only for names that are no file."""

    choice: CodeChoice
    store_opener: StoreOpener
    catalog: Catalog | None
    arch: str | None  # of what a compiler made
    ran_on: str | None = None  # the compute capability that the other side was measured on

    def measured_side(self, name: str) -> Side | None:
        """What a GPU measured of a name; None for a binary and for what is meant as a compiler made it."""
        if _is_binary(name):
            return None
        entry = self._entry(name)
        version = self._version(name, entry)
        compiled_is_meant = self.choice.arch is not None or self.choice.build
        if compiled_is_meant and version and (entry is None or entry.buildable):
            return None
        if entry and not self._has_results(name):
            return None
        with contextlib.suppress(NothingShared):
            choice = self.choice
            return resolve_names.resolve_all(
                [name], self.store_opener, choice.workload, choice.gpu, Evidence.MEASURED
            )[0]
        return None

    def choose_arch(self, names: Sequence[str], ran_on: str | None) -> str | None:
        """The newest architecture of the named versions of the catalogue, or of what runs keep of them.

        One whose code runs where the other side was measured goes first; None where no name is a version.
        """
        entries = [entry for name in names if (entry := self._buildable(name))]
        arches = entries[0].arches if entries else ()
        shared = [arch for arch in arches if all(entry.supports(arch) for entry in entries)]
        versions = [version for name in names if (version := self._version(name, self._entry(name)))]
        arch = (ran_on and stored_code.newest_running_on(ran_on, shared)) or (shared[-1] if shared else None)
        if self.choice.build or not versions:
            return arch
        store = self.store_opener()
        if ran_on and len(versions) == 1:
            kept = stored_code.compiled_architectures(store, *versions[0])
            arch = stored_code.newest_running_on(ran_on, kept) or arch
        return stored_code.common_architecture(store, versions, arch) or arch

    def code(self, name: str, side: Side | None, ordinal: int | None, like: Launch | None) -> SideCode:
        """The code of a name: of a launch of `side` where it was measured, else of a compiler.

        `ordinal` is the launch's number in its report, `like` the other side's launch.
        """
        if side is not None:
            return self._measured(side, name, ordinal, like)
        if _is_binary(name):
            listing = disassemble(Path(name), self.arch)
            return self._chosen_functions(listing, name, CodeOrigin(Evidence.STATIC, arch=self.arch))
        entry = self._entry(name)
        version = self._version(name, entry)
        if entry and not entry.buildable:
            why = f"is planned: {entry.reason}" if entry.callable is None else f"is Python ({entry.callable})"
            raise CannotJudge(f"{name} {why}; its machine code comes with a report of it, and there is none")
        if version is None:
            raise CannotJudge(f"{name} was not measured and is in no catalogue here: no machine code of it")
        return self._compiled(name, version, entry)

    def _measured(self, side: Side, name: str, ordinal: int | None, like: Launch | None) -> SideCode:
        """The code of a launch, out of its report."""
        launch = self._choose_launch(side, name, ordinal, like)
        with self._report(side, name, launch) as path:
            if path.suffix.lower() == ".csv":
                raise CannotJudge(
                    f"{name}: ncu's CSV holds no machine code: name the report that it was made of"
                )
            detail = read.launch_detail(path, launch.ordinal)
        label = launch_labels(side.launches)[side.launches.index(launch)]
        if not len(detail.pcs):
            way_out = "collect with `--set full` or `--section SourceCounters`"
            way_out += ", or say --arch for what the compiler made of it" if self._buildable(name) else ""
            raise CannotJudge(f"{name}: the report holds no instructions of {label}: {way_out}")
        listing = listing_of_launch(detail, f"{name} {label}")
        return SideCode(listing, launch, CodeOrigin(Evidence.MEASURED, side.run_id))

    def _choose_launch(self, side: Side, name: str, ordinal: int | None, like: Launch | None) -> Launch:
        """The launch asked for by its number, else the longest that the kernel pattern fits."""
        fits = kernel_filter(self.choice.kernel)
        launches = [launch for launch in side.launches if fits(launch) and ordinal in (None, launch.ordinal)]
        if not launches:
            lacking = f"kernel like {self.choice.kernel!r}" if ordinal is None else f"launch {ordinal}"
            labelled = zip(side.launches, launch_labels(side.launches), strict=True)
            listed = brief_list([f"{launch.ordinal} {label}" for launch, label in labelled])
            raise UnknownName(f"{name} has no {lacking}; there are {listed}")
        if like:
            launches = [launch for launch in launches if launch.base_name == like.base_name] or launches
            launches = [launch for launch in launches if launch.nvtx == like.nvtx] or launches
        return max(launches, key=lambda launch: (launch.values.number(NCU_DURATION) or 0, -launch.ordinal))

    @contextlib.contextmanager
    def _report(self, side: Side, name: str, launch: Launch) -> Iterator[Path]:
        """The file of the report that a launch of a side came from."""
        if side.run_id is None:
            yield Path(name)
            return
        result_id = side.result_ids[side.launches.index(launch)]
        rows = self.store_opener().results(run_id=side.run_id)
        sha256 = next((row.report_sha256 for row in rows if row.result_id == result_id), None)
        if sha256 is None:
            raise CannotJudge(f"{name} keeps no report of {launch.base_name}")
        with open_report(side.run_id, sha256) as path:
            yield path

    def _compiled(self, name: str, version: VersionRef, entry: Version | None) -> SideCode:
        """What a compiler made of a version: as a run keeps it, or built here where the sources differ.

        Where the sources here have changed and no compiler is here, the kept code stands, with a note.
        """
        not_stored: CodeNotStored | None = None
        if version.run_id and self.choice.build:
            raise UnknownName(
                f"{name} is what a run has, which cannot be built: leave out --build, or the run"
            )
        if not self.choice.build:
            try:
                stored = self._stored(version)
            except CodeNotStored as error:
                not_stored = error
            else:
                changed = version.run_id is None and self._has_changed(entry, stored)
                if not changed or not all(map(toolchain.find_tool, _TOOLS)):
                    return self._stored_code(name, stored, changed=changed)
        if entry is None or not entry.buildable:
            raise not_stored or CannotJudge(f"{name} is in no catalogue here, so it cannot be built")
        try:
            return self._built(entry, name)
        except CannotJudge as error:
            reason = f"{not_stored}, and it cannot be built here: {error}" if not_stored else str(error)
            raise CannotJudge(reason) from None

    def _stored(self, version: VersionRef) -> StoredCode:
        """The code that a run keeps, for the architecture asked for or else the newest."""
        store = self.store_opener()
        arch = self.arch or stored_code.common_architecture(store, [version])
        if arch is None:
            raise CodeNotStored(f"no run keeps machine code of {version.name}")
        root = location.open_root()
        return stored_code.find_code(root, store, version.family, version.version, arch, version.run_id)

    def _stored_code(self, name: str, stored: StoredCode, *, changed: bool) -> SideCode:
        notes = [f"the sources here are not those of that run: {_BUILD_HINT}"] if changed else []
        if self.ran_on and not stored_code.newest_running_on(self.ran_on, [stored.arch]):
            notes.append(f"the other side ran on compute capability {self.ran_on}, which this is not for")
        origin = CodeOrigin(Evidence.STATIC, stored.run_id, stored.arch, stored.compiler, "; ".join(notes))
        return self._chosen_functions(stored.listing, name, origin)

    def _has_changed(self, entry: Version | None, stored: StoredCode) -> bool:
        """Whether the version here is not what the stored code was compiled from."""
        if self.catalog is None or entry is None or not entry.buildable:
            return False
        return sources.source_sha256(self.catalog, entry) != stored.source_sha256

    def _built(self, entry: Version, name: str) -> SideCode:
        assert self.catalog
        built = next(library.build(self.catalog, [entry], [self.arch] if self.arch else None), None)
        if built is None:
            raise CannotJudge(f"{entry.id} is not for {self.arch}; it is for {', '.join(entry.arches)}")
        if isinstance(built, library.FailedBuild):
            raise BuildFailed(built.error)
        listing = disassemble(built.library, self.arch)
        return self._chosen_functions(
            listing, name, CodeOrigin(Evidence.STATIC, None, self.arch, built.compiler)
        )

    def _chosen_functions(self, listing: Listing, name: str, origin: CodeOrigin) -> SideCode:
        """The functions of compiled code that the kernel pattern fits."""
        kernel = self.choice.kernel
        chosen = select_functions(listing, name_filter(kernel)) if kernel else listing
        if not chosen.lines:
            raise UnknownName(
                f"{name} has no function like {kernel!r}; there are {brief_list(listing.functions)}"
            )
        return SideCode(replace(chosen, label=name), None, origin)

    def _entry(self, name: str) -> Version | None:
        """The catalogue's version of that name."""
        family, _, version = name.rpartition("/")
        catalog = self.catalog
        return catalog.by_id.get(version) if catalog and family in ("", catalog.family) else None

    def _buildable(self, name: str) -> Version | None:
        """The catalogue's version of that name, if it can be built."""
        entry = self._entry(name)
        return entry if entry and entry.buildable else None

    def _version(self, name: str, entry: Version | None) -> VersionRef | None:
        """The version that a name of the catalogue, else of the index, means; None for a file."""
        if self.catalog and entry:
            return VersionRef(self.catalog.family, entry.id)
        if resolve_names.is_file_name(name):
            return None
        with contextlib.suppress(UnknownName):
            return resolve_names.resolve_version(self.store_opener(), name)
        return None

    def _has_results(self, name: str) -> bool:
        """Whether a file or the index has something of a name."""
        if not resolve_names.is_file_name(name):
            try:
                resolve_names.check_name(name, self.store_opener)
            except UnknownName:
                return False
        return True


def _find_catalog(path: Path | None) -> Catalog | None:
    """The catalogue asked for, else the one here, if there is one: a report needs none."""
    if path is not None:
        return catalog.load_catalog(path)
    with contextlib.suppress(BadCatalog):
        return catalog.load_catalog()
    return None


def _is_binary(name: str) -> bool:
    path = Path(name)
    return path.is_file() and (path.suffix in (".cubin", ".fatbin") or _starts_with(path, _ELF))


def _starts_with(path: Path, prefix: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(prefix)) == prefix
