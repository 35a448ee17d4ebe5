"""``/healthz``, ``/readyz`` and ``/metrics``, for supervision of a server or a worker.

Liveness and readiness are public. The reason of a fault is in the log, and in the answer to a key for all projects. The
metrics need such a key, too, without ``--open-metrics``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import msgspec
from starlette.responses import PlainTextResponse, Response

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.jobprocess import proc
from scrapy_ext.server.auth.api_keys import Grant
from scrapy_ext.server.http.access import Unknown, refuse_guesses
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.middleware import RequestMiddleware
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.http.schemas import STRING, TEXT, AnswerShape, record, value
from scrapy_ext.server.metrics import CONTENT_TYPE, counter, distribution, gauge, gauges, lines
from scrapy_ext.server.store import Store, StoreError
from scrapy_ext.server.store.engine.interface import GROUPS
from scrapy_ext.server.store.jobs.groups import REPORT_BOUNDS
from scrapy_ext.telemetry.families import Family

logger = logging.getLogger(__name__)

#: Seconds for a read and a write of the store; a slower store is not ready.
_PROBE_TIME: Final = 5.0
#: Seconds for which the result of a probe is valid, so that frequent requests cost one disk access per second.
_PROBE_HOLDS: Final = 1.0
_STARTED: Final = time.time()
_READY: Final = record({"status": {"enum": ["ok", "unavailable"]}, "message": STRING}, "status")

ROUTES: Final = Routes(tag="server")


class ServerMetrics:
    """The metrics of a server or a worker; ``more`` are those of other parts."""

    def __init__(
        self, middleware: RequestMiddleware, store: Store, more: Sequence[Callable[[], Iterator[Family]]]
    ) -> None:
        self._middleware = middleware
        self._store = store
        self._more = more

    async def families(self) -> list[Family]:
        """Return all metrics, with their current values."""
        others = chain.from_iterable(metrics() for metrics in self._more)
        stored = chain(*[await self._of_store(read) for read in (self._size, self._jobs, self._workers)])
        return [*self._middleware.metrics.families(), *self._server(), *stored, *others, *_process()]

    async def _of_store(self, read: Callable[[], Awaitable[Iterable[Family]]]) -> Iterable[Family]:
        """Return metrics that are read from the database; nothing while it is away: the others matter most then."""
        try:
            async with timeout_after(_PROBE_TIME):
                return await read()
        except (StoreError, *TIMEOUT_ERRORS):
            return ()

    async def _size(self) -> Iterable[Family]:
        """Return the size of the database and its free part."""
        space = await self._store.space()
        found = [*gauge("database_bytes", "Size of the database, with its log.", space.total)]
        if space.free is not None:
            found += gauge("database_free_bytes", "Bytes of it that hold no data.", space.free)
        return found

    async def _jobs(self) -> Iterable[Family]:
        """Return the pending jobs, and the nodes with their units: the same numbers on all servers of a database."""
        waiting, nodes = await self._store.waiting.groups(), await self._store.nodes.listed()
        incidents = await self._store.monitors.lasting()
        unfit = [group for group in waiting if not any(group.fits(node) for node in nodes)]
        takers = [node for node in nodes if not node.draining]
        return chain(
            gauge("jobs_pending", "Jobs that wait for a node.", sum(each.jobs for each in waiting)),
            gauge("jobs_pending_units", "Units of these.", sum(each.units * each.jobs for each in waiting)),
            gauge("jobs_pending_unfit", "Those of them that no node could run.", sum(each.jobs for each in unfit)),
            gauge("monitor_incidents", "Monitors that fail now, by spider and arguments.", incidents),
            gauge("nodes", "Nodes that take jobs.", len(takers)),
            gauge("node_units", "Units of the nodes that take jobs.", sum(node.units for node in takers)),
            gauge("node_units_used", "Units of the jobs that run, on all nodes.", sum(node.used for node in nodes)),
        )

    async def _workers(self) -> Iterable[Family]:
        """Return the workers of jobs with several: the same numbers on all servers of a database."""
        counts = await self._store.groups.counts()
        states = [({"state": name}, number) for name, number in counts.workers.items()]
        return chain(
            gauges("job_workers", "Workers of running jobs with several.", states),
            gauge("job_workers_vacant", "Places of these jobs without a worker.", counts.vacant),
            gauge("job_workers_lost", "Workers that these jobs have lost, and others have replaced.", counts.losses),
        )

    def _server(self) -> Iterator[Family]:
        middleware, store = self._middleware, self._store.measures
        yield from gauge("connections", "Connections that are open.", len(middleware.connections))
        yield from gauge("requests_under_way", "Requests that are being answered.", middleware.under_way)
        memory = middleware.memory
        yield from gauge("body_bytes_held", "Bytes that bodies, what they decode to, and answers hold.", memory.held)
        yield from gauge("memory_limit_bytes", "The most that they may hold.", memory.limit)
        yield from counter(
            "memory_refused_total", "Requests and pieces of answers that found no room.", [({}, memory.refused)]
        )
        yield from gauge("connections_stalled", "Connections whose clients do not read.", len(memory.stalled))
        yield from gauge("connections_new", "Connections without a request so far.", len(middleware.connections.new))
        yield from gauge("connections_idle", "Connections between two requests.", len(middleware.connections.idle))
        closed = [({"reason": reason}, number) for reason, number in middleware.connections.closed.items()]
        yield from counter("connections_cut_total", "Connections that the server ended or refused.", closed)
        yield from gauge("store_writes_waiting", "Writes that wait for the database.", store.waiting)
        yield from counter("store_writes_total", "Writes that were committed and synced.", [({}, store.operations)])
        yield from counter("store_rows_total", "Rows that these changed.", [({}, store.rows)])
        yield from counter("store_failures_total", "Commits that failed.", [({}, store.failures)])
        removed = self._store.retention.removed
        yield from counter("retention_jobs_total", "Jobs of which retention has removed data.", [({}, removed.jobs)])
        yield from counter("retention_records_total", "Records that retention has removed.", [({}, removed.records)])
        yield from counter("retention_bytes_total", "Their bytes, as stored.", [({}, removed.bytes)])
        delivered, failures = self._store.deliveries.delivered, self._store.deliveries.failures
        yield from counter("delivery_jobs_total", "Jobs that delivery rules have delivered.", [({}, delivered.jobs)])
        yield from counter("delivery_records_total", "Records that were delivered.", [({}, delivered.records)])
        yield from counter("delivery_bytes_total", "Bytes of the objects with them.", [({}, delivered.bytes)])
        yield from counter("delivery_failures_total", "Runs of delivery rules that failed.", [({}, failures)])
        counted, alerts = self._store.monitors.counted, self._store.alerts
        outcomes = [({"outcome": name}, number) for name, number in counted._asdict().items()]
        yield from counter("monitor_results_total", "Results of monitors for finished jobs.", outcomes)
        yield from counter("alerts_sent_total", "Messages that targets of alerts accepted.", [({}, alerts.sent_count)])
        yield from counter("alert_failures_total", "Attempts at them that failed.", [({}, alerts.failures)])
        times = self._store.groups.times
        reports = (REPORT_BOUNDS, tuple(times.buckets), times.seconds)
        yield from distribution("worker_report_duration_seconds", "Time to store a report of a worker.", *reports)
        groups = (GROUPS, tuple(store.groups), store.operations)
        yield from distribution("store_commit_writes", "Writes that one commit took together.", *groups)
        yield from counter("store_commit_seconds_total", "Time that commits took.", [({}, store.seconds)])
        freed = self._store.freed
        yield from counter("deleted_rows_total", "Rows of deleted data that were removed.", [({}, freed.rows)])
        yield from counter("deleted_bytes_total", "Bytes of deleted data that were removed.", [({}, freed.bytes)])
        meaning = "Bytes of free space returned to the file system."
        yield from counter("returned_bytes_total", meaning, [({}, self._store.returned)])


class Health:
    """Readiness and metrics. ``caller`` returns the rights of a call's key, ``trouble`` the reason of another part for
    not being ready."""

    def __init__(
        self,
        middleware: RequestMiddleware,
        store: Store,
        caller: Callable[[Call], Awaitable[Grant | Unknown]],
        metrics: ServerMetrics,
        trouble: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._metrics = metrics
        self._trouble = trouble
        self._middleware = middleware
        self._store = store
        self._caller = caller
        self._probe: asyncio.Task[str | None] | None = None
        self._probed = -_PROBE_HOLDS
        #: The fault of the last probe, which is in the log.
        self._logged: str | None = None

    async def ready(self, call: Call) -> Response:
        wrong = "The server is shutting down." if self._middleware.ending else self._trouble() or await self._wrong()
        answer: dict[str, Any] = {"status": "ok" if wrong is None else "unavailable"}
        grant = await self._caller(call)
        if not isinstance(grant, Grant):
            refuse_guesses(call)
        elif wrong is not None and grant.all_projects:
            answer["message"] = wrong
        return Response(
            msgspec.json.encode(answer),
            200 if wrong is None else 503,
            {"Cache-Control": "no-store"},
            media_type="application/json; charset=UTF-8",
        )

    async def _wrong(self) -> str | None:
        """Return the fault of the store, or None; concurrent callers share one probe."""
        if self._probe is None or (self._probe.done() and time.monotonic() - self._probed > _PROBE_HOLDS):
            self._probed = time.monotonic()
            self._probe = asyncio.create_task(self._probe_store())
        return await asyncio.shield(self._probe)

    async def _probe_store(self) -> str | None:
        wrong: str | None
        try:
            async with timeout_after(_PROBE_TIME):
                await self._store.probe()
        except StoreError as error:
            wrong = str(error)
        except TIMEOUT_ERRORS:
            wrong = self._store.trouble or f"The store did not answer within {_PROBE_TIME:g} s."
        else:
            wrong = None
        finally:
            self._probed = time.monotonic()
        if wrong is not None and wrong != self._logged:
            logger.error("The server is not ready: %s It is checked again each second.", wrong)
        if wrong is None and self._logged is not None:
            logger.info("The server is ready again")
        self._logged = wrong
        return wrong

    async def metrics(self) -> Response:
        return Response("\n".join(lines(await self._metrics.families())) + "\n", media_type=CONTENT_TYPE)


@ROUTES.add(
    "GET /healthz",
    "Report that the process is up.",
    AnswerShape("It is up.", {TEXT: STRING}),
    access=Access.ANYONE,
)
async def _up(_: Call) -> Response:
    return PlainTextResponse("ok\n")


@ROUTES.add(
    "GET /readyz",
    "Report whether data can be read and written; 503 if not, with the reason for a key for all projects.",
    value("Data can be read and written.", _READY),
    access=Access.ANYONE,
)
async def _ready(call: Call) -> Response:
    return await call.service(Health).ready(call)


@ROUTES.add(
    "GET /metrics",
    "Return metrics for Prometheus; a platform key for all projects is required.",
    AnswerShape("The metrics.", {TEXT: STRING}),
    access=Access.SERVER,
)
async def _metrics(call: Call) -> Response:
    return await call.service(Health).metrics()


def _process() -> Iterator[Family]:
    """Yield the metrics of the process under Prometheus's standard names."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = usage.ru_utime + usage.ru_stime
    yield from counter("process_cpu_seconds_total", "CPU time of the process.", [({}, cpu)])
    own = proc.of_pid(os.getpid())  # the maximum so far on systems other than Linux
    resident = own.memory if own is not None else usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    yield from gauge("process_resident_memory_bytes", "Resident memory of the process.", resident)
    yield from gauge("process_start_time_seconds", "When the process started, in seconds since 1970.", _STARTED)
    if (descriptors := proc.open_descriptors()) is not None:
        yield from gauge("process_open_fds", "Open files and sockets.", descriptors)
