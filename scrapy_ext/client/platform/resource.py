"""Base of the resources, and the listing of records that is read page by page.

A listing holds one record in memory at a time. Each record comes with its key, so that reading continues after the last
one that arrived when the connection breaks. A page with fewer records than requested is the last one, if HTTP says that
the answer is whole. Without that, the answer could have been cut off between two lines: another page is requested,
until two in a row are empty.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from scrapy_ext.api.platform.keys import Host
from scrapy_ext.client.platform.calls import ClientCall, post
from scrapy_ext.client.platform.errors import UnexpectedAnswer
from scrapy_ext.client.platform.json_lines import encode
from scrapy_ext.client.platform.transport import Transport
from scrapy_ext.client.retry import Attempts, resumed

T = TypeVar("T")

#: Records requested at once.
PAGE: Final = 1000
#: Keys that one call deletes.
_DELETED_AT_ONCE: Final = 5000


class PartialCount(Protocol):
    """A count that continues at ``nextstart``; None: it is complete."""

    count: int
    nextstart: str | None


class Resource:
    """Calls about one kind of resource."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def _json(self, call: ClientCall, type: type[T]) -> T:
        return await self._transport.read(call, lambda answer: answer.json(type))

    async def _array(self, call: ClientCall, type: type[T]) -> list[T]:
        return await self._transport.read(call, lambda answer: answer.array(type))

    async def _lines(self, call: ClientCall, type: type[T]) -> list[T]:
        return await self._transport.read(call, lambda answer: answer.lines(type))

    async def _app(self, call: ClientCall) -> dict[str, Any]:
        return await self._transport.read(call, lambda answer: answer.app())

    async def _count(self, call: Callable[[str | None], ClientCall], type: type[PartialCount]) -> int:
        """Count in as many calls as the platform needs; ``call`` makes the one that starts at a key."""
        counted, start = 0, None
        while True:
            part = await self._json(call(start), type)
            counted += part.count
            if not part.nextstart or part.nextstart == start:
                return counted
            start = part.nextstart

    async def _delete_keys(self, path: str, keys: Sequence[str], attempts: int | None = None) -> None:
        for first in range(0, len(keys), _DELETED_AT_ONCE):
            body = encode(keys[first : first + _DELETED_AT_ONCE])
            await self._transport.send(post(Host.STORAGE, path, body, attempts=attempts))


class Pages(Generic[T]):
    """A listing that is read to its end, or to ``count`` records.

    ``call`` makes the call for the records after a key (None: from the start) and a number of them (None: all).
    ``parse`` returns the key and the record of a line. ``by_count`` False: the listing has no pages.
    """

    def __init__(
        self,
        transport: Transport,
        call: Callable[[str | None, int | None], ClientCall],
        parse: Callable[[bytes], tuple[str, T]],
        *,
        count: int | None = None,
        by_count: bool = True,
    ) -> None:
        self._transport = transport
        self._call = call
        self._parse = parse
        self._left = count
        self._by_count = by_count
        self._after: str | None = None
        self._ended = False
        self._was_empty = False
        self._first: str | None = None

    def read(self) -> AsyncGenerator[T]:
        """Yield the records as they arrive."""
        return resumed(self._pages, Attempts(self._transport.limits))

    async def _pages(self) -> AsyncGenerator[T]:
        while not self._ended and self._left != 0:
            size = self._size()
            call = self._call(self._after, size)
            read = 0
            async with self._transport.stream(call) as stream, aclosing(stream.lines()) as lines:
                async for line in lines:
                    key, record = self._parse(line)
                    if read == 0 and self._by_count:
                        self._check_progress(call, key)
                    self._after = key
                    read += 1
                    if self._left is not None:
                        self._left -= 1
                    yield record
                    if self._left == 0:
                        return
                is_short = size is None or read < size
                self._ended = is_short if stream.framed else read == 0 and self._was_empty
                self._was_empty = read == 0

    def _check_progress(self, call: ClientCall, key: str) -> None:
        """Raise for a server that ignores ``startafter``: reading would never end."""
        if key == self._first:
            raise call.error(UnexpectedAnswer, f"the same records again, from {key[:80]!r} on")
        self._first = key

    def _size(self) -> int | None:
        if not self._by_count:
            return None
        return PAGE if self._left is None else min(PAGE, self._left)


class Beginning(NamedTuple):
    """The first bytes of an answer; ``is_whole``: there are no more."""

    body: bytes
    is_whole: bool


class Beginnings(Resource):
    """Calls of any kind, each sent once, for callers that read only the beginning of an answer."""

    async def read(self, call: ClientCall, limit: int) -> Beginning:
        """Make a call, and read at most ``limit`` bytes of its answer."""
        pieces: list[bytes] = []
        size = 0
        async with self._transport.stream(call) as stream:
            async for piece in stream.pieces():
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    break
        return Beginning(b"".join(pieces)[:limit], size <= limit)
