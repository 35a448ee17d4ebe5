"""The close of a crawl, for its routed requests: errors that close it, and the grace time of requests under way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.client.extraction import ExtractError
from scrapy_ext.client.extraction.budget import MissingPriceError, OverBudgetError
from scrapy_ext.client.extraction.errors import AccountSuspendedError, KeyRefusedError
from scrapy_ext.client.extraction.ledger import LedgerError
from scrapy_ext.client.extraction.limiter import Closing
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, Timeout, timeout_at

T = TypeVar("T")

logger = logging.getLogger(__name__)

#: Close reasons for errors that every further request would get as well.
_FATAL: Final[Mapping[type[ExtractError], str]] = {
    KeyRefusedError: "extract_api_bad_key",
    AccountSuspendedError: "extract_api_suspended_account",
}
#: Close reason for errors that show that there is no extraction service at the address.
_UNAVAILABLE: Final = "extract_api_unavailable"
#: Close reasons by the budget that is used up.
_BUDGETS: Final = {
    "EXTRACT_API_MAX_REQUESTS": "extract_api_max_requests",
    "EXTRACT_API_MAX_COST": "extract_api_max_cost",
}


class CrawlEnd(NamedTuple):
    """End of the crawl because no further request would be answered: close reason, and failure or not."""

    reason: str
    is_failure: bool = True


def end_of(error: Exception, is_lost: Callable[[ExtractError], bool]) -> CrawlEnd | None:
    """Return the end of the crawl that follows from an error, None if further requests may be answered. ``is_lost``
    returns true for an error that each of them would have."""
    match error:
        case OverBudgetError():
            return CrawlEnd(_BUDGETS[error.setting], is_failure=False)
        case MissingPriceError():
            return CrawlEnd("bad_setting")
        case LedgerError():
            return CrawlEnd("extract_api_bad_ledger")
        case ExtractError() if is_lost(error):
            return CrawlEnd(_FATAL.get(type(error), _UNAVAILABLE))
    return None


class StopGrace:
    """Grace time, in seconds, of running requests when a crawl is stopped from outside (Ctrl-C, SIGTERM,
    ``crawler.stop()``).

    When the spider closes by itself, they have the timeout of any request, since their results belong to the crawl.
    After Ctrl-C, or under a runner with a grace time of its own, the crawl must not wait for a service that does not
    answer.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._seconds: float = names.EXTRACT_API_STOP_GRACE.read(crawler.settings)
        self._under_way: set[Timeout] = set()
        self._ends_at: float | None = None
        self._is_reported = False

    async def run(self, request: Awaitable[T]) -> T:
        """Return the outcome of a request; raises :class:`Closing` if it does not end within the grace time."""
        deadline = timeout_at(self._ends_at)
        self._under_way.add(deadline)
        try:
            async with deadline:
                return await request
        except TIMEOUT_ERRORS:
            if not deadline.expired():
                raise
            self._report()
            raise Closing("the grace time is over") from None
        finally:
            self._under_way.discard(deadline)

    def begin(self) -> None:
        """Begin the grace time, if the spider was stopped from outside."""
        if self._crawler.crawling or self._ends_at is not None:
            return
        loop = asyncio.get_running_loop()
        self._ends_at = loop.time() + self._seconds
        for deadline in self._under_way:
            deadline.reschedule(self._ends_at)

    def _report(self) -> None:
        if not self._is_reported:
            self._is_reported = True
            logger.warning(
                "%d requests have no answer of the extraction service %g s after the stop (EXTRACT_API_STOP_GRACE): "
                "they return to the queue",
                len(self._under_way),
                self._seconds,
            )
