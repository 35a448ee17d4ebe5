"""Headers that the user set on a request, told from those that Scrapy adds to it, where their values are equal.

The first are sent to the extraction service, the others are not. Nothing of this is in the meta of a request, which
spiders see and hand on:

- Before Scrapy's middlewares add headers, :func:`note` keeps the names of those that the user set.
- When a request leaves the downloader, :func:`mark_added` marks the values that Scrapy added, as
  :class:`AddedValue`. Copies of a request have the same values, also in a queue on disk, so a retry, a redirect or a
  copy that a callback makes does not take them for the user's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from weakref import WeakKeyDictionary

from scrapy import Request

#: Header names and values that Scrapy adds by itself.
DefaultHeaders = Collection[tuple[bytes, bytes]]

_own: WeakKeyDictionary[Request, frozenset[bytes]] = WeakKeyDictionary()


class AddedValue(bytes):
    """Value of a header that Scrapy added; equal to the plain bytes."""

    __slots__ = ()


def is_added(values: Iterable[bytes | None]) -> bool:
    """Return whether values of a header are marked as added by Scrapy."""
    return any(isinstance(value, AddedValue) for value in values)


def note(request: Request, defaults: DefaultHeaders) -> None:
    """Keep the names of headers that a request has, before Scrapy adds any, with just the values that it would add."""
    _own[request] = frozenset(
        name
        for name, values in request.headers.items()
        if values and not is_added(values) and all((name, value) in defaults for value in values)
    )


def own_names(request: Request) -> Collection[bytes]:
    """Return the names that :func:`note` kept."""
    return _own.get(request, ())


def mark_added(request: Request, defaults: DefaultHeaders, original: Request) -> None:
    """Mark the values that Scrapy added to a request, or to ``original``, which it was made of."""
    own = _own.get(request, _own.get(original))
    if own is None:
        return
    for name, values in [*request.headers.items()]:
        if name not in own and values and all((name, value) in defaults for value in values):
            request.headers[name] = [AddedValue(value) for value in values]
