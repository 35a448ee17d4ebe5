"""Gzip bodies of answers, decompressed in pieces of bounded size."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

import aiohttp


class Gunzip:
    """Decompression of a gzip body, however much a small piece of it expands to."""

    #: Bytes of one piece of output at most.
    PIECE: Final = 256 * 1024

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        #: Whether the stream has ended where the input did.
        self.complete = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The output of the next piece of input; raises :class:`aiohttp.ClientPayloadError` for damaged data."""
        more = False
        while data or more:
            if self._inflate.eof:
                self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
            piece = self._decompress(data)
            if piece:
                yield piece
            if self._inflate.eof:
                data, more = self._inflate.unused_data, False
            else:
                # A full piece may have left output behind when no input is.
                data, more = self._inflate.unconsumed_tail, len(piece) == self.PIECE
        self.complete = self._inflate.eof

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._inflate.decompress(data, self.PIECE)
        except zlib.error as error:
            raise aiohttp.ClientPayloadError(f"the compressed answer is damaged ({error})") from None
