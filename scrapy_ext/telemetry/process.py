"""Export of traces and metrics of this process. Its crawls, if it has several, share that of the traces."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from typing import Final

from opentelemetry.trace import TracerProvider

from scrapy_ext.telemetry import spans
from scrapy_ext.telemetry.exporters import END, SCOPE, FaultLog, MetricExporter, TraceExporter, endpoint, resource_of
from scrapy_ext.telemetry.families import Collect, Family
from scrapy_ext.telemetry.recording import OpenTelemetryRecorder

logger = logging.getLogger("scrapy_ext.telemetry")

_INTERVAL_MS: Final = 60_000
_LEAST_SECONDS: Final = 0.1


class _Shared:
    """The parts that the crawls of this process share."""

    def __init__(self, service: str, provider: TracerProvider | None, *, is_traced: bool) -> None:
        self.users = 0
        self.resource = resource_of(service)
        self.traces = TraceExporter(self.resource) if provider is None and is_traced else None
        # A process with a provider of its own configures OpenTelemetry's log, too.
        self.faults = FaultLog() if provider is None else None
        tracers = self.traces or provider
        if tracers is not None:
            tracer = tracers.tracer if isinstance(tracers, TraceExporter) else tracers.get_tracer(SCOPE)
            spans.record_with(OpenTelemetryRecorder(tracer, os.environ.get("TRACEPARENT", "")))
        if self.faults is not None:
            self.faults.attach()

    async def stop(self) -> bool:
        spans.record_with(None)
        return self.traces is None or await self.traces.stop()


class Telemetry:
    """Export for one crawl or server, from its construction to :meth:`stop`. ``collect`` None: no metrics; ``provider``
    is one of tracers, in place of ours."""

    _shared: _Shared | None = None

    def __init__(
        self, service: str, collect: Collect | None, provider: TracerProvider | None, *, is_traced: bool
    ) -> None:
        shared = Telemetry._shared or _Shared(service, provider, is_traced=is_traced)
        self._collect = collect
        self._metrics = MetricExporter(shared.resource) if collect is not None else None
        interval = float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL") or _INTERVAL_MS) / 1000
        self._task = asyncio.create_task(self._repeat(max(interval, _LEAST_SECONDS)))
        Telemetry._shared = shared
        shared.users += 1

    async def stop(self) -> None:
        """Export the rest, for a bounded time."""
        self._task.cancel()
        shared, are_whole = Telemetry._shared, [self._last_metrics()]
        if shared is not None:
            shared.users -= 1
            if not shared.users:
                Telemetry._shared = None
                are_whole.append(shared.stop())
        is_whole = all(await asyncio.gather(*are_whole))
        if not is_whole:
            text = "The last traces or metrics were not exported within %g s. Check that a collector answers at %s"
            logger.warning(text, END, endpoint())
        if shared is not None and shared.faults is not None and not shared.users:
            shared.faults.end(are_idle=is_whole)

    async def _repeat(self, interval: float) -> None:
        while self._metrics is not None:
            await asyncio.sleep(interval)
            await self._metrics.export(await self._families())

    async def _last_metrics(self) -> bool:
        if self._metrics is None:
            return True
        is_whole = await self._metrics.export(await self._families(), END)
        await self._metrics.stop()
        return is_whole

    async def _families(self) -> Iterable[Family]:
        try:
            return list(await self._collect()) if self._collect is not None else ()
        except Exception:
            logger.exception("The metrics could not be read")
            return ()
