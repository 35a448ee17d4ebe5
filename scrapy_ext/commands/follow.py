"""``--follow``: what a job writes, shown as it is written, until the job ends.

Rules that hold here:

- A reading goes on behind the key of the last record, so that none is shown twice and none is left out.
- Whether the job has ended is asked before the records are read: what it wrote before its end is read after that. One
  more reading follows, for what its process sent last.
- Between readings is a wait: a short one after something came, a longer one each time nothing did, up to a bound.
- A platform that is away is told once, and asked again until it answers, for an hour at most.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import NotFound, PlatformError
from scrapy_ext.client.platform.records import JobRecords
from scrapy_ext.client.retry import Backoff
from scrapy_ext.commands.subcommand import View
from scrapy_ext.commands.terminal.output import reading

T = TypeVar("T")
Rows = list[dict[str, Any]]

#: Seconds between two looks: after something came, and at most.
SHORTEST: Final = 0.25
LONGEST: Final = 5.0
_GROWTH: Final = 1.6
#: Seconds for which a platform may be away.
AWAY: Final = 3600.0
#: Seconds between two tries then, whatever the platform asks for.
_LONGEST_REST: Final = 60.0
#: Records that are shown together.
_TOGETHER: Final = 200
_ENDED: Final = (JobState.FINISHED.value, JobState.DELETED.value)


class Watch:
    """Looks at a platform again and again, past times when it is away."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._wait = SHORTEST
        self._backoff = Backoff(SHORTEST, 15.0)
        self._failures = 0
        self._away_since = 0.0

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """The answer to a call, however long the platform is away; raises what waiting does not mend."""
        while True:
            try:
                answer = await call()
            except PlatformError as error:
                await self.failed(error)
            else:
                self.answered()
                return answer

    async def failed(self, error: PlatformError) -> None:
        """Wait before the next try; raises the error when there is to be none."""
        if self._failures == 0:
            self._away_since = time.monotonic()
        self._failures += 1
        if not error.retryable or time.monotonic() - self._away_since > AWAY:
            raise error
        if self._failures == 1:
            self._say(f"the platform does not answer and is asked again until it does: {error}")
        await asyncio.sleep(min(self._backoff.wait(self._failures, error.retry_after), _LONGEST_REST))

    def answered(self) -> None:
        """The platform is there."""
        if self._failures:
            self._say("the platform answers again")
        self._failures = 0

    async def pause(self, *, something_came: bool) -> None:
        """Wait until the next look."""
        self._wait = SHORTEST if something_came else min(self._wait * _GROWTH, LONGEST)
        await asyncio.sleep(self._wait)


async def has_ended(client: PlatformClient, key: JobKey) -> bool:
    """Whether a job writes no more."""
    try:
        state = await client.jobs.field(key, "state")
    except NotFound:
        return True
    return state is None or state in _ENDED


async def followed(
    view: View, key: JobKey, records: JobRecords, *, start: int = 0, count: int | None = None, meta: Sequence[str] = ()
) -> AsyncIterator[Rows]:
    """The records of a job from an index on, as they come, until the job has ended or there were ``count``."""
    watch = Watch(view.say)
    last: str | None = None
    left = count
    looks_after_end = 0
    while looks_after_end < 2 and left != 0:
        looks_after_end += await watch.ask(lambda: has_ended(view.client, key))
        came = 0
        try:
            there = _behind(records, key, start=None if last else start, last=last, count=left, meta=meta)
            async with reading(there) as groups:
                async for behind, group in groups:
                    last = behind
                    came += len(group)
                    yield group
            watch.answered()
        except PlatformError as error:
            await watch.failed(error)
            looks_after_end = 0
        left = None if left is None else left - came
        if left != 0 and looks_after_end < 2:
            await watch.pause(something_came=bool(came))


async def _behind(
    records: JobRecords, key: JobKey, *, start: int | None, last: str | None, count: int | None, meta: Sequence[str]
) -> AsyncGenerator[tuple[str, Rows]]:
    """What is there now, in groups, each with the key of its last record."""
    group: Rows = []
    behind = last
    stored = records.keyed(key, start=start, startafter=last, count=count, meta=meta)
    async with reading(stored) as each:
        try:
            async for record_key, record in each:
                behind = record_key
                group.append(record)
                if len(group) == _TOGETHER:
                    yield behind, group
                    group = []
        except PlatformError:
            # What came before the connection broke is there, and not read again.
            if group and behind is not None:
                yield behind, group
            raise
    if group and behind is not None:
        yield behind, group


def add_follow_options(parser: argparse.ArgumentParser, what: str) -> None:
    """``--follow`` and ``--tail``."""
    parser.add_argument(
        "-f", "--follow", action="store_true", help=f"go on showing {what} as they come, until the job ends"
    )
    parser.add_argument("--tail", type=_tail, metavar="N", help="begin with the last N of those that are there")


def _tail(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(text)


def first_of(view: View, total: int) -> int:
    """The index of the first record to show, of ``total`` that are there."""
    start: int = view.options.start
    tail: int | None = view.options.tail
    return start if tail is None else max(start, total - tail)
