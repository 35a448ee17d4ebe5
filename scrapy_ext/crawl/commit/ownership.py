"""Which process works on which slots, and how slots pass from one to another.

Slots belong to commit journals: the *assignment* journal of a frontier says to which. A process may read a slot, and
commit what it read, while the slot is assigned to its journal. What holds:

- Before a slot is taken from another journal, that journal is taken over
  (:func:`~scrapy_ext.crawl.commit.commitlog.take_over`): its writer can commit nothing more, and what it had begun to
  commit is done. So no two processes ever commit work of one slot, whatever their clocks say and however long one
  slept.
- The assignment is changed by compare-and-set, from the record that was read before anything was taken over. Each
  process changes it before it works, also when its slots stay the same: so nobody who looked earlier can still take
  them without looking again.
- What is known of partly finished batches goes with the slot.

With a fixed ``index/count`` a process takes its slots when it opens, from whoever has them: there is one process of
that index, and the newest is meant. With leases (:mod:`~scrapy_ext.crawl.frontier.leases`) it waits until an owner is
dead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import AttemptOver, Forbidden, NotFound, PlatformError
from scrapy_ext.client.retry import Retry
from scrapy_ext.crawl.commit.checkpoint import Assignment, Checkpoint, Progress
from scrapy_ext.crawl.commit.commitlog import CommitLog, take_over
from scrapy_ext.crawl.commit.journal import Fenced, Journal, Place
from scrapy_ext.crawl.commit.redo import Finisher

logger = logging.getLogger(__name__)

#: The slot of the journal that says which slots belong to whom.
ASSIGNMENT: Final = "assignment"
#: Commit journals are in slots that begin so.
COMMITS: Final = "commits-"
#: Close reason of a job whose work another process has taken over.
REPLACED: Final = "frontier_lease_lost"
#: Seconds that a process which no longer claims a slot has for passing it on.
_PATIENCE: Final = 30.0


class Ownership:
    """What this process owns of a frontier. ``writer`` is its own name, ``worker`` says for people which one it is."""

    def __init__(
        self,
        client: PlatformClient,
        finisher: Finisher,
        retry: Retry,
        *,
        project: int,
        frontier: str,
        journal: str,
        writer: str,
        worker: str,
    ) -> None:
        self._client = client
        self._finisher = finisher
        self._retry = retry
        self._project = project
        self._frontier = frontier
        self._name = journal
        self._writer = writer
        self._worker = worker
        self._assignment = self.journal(ASSIGNMENT)
        self._log: CommitLog | None = None
        #: Whether this worker, and no other, stores the items of ``start()``, which all of them run.
        self.stores_start_items = False
        #: Whether no process has written to the journal before this one.
        self._has_begun_it = False
        #: Journals whose last items could not be stored yet.
        self._refused = set[str]()

    @property
    def writer(self) -> str:
        """This process."""
        return self._writer

    @property
    def name(self) -> str:
        """The commit journal of this process."""
        return self._name

    @property
    def log(self) -> CommitLog:
        """The commit journal, once it is open."""
        if self._log is None:
            raise RuntimeError("the ownership is not open")
        return self._log

    def journal(self, slot: str) -> Journal:
        """A journal of the frontier."""
        place = Place(self._project, self._frontier, slot)
        return Journal(self._client.frontier, place, self._writer, self._retry)

    async def open(self, slots: set[int], is_over: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Take over the journal from the former process of the same job; ``slots`` are what is wanted. ``is_over`` is
        that of :class:`CommitLog`."""
        journal = self.journal(self._name)
        heir = Checkpoint(worker=self._worker, slots=sorted(slots))
        number, checkpoint = await take_over(journal, self._finisher, heir)
        self._has_begun_it = number == 1
        self._log = CommitLog(journal, number, checkpoint, is_over)

    async def assignment(self) -> tuple[int, Assignment]:
        """Who owns what, and the number of that record."""
        head = await self._assignment.head()
        return (0, Assignment()) if head is None else (head.number, Assignment.read(head.data))

    async def claim_all(self, slots: set[int]) -> None:
        """Take these slots from whoever has them, and give up all others."""
        # First of all what others may be waiting for.
        while not await self._give_up_all_but(slots):
            pass
        deadline = time.monotonic() + _PATIENCE
        while not await self._claim_all(slots, patient=time.monotonic() < deadline):
            pass

    async def _give_up_all_but(self, slots: set[int]) -> bool:
        number, assignment = await self.assignment()
        had = set(assignment.owners.get(self._name, ()))
        return had <= slots or await self.assign(number, assignment, had & slots)

    async def _claim_all(self, slots: set[int], *, patient: bool) -> bool:
        number, assignment = await self.assignment()
        for name, theirs in assignment.owners.items():
            if name == self._name or slots.isdisjoint(theirs):
                continue
            try:
                progress = await self.progress_of(name, slots, patient=patient)
            except AttemptOver:
                raise
            except Forbidden as error:
                # Its last items can be stored once its job has ended.
                if name not in self._refused:
                    self._refused.add(name)
                    logger.warning("The slots of journal %s cannot be taken over yet, trying again: %s", name, error)
                progress = None
            if progress is None:
                await asyncio.sleep(0.3)
                return False
            self.log.checkpoint.progress.add(progress.of(slots))
        return await self.assign(number, assignment, slots)

    async def progress_of(self, name: str, slots: set[int], *, patient: bool) -> Progress | None:
        """Take a journal over, and return its progress; None when its writer is about to pass the slots on."""
        journal = self.journal(name)
        head = await journal.head()
        if head is None:
            return Progress()
        checkpoint = Checkpoint.read(head.data)
        if not checkpoint.closed and patient and slots.isdisjoint(checkpoint.slots):
            return None
        has_ended = checkpoint.closed and checkpoint.worker
        number, checkpoint = await take_over(journal, self._finisher, Checkpoint(closed=True))
        if not has_ended:
            await self._finish_job_of(name)
        if checkpoint.redo is not None:
            checkpoint.redo = None
            with contextlib.suppress(Fenced):  # Somebody else takes over too, and tidies up.
                await journal.append(number + 1, checkpoint.write())
                await self._finisher.payloads.delete_all(f"{self._frontier}/{name}/")
        return checkpoint.progress

    async def _finish_job_of(self, name: str) -> None:
        """Finish the job of a journal that was taken over from a process that had not ended: its process may be dead,
        and nobody else would."""
        try:
            key = JobKey.parse(f"{self._project}/{name.removeprefix(COMMITS).replace('-', '/')}")
            await finish_replaced(self._client, key)
        except ContractError:  # The name is not that of a job's journal.
            return
        except PlatformError as error:
            logger.warning("The job of journal %s could not be finished: %s", name, error)

    async def assign(self, number: int, assignment: Assignment, slots: set[int], gone: Collection[str] = ()) -> bool:
        """Make these slots, and no others, ours, and strike out who is gone; False if somebody else changed the
        assignment meanwhile. ``number`` and ``assignment`` are what :meth:`assignment` gave before anything was taken
        over."""
        checkpoint = self.log.checkpoint
        had = set(assignment.owners.get(self._name, ()))
        checkpoint.progress.add(assignment.left.of(slots))
        checkpoint.slots = sorted(slots | had)
        if slots - had:
            await self.log.write()
        owners = {
            name: kept
            for name, theirs in assignment.owners.items()
            # Who has lost all of its slots is gone; who has none yet is waiting for some.
            if (kept := [slot for slot in theirs if slot not in slots]) or (not theirs and name not in gone)
        }
        owners[self._name] = sorted(slots)
        left = Progress()
        left.add(assignment.left)
        left.drop(slots)
        given_up = set(checkpoint.progress.done) - slots
        left.add(checkpoint.progress.of(given_up))
        start = assignment.start or self._name
        try:
            await self._assignment.append(number + 1, Assignment(owners, left, start).write())
        except Fenced:
            return False
        self.stores_start_items = start == self._name
        checkpoint.progress.drop(given_up)
        if checkpoint.slots != sorted(slots):
            checkpoint.slots = sorted(slots)
            await self.log.write()
        return True

    async def close(self) -> None:
        """Say that this process has ended. What it owns stays assigned to it: whoever wants it can have it."""
        self.log.checkpoint.closed = True
        # Every commit was carried out to its end.
        self.log.checkpoint.redo = None
        await self.log.write()

    async def forget(self) -> None:
        """Delete the journal, once the job is finished and cannot be resumed.

        Only if this process has begun it: a former process of the job that merely slept could write to an empty journal
        as if nobody had taken over from it. And only without progress: the slots that are still assigned to the journal
        are free for others, who must find what there is of it.
        """
        if self._has_begun_it and not self.log.checkpoint.progress.done:
            await self._client.frontier.delete_slot(self._project, self._frontier, self._name)

    async def has_successor(self) -> bool:
        """Whether the process that took this one's journal over runs the same job, rather than only its slots."""
        head = await self.journal(self._name).head()
        # Who takes only the slots signs for nobody.
        return head is not None and bool(Checkpoint.read(head.data).worker)


async def finish_replaced(client: PlatformClient, key: JobKey) -> None:
    """Finish a running job whose process was replaced, and may be dead. A job that a node runs is left to the node,
    which sees the process end."""
    try:
        metadata = await client.jobs.metadata(key)
    except NotFound:
        return
    if metadata.get("state") == JobState.RUNNING.value and "attempt" not in metadata:
        await client.jobq.update(key.project, key, state=JobState.FINISHED.value, close_reason=REPLACED)
        logger.info("Job %s ends as %s: this process goes on with what its own had", key, REPLACED)
