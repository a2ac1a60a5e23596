"""A command that makes candidates: the prompt on its stdin, a folder with the parent's files to change."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from profiler.bundles.scratch import scratch_folder
from profiler.errors import ProfilerError
from profiler.search.descendants import ended_descendants
from profiler.search.generator import CandidateProposal, GeneratorFailed, Request, read_levers, short_why

_CALLABLE = re.compile(r"(?:[\w./-]+\.py|[A-Za-z_][\w.]*):[A-Za-z_]\w*")
_MOST_OUTPUT = 64 << 10
_LAST_WORDS_SECONDS = 5.0  # for what is still in the pipe of a program that ended
_MOST_FILES, _MOST_BYTES = 200, 16 << 20
# A function in a process of its own, so that one that does not end can be ended.
_RUN_FUNCTION = """\
import importlib, importlib.util, os, pathlib, sys
place, name = sys.argv[1].rsplit(":", 1)
sys.path.insert(0, os.environ["PROFILER_WORKING_FOLDER"])
if place.endswith(".py"):
    spec = importlib.util.spec_from_file_location("generator", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
else:
    module = importlib.import_module(place)
folders = [pathlib.Path(os.environ[key]) for key in ("PROFILER_PARENT", "PROFILER_CANDIDATE")]
answer = getattr(module, name)(sys.stdin.read(), *folders)
if isinstance(answer, str):
    print(answer)
"""


def is_callable_name(words: str) -> bool:
    """Whether it is module:function or file.py:function."""
    return bool(_CALLABLE.fullmatch(words))


def callable_command(words: str) -> list[str]:
    """What runs a function in a process of its own."""
    place, _, name = words.rpartition(":")
    if place.endswith(".py"):
        place = str(Path(place).resolve())
    return [sys.executable, "-c", _RUN_FUNCTION, f"{place}:{name}"]


class CommandGenerator:
    """Any program. It has the prompt on stdin and as $PROFILER_PROMPT, and changes $PROFILER_CANDIDATE.

    In its words {prompt}, {parent} and {candidate} stand for these paths. What it prints is why.
    """

    def __init__(self, command: str | list[str], seconds: float, name: str = "") -> None:
        self._words = shlex.split(command) if isinstance(command, str) else list(command)
        if not self._words:
            raise ProfilerError("a generator is flags, rewrites, module:function, or a command")
        if shutil.which(self._words[0]) is None:
            raise ProfilerError(
                f"the generator {self._words[0]!r} is no program: flags, rewrites or a command"
            )
        self._folder = os.getcwd()
        self._seconds = seconds
        self.name = name or (command if isinstance(command, str) else shlex.join(command))

    def propose(self, request: Request, folder: Path) -> CandidateProposal:
        """See Generator."""
        shutil.copytree(request.parent_folder, folder, dirs_exist_ok=True)
        with scratch_folder() as scratch:
            prompt = scratch / "prompt.md"
            prompt.write_text(request.prompt, "utf-8")
            parent = scratch / "parent"  # a copy: what is in the archive stays as it was judged
            shutil.copytree(request.parent_folder, parent)
            paths = {
                "prompt": str(prompt),
                "parent": str(parent),
                "candidate": str(folder),
            }
            output = self._run([_filled(word, paths) for word in self._words], paths, prompt)
        _check_size(folder)
        return CandidateProposal(read_levers(folder), short_why(output))

    def _run(self, command: list[str], paths: dict[str, str], prompt: Path) -> str:
        environment = {
            **os.environ,
            **{f"PROFILER_{name.upper()}": path for name, path in paths.items()},
            "PROFILER_WORKING_FOLDER": self._folder,
        }
        tail = bytearray()
        with prompt.open("rb") as stdin, ended_descendants():
            try:
                process = subprocess.Popen(
                    command,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    cwd=self._folder,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise GeneratorFailed(f"{command[0]}: {error.strerror or error}") from None
            reader = threading.Thread(target=_keep_tail, args=(process, tail), daemon=True)
            reader.start()
            try:
                code = process.wait(self._seconds)
            except subprocess.TimeoutExpired:
                raise GeneratorFailed(f"it did not end within {self._seconds:g} s") from None
            finally:
                with contextlib.suppress(ProcessLookupError):  # what it left running, too
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        reader.join(_LAST_WORDS_SECONDS)
        text = bytes(tail).decode(errors="replace")
        if code != 0:
            last = short_why(text).rpartition("\n")[2]
            raise GeneratorFailed(f"it ended with {code}{f': {last}' if last else ''}")
        return text


def _keep_tail(process: subprocess.Popen[bytes], tail: bytearray) -> None:
    """Read what a program prints to its end, of which the last part is kept: it may print without end."""
    assert process.stdout is not None
    with process.stdout as stream:
        while part := stream.read1(1 << 16):  # type: ignore[attr-defined]
            tail += part
            del tail[:-_MOST_OUTPUT]


def _filled(word: str, paths: dict[str, str]) -> str:
    for name, path in paths.items():
        word = word.replace("{" + name + "}", path)
    return word


def _check_size(folder: Path) -> None:
    """Raises GeneratorFailed where more was left than a candidate can be."""
    total = count = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            count += 1
            total += os.lstat(os.path.join(directory, name)).st_size
            if count > _MOST_FILES or total > _MOST_BYTES:
                raise GeneratorFailed(f"it left over {_MOST_FILES} files or {_MOST_BYTES >> 20} MiB")
