"""``/healthz``, ``/readyz`` and ``/metrics``: for what runs and watches the server, not for its clients.

Anyone may ask whether the process is up and whether it is ready; what is wrong is told to who has a key that opens
all projects, and is in the log. So are the metrics, unless the server was told to open them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
from starlette.responses import PlainTextResponse, Response

from scrapy_ext.jobprocess import proc
from scrapy_ext.server.auth.keyring import Grant
from scrapy_ext.server.http.access import Unknown, refuse_guesses
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.middleware import Front
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.http.schemas import STRING, TEXT, Answer, value
from scrapy_ext.server.observability.metrics import CONTENT_TYPE, counter, distribution, gauge
from scrapy_ext.server.store import Store, StoreError
from scrapy_ext.server.store.engine.interface import GROUPS

logger = logging.getLogger(__name__)

#: For the store to be read and written; a store that takes longer is not ready.
_PROBE_TIME: Final = 5.0
#: A probe's outcome holds for so long: asking often costs no disk more than once a second.
_PROBE_HOLDS: Final = 1.0
_STARTED: Final = time.time()
_READY: Final = {
    "type": "object",
    "properties": {"status": {"enum": ["ok", "unavailable"]}, "message": STRING},
    "required": ["status"],
}

ROUTES: Final = Routes(tag="server")


class Health:
    """``caller`` says whose key a call has; ``more`` gives the metrics of the other parts."""

    def __init__(
        self,
        front: Front,
        store: Store,
        caller: Callable[[Call], Awaitable[Grant | Unknown]],
        more: Callable[[], Iterator[str]],
    ) -> None:
        self._more = more
        self._front = front
        self._store = store
        self._caller = caller
        self._probe: asyncio.Task[str | None] | None = None
        self._probed = -_PROBE_HOLDS
        #: What was wrong by the last probe, and was written to the log then.
        self._told: str | None = None

    async def ready(self, call: Call) -> Response:
        """The answer of ``/readyz``."""
        wrong = "The server is shutting down." if self._front.ending else await self._wrong()
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
        """What keeps the store from being used; those who ask at the same time share one probe."""
        if self._probe is None or (self._probe.done() and time.monotonic() - self._probed > _PROBE_HOLDS):
            self._probed = time.monotonic()
            self._probe = asyncio.create_task(self._probe_store())
        return await asyncio.shield(self._probe)

    async def _probe_store(self) -> str | None:
        wrong: str | None
        try:
            async with asyncio.timeout(_PROBE_TIME):
                await self._store.probe()
        except StoreError as error:
            wrong = str(error)
        except TimeoutError:
            wrong = self._store.trouble or f"The store did not answer within {_PROBE_TIME:g} s."
        else:
            wrong = None
        finally:
            self._probed = time.monotonic()
        if wrong is not None and wrong != self._told:
            logger.error("The server is not ready: %s", wrong)
        if wrong is None and self._told is not None:
            logger.info("The server is ready again")
        self._told = wrong
        return wrong

    async def metrics(self) -> Response:
        """The answer of ``/metrics``."""
        lines = [*self._front.metrics.lines(), *self._server(), *await self._size(), *self._more(), *_process()]
        return Response("\n".join(lines) + "\n", media_type=CONTENT_TYPE)

    async def _size(self) -> Iterable[str]:
        """What the database tells of itself; nothing while it is away, when the other numbers matter most."""
        try:
            async with asyncio.timeout(_PROBE_TIME):
                return gauge("database_bytes", "Size of the database, with its log.", await self._store.size())
        except (StoreError, TimeoutError):
            return ()

    def _server(self) -> Iterator[str]:
        front, store = self._front, self._store.measures
        yield from gauge("connections", "Connections that are open.", len(front.connections))
        yield from gauge("requests_under_way", "Requests that are being answered.", front.under_way)
        memory = front.memory
        yield from gauge("body_bytes_held", "Bytes that bodies, what they decode to, and answers hold.", memory.held)
        yield from gauge("memory_limit_bytes", "The most that they may hold.", memory.limit)
        yield from counter(
            "memory_refused_total", "Requests and pieces of answers that found no room.", [({}, memory.refused)]
        )
        yield from gauge("connections_stalled", "Connections whose clients do not read.", len(memory.stalled))
        yield from gauge("connections_new", "Connections without a request so far.", len(front.connections.new))
        yield from gauge("connections_idle", "Connections between two requests.", len(front.connections.idle))
        closed = [({"reason": reason}, number) for reason, number in front.connections.closed.items()]
        yield from counter("connections_cut_total", "Connections that the server ended or refused.", closed)
        yield from gauge("store_writes_waiting", "Writes that wait for the database.", store.waiting)
        yield from counter("store_writes_total", "Writes that were committed and synced.", [({}, store.operations)])
        yield from counter("store_rows_total", "Rows that these changed.", [({}, store.rows)])
        yield from counter("store_failures_total", "Commits that failed.", [({}, store.failures)])
        groups = (GROUPS, tuple(store.groups), store.operations)
        yield from distribution("store_commit_writes", "Writes that one commit took together.", *groups)
        yield from counter("store_commit_seconds_total", "Time that commits took.", [({}, store.seconds)])


@ROUTES.add(
    "GET /healthz",
    "Whether the process is up.",
    Answer("It is.", {TEXT: STRING}),
    access=Access.ANYONE,
)
async def _up(_: Call) -> Response:
    return PlainTextResponse("ok\n")


@ROUTES.add(
    "GET /readyz",
    "Whether data can be read and written; 503 when not, with the reason for a key that opens all.",
    value("It can.", _READY),
    access=Access.ANYONE,
)
async def _ready(call: Call) -> Response:
    return await call.service(Health).ready(call)


@ROUTES.add(
    "GET /metrics",
    "Numbers for Prometheus; a platform key that opens all projects is needed.",
    Answer("The numbers.", {TEXT: STRING}),
    access=Access.SERVER,
)
async def _metrics(call: Call) -> Response:
    return await call.service(Health).metrics()


def _process() -> Iterator[str]:
    """Numbers of the process, under the names that Prometheus gives them."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = usage.ru_utime + usage.ru_stime
    yield from counter("process_cpu_seconds_total", "CPU time of the process.", [({}, cpu)])
    own = proc.of_pid(os.getpid())  # elsewhere than on Linux the most that it ever had
    resident = own.memory if own is not None else usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    yield from gauge("process_resident_memory_bytes", "Memory of the process.", resident)
    yield from gauge("process_start_time_seconds", "When the process started, in seconds since 1970.", _STARTED)
    if (descriptors := proc.open_descriptors()) is not None:
        yield from gauge("process_open_fds", "Open files and sockets.", descriptors)
