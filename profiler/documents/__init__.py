"""Every answer as a document, made once for the command line, the library, the dashboard and programs."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.documents.backup import BackupDocument as BackupDocument
    from profiler.documents.backup import RestoreDocument as RestoreDocument
    from profiler.documents.backup import restore as restore
    from profiler.documents.backup import write_backup as write_backup
    from profiler.documents.build import BuildDocument as BuildDocument
    from profiler.documents.build import build_versions as build_versions
    from profiler.documents.check import CheckDocument as CheckDocument
    from profiler.documents.check import check_names as check_names
    from profiler.documents.code_files import CodeFilesDocument as CodeFilesDocument
    from profiler.documents.code_files import CodeFunction as CodeFunction
    from profiler.documents.code_files import examine_files as examine_files
    from profiler.documents.code_lines import FunctionLines as FunctionLines
    from profiler.documents.code_lines import LineFacts as LineFacts
    from profiler.documents.collection import CollectionDocument as CollectionDocument
    from profiler.documents.collection import DissectionDocument as DissectionDocument
    from profiler.documents.collection import ForecastDocument as ForecastDocument
    from profiler.documents.comparison import ComparisonDocument as ComparisonDocument
    from profiler.documents.comparison import compare_names as compare_names
    from profiler.documents.comparison import compare_sides as compare_sides
    from profiler.documents.doctor import DoctorDocument as DoctorDocument
    from profiler.documents.document import Document as Document
    from profiler.documents.explanation import ExplanationDocument as ExplanationDocument
    from profiler.documents.explanation import UnmeasuredDocument as UnmeasuredDocument
    from profiler.documents.explanation import explain_comparison as explain_comparison
    from profiler.documents.explanation import explain_names as explain_names
    from profiler.documents.gate import GateDocument as GateDocument
    from profiler.documents.gate import gate_versions as gate_versions
    from profiler.documents.history import HistoryDocument as HistoryDocument
    from profiler.documents.history import find_history as find_history
    from profiler.documents.insights import InsightsDocument as InsightsDocument
    from profiler.documents.insights import insights_of_name as insights_of_name
    from profiler.documents.insights import insights_of_side as insights_of_side
    from profiler.documents.judgement import JudgementDocument as JudgementDocument
    from profiler.documents.judgement import judge_name as judge_name
    from profiler.documents.launch import LaunchDocument as LaunchDocument
    from profiler.documents.launch import LaunchOfSide as LaunchOfSide
    from profiler.documents.launch import launch_document as launch_document
    from profiler.documents.launch import launch_like as launch_like
    from profiler.documents.launch import launch_of_name as launch_of_name
    from profiler.documents.launch_inside import inside_launch as inside_launch
    from profiler.documents.launches import LaunchesDocument as LaunchesDocument
    from profiler.documents.launches import LaunchSelection as LaunchSelection
    from profiler.documents.launches import launches_of_name as launches_of_name
    from profiler.documents.launches import select_launches as select_launches
    from profiler.documents.listing import RunsDocument as RunsDocument
    from profiler.documents.listing import VersionsDocument as VersionsDocument
    from profiler.documents.listing import WorkloadsDocument as WorkloadsDocument
    from profiler.documents.listing import list_runs as list_runs
    from profiler.documents.listing import list_versions as list_versions
    from profiler.documents.listing import list_workloads as list_workloads
    from profiler.documents.listing import mix_sentences as mix_sentences
    from profiler.documents.metrics import MetricCheckDocument as MetricCheckDocument
    from profiler.documents.metrics import MetricRequestDocument as MetricRequestDocument
    from profiler.documents.metrics import MetricsDocument as MetricsDocument
    from profiler.documents.metrics import check_metrics as check_metrics
    from profiler.documents.metrics import metrics_for_chip as metrics_for_chip
    from profiler.documents.noise import NoiseFloorsDocument as NoiseFloorsDocument
    from profiler.documents.noise import NoiseRunDocument as NoiseRunDocument
    from profiler.documents.noise import floors_of_run as floors_of_run
    from profiler.documents.noise import list_noise_floors as list_noise_floors
    from profiler.documents.prediction import GivenLaunch as GivenLaunch
    from profiler.documents.prediction import PredictionDocument as PredictionDocument
    from profiler.documents.prediction import predict_names as predict_names
    from profiler.documents.prune import PruneDocument as PruneDocument
    from profiler.documents.prune import prune_reports as prune_reports
    from profiler.documents.regressions import RegressionsDocument as RegressionsDocument
    from profiler.documents.regressions import list_regressions as list_regressions
    from profiler.documents.regressions import load_worse_now as load_worse_now
    from profiler.documents.regressions import prepare_regressions as prepare_regressions
    from profiler.documents.report import ReportDocument as ReportDocument
    from profiler.documents.roofline import RooflineDocument as RooflineDocument
    from profiler.documents.roofline import rooflines_of_name as rooflines_of_name
    from profiler.documents.roofline import rooflines_of_side as rooflines_of_side
    from profiler.documents.sarif import sarif_log as sarif_log
    from profiler.documents.sass import CodeComparisonDocument as CodeComparisonDocument
    from profiler.documents.sass import CodeDocument as CodeDocument
    from profiler.documents.sass import compare_code as compare_code
    from profiler.documents.sass import show_code as show_code
    from profiler.documents.search import SearchDocument as SearchDocument
    from profiler.documents.search import search_document as search_document
    from profiler.documents.search import search_status as search_status
    from profiler.documents.static import StaticDocument as StaticDocument
    from profiler.documents.static import examine_versions as examine_versions
    from profiler.documents.trend import TrendDocument as TrendDocument
    from profiler.documents.trend import TrendTable as TrendTable
    from profiler.documents.trend import load_trend as load_trend
    from profiler.documents.trend import trend_tables as trend_tables
    from profiler.documents.verify import VerifyDocument as VerifyDocument
    from profiler.documents.verify import verify_data as verify_data
    from profiler.documents.version_report import VersionReportDocument as VersionReportDocument
    from profiler.documents.version_report import report_of_table as report_of_table
    from profiler.documents.version_report import report_versions as report_versions
    from profiler.documents.version_table import TableCell as TableCell
    from profiler.documents.version_table import TableColumn as TableColumn
    from profiler.documents.version_table import TablePlace as TablePlace
    from profiler.documents.version_table import TableRow as TableRow
    from profiler.documents.version_table import VersionTableDocument as VersionTableDocument
    from profiler.documents.version_table_cells import compare_many as compare_many
    from profiler.documents.version_table_cells import table_names as table_names
    from profiler.documents.version_table_cells import table_places as table_places

__getattr__ = lazy(
    __name__,
    backup="BackupDocument RestoreDocument restore write_backup",
    build="BuildDocument build_versions",
    check="CheckDocument check_names",
    collection="CollectionDocument DissectionDocument ForecastDocument",
    comparison="ComparisonDocument compare_names compare_sides",
    doctor="DoctorDocument",
    document="Document",
    explanation="ExplanationDocument UnmeasuredDocument explain_comparison explain_names",
    gate="GateDocument gate_versions",
    history="HistoryDocument find_history",
    insights="InsightsDocument insights_of_name insights_of_side",
    judgement="JudgementDocument judge_name",
    launch="LaunchDocument LaunchOfSide launch_document launch_like launch_of_name",
    launch_inside="inside_launch",
    launches="LaunchSelection LaunchesDocument launches_of_name select_launches",
    listing="""RunsDocument VersionsDocument WorkloadsDocument list_runs list_versions list_workloads
    mix_sentences""",
    metrics="MetricCheckDocument MetricRequestDocument MetricsDocument check_metrics metrics_for_chip",
    noise="NoiseFloorsDocument NoiseRunDocument floors_of_run list_noise_floors",
    prediction="GivenLaunch PredictionDocument predict_names",
    prune="PruneDocument prune_reports",
    regressions="RegressionsDocument list_regressions load_worse_now prepare_regressions",
    report="ReportDocument",
    roofline="RooflineDocument rooflines_of_name rooflines_of_side",
    sass="CodeComparisonDocument CodeDocument compare_code show_code",
    code_files="CodeFilesDocument CodeFunction examine_files",
    code_lines="FunctionLines LineFacts",
    sarif="sarif_log",
    search="SearchDocument search_document search_status",
    static="StaticDocument examine_versions",
    trend="TrendDocument TrendTable load_trend trend_tables",
    verify="VerifyDocument verify_data",
    version_report="VersionReportDocument report_of_table report_versions",
    version_table="TableCell TableColumn TablePlace TableRow VersionTableDocument",
    version_table_cells="compare_many table_names table_places",
)
