"""Lines of the chunks that single records were read from last: a client that reads a job's records one by one would
have a chunk inflated for each of them.

The database is authoritative: a chunk is used only while the row that was just read has the same compressed bytes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

from scrapy_ext.server.store.records.chunks import unpack_line, unpack_lines
from scrapy_ext.server.store.records.removal import RecordOwner

#: Maximum number of chunks, each of about a megabyte of lines at most.
_CHUNKS: Final = 2
#: Maximum bytes of a chunk inflated in the reading thread, since handing it over would take longer.
SMALL: Final = 16 * 1024


class RecentChunks:
    def __init__(self) -> None:
        #: Compressed bytes, and from the second read on the lines, of a chunk by its owner and start.
        self._chunks: OrderedDict[tuple[RecordOwner, int], tuple[bytes, list[bytes] | None]] = OrderedDict()

    async def line(self, owner: RecordOwner, start: int, body: bytes, place: int) -> bytes | None:
        """Return one line of a chunk; None when the chunk has fewer. Raises :class:`StoreError` when it is damaged."""
        key = (owner, start)
        known = self._chunks.get(key)
        if known is None or known[0] != body:
            self._keep(key, body, None)
            return await asyncio.to_thread(unpack_line, body, place) if len(body) > SMALL else unpack_line(body, place)
        lines = known[1]
        if lines is None:
            lines = await asyncio.to_thread(unpack_lines, body) if len(body) > SMALL else unpack_lines(body)
            self._keep(key, body, lines)
        return lines[place] if place < len(lines) else None

    def _keep(self, key: tuple[RecordOwner, int], body: bytes, lines: list[bytes] | None) -> None:
        self._chunks[key] = (body, lines)
        self._chunks.move_to_end(key)
        if len(self._chunks) > _CHUNKS:
            self._chunks.popitem(last=False)
