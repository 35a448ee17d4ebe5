"""Leases of slots: a worker claims slots, renews its lease, and takes over the slots of a dead one. It executes the
transitions of :mod:`~scrapy_ext.crawl.commit.assignment`: takes journals over, and changes the assignment.

Each process changes the assignment before it works, even if its slots stay the same. A process that has read the
assignment before can then take no slot without reading it again.

With ``FRONTIER_WORKER = "auto"`` workers have leases. Each writes to its commit journal at least three times in a lease
time. If a journal does not change for a whole lease time on another worker's clock, that worker considers its writer
dead and takes its slots over (:mod:`~scrapy_ext.crawl.commit.liveness`). A worker that was not dead, but slept or had
no connection, finds its journal taken over at its next commit, and stops; until it can write again it hands out no
request.

The workers of a group have leases, too. They are alive as long as the platform has their attempts, so the writes of a
worker that is considered dead are refused before its journal is taken over.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final, Protocol

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.job_data import ASSIGNMENT, attempt_of_journal, job_of_journal
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import AttemptOver, Forbidden, NotFound, PlatformError
from scrapy_ext.client.platform.slots import EachSlot, SlotCalls, Together
from scrapy_ext.client.retry import Retry
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.crawl.commit.assignment import Assignment, Step, is_about_to_give_up, next_step
from scrapy_ext.crawl.commit.events import Checkpoint, Progress
from scrapy_ext.crawl.commit.execution import Finisher, take_over
from scrapy_ext.crawl.commit.journal import CommitLog, Fenced, Journal, Place, to_data
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

#: Close reason of a job whose slots another process has taken over.
REPLACED: Final = "frontier_lease_lost"
#: Seconds between attempts to take over slots: the first pause, and the most while the platform refuses.
_PAUSE: Final = 0.3
_MOST_PAUSE: Final = 10.0
#: Seconds in which a process that no longer claims a slot must give it up.
_GIVE_UP_TIME: Final = 30.0
#: Factor by which the pause grows until the assignment is read again after a change, up to that of the liveness.
_GROWTH: Final = 1.5
#: Seconds of a pause, at most.
_LONGEST: Final = 3600.0
#: Rounds without a slot after which a worker says so: others may have died, whose slots it is about to get.
_SURPLUS: Final = 10


_NO_SLOT: Final = (
    "This worker has nothing to do until another one ends: the frontier has %d slots, each of which is in one of its "
    "%d workers. Run as many workers as it has slots, at most, or a new job with a higher FRONTIER_SLOTS"
)


class Liveness(Protocol):
    """Liveness of the workers of a frontier."""

    def has_lapsed(self) -> bool:
        """Return true if the others may consider this worker dead: it must hand out no request."""

    def soon(self, workers: int) -> float:
        """Return the seconds until the assignment is read again after a change, when there are so many workers: whoever
        waits for slots gets them from those that see it."""

    async def pause(self) -> None:
        """Wait until the next round."""

    async def renew(self) -> None:
        """Show the others that this worker is alive."""

    def begin(self) -> None:
        """Begin a round of observations, before the assignment is read."""

    async def live(self, names: Collection[str]) -> list[str]:
        """Return the journals among these whose writers are alive."""


class Ownership:
    """Slots of a frontier that this process owns.

    ``name``: its commit journal. ``worker``: its name in logs. ``together``: whether the platform has calls for several
    slots.
    """

    def __init__(
        self,
        client: PlatformClient,
        retry: Retry,
        *,
        project: int,
        frontier: str,
        name: str,
        worker: str,
        together: bool = False,
    ) -> None:
        self.client = client
        self.project = project
        self.frontier = frontier
        self.name = name
        #: Random name of this process.
        self.writer = secrets.token_hex(6)
        self.calls: SlotCalls = (Together if together else EachSlot)(client.frontier, project, frontier)
        self.finisher = Finisher(client, project, self.calls, retry)
        self._retry = retry
        self._worker = worker
        self._assignment = self.journal(ASSIGNMENT)
        self._log: CommitLog | None = None
        #: Whether this worker, and no other, stores the items of ``start()``, which all of them run.
        self.stores_start_items = False
        #: Whether this process wrote the first record of the journal.
        self.is_first = False
        self._is_new = False
        #: Seconds until the next attempt, by journal whose last items could not be stored yet.
        self._refused: dict[str, float] = {}
        #: Journals of others, by name: one that is taken over in several attempts is pruned.
        self._others: dict[str, Journal] = {}

    @property
    def log(self) -> CommitLog:
        """Commit journal of this process, after :meth:`open`."""
        if self._log is None:
            raise RuntimeError("the ownership is not open")
        return self._log

    def journal(self, slot: str) -> Journal:
        place = Place(self.project, self.frontier, slot)
        return Journal(self.client.frontier, place, self.writer, self._retry)

    async def open(
        self, slots: set[int], is_over: Callable[[], Awaitable[bool]] | None = None, *, is_new: bool = False
    ) -> None:
        """Take over the journal from the previous process of the same job.

        ``slots``: slots that this process will claim.
        ``is_over``: that of :class:`CommitLog`.
        ``is_new``: the frontier should be empty. If it is, nothing is read before it is written to.
        """
        journal = self.journal(self.name)
        heir = Checkpoint(worker=self._worker, slots=sorted(slots))
        number, checkpoint = await take_over(journal, self.finisher, heir, is_new=is_new)
        self.is_first = number == 1
        self._is_new = is_new and self.is_first
        self._log = CommitLog(journal, number, checkpoint, is_over)

    async def assignment(self) -> tuple[int, Assignment]:
        head = await self._assignment.head()
        return (0, Assignment()) if head is None else (head.number, head.read(Assignment))

    async def claim_all(self, slots: set[int]) -> None:
        """Take these slots from their owners, and give up all others."""
        if self._is_new and await self._claim_new(slots):
            return
        # Other workers may wait for the slots that this one no longer claims.
        while not await self._give_up_all_but(slots):
            pass
        deadline = time.monotonic() + _GIVE_UP_TIME
        while not await self._claim_all(slots, may_wait=time.monotonic() < deadline):
            pass

    async def _claim_new(self, slots: set[int]) -> bool:
        """Take the slots of a new frontier, which the first record names already. Return false if they have owners."""
        try:
            await self._assignment.append(1, to_data(Assignment().given(self.name, slots, Progress(), ())))
        except Fenced:
            return False
        self.stores_start_items = True
        return True

    async def _give_up_all_but(self, slots: set[int]) -> bool:
        number, assignment = await self.assignment()
        had = assignment.of(self.name)
        return had <= slots or await self.assign(number, assignment, had & slots)

    async def _claim_all(self, slots: set[int], *, may_wait: bool) -> bool:
        number, assignment = await self.assignment()
        for name in assignment.owners_of(slots, but=self.name):
            if attempt_of_journal(name) is not None:
                rule = f"or FRONTIER_NAME is that of a job with several workers, {job_of_journal(self.project, name)}"
                raise SettingError("PLATFORM_JOB", rule, "Resume that job with several workers.")
            pause = _PAUSE
            try:
                progress = await self.progress_of(name, slots, may_wait=may_wait)
            except AttemptOver:
                raise
            except Forbidden as error:
                # Items of its last commit can be stored after the end of its job.
                if name not in self._refused:
                    logger.warning("The slots of journal %s cannot be taken over yet, trying again: %s", name, error)
                pause = min(2 * self._refused.get(name, _PAUSE), _MOST_PAUSE)
                self._refused[name] = pause
                progress = None
            if progress is None:
                await asyncio.sleep(pause)
                return False
            self.log.checkpoint.progress.add(progress.of(slots))
        return await self.assign(number, assignment, slots)

    async def progress_of(self, name: str, slots: set[int], *, may_wait: bool) -> Progress | None:
        """Take over a journal and return its progress, None if its writer is about to give the slots up."""
        journal = self._others.setdefault(name, self.journal(name))
        head = await journal.head()
        if head is None:
            return Progress()
        checkpoint = head.read(Checkpoint)
        if may_wait and is_about_to_give_up(checkpoint, slots):
            return None
        has_ended = checkpoint.closed and checkpoint.worker
        number, checkpoint = await take_over(journal, self.finisher, Checkpoint(closed=True))
        if not has_ended:
            await self._finish_job_of(name)
        if checkpoint.redo is not None:
            checkpoint.redo = None
            with contextlib.suppress(Fenced):  # Another worker takes over as well, and cleans up.
                await journal.append(number + 1, to_data(checkpoint))
                await self.finisher.payloads.delete_all(f"{self.frontier}/{name}/")
        return checkpoint.progress

    async def _finish_job_of(self, name: str) -> None:
        """Finish the job of a process that was replaced before it ended: it may be dead. The job of a worker of a group
        goes on."""
        key = job_of_journal(self.project, name)
        if key is None or attempt_of_journal(name) is not None:
            return
        try:
            await finish_replaced(self.client, key)
        except PlatformError as error:
            logger.warning("The job of journal %s could not be finished: %s", name, error)

    async def assign(self, number: int, assignment: Assignment, slots: set[int], removed: Collection[str] = ()) -> bool:
        """Make exactly these slots the own ones, and remove the workers ``removed``; return false if the assignment was
        changed meanwhile. ``number`` and ``assignment`` are those that :meth:`assignment` returned before anything was
        taken over."""
        checkpoint = self.log.checkpoint
        had = assignment.of(self.name)
        checkpoint.progress.add(assignment.left.of(slots))
        checkpoint.slots = sorted(slots | had)
        if slots - had:
            await self.log.write()
        given_up = set(checkpoint.progress.done) - slots
        changed = assignment.given(self.name, slots, checkpoint.progress.of(given_up), removed)
        try:
            await self._assignment.append(number + 1, to_data(changed))
        except Fenced as fenced:
            if not fenced.is_written:
                return False
        if attempt_of_journal(self.name) is None:
            self.stores_start_items = changed.start == self.name
        checkpoint.progress.drop(given_up)
        if checkpoint.slots != sorted(slots):
            checkpoint.slots = sorted(slots)
            await self.log.write()
        return True

    async def close(self) -> None:
        """Record the end of this process. Its slots stay assigned to it until another process takes them over."""
        self.log.checkpoint.closed = True
        # Every commit is complete.
        self.log.checkpoint.redo = None
        await self.log.write()

    async def forget(self) -> None:
        """Delete the journal of a finished job that cannot be resumed.

        It is kept if an earlier process wrote to it: such a process may only sleep, and would then write to an empty
        journal as if it had not been replaced. It is also kept while it has progress: the slots are still assigned to
        it, and their next owner needs that progress.
        """
        if self.is_first and not self.log.checkpoint.progress.done:
            await self.client.frontier.delete_slot(self.project, self.frontier, self.name)

    async def start_items_of_others(self, key: JobKey) -> int:
        """Return the number of items of ``start()`` that other workers of a group have stored, or will. They are over,
        and write nothing more."""
        slots = await self._retry.until_done(
            lambda: self.client.frontier.slots(self.project, self.frontier), "read the slots of the frontier"
        )
        journals = [self.journal(slot) for slot in slots if job_of_journal(self.project, slot) == key]
        heads = [await self._retry.until_done(journal.head, "read a journal") for journal in journals]
        return max((head.read(Checkpoint).start_items for head in heads if head is not None), default=0)

    async def has_successor(self) -> bool:
        """Return true if the process that took over the journal runs the same job, not only its slots. The job of a
        worker of a group runs in the others."""
        if attempt_of_journal(self.name) is not None:
            return True
        head = await self.journal(self.name).head()
        # A process that takes only the slots writes no worker name.
        return head is not None and bool(head.read(Checkpoint).worker)


async def finish_replaced(client: PlatformClient, key: JobKey) -> None:
    """Finish a running job whose process was replaced and may be dead. A job that a node runs is left to the node,
    which notices the end of the process."""
    try:
        metadata = await client.jobs.metadata(key)
    except NotFound:
        return
    if metadata.get("state") == JobState.RUNNING.value and "attempt" not in metadata:
        await client.jobq.update(key.project, key, state=JobState.FINISHED.value, close_reason=REPLACED)
        logger.info("Job %s ends with close reason %s: this process has taken over its slots", key, REPLACED)


class Leases:
    """Maintains the share of one worker.

    ``on_change(slots)``: awaited with all owned slots, before some are given up and after some were taken. When it
    returns, no request of other slots runs.
    ``on_lost``: called with the error when this worker was replaced, or cannot keep its share.
    """

    def __init__(
        self,
        ownership: Ownership,
        slots: int,
        liveness: Liveness,
        *,
        on_change: Callable[[set[int]], Awaitable[None]],
        on_lost: Callable[[Exception], None],
    ) -> None:
        self._ownership = ownership
        self._slots = slots
        self._liveness = liveness
        self._on_change = on_change
        self._on_lost = on_lost
        #: Slots of the last change.
        self._active = set[int]()
        #: Number of the record of the assignment that was read last, and seconds until the next read.
        self._read = 0
        self._until_next = liveness.soon(1)
        #: Rounds in which there were more workers than slots, and none for this one.
        self._surplus = 0
        self._is_closed = False
        self._tasks: list[asyncio.Task[None]] = []

    async def join(self) -> None:
        """Join the workers, with the slots that are free."""
        while True:
            number, assignment = await self._ownership.assignment()
            mine = assignment.of(self._ownership.name)
            if await self._ownership.assign(number, assignment, mine):
                break
        await self._change_to(mine)
        try:
            await self.balance()
        except PlatformError as error:
            # The last items of a stopped worker cannot be stored while its job still counts as running.
            logger.warning("No slots are taken over yet, trying again: %s", error)

    def start(self) -> None:
        """Start the tasks, in the running loop: two, since giving slots up takes as long as a request does."""
        self._is_closed = False
        steps = ((self._liveness.renew, self._liveness.pause), (self.balance, self._pause))
        self._tasks = [asyncio.ensure_future(self._repeat(step, pause)) for step, pause in steps]

    async def close(self) -> None:
        self._is_closed = True  # Python 3.10 may lose a cancellation in a timeout
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeat(self, step: Callable[[], Awaitable[None]], pause: Callable[[], Awaitable[None]]) -> None:
        while not self._is_closed:
            try:
                await step()
            except Fenced as fenced:
                self._on_lost(fenced)
                return
            except PlatformError as error:
                logger.warning("The lease cannot be renewed, trying again: %s", error)
            except Exception as error:
                logger.exception("Unexpected error in the balance of slots")
                self._on_lost(error)
                return
            await pause()

    async def _pause(self) -> None:
        """Wait until the assignment is to be read again."""
        with contextlib.suppress(*TIMEOUT_ERRORS):
            async with timeout_after(self._until_next):
                await self._liveness.pause()
        self._until_next = min(_GROWTH * self._until_next, _LONGEST)

    async def balance(self) -> None:
        """Observe the other workers, and take or give up slots."""
        self._liveness.begin()
        number, assignment = await self._ownership.assignment()
        if number != self._read:
            self._read, self._until_next = number, self._liveness.soon(len(assignment.owners))
        await self._change(assignment.of(self._ownership.name))
        live = await self._liveness.live(assignment.owners.keys() - {self._ownership.name})
        step = next_step(assignment, self._ownership.name, live, self._slots)
        if step is None:
            is_surplus = len(live) >= self._slots and not assignment.of(self._ownership.name)
            self._surplus = self._surplus + 1 if is_surplus else 0
            if self._surplus == _SURPLUS:
                logger.warning(_NO_SLOT, self._slots, len(live) + 1)
            return
        mine = assignment.of(self._ownership.name)
        if step.slots < mine:
            await self._give_up(number, assignment, mine, step.slots)
        elif step.slots > mine:
            await self._take(number, assignment, step)
        else:
            await self._complete(step.removed)
            await self._ownership.assign(number, assignment, mine, step.removed)

    async def _complete(self, names: Collection[str]) -> None:
        """Complete the last commits of dead workers of a group that have no slots: one may have run ``start()``. Other
        workers complete their own, when their jobs are resumed."""
        for name in names:
            if attempt_of_journal(name) is not None:
                await self._ownership.progress_of(name, set(), may_wait=False)

    async def _take(self, number: int, assignment: Assignment, step: Step) -> None:
        for name in assignment.owners_of(step.slots, but=self._ownership.name):
            logger.info("Worker %s has ended or is dead: its slots are taken over", name)
            progress = await self._ownership.progress_of(name, step.slots, may_wait=False)
            if progress is not None:
                self._ownership.log.checkpoint.progress.add(progress.of(step.slots))
        if await self._ownership.assign(number, assignment, step.slots):
            logger.info("This worker owns slots %s now", sorted(step.slots))
            await self._change(step.slots)

    async def _give_up(self, number: int, assignment: Assignment, mine: set[int], kept: set[int]) -> None:
        await self._change(kept)
        if await self._ownership.assign(number, assignment, kept):
            logger.info("This worker gives up slots %s", sorted(mine - kept))
        else:
            # The assignment was changed meanwhile. The slots are own ones only if it still says so.
            _, changed = await self._ownership.assignment()
            await self._change(changed.of(self._ownership.name))

    async def _change(self, slots: set[int]) -> None:
        if slots != self._active:
            await self._change_to(slots)

    async def _change_to(self, slots: set[int]) -> None:
        await self._on_change(slots)
        self._active = set(slots)
