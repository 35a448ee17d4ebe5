"""Notifications of nodes by Procrastinate: one queue per node, one message per job that is placed there.

The message is written in the transaction that places the job, so that neither exists alone. Procrastinate's worker in
the node runs a task that makes the node poll, and deletes the message. It is never retried: other nodes place the jobs
of a dead node again. The same connection listens for pending jobs, which any node may place. All queries run through
asyncpg on one connection, which can be aborted when the database does not respond.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import Callable, Collection, Iterable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import asyncpg
import procrastinate
from procrastinate.connector import BaseAsyncConnector, Notify
from procrastinate.exceptions import ConnectorException
from procrastinate.schema import SchemaManager

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.engine.opening import NODE
from scrapy_ext.server.store.engine.postgresql.connection import connected
from scrapy_ext.server.store.engine.postgresql.errors import DATABASE_ERRORS, translated
from scrapy_ext.server.store.engine.postgresql.primary import is_current
from scrapy_ext.server.store.jobs.queue_messages import PENDING, TASK, QueueSchema, defer, queue_of

#: Supported versions, as in pyproject.toml.
_MAJOR: Final = "3"
_OLDEST: Final = (3, 10)
#: Seconds until a failed worker is restarted: the first pause, and the maximum.
_PAUSE: Final = 0.5
_MAX_PAUSE: Final = 5.0
#: Seconds between two polls of the worker for messages without a notification.
_POLL: Final = 5.0
_END: Final = 0.9
_AT_ONCE: Final = 10
#: Seconds between two checks of the connection.
_ALIVE: Final = 5.0
_ARGUMENT: Final = re.compile(r"%\((\w+)\)s")

logger = logging.getLogger(__name__)


class Connector(BaseAsyncConnector):
    """Connector on one connection, opened by :meth:`connect`; ``lost`` is set when it closes."""

    def __init__(self, url: DatabaseUrl, connection: Any) -> None:
        self._url = url
        self._connection = connection
        self._lock = asyncio.Lock()
        self._received: set[asyncio.Task[None]] = set()
        self.lost = asyncio.Event()
        connection.add_termination_listener(lambda _: self.lost.set())

    @classmethod
    async def connect(cls, url: DatabaseUrl, on_pending: Callable[[], None]) -> Connector:
        """Connect, and call ``on_pending`` for pending jobs; raise :class:`StoreError`."""
        try:
            connection = await connected(url, NODE, {"application_name": "scrapy-ext queue"})
            await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
            await connection.add_listener(PENDING, lambda *_: on_pending())
        except DATABASE_ERRORS as error:
            raise translated(error, url) from error
        return cls(url, connection)

    def break_off(self) -> None:
        """Abort the connection."""
        self._connection.terminate()
        self.lost.set()

    def get_sync_connector(self) -> Connector:
        return self

    async def open_async(self, pool: Any = None) -> None:
        """See Procrastinate."""

    async def close_async(self) -> None:
        self.break_off()

    async def execute_query_async(self, query: str, **arguments: Any) -> None:
        await self.execute_query_all_async(query, **arguments)

    async def execute_query_one_async(self, query: str, **arguments: Any) -> dict[str, Any]:
        return (await self.execute_query_all_async(query, **arguments))[0]

    async def execute_query_all_async(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        """See Procrastinate. The named arguments of its queries become numbered ones."""
        names = list(dict.fromkeys(_ARGUMENT.findall(query)))
        numbered = _ARGUMENT.sub(lambda place: f"${names.index(place[1]) + 1}", query)
        try:
            async with self._lock:
                rows = await self._connection.fetch(numbered, *(arguments[name] for name in names))
        except DATABASE_ERRORS as error:
            if not isinstance(error, asyncpg.PostgresError):
                self.lost.set()
            raise ConnectorException from error
        return [dict(row) for row in rows]

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """See Procrastinate. Returns when the connection is lost, or its server is no longer the primary."""

        def received(_connection: Any, _pid: int, channel: str, payload: Any) -> None:
            task: asyncio.Task[None] = asyncio.ensure_future(on_notification(channel=channel, payload=payload))
            self._received.add(task)
            task.add_done_callback(self._received.discard)

        for channel in channels:
            async with self._lock:
                await self._connection.add_listener(channel, received)
        while not self.lost.is_set() and is_current(self._connection, self._url):
            await self.execute_query_async("SELECT 1")
            try:
                await asyncio.wait_for(self.lost.wait(), _ALIVE)
            except TIMEOUT_ERRORS:
                continue
        self.lost.set()


class ProcrastinateNotifier:
    """Notifier by Procrastinate, opened by :meth:`open`."""

    notify = staticmethod(defer)

    def __init__(self, store: Store, url: DatabaseUrl) -> None:
        self._store = store
        self._url = url
        self._listening: asyncio.Task[None] | None = None
        self._connector: Connector | None = None

    @classmethod
    async def open(cls, store: Store, url: DatabaseUrl) -> ProcrastinateNotifier:
        """Create or migrate the tables of Procrastinate; raise :class:`StoreError`."""
        await store.queue_messages.prepare(_schema())
        # The node logs its jobs, and the store logs lost connections.
        logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
        return cls(store, url)

    async def listen(self, node: str, on_message: Callable[[], None]) -> None:
        await self.stop()
        self._listening = asyncio.create_task(self._listen(queue_of(node), on_message))

    async def sweep(self, nodes: Collection[str]) -> None:
        removed = await self._store.queue_messages.sweep(nodes)
        if removed:
            logger.info("%d messages of lost nodes were removed", removed)

    async def stop(self) -> None:
        listening, self._listening = self._listening, None
        if listening is None:
            return
        listening.cancel()
        await asyncio.wait([listening], timeout=_END)
        if self._connector is not None:
            self._connector.break_off()  # the database does not respond
        await asyncio.wait([listening], timeout=_END)

    async def _listen(self, queue: str, on_message: Callable[[], None]) -> None:
        pause = _PAUSE
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._work(queue, on_message)
            except Exception as error:
                logger.info("Connecting to the queue %s again in %.1f s: %s", queue, pause, _reason(error))
            if asyncio.get_running_loop().time() - began > _MAX_PAUSE:
                pause = _PAUSE
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE)

    async def _work(self, queue: str, on_message: Callable[[], None]) -> None:
        """Run a worker until its connection is lost."""
        connector = self._connector = await Connector.connect(self._url, on_message)
        on_message()  # earlier messages may have been missed
        app = procrastinate.App(connector=connector)

        @app.task(name=TASK, queue=queue)
        async def notify(job: str, attempt: int) -> None:
            logger.debug("Job %s, attempt %d, was placed on this node", job, attempt)
            on_message()

        worker = asyncio.create_task(
            app.run_worker_async(
                queues=[queue],
                name=queue,
                concurrency=_AT_ONCE,
                delete_jobs="always",
                fetch_job_polling_interval=_POLL,
                abort_job_polling_interval=3600.0,
                install_signal_handlers=False,
                shutdown_graceful_timeout=_END / 2,
            )
        )
        lost = asyncio.create_task(connector.lost.wait())
        try:
            await asyncio.wait([worker, lost], return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost.cancel()
            worker.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await worker
            connector.break_off()
        if not worker.cancelled() and (error := worker.exception()) is not None:
            raise error


def _schema() -> QueueSchema:
    """Return the schema of the installed version; raise :class:`StoreError` for an unsupported one."""
    installed = version("procrastinate")
    major, minor = (int(part) if part.isdigit() else 0 for part in [*installed.split("."), "0"][:2])
    if str(major) != _MAJOR or (major, minor) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise StoreError(
            f"Procrastinate {installed} is installed, and {oldest} or a later {_MAJOR} is needed: "
            f'pip install "procrastinate>={oldest},<{int(_MAJOR) + 1}"'
        )
    folder = Path(str(files("procrastinate"))) / "sql" / "migrations"
    migrations = [(path.stem, path.read_text("utf-8")) for path in sorted(folder.glob("*.sql"))]
    return QueueSchema(SchemaManager.get_schema(), migrations)


def _reason(error: Exception) -> str:
    cause = error.__cause__ or error  # errors of Procrastinate have no reason in their text
    return " ".join(str(cause).split()) or type(cause).__name__
