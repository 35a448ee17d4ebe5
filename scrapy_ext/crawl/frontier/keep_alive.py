"""A crawl that waits for requests which others push into its frontier (``FRONTIER_KEEP_ALIVE``).

- A poll is one call for the stamps of all slots, and only slots whose stamp has changed are read. Polls come every
  ``FRONTIER_POLL_INTERVAL`` seconds, and, while there is no work, ever less often, down to one in five intervals.
- A crawl that waits for a number of seconds ends when nothing has come for so long. The own frontier of a job is
  deleted then, so its end has three steps: the platform accepts no more pushes, all slots are read once more, and only
  if they are empty the crawl is over. What was accepted before is crawled, and pushes are accepted again.
- The frontier with a name of the user's stays, and keeps what comes later for the next crawl.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final

import msgspec

from scrapy_ext.api.platform.feeding import Feed
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import NotFound, PlatformError

logger = logging.getLogger(__name__)

#: Multiple of the poll interval up to which the polls of a waiting crawl are apart, and the growth after each.
_MOST: Final = 5.0
_GROWTH: Final = 1.5
#: Field of a job's metadata with the time (ms) since which it waits for requests; null: it does not.
WAITS_SINCE: Final = "waits_since"
#: Field of a job's metadata with the name of the frontier into which requests for it are pushed.
FRONTIER: Final = "frontier"


class PushedFrontier:
    """The frontier of a crawl, as whoever pushes into it sees it. ``is_own``: the job's own, which is deleted with the
    end of the crawl. ``declared``: the crawl's part of its description."""

    def __init__(self, client: PlatformClient, job: JobKey, name: str, declared: Feed, *, is_own: bool) -> None:
        self._client = client
        self._job = job
        self._name = name
        self._declared = declared
        self.is_own = is_own
        #: False on a platform without pushes.
        self.is_known = True

    async def declare(self, *, is_open: bool = True) -> None:
        """Describe the frontier to the platform. Raises :class:`PlatformError`."""
        feed = msgspec.structs.replace(self._declared, open=is_open)
        try:
            await self._client.frontier.declare(self._job.project, self._name, feed)
        except NotFound:
            self.is_known = False

    async def stamps(self) -> dict[str, int] | None:
        """Return the stamps of the slots, None on a platform that has none. Raises :class:`PlatformError`."""
        if not self.is_known:
            return None
        try:
            return (await self._client.frontier.feed(self._job.project, self._name)).stamps
        except NotFound:
            return {}

    async def report(self, since: float | None) -> None:
        """Write to the job's metadata since when it waits (seconds since the epoch), None if it does not."""
        waits_since = None if since is None else int(since * 1000)
        await self._client.jobs.update(self._job, {FRONTIER: self._name, WAITS_SINCE: waits_since})


class KeepAlive:
    """Wait of a crawl. ``seconds``: time without work after which it ends, None: never. ``interval``: seconds between
    polls while there is work. ``clock`` returns seconds."""

    def __init__(
        self,
        frontier: PushedFrontier,
        seconds: float | None,
        interval: float,
        count: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._frontier = frontier
        self._seconds = seconds
        self._interval = interval
        self._count = count
        self._clock = clock
        self._idle_since: float | None = None
        self._stamps: dict[str, int] = {}
        self._pause = interval
        self._is_closed = False
        #: Start of the wait that the job names, None if it names none; () as that of a former process is not known.
        self._reported: float | tuple[()] | None = ()

    @property
    def pause(self) -> float:
        """Seconds until the next poll."""
        left = self._left
        return self._pause if left is None or left <= 0 else min(self._pause, left)

    @property
    def is_due(self) -> bool:
        """Return true if nothing has come for as long as the crawl waits."""
        left = self._left
        return left is not None and left <= 0

    @property
    def _left(self) -> float | None:
        if self._seconds is None or self._idle_since is None:
            return None
        return self._idle_since + self._seconds - self._clock()

    @property
    def is_closed(self) -> bool:
        """Return true if the platform accepts no more pushes, and the next read of all slots decides about the end."""
        return self._is_closed

    def works(self) -> None:
        """Record that there is work."""
        self._idle_since = None
        self._pause = self._interval

    def waits(self) -> None:
        """Record that there is no work."""
        if self._idle_since is None:
            self._idle_since = self._clock()

    async def begin_work(self) -> None:
        """Record that requests are about to be sent or were read. Raises :class:`PlatformError`."""
        self.works()
        await self.reopen()

    async def reopen(self) -> None:
        """Let the platform accept pushes again, if this crawl has ended that. Raises :class:`PlatformError`."""
        if self._is_closed:
            await self._frontier.declare()
            self._is_closed = False

    async def poll(self) -> set[int] | None:
        """Return the slots that have changed since the last poll; None for all."""
        self._count("frontier/keep_alive/polls")
        try:
            stamps = await self._frontier.stamps()
        except PlatformError as error:
            logger.debug("The frontier cannot be polled, trying again: %s", error)
            return set()
        changed = None if stamps is None else {int(slot) for slot in stamps if stamps[slot] != self._stamps.get(slot)}
        self._stamps = stamps or {}
        if changed:
            self._pause = self._interval
        elif self._idle_since is not None:
            self._pause = min(self._pause * _GROWTH, self._interval * _MOST)
        return changed

    async def is_over(self) -> bool:
        """Return true if the crawl may end. Call this after a read of all slots that returned nothing. Raises
        :class:`PlatformError`."""
        self.waits()
        if not self.is_due:
            return False
        if not self._frontier.is_own or self._is_closed:
            return True
        await self._frontier.declare(is_open=False)
        # Requests may have come since that read: the next one decides.
        self._is_closed = True
        return False

    async def report(self) -> None:
        """Write to the job since when the crawl waits, if that has changed. The wait after a short piece of work is
        another one, also if no report came between them."""
        idle_since = self._idle_since
        if idle_since == self._reported:
            return
        since = None if idle_since is None else time.time() - (self._clock() - idle_since)
        with contextlib.suppress(PlatformError):
            await self._frontier.report(since)
            self._reported = idle_since

    async def close(self) -> None:
        """End the wait: the job's own frontier accepts nothing any more. A failure is logged."""
        self.works()
        await self.report()
        if self._frontier.is_own and not self._is_closed:
            try:
                await self._frontier.declare(is_open=False)
            except PlatformError as error:
                logger.warning("The platform may still accept requests for this job: %s", error)
