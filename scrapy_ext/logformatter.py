"""``QuietLogFormatter``: omits the log records of pages and items that no handler takes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.logformatter import LogFormatter
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from scrapy.logformatter import LogFormatterResult

#: The loggers that Scrapy logs pages and items to.
_PAGES: Final = logging.getLogger("scrapy.core.engine")
_ITEMS: Final = logging.getLogger("scrapy.core.scraper")


class ErrorFilter(logging.Filter):
    """A filter that takes errors alone: records below that level need not be made for it."""


class QuietLogFormatter(LogFormatter):
    """A ``LOG_FORMATTER`` without records of pages and items that no handler takes.

    Scrapy's root logger takes all levels, and its handlers choose. So with ``LOG_LEVEL = "INFO"`` a record of each page
    and item is made and dropped, which takes longer than storing an item. A subclass that logs them at another level
    must not call the methods of this class.
    """

    # Scrapy documents None, but its types lack it.
    def crawled(  # type: ignore[override]
        self, request: Request, response: Response, spider: Spider
    ) -> LogFormatterResult | None:
        return super().crawled(request, response, spider) if _is_taken(_PAGES) else None

    def scraped(  # type: ignore[override]
        self, item: Any, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult | None:
        return super().scraped(item, response, spider) if _is_taken(_ITEMS) else None


def _is_taken(logger: logging.Logger) -> bool:
    """Return true if a filter of a logger or a handler gets its DEBUG records. Not kept, since handlers may come and go
    during a crawl."""
    if not all(isinstance(each, ErrorFilter) for each in logger.filters):
        return True
    ancestor: logging.Logger | None = logger
    while ancestor is not None:
        for handler in ancestor.handlers:
            if handler.level <= logging.DEBUG:
                return True
        ancestor = ancestor.parent if ancestor.propagate else None
    return False
