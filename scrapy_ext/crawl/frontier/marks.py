"""Parent of a request, and the headers that the user set: facts about a request beside its attributes.

Neither is in the meta of a request, which spiders read and copy.

The record of a request names its parent, after a resume as well. A spider middleware marks each request that a callback
yields (:class:`scrapy_ext.spidermiddlewares.ParentMiddleware`):

- The mark belongs to the request object. A request by which a downloader middleware replaces it, as a retry or a
  redirect, gets the mark when it leaves the downloader (:func:`hand_on`).
- The stored form of a request in the frontier has a member for it.
- A disk queue of Scrapy's own scheduler (JOBDIR without the frontier) stores only the meta of a request. There the mark
  is in the meta as well, until the request has been downloaded (:func:`to_meta`, :func:`from_meta`).

Headers that the user set are sent to the extraction service; those that Scrapy adds are not, even with equal values:

- Before Scrapy's middlewares add headers, :func:`note_headers` records the names of those that the user set.
- When a request leaves the downloader, :func:`mark_added` marks the values that Scrapy added, as :class:`AddedValue`.
  Copies of a request have the same values, also in a disk queue, so that they are not the user's in a retry, a
  redirect or a copy that a callback makes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec
from scrapy import Request
from scrapy.http import Headers

from scrapy_ext.crawl.commit.tracking import Entry, current

#: Member of the form in which the frontier stores a request.
_MEMBER: Final = "parent"
#: Meta key for disk queues.
_DISK_KEY: Final = "_scrapy_ext_parent"


class Parent(msgspec.Struct, frozen=True, array_like=True):
    """Index of the parent's request record, and its job: several jobs can share a frontier. ``writer``: attempt in
    whose stream the index is; None: it is that of the job."""

    record: int
    job: str
    writer: int | None = None

    def stored(self) -> list[int | str]:
        """Return the parent as JSON: that of a job with one worker has no writer."""
        return [self.record, self.job, *(() if self.writer is None else (self.writer,))]

    def named_by(self, job: str, writer: int | None) -> int | str | None:
        """Return the parent as the request record of a child names it: the platform resolves ``writer:index`` for a
        record of a stream. None: that record cannot name it."""
        if self.job != job or (writer is None and self.writer is not None):
            return None
        return self.record if self.writer is None else f"{self.writer}:{self.record}"


_parents: WeakKeyDictionary[Request, Parent] = WeakKeyDictionary()
#: Index of a request's own record.
_records: WeakKeyDictionary[Request, int] = WeakKeyDictionary()


def mark(request: Request, parent: Parent) -> None:
    _parents[request] = parent


def parent_of(request: Request) -> Parent | None:
    """Return the parent of a request, None for a start request, for one that no callback yielded, and without
    records."""
    return _parents.get(request) or _read(request.meta.get(_DISK_KEY))


def note_record(request: Request, index: int) -> None:
    _records[request] = index


def record_of(request: Request) -> int | None:
    return _records.get(request)


def hand_on(request: Request, other: Request) -> None:
    """Copy the parent and the record of a request to ``other``, which replaces it, unless it has its own."""
    if request in _parents:
        _parents.setdefault(other, _parents[request])
    if request in _records:
        _records.setdefault(other, _records[request])


def to_stored(request: Request, stored: dict[str, Any]) -> dict[str, Any]:
    """Add the parent of a request, if it has one, to its stored form."""
    parent = parent_of(request)
    if parent is not None:
        stored[_MEMBER] = parent.stored()
    return stored


def from_stored(request: Request, stored: Mapping[str, Any]) -> None:
    """Set the parent of a request that was read from storage; an unreadable one is ignored."""
    parent = _read(stored.get(_MEMBER))
    if parent is not None:
        mark(request, parent)


def to_meta(request: Request) -> None:
    """Write the parent of a request to its meta, for a disk queue."""
    parent = parent_of(request)
    if parent is not None:
        request.meta[_DISK_KEY] = parent.stored()


def from_meta(request: Request) -> None:
    """Move the parent of a request out of its meta."""
    parent = _read(request.meta.get(_DISK_KEY))
    if parent is not None:
        del request.meta[_DISK_KEY]
        mark(request, parent)


def _read(stored: object) -> Parent | None:
    try:
        return None if stored is None else msgspec.convert(stored, Parent)
    except msgspec.ValidationError:
        return None


def is_start_request(request: Request) -> bool:
    """Return true for a request of ``start()``, but not for a child that copied its meta."""
    is_child = isinstance(current.get(), Entry) or parent_of(request) is not None
    return bool(request.meta.get("is_start_request")) and not is_child


# ── headers ──

#: Header names and values that Scrapy adds by itself.
DefaultHeaders = Collection[tuple[bytes, bytes]]

_own: WeakKeyDictionary[Request, frozenset[bytes]] = WeakKeyDictionary()


class AddedValue(bytes):
    """Value of a header that Scrapy added; equal to the plain bytes."""

    __slots__ = ()


#: The values of requests are few, and the same for each.
_added: Final = lru_cache(maxsize=256)(AddedValue)


def lines_of(headers: Headers) -> Iterable[tuple[bytes, list[bytes]]]:
    """Return headers as they are stored. ``Headers.items`` looks each one up again, which takes three times as long."""
    return dict.items(headers)


def is_added(values: Iterable[bytes | None]) -> bool:
    """Return true if values of a header are marked as added by Scrapy."""
    return any(isinstance(value, AddedValue) for value in values)


def note_headers(request: Request, defaults: DefaultHeaders) -> None:
    """Record, before Scrapy adds headers, those of a request that have exactly the values that Scrapy would add."""
    _own[request] = frozenset(
        name
        for name, values in lines_of(request.headers)
        if values and not is_added(values) and all((name, value) in defaults for value in values)
    )


def own_names(request: Request) -> Collection[bytes]:
    """Return the names that :func:`note_headers` recorded."""
    return _own.get(request, ())


def mark_added(request: Request, defaults: DefaultHeaders, original: Request) -> None:
    """Mark the values that Scrapy added to a request or to ``original``, from which it was made."""
    own = _own.get(request, _own.get(original))
    if own is None:
        return
    for name, values in lines_of(request.headers):
        if name not in own and values and all((name, value) in defaults for value in values):
            values[:] = map(_added, values)
