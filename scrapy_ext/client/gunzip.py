"""Gzip bodies of answers, decompressed in pieces of bounded size."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

import aiohttp


class Gunzip:
    """Decompression of a gzip body, however much a small piece of it expands to."""

    #: Bytes that are decompressed at once: zlib copies what follows a member each time.
    STEP: Final = 64 * 1024
    #: Bytes of output of one call of zlib at most.
    PIECE: Final = 256 * 1024
    #: Shorter output is joined: an answer may consist of millions of members of two bytes each, whose objects would
    #: take more memory than their bytes.
    LEAST: Final = 16 * 1024

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        #: Whether the stream has ended where the input did.
        self.complete = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The output of the next piece of input; raises :class:`aiohttp.ClientPayloadError` for damaged data."""
        for at in range(0, len(data), self.STEP):
            yield from self._step(data[at : at + self.STEP])
        self.complete = self._inflate.eof

    def _step(self, data: bytes) -> Iterator[bytes]:
        more, short = False, bytearray()
        while data or more:
            if self._inflate.eof:
                self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
            piece = self._decompress(data)
            if len(piece) >= self.LEAST and not short:
                yield piece
            else:
                short += piece
                if len(short) >= self.LEAST:
                    yield bytes(short)
                    short.clear()
            if self._inflate.eof:
                data, more = self._inflate.unused_data, False
            else:
                # A full piece may have left output behind when no input is.
                data, more = self._inflate.unconsumed_tail, len(piece) == self.PIECE
        if short:
            yield bytes(short)

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._inflate.decompress(data, self.PIECE)
        except zlib.error as error:
            raise aiohttp.ClientPayloadError(f"the compressed answer is damaged ({error})") from None
