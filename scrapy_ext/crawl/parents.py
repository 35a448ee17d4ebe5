"""Which request a request was made by, carried in its meta, so that its record can say so after a resume too.

A spider middleware marks each request that a callback yields (:class:`scrapy_ext.spidermiddlewares.ParentMiddleware`);
this module is the form of the mark.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from scrapy import Request

from scrapy_ext.crawl.tracking import Entry, current

_PARENT_KEY: Final = "_parent"
#: Meta key under which a request carries the index of its own request record.
RECORD_KEY: Final = "_request_record"


class Parent(msgspec.Struct, frozen=True, array_like=True):
    """The index of the parent's request record, and the job that it is in: a frontier can be shared by several."""

    record: int
    job: str


def mark(request: Request, parent: Parent) -> None:
    """Say who made a request."""
    request.meta[_PARENT_KEY] = [parent.record, parent.job]


def parent_of(request: Request) -> Parent | None:
    """Who made a request; None for a start request, for what no callback yielded, and where no records are kept."""
    stored: Any = request.meta.get(_PARENT_KEY)
    try:
        return None if stored is None else msgspec.convert(stored, Parent)
    except msgspec.ValidationError:
        return None


def is_start_request(request: Request) -> bool:
    """Whether a request is one of ``start()``, and not a child that copied the meta of one."""
    is_child = isinstance(current.get(), Entry) or parent_of(request) is not None
    return bool(request.meta.get("is_start_request")) and not is_child
