"""Bounded searches in the records of a job: the next matching ones, or the first of all when they are sorted.

A search ends at :data:`MOST_RECORDS`, :data:`MOST_BYTES` or :data:`MOST_SECONDS`, whichever comes first, and reports
how far it came, so that it can be continued from there. Records are inflated and checked in threads, chunk by chunk.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.conditions import (
    ABSENT,
    EVERYWHERE,
    Condition,
    FieldReader,
    RecordFilter,
    condition_of,
    filter_of,
    number_in,
)
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.where import parse_where
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.store.read_ahead import closing
from scrapy_ext.server.store.records.records import RecordStore, Slice, Span

#: Maximum records, bytes and seconds of one search.
MOST_RECORDS: Final = 100_000
MOST_BYTES: Final = 64 * 1024 * 1024
MOST_SECONDS: Final = 2.5
#: Maximum sorted records that pages show: of each, its value is kept while others are read.
MOST_SORTED: Final = 1000
#: Maximum bytes of a record that is kept beside its value; a longer one is read once more.
_KEPT_LINE: Final = 4096
#: Maximum characters of a text that are compared in sorting.
_SORTED_TEXT: Final = 200

#: Predicate of a record, given as its JSON.
Wanted = Callable[[bytes], bool]


class Found(NamedTuple):
    """Matching records, and how far the search came.

    ``records``: pairs of index and JSON. ``matches``: number of matching records among those that were looked at, more
    than ``records`` if they are sorted. ``looked``: the indexes from the first to the last record that was looked at.
    ``ended``: True if there are no further records.
    """

    records: list[tuple[int, bytes]]
    matches: int
    looked: range
    ended: bool

    @property
    def next(self) -> int:
        """The first index that was not looked at."""
        return self.looked.stop


async def parts_of(store: RecordStore, key: JobKey, start: int, count: int) -> AsyncIterator[Slice]:
    """Yield up to ``count`` records from ``start`` on; none of removed ones, of which the page has a notice."""
    try:
        async for part in store.scan(Span(*key), (key.spider, key.job, start), count):
            yield part
    except ContractError as error:
        if error.status != HTTPStatus.GONE:
            raise


class _Search:
    """The bounds of a search, and what it has looked at."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._until = time.monotonic() + MOST_SECONDS
        self._bytes = 0
        self.next = start

    def checked(self, part: Slice, wanted: Wanted) -> list[tuple[int, bytes]]:
        """Return the matching records of a part, up to the time at which the search ends."""
        found = []
        for number, line in enumerate(part.lines, part.start):
            # A single check may take long, so that the time is looked at between all.
            if time.monotonic() > self._until and number > self._start:
                break
            self._bytes += len(line)
            self.next = number + 1
            if wanted(line):
                found.append((number, line))
        return found

    @property
    def is_over(self) -> bool:
        return self._bytes >= MOST_BYTES or time.monotonic() > self._until

    def looked(self, first: int) -> range:
        return range(min(first, self.next), self.next)


async def search_records(store: RecordStore, key: JobKey, start: int, wanted: Wanted, count: int) -> Found:
    """Return the first ``count`` matching records from ``start`` on, within the bounds of one search."""
    indexes = await store.indexes(key)
    start = max(start, indexes.start)
    search, found = _Search(start), list[tuple[int, bytes]]()
    async with closing(parts_of(store, key, start, MOST_RECORDS)) as parts:
        async for part in parts:
            found += await in_data_thread(partial(search.checked, wanted=wanted), part)
            if len(found) > count:
                found = found[:count]
                return Found(found, count, range(start, found[-1][0] + 1), ended=False)
            if search.is_over:
                break
    return Found(found, len(found), search.looked(start), ended=search.next >= indexes.stop)


class Order(NamedTuple):
    """A field by which records are sorted, and the places of those that are returned.

    Records without the field are last either way.
    """

    field: str
    descending: bool
    shown: range


async def sort_records(store: RecordStore, key: JobKey, start: int, wanted: Wanted | None, order: Order) -> Found:
    """Return the matching records from ``start`` on in an order, within the bounds of one search.

    The order is exact among the records that were looked at.
    """
    indexes = await store.indexes(key)
    start = max(start, indexes.start)
    search, matches = _Search(start), 0
    first: list[tuple[Any, int, bytes]] = []
    reader = FieldReader([order.field])
    choose = heapq.nlargest if order.descending else heapq.nsmallest

    def ranked(part: Slice) -> tuple[int, list[tuple[Any, int, bytes]]]:
        chosen = search.checked(part, wanted or _any)
        sign = -1 if order.descending else 1
        ranks = [
            (_rank(reader.read(line)[0], order), sign * number, line if len(line) <= _KEPT_LINE else b"")
            for number, line in chosen
        ]
        return len(ranks), choose(order.shown.stop, [*first, *ranks])

    async with closing(parts_of(store, key, start, MOST_RECORDS)) as parts:
        async for part in parts:
            number, first = await in_data_thread(ranked, part)
            matches += number
            if search.is_over:
                break
    placed = [(abs(number), line) for _, number, line in first[order.shown.start : order.shown.stop]]
    long = [number for number, line in placed if not line]
    read = {part.start: part.lines[0] for part in await store.at(key, long)} if long else {}
    # Records may be removed meanwhile.
    records = [(number, line or read[number]) for number, line in placed if line or number in read]
    return Found(records, matches, search.looked(start), ended=search.next >= indexes.stop)


def _any(_: bytes) -> bool:
    return True


def _rank(value: object, order: Order) -> tuple[int, int | float | str]:
    """Return the place of a value: numbers, also in text, before text before other values."""
    if value is ABSENT or value is None:
        return (-1 if order.descending else 3, 0)
    number = number_in(value)
    if number is not None:
        return (0, number)
    if isinstance(value, str):
        return (1, value[:_SORTED_TEXT].lower())
    return (2, msgspec.json.encode(value).decode()[:_SORTED_TEXT])


# ── predicates ──


def with_text(text: str) -> Wanted:
    """Return a predicate for records with a value that contains a text, ignoring case."""
    return RecordFilter([_containing(text)]).chooses


def item_filter(where: str, text: str) -> RecordFilter | None:
    """Return the filter of a typed ``where`` and a searched text, None without any; raises ``ContractError``."""
    conditions = [clause.condition for clause in parse_where(where)] if where else []
    return filter_of([*conditions, *([_containing(text)] if text else [])])


def _containing(text: str) -> Condition:
    return condition_of([EVERYWHERE, "hastext", [text]], "q")


class _Line(msgspec.Struct):
    level: int
    message: str


_line: Final = msgspec.json.Decoder(_Line).decode


def logged(level: int, text: str = "", worker: int | None = None) -> Wanted:
    """Return a predicate for log lines of at least a level that contain a text, ignoring case.

    ``worker``: only lines of the worker with this number, of a job with several.
    """
    lowered, start = text.lower(), "" if worker is None else f"[{worker}] "

    def wanted(line: bytes) -> bool:
        record = _line(line)
        message = record.message
        return record.level >= level and message.startswith(start) and lowered in message.lower()

    return wanted


def records_of(found: Sequence[tuple[int, bytes]]) -> list[tuple[int, Any]]:
    return [(number, msgspec.json.decode(line)) for number, line in found]
