"""Fingerprint and slot of a request in the frontier, the same when its parent runs again.

A slot has its own queue and its own set of fingerprints, and accepts each fingerprint once (platform-api.md, Frontier).

- The slot is a pure function of the request's host over a fixed number of slots, so it never changes. Workers own whole
  slots: with another number of workers, slots move between them, and no fingerprint moves. One host is in one slot, so
  that one worker crawls it, with its politeness limits. In a job with several workers, which share these limits, it is
  a function of host and fingerprint, and the same page is in one slot.
- A request that Scrapy would filter as a duplicate has Scrapy's fingerprint. Any other has one of its own, made of its
  parent's and its own. A repeated run of its parent does not queue it a second time, and a later request for the same
  page, which Scrapy has not seen before, is not taken for a duplicate of it.
"""

from __future__ import annotations

import hashlib
import logging
import re
import uuid
from typing import Any, Final

from scrapy import Request
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.request import RequestFingerprinterProtocol, fingerprint

from scrapy_ext.api.platform.frontier import META_KEY, chosen_slot, slot_of_netloc, spread_slot
from scrapy_ext.crawl.commit.tracking import Entry
from scrapy_ext.crawl.frontier.marks import is_start_request

logger = logging.getLogger(__name__)

#: A fingerprint of Scrapy's as text.
_HEX: Final = re.compile(r"[0-9a-f]{40}")


class FingerprintError(TypeError):
    """The fingerprinter returned a value of a type that cannot be stored."""


def fingerprint_by(fingerprinter: RequestFingerprinterProtocol, request: Request) -> bytes:
    """Return the fingerprint that a fingerprinter gives a request, as bytes; raises its errors and
    :class:`FingerprintError`.

    Scrapy compares fingerprints only, so one of another type works there: text, as of Scrapy's former function
    ``request_fingerprint``, numbers, and tuples of these.
    """
    given: object = fingerprinter.fingerprint(request)
    if isinstance(given, bytes) and given:
        return given
    if isinstance(given, str) and _HEX.fullmatch(given):
        return bytes.fromhex(given)
    if not _is_plain(given):
        raise FingerprintError(
            f"{type(fingerprinter).__name__} (REQUEST_FINGERPRINTER_CLASS) returned {type(given).__name__}, but a "
            "fingerprint must be bytes"
        )
    return hashlib.sha1(repr(given).encode(), usedforsecurity=False).digest()


def _is_plain(value: object) -> bool:
    """Return true for a value whose ``repr`` is the same in each process."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | bytes | int | float)


class SlotFingerprints:
    """Fingerprints of one crawl's requests in their slots."""

    def __init__(self, fingerprinter: RequestFingerprinterProtocol) -> None:
        self._fingerprinter = fingerprinter
        self._has_warned = False
        #: Number of equal start requests, by a part of the fingerprint, since there may be millions.
        self._starts: dict[bytes, int] = {}

    def plain(self, request: Request) -> bytes:
        """Return Scrapy's fingerprint; errors of the fingerprinter are raised except for a request with
        ``dont_filter``.

        Scrapy computes no fingerprint for such a request, so an error must not stop it: it gets the one of Scrapy's
        default fingerprinter.
        """
        try:
            return fingerprint_by(self._fingerprinter, request)
        except Exception as error:
            if not request.dont_filter:
                raise
            if not self._has_warned:
                self._has_warned = True
                logger.warning(
                    "No fingerprint of %s: %s: %s. Requests with dont_filter run all the same",
                    *(request, type(error).__name__, error),
                )
            return fingerprint(request)

    def of(self, request: Request, plain: bytes, origin: Entry | None, *, is_filtered: bool) -> str:
        """Return the fingerprint of a request in its slot.

        ``plain``: Scrapy's fingerprint.
        ``origin``: entry of the request that led to it.
        ``is_filtered``: whether the slot filters it as a duplicate of any other request for the same page.

        A request that is not filtered has a fingerprint of its own. That of a start request has a number, its position
        among equal ones, so that a resumed crawl does not start again. That of a child is made of its parent's, its
        own, and the number of equal ones before it, whatever their order. That of a request that a component makes
        outside of callbacks is random.
        """
        fp = plain.hex()
        if is_filtered:
            return fp
        if origin is not None:
            number = origin.children[fp] = origin.children.get(fp, 0) + 1
            return hashlib.sha1(f"{fp} {origin.fp} {number}".encode(), usedforsecurity=False).hexdigest()
        if not is_start_request(request):
            return uuid.uuid4().hex
        number = self._starts[plain[:8]] = self._starts.get(plain[:8], 0) + 1
        return f"{fp}#{number}"


def host_of(request: Request) -> str:
    """Return the host of a request for politeness: ``download_slot`` if it has one, as in Scrapy's downloader."""
    slot: object = request.meta.get("download_slot")
    return str(slot) if slot is not None else urlparse_cached(request).hostname or ""


def slot_of(request: Request, slots: int, spread_by: bytes | None = None) -> int:
    """Return the slot of a request, 0 to ``slots - 1``. ``spread_by``: its fingerprint by Scrapy, in a frontier that
    spreads hosts over slots.

    Meta ``frontier_slot`` overrides the host: a number is the slot itself, text is hashed in place of the host.
    """
    chosen: Any = request.meta.get(META_KEY)
    if chosen is None and spread_by is not None:
        netloc = urlparse_cached(request).netloc
        return spread_slot(netloc, spread_by.hex(), slots, request.meta.get("cookiejar"))
    if chosen is None:
        return slot_of_netloc(urlparse_cached(request).netloc, slots)
    return chosen_slot(chosen, slots)
