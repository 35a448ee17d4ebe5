"""Items, request records and log records of jobs: JSON lines, numbered in each job."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypedDict, TypeVar

import msgspec

from scrapy_ext.api.platform import EntityKey, JobKey
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.records import Stats, StreamPlaces, content_range
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.client.platform.calls import JSON, ClientCall, get, path, post
from scrapy_ext.client.platform.errors import NotFound
from scrapy_ext.client.platform.json_lines import keyed_record, record, stored_line
from scrapy_ext.client.platform.resource import PAGE, Pages, Resource
from scrapy_ext.compatibility.python import Unpack

T = TypeVar("T")

#: A project, a spider of one, or a job.
Prefix = JobKey | int | str
#: The key of a record, or, when one job is read, its index.
Position = EntityKey | int | str


class Selection(TypedDict, total=False):
    """Selection of records. ``start`` begins with a record, ``startafter`` behind it; ``meta`` adds the fields ``_key``
    and ``_ts``; ``filters`` are conditions (``api.platform.conditions``) that all must be met."""

    count: int | None
    start: Position | None
    startafter: Position | None
    meta: Sequence[str]
    filters: Sequence[Sequence[Any]]


class StoredRecord(NamedTuple):
    """A record of a job as it is stored; ``ts`` (ms) is None if the platform does not report it."""

    number: int
    ts: int | None
    line: bytes


class JobRecords(Resource):
    resource: str
    #: True: writes have a ``Content-Range`` header (platform-api.md, Items).
    content_range = False

    async def write(
        self, key: JobKey, body: bytes, start: int, *, attempts: int | None = None, encoding: str | None = None
    ) -> None:
        """Store records, given as JSON lines, at the indices from ``start`` on.

        Writing the same records at the same index twice stores them once, so that a failed write is repeated:
        ``attempts`` times, or as the client is configured. ``encoding`` is the content encoding of ``body``, if it has
        one.
        """
        call = post(
            Host.STORAGE,
            path(self.resource, *key),
            body,
            # Servers of this API take the index from here for every kind of record.
            parameters=(("start", start),),
            headers=(("Content-Range", content_range(start)),) if self.content_range else (),
            encoding=encoding,
            attempts=attempts,
        )
        await self._transport.send(call)

    async def write_stream(
        self,
        key: JobKey,
        writer: int,
        body: bytes,
        start: int,
        *,
        attempts: int | None = None,
        encoding: str | None = None,
    ) -> StreamPlaces:
        """Store records at the indexes from ``start`` on of the stream of attempt ``writer``; return their places in
        the job.

        The caller has the token of that attempt, or, once it is over, that of another attempt of the job. As with
        :meth:`write`, a failed write is repeated.
        """
        call = post(
            Host.STORAGE,
            path(self.resource, *key),
            body,
            parameters=(("writer", writer), ("start", start)),
            accept=JSON,
            encoding=encoding,
            attempts=attempts,
        )
        return await self._json(call, StreamPlaces)

    def iter(self, prefix: Prefix, **selection: Unpack[Selection]) -> AsyncGenerator[dict[str, Any]]:
        """Yield the records of a project, spider or job in the order of their keys.

        They are read in pages while they are consumed, and reading continues where it was when the connection breaks.
        """
        return self._pages(prefix, partial(keyed_record, keep_key=_keeps_key(selection)), selection).read()

    def keyed(self, prefix: Prefix, **selection: Unpack[Selection]) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        """Like :meth:`iter`, with the key of each record, after which a later reading can continue."""

        def parse(line: bytes) -> tuple[str, tuple[str, dict[str, Any]]]:
            found = keyed_record(line, keep_key=_keeps_key(selection))
            return found[0], found

        return self._pages(prefix, parse, selection).read()

    def stored(self, key: JobKey, start: int = 0) -> AsyncGenerator[StoredRecord]:
        """Yield the records of a job from index ``start`` on, with their bytes and the times when they were stored."""

        def parse(line: bytes) -> tuple[str, StoredRecord]:
            found = stored_line(line, f"{key}/")
            return found.key, StoredRecord(EntityKey.parse(found.key).number, found.ts, found.line)

        return self._pages(key, parse, {"start": start or None, "meta": ("_key", "_ts")}).read()

    def _pages(self, prefix: Prefix, parse: Callable[[bytes], tuple[str, T]], selection: Selection) -> Pages[T]:
        segments = prefix_segments(prefix)
        meta = tuple(dict.fromkeys(("_key", *selection.get("meta", ()))))
        start = _position(segments, selection.get("start"))
        startafter = _position(segments, selection.get("startafter"))
        filters = [msgspec.json.encode(condition).decode() for condition in selection.get("filters", ())]

        def call(after: str | None, size: int | None) -> ClientCall:
            return get(
                Host.STORAGE,
                path(self.resource, *segments),
                ("count", size),
                ("start", None if after else start),
                ("startafter", after or startafter),
                ("meta", meta),
                ("filter", filters or None),
            )

        return Pages(self._transport, call, parse, count=selection.get("count"))

    async def get(self, key: EntityKey) -> dict[str, Any] | None:
        call = get(Host.STORAGE, path(self.resource, *key))
        try:
            return await self._transport.read(call, lambda answer: record(answer.body) if answer.body.strip() else None)
        except NotFound:
            return None

    async def stats(self, key: JobKey, *, hidden: bool = False) -> Stats:
        """Return the number of a job's records, and how often each field occurs; ``hidden`` counts fields that start
        with ``_`` too."""
        return await self._json(
            get(Host.STORAGE, path(self.resource, *key, "stats"), ("all", hidden), accept=JSON), Stats
        )


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


class Samples(Resource):
    """Progress and memory of jobs while they ran: arrays, which have no keys and no stats."""

    async def page(self, key: JobKey, start: int = 0) -> list[bytes]:
        """Return samples of a job from index ``start`` on; fewer than ``PAGE`` at the end."""
        call = get(
            Host.STORAGE,
            path("samples", *key),
            ("start", str(key.entity(start)) if start else None),
            ("count", PAGE),
        )
        return [bytes(line) for line in await self._lines(call, msgspec.Raw)]


def prefix_segments(prefix: Prefix) -> tuple[int, ...]:
    """Return the numbers of a prefix; raises :class:`ContractError`."""
    if isinstance(prefix, JobKey):
        return tuple(prefix)
    pieces = str(prefix).strip("/").split("/")
    if len(pieces) > 3 or not all(piece.isascii() and piece.isdigit() for piece in pieces):
        rule = f"must be a project, project/spider or project/spider/job, got {str(prefix)[:60]!r}"
        raise ContractError([Violation("prefix", rule, "Use whole numbers.")])
    return tuple(int(piece) for piece in pieces)


def _position(segments: tuple[int, ...], position: Position | None) -> str | None:
    if position is None:
        return None
    if isinstance(position, int):
        if len(segments) != 3:
            rule = "must be a whole key when more than one job is read"
            raise ContractError([Violation("start", rule, "Write project/spider/job/n.")])
        return str(EntityKey(*segments, position))
    return str(EntityKey.parse(str(position), "start"))


def _keeps_key(selection: Selection) -> bool:
    return "_key" in selection.get("meta", ())
