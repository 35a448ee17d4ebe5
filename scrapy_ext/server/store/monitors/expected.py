"""Runs that monitors expect: of a spider within some hours, and of periodic jobs at their times.

The first are followed by a row for each monitor, with the end of the last successful run, which is changed with the
results of that job. A run of a periodic job is checked once, when its jobs must have started.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Final

import msgspec

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.monitors import SCHEDULE, Monitor, MonitorEvent, NewMonitor
from scrapy_ext.server.store import incidents, verdicts
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.fencing import Lease, check_lease
from scrapy_ext.server.store.incidents import Failure, Subject
from scrapy_ext.server.store.jobs.rows import get_job
from scrapy_ext.server.store.monitor_queue import PlannedRun, Queued, schedule_key
from scrapy_ext.server.store.monitors.facts import JobFacts, find_success
from scrapy_ext.server.store.monitors.following import (
    announce,
    is_enabled,
    missed,
    of_project,
    recovered,
    report,
    rule_name,
    take,
)
from scrapy_ext.server.store.rules.rows import MONITOR

#: Monitors that are reported in one round.
_AT_ONCE: Final = 100
_HOUR: Final = 3_600_000


async def expected_run(tx: Transaction, monitor: Monitor, facts: JobFacts, now: int) -> list[MonitorEvent]:
    """Record a successful run that a monitor expects."""
    every, project = (monitor.hours or 0) * _HOUR, facts.key.project
    await tx.execute(
        """INSERT INTO monitor_expected (project, rule, every, since, job) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (project, rule) DO UPDATE
           SET since = excluded.since, job = excluded.job, failing = 0
           WHERE monitor_expected.since <= excluded.since""",
        project,
        monitor.id,
        every,
        facts.finished,
        str(facts.key),
    )
    return await recovered(tx, Subject(project, facts.spider), monitor, "", now)


async def begin_expecting(tx: Transaction, monitor: Monitor) -> None:
    """Follow the runs that an enabled monitor expects, from the last one on."""
    if not monitor.enabled or monitor.project is None or monitor.hours is None:
        return
    since, job = await find_success(tx, monitor.project, monitor) or (monitor.changed, None)
    await tx.execute(
        """INSERT INTO monitor_expected (project, rule, every, since, job) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT DO NOTHING""",
        monitor.project,
        monitor.id,
        monitor.hours * _HOUR,
        since,
        job,
    )


async def overdue(tx: Transaction, now: int) -> list[tuple[int, int]]:
    """Return project and number of the monitors whose runs are overdue, and not reported."""
    rows = await tx.fetch(
        """SELECT project, rule FROM monitor_expected WHERE failing = 0 AND since + every < $1
           ORDER BY project, rule LIMIT $2""",
        now,
        _AT_ONCE,
    )
    return [(project, rule) for project, rule in rows]


async def miss(tx: Transaction, lease: Lease, project: int, rule: int, now: int) -> bool:
    """Report a run that is overdue, once."""
    await check_lease(tx, lease)
    monitor = await MONITOR.find(tx, project, rule, hold=True)
    row = await tx.fetchrow(
        """UPDATE monitor_expected SET failing = 1 WHERE project = $1 AND rule = $2 AND failing = 0
           AND since + every < $3 RETURNING since, job, every""",
        project,
        rule,
        now,
    )
    if row is None or monitor is None or not monitor.enabled or monitor.spider is None:
        return False
    since, job, every = row
    sentence = missing_run(monitor, since, job, now)
    failure = Failure(rule_name(monitor), "", job, sentence, since + every)
    subject = Subject(project, monitor.spider)
    if await incidents.fail(tx, subject, failure, now):
        await announce(tx, subject, now)
    await verdicts.refresh_subjects(tx, [subject])
    await report(tx, project, [missed(subject, monitor, sentence)], now)
    return True


def missing_run(monitor: Monitor | NewMonitor, since: int, job: str | None, now: int) -> str:
    """Return the sentence about a run that is overdue."""
    hours = max((now - since) // _HOUR, 0)
    last = "" if job is None else f". The last one is job {job}"
    return f"no run has finished successfully for {hours} h, expected at least every {monitor.hours} h{last}"


async def settle_run(tx: Transaction, lease: Lease, row: Queued, now: int) -> bool:
    """Check a run of a periodic job, once: its jobs must have started."""
    await check_lease(tx, lease)
    rules = [each for each in await of_project(tx, row.project) if each.expect == SCHEDULE]
    rules = [each for each in rules if await is_enabled(tx, each)]
    if not await take(tx, row) or row.detail is None:
        return False
    run = msgspec.json.decode(row.detail, type=PlannedRun)
    wrong = [(task.spider, await _wrong(tx, run, place)) for place, task in enumerate(run.tasks)]
    key = schedule_key(row.subject)
    events: list[MonitorEvent] = []
    for monitor in rules:
        for spider, why in wrong:
            if monitor.spider not in (None, spider):
                continue
            subject = Subject(row.project, spider)
            if why is None:
                events += await recovered(tx, subject, monitor, key, now)
                continue
            sentence, job = f"{key} did not run at {_minute(row.ts)}: {why[0]}", why[1]
            failure = Failure(rule_name(monitor), key, job, sentence, row.ts)
            if await incidents.fail(tx, subject, failure, now):
                await announce(tx, subject, now)
            events.append(missed(subject, monitor, sentence, job))
    await verdicts.refresh_subjects(tx, [Subject(row.project, spider) for spider, _ in wrong] if rules else [])
    await report(tx, row.project, events, now)
    return True


async def _wrong(tx: Transaction, run: PlannedRun, place: int) -> tuple[str, str | None] | None:
    """Return why a task of a run did not happen, with its job; None when it did."""
    task = run.tasks[place]
    if run.refused is not None:
        missed = "no server was running, or its clock was changed"
        return missed if run.refused == "missed" else run.refused[:300], None
    if not task.added:
        return f"job {task.job} of an earlier run has not ended", task.job
    job = None if task.job is None else await get_job(tx, JobKey.parse(task.job))
    if job is not None and job.state.value == "pending":
        return f"job {task.job} still waits for a node", task.job
    return None


def _minute(time: int) -> str:
    return f"{datetime.fromtimestamp(time / 1000, timezone.utc):%Y-%m-%d %H:%M} UTC"
