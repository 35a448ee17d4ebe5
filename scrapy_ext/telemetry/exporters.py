"""Exporters of traces and metrics by OTLP over HTTP, configured by the environment variables of OpenTelemetry.

All of it runs in daemon threads, so that a collector that is slow or away delays neither the event loop nor, beyond
:data:`END` seconds, the end of the process. What does not fit into the queue of spans is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import export as points
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Tracer

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.telemetry.families import Distribution, Family, Labels

logger = logging.getLogger("scrapy_ext.telemetry")

SCOPE: Final = "scrapy_ext"
#: Seconds that the last export may take.
END: Final = 5.0
#: Seconds to close an exporter, which sends nothing more.
_CLOSE: Final = 0.5
#: Seconds between two warnings of exports that fail.
_WARN_EVERY: Final = 600.0
#: Beginnings of the names of threads that export: OpenTelemetry's own, and ours.
_THREADS: Final = ("OtelBatch", "opentelemetry")
_UNKNOWN: Final = "unknown_service"
_CUMULATIVE: Final = points.AggregationTemporality.CUMULATIVE


def resource_of(service: str) -> Resource:
    """Return the description of this process; ``service`` is its name unless the environment has one."""
    found = Resource.create()
    own = {} if "service.instance.id" in found.attributes else {"service.instance.id": str(uuid.uuid4())}
    if str(found.attributes.get("service.name", _UNKNOWN)).startswith(_UNKNOWN):
        own["service.name"] = service
    return found.merge(Resource(own))


class TraceExporter:
    """A provider of tracers with an exporter in a thread of its own."""

    def __init__(self, resource: Resource) -> None:
        self._exporter = OTLPSpanExporter()
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))

    @property
    def tracer(self) -> Tracer:
        return self._provider.get_tracer(SCOPE)

    async def stop(self) -> bool:
        """Export the rest and stop; return false if that took too long."""
        is_done = await _in_thread(self._provider.shutdown, END)
        if not is_done:
            await _in_thread(self._exporter.shutdown, _CLOSE)  # It ends the wait for another attempt.
        return is_done


class MetricExporter:
    """An exporter of families of metrics."""

    def __init__(self, resource: Resource) -> None:
        self._exporter = OTLPMetricExporter()
        self._resource = resource
        self._began = time.time_ns()

    async def export(self, families: Iterable[Family], seconds: float | None = None) -> bool:
        """Export the current values; return false if that took longer than so many seconds."""
        data = self._data(families)
        return await _in_thread(lambda: self._exporter.export(data), seconds)

    async def stop(self) -> None:
        await _in_thread(self._exporter.shutdown, _CLOSE)

    def _data(self, families: Iterable[Family]) -> points.MetricsData:
        now = time.time_ns()
        metrics = [self._metric(family, now) for family in families if family.samples]
        scope = points.ScopeMetrics(InstrumentationScope(SCOPE), metrics, "")
        return points.MetricsData([points.ResourceMetrics(self._resource, [scope], "")])

    def _metric(self, family: Family, now: int) -> points.Metric:
        # Collectors that write for Prometheus add this suffix to each counter.
        name = family.name.removesuffix("_total")
        unit = "s" if name.endswith("_seconds") else "By" if name.endswith("_bytes") else ""
        data: points.Sum | points.Gauge | points.Histogram
        if family.kind == "histogram":
            histograms = [self._histogram(labels, value, now) for labels, value in family.samples]
            data = points.Histogram([each for each in histograms if each is not None], _CUMULATIVE)
        else:
            numbers = [
                points.NumberDataPoint(dict(labels), self._began, now, value)
                for labels, value in family.samples
                if not isinstance(value, Distribution)
            ]
            data = points.Gauge(numbers) if family.kind == "gauge" else points.Sum(numbers, _CUMULATIVE, True)
        return points.Metric(name, family.meaning, unit, data)

    def _histogram(self, labels: Labels, value: float | Distribution, now: int) -> points.HistogramDataPoint | None:
        if not isinstance(value, Distribution):
            return None
        numbers, bounds = list(value.numbers), list(value.bounds)
        unknown: Any = None  # Minimum and maximum, which the protocol leaves out.
        return points.HistogramDataPoint(
            dict(labels), self._began, now, sum(numbers), value.total, numbers, bounds, unknown, unknown
        )


class FaultLog(logging.Handler):
    """Handler of OpenTelemetry's own log: its exporters warn of every attempt, this warns once in ten minutes. Lines of
    the HTTP library about exports are dropped."""

    _source: Final = logging.getLogger("opentelemetry")
    _http: Final = logging.getLogger("urllib3.connectionpool")

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._warned = float("-inf")
        self._propagated = True

    def attach(self) -> None:
        self._propagated, self._source.propagate = self._source.propagate, False
        self._source.addHandler(self)
        self._http.addFilter(_is_of_others)

    def end(self, *, are_idle: bool) -> None:
        """Detach; or drop what exporters that are not idle still log while they give up."""
        if not are_idle:
            self._warned = float("inf")
            return
        self._source.removeHandler(self)
        self._http.removeFilter(_is_of_others)
        self._source.propagate = self._propagated

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        if now - self._warned >= _WARN_EVERY:
            self._warned = now
            text = "OpenTelemetry cannot export now: %s. Check that a collector answers at %s"
            logger.warning(text, record.getMessage().rstrip("."), endpoint())


def _is_of_others(record: logging.LogRecord) -> bool:
    """Return false for a record of a thread that exports."""
    return not str(record.threadName).startswith(_THREADS)


def endpoint() -> str:
    """Return the collector's address for messages, without credentials."""
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
    given = next((found for name in names if (found := os.environ.get(name))), "")
    return given.rpartition("@")[2].partition("?")[0]


async def _in_thread(work: Callable[[], object], seconds: float | None) -> bool:
    """Run work in a daemon thread, which the end of the process does not wait for; return true if it ends in time."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def run() -> None:
        try:
            work()
        except Exception:
            logging.getLogger("opentelemetry.scrapy_ext").exception("An export failed.")
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name="opentelemetry", daemon=True).start()
    try:
        await asyncio.wait_for(done.wait(), seconds)
    except TIMEOUT_ERRORS:
        return False
    return True
