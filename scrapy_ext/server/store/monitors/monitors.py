"""Monitors: their rows, the results of jobs, and runs that are expected.

Invariants:

- The results of a job are stored in one transaction with the removal of its row from the queue, the changes of the
  incidents, and the activity message. It compares the end of the job, and holds the lease of monitors.
- It locks the monitors that it stores results of, so that one that was disabled meanwhile has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.error_groups import ErrorGroup
from scrapy_ext.api.platform.jobs import FINISHED
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.monitors import (
    FAILED,
    PASSED,
    RESULT_EVENTS,
    Monitor,
    MonitorEvent,
    MonitorResult,
    NewMonitor,
    outcome_of,
)
from scrapy_ext.server.store import incidents, verdicts
from scrapy_ext.server.store.engine.interface import Engine, Method, TimedMethod, Transaction
from scrapy_ext.server.store.fencing import Lease, check_lease, extend_lease
from scrapy_ext.server.store.incidents import Failure, Subject, arguments_key
from scrapy_ext.server.store.jobs.queries import from_rows, pairs
from scrapy_ext.server.store.jobs.rows import get_job
from scrapy_ext.server.store.monitor_queue import Queued
from scrapy_ext.server.store.monitors import alerts
from scrapy_ext.server.store.monitors.expected import (
    begin_expecting,
    expected_run,
    miss,
    overdue,
    settle_run,
)
from scrapy_ext.server.store.monitors.facts import JobFacts, find_earlier, find_facts, find_last, find_success
from scrapy_ext.server.store.monitors.following import (
    ROW,
    announce,
    is_enabled,
    of_project,
    recovered,
    report,
    rule_name,
    take,
)
from scrapy_ext.server.store.records.chunks import LOGS
from scrapy_ext.server.store.records.removal import find_removed_kinds
from scrapy_ext.server.store.rules.rows import MONITOR
from scrapy_ext.server.store.rules.rules import RuleStore
from scrapy_ext.server.store.verdicts import Ended

#: Rows of the queue of one round.
AT_ONCE: Final = 100
#: Wait (ms) after a failed check, which doubles, and attempts until it is given up.
_WAIT: Final = 30_000
MAX_ATTEMPTS: Final = 6
MAX_LISTED: Final = 1000
#: Characters of the message of an activity message.
_LONGEST: Final = 2000
#: Error groups that an activity message has.
_GROUPS: Final = 5


class Checked(NamedTuple):
    """The result of an enabled monitor for a job, and whether the job is a run that the monitor expects."""

    monitor: Monitor
    result: MonitorResult | None


class CheckedJob(NamedTuple):
    """A finished job with the results of its monitors, and the errors of its log in groups."""

    facts: JobFacts
    results: Sequence[Checked]
    errors: Sequence[ErrorGroup] = ()


class Work(NamedTuple):
    """Rows of the queue, expected runs (project and number of the monitor) and messages about spiders that are due."""

    rows: list[Queued]
    overdue: list[tuple[int, int]]
    groups: list[Subject]


class Counted(NamedTuple):
    """Results that this process has stored, by outcome."""

    passed: int = 0
    failed: int = 0
    not_applicable: int = 0

    def plus(self, outcomes: Sequence[str]) -> Counted:
        passed, failed = outcomes.count(PASSED), outcomes.count(FAILED)
        rest = len(outcomes) - passed - failed
        return Counted(self.passed + passed, self.failed + failed, self.not_applicable + rest)


# ── the queue ──


async def _due(tx: Transaction, now: int) -> list[Queued]:
    rows = await tx.fetch(
        """SELECT project, kind, subject, part, ts, attempts, detail FROM monitor_queue
           WHERE due <= $1 ORDER BY due, project, kind, subject, part LIMIT $2""",
        now,
        AT_ONCE,
    )
    return [Queued(*row) for row in rows]


async def _retry(tx: Transaction, lease: Lease, row: Queued, now: int) -> None:
    """Have a row that could not be checked checked again later."""
    await check_lease(tx, lease)
    await tx.execute(
        f"UPDATE monitor_queue SET attempts = attempts + 1, due = $6 WHERE {ROW}",
        *row[:5],
        now + _WAIT * 2 ** min(row.attempts, 10),
    )


# ── results of jobs ──


async def _settle(tx: Transaction, lease: Lease, row: Queued, checked: CheckedJob | None, now: int) -> list[str]:
    """Store the verdict on a job and the results of its monitors, once; return the outcomes of the monitors."""
    await check_lease(tx, lease)
    found = [] if checked is None else [each for each in checked.results if await is_enabled(tx, each.monitor)]
    job = await get_job(tx, row.key, lock=True)
    if not await take(tx, row) or checked is None or job is None:
        return []
    facts = checked.facts
    # Of a resumed job that has ended again.
    await tx.execute("DELETE FROM monitor_results WHERE project = $1 AND spider = $2 AND job = $3", *facts.key)
    results, events = [], []
    for monitor, result in found:
        if result is None:
            events += await expected_run(tx, monitor, facts, now)
            continue
        await _store(tx, facts.key, result)
        results.append(result)
        events += await _follow(tx, facts, monitor, result, now)
    # The log may have been removed since it was read.
    errors = [] if LOGS.name in await find_removed_kinds(tx, facts.key) else checked.errors
    verdict = await verdicts.judge(tx, facts.key, _ended(facts), _failed(results), errors)
    if results:
        events.insert(0, _event(facts, results, verdict))
    await report(tx, facts.key.project, events, now)
    return [each.outcome for each in results]


def _ended(facts: JobFacts) -> Ended:
    return Ended(
        finished=facts.finished,
        arguments=arguments_key(facts.args, facts.command),
        close_reason=facts.outcome,
        items=facts.counts.items,
        error_lines=facts.counts.errors,
        took=None if facts.seconds is None else round(facts.seconds * 1000),
    )


def _failed(results: Sequence[MonitorResult]) -> list[tuple[str, str]]:
    """Return names and sentences of the monitors that failed."""
    return [
        (each.name, "; ".join(check.sentence for check in each.checks if check.outcome == FAILED))
        for each in results
        if each.outcome == FAILED
    ]


async def _store(tx: Transaction, key: JobKey, result: MonitorResult) -> None:
    await tx.execute(
        """INSERT INTO monitor_results (project, spider, job, of_server, rule, finished, checked, outcome, result)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)""",
        *key,
        int(result.of_server),
        result.monitor,
        result.finished,
        result.checked,
        result.outcome,
        msgspec.json.encode(result),
    )


def _event(facts: JobFacts, results: list[MonitorResult], verdict: verdicts.JobVerdict) -> MonitorEvent:
    outcome = outcome_of([each.outcome for each in results])
    failed = [each for each in results if each.outcome == FAILED]
    passed = sum(each.outcome == PASSED for each in results)
    sentences = [check.sentence for each in failed for check in each.checks if check.outcome == FAILED]
    if failed:
        message = f"{', '.join(each.name for each in failed)} of {facts.spider} failed: {'; '.join(sentences)}"
    elif passed:
        message = f"{passed} of {len(results)} monitors of {facts.spider} passed"
    else:
        message = f"No monitor of {facts.spider} was applicable"
    return MonitorEvent(
        event=RESULT_EVENTS[outcome],
        user="monitors",
        message=message[:_LONGEST],
        spider=facts.spider,
        outcome=outcome,
        job=str(facts.key),
        verdict=verdict.verdict.text,
        errors=[group.in_a_line for group in verdict.errors[:_GROUPS]],
        monitors=failed or results,
    )


async def _follow(
    tx: Transaction, facts: JobFacts, monitor: Monitor, result: MonitorResult, now: int
) -> list[MonitorEvent]:
    """Change the incident of a monitor by a result; return messages for the activity."""
    subject, key = Subject(facts.key.project, facts.spider), arguments_key(facts.args, facts.command)
    if result.outcome == FAILED:
        sentence = "; ".join(check.sentence for check in result.checks if check.outcome == FAILED)
        failure = Failure(rule_name(monitor), key, str(facts.key), sentence, facts.finished)
        if await incidents.fail(tx, subject, failure, now):
            await announce(tx, subject, now)
    elif result.outcome == PASSED:
        return await recovered(tx, subject, monitor, key, now)
    return []


async def work(tx: Transaction, now: int) -> Work:
    return Work(await _due(tx, now), await overdue(tx, now), await alerts.due_groups(tx, now))


# ── reading ──


async def _results(tx: Transaction, where: str, *arguments: object, count: int = MAX_LISTED) -> list[MonitorResult]:
    rows = await tx.fetch(
        f"""SELECT result FROM monitor_results WHERE {where}
            ORDER BY checked DESC, spider DESC, job DESC, of_server, rule LIMIT {int(count)}""",
        *arguments,
    )
    return [msgspec.json.decode(row[0], type=MonitorResult) for row in rows]


async def of_job(tx: Transaction, key: JobKey) -> list[MonitorResult]:
    """Return the results of a job; failed ones first."""
    found = await _results(tx, "project = $1 AND spider = $2 AND job = $3", *key)
    return sorted(found, key=lambda each: (each.outcome != FAILED, each.outcome != PASSED, each.monitor))


class Checks(NamedTuple):
    """Numbers of monitors that failed for a job, and of all that applied to it."""

    failed: int = 0
    all: int = 0


async def _count_of_jobs(tx: Transaction, project: int, keys: Sequence[JobKey]) -> dict[JobKey, Checks]:
    """Return the numbers of each job that monitors checked."""
    if not keys:
        return {}
    rows = await tx.fetch(
        f"""SELECT t.spider, t.job, count(*), count(CASE WHEN t.outcome = $2 THEN 1 END)
            FROM {from_rows(f"VALUES {pairs(keys, 4)}", "monitor_results t")}
            WHERE t.project = $1 AND t.spider = chosen.column1 AND t.job = chosen.column2
            AND t.outcome IN ($2, $3) GROUP BY 1, 2""",
        project,
        FAILED,
        PASSED,
        *(number for key in keys for number in (key.spider, key.job)),
    )
    return {JobKey(project, spider, job): Checks(failed, number) for spider, job, number, failed in rows}


async def _of_rule(tx: Transaction, project: int, rule: int | None, count: int, of_server: bool) -> list[MonitorResult]:
    """Return the results of a monitor in a project, or of all, newest first."""
    if rule is None:
        return await _results(tx, "project = $1", project, count=count)
    where = "project = $1 AND of_server = $2 AND rule = $3"
    return await _results(tx, where, project, int(of_server), rule, count=count)


async def lasting(tx: Transaction) -> int:
    row = await tx.fetchrow("SELECT count(*) FROM monitor_incidents WHERE over IS NULL")
    return row[0] if row else 0


async def _renew(tx: Transaction, lease: Lease, expires: int) -> None:
    await extend_lease(tx, lease, expires)


async def _forget(tx: Transaction, before: int) -> int:
    """Remove incidents without a run since a time (ms), except those of missing runs, which have none."""
    return await tx.execute(
        """DELETE FROM monitor_incidents WHERE last < $1 AND NOT EXISTS (
               SELECT 1 FROM monitor_expected e WHERE e.project = monitor_incidents.project
               AND e.rule = monitor_incidents.rule AND monitor_incidents.of_server = 0)""",
        before,
    )


class MonitorStore(RuleStore[NewMonitor, Monitor]):
    """Monitors and their results."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        super().__init__(engine, clock, MONITOR)
        #: Results that this process has stored.
        self.counted = Counted()

    async def add(self, project: int | None, new: NewMonitor) -> Monitor:
        """Add a monitor; raise :class:`ContractError` when there are too many."""
        return await self._engine.write(_add, self._clock(), project, new)

    async def enable(self, project: int | None, number: int, enabled: bool) -> Monitor | None:
        """Enable a monitor, or disable it, which ends its incidents; return it, or None when there is none."""
        return await self._engine.write(_enable, self._clock(), project, number, enabled)

    async def remove(self, project: int | None, number: int) -> bool:
        """Remove a monitor and its incidents; its results stay until they expire."""
        return await self._engine.write(_remove, project, number)

    # ── the queue ──

    work = TimedMethod("read_inline", work)
    of_project = Method("read", of_project)

    async def retry(self, lease: Lease, row: Queued) -> None:
        await self._engine.write(_retry, lease, row, self._clock())

    async def settle(self, lease: Lease, row: Queued, checked: CheckedJob | None) -> list[str]:
        """Store the results of a job, once; return the outcomes. None: the job is not there any more."""
        outcomes = await self._engine.write(_settle, lease, row, checked, self._clock())
        self.counted = self.counted.plus(outcomes)
        return outcomes

    async def settle_run(self, lease: Lease, row: Queued) -> bool:
        """Check a run of a periodic job, once."""
        return await self._engine.write(settle_run, lease, row, self._clock())

    async def renew(self, lease: Lease, duration: int) -> None:
        await self._engine.write(_renew, lease, self._clock() + duration)

    # ── runs that are expected ──

    async def miss(self, lease: Lease, project: int, rule: int) -> bool:
        return await self._engine.write(miss, lease, project, rule, self._clock())

    # ── facts and results ──

    facts = Method("read", find_facts)
    earlier = Method("read", find_earlier)
    last = Method("read", find_last)
    success = Method("read", find_success)
    of_job = Method("read", of_job)
    count_of_jobs = Method("read", _count_of_jobs)
    results = Method("read", _of_rule)
    incidents = Method("read", incidents.listed)
    lasting = Method("read", lasting)

    async def forget(self) -> int:
        """Remove incidents that are followed no longer; return their number."""
        return await self._engine.write(_forget, self._clock() - incidents.FORGOTTEN)


async def _add(tx: Transaction, now: int, project: int | None, new: NewMonitor) -> Monitor:
    added = await MONITOR.add(tx, now, project, new)
    await begin_expecting(tx, added)
    return added


async def _enable(tx: Transaction, now: int, project: int | None, number: int, enabled: bool) -> Monitor | None:
    found = await MONITOR.enable(tx, now, project, number, enabled)
    if found is not None and enabled:
        await begin_expecting(tx, found)
    if found is not None and not enabled:
        await verdicts.refresh_subjects(tx, await incidents.drop_rule(tx, project, number))
    return found


async def _remove(tx: Transaction, project: int | None, number: int) -> bool:
    removed = await MONITOR.remove(tx, project, number)
    await verdicts.refresh_subjects(tx, await incidents.drop_rule(tx, project, number))
    return removed


def expects(monitor: Monitor, facts: JobFacts) -> bool:
    """Return true for a complete job that is a run which a monitor expects."""
    return (
        monitor.hours is not None and facts.outcome == FINISHED and monitor.covers(facts.spider, facts.tags, facts.args)
    )
