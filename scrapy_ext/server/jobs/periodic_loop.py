"""Loop that runs periodic jobs at their minutes, beside any number of other servers on the same database.

The database has the due runs and their results (``store.periodic_runs``). Other servers may edit schedules, and the
clock may be changed, so that the loop polls every few seconds, and at once when a schedule is edited through this
server.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timezone
from typing import Final

from scrapy_ext.compatibility.python import add_note
from scrapy_ext.server.loops import Loop
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.periodic_runs import ScheduleRun

#: Maximum seconds between two polls for due runs.
POLL_INTERVAL: Final = 5.0
#: Seconds between two searches for schedules that need to be planned.
_PLAN: Final = 600.0
#: Minimum delay (ms) of a run that is logged.
_LATE: Final = 60_000

logger = logging.getLogger(__name__)


class CronLoop:
    """Loop over the periodic jobs of a store, until :meth:`run` is cancelled."""

    def __init__(self, store: Store, *, poll_interval: float = POLL_INTERVAL) -> None:
        self._store = store
        self._poll_interval = poll_interval
        self._planned: float | None = None

    async def run(self) -> None:
        """Run forever; failures are logged and retried."""
        await Loop("periodic jobs", self._pass, self._poll_interval, self._store.periodic.changed).run()

    async def _pass(self) -> float:
        await self.run_due()
        return await self._until_next()

    async def run_due(self) -> list[ScheduleRun]:
        """Run the due schedules; raise :class:`StoreError`, or the first other error after all were tried."""
        if self._planned is None or time.monotonic() - self._planned >= _PLAN:
            await self._store.periodic.plan()
            self._planned = time.monotonic()
        runs: list[ScheduleRun] = []
        failure: Exception | None = None
        for due in await self._store.periodic.due():
            try:
                run = await self._store.periodic.run(due)
            except StoreError:
                raise
            except Exception as error:
                add_note(error, f"periodic job {due.number} of project {due.project}")
                failure = failure or error
                continue
            if run is not None:
                runs.append(run)
                _log(run, self._store.clock())
        if failure is not None:
            raise failure
        return runs

    async def _until_next(self) -> float:
        next_due = await self._store.periodic.next_due()
        if next_due is None:
            return self._poll_interval
        return min(max((next_due - self._store.clock()) / 1000, 0.0), self._poll_interval)


def _log(run: ScheduleRun, now: int) -> None:
    name = f"Periodic job {run.due.number} of project {run.due.project}"
    minute = datetime.fromtimestamp(run.minute / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    if run.refused is not None:
        logger.warning("%s did not run at %s: %s", name, minute, run.refused)
        return
    late = f", {(now - run.minute) // _LATE} minutes late" if now - run.minute >= _LATE else ""
    added = ", ".join(job.job for job in run.jobs if job.added) or "none"
    logger.info("%s ran for %s%s; jobs: %s", name, minute, late, added)
    for job in run.jobs:
        if not job.added:
            logger.info("%s: job %s has not ended, so that no other was started", name, job.job)
