"""What a request is called in its frontier slot: a fingerprint that stays the same when its parent runs again.

A slot takes each fingerprint once (platform-api.md, Frontier). So a request that Scrapy would filter as a
duplicate has Scrapy's fingerprint; and one with ``dont_filter``, which Scrapy would not, has one of its own,
made of what it comes from, so that a repeated run of its parent does not queue it a second time.
"""

from __future__ import annotations

import hashlib
import uuid

from scrapy import Request
from scrapy.utils.request import RequestFingerprinterProtocol

from scrapy_ext.crawl.parents import is_start_request
from scrapy_ext.crawl.tracking import Entry


class SlotFingerprints:
    """Fingerprints of one crawl's requests."""

    def __init__(self, fingerprinter: RequestFingerprinterProtocol) -> None:
        self._fingerprinter = fingerprinter
        #: How often each start request was met; its keys are cut, for there may be millions.
        self._starts: dict[bytes, int] = {}

    def plain(self, request: Request) -> bytes:
        """Scrapy's fingerprint."""
        return self._fingerprinter.fingerprint(request)

    def of(self, request: Request, plain: bytes, origin: Entry | None) -> str:
        """The fingerprint of a request in its slot; ``plain`` is Scrapy's, ``origin`` the entry that it is made for.

        A start request's is plain, though its ``dont_filter`` is set, so that a resumed crawl does not start
        again; where several start requests are the same, the others have a number. A child's with
        ``dont_filter`` is made of its parent's, its own, and how many equal ones there were before, whatever their
        order. What a component makes at no request's time has a random one.
        """
        fp = plain.hex()
        if not request.dont_filter:
            return fp
        if origin is not None:
            number = origin.children[fp] = origin.children.get(fp, 0) + 1
            return hashlib.sha1(f"{fp} {origin.fp} {number}".encode(), usedforsecurity=False).hexdigest()
        if not is_start_request(request):
            return uuid.uuid4().hex
        number = self._starts[plain[:8]] = self._starts.get(plain[:8], 0) + 1
        return fp if number == 1 else f"{fp}#{number}"
