"""Advice on a version: what limits it, what changed and what to try next, each with its numbers."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.advice.insights import Insights as Insights
    from profiler.advice.insights import find_insights as find_insights
    from profiler.advice.places import with_places as with_places
    from profiler.advice.statement import MetricInput as MetricInput
    from profiler.advice.statement import Statement as Statement
    from profiler.advice.subject import ComparedSide as ComparedSide
    from profiler.advice.subject import Subject as Subject
    from profiler.advice.subject import TrafficByWorkload as TrafficByWorkload
    from profiler.advice.subject import load_subject as load_subject

__getattr__ = lazy(__name__)
