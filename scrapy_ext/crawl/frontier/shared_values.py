"""Mutable values that several requests share in ``meta`` or ``cb_kwargs``.

Requests in memory can fill one dict together, as when several callbacks fill one item. A request that another process
reads has copies instead (:mod:`scrapy_ext.crawl.frontier.serialize`), so that such a crawl stores incomplete data, and
gets a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from inspect import unwrap
from pathlib import Path
from typing import Any, Final

from scrapy import Request

logger = logging.getLogger(__name__)

#: Prefixes of ``meta`` keys of Scrapy and of this package, whose values may be copies.
_NOT_SHARED: Final = ("_", "extract_api", "frontier_", "redirect_", "retry_", "handle_httpstatus", "cookiejar")
#: Dropped requests between two searches for shared values, since a search examines all kept requests.
_SEARCH_EVERY: Final = 1000


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
