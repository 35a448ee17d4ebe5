"""Attempts: the assignment of jobs to nodes, from the placing of a job until its process has ended.

Rules:

- A job has at most one attempt, one with a group several, and each has its own number. An earlier attempt may write
  nothing more: :mod:`..fencing` ensures that in the transaction of each write.
- The close reason that a job's process sends is kept with the attempt. The job is finished after its process has ended,
  in :func:`_end` and :func:`_give_back` alone, so that no other attempt runs beside it, and a cancellation or timeout
  decides on the reason.
- Locks are taken in this order: node, attempt, group, job, activity. A transaction locks one attempt.
- The end of an attempt ends its job, unless the job has a group with other workers (:mod:`.group_ends`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.jobs import FAILED, NODE_LOST, SCRIPT, SHUTDOWN, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store.engine.errors import StoreBusyError
from scrapy_ext.server.store.engine.interface import EngineStore, Method, Transaction
from scrapy_ext.server.store.fencing import Attempt, over
from scrapy_ext.server.store.jobs import states as job_states
from scrapy_ext.server.store.jobs.attempt_rows import remove_row
from scrapy_ext.server.store.jobs.group_ends import EndedWorker, worker_ended
from scrapy_ext.server.store.jobs.nodes import process_of
from scrapy_ext.server.store.jobs.placing import Notify, may_place, place_one
from scrapy_ext.server.store.jobs.rows import get_job
from scrapy_ext.server.store.jobs.states import Stamp

#: User name in changes of jobs that the nodes make themselves.
RUNNER: Final = "runner"
#: Beginning of the close reasons of processes that were killed.
KILLED: Final = "killed by "
#: Maximum jobs placed by one call.
AT_ONCE: Final = 50


class HeldJob(NamedTuple):
    """A job that is assigned to a node."""

    attempt: Attempt
    placed: int
    state: JobState
    cancelled: bool


async def orphaned(tx: Transaction) -> list[str]:
    """Return the names of removed nodes that still have attempts."""
    rows = await tx.fetch(
        """SELECT DISTINCT node FROM attempts WHERE node <> '' AND node NOT IN (SELECT node FROM nodes)
           ORDER BY node"""
    )
    return [row[0] for row in rows]


async def is_current(tx: Transaction, attempt: Attempt) -> bool:
    """Return false when an attempt is over."""
    row = await tx.fetchrow(
        "SELECT 1 FROM attempts WHERE project = $1 AND spider = $2 AND job = $3 AND attempt = $4",
        *attempt.key,
        attempt.number,
    )
    return row is not None


async def numbers(tx: Transaction, key: JobKey) -> list[int]:
    """Return the numbers of a job's attempts: one for each worker."""
    rows = await tx.fetch(
        "SELECT attempt FROM attempts WHERE project = $1 AND spider = $2 AND job = $3 ORDER BY attempt", *key
    )
    return [row[0] for row in rows]


async def of_node(tx: Transaction, node: str) -> list[HeldJob]:
    """Return the jobs that are assigned to a node."""
    rows = await tx.fetch(
        """SELECT project, spider, job, attempt, placed FROM attempts WHERE node = $1
           ORDER BY placed, project, spider, job""",
        node,
    )
    held = []
    for *key, number, placed in rows:
        job = await get_job(tx, JobKey(*key))
        state = JobState.DELETED if job is None else job.state
        cancelled = job is not None and "cancelled_by" in job.metadata
        held.append(HeldJob(Attempt(JobKey(*key), number), placed, state, cancelled))
    return held


async def _said(tx: Transaction, attempt: Attempt, reason: str) -> None:
    """Store the close reason of a job's process; raise :class:`ContractError` (403) when the attempt is over."""
    changed = await tx.execute(
        "UPDATE attempts SET outcome = $5 WHERE project = $1 AND spider = $2 AND job = $3 AND attempt = $4",
        *attempt.key,
        attempt.number,
        reason,
    )
    if not changed:
        raise ContractError([over(attempt)])


async def _end(tx: Transaction, attempt: Attempt, reason: str | None, fields: Mapping[str, Any], stamp: Stamp) -> bool:
    removed = await remove_row(tx, attempt.key, attempt.number)
    if removed is None:
        return False
    said = removed.row.outcome
    if said not in (None, SHUTDOWN):  # the crawl was complete before its process ended
        reason = said
    reason = reason or said or FAILED
    worker = EndedWorker(removed, reason, said is None and reason.startswith(KILLED), fields)
    if await worker_ended(tx, attempt.key, worker, stamp):
        return True
    job = await get_job(tx, attempt.key, lock=True)
    if job is not None:
        await job_states.end_job(tx, job, reason, fields, stamp)
    return True


async def _give_back(tx: Transaction, attempt: Attempt, stamp: Stamp, most: int | None) -> bool:
    """Release a job. ``most``: maximum number of lost nodes; None: this node was not lost."""
    removed = await remove_row(tx, attempt.key, attempt.number)
    if removed is None:
        return False
    outcome, is_lost = removed.row.outcome, most is not None
    if await worker_ended(tx, attempt.key, EndedWorker(removed, outcome, is_lost and outcome is None), stamp):
        return True
    job = await get_job(tx, attempt.key, lock=True)
    if job is None:
        return True
    losses = job.metadata.get("nodes_lost", 0) + is_lost
    job = job._replace(metadata={**job.metadata, "nodes_lost": losses}) if losses else job
    if outcome not in (None, SHUTDOWN):
        await job_states.end_job(tx, job, outcome, {}, stamp)
    elif "cancelled_by" in job.metadata:
        await job_states.end_job(tx, job, job_states.CANCELLED, {}, stamp)
    elif most is not None and (losses >= most or job.spider.startswith(SCRIPT)):  # a script cannot resume
        await job_states.end_job(tx, job, NODE_LOST, {}, stamp)
    else:
        await job_states.wait_again(tx, job, stamp)
    return True


async def _removed(tx: Transaction, node: str, heartbeat: int) -> bool:
    """Remove a node unless it has sent another heartbeat; return false then."""
    row = await tx.fetchrow("SELECT heartbeat FROM nodes WHERE node = $1 FOR UPDATE", node)
    if row is not None and row[0] != heartbeat:
        return False
    await tx.execute("DELETE FROM nodes WHERE node = $1", node)
    return True


class AttemptStore(EngineStore):
    async def place(self, notify: Notify | None = None) -> list[Attempt]:
        """Place pending jobs on nodes with free units, up to :data:`AT_ONCE`.

        ``notify`` is called in the transaction of each job.
        """
        placed: list[Attempt] = []
        while len(placed) < AT_ONCE and await self._engine.read_inline(may_place):
            one = await self._engine.write(place_one, Stamp(RUNNER, self._clock()), notify)
            if one is None:
                break
            placed.append(Attempt(*one))
        return placed

    of_node = Method("read", of_node)
    orphaned = Method("read", orphaned)
    numbers = Method("read", numbers)
    is_current = Method("read_inline", is_current)
    said = Method("write", _said)

    async def end(self, attempt: Attempt, reason: str | None, fields: Mapping[str, Any] | None = None) -> bool:
        """Record that a job's process has ended; return false when the attempt was over.

        ``reason`` applies if the process has sent none, or was stopped; without either it is ``failed``.
        """
        return await self._engine.write(_end, attempt, reason, fields or {}, Stamp(RUNNER, self._clock()))

    async def give_back(self, attempt: Attempt) -> bool:
        """Make a job pending for another node, unless its process has finished; return false when the attempt was
        over."""
        return await self._engine.write(_give_back, attempt, Stamp(RUNNER, self._clock()), None)

    async def release_jobs(self, node: str, heartbeat: int, most: int) -> list[Attempt]:
        """Remove a node if its heartbeat is still ``heartbeat``, and make its jobs pending; return their attempts.

        A job that has lost its node ``most`` times is finished instead. If the rows of some jobs are locked for too
        long, the other jobs are released, the sessions of the node are ended, and :class:`StoreBusyError` is raised:
        the next call continues.
        """
        if not await self._engine.write(_removed, node, heartbeat):
            return []
        over: list[Attempt] = []
        busy: StoreBusyError | None = None
        for attempt in [held.attempt for held in await self.of_node(node)]:
            try:
                if await self._engine.write(_give_back, attempt, Stamp(RUNNER, self._clock()), most):
                    over.append(attempt)
            except StoreBusyError as error:
                busy = error
        if busy is not None:
            # A process that is stopped within a command keeps its locks.
            if (process := process_of(node)) is not None:
                await self._engine.end_sessions(*process)
            raise busy
        return over
