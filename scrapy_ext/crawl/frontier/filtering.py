"""Duplicate requests of a crawl with a frontier: the user's filter decides first, then the frontier.

Without a filter of the user's, the frontier's fingerprints do what Scrapy's ``RFPDupeFilter`` does. With one
(``DUPEFILTER_CLASS``), the requests that pass it are new:

- For a subclass of ``RFPDupeFilter``, the frontier keeps across processes what the filter keeps in memory: a request
  that passes for the first time in a process is still a duplicate if another process has sent it.
- For any other filter, the frontier filters nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.misc import build_from_crawler

from scrapy_ext.api.platform.frontier import Batch
from scrapy_ext.crawl.commit.events import Stored
from scrapy_ext.crawl.commit.tracking import Entry
from scrapy_ext.crawl.frontier.identity import fingerprint_by

_FINGERPRINT: Final = re.compile(r"(?:[0-9a-f]{2})+")


class _Marked(RFPDupeFilter):
    """Scrapy's default filter, as a spider sees it: it filters requests that the spider has marked by ``request_seen``.
    The crawl's own requests are left to the frontier."""

    def __init__(self, crawler: Crawler) -> None:
        debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
        super().__init__(debug=debug, fingerprinter=crawler.request_fingerprinter)
        self._marked: set[bytes] = set()

    def request_seen(self, request: Request) -> bool:
        """Mark a request as seen; return true if it was already marked."""
        was_marked = self.has_marked(request)
        self._marked.add(self.fingerprinter.fingerprint(request))
        return was_marked

    def has_marked(self, request: Request) -> bool:
        return bool(self._marked) and self.fingerprinter.fingerprint(request) in self._marked


class Filtering:
    """Filters of one crawl. ``own`` is the class of the user's filter, None for Scrapy's default. ``seen`` has the
    pages stored by any crawl, whose requests are skipped."""

    def __init__(self, crawler: Crawler, own: Any | None = None, seen: SeenPages | None = None) -> None:
        self._crawler = crawler
        self.skipping = Skipping(crawler, seen)
        self._own: Any | None = None if own is None else build_from_crawler(own, crawler)
        # Writes the log and the stats as Scrapy does.
        self._log = _Marked(crawler)

    @property
    def filter(self) -> Any:
        """Dupefilter, for the attribute ``df`` of Scrapy's scheduler."""
        return self._log if self._own is None else self._own

    async def open(self) -> None:
        """Open the user's filter, as Scrapy's scheduler does."""
        if self._own is not None and (opened := self._own.open()) is not None:
            await maybe_deferred_to_future(opened)

    async def close(self, reason: str) -> None:
        """Close the user's filter."""
        if self._own is not None and (closed := self._own.close(reason)) is not None:
            await maybe_deferred_to_future(closed)

    def rejects(self, request: Request) -> bool:
        """Return true, and log the request, if the user's filter rejects it as a duplicate or a spider has marked
        it."""
        if request.dont_filter:
            return False
        is_rejected = self._log.has_marked(request) if self._own is None else self._own.request_seen(request)
        if is_rejected:
            self.filter.log(request, self._crawler.spider)
        return is_rejected

    def is_by_frontier(self, request: Request, *, is_known: bool) -> bool:
        """Return true if the frontier filters a request by Scrapy's fingerprint; ``is_known``: this process has sent
        it."""
        if request.dont_filter:
            return False
        return self._own is None or (isinstance(self._own, RFPDupeFilter) and not is_known)

    def log(self, request: Request) -> None:
        """Log and count a request that the frontier filters."""
        if self._crawler.spider is not None:
            self._log.log(request, self._crawler.spider)


class SeenPages(Protocol):
    """Record of the pages that any crawl has stored."""

    async def stored_among(self, fingerprints: Sequence[bytes]) -> set[bytes]:
        """Return the fingerprints of stored pages among these."""

    def note_stored(self, url_by_fingerprint: Iterable[tuple[bytes, str]]) -> None:
        """Record pages as stored."""

    def log(self, request: Request, spider: Spider | None) -> None:
        """Log a request that is skipped."""


class Skipping:
    """Skips requests whose page is in ``seen``, if it is given, and records the pages that this crawl stores."""

    def __init__(self, crawler: Crawler, seen: SeenPages | None) -> None:
        self._crawler = crawler
        self._seen = seen
        #: Fingerprints of stored pages among the batches that were looked up last.
        self._known: set[str] = set()

    @property
    def is_used(self) -> bool:
        return self._seen is not None

    async def look_up(self, batches: Sequence[Batch]) -> None:
        """Look up the pages of these batches, before their requests are tested."""
        if self._seen is not None:
            asked = [bytes.fromhex(fp) for batch in batches for fp, form in batch.requests if _may_be_skipped(fp, form)]
            self._known = {fp.hex() for fp in await self._seen.stored_among(asked)}

    def skips(self, stored: Stored, request: Request) -> bool:
        """Return true for a request, among those looked up last, that should not run."""
        if self._seen is None or stored.fp not in self._known or not _may_be_skipped(stored.fp, stored.form):
            return False
        self._seen.log(request, self._crawler.spider)
        return True

    def committed(self, entries: Iterable[Entry]) -> None:
        if self._seen is not None:
            fingerprinter = self._crawler.request_fingerprinter
            self._seen.note_stored(
                (fingerprint_by(fingerprinter, entry.request), entry.request.url)
                for entry in entries
                if entry.has_items
            )


def _may_be_skipped(fp: str, form: object) -> bool:
    """Return true for a request that Scrapy filters: not a start request, and without ``dont_filter``. Its fingerprint
    in the slot is then Scrapy's."""
    if not isinstance(form, dict) or form.get("dont_filter"):
        return False
    meta = form.get("meta")
    return not (isinstance(meta, dict) and meta.get("is_start_request")) and bool(_FINGERPRINT.fullmatch(fp))
