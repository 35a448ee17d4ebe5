"""Queue of finished jobs, which are judged and checked by monitors, and of runs of periodic jobs that monitors expect.

A row is added in the transaction in which a job finishes or a run is due, and removed in the one that stores its
verdict and results: neither is lost nor checked twice, whenever a process ends. Monitors check what ends while one is
enabled that covers the project.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.imports import IMPORTED
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.interface import Transaction

#: Purpose of the rows of ``rules`` that are monitors.
PURPOSE: Final = "monitor"
#: Kinds of rows.
JOB: Final = "job"
RUN: Final = "run"
#: Time (ms) from the minute of a run until its jobs must have started.
START_WITHIN: Final = 30 * 60_000
#: The project of rules of the server.
_SERVER: Final = -1
#: Jobs that wait for their verdict, up to which they are counted.
MOST_UNJUDGED: Final = 10_000
#: Detail of a job that is judged alone.
_UNWATCHED: Final = b"unwatched"


class RunTask(msgspec.Struct, frozen=True):
    """A task of a run: the spider or script, and its job; ``added`` False: one that was still active."""

    spider: str
    job: str | None = None
    added: bool = True


class PlannedRun(msgspec.Struct, frozen=True):
    """A run of a periodic job: number of the job, minute, tasks, and why it did not happen, if it did not."""

    number: int
    #: Time (ms).
    minute: int
    tasks: list[RunTask]
    refused: str | None = None


class Queued(NamedTuple):
    """A row of the queue."""

    project: int
    kind: str
    subject: int
    part: int
    ts: int
    attempts: int
    detail: bytes | None

    @property
    def is_watched(self) -> bool:
        """True for a job that monitors check: one was enabled when it finished."""
        return self.detail is None

    @property
    def key(self) -> JobKey:
        """The job of a row of that kind."""
        return JobKey(self.project, self.subject, self.part)


async def enqueue_job(tx: Transaction, key: JobKey, metadata: Mapping[str, object], now: int) -> None:
    """Queue a job that finishes at ``now``. No monitor checks one that is copied from another platform."""
    watched = IMPORTED not in metadata and await _is_watched(tx, key.project)
    await _put(tx, (key.project, JOB, key.spider, key.job), now, now, None if watched else _UNWATCHED)


async def enqueue_import(tx: Transaction, key: JobKey, finished: int, now: int) -> None:
    """Queue a job that has been copied from another platform, where it finished at a time (ms)."""
    await _put(tx, (key.project, JOB, key.spider, key.job), finished, now, _UNWATCHED)


async def enqueue_run(tx: Transaction, project: int, run: PlannedRun, now: int) -> None:
    """Queue a run of a periodic job, which is checked when its jobs must have started."""
    if await _is_watched(tx, project):
        is_started = run.refused is None and all(task.added for task in run.tasks)
        due = max(now, run.minute + START_WITHIN) if is_started else now
        await _put(tx, (project, RUN, run.number, run.minute), run.minute, due, msgspec.json.encode(run))


async def forget_job(tx: Transaction, key: JobKey) -> None:
    """Remove a deleted job from the queue, and its results."""
    await tx.execute(
        "DELETE FROM monitor_queue WHERE project = $1 AND subject = $2 AND part = $3 AND kind = 'job'", *key
    )
    await tx.execute("DELETE FROM monitor_results WHERE project = $1 AND spider = $2 AND job = $3", *key)


def schedule_key(number: int) -> str:
    """Return the arguments of incidents of a periodic job: each is followed apart."""
    return f"periodic job {number}"


async def forget_schedule(tx: Transaction, project: int, number: int) -> None:
    """Remove what waits about a periodic job that was disabled or removed, and its incidents."""
    await tx.execute("DELETE FROM monitor_queue WHERE project = $1 AND kind = 'run' AND subject = $2", project, number)
    await tx.execute(
        "DELETE FROM monitor_incidents WHERE project = $1 AND arguments = $2", project, schedule_key(number)
    )


async def count_unjudged(tx: Transaction, project: int) -> int:
    """Return the number of finished jobs that wait for their verdict, at most ``MOST_UNJUDGED``."""
    row = await tx.fetchrow(
        "SELECT count(*) FROM (SELECT 1 FROM monitor_queue WHERE project = $1 AND kind = $2 LIMIT $3) waiting",
        project,
        JOB,
        MOST_UNJUDGED,
    )
    return int(row[0]) if row else 0


async def _is_watched(tx: Transaction, project: int) -> bool:
    row = await tx.fetchrow(
        "SELECT 1 FROM rules WHERE project IN ($1, $2) AND purpose = $3 AND enabled = 1 LIMIT 1",
        project,
        _SERVER,
        PURPOSE,
    )
    return row is not None


async def _put(tx: Transaction, row: tuple[int, str, int, int], ts: int, due: int, detail: bytes | None) -> None:
    await tx.execute(
        """INSERT INTO monitor_queue (project, kind, subject, part, ts, due, detail) VALUES ($1, $2, $3, $4, $5, $6, $7)
           ON CONFLICT (project, kind, subject, part) DO UPDATE
           SET ts = excluded.ts, due = excluded.due, detail = excluded.detail, attempts = 0""",
        *row,
        ts,
        due,
        detail,
    )
