"""Tools for language models: the answers of the library, cut to a budget, over the Model Context Protocol."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.agents.roots import Roots as Roots
    from profiler.agents.roots import find_roots as find_roots
    from profiler.agents.server import ProfilerServer as ProfilerServer
    from profiler.agents.server import loopback as loopback
    from profiler.agents.server import serve_http as serve_http
    from profiler.agents.server import serve_stdio as serve_stdio
    from profiler.agents.tool import Argument as Argument
    from profiler.agents.tool import RefusedArgument as RefusedArgument
    from profiler.agents.tool import Tool as Tool
    from profiler.agents.toolset import offered as offered

__getattr__ = lazy(__name__)
