"""`profiler dashboard`: how Streamlit is started on this machine only."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import port, positive
from profiler.errors import DASHBOARD_HINT, ProfilerError
from profiler.package import shipped

if TYPE_CHECKING:
    from profiler.cli.output import Commands

ADDRESS = "127.0.0.1"


def add(commands: Commands) -> None:
    """Add `dashboard`."""
    dashboard = commands.add_parser(
        "dashboard",
        help="open the dashboard in the browser",
        description=f"Serve the dashboard on {ADDRESS} until Ctrl-C.",
    )
    dashboard.add_argument("--port", type=port, help="the port (default: the first free one from 8501)")
    dashboard.add_argument(
        "--no-browser", action="store_true", help="print the address without opening a browser"
    )
    dashboard.add_argument(
        "--read-only",
        action="store_true",
        help="show no forms and record nothing (also PROFILER_READ_ONLY=1)",
    )
    dashboard.add_argument(
        "--user-header",
        metavar="HEADER",
        help="the request header in which a proxy names the user, such as X-Forwarded-User "
        "(PROFILER_USER_HEADER); default: the user that runs the server",
    )
    dashboard.add_argument(
        "--origin",
        action="append",
        default=[],
        metavar="URL",
        help="the URL at which a proxy serves it, such as https://perf.example.com (repeatable). "
        "Without it only browsers on this machine, or at the end of a tunnel, are answered",
    )
    dashboard.add_argument(
        "--upload-size", metavar="SIZE", help="the largest file that may be uploaded (default: 1G)"
    )
    dashboard.add_argument(
        "--upload-files",
        type=positive,
        metavar="N",
        help="files that one visitor may have uploaded at once (default: 100)",
    )
    dashboard.add_argument(
        "--upload-time", type=positive, metavar="S", help="seconds for a file to arrive (default: 900)"
    )
    dashboard.set_defaults(handler=serve)


def serve(arguments: argparse.Namespace) -> int:
    """Become the Streamlit server, so that a signal to this process ends it."""
    from profiler.bundles.decisions import USER_HEADER
    from profiler.bundles.location import READ_ONLY

    if not find_spec("streamlit"):
        raise ProfilerError(f"the dashboard is not installed: {DASHBOARD_HINT}")
    app = shipped("app.py")
    if not app.is_file():
        raise ProfilerError(f"no app.py at {app}: the installation is incomplete, install the package again")
    command = command_line(
        app, port=arguments.port, browser=not arguments.no_browser and can_open_a_browser()
    )
    command += web_options(arguments)
    if arguments.read_only:
        os.environ[READ_ONLY] = "1"
    if arguments.user_header:
        os.environ[USER_HEADER] = arguments.user_header
    # glibc gives every thread its own heap, and a server has a thread a session: they would keep 60 MB more.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    sys.stdout.flush()
    os.execv(command[0], command)


def command_line(app: Path, *, port: int | None, browser: bool) -> list[str]:
    """The command that serves app.py. Without a port the server takes the first free one from 8501."""
    command = [sys.executable, "-m", "profiler.ui.server", str(app), "--address", ADDRESS]
    if port is not None:
        command += ["--port", str(port)]
    return [*command, "--browser"] if browser else command


def web_options(arguments: argparse.Namespace) -> list[str]:
    """The server's options about visitors; it checks the origins itself."""
    from profiler.reports.memory_limit import parse_size

    words = [f"--origin={origin}" for origin in arguments.origin]
    if arguments.upload_size is not None:
        words += ["--upload-bytes", str(parse_size(arguments.upload_size, "--upload-size", least=1 << 20))]
    for name, number in (
        ("--upload-files", arguments.upload_files),
        ("--upload-seconds", arguments.upload_time),
    ):
        words += [name, str(number)] if number is not None else []
    return words


def can_open_a_browser() -> bool:
    """Whether there is a screen: Linux says so by DISPLAY or WAYLAND_DISPLAY; the others always have one."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
