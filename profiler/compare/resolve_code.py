"""Resolves a name to machine code: of a binary, of a launch, stored in a run, or built here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profiler.build import code_images, library, toolchain
from profiler.bundles import location, run_json
from profiler.catalog import catalog, sources, trust
from profiler.catalog.catalog import Catalog
from profiler.catalog.version import Version
from profiler.compare import resolve_names
from profiler.compare.kernel_pairs import KernelPair, Pairing, check_asked, is_called
from profiler.compare.match_launches import kernel_filter, launch_labels, name_filter
from profiler.compare.resolve_names import NothingShared, StoreOpener, VersionRef
from profiler.errors import BadCatalog, BuildFailed, CannotJudge, UnknownName
from profiler.evidence.gpu_arch import newest_running_on
from profiler.evidence.launch import Launch
from profiler.evidence.naming import brief_list
from profiler.evidence.side import Side
from profiler.evidence.values import NCU_DURATION, Evidence
from profiler.reports import read
from profiler.sass import hotspots, stored_code
from profiler.sass.disassembly import disassemble
from profiler.sass.listing import Listing, listing_of_launch, select_functions
from profiler.sass.stored_code import CodeNotStored, StoredCode
from profiler.store.run_files import open_report

_TOOLS = ("nvcc", "cuobjdump", "nvdisasm")  # needed to build and disassemble a version here
_BUILD_HINT = "`--build` builds them, with the CUDA toolkit"


@dataclass(frozen=True)
class CodeOrigin:
    """Where a side's machine code comes from."""

    evidence: Evidence  # MEASURED: a launch in a report, with counts; STATIC: a compiler's output, never run
    run_id: str | None = None  # None: from a file, or built here
    arch: str | None = None  # None: as in the file
    compiler: str | None = None
    note: str = ""  # a reason not to take it at face value

    @property
    def words(self) -> str:
        """`static: sm_90a, nvcc 13.0.88, kept in run 2026…; nothing was run, so no samples and no counts`."""
        if self.evidence is Evidence.MEASURED:
            return ""
        place = f"kept in run {self.run_id}" if self.run_id else "built here" if self.compiler else ""
        details = ", ".join(filter(None, (self.arch, self.compiler, place)))
        not_run = "nothing was run, so no samples and no counts"
        return "; ".join(filter(None, (f"static: {details or 'a binary'}", not_run, self.note)))


@dataclass(frozen=True)
class SideCode:
    """One side's machine code, and its launch; None for code that was compiled and not run."""

    listing: Listing
    launch: Launch | None
    origin: CodeOrigin


@dataclass(frozen=True)
class CodeChoice:
    """Which code to take where a name has several."""

    kernel: str | None = None  # a pattern for `kernel_filter`
    launch: int | None = None  # the launch's ordinal in the report
    b_launch: int | None = None  # that of the second side; None: as `launch`
    arch: str | None = None  # of a binary that has several; for a version it asks for compiled code
    workload: str | None = None
    gpu: str | None = None
    build: bool = False  # build a version here, even if a run has its code
    pairs: tuple[KernelPair, ...] = ()  # kernels of both sides that are one under two names
    catalog: Path | None = None  # None: the catalogue of this checkout, if there is one


def resolve_code(names: Sequence[str], choice: CodeChoice, store_opener: StoreOpener) -> list[SideCode]:
    """The code of one or two named sides. B's launch is that of A's kernel unless `choice` names another.

    Raises UnknownName for a name or kernel that does not exist, CannotJudge where there is no machine code,
    and BuildFailed where a version cannot be compiled.
    """
    resolve_names.refuse_unused_filters(names, choice.workload)
    resolver = _Resolver(choice, store_opener, _find_catalog(choice.catalog), choice.arch)
    names = [resolver.code_file(name) for name in names]
    sides = [resolver.measured_side(name) for name in names]
    if choice.arch is None:
        compiled = [name for name, side in zip(names, sides, strict=True) if side is None]
        ran_on = next((side.compute_capability for side in sides if side), None)
        resolver = replace(resolver, arch=resolver.choose_arch(compiled, ran_on), ran_on=ran_on)
    if choice.pairs:
        measured = [side for side in sides if side is not None]
        if len(measured) != 2:
            raise UnknownName(
                "a pair is of two launches: --pair needs two reports, runs or measured versions"
            )
        check_asked(choice.pairs, [(measured[0], measured[1])])
    codes = [resolver.code(names[0], sides[0], choice.launch, None)]
    if len(names) > 1:
        ordinal = choice.launch if choice.b_launch is None else choice.b_launch
        codes.append(resolver.code(names[1], sides[1], ordinal, codes[0].launch))
    return codes


@contextlib.contextmanager
def open_report_of_launch(side: Side, name: str, launch: Launch, store_opener: StoreOpener) -> Iterator[Path]:
    """The report file that a launch of a side came from, while the context lasts; `name` is the side's.

    Raises CannotJudge where the side's run keeps none.
    """
    if side.launch_run_id is None:
        yield Path(name)
        return
    result_id = side.result_ids[side.launches.index(launch)]
    rows = store_opener().results(run_id=side.launch_run_id)
    sha256 = next((row.report_sha256 for row in rows if row.result_id == result_id), None)
    if sha256 is None:
        raise CannotJudge(f"{name} keeps no report of {launch.base_name}")
    with open_report(side.launch_run_id, sha256) as path:
        yield path


def sample_scale(codes: Sequence[SideCode]) -> float:
    """How many samples of A one sample of B is worth, by their sampling intervals; 1 where unknown."""
    a, b = (code.launch for code in codes)
    return (a and b and hotspots.sample_scale(a.values, b.values)) or 1.0


@dataclass(frozen=True)
class _Resolver:
    """Finds the code of each name. The index is opened only for names that are not files."""

    choice: CodeChoice
    store_opener: StoreOpener
    catalog: Catalog | None
    arch: str | None  # the architecture of compiled code to take
    ran_on: str | None = None  # the compute capability that the other side was measured on

    def code_file(self, name: str) -> str:
        """The one file of machine code of a folder such as one of Triton's cache; another name as it is."""
        path = Path(name)
        is_run = (path / run_json.RUN_FILE).is_file()
        if not path.is_dir() or is_run or self._entry(name) or not code_images.code_files(path):
            return name
        return str(code_images.code_file(path))

    def measured_side(self, name: str) -> Side | None:
        """The measured side of a name; None for a binary and where compiled code is meant."""
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
        """The newest architecture that all named versions can be compiled for, or are stored for in runs.

        One that runs on the GPU of the other side (`ran_on`) is preferred. None where no name is a version.
        """
        entries = [entry for name in names if (entry := self._buildable(name))]
        arches = entries[0].arches if entries else ()
        shared = [arch for arch in arches if all(entry.supports(arch) for entry in entries)]
        versions = [version for name in names if (version := self._version(name, self._entry(name)))]
        arch = (ran_on and newest_running_on(ran_on, shared)) or (shared[-1] if shared else None)
        if self.choice.build or not versions:
            return arch
        store = self.store_opener()
        if ran_on and len(versions) == 1:
            stored_arches = stored_code.compiled_architectures(store, *versions[0])
            arch = newest_running_on(ran_on, stored_arches) or arch
        return stored_code.common_architecture(store, versions, arch) or arch

    def code(self, name: str, side: Side | None, ordinal: int | None, like: Launch | None) -> SideCode:
        """The code of a name: of a launch of `side` where it was measured, else compiled code.

        `ordinal` is the launch's ordinal in its report, `like` the other side's launch.
        """
        if side is not None:
            return self._measured(side, name, ordinal, like)
        if _is_binary(name):
            kernel = self.choice.kernel
            listing = disassemble(Path(name), self.arch, name_filter(kernel) if kernel else None)
            return self._select_functions(listing, name, CodeOrigin(Evidence.STATIC, arch=self.arch))
        entry = self._entry(name)
        version = self._version(name, entry)
        if entry and not entry.buildable:
            why = f"is planned: {entry.reason}" if entry.callable is None else f"is Python ({entry.callable})"
            raise CannotJudge(f"{name} {why}; its machine code comes with a report, and it has none")
        if version is None:
            raise CannotJudge(f"{name} was not measured and is in no catalogue here: no machine code of it")
        return self._compiled(name, version, entry)

    def _measured(self, side: Side, name: str, ordinal: int | None, like: Launch | None) -> SideCode:
        """The code of a launch, read from its report."""
        launch = self._choose_launch(side, name, ordinal, like)
        with open_report_of_launch(side, name, launch, self.store_opener) as path:
            read.refuse_printed(path, name)
            detail = read.launch_detail(path, launch.ordinal)
        label = launch_labels(side.launches)[side.launches.index(launch)]
        if not len(detail.pcs):
            way_out = "collect with `--set full` or `--section SourceCounters`"
            way_out += ", or give --arch for the compiler's output" if self._buildable(name) else ""
            raise CannotJudge(f"{name}: the report holds no instructions of {label}: {way_out}")
        listing = listing_of_launch(detail, f"{name} {label}")
        return SideCode(listing, launch, CodeOrigin(Evidence.MEASURED, side.launch_run_id))

    def _choose_launch(self, side: Side, name: str, ordinal: int | None, like: Launch | None) -> Launch:
        """The launch with this ordinal, else the longest that matches the kernel pattern."""
        matches = kernel_filter(self.choice.kernel)
        launches = [
            launch for launch in side.launches if matches(launch) and ordinal in (None, launch.ordinal)
        ]
        if not like and ordinal is None and self.choice.pairs:  # A's side: what was asked for by a pair
            named = [pair.a for pair in self.choice.pairs]
            launches = [launch for launch in launches if any(is_called(launch, name) for name in named)]
        if not launches:
            missing = f"kernel like {self.choice.kernel!r}" if ordinal is None else f"launch {ordinal}"
            labelled = zip(side.launches, launch_labels(side.launches), strict=True)
            listed = brief_list([f"{launch.ordinal} {label}" for launch, label in labelled])
            raise UnknownName(f"{name} has no {missing}; there are {listed}")
        if like:
            same_name = [launch for launch in launches if launch.base_name == like.base_name]
            kept = Pairing.of_data().kept(side.family) if side.family and not same_name else ()
            both_ways = [direction for pair in kept for direction in (pair, pair.reversed)]
            launches = (
                _declared_partners(like, launches, self.choice.pairs)
                or same_name
                or _declared_partners(like, launches, both_ways)
                or launches
            )
            launches = [launch for launch in launches if launch.nvtx == like.nvtx] or launches
        return max(launches, key=lambda launch: (launch.values.number(NCU_DURATION) or 0, -launch.ordinal))

    def _compiled(self, name: str, version: VersionRef, entry: Version | None) -> SideCode:
        """Compiled code of a version: stored in a run, or built here where the sources have changed since.

        Without a compiler, and of a catalogue that is not trusted, the stored code is taken although the
        sources have changed, with a note that says so.
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
                may_build = self.catalog is not None and trust.is_trusted(self.catalog)
                if not (changed and may_build and all(map(toolchain.find_tool, _TOOLS))):
                    return self._stored_code(name, stored, changed=changed)
        if entry is None or not entry.buildable:
            raise not_stored or CannotJudge(f"{name} is in no catalogue here, so it cannot be built")
        try:
            return self._built(entry, name)
        except CannotJudge as error:
            reason = f"{not_stored}, and it cannot be built here: {error}" if not_stored else str(error)
            raise CannotJudge(reason) from None

    def _stored(self, version: VersionRef) -> StoredCode:
        """The code stored in a run, for the architecture asked for or else the newest."""
        store = self.store_opener()
        arch = self.arch or stored_code.common_architecture(store, [version])
        if arch is None:
            raise CodeNotStored(f"no run keeps machine code of {version.name}")
        root = location.open_root()
        return stored_code.find_code(root, store, version.family, version.version, arch, version.run_id)

    def _stored_code(self, name: str, stored: StoredCode, *, changed: bool) -> SideCode:
        notes = [f"the sources here are not those of that run: {_BUILD_HINT}"] if changed else []
        if self.ran_on and not newest_running_on(self.ran_on, [stored.arch]):
            notes.append(
                f"the other side ran on compute capability {self.ran_on}, which this code does not run on"
            )
        origin = CodeOrigin(Evidence.STATIC, stored.run_id, stored.arch, stored.compiler, "; ".join(notes))
        return self._select_functions(stored.listing, name, origin)

    def _has_changed(self, entry: Version | None, stored: StoredCode) -> bool:
        """Whether the version's sources here differ from those that the stored code was compiled from."""
        if self.catalog is None or entry is None or not entry.buildable:
            return False
        return sources.source_sha256(self.catalog, entry) != stored.source_sha256

    def _built(self, entry: Version, name: str) -> SideCode:
        assert self.catalog
        trust.require_trust(self.catalog)
        built = next(library.build(self.catalog, [entry], [self.arch] if self.arch else None), None)
        if built is None:
            raise CannotJudge(f"{entry.id} is not for {self.arch}; it is for {', '.join(entry.arches)}")
        if isinstance(built, library.FailedBuild):
            raise BuildFailed(built.error)
        listing = disassemble(built.library, self.arch)
        return self._select_functions(
            listing, name, CodeOrigin(Evidence.STATIC, None, self.arch, built.compiler)
        )

    def _select_functions(self, listing: Listing, name: str, origin: CodeOrigin) -> SideCode:
        """The functions of compiled code that match the kernel pattern."""
        kernel = self.choice.kernel
        chosen = select_functions(listing, name_filter(kernel)) if kernel else listing
        if not listing.lines:
            raise UnknownName(f"{name} holds no machine code of any function")
        if not chosen.lines:
            raise UnknownName(
                f"{name} has no function like {kernel!r}; there are {brief_list(listing.functions)}"
            )
        return SideCode(replace(chosen, label=name), None, origin)

    def _entry(self, name: str) -> Version | None:
        """The version in the catalogue with that name; None where there is none."""
        family, _, version = name.rpartition("/")
        catalog = self.catalog
        return catalog.by_id.get(version) if catalog and family in ("", catalog.family) else None

    def _buildable(self, name: str) -> Version | None:
        """The version in the catalogue with that name, if it can be built."""
        entry = self._entry(name)
        return entry if entry and entry.buildable else None

    def _version(self, name: str, entry: Version | None) -> VersionRef | None:
        """The version that a name in the catalogue, else in the index, means; None for a file."""
        if self.catalog and entry:
            return VersionRef(self.catalog.family, entry.id)
        if resolve_names.is_file_name(name):
            return None
        with contextlib.suppress(UnknownName):
            return resolve_names.resolve_version(self.store_opener(), name)
        return None

    def _has_results(self, name: str) -> bool:
        """Whether a name is a file, or stands for something in the index."""
        if not resolve_names.is_file_name(name):
            try:
                resolve_names.check_name(name, self.store_opener)
            except UnknownName:
                return False
        return True


def _declared_partners(like: Launch, launches: Sequence[Launch], pairs: Sequence[KernelPair]) -> list[Launch]:
    """The launches of the kernel that was declared to be that of A's launch."""
    partners = [pair.b for pair in pairs if is_called(like, pair.a)]
    return [launch for launch in launches if any(is_called(launch, name) for name in partners)]


def _find_catalog(path: Path | None) -> Catalog | None:
    """The catalogue that was asked for, else that of this checkout; None where it has none."""
    if path is not None:
        return catalog.load_catalog(path)
    with contextlib.suppress(BadCatalog):
        return catalog.load_catalog()
    return None


def _is_binary(name: str) -> bool:
    return os.path.isfile(name) and Path(name).suffix != ".whl" and code_images.is_code(name)
