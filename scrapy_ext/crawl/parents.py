"""Which request a request was made by, carried in its meta.

Scrapy passes no parent to the scheduler. A spider middleware marks each request that a callback yields
(:class:`scrapy_ext.spidermiddlewares.ParentMiddleware`); this module is the form of the mark.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from scrapy import Request

_PARENT_KEY: Final = "_parent"
#: Meta key under which a request carries the index of its own request record.
RECORD_KEY: Final = "_request_record"


class Parent(msgspec.Struct, frozen=True, array_like=True):
    """The fingerprint of the parent in its frontier slot, the child's place among the parent's children, and,
    if request records are kept, the index of the parent's and the job that it is in: a frontier can be shared by
    several jobs."""

    fp: str
    ordinal: int
    record: int | None = None
    job: str | None = None


def mark(request: Request, parent: Parent) -> None:
    """Say who made a request."""
    request.meta[_PARENT_KEY] = msgspec.to_builtins(parent)


def parent_of(request: Request) -> Parent | None:
    """Who made a request; None for a start request, and for what no callback yielded."""
    stored: Any = request.meta.get(_PARENT_KEY)
    try:
        return None if stored is None else msgspec.convert(stored, Parent)
    except msgspec.ValidationError:
        return None


def is_start_request(request: Request) -> bool:
    """Whether a request is one of ``start()``, and not a child that copied the meta of one."""
    return bool(request.meta.get("is_start_request")) and parent_of(request) is None
