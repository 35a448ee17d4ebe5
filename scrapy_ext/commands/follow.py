"""``--follow``: the records of a job, shown as they are stored, until the job has ended.

Rules:

- A poll begins after the key of the last record, so that each record is shown once.
- The state of the job is read before its records, so that the poll after its end has all of them. One more poll
  follows, for records that the process sent last.
- The pause between polls is short after a new record, and grows while there is none, up to a bound.
- The deletion of the job ends the output. Only a job that was deleted before is an error.
- An outage of the platform is reported once. Requests are retried for an hour at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import Gone, NotFound, PlatformError
from scrapy_ext.client.platform.records import JobRecords
from scrapy_ext.client.retry import Attempts, Backoff, Limits, Outage, repeat
from scrapy_ext.commands.output import reading
from scrapy_ext.commands.subcommand import View

T = TypeVar("T")
Rows = list[dict[str, Any]]

#: Seconds between two polls: after a new record, and at most.
SHORTEST: Final = 0.25
LONGEST: Final = 5.0
_GROWTH: Final = 1.6
#: Retries during an outage: for an hour, and at least once a minute.
_RETRIES: Final = Limits(attempts=0, retry_time=3600.0, backoff=Backoff(SHORTEST, 15.0), longest_wait=60.0)
#: Maximum records shown together.
_GROUP: Final = 200
_ENDED: Final = (JobState.FINISHED.value, JobState.DELETED.value)


class _PollingOutage(Outage):
    """Report of an outage: a line for its begin, and one for its end."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say
        self._lasts = False

    def failed(self, what: str, error: Exception) -> None:
        if not self._lasts:
            self._say(f"the platform does not answer; the request is retried until it does: {error}")
        self._lasts = True

    def worked(self, what: str) -> None:
        if self._lasts:
            self._say("the platform answers again")
        self._lasts = False


class Poller:
    """Polls of the platform, which retry during an outage."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._outage = _PollingOutage(say)
        self._attempts = Attempts(_RETRIES, self._outage)
        self._pause = SHORTEST

    async def call(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a call, repeated during an outage; raises an error that a retry does not solve."""
        result = await repeat(call, self._attempts.failed)
        self.worked()
        return result

    async def failed(self, error: Exception) -> None:
        """Wait before the next attempt; raises the error when there is none."""
        await self._attempts.failed(error)

    def worked(self) -> None:
        """Report the end of an outage."""
        self._attempts.progressed()
        self._outage.worked("")

    async def pause(self, *, is_new: bool) -> None:
        """Wait for the next poll. ``is_new``: the last poll found something."""
        self._pause = SHORTEST if is_new else min(self._pause * _GROWTH, LONGEST)
        await asyncio.sleep(self._pause)


async def has_ended(client: PlatformClient, key: JobKey) -> bool:
    """Return true when a job has finished, or does not exist any more."""
    try:
        state = await client.jobs.field(key, "state")
    except NotFound:
        return True
    return state is None or state in _ENDED


async def followed(
    view: View, key: JobKey, records: JobRecords, *, start: int = 0, count: int | None = None, meta: Sequence[str] = ()
) -> AsyncIterator[Rows]:
    """Yield groups of a job's records from an index on, until the job has ended or ``count`` records were yielded.

    Raises :class:`Gone` for records that were deleted before.
    """
    poller = Poller(view.say)
    was_there = False
    last: str | None = None
    left = count
    polls_after_end = 0
    while polls_after_end < 2 and left != 0:
        polls_after_end += await poller.call(lambda: has_ended(view.client, key))
        number = 0
        try:
            stored = _stored_after(records, key, start=None if last else start, last=last, count=left, meta=meta)
            async with reading(stored) as groups:
                async for group_end, group in groups:
                    last = group_end
                    number += len(group)
                    yield group
            poller.worked()
            was_there = True
        except Gone as error:
            if not was_there and last is None:
                raise
            view.say(str(error))
            return
        except PlatformError as error:
            await poller.failed(error)
            polls_after_end = 0
        left = None if left is None else left - number
        if left != 0 and polls_after_end < 2:
            await poller.pause(is_new=bool(number))


async def _stored_after(
    records: JobRecords, key: JobKey, *, start: int | None, last: str | None, count: int | None, meta: Sequence[str]
) -> AsyncGenerator[tuple[str, Rows]]:
    """Yield the records stored now in groups, each with the key of its last record."""
    group: Rows = []
    group_end = ""
    stored = records.keyed(key, start=start, startafter=last, count=count, meta=meta)
    async with reading(stored) as each:
        try:
            async for record_key, record in each:
                group_end = record_key
                group.append(record)
                if len(group) == _GROUP:
                    yield group_end, group
                    group = []
        except PlatformError:
            # Records that arrived before the connection broke are not read again.
            if group:
                yield group_end, group
            raise
    if group:
        yield group_end, group


def first_of(view: View, total: int) -> int:
    """Return the index of the first record to show, of ``total`` stored ones, by ``--start`` and ``--tail``."""
    start: int = view.options.start
    tail: int | None = view.options.tail
    return start if tail is None else max(start, total - tail)
