"""`profiler search`: candidates that a generator makes are judged, and the best three kept."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, positive, print_blocks, print_document, say

if TYPE_CHECKING:
    from profiler.bundles.location import Root
    from profiler.cli.output import Commands
    from profiler.search.journal import Journal

_DESCRIPTION = """\
Search for a faster kernel: a generator makes a child of one of the best three, `judge` decides whether it is
correct and how long it would take, and it replaces one of the three only if it is faster by more than the
model's error. Every candidate is a record that never changes; a killed worker loses only its current one."""

_EPILOG = """\
examples:
  profiler search run attention --generator flags --minutes 30    from v2d_a, over macros of its source
  profiler search start attention --generator ./propose.sh        in the background; the page Search shows it
  profiler search status attention                                best, elites, refused, what insights brought
  profiler search stop attention                                  workers end after their current candidate
  profiler search promote attention c41 > c41.patch               as a version of the catalogue, to review

generators: flags and rewrites need no language model; module:function or file.py:function is called with the
prompt, the parent's folder and the candidate's; anything else is a command that gets the prompt on stdin,
the folders as $PROFILER_PARENT and $PROFILER_CANDIDATE.

what a catalogue offers to search: an entry for versions of one source, which guards each macro by #ifndef
  [[search]]
  versions = ["mine"]
  kernel = "attend<{head_dim}>"                 # and what follows: as profiler judge --help shows
  grid = ["ceil_div(len_q, 16 * WARPS)", "heads", "batch"]
  block = "32 * WARPS"
  arguments = ["q", "k", "v", "o", "len_q", "len_kv", "scale", "causal"]
  macros = { WARPS = { values = [2, 4, 8], techniques = ["occupancy/block size"] } }

exit codes: 0 done · 2 a name is unknown · 3 nothing can be judged here"""


def add(commands: Commands) -> None:
    """Add `search`."""
    command = commands.add_parser(
        "search",
        help="search for a faster kernel: a generator proposes, the judge decides",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    start = actions.add_parser("start", help="start a search, with workers in the background")
    _add_settings(start)
    start.add_argument("--workers", type=positive, default=1, metavar="N", help="workers (default: 1)")
    _add_limits(start)
    start.set_defaults(handler=run_start)
    run = actions.add_parser("run", help="work on a search here: the newest that fits, or a new one")
    _add_settings(run)
    run.add_argument("--search", metavar="ID", help="this search")
    run.add_argument("--new", action="store_true", help="start another one")
    _add_limits(run)
    run.set_defaults(handler=run_run)
    status = actions.add_parser("status", help="the progress of a search")
    _add_search(status)
    add_json(status)
    status.set_defaults(handler=run_status)
    stop = actions.add_parser("stop", help="end workers after their current candidate")
    _add_search(stop)
    stop.set_defaults(handler=run_stop)
    promote = actions.add_parser(
        "promote", help="make a candidate a version of the catalogue: a patch to review"
    )
    _add_search(promote)
    promote.add_argument("candidate", metavar="CANDIDATE", help="c41, or the beginning of a content id")
    promote.add_argument("--as", dest="version_id", default="", metavar="ID", help="the version's id")
    promote.add_argument("--out", type=Path, metavar="FILE", help="write the patch to this file")
    promote.set_defaults(handler=run_promote)


def _add_search(command: argparse.ArgumentParser) -> None:
    command.add_argument("family", metavar="FAMILY", help="a family of the catalogue, such as attention")
    command.add_argument("--search", metavar="ID", help="this search (default: the family's newest)")


def _add_settings(command: argparse.ArgumentParser) -> None:
    command.add_argument("family", metavar="FAMILY", help="a family of the catalogue, such as attention")
    command.add_argument("--generator", metavar="WORDS", help="flags, rewrites, a function or a command")
    command.add_argument("--from", dest="version", metavar="VERSION", help="the version to start from")
    command.add_argument("--gpu", metavar="GPU", help="H100-SXM (default), A100-80GB, L4 …")
    command.add_argument(
        "--workload",
        action="append",
        default=[],
        metavar="LABEL",
        help="only this workload (repeatable; default: the acceptance workloads)",
    )
    command.add_argument("--catalog", type=Path, metavar="FILE", help="another catalog.toml")
    command.add_argument("--templates", type=Path, metavar="DIR", help="your own templates of the prompt")
    command.add_argument("--seats", type=positive, default=3, metavar="K", help="elites (default: 3)")
    command.add_argument("--seed", type=int, metavar="N", help="seed of all random choices")
    command.add_argument(
        "--control",
        type=_share,
        default=0.3,
        metavar="SHARE",
        help="share of prompts without insights (default: 0.3)",
    )
    command.add_argument(
        "--target", type=float, metavar="US", help="target time in microseconds on the first workload"
    )
    command.add_argument(
        "--generator-time",
        type=float,
        default=600.0,
        metavar="S",
        help="seconds for a generator command (default: 600)",
    )


def _add_limits(command: argparse.ArgumentParser) -> None:
    command.add_argument("--minutes", type=float, metavar="M", help="a worker ends after these")
    command.add_argument("--candidates", type=positive, metavar="N", help="a worker ends after these")
    command.add_argument(
        "--batch",
        type=positive,
        default=1,
        metavar="N",
        help="screen this many before the fastest are judged (default: 1)",
    )
    command.add_argument(
        "--trust",
        action="store_true",
        help="run candidates without isolation: only with a generator you trust",
    )


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a share from 0 to 1")
    return value


def run_start(arguments: argparse.Namespace) -> int:
    """Begin, start workers, say where."""
    from profiler.bundles.location import open_root
    from profiler.search.begin import LOG, start_worker

    root = open_root()
    journal = _new(root, arguments)
    extra = [*(["--trust"] if arguments.trust else [])]
    for name in ("minutes", "candidates", "batch"):
        if (value := getattr(arguments, name)) is not None:
            extra += [f"--{name}", str(value)]
    pids = [start_worker(journal, root, extra) for _ in range(arguments.workers)]
    say(f"{journal.settings.id}: {len(pids)} workers (process {', '.join(map(str, pids))})")
    say(f"their output: {journal.folder / LOG}")
    say(f"progress: profiler search status {arguments.family}, or the page Search")
    return 0


def run_run(arguments: argparse.Namespace) -> int:
    """Work here until a limit, a stop or Ctrl-C."""
    from profiler.bundles.location import open_root
    from profiler.documents.search import search_document
    from profiler.search.evaluation import CandidateJudge
    from profiler.search.named_generator import load_generator
    from profiler.search.worker import Worker, WorkerLimits

    root = open_root()
    journal = _find_or_new(root, arguments)
    settings = journal.settings
    if not journal.working():  # else a worker that starts late would take a stop back
        journal.allow_work()
    generator = load_generator(arguments.generator or settings.generator, settings.generator_seconds)
    say(f"{settings.id}: {settings.family} from {settings.version}, {settings.gpu}, {generator.name}")
    seconds = None if arguments.minutes is None else 60 * arguments.minutes
    worker = Worker(
        journal, CandidateJudge(settings, trust=arguments.trust), generator, _say_now, arguments.batch
    )
    try:
        ended = worker.run(WorkerLimits(arguments.candidates, seconds))
    except KeyboardInterrupt:
        ended = "interrupted: the current candidate is lost"
    say(f"ended: {ended}")
    print_blocks(search_document(journal).blocks())
    return 0


def run_status(arguments: argparse.Namespace) -> int:
    """Print where it stands."""
    from profiler.bundles.location import open_root
    from profiler.documents.search import search_status

    document = search_status(open_root(), arguments.family, arguments.search)
    return print_document(document, arguments)


def run_stop(arguments: argparse.Namespace) -> int:
    """Ask workers to end."""
    from profiler.bundles.location import open_root
    from profiler.search.journal import find_journal

    journal = find_journal(open_root(), arguments.family, arguments.search)
    journal.request_stop()
    names = [f"c{working.number}" for working in journal.working()]
    say(f"{journal.settings.id}: workers end after {', '.join(names) or 'nothing: there are none'}")
    return 0


def run_promote(arguments: argparse.Namespace) -> int:
    """Print or write the patch."""
    from profiler.bundles.location import open_root
    from profiler.catalog.catalog import load_catalog
    from profiler.cli.output import write_bytes
    from profiler.search.journal import find_journal
    from profiler.search.promotion import promotion_patch

    journal = find_journal(open_root(), arguments.family, arguments.search)
    path = Path(journal.settings.catalog) if journal.settings.catalog else None
    catalog = load_catalog(path) if path else load_catalog()
    patch = promotion_patch(journal, catalog, arguments.candidate, arguments.version_id)
    if arguments.out is not None:
        write_bytes(patch.encode(), arguments.out)
    else:
        say(patch.rstrip("\n"))
    return 0


def _say_now(line: str) -> None:
    """A line that is seen at once, also in a log."""
    import sys

    say(line)
    sys.stdout.flush()


def _new(root: Root, arguments: argparse.Namespace) -> Journal:
    from profiler.evidence.gpu_parts import DEFAULT_PART
    from profiler.search.begin import new_search

    return new_search(
        root,
        arguments.family,
        arguments.generator or "flags",
        version=arguments.version,
        gpu=arguments.gpu or DEFAULT_PART,
        workloads=arguments.workload,
        catalog=arguments.catalog,
        templates=arguments.templates,
        seats=arguments.seats,
        seed=arguments.seed,
        control_share=arguments.control,
        target_ns=None if arguments.target is None else 1000 * arguments.target,
        generator_seconds=arguments.generator_time,
    )


def _find_or_new(root: Root, arguments: argparse.Namespace) -> Journal:
    from profiler.search.begin import matching_search
    from profiler.search.journal import find_journal

    if arguments.search:
        return find_journal(root, arguments.family, arguments.search)
    asked = (arguments.generator, arguments.version, arguments.gpu, arguments.workload)
    found = None if arguments.new else matching_search(root, arguments.family, *asked)
    return found or _new(root, arguments)
