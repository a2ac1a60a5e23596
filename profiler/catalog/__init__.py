"""What a version and a problem are: catalogues, sources, references, torch's own kernels."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.catalog.attention import ATTENTION as ATTENTION
    from profiler.catalog.attention import AttentionWorkload as AttentionWorkload
    from profiler.catalog.catalog import Catalog as Catalog
    from profiler.catalog.catalog import load_catalog as load_catalog
    from profiler.catalog.problem import Case as Case
    from profiler.catalog.problem import ContractCall as ContractCall
    from profiler.catalog.problem import OutputCheck as OutputCheck
    from profiler.catalog.problem import Problem as Problem
    from profiler.catalog.problem import Tolerance as Tolerance
    from profiler.catalog.problem import Workload as Workload
    from profiler.catalog.problem import check_output as check_output
    from profiler.catalog.search_space import Macro as Macro
    from profiler.catalog.search_space import SearchSpace as SearchSpace
    from profiler.catalog.sources import load_object as load_object
    from profiler.catalog.sources import load_problem as load_problem
    from profiler.catalog.sources import source_files as source_files
    from profiler.catalog.sources import source_sha256 as source_sha256
    from profiler.catalog.trust import NotTrusted as NotTrusted
    from profiler.catalog.trust import remember_trust as remember_trust
    from profiler.catalog.trust import require_trust as require_trust
    from profiler.catalog.version import Budget as Budget
    from profiler.catalog.version import Claim as Claim
    from profiler.catalog.version import Version as Version

__getattr__ = lazy(__name__)
