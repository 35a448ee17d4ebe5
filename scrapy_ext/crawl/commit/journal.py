"""A journal: numbered records on the platform, to which only one writer can add the next.

A journal is a frontier slot of its own. Record number n is a request with the fingerprint ``n``, and a slot accepts
each fingerprint once (platform-api.md, Frontier): ``newcount`` 1 confirms the record, 0 reports a taken number. So an
append is a compare-and-set, the only one of the API. The rules:

- Each number is written by at most one writer, even with late calls.
- A writer whose next number was taken by another one has been replaced, and must stop (:class:`Fenced`). A process
  replaces the writer by taking the next number: the former writer can append nothing more.
- After a lost reply, the writer of a number is unknown until the record is read: it names its writer and the count of
  the writer's appends. If others have appended to it since, the writer has been replaced all the same, and
  ``Fenced.is_written`` says that the record is there. If it is deleted already, nobody can say.
- The newest record has the lowest priority number, so that a read of the queue's head returns it first. Older records
  are deleted from time to time; their fingerprints stay, so that no number becomes free again. The slot must not be
  deleted while a process may still write to it, unless a late writer finds out otherwise (:class:`CommitLog`,
  :meth:`~scrapy_ext.crawl.commit.leases.Ownership.forget`). The server deletes it with its job when it is in the
  job's own frontier, and then refuses to create it again, so that a late writer gets 410.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from scrapy_ext.api.platform.frontier import FrontierRequest
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.platform.frontier import Frontier
from scrapy_ext.client.retry import Retry
from scrapy_ext.crawl.commit.events import Checkpoint

T = TypeVar("T")

#: Appends after which old records are deleted.
_PRUNE_AFTER: Final = 50


class Fenced(Exception):  # noqa: N818 - a state, as the module says
    """Another process writes this journal now. If ``newest`` is given, it was this process itself, by an append that
    was interrupted before its reply. ``is_written``: the record is there, but its reply was lost, and another process
    has appended to it; false also if the record is no longer there."""

    def __init__(self, journal: str, newest: int | None = None, *, is_written: bool = False) -> None:
        super().__init__(
            f"Another process writes journal {journal} now: it has taken over the unfinished requests of this one. "
            f"Give each worker a job of its own, and run each job once"
        )
        self.newest = newest
        self.is_written = is_written


class UnreadableJournal(PlatformError):  # noqa: N818 - as its siblings are named
    """The journal holds a record that this version cannot read, or that is no record."""


class Place(NamedTuple):
    """Slot of a frontier that holds a journal."""

    project: int
    frontier: str
    slot: str


class Record(NamedTuple):
    """Record of a journal: its number, from 1, the append that wrote it, and its data."""

    number: int
    writer: str
    data: dict[str, Any]

    def read(self, kind: type[T]) -> T:
        """Convert the data to a type; raises :class:`UnreadableJournal`."""
        try:
            return msgspec.convert(self.data, kind, str_keys=True)
        except msgspec.ValidationError as error:
            raise UnreadableJournal(f"a journal has a record that this version cannot read ({error})") from None


def to_data(record: msgspec.Struct) -> dict[str, Any]:
    """Return a record in the form of a journal."""
    data: dict[str, Any] = msgspec.to_builtins(record, str_keys=True)
    return data


class Journal:
    """Journal, as one writer uses it. The name of the writer must be unique, such as a random one."""

    def __init__(self, client: Frontier, place: Place, writer: str, retry: Retry) -> None:
        self.place = place
        self._client = client
        self._writer = writer
        self._retry = retry
        self._since_pruned = 0
        self._appends = 0

    async def head(self) -> Record | None:
        return _newest(await self._records(1))

    def wrote(self, record: Record) -> bool:
        """Return true for a record of this writer."""
        return record.writer.partition("#")[0] == self._writer

    async def _records(self, count: int) -> list[Record]:
        """Return the newest records, that many or a few more."""
        batches = await self._client.read(*self.place, count)
        try:
            return [Record(int(fp), str(data.pop("writer")), data) for batch in batches for fp, data in batch.requests]
        except (ValueError, KeyError, AttributeError, TypeError):
            raise UnreadableJournal(
                f"slot {self.place.slot} of frontier {self.place.frontier} is no journal: it has other requests"
            ) from None

    async def append(self, number: int, data: dict[str, Any]) -> None:
        """Append the record after the newest; raises :class:`Fenced` if its number is taken."""
        self._appends += 1
        writer = f"{self._writer}#{self._appends}"
        request = FrontierRequest(str(number), {"writer": writer, **data}, p=-number)
        body = msgspec.json.encode(request) + b"\n"

        async def add() -> int:
            return await self._client.add(*self.place, body, attempts=1)

        async def written() -> list[Record]:
            return await self._records(_PRUNE_AFTER)

        if not await self._retry.until_done(add, f"write to journal {self.place.slot}"):
            records = await self._retry.until_done(written, f"read journal {self.place.slot}")
            head = _newest(records)
            if head is None or (head.number, head.writer) != (number, writer):
                ours = head is not None and self.wrote(head)
                is_written = any((record.number, record.writer) == (number, writer) for record in records)
                raise Fenced(self.place.slot, head.number if head and ours else None, is_written=is_written)
        self._since_pruned += 1
        if self._since_pruned >= _PRUNE_AFTER:
            await self._prune(number)

    async def _prune(self, newest: int) -> None:
        try:
            batches = await self._client.read(*self.place, 2 * _PRUNE_AFTER)
            old = [batch.id for batch in batches if all(int(fp) < newest for fp, _ in batch.requests)]
            await self._client.delete_batches(*self.place, old, attempts=1)
        except (PlatformError, ValueError):
            return  # They only waste space until the next attempt.
        self._since_pruned = 0


def _newest(records: list[Record]) -> Record | None:
    return max(records, default=None, key=lambda record: record.number)


class CommitLog:
    """Checkpoint of a process, in memory and in its journal.

    Change :attr:`checkpoint` and then call :meth:`write`. Changes that belong together must be made without an
    ``await`` in between, since another task may write meanwhile.

    ``is_over`` is needed if the journal is deleted at the end of its job. A process that slept past that moment finds
    an empty journal, to which anyone can write. The job ends before its journal is deleted, so a check after each
    record is enough.
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
        #: Time of the last append, on the monotonic clock.
        self.written = time.monotonic()
        self.is_fenced = False

    def has_lapsed(self, lease_time: float) -> bool:
        """Return true if other workers may consider this one dead, or another process writes the journal."""
        return self.is_fenced or time.monotonic() - self.written > lease_time

    async def write(self) -> None:
        """Append the checkpoint; raises :class:`Fenced` after a takeover by another process."""
        async with self._lock:
            if self.is_fenced:
                raise Fenced(self.name)
            began = time.monotonic()
            await self._append()
            if self._is_over is not None and await self._is_over():
                self.is_fenced = True
                raise Fenced(self.name)
            self.written = began

    async def check(self) -> None:
        """Raise :class:`Fenced` after a takeover, which a process that writes nothing does not notice."""
        async with self._lock:
            head = await self._journal.head()
            if head is not None and head.number > self._number and not self._journal.wrote(head):
                self.is_fenced = True
                raise Fenced(self.name)

    async def _append(self) -> None:
        number = self._number + 1
        while True:
            try:
                await self._journal.append(number, to_data(self.checkpoint))
            except Fenced as fenced:
                if fenced.newest is None:
                    self.is_fenced = True
                    raise
                number = fenced.newest + 1
            else:
                self._number = number
                return
