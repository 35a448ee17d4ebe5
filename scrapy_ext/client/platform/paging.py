"""Reading many records: page by page, one record in memory at a time, past broken connections.

Each record comes with its key, so that reading goes on after the last one that arrived. The end is a page with
fewer records than were asked for, of an answer that HTTP says is whole. Without that, an answer could have been
cut off between two lines: another page follows, until two in a row are empty.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, Generic, TypeVar

from scrapy_ext.client.platform.calls import ClientCall
from scrapy_ext.client.platform.errors import PlatformError, UnexpectedAnswer
from scrapy_ext.client.platform.transport import Transport
from scrapy_ext.client.retry import Attempts

R = TypeVar("R")

#: Records asked for at once.
PAGE: Final = 1000


class Pages(Generic[R]):
    """A listing that is read to its end, or to ``count`` records.

    ``call`` gives the call for the records after a key (None: from the start), of which it should answer with
    so many (None: all); ``parse`` gives the key and the record of a line. ``by_count`` says whether the listing
    has pages at all.
    """

    def __init__(
        self,
        transport: Transport,
        call: Callable[[str | None, int | None], ClientCall],
        parse: Callable[[bytes], tuple[str, R]],
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
        self._read = 0
        self._ended = False
        self._was_empty = False
        self._first: str | None = None

    async def read(self) -> AsyncGenerator[R]:
        """The records, as they arrive."""
        attempts = Attempts(self._transport.limits)
        while not self._ended and self._left != 0:
            self._read = 0
            try:
                async with aclosing(self._page()) as page:
                    async for record in page:
                        yield record
            except PlatformError as error:
                if self._read:
                    attempts.progressed()
                await attempts.failed(error)

    async def _page(self) -> AsyncGenerator[R]:
        size = self._size()
        call = self._call(self._after, size)
        async with self._transport.stream(call) as stream, aclosing(stream.lines()) as lines:
            async for line in lines:
                key, record = self._parse(line)
                if self._read == 0 and self._by_count:
                    self._check_turned(call, key)
                self._after = key
                self._read += 1
                yield record
                if self._counted():
                    return
            is_empty = self._read == 0
            self._ended = (size is None or self._read < size) if stream.framed else is_empty and self._was_empty
            self._was_empty = is_empty

    def _check_turned(self, call: ClientCall, key: str) -> None:
        """A server that does not know ``startafter`` would be read for ever."""
        if key == self._first:
            raise call.error(UnexpectedAnswer, f"the same records again, from {key[:80]!r} on")
        self._first = key

    def _size(self) -> int | None:
        if not self._by_count:
            return None
        return PAGE if self._left is None else min(PAGE, self._left)

    def _counted(self) -> bool:
        """Take one from what is left; whether nothing is."""
        if self._left is not None:
            self._left -= 1
        return self._left == 0
