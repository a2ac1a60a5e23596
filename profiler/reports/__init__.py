"""Reports of Nsight Compute, .ncu-rep files and CSV exports, read into launches in a process apart."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.reports.instances import LaunchDetail as LaunchDetail
    from profiler.reports.memory_limit import parse_size as parse_size
    from profiler.reports.read import is_report as is_report
    from profiler.reports.read import launch_detail as launch_detail
    from profiler.reports.read import launch_details as launch_details
    from profiler.reports.read import read_report as read_report
    from profiler.reports.read import read_reports as read_reports
    from profiler.reports.reader_client import dismiss_reader as dismiss_reader
    from profiler.reports.reader_client import start_reader as start_reader
    from profiler.reports.redact import Redaction as Redaction
    from profiler.reports.redact import redact_report as redact_report
    from profiler.reports.rule_changes import RuleChange as RuleChange
    from profiler.reports.rule_changes import compare_rules as compare_rules
    from profiler.reports.rule_changes import rank_rules as rank_rules
    from profiler.reports.rule_places import address_of as address_of
    from profiler.reports.rule_places import place_of as place_of
    from profiler.reports.rule_places import stall_of as stall_of
    from profiler.reports.source_text import source_lines as source_lines

__getattr__ = lazy(__name__)
