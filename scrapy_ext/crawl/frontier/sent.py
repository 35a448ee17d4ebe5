"""Requests that this process sent to the frontier and has not read back.

A request that is read back is the very object that the spider yielded, as long as it is kept here: values that its
``meta`` and ``cb_kwargs`` share with other requests stay shared, as in Scrapy's memory queues.

While the frontier has only requests that this process sent (*exclusive*), a new request need not be read back before it
runs. It is queued in memory at once (*direct*), and its batch, which its acknowledgement needs, is read later. So the
order of a crawl is Scrapy's, and no request waits for the platform. This is safe for these reasons:

- A direct request is known to be new: its fingerprint is one that no other process can have sent, or it is not in the
  set of all fingerprints that this process has sent. When that set is full, no further request is direct.
- It is committed only after its batch was read (:mod:`scrapy_ext.crawl.frontier.results`). A process that dies before
  has changed nothing that shows; its successor reads the request from the frontier, or makes it again from its parent.
- A request is not direct while the frontier has older ones that were not read (:attr:`SentRequests.behind`). The head
  of a queue is read first, so the batch of a direct request must not be behind an unlimited number of others.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from scrapy import Request

from scrapy_ext.crawl.commit.tracking import Entry
from scrapy_ext.crawl.frontier.fingerprint_set import FingerprintSet, Recent

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

#: Slot and fingerprint.
Key = tuple[int, str]


def bytes_of(record: bytes) -> int:
    """Return the bytes that a request takes in memory, estimated from the record that is sent: the JSON of its URL,
    headers, body, ``meta`` and ``cb_kwargs``."""
    return _OBJECT_BYTES + len(record)


class _Kept(NamedTuple):
    mark: str
    request: Request
    made_by: Callable[..., Any] | None
    size: int


class SentRequests:
    """Requests that were sent. ``exclusive``: the frontier was empty, and no other process sends to it.

    ``on_copied(request, made_by)`` is called for a request that had to be dropped, and will come back as a copy.
    ``made_by`` is the callback that yielded it.
    """

    def __init__(self, *, exclusive: bool, on_copied: Callable[[Request, Callable[..., Any] | None], None]) -> None:
        self._exclusive = exclusive
        self._on_copied = on_copied
        self._known = FingerprintSet()
        self._recent = Recent()
        self._direct: dict[Key, Entry] = {}
        self._direct_bytes = 0
        self._kept: dict[Key, _Kept] = {}
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

    def keep(
        self, key: Key, mark: str, request: Request, made_by: Callable[..., Any] | None, size: int = _OBJECT_BYTES
    ) -> None:
        """Keep a request of ``size`` bytes until it is read back under its mark."""
        self.behind += 1
        self._has_kept = True
        self._drop(key)
        self._kept[key] = _Kept(mark, request, made_by, size)
        self._kept_bytes += size
        while len(self._kept) > _MAX_KEPT or self._kept_bytes > _MAX_KEPT_BYTES:
            forgotten = self._drop(next(iter(self._kept)))
            if forgotten is not None:
                self._on_copied(forgotten.request, forgotten.made_by)

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

    def take_kept(self, key: Key, form: Any) -> Request | None:
        """Return the kept object of a request that was read, if there is one."""
        self.behind = max(0, self.behind - 1)
        kept = self._drop(key)
        is_same = kept is not None and isinstance(form, dict) and form.get(MARK) == kept.mark
        return kept.request if kept is not None and is_same else None

    def _drop(self, key: Key) -> _Kept | None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._kept_bytes -= kept.size
        return kept
