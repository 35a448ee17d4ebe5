"""New requests of a crawl: each gets its fingerprint and slot, and is sent to the frontier or kept in this process."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import chain
from typing import Final

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ext.api.platform.frontier import MAX_REQUEST_BYTES, FrontierRequest
from scrapy_ext.crawl.commit.tracking import START, Entry, current
from scrapy_ext.crawl.frontier.filtering import Filtering
from scrapy_ext.crawl.frontier.identity import SlotFingerprints, host_of, slot_of
from scrapy_ext.crawl.frontier.memory import Memory
from scrapy_ext.crawl.frontier.sent import MARK, Kept, Key, SharingWarning, bytes_of
from scrapy_ext.crawl.frontier.serialize import NotSerializableError, request_to_json
from scrapy_ext.crawl.frontier.slots import Slots

logger = logging.getLogger(__name__)

#: Limits of a priority in the API. A request beyond them keeps its own; only its position in the queue is limited.
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1

_encode: Final = msgspec.json.Encoder().encode


class Enqueuing:
    """Sends the requests of a crawl to ``slots``, of which there are ``count``, or keeps them in this process.

    ``spreads``: whether the requests of a host have different slots.
    """

    def __init__(
        self, crawler: Crawler, memory: Memory, slots: Slots, filtering: Filtering, count: int, *, spreads: bool
    ) -> None:
        self._crawler = crawler
        #: Bound once, since the look-up takes as long as the count.
        self._count = crawler.stats.inc_value
        self._memory = memory
        self._slots = slots
        self._filtering = filtering
        self._slot_count = count
        self._spreads = spreads
        self._fingerprints = SlotFingerprints(crawler.request_fingerprinter)
        self._sharing = SharingWarning()

    def add(self, request: Request) -> bool:
        """Enqueue a request; return false for a duplicate that this process knows of, and for an invalid request.

        Errors of a fingerprinter are raised for a request of ``start()``, and end the crawl as in Scrapy. In a callback
        they would end the engine's worker, so they are logged.
        """
        try:
            return self._add(request)
        except Exception as error:  # No value of a spider's may end the engine's worker.
            if current.get() is START:
                raise
            logger.error("Request %s is refused: %s: %s", request, type(error).__name__, error)
            self._count("frontier/refused")
            return False

    def warn_of_shared(self) -> None:
        """Warn if requests that the crawl leaves to another process share a value."""
        self._sharing.left(self._pending())

    def _add(self, request: Request) -> bool:
        memory, sent = self._memory, self._memory.sent
        origin = memory.origin()
        if origin is not None and memory.is_replacement(origin, request):
            # A retry has its origin's fingerprint, which the slot has, so it continues in this process.
            origin.request = request
            self._push(origin)
            return True
        if self._filtering.rejects(request):
            return False
        plain = self._fingerprints.plain(request)
        is_known = sent.knows(plain)
        is_filtered = self._filtering.is_by_frontier(request, is_known=is_known)
        is_anywhere = is_filtered and "frontier_slot" not in request.meta
        # The slot has each request that this process sent, or will have it before this request's parent is committed.
        if is_anywhere and is_known:
            self._filtering.log(request)
            return False
        fp = self._fingerprints.of(request, plain, origin, is_filtered=is_filtered)
        slot = slot_of(request, self._slot_count, plain if self._spreads else None)
        # A request that runs again makes its children again, whose fingerprints their slots have.
        is_new = is_anywhere or (not is_filtered and (origin is None or origin.attempt == 1))
        is_direct = is_new and sent.takes_direct and memory.takes_direct
        mark = None if is_direct else sent.mark()
        try:
            record = self._record(request, fp, mark)
        except Exception as error:  # An object in the meta may raise any error.
            return self._keep_local(fp, request, origin, error)
        if mark is None:
            self._add_direct((slot, fp), request, bytes_of(record))
        else:
            self._keep_sent((slot, fp), mark, request, origin, bytes_of(record))
        self._slots.send(slot, record, soon=not memory.waiting)
        if is_anywhere:
            sent.remember(plain)
        return True

    def _add_direct(self, key: Key, request: Request, size: int) -> None:
        entry = self._memory.tracker.sent(*key, self._memory.own(request), host_of(request), size)
        self._memory.sent.add_direct(key, entry)
        self._memory.push(entry)

    def _keep_sent(self, key: Key, mark: str, request: Request, origin: Entry | None, size: int) -> None:
        made_by = origin.request.callback if origin is not None else None
        for dropped in self._memory.sent.keep(key, Kept(mark, request, made_by, size)):
            self._sharing.forgotten(dropped.request, dropped.made_by, self._pending)
        if not self._slots.owns(key[0]):
            self._sharing.elsewhere(request, made_by, self._pending)

    def _keep_local(self, fp: str, request: Request, parent: Entry | None, error: Exception) -> bool:
        if not request.dont_filter:
            if fp in self._memory.local:
                self._filtering.log(request)
                return False
            self._memory.local.add(fp)
        if not self._crawler.stats.get_value("scheduler/unserializable", 0):
            reason = error if isinstance(error, NotSerializableError) else repr(error)
            # The first words are those of Scrapy's scheduler, so that a search of the log finds it.
            logger.warning(
                "Unable to serialize request: %s - reason: %s - it stays in this process, and after a crash its parent "
                "makes it again. No more unserializable requests will be logged.",
                request,
                reason,
            )
        self._count("scheduler/unserializable")
        self._push(self._memory.tracker.local(fp, self._memory.own(request), host_of(request), parent))
        self._memory.wake()
        return True

    def _push(self, entry: Entry) -> None:
        """Queue a request that goes to no slot."""
        self._count("scheduler/enqueued")
        self._count("scheduler/enqueued/memory")
        self._memory.push(entry)

    def _record(self, request: Request, fp: str, mark: str | None) -> bytes:
        assert self._crawler.spider is not None  # noqa: S101 - a request comes from it
        form = request_to_json(request, self._crawler.spider)
        if mark is not None:
            form[MARK] = mark
        record = _encode(FrontierRequest(fp, form, p=min(max(-request.priority, _LOWEST), _HIGHEST)))
        if len(record) > MAX_REQUEST_BYTES:
            raise NotSerializableError(f"it is {len(record)} bytes of JSON, over {MAX_REQUEST_BYTES}")
        return record

    def _pending(self) -> Iterable[Request]:
        return chain(self._memory.sent.kept(), self._memory.tracker.stored_requests())
