"""`profiler import`: reports and files of times into the data folder, and what became of each file."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import complain, prepare_answers, progress_bar
from profiler.errors import Exit, ProfilerError

if TYPE_CHECKING:
    from profiler.bundles.run import Facts
    from profiler.cli.output import Commands
    from profiler.store.import_files import ImportSummary


def add(commands: Commands) -> None:
    """Add `import`."""
    command = commands.add_parser(
        "import",
        help="import reports, benchmark times, bundles and folders of them",
        description="Import Nsight Compute reports (.ncu-rep), CSVs from ncu, bundles (folders or zips), and "
        "times: JSON of pytest-benchmark, Google Benchmark, NVBench (with its samples), TritonBench and "
        "Helion, CSV of TritonBench and triton.testing, and any CSV whose columns you name. "
        "Of a cubin, object, library or wheel that is named, with --version, the static facts of each kernel "
        "are stored, for trends and gates without a GPU. "
        "By default the version is the file's name, and the family the nearest folder with a descriptive "
        "name. What was imported before stays as it is.",
        epilog="A label may be a text (silu), a template ({folder[-2]}-{stem}), a rule by name "
        "('silu*=silu') or by regular expression ('/_n(\\d+)/=n{1}'). "
        "Of several rules the first that fits a report counts.",
    )
    command.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder to search")
    command.add_argument(
        "--git",
        type=Path,
        metavar="REPOSITORY",
        help="every version of these files in the history of a clone or bare repository, as a run of its "
        "commit; PATH is a pattern such as 'prof/**/*.ncu-rep'",
    )
    for name in ("family", "version", "workload"):
        command.add_argument(
            f"--{name}",
            action="append",
            metavar=name.upper(),
            help=f"the {name} of these reports (bundles have their own)",
        )
    command.add_argument(
        "--gpu", metavar="GPU", help="where times were measured that do not say, as nvidia-smi names it"
    )
    command.add_argument(
        "--columns",
        action="append",
        default=[],
        metavar="KEY=COLUMN",
        help="the columns of a CSV of times: time=ms, workload=M+N, version, benchmark, gpu, commit, date",
    )
    command.add_argument(
        "--time-unit",
        metavar="UNIT",
        help="ns, us, ms, s, GB/s, TFLOPS …, where the columns' names do not end in it",
    )
    command.add_argument(
        "--noise",
        action="store_true",
        help="these files of times are sessions of one unchanged build: 40 or more say what is noise",
    )
    command.add_argument(
        "--relabel",
        action="store_true",
        help="also give these labels to reports imported before, in one decision",
    )
    command.add_argument(
        "--reader-memory",
        metavar="SIZE",
        help="memory limit for reading a file, such as 4G (default: by its size; PROFILER_READER_MEMORY)",
    )
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Import, and say what became of every file. One that is refused does not stop the others."""
    from profiler.reports.memory_limit import parse_size
    from profiler.reports.reader_client import start_reader
    from profiler.timings.columns import parse_columns

    columns = parse_columns(arguments.columns, arguments.time_unit)
    memory = arguments.reader_memory
    memory_bytes = None if memory is None else parse_size(memory, "--reader-memory")
    if any(path.suffix.lower() not in (".csv", ".json", ".zip") for path in arguments.paths):
        start_reader(memory_bytes)  # which takes as long as to load what imports
    from profiler.store.begin_import import import_history, import_paths

    take: Callable[..., ImportSummary] = import_paths
    if arguments.git is not None:
        take = partial(import_history, arguments.git)
    with progress_bar() as progress:
        summary = take(
            [str(path) for path in arguments.paths] if arguments.git else arguments.paths,
            family=arguments.family,
            version=arguments.version,
            workload=arguments.workload,
            relabel=arguments.relabel,
            reader_memory=memory_bytes,
            keep_reader=False,
            progress=progress,
            read_code=_read_code,
            columns=columns,
            gpu=arguments.gpu,
            are_noise=arguments.noise,
        )
    if not (summary.imported or summary.already or summary.refused):
        raise ProfilerError("nothing to import there: no report (.ncu-rep, or CSV from ncu), times or bundle")
    for line in _summary_lines(summary):
        print(line)
    complain(message for _, message in (*summary.warnings, *summary.refused))
    if summary.imported or summary.relabelled:
        prepare_answers()
    return Exit.UNUSABLE_INPUT if summary.refused else Exit.PASS


def _read_code(path: Path) -> tuple[Facts, ...]:
    from profiler.sass.library_facts import library_facts

    return library_facts(path)


def _summary_lines(summary: ImportSummary) -> Iterator[str]:
    """What became of an import: a line a new run, then the counts."""
    for new in summary.imported:
        content = f"{new.launches} launch{'es' * (new.launches != 1)}"
        if new.kernels:
            content = f"static facts of {new.kernels} kernel{'s' * (new.kernels != 1)}"
        elif new.calls:
            content = f"{new.calls:,} time{'s' * (new.calls != 1)}"
        yield f"{new.run_id}  {new.family}/{new.version}  {content}"
    for duplicate in summary.already:
        if duplicate.from_other_file:
            yield f"{duplicate.path}: the same measurement as run {duplicate.run_id}, from another file"
        if duplicate.hidden:
            undo = f"`profiler data forget --undo {duplicate.run_id}`"
            yield f"{duplicate.path}: forgotten; {undo} shows it again"
        if duplicate.other_labels:
            options = " ".join(f"--{kind} {shlex.quote(text)}" for kind, text in duplicate.other_labels)
            yield (
                f"{duplicate.path}: already there under other labels; "
                f"`profiler data relabel {duplicate.run_id} {options}` changes them"
            )
    for run_id, family, version in summary.relabelled:
        yield f"{run_id}  is {family}/{version} now"
    counts = {
        "imported": len(summary.imported),
        "already there": len(summary.already),
        "relabelled": len(summary.relabelled),
        "refused": len(summary.refused),
        "other files skipped": summary.skipped,
    }
    into = f", into {summary.data}" if summary.imported else ""
    yield ", ".join(f"{count} {what}" for what, count in counts.items() if count) + into
