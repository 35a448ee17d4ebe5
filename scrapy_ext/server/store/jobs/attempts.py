"""Attempts: which node has which job, from the moment that a job is given to it until its process has ended.

Rules that hold here:

- A job has one attempt at most, and a number of its own for each. Whoever has an earlier one may write nothing more:
  :func:`check_attempt`, in the transaction of the write, sees to that.
- What the process of a job writes as its end is kept beside the attempt. The job is finished once the process has
  ended, in :func:`_end` and :func:`_give_back` alone: until then nobody takes its place, and who asked it to stop
  decides what its end means.
- Locks are taken in this order: the node, the attempt, the job, the activity. Of several attempts, one a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from scrapy_ext.api.platform.jobs import ATTEMPT_OVER, FAILED, SCRIPT, SHUTDOWN, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.errors import StoreBusyError
from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.jobs import states as job_states
from scrapy_ext.server.store.jobs.nodes import process_of
from scrapy_ext.server.store.jobs.placing import Notify, is_worth_a_turn, place_one
from scrapy_ext.server.store.jobs.rows import get_job
from scrapy_ext.server.store.jobs.states import Stamp

P = ParamSpec("P")
T = TypeVar("T")

#: Who a job was started, ended or taken back by, where that was nobody's wish.
RUNNER: Final = "runner"
#: Why a job has ended that no node could keep, and one whose process said nothing.
NODE_LOST: Final = "node_lost"
#: Jobs placed at once.
AT_ONCE: Final = 50


class Attempt(NamedTuple):
    """A job that a node has, for the so many-th time."""

    key: JobKey
    number: int

    def __str__(self) -> str:
        return f"{self.key}, attempt {self.number}"


class HeldJob(NamedTuple):
    """A job as its node looks at it."""

    attempt: Attempt
    placed: int
    state: JobState
    cancelled: bool


class AttemptStore:
    """The attempts of all nodes."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock

    async def place(self, notify: Notify | None = None) -> list[Attempt]:
        """Give pending jobs to the nodes that have room for them, up to :data:`AT_ONCE`; ``notify`` is called in
        the transaction of the job."""
        placed: list[Attempt] = []
        while len(placed) < AT_ONCE and await self._engine.glance(is_worth_a_turn):
            one = await self._engine.write(place_one, Stamp(RUNNER, self._clock()), notify)
            if one is None:
                break
            placed.append(Attempt(*one))
        return placed

    async def of_node(self, node: str) -> list[HeldJob]:
        """The jobs that a node has."""
        return await self._engine.read(_of_node, node)

    async def orphaned(self) -> list[str]:
        """Nodes that are gone, and whose jobs nobody has taken back yet."""
        return await self._engine.read(_orphaned)

    async def current(self, key: JobKey) -> int | None:
        """The number of the attempt that a job is in; None when no node has it."""
        return await self._engine.glance(_current, key)

    async def said(self, attempt: Attempt, reason: str) -> None:
        """Keep the reason that a job's process gives for its end. Raises :class:`ContractError` (403) when the attempt
        is over."""
        await self._engine.write(_said, attempt, reason)

    async def end(self, attempt: Attempt, reason: str | None, fields: Mapping[str, Any] | None = None) -> bool:
        """Note that a job's process has ended: for the reason that it gave itself; if it gave none or was asked to
        end, for ``reason``, or ``failed``. Returns whether the attempt was the job's."""
        return await self._engine.write(_end, attempt, reason, fields or {}, Stamp(RUNNER, self._clock()))

    async def give_back(self, attempt: Attempt) -> bool:
        """Let a job wait for another node, unless its process had come to an end of its own. Returns whether the
        attempt was the job's."""
        return await self._engine.write(_give_back, attempt, Stamp(RUNNER, self._clock()), None)

    async def reap(self, node: str, beat: int, most: int) -> list[Attempt]:
        """Take the jobs of a node that is dead, as its beat is still ``beat``, for other nodes. One that has lost its
        node ``most`` times is finished instead. Returns the attempts that are over. One whose row is locked for too
        long holds no other up; then the sessions of the node are ended, :class:`StoreBusyError` is raised, and the next
        call goes on."""
        if not await self._engine.write(_is_dead, node, beat):
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
            # A process that was stopped in the middle of a command keeps its locks for as long as it is stopped.
            if (process := process_of(node)) is not None:
                await self._engine.end_sessions(*process)
            raise busy
        return over


class FencedEngine:
    """An engine through which one attempt writes; everything else of it is as it was."""

    def __init__(self, engine: Engine, attempt: Attempt) -> None:
        self._engine = engine
        self._attempt = attempt

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def write(
        self,
        operation: Callable[Concatenate[Transaction, P], Coroutine[Any, Any, T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run an operation if the attempt is still the job's; raises :class:`ContractError` (403) if not."""

        async def fenced(tx: Transaction) -> T:
            await check_attempt(tx, self._attempt)
            return await operation(tx, *args, **kwargs)

        return await self._engine.write(fenced)


async def check_attempt(tx: Transaction, attempt: Attempt) -> None:
    """Raise :class:`ContractError` (403) unless the attempt is the job's, which it then stays until the commit."""
    row = await tx.fetchrow(
        "SELECT attempt FROM attempts WHERE project = $1 AND spider = $2 AND job = $3 FOR SHARE", *attempt.key
    )
    if row is None or row[0] != attempt.number:
        raise ContractError([over(attempt)])


def over(attempt: Attempt) -> Violation:
    """What is told to an attempt that is over."""
    return Violation(
        "attempt",
        f"{attempt.number} of job {attempt.key} {ATTEMPT_OVER}",
        "Nothing more of it is stored. The job goes on elsewhere, or is finished.",
        403,
    )


async def _orphaned(tx: Transaction) -> list[str]:
    rows = await tx.fetch("SELECT DISTINCT node FROM attempts WHERE node NOT IN (SELECT node FROM nodes) ORDER BY node")
    return [row[0] for row in rows]


async def _current(tx: Transaction, key: JobKey) -> int | None:
    row = await tx.fetchrow("SELECT attempt FROM attempts WHERE project = $1 AND spider = $2 AND job = $3", *key)
    return row[0] if row else None


async def _of_node(tx: Transaction, node: str) -> list[HeldJob]:
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
    changed = await tx.execute(
        "UPDATE attempts SET outcome = $5 WHERE project = $1 AND spider = $2 AND job = $3 AND attempt = $4",
        *attempt.key,
        attempt.number,
        reason,
    )
    if not changed:
        raise ContractError([over(attempt)])


async def _taken(tx: Transaction, attempt: Attempt) -> tuple[str | None] | None:
    """End an attempt; returns what its process said of its end, or None when the attempt is not the job's."""
    row = await tx.fetchrow(
        """DELETE FROM attempts WHERE project = $1 AND spider = $2 AND job = $3 AND attempt = $4
           RETURNING outcome""",
        *attempt.key,
        attempt.number,
    )
    return None if row is None else (row[0],)


async def _end(tx: Transaction, attempt: Attempt, reason: str | None, fields: Mapping[str, Any], stamp: Stamp) -> bool:
    taken = await _taken(tx, attempt)
    if taken is None:
        return False
    job = await get_job(tx, attempt.key, lock=True)
    if job is not None:
        said = taken[0]
        if said not in (None, SHUTDOWN):  # its work was done, whatever became of its process after that
            reason = said
        await job_states.end_job(tx, job, reason or said or FAILED, fields, stamp)
    return True


async def _give_back(tx: Transaction, attempt: Attempt, stamp: Stamp, most: int | None) -> bool:
    """``most``: how often a job may lose its node; None: this was no loss."""
    taken = await _taken(tx, attempt)
    if taken is None:
        return False
    job = await get_job(tx, attempt.key, lock=True)
    if job is None:
        return True
    losses = job.metadata.get("nodes_lost", 0) + (most is not None)
    job = job._replace(metadata={**job.metadata, "nodes_lost": losses}) if losses else job
    outcome = taken[0]
    if outcome not in (None, SHUTDOWN):
        await job_states.end_job(tx, job, outcome, {}, stamp)
    elif "cancelled_by" in job.metadata:
        await job_states.end_job(tx, job, job_states.CANCELLED, {}, stamp)
    elif most is not None and (losses >= most or job.spider.startswith(SCRIPT)):  # a script would begin anew
        await job_states.end_job(tx, job, NODE_LOST, {}, stamp)
    else:
        await job_states.wait_again(tx, job, stamp)
    return True


async def _is_dead(tx: Transaction, node: str, beat: int) -> bool:
    """Remove a node whose beat is still the same, so that nothing more is given to it and it notices."""
    row = await tx.fetchrow("SELECT beat FROM nodes WHERE node = $1 FOR UPDATE", node)
    if row is not None and row[0] != beat:
        return False
    await tx.execute("DELETE FROM nodes WHERE node = $1", node)
    return True
