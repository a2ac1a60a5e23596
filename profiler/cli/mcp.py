"""`profiler mcp`: the answers of the other commands as tools for language models."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, port, positive, positive_seconds, print_json, print_table, say
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.agents.tool import Tool
    from profiler.cli.output import Commands

_DESCRIPTION = """\
Serve the Model Context Protocol. A language model's client starts it and talks over stdin, or connects over
HTTP from this machine only. The tools change nothing, --list prints them; --allow-run adds judge, which
compiles and runs a candidate.

Tools may read files in the data folder and the working directory, or in the folders of --root in its place;
links out of them are refused. Answers are cut to a budget of characters, and say what was left out."""

_EPILOG = """\
examples:
  profiler mcp                         on stdin and stdout, as a client starts it
  profiler mcp --root ~/reports        reports in this folder only, and the data folder
  profiler mcp --http 8765             http://127.0.0.1:8765/mcp

exit codes: 0 the client disconnected · 2 wrong arguments, or the MCP SDK is missing
(pip install 'attention-kernel-profiler[agents]')"""


def add(commands: Commands) -> None:
    """Add `mcp`."""
    command = commands.add_parser(
        "mcp",
        help="answers for language models, over the Model Context Protocol",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--list", action="store_true", help="print the tools and their arguments, and exit")
    add_json(command)
    command.add_argument(
        "--http", type=port, metavar="PORT", help="serve HTTP on this port, to this machine only"
    )
    command.add_argument(
        "--address", default="127.0.0.1", metavar="IP", help="the loopback address for --http (127.0.0.1)"
    )
    command.add_argument(
        "--root",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder whose files may be read, in place of the working directory (repeatable)",
    )
    command.add_argument(
        "--budget",
        type=positive,
        metavar="N",
        help="characters per answer unless the call sets it (default: 4000)",
    )
    command.add_argument(
        "--time-limit",
        type=positive_seconds,
        default=120,
        metavar="S",
        help="seconds per call (default: 120)",
    )
    command.add_argument(
        "--allow-run", action="store_true", help="offer judge, which compiles and runs candidates"
    )
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """List the tools, or serve."""
    from profiler.agents.roots import find_roots
    from profiler.agents.server import ProfilerServer, loopback, serve_http, serve_stdio
    from profiler.agents.size_budget import DEFAULT_BUDGET, LEAST_BUDGET, MOST_BUDGET
    from profiler.agents.toolset import offered

    budget = arguments.budget or DEFAULT_BUDGET
    if not LEAST_BUDGET <= budget <= MOST_BUDGET:
        raise ProfilerError(f"--budget {budget}: from {LEAST_BUDGET} to {MOST_BUDGET} characters")
    loopback(arguments.address)
    tools = offered(arguments.allow_run)
    if arguments.list:
        return _print_tools(tools, arguments.json)
    server = ProfilerServer(
        tools, find_roots(arguments.root), budget=budget, time_limit_s=arguments.time_limit
    )
    if arguments.http is not None:
        serve_http(server, arguments.address, arguments.http)
    else:
        serve_stdio(server)
    return 0


def _print_tools(tools: tuple[Tool, ...], as_json: bool) -> int:
    if as_json:
        print_json(
            {
                "tools": [
                    {"name": tool.name, "description": tool.description, "input_schema": tool.schema()}
                    for tool in tools
                ]
            }
        )
        return 0
    for tool in tools:
        say(f"{tool.name}: {tool.description}")
        rows = [
            (f"  {argument.name}{'' if argument.required else '?'}", argument.description)
            for argument in tool.arguments
        ]
        print_table(("  argument", ""), rows)
        say()
    return 0
