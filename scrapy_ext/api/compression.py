"""Compression, and decompression that ends at a limit of bytes.

ISA-L does it if it is installed (three to ten times faster), else zlib; the formats are the same.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import zlib as _library
else:
    try:
        from isal import isal_zlib as _library
    except ImportError:
        import zlib as _library

#: The fastest level: records repeat their field names, which the first level already finds.
_LEVEL: Final = 1
#: No compression, for data too short to shrink.
_STORED: Final = 0
_GZIP: Final = 31
#: Raw deflate, without header and checksum.
_DEFLATE: Final = -15
#: Accepts a zlib or a gzip header.
_ZLIB_OR_GZIP: Final = 47
#: Input bytes per step, so that the output stays in the processor's cache for its consumer.
_STEP: Final = 24 * 1024
#: Input bytes per step when the output is only passed on.
_UNPACK_STEP: Final = 40 * 1024
#: Maximum output bytes of one library call.
_PIECE: Final = 120 * 1024
#: Shorter output is joined: a body may consist of millions of gzip members of two bytes each, whose objects would
#: take more memory than their bytes.
_LEAST: Final = 16 * 1024
GZIP_MAGIC: Final = b"\x1f\x8b"


class SizeLimitError(ValueError):
    """Compressed data inflates to more than the limit."""


class DamagedError(ValueError):
    """Compressed data is incomplete or corrupt."""


def pack(data: bytes) -> bytes:
    """Compress data for storage."""
    return _library.compress(data, _LEVEL)


def checksum(data: bytes) -> int:
    """Return the CRC-32 of data."""
    return _library.crc32(data)


def unpack(data: bytes) -> list[bytes]:
    """Decompress the output of :func:`pack`, or a gzip stream, to pieces; raises :class:`DamagedError`.

    Memory of small pieces is reused; for a large one the system clears new memory each time.
    """
    stream, found = _library.decompressobj(_ZLIB_OR_GZIP), []
    try:
        for at in range(0, len(data), _UNPACK_STEP):
            rest = data[at : at + _UNPACK_STEP]
            while rest and not stream.eof:
                found.append(stream.decompress(rest, _PIECE))
                rest = stream.unconsumed_tail
        while not stream.eof and (piece := stream.decompress(b"", _PIECE)):
            found.append(piece)
    except _library.error as error:
        raise DamagedError(str(error)) from None
    if not stream.eof:
        raise DamagedError("the compressed data is cut off")
    return [piece for piece in found if piece]


def unpack_steps(data: bytes) -> Iterator[bytes]:
    """Decompress step by step, on demand; raises :class:`DamagedError`."""
    inflater = Inflater(sys.maxsize)
    yield from filter(None, inflater.feed(data))
    inflater.end()


def gzip(data: bytes, *, shorten: bool = True) -> bytes:
    """Return a complete gzip stream; without ``shorten``, uncompressed within microseconds."""
    compressor = _library.compressobj(_LEVEL if shorten else _STORED, _library.DEFLATED, _GZIP)
    return compressor.compress(data) + compressor.flush()


def gzip_compressor() -> _library._Compress:
    """Return a compressor of one gzip stream, with the methods ``compress`` and ``flush``."""
    return _library.compressobj(_LEVEL, _library.DEFLATED, _GZIP)


def deflated(data: bytes) -> bytes:
    """Compress a part of a stream: non-final deflate blocks that end at a byte boundary."""
    compressor = _library.compressobj(_LEVEL, _library.DEFLATED, _DEFLATE)
    return bytes(compressor.compress(data) + compressor.flush(_library.Z_SYNC_FLUSH))


def gunzip(body: bytes, limit: int) -> bytes:
    """Decompress exactly one gzip stream.

    Raises :class:`SizeLimitError` above ``limit`` bytes, and :class:`DamagedError`, also for data after the stream.
    """
    inflater = Inflater(limit)
    data = b"".join(inflater.feed(body))
    if not inflater.is_one_gzip:
        raise DamagedError("the gzip stream is cut off, or something follows it")
    return data


class GzipFrame:
    """Header and trailer of a gzip stream whose parts were each :func:`deflated` separately."""

    head: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

    def __init__(self) -> None:
        self._crc = 0
        self._length = 0

    def add(self, data: bytes) -> None:
        """Add the uncompressed next part to the checksum and length."""
        self._crc = _library.crc32(data, self._crc)
        self._length += len(data)

    @property
    def tail(self) -> bytes:
        """The empty last block, with the checksum and length of all parts."""
        return b"\x03\x00" + struct.pack("<II", self._crc, self._length & 0xFFFFFFFF)


class Inflater:
    """Incremental inflater of a gzip or zlib stream, limited to ``limit`` bytes of output."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._begin = b""
        self._streams = 1
        self._stream = _library.decompressobj(_ZLIB_OR_GZIP)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the next output in few, small pieces.

        Each step of the input yields a piece, empty if it inflates to nothing, so that the work per piece is short.
        Raises :class:`SizeLimitError` or :class:`DamagedError`.
        """
        if len(self._begin) < len(GZIP_MAGIC):
            self._begin += data[: len(GZIP_MAGIC)]
        # Remaining input is copied for each piece of output, so a step is small.
        for at in range(0, len(data), _STEP):
            yield from self._step(data[at : at + _STEP])

    def _step(self, data: bytes) -> Iterator[bytes]:
        full, short = False, bytearray()
        while data or full:
            # A body may have several gzip members.
            if self._stream.eof:
                self._stream = _library.decompressobj(_ZLIB_OR_GZIP)
                self._streams += 1
            try:
                piece = self._stream.decompress(data, _PIECE)
            except _library.error as error:
                raise DamagedError(str(error)) from None
            self._left -= len(piece)
            if self._left < 0:
                raise SizeLimitError
            if len(piece) >= _LEAST and not short:
                yield piece
            else:
                short += piece
                if len(short) >= _LEAST:
                    yield bytes(short)
                    short.clear()
            # A full piece may leave output behind although all input was consumed.
            full = len(piece) == _PIECE and not self._stream.eof
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        yield bytes(short)

    @property
    def is_one_gzip(self) -> bool:
        """Return true when the whole input was one gzip stream."""
        return self._streams == 1 and self._stream.eof and self._begin.startswith(GZIP_MAGIC)

    def end(self) -> None:
        """Raise :class:`DamagedError` if the stream was cut off."""
        if not self._stream.eof:
            raise DamagedError("the compressed data is cut off")
