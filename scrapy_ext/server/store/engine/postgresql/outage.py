"""Whether the database is away, which the log tells once when it goes and once when it is back."""

from __future__ import annotations

import logging
import time

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreAwayError
from scrapy_ext.server.store.engine.postgresql.errors import translated

logger = logging.getLogger(__name__)


class Outage:
    """What the attempts of an engine have seen. ``cause`` is why the database cannot be reached, None when it can.
    ``quiet``: without the log, where others see the same."""

    def __init__(self, url: DatabaseUrl, *, quiet: bool = False) -> None:
        self._url = url
        self._level = logging.DEBUG if quiet else logging.WARNING
        self._began = self._last = 0.0
        self.cause: str | None = None

    def failed(self, error: BaseException) -> None:
        """An attempt has failed; whatever but the loss of a connection is none of this."""
        told = translated(error, self._url)
        if not isinstance(told, StoreAwayError):
            return
        self._last = time.monotonic()
        if self.cause is None:
            self._began = self._last
            logger.log(self._level, "%s Calls wait for it.", told)
        self.cause = str(told)

    def worked(self, began: float) -> None:
        """An attempt that began then has worked. One that was under way when another failed proves nothing."""
        if self.cause is not None and began > self._last:
            self.cause = None
            logger.log(
                min(self._level, logging.INFO), "%s is back after %.1f s", self._url, time.monotonic() - self._began
            )
