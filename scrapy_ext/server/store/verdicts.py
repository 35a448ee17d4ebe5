"""Verdicts on finished jobs, and the health of each spider, which follows from the verdicts on its last runs.

Both are rows: they change in the transaction that stores a verdict, ends an incident or deletes a job, so that a page
with all spiders of a project reads one row a spider, whatever the number of jobs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.error_groups import ErrorGroup, RecurringError, recurring_errors
from scrapy_ext.api.platform.jobs import FINISHED
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.verdicts import (
    COMPARED,
    LEAST,
    MISSED,
    MONITOR,
    Finished,
    Reason,
    Verdict,
    reasons_of,
    typical_items,
    verdict_of,
)
from scrapy_ext.server.store.engine.interface import EngineStore, Method, Row, Transaction
from scrapy_ext.server.store.incidents import Subject, of_spider
from scrapy_ext.server.store.monitor_queue import count_unjudged

#: Runs of a spider that its health is about.
RUNS: Final = 20
#: Reasons of a spider that are kept.
_REASONS: Final = 10
#: Error groups of a job that are kept, and bytes of them: examples of further ones are left out.
_MANY_BYTES: Final = 128 * 1024
_COLUMNS: Final = "job, finished, verdict, arguments, close_reason, items, error_lines, took, reasons"


class JobVerdict(NamedTuple):
    """The verdict on a job, and what it is about; times in ms. ``error``: the most frequent error, in a line."""

    job: int
    finished: int
    verdict: Verdict
    arguments: str
    close_reason: str
    items: int
    error_lines: int
    took: int | None
    reasons: list[Reason]
    error: str = ""
    errors: Sequence[ErrorGroup] = ()


class Ended(NamedTuple):
    """The end of a job, as a verdict stores it; times in ms."""

    finished: int
    arguments: str
    close_reason: str
    items: int
    error_lines: int
    took: int | None


class Run(msgspec.Struct, array_like=True, frozen=True):
    """A run in the strip of a spider."""

    job: int
    verdict: Verdict
    finished: int
    items: int
    error_lines: int
    took: int | None
    close_reason: str


class SpiderReason(msgspec.Struct, frozen=True):
    """A reason of the verdict on a spider. ``job``: the number of its last run that has it; None for a missed one."""

    reason: Reason
    job: int | None = None


class Health(msgspec.Struct):
    """Health of a spider: its last runs, newest first, why it needs somebody, and the error of the worst run with one.

    ``median_items``: of the runs that its last run is compared with; None for too few.
    """

    runs: list[Run] = []
    reasons: list[SpiderReason] = []
    error: str = ""
    median_items: float | None = None


class SpiderHealth(NamedTuple):
    """``verdict``: the worst of the last runs with each set of arguments, and of the lasting incidents."""

    spider: int
    name: str
    verdict: Verdict
    finished: int
    health: Health


_reasons: Final = msgspec.json.Decoder(list[Reason]).decode
_groups: Final = msgspec.json.Decoder(list[ErrorGroup]).decode
_health: Final = msgspec.json.Decoder(Health).decode


# ── of a job ──


async def judge(
    tx: Transaction, key: JobKey, ended: Ended, failed_monitors: Sequence[tuple[str, str]], groups: Sequence[ErrorGroup]
) -> JobVerdict:
    """Store the verdict on a locked finished job, and change the health of its spider."""
    alike = await _alike(tx, key, ended.arguments, ended.finished)
    typical = typical_items([items for _, items in alike])
    reasons = reasons_of(Finished(ended.close_reason, ended.items, ended.error_lines, typical, failed_monitors))
    found = JobVerdict(
        key.job,
        ended.finished,
        verdict_of(reasons, ended.close_reason),
        *ended[1:],
        reasons,
        groups[0].in_a_line if groups else "",
        groups,
    )
    await tx.execute(
        f"""INSERT INTO job_verdicts (project, spider, {_COLUMNS}, error, errors)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
            ON CONFLICT (project, spider, job) DO UPDATE
            SET finished = excluded.finished, verdict = excluded.verdict, arguments = excluded.arguments,
                close_reason = excluded.close_reason, items = excluded.items, error_lines = excluded.error_lines,
                took = excluded.took, reasons = excluded.reasons, error = excluded.error, errors = excluded.errors""",
        key.project,
        key.spider,
        *found[:2],
        int(found.verdict),
        *found[3:8],
        msgspec.json.encode(found.reasons),
        found.error,
        _encoded(found.errors),
    )
    await _mark(tx, key, found.verdict)
    await refresh(tx, key.project, [key.spider])
    return found


async def _alike(tx: Transaction, key: JobKey, arguments: str, before: int) -> list[tuple[int, int]]:
    """Return the numbers of the last complete runs with the same arguments before a time, and those of their items."""
    rows = await tx.fetch(
        """SELECT job, items FROM job_verdicts WHERE project = $1 AND spider = $2 AND arguments = $3
           AND (finished, job) < ($4, $5) AND close_reason = $6 ORDER BY finished DESC, job DESC LIMIT $7""",
        key.project,
        key.spider,
        arguments,
        before,
        key.job,
        FINISHED,
        COMPARED,
    )
    return [(job, items) for job, items in rows]


async def compared_with(tx: Transaction, key: JobKey, verdict: JobVerdict) -> list[JobKey]:
    """Return the runs that a judged job is compared with, newest first; none for fewer than LEAST."""
    alike = await _alike(tx, key, verdict.arguments, verdict.finished)
    return [key._replace(job=job) for job, _ in alike] if len(alike) >= LEAST else []


def _encoded(groups: Sequence[ErrorGroup]) -> bytes:
    """Return the groups as JSON; without the examples of those that make it long."""
    left, kept = _MANY_BYTES, []
    for group in groups:
        left -= len(group.example)
        kept.append(group if left >= 0 else msgspec.structs.replace(group, example=""))
    return msgspec.json.encode(kept)


async def _mark(tx: Transaction, key: JobKey, verdict: Verdict) -> None:
    await tx.execute(
        "UPDATE jobs SET verdict = $4 WHERE project = $1 AND spider = $2 AND job = $3 AND verdict <> $4",
        *key,
        int(verdict),
    )


async def forget(tx: Transaction, key: JobKey) -> None:
    """Remove the verdict on a locked job that is deleted, or runs again. Then :func:`refresh` for its spider."""
    await _mark(tx, key, Verdict.NONE)
    await tx.execute("DELETE FROM job_verdicts WHERE project = $1 AND spider = $2 AND job = $3", *key)


async def forget_errors(tx: Transaction, key: JobKey) -> None:
    """Remove the errors of a locked job whose log is removed. Then :func:`refresh` for its spider."""
    await tx.execute(
        "UPDATE job_verdicts SET error = '', errors = $4 WHERE project = $1 AND spider = $2 AND job = $3", *key, b"[]"
    )


async def of_job(tx: Transaction, key: JobKey) -> JobVerdict | None:
    """Return the verdict on a job; None before it is given."""
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS}, error, errors FROM job_verdicts WHERE project = $1 AND spider = $2 AND job = $3", *key
    )
    return None if row is None else _verdict(row[:-1])._replace(errors=_groups(row[-1]))


def _verdict(row: Row) -> JobVerdict:
    """Parse a row of ``_COLUMNS`` and the error."""
    job, finished, verdict, arguments, reason, items, error_lines, took, reasons, error = row
    return JobVerdict(
        job, finished, Verdict(verdict), arguments, reason, items, error_lines, took, _reasons(reasons), error
    )


# ── of a spider ──


async def refresh(tx: Transaction, project: int, spiders: Iterable[int]) -> None:
    """Change the health of spiders by their last runs and their lasting incidents.

    Called after the last lock on a job (:ref:`lock-order`).
    """
    for spider in sorted(set(spiders)):
        await _refresh(tx, project, spider)


async def refresh_subjects(tx: Transaction, subjects: Iterable[Subject]) -> None:
    """Change the health of spiders whose incidents have changed. One that has never run has none."""
    for project, name in sorted(set(subjects)):
        row = await tx.fetchrow("SELECT spider FROM spiders WHERE project = $1 AND name = $2", project, name)
        if row is not None:
            await refresh(tx, project, [row[0]])


async def _refresh(tx: Transaction, project: int, spider: int) -> None:
    # Whoever refreshes next reads what this transaction has changed.
    row = await tx.fetchrow("SELECT name FROM spiders WHERE project = $1 AND spider = $2 FOR UPDATE", project, spider)
    name = row[0] if row else ""
    rows = await tx.fetch(
        f"""SELECT {_COLUMNS}, error FROM job_verdicts WHERE project = $1 AND spider = $2
            ORDER BY finished DESC, job DESC LIMIT {RUNS}""",
        project,
        spider,
    )
    runs = [_verdict(row) for row in rows]
    told = {str(JobKey(project, spider, run.job)) for run in runs if any(each.kind == MONITOR for each in run.reasons)}
    reasons = [*_of_runs(runs), *await _of_incidents(tx, Subject(project, name), told)]
    reasons.sort(key=lambda each: -each.reason.verdict)
    # One that was cancelled says nothing about the spider; the one before it does.
    verdict = max([each.reason.verdict for each in reasons] + [run.verdict for run in _last_of_each(runs)], default=0)
    if not runs and not reasons:
        await tx.execute("DELETE FROM spider_health WHERE project = $1 AND spider = $2", project, spider)
        return
    health = Health([_run(run) for run in runs], reasons[:_REASONS])
    if runs:
        last = runs[0]
        alike = await _alike(tx, JobKey(project, spider, last.job), last.arguments, last.finished)
        health.median_items = typical_items([items for _, items in alike])
        errors: dict[int | None, str] = {run.job: run.error for run in runs}
        health.error = next((error for each in reasons if (error := errors.get(each.job))), last.error)
    await tx.execute(
        """INSERT INTO spider_health (project, spider, verdict, finished, health) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (project, spider) DO UPDATE
           SET verdict = excluded.verdict, finished = excluded.finished, health = excluded.health""",
        project,
        spider,
        int(verdict),
        runs[0].finished if runs else 0,
        msgspec.json.encode(health),
    )


def _last_of_each(runs: Sequence[JobVerdict]) -> list[JobVerdict]:
    """Return the last judged run with each set of arguments."""
    last: dict[str, JobVerdict] = {}
    for run in runs:
        if run.verdict is not Verdict.NONE:
            last.setdefault(run.arguments, run)
    return list(last.values())


def _of_runs(runs: Sequence[JobVerdict]) -> list[SpiderReason]:
    return [SpiderReason(reason, run.job) for run in _last_of_each(runs) for reason in run.reasons]


async def _of_incidents(tx: Transaction, subject: Subject, told: Container[str | None]) -> list[SpiderReason]:
    """Return the lasting incidents of other jobs than those ``told``: of missed runs, and of failures long ago."""
    return [
        SpiderReason(Reason(MISSED, Verdict.RED, f"monitor {each.rule.name} failed: {each.sentence}"))
        for each in await of_spider(tx, subject)
        if each.over is None and each.job not in told
    ]


def _run(run: JobVerdict) -> Run:
    return Run(run.job, run.verdict, run.finished, run.items, run.error_lines, run.took, run.close_reason)


class SpiderChoice(NamedTuple):
    """A choice of spiders: those with one of some verdicts (any without), and a text in their name."""

    verdicts: tuple[Verdict, ...] = ()
    text: str = ""


#: All spiders.
ALL: Final = SpiderChoice()


async def worst_spiders(
    tx: Transaction, project: int, count: int, offset: int = 0, choice: SpiderChoice = ALL
) -> tuple[int, list[SpiderHealth]]:
    """Return the number of chosen spiders, and some: the worst first, of equal ones those that ended last.

    Spiders without a finished run have no verdict.
    """
    rows = await tx.fetch(
        """SELECT s.spider, s.name, coalesce(h.verdict, 0), coalesce(h.finished, 0) FROM spiders s
           LEFT JOIN spider_health h ON h.project = s.project AND h.spider = s.spider
           WHERE s.project = $1""",
        project,
    )
    text, verdicts = choice.text.lower(), choice.verdicts or tuple(Verdict)
    chosen = [row for row in rows if row[2] in verdicts and text in row[1].lower()]
    chosen.sort(key=lambda row: (-row[2], -row[3], row[1]))
    page = chosen[offset : offset + count]
    known = await _healths(tx, project, [row[0] for row in page])
    empty = Health()
    return len(chosen), [
        SpiderHealth(spider, name, Verdict(verdict), finished, known.get(spider, empty))
        for spider, name, verdict, finished in page
    ]


async def _healths(tx: Transaction, project: int, spiders: Sequence[int]) -> dict[int, Health]:
    if not spiders:
        return {}
    marks = ", ".join(f"${place}" for place in range(2, len(spiders) + 2))
    rows = await tx.fetch(
        f"SELECT spider, health FROM spider_health WHERE project = $1 AND spider IN ({marks})", project, *spiders
    )
    return {spider: _health(health) for spider, health in rows}


async def health_of(tx: Transaction, project: int, spider: int) -> Health:
    """Return the health of a spider; an empty one before its first run has ended."""
    return (await _healths(tx, project, [spider])).get(spider, Health())


async def errors_of(tx: Transaction, project: int, spider: int) -> list[RecurringError]:
    """Return the errors of the last runs of a spider."""
    rows = await tx.fetch(
        """SELECT job, errors FROM (
               SELECT job, finished, error, errors FROM job_verdicts WHERE project = $1 AND spider = $2
               ORDER BY finished DESC, job DESC LIMIT $3) last_runs
           WHERE error <> '' ORDER BY finished DESC, job DESC""",
        project,
        spider,
        RUNS,
    )
    return recurring_errors((job, _groups(errors)) for job, errors in rows)


async def count_spiders(tx: Transaction, project: int | None) -> dict[int, dict[Verdict, int]]:
    """Return the number of spiders with each verdict, by project; of all projects with None."""
    where, arguments = ("", []) if project is None else (" WHERE project = $1", [project])
    rows = await tx.fetch(
        f"SELECT project, verdict, count(*) FROM spider_health{where} GROUP BY project, verdict", *arguments
    )
    found: dict[int, dict[Verdict, int]] = {}
    for number, verdict, count in rows:
        found.setdefault(number, dict.fromkeys(Verdict, 0))[Verdict(verdict)] = count
    return found


class VerdictStore(EngineStore):
    """Reads of verdicts; they are written with the results of monitors."""

    of_job = Method("read_inline", of_job)
    of_spider = Method("read_inline", health_of)
    compared_with = Method("read", compared_with)
    errors_of = Method("read", errors_of)
    worst = Method("read", worst_spiders)
    counted = Method("read", count_spiders)
    unjudged = Method("read", count_unjudged)
