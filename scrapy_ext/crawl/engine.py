"""The only places where this package touches Scrapy's private names.

Scrapy 2.19 offers no public way to see that a request is finished, nor to wake the engine when requests
arrive from elsewhere (scrapy issues 6733 and 7978). What is used instead:

- ``engine._slot.inprogress`` is the set of requests between being handed out and being finished. A request
  leaves it only after its callback or errback is exhausted, every item went through all pipelines, and every
  child request was passed to ``enqueue_request``.
- ``engine._slot.nextcall.schedule()`` asks the engine to look for the next request now rather than at its
  next heartbeat, up to 5 seconds later.
- ``engine._start`` is ``start()``'s iterator, until it is exhausted.

:func:`watch` checks for them when the crawl opens and fails with a message that says what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler


class UnsupportedScrapyError(RuntimeError):
    """This version of Scrapy lacks a name that the frontier scheduler needs."""


class _WatchedSet(set[Request]):
    """A set of requests that reports every removal."""

    on_remove: Callable[[Request], None]

    def remove(self, request: Request) -> None:
        super().remove(request)
        self.on_remove(request)


def watch(crawler: Crawler, on_finished: Callable[[Request], None]) -> Callable[[], None]:
    """Call ``on_finished`` for each request when it is finished; returns a function that wakes the engine.

    Raises :class:`UnsupportedScrapyError`.
    """
    slot: Any = getattr(crawler.engine, "_slot", None)
    inprogress = getattr(slot, "inprogress", None)
    wake: Any = getattr(getattr(slot, "nextcall", None), "schedule", None)
    if not isinstance(inprogress, set) or not callable(wake):
        raise UnsupportedScrapyError(
            "this version of Scrapy does not tell when a request is finished: FrontierScheduler works with "
            "Scrapy 2.19. Install that version, or set FRONTIER_ENABLED = False."
        )
    watched = _WatchedSet(inprogress)
    watched.on_remove = on_finished
    slot.inprogress = watched
    return wake  # type: ignore[no-any-return]  # checked above


def is_between_stages(crawler: Crawler, request: Request) -> bool:
    """Whether a request has left the downloader, and no callback has it: a downloader middleware has just
    put another request in its place (a retry, a redirect)."""
    engine = crawler.engine
    slot: Any = getattr(engine, "_slot", None)
    scraper_slot = engine.scraper.slot
    return (
        slot is not None
        and request in slot.inprogress
        and request not in engine.downloader.active
        and (scraper_slot is None or request not in scraper_slot.active)
    )


def start_is_exhausted(crawler: Crawler) -> bool:
    """Whether ``start()`` has nothing more to yield."""
    return getattr(crawler.engine, "_start", None) is None
