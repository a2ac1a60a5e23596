"""How NVIDIA's libnvperf_host is called: metric names of a chip and their replay passes, with no GPU.

The library ships inside the PyPI wheel `ncu-report`. Its NVPW_* interface is marked deprecated and has no
documentation but its headers. Source: nvperf_host.h, nvperf_cuda_host.h of the wheel nvidia-cuda-cupti 13.5.
"""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
from collections.abc import Iterable, Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_uint8, c_uint16, c_void_p
from functools import cache
from pathlib import Path

LIBRARY = "libnvperf_host.so"
COUNTER, RATIO, THROUGHPUT = 0, 1, 2  # NVPW_MetricType
_KERNEL_REPLAY = 1  # NVPA_ACTIVITY_KIND_PROFILER
_forgone = False


def _struct(*fields: tuple[str, type]) -> type[Structure]:
    """A parameter block: every one starts with its own size and a reserved pointer."""
    layout = [("structSize", c_size_t), ("pPriv", c_void_p), *fields]
    return type("Params", (Structure,), {"_fields_": layout})


class _Request(Structure):
    """NVPW_MetricEvalRequest: one metric, by its index, roll-up and submetric."""

    _fields_ = (
        ("metricIndex", c_size_t),
        ("metricType", c_uint8),
        ("rollupOp", c_uint8),
        ("submetric", c_uint16),
    )


class _RawRequest(Structure):
    """NVPA_RawMetricRequest: one hardware counter that a metric is computed from."""

    _fields_ = (
        ("structSize", c_size_t),
        ("pPriv", c_void_p),
        ("pMetricName", c_char_p),
        ("isolated", c_uint8),
        ("keepInstances", c_uint8),
    )


_InitializeHost = _struct()
_ScratchSize = _struct(
    ("pChipName", c_char_p), ("pCounterAvailabilityImage", c_void_p), ("scratchBufferSize", c_size_t)
)
_EvaluatorInitialize = _struct(
    ("pScratchBuffer", c_void_p),
    ("scratchBufferSize", c_size_t),
    ("pChipName", c_char_p),
    ("pCounterAvailabilityImage", c_void_p),
    ("pCounterDataImage", c_void_p),
    ("counterDataImageSize", c_size_t),
    ("pMetricsEvaluator", c_void_p),
)
_MetricNames = _struct(
    ("pMetricsEvaluator", c_void_p),
    ("metricType", c_uint8),
    ("pMetricNames", c_void_p),
    ("pMetricNameBeginIndices", POINTER(c_size_t)),
    ("numMetrics", c_size_t),
)
_Convert = _struct(
    ("pMetricsEvaluator", c_void_p),
    ("pMetricName", c_char_p),
    ("pMetricEvalRequest", POINTER(_Request)),
    ("metricEvalRequestStructSize", c_size_t),
)
_Dependencies = _struct(
    ("pMetricsEvaluator", c_void_p),
    ("pMetricEvalRequests", POINTER(_Request)),
    ("numMetricEvalRequests", c_size_t),
    ("metricEvalRequestStructSize", c_size_t),
    ("metricEvalRequestStrideSize", c_size_t),
    ("ppRawDependencies", POINTER(c_char_p)),
    ("numRawDependencies", c_size_t),
    ("ppOptionalRawDependencies", POINTER(c_char_p)),
    ("numOptionalRawDependencies", c_size_t),
)
_ConfigCreate = _struct(
    ("activityKind", c_int),
    ("pChipName", c_char_p),
    ("pCounterAvailabilityImage", c_void_p),
    ("pRawMetricsConfig", c_void_p),
)
_ConfigDestroy = _struct(("pRawMetricsConfig", c_void_p))
_BeginPassGroup = _struct(("pRawMetricsConfig", c_void_p), ("maxPassCount", c_size_t))
_EndPassGroup = _struct(("pRawMetricsConfig", c_void_p))
_AddMetrics = _struct(
    ("pRawMetricsConfig", c_void_p),
    ("pRawMetricRequests", POINTER(_RawRequest)),
    ("numMetricRequests", c_size_t),
)
_NumPasses = _struct(("pRawMetricsConfig", c_void_p), ("numPasses", c_size_t))


def _size(block: Structure | type[Structure]) -> int:
    """The size the library expects: up to the end of the last field, without the padding of sizeof."""
    kind = block if isinstance(block, type) else type(block)
    last = getattr(kind, kind._fields_[-1][0])
    return int(last.offset + last.size)


def library_path() -> Path | None:
    """Where the library lies, or None: in the wheel, else beside an installed ncu, which has its own.

    `ncu_report` itself is not imported: it loads 16 MB of its own.
    """
    spec = importlib.util.find_spec("ncu_report")
    folders = [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []
    ncu = shutil.which("ncu")
    if ncu:
        home = Path(ncu).resolve().parent
        folders += [home, *sorted(home.glob("target/linux-*"))]
        folders += sorted(home.parent.glob("nsight-compute-*/target/linux-*"), reverse=True)
    folders += sorted(Path("/opt/nvidia/nsight-compute").glob("20*/target/linux-*"), reverse=True)
    return next((folder / LIBRARY for folder in folders if (folder / LIBRARY).is_file()), None)


def disable() -> None:
    """Do without the library from now on: one of another version may end the process that calls it."""
    global _forgone
    _forgone = True
    load.cache_clear()


@cache
def load() -> ctypes.CDLL | None:
    """The initialised library, or None where it is absent or will not load (another platform)."""
    path = None if _forgone else library_path()
    if path is None:
        return None
    try:
        library = ctypes.CDLL(str(path))
        return library if _call(library, "NVPW_InitializeHost", _InitializeHost()) == 0 else None
    except (OSError, AttributeError):  # not loadable here; or the deprecated interface is gone
        return None


def _call(library: ctypes.CDLL, function: str, params: Structure) -> int:
    params.structSize = _size(params)
    return int(getattr(library, function)(byref(params)))


class Chip:
    """One chip as the library knows it; raises LookupError where the library does not know it."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self._library = library
        self._name = name.encode()
        scratch = _ScratchSize(pChipName=self._name)
        if _call(library, "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", scratch):
            raise LookupError(name)
        self._scratch = ctypes.create_string_buffer(
            scratch.scratchBufferSize
        )  # lives as long as the evaluator
        start = _EvaluatorInitialize(
            pScratchBuffer=ctypes.addressof(self._scratch),
            scratchBufferSize=scratch.scratchBufferSize,
            pChipName=self._name,
        )
        if _call(library, "NVPW_CUDA_MetricsEvaluator_Initialize", start):
            raise LookupError(name)
        self._evaluator = start.pMetricsEvaluator

    def base_names(self, kind: int) -> list[str]:
        """Names without suffix of one kind: COUNTER, RATIO or THROUGHPUT."""
        block = _MetricNames(pMetricsEvaluator=self._evaluator, metricType=kind)
        if _call(self._library, "NVPW_MetricsEvaluator_GetMetricNames", block):
            return []
        starts = block.pMetricNameBeginIndices
        return [
            ctypes.string_at(block.pMetricNames + starts[index]).decode() for index in range(block.numMetrics)
        ]

    def exists(self, name: str) -> bool:
        """Whether the chip has the metric under this full name, suffix included."""
        return self._request(name) is not None

    def passes(self, names: Iterable[str]) -> int:
        """Replay passes that the names need together; names the chip does not have are left out."""
        requests = [request for name in names if (request := self._request(name)) is not None]
        if not requests:
            return 0  # the library would say 1
        config = self._config()
        try:
            _call(
                self._library,
                "NVPW_RawMetricsConfig_BeginPassGroup",
                _BeginPassGroup(pRawMetricsConfig=config),
            )
            for request in requests:
                counters = self._counters(request)
                array = (_RawRequest * len(counters))(
                    *(_RawRequest(_size(_RawRequest), None, counter, 1, 1) for counter in counters)
                )
                _call(
                    self._library,
                    "NVPW_RawMetricsConfig_AddMetrics",
                    _AddMetrics(
                        pRawMetricsConfig=config, pRawMetricRequests=array, numMetricRequests=len(array)
                    ),
                )
            _call(
                self._library, "NVPW_RawMetricsConfig_EndPassGroup", _EndPassGroup(pRawMetricsConfig=config)
            )
            count = _NumPasses(pRawMetricsConfig=config)
            _call(self._library, "NVPW_RawMetricsConfig_GetNumPasses_V2", count)
            return int(count.numPasses)
        finally:
            _call(self._library, "NVPW_RawMetricsConfig_Destroy", _ConfigDestroy(pRawMetricsConfig=config))

    def _request(self, name: str) -> _Request | None:
        request = _Request()
        block = _Convert(
            pMetricsEvaluator=self._evaluator,
            pMetricName=name.encode(),
            pMetricEvalRequest=ctypes.pointer(request),
            metricEvalRequestStructSize=_size(_Request),
        )
        failed = _call(self._library, "NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest", block)
        return None if failed else request

    def _counters(self, request: _Request) -> Sequence[bytes]:
        block = _Dependencies(
            pMetricsEvaluator=self._evaluator,
            pMetricEvalRequests=ctypes.pointer(request),
            numMetricEvalRequests=1,
            metricEvalRequestStructSize=_size(_Request),
            metricEvalRequestStrideSize=ctypes.sizeof(_Request),
        )
        name = "NVPW_MetricsEvaluator_GetMetricRawDependencies"
        _call(self._library, name, block)  # first call: how many
        array = (c_char_p * (block.numRawDependencies + 1))()
        block.ppRawDependencies = array
        block.ppOptionalRawDependencies = None
        return [] if _call(self._library, name, block) else list(array[: block.numRawDependencies])

    def _config(self) -> int:
        block = _ConfigCreate(activityKind=_KERNEL_REPLAY, pChipName=self._name)
        if _call(self._library, "NVPW_CUDA_RawMetricsConfig_Create_V2", block):
            raise LookupError(self._name.decode())
        return int(block.pRawMetricsConfig)
