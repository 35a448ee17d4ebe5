"""Answers of which only the beginning is read."""

from __future__ import annotations

from typing import NamedTuple

from scrapy_ext.client.platform.calls import ClientCall
from scrapy_ext.client.platform.resource import Resource


class Beginning(NamedTuple):
    """The first bytes of an answer; ``is_whole``: there are no more."""

    body: bytes
    is_whole: bool


class Beginnings(Resource):
    """Calls of any kind, each sent once, for callers that bound what they read."""

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
