"""Every answer as a document, made once for the command line, the library, the dashboard and programs."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.documents.comparison import ComparisonDocument as ComparisonDocument
    from profiler.documents.comparison import compare_names as compare_names
    from profiler.documents.comparison import compare_sides as compare_sides
    from profiler.documents.document import Document as Document
    from profiler.documents.explanation import ExplanationDocument as ExplanationDocument
    from profiler.documents.explanation import UnmeasuredDocument as UnmeasuredDocument
    from profiler.documents.explanation import explain_comparison as explain_comparison
    from profiler.documents.explanation import explain_names as explain_names
    from profiler.documents.gate import GateDocument as GateDocument
    from profiler.documents.gate import gate_versions as gate_versions

__getattr__ = lazy(
    __name__,
    comparison="ComparisonDocument compare_names compare_sides",
    document="Document",
    explanation="ExplanationDocument UnmeasuredDocument explain_comparison explain_names",
    gate="GateDocument gate_versions",
)
