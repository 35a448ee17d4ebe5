"""The commit journal of a process: its checkpoint, and writing it down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from scrapy_ext.crawl.commit.checkpoint import Checkpoint
from scrapy_ext.crawl.commit.journal import Fenced, Journal
from scrapy_ext.crawl.commit.redo import Finisher


class CommitLog:
    """What a process has done, in memory and in its journal.

    Change :attr:`checkpoint` and then :meth:`write`: what is changed together must be changed without waiting in
    between, since another task may write meanwhile.

    Where a journal is deleted when its job is over, ``is_over`` asks whether the job is: a process that slept past that
    would find an empty journal, which anybody can write to. The job is over before its journal is deleted, so it is
    enough to ask after each record.
    """

    def __init__(
        self,
        journal: Journal,
        number: int,
        checkpoint: Checkpoint,
        is_over: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self.name = journal.place.slot
        self.checkpoint = checkpoint
        self._journal = journal
        self._number = number
        self._is_over = is_over
        self._lock = asyncio.Lock()
        #: When it was last written, on the monotonic clock.
        self.written = time.monotonic()
        self.is_fenced = False

    async def write(self) -> None:
        """Write the checkpoint down; raises :class:`Fenced` when another process has taken over."""
        async with self._lock:
            if self.is_fenced:
                raise Fenced(self.name)
            began = time.monotonic()
            await self._append()
            if self._is_over is not None and await self._is_over():
                self.is_fenced = True
                raise Fenced(self.name)
            self.written = began

    async def _append(self) -> None:
        number = self._number + 1
        while True:
            try:
                await self._journal.append(number, self.checkpoint.write())
            except Fenced as fenced:
                if fenced.newest is None:
                    self.is_fenced = True
                    raise
                number = fenced.newest + 1
            else:
                self._number = number
                return


async def take_over(journal: Journal, finisher: Finisher, heir: Checkpoint) -> tuple[int, Checkpoint]:
    """Keep the writer of a journal from committing, do again what it may not have come to, and return the number of
    the last record and the checkpoint.

    ``heir`` says who takes over: its ``worker``, ``slots`` and ``closed`` replace those of the record.
    """
    while True:
        head = await journal.head()
        number, checkpoint = (0, Checkpoint()) if head is None else (head.number, Checkpoint.read(head.data))
        checkpoint.worker, checkpoint.slots = heir.worker, heir.slots
        checkpoint.idle, checkpoint.closed = False, heir.closed
        try:
            await journal.append(number + 1, checkpoint.write())
        except Fenced:
            continue  # It wrote once more, or somebody else was faster.
        if checkpoint.redo is not None:
            await finisher.again(checkpoint.redo)
        return number + 1, checkpoint
