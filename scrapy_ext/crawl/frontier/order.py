"""Order of requests of one host and priority in the memory of a crawl."""

from __future__ import annotations

import logging
from typing import Any, Final, NamedTuple, Self

from scrapy import Request
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_ext import settings as names
from scrapy_ext.settings import SettingError

DEPTH_FIRST: Final = "depth-first"
BREADTH_FIRST: Final = "breadth-first"

logger = logging.getLogger(__name__)


class Order(NamedTuple):
    """Order of requests. ``newest_first``: as in Scrapy's LIFO queues; ``start_last``: start requests follow the
    others, oldest first or, with ``start_newest_first``, newest first."""

    newest_first: bool
    start_last: bool
    start_newest_first: bool = False

    @classmethod
    def of(cls, settings: BaseSettings) -> Self:
        """Return the order of ``FRONTIER_ORDER``, else that of Scrapy's memory queues. Raises :class:`SettingError`."""
        asked: str | None = names.FRONTIER_ORDER.read(settings)
        if asked == DEPTH_FIRST:
            return cls(newest_first=True, start_last=True)
        if asked == BREADTH_FIRST:
            return cls(newest_first=False, start_last=False)
        if asked is not None:
            raise SettingError(
                "FRONTIER_ORDER",
                f"must be {DEPTH_FIRST!r} or {BREADTH_FIRST!r}, got {asked[:60]!r}",
                "Leave it out for the order of SCHEDULER_MEMORY_QUEUE, depth-first by default.",
            )
        start = settings["SCHEDULER_START_MEMORY_QUEUE"]
        return cls(
            newest_first=_is_lifo(settings["SCHEDULER_MEMORY_QUEUE"]),
            start_last=bool(start),
            start_newest_first=bool(start) and _is_lifo(start),
        )

    def is_last(self, request: Request) -> bool:
        """Return true if a request follows the others of its host and priority."""
        return self.start_last and bool(request.meta.get("is_start_request"))


def warn_of_own_queues(settings: BaseSettings) -> None:
    """Warn of queue classes of the project, whose order the frontier does not keep."""
    turns, memory = (load_object(settings[name]) for name in ("SCHEDULER_PRIORITY_QUEUE", "SCHEDULER_MEMORY_QUEUE"))
    if turns is not DownloaderAwarePriorityQueue and not turns.__module__.startswith("scrapy_ext."):
        _warn_of("SCHEDULER_PRIORITY_QUEUE")
    if memory.__module__ != "scrapy.squeues":
        _warn_of("SCHEDULER_MEMORY_QUEUE")


def _warn_of(name: str) -> None:
    logger.warning(
        "%s is not used with the frontier, whose order is that of Scrapy's default queues or of FRONTIER_ORDER. To "
        "have the order of this class, set FRONTIER_ENABLED = False",
        name,
    )


def _is_lifo(queue: Any) -> bool:
    # Scrapy's queue classes tell by their bases alone, and queuelib's LIFO queue is a subclass of the FIFO one.
    bases = " ".join(base.__name__.lower() for base in load_object(queue).__mro__)
    return "lifo" in bases or "fifo" not in bases
