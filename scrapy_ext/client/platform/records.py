"""What items, request records and log records have in common: written and read as JSON lines, numbered in a job."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from scrapy_ext.api.platform import EntityKey, JobKey
from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.records import Stats, content_range
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.client.platform.calls import JSON, ClientCall, get
from scrapy_ext.client.platform.errors import NotFound
from scrapy_ext.client.platform.json_lines import keyed_record, record
from scrapy_ext.client.platform.paging import Pages
from scrapy_ext.client.platform.transport import Transport
from scrapy_ext.client.platform.urls import path

R = TypeVar("R")

#: Whose records to read: a project, a spider of one, or a job.
Prefix = JobKey | int | str
#: Where to start: a record's key, or, when reading one job, its index.
Place = EntityKey | int | str


class JobRecords:
    """The records of one kind."""

    resource: str
    #: Whether the document gives writes a ``Content-Range`` header.
    content_range = False

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def write(
        self, key: JobKey, body: bytes, start: int, *, attempts: int | None = None, encoding: str | None = None
    ) -> None:
        """Store records, given as JSON lines, at the indices from ``start`` on.

        Writing the same records at the same place twice stores them once, so that a failed write is repeated:
        ``attempts`` times, or as the client was told. ``encoding`` is the content encoding of ``body``, if it has one.
        """
        call = ClientCall(
            method="POST",
            host=Host.STORAGE,
            path=path(self.resource, *key),
            # The place as the servers of this API take it for every kind of record.
            parameters=(("start", start),),
            headers=(("Content-Range", content_range(start)),) if self.content_range else (),
            body=body,
            encoding=encoding,
            attempts=attempts,
        )
        await self._transport.send(call)

    def iter(
        self,
        prefix: Prefix,
        *,
        count: int | None = None,
        start: Place | None = None,
        startafter: Place | None = None,
        meta: Sequence[str] = (),
    ) -> AsyncGenerator[dict[str, Any]]:
        """The records of a project, spider or job in the order of their keys.

        ``start`` begins with a record, ``startafter`` behind it; ``meta`` adds ``_key``, ``_ts``. They are read
        in pages while they are consumed, and reading goes on where it was when the connection breaks.
        """
        keep_key = "_key" in meta
        parse = partial(keyed_record, keep_key=keep_key)
        return self._pages(prefix, parse, count=count, start=start, startafter=startafter, meta=meta).read()

    def keyed(
        self,
        prefix: Prefix,
        *,
        count: int | None = None,
        start: Place | None = None,
        startafter: Place | None = None,
        meta: Sequence[str] = (),
    ) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        """As :meth:`iter`, each record with its key, behind which a later reading can go on."""

        def parse(line: bytes) -> tuple[str, tuple[str, dict[str, Any]]]:
            key, record = keyed_record(line, keep_key="_key" in meta)
            return key, (key, record)

        return self._pages(prefix, parse, count=count, start=start, startafter=startafter, meta=meta).read()

    def _pages(
        self,
        prefix: Prefix,
        parse: Callable[[bytes], tuple[str, R]],
        *,
        count: int | None,
        start: Place | None,
        startafter: Place | None,
        meta: Sequence[str],
    ) -> Pages[R]:
        segments = prefix_segments(prefix)
        asked = tuple(dict.fromkeys(("_key", *meta)))
        first, behind = _place(segments, start), _place(segments, startafter)

        def call(after: str | None, size: int | None) -> ClientCall:
            return get(
                Host.STORAGE,
                path(self.resource, *segments),
                ("count", size),
                ("start", None if after else first),
                ("startafter", after or behind),
                ("meta", asked),
            )

        return Pages(self._transport, call, parse, count=count)

    async def get(self, key: EntityKey) -> dict[str, Any] | None:
        """One record, None if there is none."""
        call = get(Host.STORAGE, path(self.resource, *key))
        try:
            return await self._transport.read(call, lambda answer: record(answer.body) if answer.body.strip() else None)
        except NotFound:
            return None

    async def stats(self, key: JobKey, *, hidden: bool = False) -> Stats:
        """How many records a job has, and how often each field occurs; ``hidden`` counts fields that start with
        ``_`` too."""
        call = get(Host.STORAGE, path(self.resource, *key, "stats"), ("all", hidden), accept=JSON)
        return await self._transport.read(call, lambda answer: answer.json(Stats))


class Items(JobRecords):
    """The items of jobs (platform-api.md, Items)."""

    resource = "items"
    content_range = True


class Logs(JobRecords):
    """The logs of jobs (platform-api.md names their path, Comments and logs)."""

    resource = "logs"


class Requests(JobRecords):
    """The requests that jobs made (platform-api.md, Requests)."""

    resource = "requests"


def prefix_segments(prefix: Prefix) -> tuple[int, ...]:
    """The numbers of a prefix; raises :class:`ContractError`."""
    if isinstance(prefix, JobKey):
        return tuple(prefix)
    pieces = str(prefix).strip("/").split("/")
    if len(pieces) > 3 or not all(piece.isascii() and piece.isdigit() for piece in pieces):
        raise ContractError(
            [
                Violation(
                    "prefix",
                    f"must be a project, project/spider or project/spider/job, got {str(prefix)[:60]!r}",
                    "Use whole numbers.",
                )
            ]
        )
    return tuple(int(piece) for piece in pieces)


def _place(segments: tuple[int, ...], place: Place | None) -> str | None:
    if place is None:
        return None
    if isinstance(place, int):
        if len(segments) != 3:
            raise ContractError(
                [
                    Violation(
                        "start", "must be a whole key when more than one job is read", "Write project/spider/job/n."
                    )
                ]
            )
        return str(EntityKey(*segments, place))
    return str(EntityKey.parse(str(place), "start"))
