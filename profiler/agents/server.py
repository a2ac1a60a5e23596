"""The server of the Model Context Protocol: tools for language models, over stdio or loopback HTTP.

It is the only importer of the `mcp` package. The SDK's `Server` is used and not its `MCPServer`, which makes
schemas out of Python signatures and words refusals over several lines that repeat the refused value.
"""

from __future__ import annotations

import gc
import ipaddress
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from profiler.agents.roots import Roots
from profiler.agents.size_budget import dumps
from profiler.agents.tool import RefusedArgument, Tool, echo
from profiler.agents.toolset import INSTRUCTIONS
from profiler.agents.untrusted import printable
from profiler.agents.worker_pool import WorkerPool
from profiler.errors import ProfilerError
from profiler.package import VERSION

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server import Server
    from mcp.server.context import ServerRequestContext

NAME = "attention-kernel-profiler"
PATH = "/mcp"
_MOST_BODY = 1 << 20  # bytes of an HTTP request
_MOST_SESSIONS = 32
_HEAD = 200  # characters of a line that is no message, in which its id is looked for


class ProfilerServer:
    """Answers calls of the tools it was given, each in a process that can be ended."""

    def __init__(self, tools: Sequence[Tool], roots: Roots, *, budget: int, time_limit_s: float) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self._roots = roots
        self._budget = budget
        self._pool = WorkerPool(roots, time_limit_s)

    async def call(self, name: str, arguments: object) -> dict[str, Any]:
        """The answer to a call, or {"error": one line, "exit_code": N}. What is refused starts no process."""
        try:
            tool = self.tools.get(name)
            if tool is None:
                raise RefusedArgument(f"there is no tool {echo(name)}: there are {', '.join(self.tools)}")
            checked = tool.check(arguments)
            for argument in tool.arguments:
                if argument.is_name and (value := checked[argument.name]):
                    for text in value if isinstance(value, list) else [value]:
                        self._roots.check(text)
        except ProfilerError as error:
            return {"error": printable(str(error)), "exit_code": int(error.exit_code)}
        reply = await self._pool.ask(tool.name, checked, self._budget)
        answer: dict[str, Any] = reply.get("answer") or reply
        return answer

    def protocol(self) -> Server[Any]:
        """The SDK's server with these tools. Raises ProfilerError where the SDK is not installed."""
        self._pool.warm()  # it loads what answers need while the SDK is loaded here
        gc.disable()  # of what the SDK makes nothing is garbage
        try:
            import mcp_types as types
            from mcp.server import Server
        except ImportError as error:
            raise ProfilerError(
                f"no MCP SDK ({error}): pip install 'attention-kernel-profiler[agents]'"
            ) from None
        finally:
            gc.freeze()
            gc.enable()

        async def list_tools(
            _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
        ) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[_declaration(tool) for tool in self.tools.values()])

        async def call_tool(
            _context: ServerRequestContext[Any], params: types.CallToolRequestParams
        ) -> types.CallToolResult:
            answer = await self.call(params.name, params.arguments or {})
            return types.CallToolResult(
                content=[types.TextContent(type="text", text=dumps(answer))],
                structured_content=answer,
                is_error="error" in answer,
            )

        @asynccontextmanager
        async def lifespan(_server: Server[Any]) -> AsyncIterator[Mapping[str, Any]]:
            try:
                self._pool.warm()
                yield {}
            finally:
                await self._pool.close()

        return Server(
            NAME,
            version=VERSION,
            title="Attention-kernel profiler",
            instructions=INSTRUCTIONS,
            lifespan=lifespan,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
        )


def serve_stdio(server: ProfilerServer) -> None:
    """Serve one client on stdin and stdout until stdin ends."""
    protocol = server.protocol()

    async def serve() -> None:
        from mcp.server.stdio import stdio_server
        from mcp.shared.message import SessionMessage

        passing, understood = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        async with stdio_server() as (received, sent), anyio.create_task_group() as tasks:

            async def relay() -> None:
                async with passing:
                    async for message in received:
                        if isinstance(message, Exception):
                            await sent.send(SessionMessage(_misunderstood(message)))
                        else:
                            await passing.send(message)

            tasks.start_soon(relay)
            await protocol.run(understood, sent, protocol.create_initialization_options())

    anyio.run(serve)


def serve_http(server: ProfilerServer, address: str, port: int) -> None:
    """Serve clients on a loopback address until the process is ended. Raises ProfilerError for others.

    A request whose Host or Origin is not this machine is refused: a page of another site, which a browser on
    this machine shows, gets no answer.
    """
    host = loopback(address)
    protocol = server.protocol()
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    names = ("127.0.0.1", "localhost", "[::1]")
    security = TransportSecuritySettings(
        allowed_hosts=[f"{name}:{port}" for name in names],
        allowed_origins=[f"http://{name}:{port}" for name in names],
    )
    application = protocol.streamable_http_app(
        streamable_http_path=PATH,
        host=host,
        transport_security=security,
        max_request_body_size=_MOST_BODY,
        max_sessions=_MOST_SESSIONS,
    )
    uvicorn.run(application, host=host, port=port, log_level="warning", access_log=False)


def loopback(address: str) -> str:
    """A loopback address as a number. Raises ProfilerError for any other, and for names but localhost."""
    text = "127.0.0.1" if address == "localhost" else address.strip("[]")
    try:
        is_loopback = ipaddress.ip_address(text).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise ProfilerError(
            f"--address {address[:60]!r}: only loopback addresses (127.0.0.1, ::1): a client "
            "reads all runs; from elsewhere use an SSH tunnel"
        )
    return text


def _misunderstood(problem: Exception) -> types.JSONRPCError:
    """The answer to a line that is no message, under the id that it gives itself.

    The SDK drops such a line without a word, and its sender waits for ever.
    """
    import mcp_types as types
    from pydantic import ValidationError

    details: Sequence[Mapping[str, Any]] = problem.errors() if isinstance(problem, ValidationError) else []
    line = details[0]["input"] if details else ""
    asked = re.search(r'"id"\s*:\s*(\d{1,18})\b', line[:_HEAD]) if isinstance(line, str) else None
    reason = printable(str(details[0]["msg"]) if details else type(problem).__name__)[:160]
    error = types.ErrorData(code=types.PARSE_ERROR, message=f"not a message of the protocol: {reason}")
    return types.JSONRPCError(jsonrpc="2.0", id=int(asked[1]) if asked else None, error=error)


def _declaration(tool: Tool) -> types.Tool:
    import mcp_types as types

    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.runs_code,
            destructive_hint=False,
            idempotent_hint=not tool.runs_code,
            open_world_hint=False,
        ),
    )
