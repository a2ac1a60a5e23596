"""The errors a user can mend, one line each, and the exit codes of every command."""

from enum import IntEnum

# What to say where a library of that extra is missing.
DASHBOARD_HINT = "`pip install 'attention-kernel-profiler[dashboard]'`"


class Exit(IntEnum):
    """Exit codes of the `profiler` command, the same for every subcommand."""

    PASS = 0
    REGRESSION = 1
    UNUSABLE_INPUT = 2
    UNJUDGED = 3


class ProfilerError(Exception):
    """Something a user can mend: the message is one line that says what happened, where, and the way out.

    `option` is a command-line option that the message names, "--gpu"; the library calls it `gpu=`.
    """

    exit_code: Exit = Exit.UNUSABLE_INPUT

    def __init__(self, *arguments: object, option: str = "") -> None:
        super().__init__(*arguments)
        self.option = option

    def name_argument(self) -> None:
        """Name the library's argument in the message in place of the command line's option."""
        if self.option:
            argument = f"{self.option.removeprefix('--')}="
            self.args = (str(self).replace(f"{self.option} ", argument).replace(self.option, argument),)


class UnreadableReport(ProfilerError):
    """A report file that cannot be read whole; nothing of it is kept."""


class BadMetricsFile(ProfilerError):
    """A line of metrics.txt that cannot be used; the message starts with FILE:LINE."""


class BadCatalog(ProfilerError):
    """A catalogue that cannot be used; the message names the file and the version."""


class BuildFailed(ProfilerError):
    """A version that does not compile, or no compiler; the message carries the compiler's own first error."""


class BadBundle(ProfilerError):
    """A run folder or zip that is not a sealed bundle of a schema this version reads."""


class UnknownName(ProfilerError):
    """A path, run, version, metric or kernel that does not exist, or that names several things."""


class CannotJudge(ProfilerError):
    """Nothing to compare, or what there is cannot be compared."""

    exit_code = Exit.UNJUDGED
