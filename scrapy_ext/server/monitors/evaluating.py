"""Loop that checks finished jobs and expected runs, on one server of a database at a time.

Jobs wait in the queue of the store (``store.monitor_queue``). Their facts and items are read first; the results are
stored in one transaction with the removal from the queue. After a crash before that, the job is checked again by
whichever server takes the lease next.

Errors in the log of a job are put in groups (``api.platform.error_groups``), by a bounded search of its first lines.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.error_groups import ErrorGroup, group_errors
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.monitors import NOT_APPLICABLE, CheckResult, Monitor, MonitorResult, outcome_of
from scrapy_ext.api.platform.records import LogRecord
from scrapy_ext.compatibility.python import run_together
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.loops import Loop, leased, log_failure
from scrapy_ext.server.monitors.checking import check_result
from scrapy_ext.server.monitors.item_schemas import Allowance, ItemSchemas
from scrapy_ext.server.monitors.messages import Messages
from scrapy_ext.server.record_search import logged, search_records
from scrapy_ext.server.store import Store, StoreError
from scrapy_ext.server.store.engine.errors import DamagedRecordsError
from scrapy_ext.server.store.fencing import DURATION, Lease, LeaseLostError
from scrapy_ext.server.store.monitor_queue import JOB, Queued
from scrapy_ext.server.store.monitors.facts import JobFacts
from scrapy_ext.server.store.monitors.monitors import AT_ONCE, MAX_ATTEMPTS, Checked, CheckedJob, expects

#: Seconds between two polls of the queue.
INTERVAL: Final = 1.0
#: Seconds between two looks at what another server has not checked yet.
_OTHERS: Final = 0.2
_LOOP: Final = "monitors"
_LEASE: Final = "monitors"
#: Spiders whose jobs are checked at once.
_SPIDERS: Final = 3

logger = logging.getLogger(__name__)


class JobSchemas(NamedTuple):
    """The comparison of items with schemas, and the processor time that it has for a job."""

    schemas: ItemSchemas
    allowance: Allowance


async def result_of(store: Store, monitor: Monitor, facts: JobFacts, now: int, items: JobSchemas) -> MonitorResult:
    """Return the result of a monitor for a finished job."""
    parsed = monitor.parsed
    runs = max((check.runs for check in parsed if check.uses_median), default=0)
    earlier = await store.monitors.earlier(facts, runs) if runs else []
    checks = [check_result(check, facts, earlier) for check in parsed]
    if monitor.schema is not None:
        checks.append(await _schema(store, monitor, facts, items))
    return _result(monitor, facts, checks, now)


async def _schema(store: Store, monitor: Monitor, facts: JobFacts, items: JobSchemas) -> CheckResult:
    if "items" in facts.removed:
        return CheckResult(check="schema", outcome=NOT_APPLICABLE, sentence="schema: the items of the job were removed")
    return await items.schemas.result(store, monitor, facts.key, facts.counts.items, items.allowance)


def _result(monitor: Monitor, facts: JobFacts, checks: list[CheckResult], now: int) -> MonitorResult:
    return MonitorResult(
        job=str(facts.key),
        spider=facts.spider,
        monitor=monitor.id,
        of_server=monitor.project is None,
        name=monitor.label,
        outcome=outcome_of([check.outcome for check in checks]),
        finished=facts.finished,
        checked=now,
        checks=checks,
    )


class Evaluator:
    """Checks of a store's finished jobs, until :meth:`run` is cancelled."""

    def __init__(
        self,
        store: Store,
        messages: Messages,
        schemas: ItemSchemas,
        *,
        interval: float = INTERVAL,
    ) -> None:
        self._store = store
        self._messages = messages
        self._schemas = schemas
        self._interval = interval

    async def run(self) -> None:
        """Run forever; failures are logged and retried."""
        await Loop(_LOOP, self._pass, self._interval).run()

    async def _pass(self) -> float | None:
        return 0.0 if await self.run_due() else None

    async def run_due(self) -> bool:
        """Check what is due, unless another server does; return true when more is due at once."""
        monitors, alerts = self._store.monitors, self._store.alerts
        work = await monitors.work()
        if not any(work):
            return False
        async with leased(self._store, _LEASE, monitors.renew, DURATION) as lease:
            if lease is None:
                return False
            await self._check_all(work.rows, lease)
            for place in work.overdue:
                await monitors.miss(lease, *place)
            for subject in work.groups:
                await alerts.compose(lease, subject, self._messages.compose)
        return len(work.rows) == AT_ONCE

    async def run_all(self) -> None:
        """Check what is due now, or wait until another server has done it; a failure is logged.

        For a server that does not run forever.
        """
        try:
            while True:
                if not await self.run_due() and not (await self._store.monitors.work()).rows:
                    return
                await asyncio.sleep(_OTHERS)
        except Exception as error:
            log_failure(_LOOP, error)

    async def _check_all(self, rows: Sequence[Queued], lease: Lease) -> None:
        """Check the jobs of a few spiders at once, those of one spider by their ends."""
        groups: dict[tuple[int, str, int], list[Queued]] = {}
        for row in rows:
            groups.setdefault((row.project, row.kind, row.subject), []).append(row)
        left = iter(groups.values())

        async def some() -> None:
            for group in left:
                for row in group:
                    await self._check(row, lease)

        await run_together(*(some() for _ in range(min(_SPIDERS, len(groups)))))

    async def _check(self, row: Queued, lease: Lease) -> None:
        """Check a job or a run; one that cannot be checked is retried later, a bounded number of times."""
        try:
            if row.kind != JOB:
                await self._store.monitors.settle_run(lease, row)
                return
            facts = await self._store.monitors.facts(row.key, row.ts)
            await self._store.monitors.settle(lease, row, None if facts is None else await self._judged(row, facts))
        except (LeaseLostError, StoreError):
            raise
        except Exception:
            logger.exception("Job %s could not be checked by monitors; it is retried", row.key)
            await self._store.monitors.retry(lease, row)

    async def _judged(self, row: Queued, facts: JobFacts) -> CheckedJob:
        results = await self._checked(row, facts) if row.is_watched else []
        return CheckedJob(facts, results, await log_errors(self._store, facts.key) if facts.counts.errors else [])

    async def _checked(self, row: Queued, facts: JobFacts) -> Sequence[Checked]:
        now = self._store.clock()
        items = JobSchemas(self._schemas, self._schemas.allowance(row.project))
        found = []
        for monitor in await self._store.monitors.of_project(row.project):
            if expects(monitor, facts):
                found.append(Checked(monitor, None))
            if monitor.expect is not None or not monitor.covers(facts.spider, facts.tags, facts.args):
                continue
            if row.attempts >= MAX_ATTEMPTS:
                sentence = "the job could not be checked; the server's log has the error"
                checks = [CheckResult(check="all", outcome=NOT_APPLICABLE, sentence=sentence)]
                found.append(Checked(monitor, _result(monitor, facts, checks, now)))
            else:
                found.append(Checked(monitor, await result_of(self._store, monitor, facts, now, items)))
        return found


#: Error lines that are grouped.
MOST_LINES: Final = 2000
_ERROR: Final = 40
_line: Final = msgspec.json.Decoder(LogRecord).decode


async def log_errors(store: Store, key: JobKey) -> list[ErrorGroup]:
    """Return the errors of a job's log in groups: of its first ones, within the bounds of one search."""
    try:
        found = await search_records(store.logs, key, 0, logged(_ERROR), MOST_LINES)
    except DamagedRecordsError as error:  # others are judged
        logger.warning("The errors of job %s cannot be shown. %s", key, error)
        return []
    return await in_data_thread(_grouped, found.records)


def _grouped(records: list[tuple[int, bytes]]) -> list[ErrorGroup]:
    lines = [(number, _line(line)) for number, line in records]
    return group_errors((number, line.time, line.message) for number, line in lines)
