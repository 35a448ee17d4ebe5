"""Pages that some crawl has stored, and the requests of the frontier that are skipped for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from scrapy import Request, Spider
from scrapy.crawler import Crawler

from scrapy_ext.api.platform.frontier import Batch
from scrapy_ext.crawl.commit.tracking import Entry, Stored

_FINGERPRINT: Final = re.compile(r"(?:[0-9a-f]{2})+")


class SeenPages(Protocol):
    """Which pages some crawl has stored."""

    async def stored_among(self, fingerprints: Sequence[bytes]) -> set[bytes]:
        """Those of these that were."""

    def note_stored(self, url_by_fingerprint: Iterable[tuple[bytes, str]]) -> None:
        """These are stored now."""

    def log(self, request: Request, spider: Spider | None) -> None:
        """A request was skipped."""


class Skipping:
    """Skips requests whose page is among ``seen``, if that is given, and notes those that this crawl stores."""

    def __init__(self, crawler: Crawler, seen: SeenPages | None) -> None:
        self._crawler = crawler
        self._seen = seen
        #: Of what was read last: fingerprints of pages that some crawl has stored.
        self._known: set[str] = set()

    async def look_up(self, batches: Sequence[Batch]) -> None:
        """Find out about the requests of these batches."""
        if self._seen is not None:
            asked = [bytes.fromhex(fp) for batch in batches for fp, form in batch.requests if _may_be_skipped(fp, form)]
            self._known = {fp.hex() for fp in await self._seen.stored_among(asked)}

    def skips(self, stored: Stored, request: Request) -> bool:
        """Whether a request of what was looked up last is not to be run."""
        if self._seen is None or stored.fp not in self._known or not _may_be_skipped(stored.fp, stored.form):
            return False
        self._seen.log(request, self._crawler.spider)
        return True

    def committed(self, entries: Iterable[Entry]) -> None:
        """What these requests have led to is stored."""
        if self._seen is not None:
            fingerprint = self._crawler.request_fingerprinter.fingerprint
            self._seen.note_stored(
                (fingerprint(entry.request), entry.request.url) for entry in entries if entry.has_items
            )


def _may_be_skipped(fp: str, form: Any) -> bool:
    """Whether a request is one that Scrapy filters: no start request, nor one with ``dont_filter``. Then its
    fingerprint in the slot is Scrapy's."""
    if not isinstance(form, dict) or form.get("dont_filter"):
        return False
    meta = form.get("meta")
    return not (isinstance(meta, dict) and meta.get("is_start_request")) and bool(_FINGERPRINT.fullmatch(fp))
