"""Which frontier slot a request belongs to, and which slots a worker owns.

A slot has its own queue and its own set of fingerprints, so the slot of a request must never change: it is a
pure function of the request's host over a fixed number of slots. Workers own whole slots; another number of
workers moves slots between them, and no fingerprint moves. One host is in one slot, so one worker crawls it
and politeness holds (platform-api.md, Frontier objects).
"""

from __future__ import annotations

import re
import zlib
from typing import Any, Final

import msgspec
from scrapy import Request
from scrapy.utils.httpobj import urlparse_cached

_WORKER: Final = re.compile(r"(\d{1,4})/(\d{1,4})", re.ASCII)


class Worker(msgspec.Struct, frozen=True):
    """Index of this worker, from 0, and the number of workers."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Worker | None:
        """Parse ``"index/count"``; return None for other text."""
        match = _WORKER.fullmatch(text.strip())
        if match is None:
            return None
        worker = cls(int(match[1]), int(match[2]))
        return worker if worker.index < worker.count else None

    def owns(self, slot: int) -> bool:
        """Return true if a slot belongs to this worker."""
        return slot % self.count == self.index


def host_of(request: Request) -> str:
    """Return the host of a request for politeness: ``download_slot`` if it has one, as in Scrapy's downloader."""
    slot: Any = request.meta.get("download_slot")
    return str(slot) if slot is not None else urlparse_cached(request).hostname or ""


def slot_of(request: Request, slots: int) -> int:
    """Return the slot of a request, 0 to ``slots - 1``.

    Meta ``frontier_slot`` overrides the host: a number is the slot itself, text is hashed in place of the host.
    """
    chosen: Any = request.meta.get("frontier_slot")
    if isinstance(chosen, int) and not isinstance(chosen, bool):
        return chosen % slots
    key = str(chosen) if chosen is not None else urlparse_cached(request).hostname or ""
    return zlib.crc32(key.lower().encode("utf-8", "surrogatepass")) % slots
