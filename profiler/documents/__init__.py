"""Every answer as a document, made once for the command line, the library, the dashboard and programs."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.documents.document import Document as Document
    from profiler.documents.gate import GateDocument as GateDocument
    from profiler.documents.gate import gate_versions as gate_versions

__getattr__ = lazy(
    __name__,
    document="Document",
    gate="GateDocument gate_versions",
)
