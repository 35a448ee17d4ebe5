"""Objects of a delivery: records in a format, compressed, in pieces of bounded memory.

Compression and hashing run in threads. Reading stops while a target is slow.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from scrapy_ext.api.platform.formats import Format
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.formats import ColumnsChangedError, Compression, Schema, Writer, open_writer
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.delivery.manifest import DeliveredObject, DeliveredRecords
from scrapy_ext.server.delivery.targets import Target
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.deliveries import ChangedError, Totals
from scrapy_ext.server.store.read_ahead import closing
from scrapy_ext.server.store.records.records import RecordStore, Slice, Span

T = TypeVar("T")

#: Bytes of a piece that is passed on.
_PIECE: Final = 1024 * 1024

#: One thread for all tables, which each would take 10 MB in every thread that has worked on them.
_TABLES: Final = ThreadPoolExecutor(1, thread_name_prefix="tables")

_encode: Final = msgspec.json.Encoder().encode


class _Sink:
    """Sink of a writer: the pieces so far, with their size and hash. Written in threads, read in the loop."""

    def __init__(self) -> None:
        self.size = 0
        self._hash = hashlib.sha256()
        self._pieces: list[bytes] = []
        self._held = 0

    def write(self, data: bytes) -> None:
        self._hash.update(data)
        self.size += len(data)
        self._pieces.append(data)
        self._held += len(data)

    @property
    def is_full(self) -> bool:
        return self._held >= _PIECE

    def take(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        return data

    def described(self, name: str) -> DeliveredObject:
        return DeliveredObject(object=name, size=self.size, sha256=self._hash.hexdigest())


async def _file(
    sink: _Sink,
    kind: Format,
    pages: AsyncIterator[list[bytes]],
    *,
    compression: Compression = Compression.NONE,
    schema: Schema | None = None,
) -> AsyncIterator[bytes]:
    """Yield the bytes of a file with these records; raise :class:`ColumnsChangedError` for one of other columns."""
    run: Callable[..., Awaitable[Any]] = _in_table_thread if kind is Format.PARQUET else in_data_thread
    writer: Writer = await run(functools.partial(open_writer, kind, sink, compression=compression, schema=schema))
    async for lines in pages:
        await run(writer.write, lines)
        if sink.is_full:
            yield sink.take()
    await run(writer.close)
    yield sink.take()


def _in_table_thread(work: Callable[..., T], *args: object) -> asyncio.Future[T]:
    return asyncio.get_running_loop().run_in_executor(_TABLES, work, *args)


class _Pages:
    """Pages of a job's records for a file, with the index of the first and their number.

    ``schema``: gets the columns of the records.
    """

    def __init__(self, records: RecordStore, key: JobKey, schema: Schema | None = None) -> None:
        self._records = records
        self._key = key
        self._schema = schema
        self.start: int | None = None
        self.number = 0

    async def lines(self) -> AsyncIterator[list[bytes]]:
        span = Span(*self._key)
        async with closing(self._records.scan(span, span.first)) as parts:
            async for part in parts:
                if self.start is None:
                    self.start = part.start
                lines = await in_data_thread(_lines_of, part)
                self.number += len(lines)
                if self._schema is not None:
                    await _in_table_thread(self._schema.add, lines)
                yield lines


def _lines_of(part: Slice) -> list[bytes]:
    return part.lines


class Upload(NamedTuple):
    """Writer of the objects of one delivery into its folder."""

    store: Store
    target: Target
    folder: str
    key: JobKey
    compression: Compression

    async def records(
        self, kind: str, totals: Totals, counts: dict[str, int], schema: Schema | None = None
    ) -> DeliveredRecords:
        """Write the records of a kind and their times; raise :class:`ChangedError` when they changed meanwhile.

        ``schema``: gets the columns of the records.
        """
        pages = _Pages(getattr(self.store, kind), self.key, schema)
        found = await self._put(kind, pages.lines())
        if pages.number != totals.records:
            raise ChangedError
        times = await self._put(f"{kind}.times", self._times(kind))
        return DeliveredRecords(
            object=found.object,
            size=found.size,
            sha256=found.sha256,
            start=pages.start or 0,
            records=pages.number,
            bytes=totals.bytes,
            counts=counts,
            times=times,
        )

    async def table(self, kind: str, schema: Schema) -> DeliveredObject:
        """Write the records of a kind as Parquet; raise :class:`ChangedError` when they are not those of the schema."""
        pages, sink, name = _Pages(getattr(self.store, kind), self.key), _Sink(), f"{kind}.parquet"
        try:
            await self.target.put(f"{self.folder}/{name}", _file(sink, Format.PARQUET, pages.lines(), schema=schema))
        except ColumnsChangedError:
            raise ChangedError from None
        return sink.described(name)

    async def _times(self, kind: str) -> AsyncIterator[list[bytes]]:
        after = -1
        while chunks := await self.store.deliveries.layout(self.key, kind, after):
            yield [_encode(layout) for _, layout in chunks]
            after = chunks[-1][0]

    async def comments(self) -> DeliveredObject | None:
        """Write the comments on the job's items, if there are any."""
        found = await self.store.comments.of_job(self.key)
        lines = [
            _encode(
                {
                    "item": comment.subject.item.number,
                    "field": comment.subject.field,
                    "created": comment.created,
                    "author": comment.author,
                    "content": comment.content,
                }
            )
            for comment in found
        ]
        return await self._put("comments", _one(lines)) if lines else None

    async def _put(self, stem: str, pages: AsyncIterator[list[bytes]]) -> DeliveredObject:
        sink, name = _Sink(), f"{stem}.jsonl.{self.compression.value}"
        file = _file(sink, Format.JSON_LINES, pages, compression=self.compression)
        await self.target.put(f"{self.folder}/{name}", file)
        return sink.described(name)


async def _one(lines: list[bytes]) -> AsyncIterator[list[bytes]]:
    yield lines
