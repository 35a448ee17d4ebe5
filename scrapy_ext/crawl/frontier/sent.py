"""Requests that this process sent to the frontier and has not read back.

A request that is read back is the very object that the spider yielded, as long as it is kept here: values that its
``meta`` and ``cb_kwargs`` share with other requests stay shared, as in Scrapy's memory queues.

While the frontier has only requests that this process sent (*exclusive*), a new request need not be read back before it
runs. It is queued in memory at once (*direct*), and its batch, which its acknowledgement needs, is read later. So the
order of a crawl is Scrapy's, and no request waits for the platform. This is safe for these reasons:

- A direct request is known to be new: its fingerprint is one that no other process can have sent, nor this one in an
  earlier attempt of its parent, or it is not in the set of all fingerprints that this process has sent. When that set
  is full, no further request is direct.
- It is committed only after its batch was read (:mod:`scrapy_ext.crawl.frontier.results`). A process that dies before
  has changed nothing that shows; its successor reads the request from the frontier, or makes it again from its parent.
- A request is not direct while the frontier has older ones that were not read (:attr:`SentRequests.behind`). The head
  of a queue is read first, so the batch of a direct request must not be behind an unlimited number of others.

Requests in memory can fill one dict together, as when several callbacks fill one item. A request that another process
reads, or that could not be kept, has copies instead (:mod:`scrapy_ext.crawl.frontier.serialize`), so that such a crawl
stores incomplete data, and gets a warning (:class:`SharingWarning`).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Iterator
from inspect import unwrap
from pathlib import Path
from typing import Any, Final, NamedTuple

from scrapy import Request

from scrapy_ext.crawl.commit.tracking import Entry
from scrapy_ext.crawl.frontier.fingerprint_set import FingerprintSet, Recent

logger = logging.getLogger(__name__)

#: Limits of direct requests that were not read back, and of kept requests.
MAX_DIRECT: Final = 10_000
_MAX_KEPT: Final = 10_000
#: Limits of their bytes, which only requests with large bodies, ``meta`` or ``cb_kwargs`` reach.
MAX_DIRECT_BYTES: Final = 64 * 2**20
_MAX_KEPT_BYTES: Final = 64 * 2**20
#: Bytes of the object of a small request.
_OBJECT_BYTES: Final = 2048
#: Limit of the exact fingerprints, of 25 bytes each.
_MAX_KNOWN: Final = 2_000_000
#: Member of a stored request that identifies its object and process.
MARK: Final = "n"

#: Prefixes of ``meta`` keys of Scrapy and of this package, whose values may be copies.
_NOT_SHARED: Final = ("_", "extract_api", "frontier_", "redirect_", "retry_", "handle_httpstatus", "cookiejar")
#: Dropped requests between two searches for shared values, since a search examines all kept requests.
_SEARCH_EVERY: Final = 1000

#: Slot and fingerprint.
Key = tuple[int, str]


def bytes_of(record: bytes) -> int:
    """Return the bytes that a request takes in memory, estimated from the record that is sent: the JSON of its URL,
    headers, body, ``meta`` and ``cb_kwargs``."""
    return _OBJECT_BYTES + len(record)


class Kept(NamedTuple):
    """Request whose object is kept; ``made_by`` is the callback that yielded it, ``size`` its bytes."""

    mark: str
    request: Request
    made_by: Callable[..., Any] | None
    size: int


class SentRequests:
    """Requests that were sent. ``exclusive``: the frontier was empty, and no other process sends to it."""

    def __init__(self, *, exclusive: bool) -> None:
        self._exclusive = exclusive
        self._known = FingerprintSet()
        self._recent = Recent()
        self._direct: dict[Key, Entry] = {}
        self._direct_bytes = 0
        self._kept: dict[Key, Kept] = {}
        self._kept_bytes = 0
        self._process = secrets.token_hex(4)
        self._number = 0
        #: Requests in the frontier that are neither in memory nor read, if it is exclusive; some may be duplicates.
        self.behind = 0
        self._has_kept = False

    # ── fingerprints ──

    def knows(self, fp: bytes) -> bool:
        """Return true if this process is known to have sent a request with this fingerprint of Scrapy's."""
        return fp in self._known or fp in self._recent

    def remember(self, fp: bytes) -> None:
        """Record the fingerprint of a request that was sent."""
        if not self._exclusive:
            self._recent.add(fp)
        elif not self._known.add(fp):
            return
        elif len(self._known) >= _MAX_KNOWN:
            self._exclusive = False

    # ── requests that run before they are read ──

    @property
    def in_memory(self) -> bool:
        """Return true if all requests in the frontier that are not acknowledged are in the memory of this process."""
        return self._exclusive and not self.behind

    @property
    def only_direct(self) -> bool:
        """Return true if each request that was ever in the frontier was a direct one. Then the frontier has none but
        those whose batch was not read and those that are not acknowledged, and no read has to show that."""
        return self._exclusive and not self._has_kept

    @property
    def takes_direct(self) -> bool:
        return self.in_memory and len(self._direct) < MAX_DIRECT and self._direct_bytes < MAX_DIRECT_BYTES

    @property
    def has_direct(self) -> bool:
        """Return true if there are direct requests whose batch was not read."""
        return bool(self._direct)

    def add_direct(self, key: Key, entry: Entry) -> None:
        """Wait for the batch of a direct request."""
        self._direct[key] = entry
        self._direct_bytes += entry.request_bytes

    # ── requests that run after they are read ──

    def mark(self) -> str:
        self._number += 1
        return f"{self._process}.{self._number}"

    def keep(self, key: Key, kept: Kept) -> list[Kept]:
        """Keep a request until it is read back under its mark. Return those that had to be dropped for it, and will
        come back as copies."""
        self.behind += 1
        self._has_kept = True
        self._drop(key)
        self._kept[key] = kept
        self._kept_bytes += kept.size
        dropped: list[Kept] = []
        while len(self._kept) > _MAX_KEPT or self._kept_bytes > _MAX_KEPT_BYTES:
            if (oldest := self._drop(next(iter(self._kept)))) is not None:
                dropped.append(oldest)
        return dropped

    def kept(self) -> Iterable[Request]:
        return (kept.request for kept in self._kept.values())

    def nothing_is_behind(self) -> None:
        """Record that a read of each slot after the last write returned nothing: the requests that were not read were
        duplicates."""
        self.behind = self._kept_bytes = 0
        self._kept.clear()

    # ── requests that are read ──

    def take_direct(self, key: Key) -> Entry | None:
        entry = self._direct.pop(key, None)
        if entry is not None:
            self._direct_bytes -= entry.request_bytes
        return entry

    def take_kept(self, key: Key, form: object) -> Request | None:
        """Return the kept object of a request that was read, if there is one."""
        self.behind = max(0, self.behind - 1)
        kept = self._drop(key)
        is_same = kept is not None and isinstance(form, dict) and form.get(MARK) == kept.mark
        return kept.request if kept is not None and is_same else None

    def _drop(self, key: Key) -> Kept | None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._kept_bytes -= kept.size
        return kept


class SharingWarning:
    """Warning, once in a crawl, of values that requests share and that become copies."""

    def __init__(self) -> None:
        self._has_warned = False
        self._skipped = _SEARCH_EVERY

    def forgotten(
        self, request: Request, made_by: Callable[..., Any] | None, pending: Callable[[], Iterable[Request]]
    ) -> None:
        """Warn if a request that will come back as a copy shares a value with pending ones."""
        if self._has_warned or not any(_mutable_values(request)):
            return
        self._skipped += 1
        if self._skipped < _SEARCH_EVERY:
            return
        self._skipped = 0
        self._compare(request, made_by, pending(), "too many requests wait for all of them to stay in memory")

    def left(self, pending: Iterable[Request]) -> None:
        """Warn if requests that the crawl leaves to another process share a value."""
        if self._has_warned:
            return
        requests = [request for request in pending if any(_mutable_values(request))]
        seen: set[int] = set()
        for request in requests:
            values = dict(_mutable_values(request))
            for identity, place in values.items():
                if identity in seen:
                    self._warn(request, None, place, "the crawl ends before they have run")
                    return
            seen |= values.keys()

    def elsewhere(
        self, request: Request, made_by: Callable[..., Any] | None, pending: Callable[[], Iterable[Request]]
    ) -> None:
        """Warn if a request that another worker will run shares a value with pending ones."""
        if not self._has_warned and any(_mutable_values(request)):
            self._compare(request, made_by, pending(), "another worker runs some of them")

    def _compare(
        self, request: Request, made_by: Callable[..., Any] | None, others: Iterable[Request], why: str
    ) -> None:
        if (place := shared_place(request, others)) is not None:
            self._warn(request, made_by, place, why)

    def _warn(self, request: Request, made_by: Callable[..., Any] | None, place: str, why: str) -> None:
        self._has_warned = True
        source = f", yielded by {_line(made_by)}" if made_by is not None else f", for {_line(request.callback)}"
        logger.warning(
            "Requests share the object in %s, and get copies of it, because %s: a change by one callback is lost for "
            "the others. One of them is %s%s. Yield the data as items of their own, or keep it on the spider. "
            "No more such requests will be shown.",
            *(place, why, request, source),
        )


def shared_place(request: Request, others: Iterable[Request]) -> str | None:
    """Return the place of a mutable value that a request shares with one of the others, None if there is none."""
    values = dict(_mutable_values(request))
    for other in others:
        if other is not request:
            for identity, _ in _mutable_values(other):
                if identity in values:
                    return values[identity]
    return None


def _mutable_values(request: Request) -> Iterator[tuple[int, str]]:
    """Yield identity and place of each mutable value that JSON can hold; a request with others stays in the process."""
    for name, value in request.cb_kwargs.items():
        if type(value) in (dict, list, set):
            yield id(value), f"cb_kwargs[{name!r}]"
    for name, value in request.meta.items():
        if type(value) in (dict, list, set) and not str(name).startswith(_NOT_SHARED):
            yield id(value), f"meta[{name!r}]"


def _line(function: Callable[..., Any] | None) -> str:
    """Return file and line of a callback, for messages."""
    code = getattr(unwrap(function), "__code__", None) if function is not None else None
    if code is None:
        return "parse" if function is None else repr(function)
    return f"{code.co_name} ({Path(code.co_filename).name}, line {code.co_firstlineno})"
