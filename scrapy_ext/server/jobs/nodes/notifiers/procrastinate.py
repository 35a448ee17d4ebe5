"""Procrastinate carries jobs to nodes: one queue for each node, one row for each job that is given to it.

The row is written in the transaction that places the job, so that there is none without the other. Its worker in
the node runs a task that hands the job over and is done, and the row is deleted. It is never retried: a job that was
handed over and lost is the reaper's. The same connection listens for jobs that were added anywhere, as any node may
place them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Final

import procrastinate
from procrastinate.schema import SchemaManager

from scrapy_ext.server.jobs.nodes.notifiers.connector import Connector
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.jobs.queue_messages import TASK, QueueSchema, defer, queue_of

#: What this was written for; the range in pyproject.toml is the same.
_MAJOR: Final = "3"
_OLDEST: Final = (3, 10)
#: Seconds until a worker that has ended is started again, at first and at last.
_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 5.0
#: Seconds between its looks for rows of which no notice came.
_LOOK: Final = 5.0
_END: Final = 0.9
_AT_ONCE: Final = 10

logger = logging.getLogger(__name__)


class ProcrastinateCarrier:
    """Made by :meth:`open`."""

    carry = staticmethod(defer)

    def __init__(self, store: Store, url: DatabaseUrl) -> None:
        self._store = store
        self._url = url
        self._serving: asyncio.Task[None] | None = None
        self._connector: Connector | None = None

    @classmethod
    async def open(cls, store: Store, url: DatabaseUrl) -> ProcrastinateCarrier:
        """Make the queue's tables if they are missing; raises :class:`StoreError`."""
        await store.carried.prepare(_schema())
        # What it says of each job and of lost connections is said by the node and by the store.
        logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
        return cls(store, url)

    async def serve(self, node: str, hear: Callable[[], None]) -> None:
        """See :class:`Carrier`."""
        await self.stop()
        self._serving = asyncio.create_task(self._serve(queue_of(node), hear))

    async def sweep(self, nodes: Collection[str]) -> None:
        """See :class:`Carrier`."""
        removed = await self._store.carried.sweep(nodes)
        if removed:
            logger.info("%d jobs in the queues of lost nodes were removed", removed)

    async def stop(self) -> None:
        """See :class:`Carrier`."""
        serving, self._serving = self._serving, None
        if serving is None:
            return
        serving.cancel()
        await asyncio.wait([serving], timeout=_END)
        if self._connector is not None:
            self._connector.break_off()  # the database does not answer; nothing is lost with the rest
        await asyncio.wait([serving], timeout=_END)

    async def _serve(self, queue: str, hear: Callable[[], None]) -> None:
        pause = _PAUSE
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._work(queue, hear)
            except Exception as error:
                logger.info("The queue %s is heard again in %.1f s: %s", queue, pause, _said(error))
            if asyncio.get_running_loop().time() - began > _LONGEST_PAUSE:
                pause = _PAUSE
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _work(self, queue: str, hear: Callable[[], None]) -> None:
        """Run a worker until its connection is lost."""
        connector = self._connector = await Connector.connect(self._url, hear)
        hear()  # there may have been something that was not heard
        app = procrastinate.App(connector=connector)

        @app.task(name=TASK, queue=queue)
        async def hand_over(job: str, attempt: int) -> None:
            logger.debug("Job %s, attempt %d, is here", job, attempt)
            hear()

        worker = asyncio.create_task(
            app.run_worker_async(
                queues=[queue],
                name=queue,
                concurrency=_AT_ONCE,
                delete_jobs="always",
                fetch_job_polling_interval=_LOOK,
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
    """That of the installed version; raises :class:`StoreError` for one that this was not written for."""
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


def _said(error: Exception) -> str:
    cause = error.__cause__ or error  # Procrastinate's own says nothing
    return " ".join(str(cause).split()) or type(cause).__name__
