"""Compression: ISA-L where it is installed (three to ten times faster), else zlib, which reads and writes the same."""

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

#: The fastest level of both libraries: records repeat their field names, which the first level finds.
_LEVEL: Final = 1
#: Only the wrapping: what is too short to become shorter.
_STORED: Final = 0
_GZIP: Final = 31
#: No header and no sum.
_DEFLATE: Final = -15
#: zlib's own header or gzip's, told apart while reading.
_ZLIB_OR_GZIP: Final = 47
#: Input of one step, whose output stays in the processor's cache for what is made of it.
_STEP: Final = 24 * 1024
#: The same for what is only passed on.
_UNPACK_STEP: Final = 40 * 1024
#: Output of one call of the library at most.
_PIECE: Final = 120 * 1024
#: Shorter output is joined: a body may consist of millions of gzip members of two bytes each, whose objects would take
#: more memory than their bytes.
_LEAST: Final = 16 * 1024
_GZIP_MAGIC: Final = b"\x1f\x8b"


class TooLargeError(ValueError):
    """Compressed data that inflates to more than was allowed."""


class DamagedError(ValueError):
    """Data that is not complete, correct deflate data."""


def pack(data: bytes) -> bytes:
    """Compress a piece that is stored."""
    return _library.compress(data, _LEVEL)


def unpack(data: bytes) -> list[bytes]:
    """What :func:`pack` was given, or a gzip stream of another's, in pieces; raises :class:`DamagedError`.

    Memory for small pieces is used again and again; for one large piece the system clears new memory each time.
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
    """The same, each piece unpacked when it is asked for; raises :class:`DamagedError`."""
    inflater = Inflater(sys.maxsize)
    yield from filter(None, inflater.feed(data))
    inflater.end()


def gzip(data: bytes, *, shorten: bool = True) -> bytes:
    """All of a response as a gzip stream, which takes microseconds where it need not be shortened."""
    return _library.compress(data, _LEVEL if shorten else _STORED, wbits=_GZIP)


def deflated(data: bytes) -> bytes:
    """A part of a stream: blocks of deflate, none the last, that end at a whole byte."""
    compressor = _library.compressobj(_LEVEL, _library.DEFLATED, _DEFLATE)
    return bytes(compressor.compress(data) + compressor.flush(_library.Z_SYNC_FLUSH))


def gunzip(body: bytes, limit: int) -> bytes:
    """What one whole gzip stream holds; raises :class:`TooLargeError` above ``limit`` bytes, and
    :class:`DamagedError`, also for what follows the stream."""
    inflater = Inflater(limit)
    data = b"".join(inflater.feed(body))
    if not inflater.is_one_gzip:
        raise DamagedError("the gzip stream is cut off, or something follows it")
    return data


class GzipFrame:
    """What stands before and after the parts of one gzip stream, each of which was :func:`deflated` by itself."""

    head: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

    def __init__(self) -> None:
        self._crc = 0
        self._length = 0

    def add(self, data: bytes) -> None:
        """Count the next part, as it was before."""
        self._crc = _library.crc32(data, self._crc)
        self._length += len(data)

    @property
    def tail(self) -> bytes:
        """The last block, which is empty, and the sums of all parts."""
        return b"\x03\x00" + struct.pack("<II", self._crc, self._length & 0xFFFFFFFF)


class Inflater:
    """Inflates a gzip or zlib stream piece by piece, never further than ``limit`` bytes in all."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._begin = b""
        self._streams = 1
        self._stream = _library.decompressobj(_ZLIB_OR_GZIP)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The next output, in pieces that are small, and few, however much the input holds.

        There is a piece for each step of the input, which is empty where the step inflates to nothing: the work on
        one is short. Raises :class:`TooLargeError` or :class:`DamagedError`.
        """
        if len(self._begin) < len(_GZIP_MAGIC):
            self._begin += data[: len(_GZIP_MAGIC)]
        # What is left of the input is copied with each piece of output: so there is never much of it.
        for at in range(0, len(data), _STEP):
            yield from self._step(data[at : at + _STEP])

    def _step(self, data: bytes) -> Iterator[bytes]:
        full, short = False, bytearray()
        while data or full:
            if self._stream.eof:  # several gzip members in one body
                self._stream = _library.decompressobj(_ZLIB_OR_GZIP)
                self._streams += 1
            try:
                piece = self._stream.decompress(data, _PIECE)
            except _library.error as error:
                raise DamagedError(str(error)) from None
            self._left -= len(piece)
            if self._left < 0:
                raise TooLargeError
            if len(piece) >= _LEAST and not short:
                yield piece
            else:
                short += piece
                if len(short) >= _LEAST:
                    yield bytes(short)
                    short.clear()
            # A full piece may leave output behind although all input was taken.
            full = len(piece) == _PIECE and not self._stream.eof
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        yield bytes(short)

    @property
    def is_one_gzip(self) -> bool:
        """Whether all that came was one gzip stream."""
        return self._streams == 1 and self._stream.eof and self._begin.startswith(_GZIP_MAGIC)

    def end(self) -> None:
        """Raises :class:`DamagedError` if the stream was cut off."""
        if not self._stream.eof:
            raise DamagedError("the compressed data is cut off")
