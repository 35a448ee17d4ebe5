"""Rows of groups: the bounds of the number of a job's workers, and the state that its workers share."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import JOB_DELETED, NODE_LOST, SHUTDOWN, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.worker_bounds import Bounds
from scrapy_ext.api.platform.workers import Closing, reason_text
from scrapy_ext.server.store.engine.interface import Row, Transaction
from scrapy_ext.server.store.jobs.group_stats import Ended
from scrapy_ext.server.store.jobs.rows import StoredJob, get_job
from scrapy_ext.server.store.jobs.states import CANCELLED

#: Workers lost in an hour after which a job is closed, by the highest number of its workers.
_LOSSES: Final = 5
_COLUMNS: Final = "least, most, target, changed, last_attempt, closing, start_attempt, started, losses, stats"
_OF_JOB: Final = "project = $1 AND spider = $2 AND job = $3"
_encode: Final = msgspec.json.Encoder().encode
_decode_closing: Final = msgspec.json.Decoder(Closing).decode
_decode_ended: Final = msgspec.json.Decoder(Ended).decode


class Group(NamedTuple):
    """The group of a job. ``target``: number of workers that it should have now, ``changed`` at a time (ms).

    ``start_attempt``: the worker that runs ``start()``; ``started``: its requests are stored. ``losses``: of workers.
    """

    least: int
    most: int
    target: int
    changed: int
    last_attempt: int
    closing: Closing | None
    start_attempt: int | None
    started: bool
    losses: int
    ended: Ended

    def closed(self, closing: Closing) -> Group:
        """Return the group with the reason for which it closes; the first reason stays."""
        return self if self.closing is not None else self._replace(closing=closing)

    def closed_with(self, job: StoredJob) -> Group:
        """Return the group, which closes when its job is deleted, cancelled, or finished by a client."""
        if job.state is JobState.DELETED:
            return self.closed(Closing(JOB_DELETED))
        if "cancelled_by" in job.metadata:
            return self.closed(Closing(CANCELLED, str(job.metadata["cancelled_by"])))
        if job.state is JobState.FINISHED:
            return self.closed(Closing(reason_text(str(job.metadata.get("close_reason") or SHUTDOWN))))
        return self

    def lost(self, attempt: int, now: int) -> Group:
        """Return the group after the loss of a worker; too many losses in an hour close it."""
        group = self._replace(losses=self.losses + 1, ended=self.ended.with_loss(now))
        return group if group.ended.lost < _LOSSES * self.most else group.closed(Closing(NODE_LOST, attempt=attempt))

    def resumed(self, bounds: Bounds | None, now: int) -> Group:
        """Return the group for a new start, after all its workers have ended. ``bounds``: others from now on."""
        ended = msgspec.structs.replace(self.ended.next_run(), lost_since=0, lost=0)
        group = self._replace(closing=None, start_attempt=None, losses=0, ended=ended)
        if bounds is None:
            return group
        return group._replace(least=bounds.least, most=bounds.most, target=bounds.least, changed=now)

    def bounded(self, bounds: Bounds, now: int) -> Group:
        """Return the group with these bounds, and its target within them."""
        target = bounds.clamped(self.target)
        return self._replace(least=bounds.least, most=bounds.most, target=target, changed=now)


async def open_group(tx: Transaction, key: JobKey, bounds: Bounds, now: int) -> None:
    """Make the group of a job, unless it has one or does not exist. Its attempts continue the numbers of the job."""
    job = await get_job(tx, key)
    if job is None:
        return
    given = job.metadata.get("attempt")
    await tx.execute(
        """INSERT INTO worker_groups (project, spider, job, least, most, target, changed, last_attempt)
           VALUES ($1, $2, $3, $4, $5, $4, $6, $7) ON CONFLICT (project, spider, job) DO NOTHING""",
        *key,
        bounds.least,
        bounds.most,
        now,
        given if isinstance(given, int) else 0,
    )


async def has_group(tx: Transaction, key: JobKey) -> bool:
    return await tx.fetchrow(f"SELECT 1 FROM worker_groups WHERE {_OF_JOB}", *key) is not None


async def get_group(tx: Transaction, key: JobKey) -> Group | None:
    """Return the group of a job; None if it has none."""
    return _group(await tx.fetchrow(f"SELECT {_COLUMNS} FROM worker_groups WHERE {_OF_JOB}", *key))


async def lock_group(tx: Transaction, key: JobKey) -> Group | None:
    """Lock the group of a job; None if it has none."""
    return _group(await tx.fetchrow(f"SELECT {_COLUMNS} FROM worker_groups WHERE {_OF_JOB} FOR UPDATE", *key))


def _group(row: Row | None) -> Group | None:
    if row is None:
        return None
    least, most, target, changed, last_attempt, closing, start_attempt, started, losses, ended = row
    return Group(
        *(least, most, target, changed, last_attempt),
        None if closing is None else _decode_closing(closing),
        start_attempt,
        bool(started),
        losses,
        Ended() if ended is None else _decode_ended(ended),
    )


async def save_group(tx: Transaction, key: JobKey, group: Group) -> None:
    """Store a locked group."""
    await tx.execute(
        f"""UPDATE worker_groups SET least = $4, most = $5, target = $6, changed = $7, last_attempt = $8, closing = $9,
                start_attempt = $10, started = $11, losses = $12, stats = $13
            WHERE {_OF_JOB}""",
        *key,
        *(group.least, group.most, group.target, group.changed, group.last_attempt),
        None if group.closing is None else _encode(group.closing),
        group.start_attempt,
        int(group.started),
        group.losses,
        _encode(group.ended),
    )
