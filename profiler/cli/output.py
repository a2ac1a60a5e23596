"""What commands share: the store, tables that a pipe does not cut, strict JSON, the filters."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, TypeVar, cast

from profiler.documents.declared import shared_help
from profiler.errors import Exit, ProfilerError

if TYPE_CHECKING:
    from rich.console import Console

    from profiler.compare.kernel_pairs import KernelPair
    from profiler.compare.resolve_names import StoreOpener
    from profiler.documents.blocks import Block
    from profiler.documents.document import Document
    from profiler.store.index import Store
    from profiler.store.sync import Progress

    Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

Answer = TypeVar("Answer")

_STYLES = {"better": "bold blue", "worse": "bold dark_orange"}  # by the colour of a verdict
# Of C0 all but tab and line feed; DEL and C1; what turns the direction of text or ends a line.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
LONG_HISTORY = 500  # runs, among which a search for what is worse takes more than a second
_said: set[str] = set()  # notes on stderr that the command has printed
_MOST_STYLED = 500  # rows of a table that are folded and coloured: of more each takes a millisecond
_PIPE_WIDTH = 240  # a pipe has no width: no column is cut before this


def open_store() -> Store:
    """The index, brought up to date with the bundles. Imports the database layer: only where it is needed.

    Says on stderr how many runs it had to leave out, and where the index cannot be brought up to date.
    """
    from profiler.store.readable_index import open_store as open_index

    store = open_index()
    if store.behind and store.behind not in _said:
        with contextlib.suppress(OSError):
            print(f"profiler: {store.behind}", file=sys.stderr)
        _said.add(store.behind)
    if refused := len(store.refused()):
        runs = "1 run" if refused == 1 else f"{refused} runs"
        with contextlib.suppress(OSError):
            note = f"profiler: {runs} cannot be read: `profiler data index` says why"
            if note not in _said:  # a command may open the index more than once
                print(note, file=sys.stderr)
            _said.add(note)
    return store


def prepare_answers() -> None:
    """Search what is worse in a long history now that runs were added to it, so that nobody waits for it.

    For commands that may add many runs, or take long anyway: a decision does not wait for a search, and what
    a machine measures on is not kept for one.
    Of a short history the first question is answered soon enough. What fails here is said when somebody asks.
    """
    from profiler.bundles.bundle import list_runs
    from profiler.bundles.location import open_root

    with contextlib.suppress(ProfilerError, OSError):
        if len(list_runs(open_root())) >= LONG_HISTORY:
            from profiler.documents.regressions import prepare_regressions

            prepare_regressions()


def opener_of(arguments: argparse.Namespace) -> StoreOpener:
    """How this command opens the index: once, where something needs it."""
    if not hasattr(arguments, "store_opener"):
        arguments.store_opener = lru_cache(maxsize=1)(open_store)
    opener: StoreOpener = arguments.store_opener
    return opener


def ask(answer: Callable[..., Answer], arguments: argparse.Namespace, **named: object) -> Answer:
    """The answer of a function to the options that it has; `named` are those that it calls otherwise."""
    from profiler.documents import asking

    return asking.ask(answer, {**vars(arguments), **named}, opener_of(arguments))


def note_forgotten(arguments: argparse.Namespace, *names: str | None) -> None:
    """Say on stderr of each run that is named and was forgotten, which its id still shows, that it was."""
    from profiler.compare.resolve_names import forgotten_runs

    for run_id in forgotten_runs(filter(None, names), opener_of(arguments)):
        print(f"profiler: run {run_id} is hidden (forgotten): no verdict uses it", file=sys.stderr)


def printable(text: str) -> str:
    """A text as one line that does nothing to a terminal: what cannot be printed is written out."""
    line = " ".join(text.split())
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in line
    )


def escape_controls(text: str) -> str:
    """A text whose control characters, but for line ends and tabs, are written out as in JSON: \\u001b.

    Names come from reports that others made. In one may lie what moves a terminal's cursor, hides text, sets
    the clipboard, or turns the direction of writing round.
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@contextlib.contextmanager
def standard_output() -> Iterator[None]:
    """What is printed inside loses no character, does nothing to a terminal, and outlives its reader.

    Raises ProfilerError for a full disk.
    """
    _said.clear()
    steady = _Steady(sys.stdout or io.StringIO())  # None: the shell closed it with >&-
    errors = _Escaped(sys.stderr or io.StringIO())
    with contextlib.redirect_stdout(cast(TextIO, steady)), contextlib.redirect_stderr(cast(TextIO, errors)):
        try:
            yield
        finally:
            steady.flush()


def write_styled(text: str, stream: TextIO) -> None:
    """Write what this program styled itself, with its escape sequences: no name that came from outside."""
    getattr(stream, "write_styled", stream.write)(text)


def raw_stream(stream: TextIO) -> TextIO:
    """The stream without the writing out of control characters, for a library that draws on the terminal."""
    return stream._stream if isinstance(stream, _Escaped) else stream


class _Escaped:
    """A stream on which control characters are written out: everything that a command prints passes here."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self.write_styled(escape_controls(text))
        return len(text)

    def write_styled(self, text: str) -> None:
        self._stream.write(text)


class _Steady(_Escaped):
    """Standard output for a whole command.

    A reader that leaves (`| head`) ends the printing, not the command: its exit code still tells the verdict.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for ASCII, and file names that are not Unicode

    def write_styled(self, text: str) -> None:
        with self._survived():
            super().write_styled(text)

    def flush(self) -> None:
        with self._survived():
            self._stream.flush()

    @contextlib.contextmanager
    def _survived(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # What is buffered still wants to go somewhere: now, and again when the interpreter ends.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            if not isinstance(error, BrokenPipeError):
                raise ProfilerError(f"standard output cannot be written: {error.strerror}") from None


def print_json(document: object) -> None:
    """Print as JSON; a NaN or infinity that got this far is a defect and raises."""
    plain = (sys.stdout.encoding or "").lower().replace("_", "-") not in ("utf-8", "utf8")
    print(json.dumps(document, allow_nan=False, ensure_ascii=plain, indent=1))


def print_document(document: Document, arguments: argparse.Namespace, *, everything: bool = False) -> Exit:
    """Print an answer in the form asked for, with --all or `everything` all of it; return its exit code."""
    if arguments.json:
        print_json(document.to_dict())
    elif getattr(arguments, "markdown", False):
        print(document.to_markdown(), end="")
    else:
        print_blocks(document.blocks(everything=everything or getattr(arguments, "all", False)))
    return document.exit_code


def destination(name: str, suffixes: Iterable[str]) -> Path:
    """A file to write, whose suffix says the form; ProfilerError for another, or without its folder."""
    path, known = Path(name), tuple(suffixes)
    if path.suffix not in known:
        raise ProfilerError(f"--out {path}: the suffix says the form: one of {', '.join(known)}")
    if not path.parent.is_dir():
        raise ProfilerError(f"--out {path}: there is no folder {path.parent}")
    return path


def write_document(document: Document, path: Path) -> None:
    """Write an answer in the form that the suffix says: .csv, .parquet, .md or .json."""
    if path.suffix == ".parquet":
        content = document.to_parquet()
    elif path.suffix == ".csv":
        content = document.to_csv().encode("utf-8", "backslashreplace")
    elif path.suffix == ".md":
        content = document.to_markdown().encode("utf-8", "backslashreplace")
    else:
        content = (json.dumps(document.to_dict(), allow_nan=False, indent=1) + "\n").encode()
    write_bytes(content, path)


def write_bytes(content: bytes, path: Path, option: str = "--out") -> None:
    """Write a file that an option names; ProfilerError where that cannot be done."""
    try:
        # Without O_NONBLOCK, opening a pipe waits for somebody who reads it; with a reader it is written.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o666)
        os.set_blocking(descriptor, True)
        with open(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        is_unread = error.errno == errno.ENXIO
        reason = "a named pipe without a reader, not a file" if is_unread else error.strerror
        raise ProfilerError(f"{option} {path}: {reason}") from None


def print_blocks(blocks: Iterable[Block]) -> None:
    """Print the blocks of an answer for a terminal or a log, tables folded to its width."""
    from profiler.documents.blocks import Findings, Heading, Line, Notes, Preformatted, Table, plain

    before: object = None
    for block in _unfolded(blocks):
        match block:
            case Heading(text):
                say(f"{chr(10) * (before is not None)}{plain(text)}")
            case Line(text, label):
                is_apart = not isinstance(before, Line | Heading | None)
                say(f"{chr(10) * is_apart}{f'{label}: ' if label else ''}{plain(text)}")
            case Notes(lines):
                print_lines(map(plain, lines), "  ")
            case Table(head, rows, right):
                if not isinstance(before, Line | Heading | None):
                    say()
                print_table(head, [[plain(cell) for cell in row] for row in rows], right=list(right))
            case Preformatted(lines):
                print_lines(lines)
            case Findings(items, mark):
                sign = f"{mark} " if mark else ""
                for item in items:
                    say(f"  {sign}{plain(item.subject)}")
                    print_lines(map(plain, item.lines), f"    {' ' * len(sign)}")
        if not (isinstance(block, Notes) and not block.lines):
            before = block


def text_of(blocks: Iterable[Block]) -> str:
    """What `print_blocks` prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print_blocks(blocks)
    return text.getvalue()


def _unfolded(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks with what a terminal has in place of folds and charts."""
    from profiler.documents.blocks import Chart, Fold, Heading, Line

    for block in blocks:
        if isinstance(block, Fold):
            heading = [Heading(block.summary)] if block.is_section else []
            yield from [Line(block.instead)] if block.instead else [*heading, *_unfolded(block.blocks)]
        else:
            yield block.table() if isinstance(block, Chart) else block


def print_lines(lines: Iterable[str], indent: str = "") -> None:
    """Print lines, uncut."""
    for line in lines:
        say(indent + line)


def say(text: str = "") -> None:
    """Print one line, uncut."""
    print(text)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Print a table; the columns in `right` hold numbers. Names are folded, never cut.

    A head of empty names is no line. A long table is printed without folds and colours.
    """
    rows, head = [*rows], [tuple(header)] if any(header) else []
    if len(rows) > _MOST_STYLED:
        _print_plain([*head, *(tuple(map(printable, row)) for row in rows)], right)
        return
    try:
        from rich.table import Table
        from rich.text import Text

        from profiler.documents.blocks import verdict_colour
    except ImportError:  # a bare GPU machine has torch and no more
        _print_plain([*head, *(tuple(row) for row in rows)], right)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=bool(head))
    for index, name in enumerate(header):
        table.add_column(name, justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        table.add_row(
            *(Text(escape_controls(cell), style=_STYLES.get(verdict_colour(cell), "")) for cell in row)
        )
    console = _console()
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().split("\n")[:-1]:
        write_styled(f"{line.rstrip()}\n", sys.stdout)


def _print_plain(rows: Sequence[Sequence[str]], right: Sequence[int]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def complain(messages: Iterable[str]) -> None:
    """Say on stderr what is wrong, a line each."""
    for message in messages:
        print(f"profiler: {printable(message)}", file=sys.stderr)


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """A progress bar on a terminal; nothing in a pipe or a log."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(file=raw_stream(sys.stderr)), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total, description=escape_controls(what[:40])
        )


def add_json(command: argparse._ActionsContainer) -> None:
    """Add `--json`."""
    command.add_argument("--json", action="store_true", help="print JSON, numbers in base units")


def add_filters(command: argparse.ArgumentParser, *names: str, files: bool = True) -> None:
    """Add some of --family, --workload, --gpu, --kernel and --top; `files`: it takes report files too."""
    forms: dict[str, dict[str, Any]] = {
        "kernel": {"metavar": "PATTERN"},
        "top": {"metavar": "N", "type": positive},
    }
    for name in names:
        form = forms.get(name, {"metavar": name.upper()})
        command.add_argument(f"--{name}", help=shared_help(name, files=files), **form)


def add_metrics(command: argparse.ArgumentParser, what: str) -> None:
    """Add --metrics, concepts parted by commas; `what` says what they are for."""
    command.add_argument(
        "--metrics",
        type=lambda text: [concept for concept in text.split(",") if concept],
        default=[],
        metavar="CONCEPT,…",
        help=f"{what} (default: a few of each kind)",
    )


def add_pair(command: argparse.ArgumentParser) -> None:
    """Add `--pair`."""
    command.add_argument(
        "--pair",
        action="append",
        default=[],
        type=_pair,
        dest="pairs",
        metavar="A=B",
        help="treat kernel A in the first report as kernel B in the second: names, patterns with * or ?, or "
        "regex:EXPR (repeatable; `profiler decide pair` records it for good)",
    )


def add_pairing(command: argparse.ArgumentParser) -> None:
    """Add `--pair` and `--no-guess`."""
    add_pair(command)
    command.add_argument(
        "--no-guess",
        action="store_false",
        dest="guess",
        help="pair no launches whose kernels have different names",
    )


def add_across(command: argparse.ArgumentParser) -> None:
    """Add `--across`."""
    command.add_argument(
        "--across",
        action="append",
        choices=("driver", "ncu", "gpu"),  # compare.ACROSS, which takes longer to import
        default=[],
        help="compare although this differs: driver, ncu version or GPU (repeatable)",
    )


def add_evidence(command: argparse.ArgumentParser) -> None:
    """Add `--evidence`."""
    command.add_argument(
        "--evidence",
        choices=("measured", "static", "modelled"),
        help="kind of evidence (default: measured if available, else static and modelled separately)",
    )


def _pair(text: str) -> KernelPair:
    """A pair of kernels, for argparse."""
    from profiler.compare.kernel_pairs import parse_pair

    return parse_pair(text)


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1")
    return number


def positive_seconds(text: str) -> float:
    """Seconds, above 0 and finite, for argparse."""
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a time above 0")
    return number


def port(text: str) -> int:
    """A port that a server may listen at, for argparse."""
    number = int(text)
    if not 0 < number < 65536:
        raise argparse.ArgumentTypeError(f"{text} is not a port from 1 to 65535")
    return number


def _console() -> Console:
    from rich.console import Console

    # highlight=False: numbers stay ink; colour is a verdict and nothing else
    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)
