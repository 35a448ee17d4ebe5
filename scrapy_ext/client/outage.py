"""Report of an outage of the platform, for all writers of a crawl together.

One warning when the first write fails, one a minute with the number of failures while any write still does, and one
line when all of them work again: a full disk or a platform that is away fails hundreds of writes.
"""

from __future__ import annotations

import logging
import time
from typing import Final

#: Seconds from one warning of an outage to the next.
_INTERVAL: Final = 60.0


class Outage:
    """Counts the failures of writes that are repeated. ``remedy`` is a sentence for whoever reads the log."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self.remedy = ""
        self._logger = logger or logging.getLogger(__name__)
        self._failing: dict[str, None] = {}
        self._failures = 0
        self._began = 0.0
        self._reported = 0.0

    def failed(self, what: str, error: Exception) -> None:
        """Report that ``what`` (a verb and its object, as "store items") failed and will be tried again."""
        now = time.monotonic()
        if not self._failing:
            self._failures, self._began = 0, now
        self._failing[what] = None
        self._failures += 1
        if self._failures == 1:
            self._warn(now, "Cannot %s now, trying until it works: %s", what, error)
        elif now - self._reported >= _INTERVAL:
            text = "Cannot %s for %d s now (%d failures), trying until it works: %s"
            self._warn(now, text, ", ".join(self._failing), now - self._began, self._failures, error)

    def worked(self, what: str) -> None:
        """Report that ``what`` was done."""
        if what in self._failing and self._ended(what):
            failures = "1 failure" if self._failures == 1 else f"{self._failures} failures"
            self._logger.info("The platform stores everything again, after %s", failures)

    def given_up(self, what: str) -> None:
        """Report that ``what`` is not tried any more."""
        self._ended(what)

    def _ended(self, what: str) -> bool:
        self._failing.pop(what, None)
        return not self._failing

    def _warn(self, now: float, text: str, *arguments: object) -> None:
        self._reported = now
        self._logger.warning(f"{text}%s", *arguments, f" {self.remedy}" if self.remedy else "")
