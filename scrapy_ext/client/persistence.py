"""One call to the platform, repeated until it has worked: the crawl waits for the platform and says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from scrapy_ext.client.outage import Outage
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.waits import Backoff

T = TypeVar("T")

#: However long the server asks to wait, the call is tried again after so many seconds.
_LONGEST_WAIT: Final = 300.0


class Persistence:
    """Repeats calls. ``retry_time`` is how many seconds a call may keep failing; 0: for ever. ``outage`` reports
    them."""

    def __init__(self, retry_time: float, backoff: Backoff | None = None, outage: Outage | None = None) -> None:
        self._retry_time = retry_time
        self._backoff = backoff or Backoff(0.25, 10.0)
        self._outage = outage or Outage()

    async def until_done(self, call: Callable[[], Awaitable[T]], what: str) -> T:
        """The result of ``call``, which must be safe to repeat; raises its error when repeating is of no use.

        ``what`` says in the log what could not be done.
        """
        failures, failing_since = 0, 0.0
        try:
            while True:
                try:
                    result = await call()
                except PlatformError as error:
                    failures += 1
                    failing_since = failing_since if failures > 1 else time.monotonic()
                    wait = min(self._backoff.wait(failures, error.retry_after), _LONGEST_WAIT)
                    if not error.retryable or 0 < self._retry_time < time.monotonic() + wait - failing_since:
                        raise
                    self._outage.failed(what, error)
                    await asyncio.sleep(wait)
                else:
                    self._outage.worked(what)
                    return result
        finally:
            self._outage.given_up(what)
