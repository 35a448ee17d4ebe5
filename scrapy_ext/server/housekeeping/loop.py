"""Loops over the tasks of housekeeping, each at its interval, and sooner when something was deleted.

Every task works in bounded steps, and can be interrupted between any two of them: the next run continues. Several
servers on one database may run the same task at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, NamedTuple

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, run_together, timeout_after
from scrapy_ext.server.observability.metrics import counter
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreError
from scrapy_ext.telemetry.families import Family

#: Seconds between two looks for deletions, which other servers make, too.
PURGE_INTERVAL: Final = 30.0
#: Seconds between two looks for free space in the files of the database, and for records without a count of bytes.
SPACE_INTERVAL: Final = 60.0
COUNT_INTERVAL: Final = 600.0

logger = logging.getLogger(__name__)


class Progress(NamedTuple):
    """Result of a run: the number of removed objects, and whether the task is complete until its next interval."""

    removed: int
    is_done: bool = True


class Task(NamedTuple):
    """Task of housekeeping: its name in the log and the metrics, its interval in seconds, and one run of it."""

    name: str
    interval: float
    run: Callable[[], Awaitable[Progress]]
    #: Causes a run before the interval is over.
    wake: asyncio.Event | None = None


class Housekeeping:
    """Loops over the tasks, until :meth:`run` is cancelled."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._removed = {task.name: 0 for task in tasks}

    async def run(self) -> None:
        """Run forever; failures are logged and retried."""
        await run_together(*map(self._repeat, self._tasks))

    async def _repeat(self, task: Task) -> None:
        wake = task.wake or asyncio.Event()
        while True:
            # Before the run, so that a deletion during it causes another one.
            wake.clear()
            if await self._run(task):
                with contextlib.suppress(*TIMEOUT_ERRORS):
                    async with timeout_after(task.interval):
                        await wake.wait()

    def metrics(self) -> Iterator[Family]:
        """Yield the metrics of the tasks."""
        samples = [({"task": name}, number) for name, number in self._removed.items()]
        yield from counter("housekeeping_removed_total", "Deleted and old objects that were removed.", samples)

    async def _run(self, task: Task) -> bool:
        """Run a task once; return false when it is to be continued soon."""
        try:
            progress = await task.run()
            self._removed[task.name] += progress.removed
            return progress.is_done
        except StoreError as error:
            if not isinstance(error, StoreAwayError):  # which the store logs
                logger.warning("Housekeeping (%s) waits for the database: %s", task.name, error)
        except Exception:
            logger.exception("Housekeeping (%s) has failed; it is retried", task.name)
        return True
