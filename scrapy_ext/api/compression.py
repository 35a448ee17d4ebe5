"""Compression, and decompression that ends at a limit of bytes.

ISA-L does it if it is installed (three to ten times faster), else zlib; the formats are the same.

Gzip streams of JSON lines can be joined to one stream without being inflated. A *joinable* stream has blocks of which
none is the last, up to a byte boundary, and then an empty last block. So its blocks can follow those of another such
stream, and the checksum of both follows from theirs and their lengths.

:func:`joinable` marks such a stream in its header, in place of the time of a file, because its bytes do not prove that
the blocks end where the last one begins; :meth:`Inflater.rest` checks that of a received stream. The text of a marked
stream ends with a line break. Other programs read a marked stream like any other.
"""

from __future__ import annotations

import os
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
from typing import NamedTuple

#: The fastest level: records repeat their field names, which the first level already finds.
_LEVEL: Final = 1
#: No compression, for data too short to shrink.
_STORED: Final = 0
_GZIP: Final = 31
#: Raw deflate, without header and checksum.
_DEFLATE: Final = -15
#: Accepts a zlib or a gzip header.
_ZLIB_OR_GZIP: Final = 47
#: Input bytes per step, so that the output stays in the processor's cache for its consumer: as many as the server takes
#: off a connection at once. With twice as many, or with half, a row of an item takes a tenth longer.
_STEP: Final = 64 * 1024
#: Maximum bytes of memory that are allocated because of a length at the end of a stream.
_LONGEST: Final = 2 * 1024 * 1024
#: Maximum output bytes of one library call.
_PIECE: Final = 192 * 1024
#: Shorter output is joined: a body may consist of millions of gzip members of two bytes each, whose objects would
#: take more memory than their bytes.
_LEAST: Final = 16 * 1024
GZIP_MAGIC: Final = b"\x1f\x8b"
#: The header of a gzip stream without flags, the empty last block, and the bytes of that and of the two sums after it.
GZIP_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
LAST_BLOCK: Final = b"\x03\x00"
GZIP_TAIL: Final = bytes(10)
#: The end of an empty block that is flushed to a byte boundary.
_FLUSHED: Final = b"\x00\x00\xff\xff"
#: Bytes of chance in the block that shows where blocks end.
_CHANCE: Final = 16


class SizeLimitError(ValueError):
    """Compressed data inflates to more than the limit."""


class DamagedError(ValueError):
    """Compressed data is incomplete or corrupt."""


def pack(data: bytes) -> bytes:
    """Compress data for storage."""
    return _library.compress(data, _LEVEL)


def unpack(data: bytes) -> list[bytes]:
    """Decompress the output of :func:`pack`, or a gzip stream, to pieces; raises :class:`DamagedError`.

    A gzip stream has its length at its end, so that it becomes one piece, in one call and without a copy.
    """
    if data.startswith(GZIP_MAGIC):
        return _unpack_gzip(data)
    stream, found = _library.decompressobj(_ZLIB_OR_GZIP), []
    try:
        for at in range(0, len(data), _STEP):
            rest = data[at : at + _STEP]
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


def _unpack_gzip(data: bytes) -> list[bytes]:
    length = int.from_bytes(data[-4:], "little")
    try:
        text = _library.decompress(data, _GZIP, min(length, _LONGEST) or 1)
    except _library.error as error:
        raise DamagedError(str(error)) from None
    return [text] if text else []


def unpack_steps(data: bytes) -> Iterator[bytes]:
    """Decompress step by step, on demand; raises :class:`DamagedError`."""
    inflater = Inflater(sys.maxsize)
    yield from filter(None, inflater.feed(data))
    inflater.end()


def gzip(data: bytes, *, shorten: bool = True) -> bytes:
    """Return a complete gzip stream; without ``shorten``, uncompressed within microseconds.

    Its blocks end at a byte boundary, before an empty last block (``joinable_gzip``).
    """
    compressor = _library.compressobj(_LEVEL if shorten else _STORED, _library.DEFLATED, _GZIP)
    return compressor.compress(data) + compressor.flush(_library.Z_SYNC_FLUSH) + compressor.flush()


def gzip_compressor() -> _library._Compress:
    """Return a compressor of one gzip stream, with the methods ``compress`` and ``flush``."""
    return _library.compressobj(_LEVEL, _library.DEFLATED, _GZIP)


def deflate_compressor() -> _library._Compress:
    """Return a compressor of raw deflate, without header and checksum."""
    return _library.compressobj(_LEVEL, _library.DEFLATED, _DEFLATE)


def deflated(data: bytes) -> bytes:
    """Compress a part of a stream: non-final deflate blocks that end at a byte boundary."""
    compressor = deflate_compressor()
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

    head: Final = GZIP_HEAD

    def __init__(self) -> None:
        self._crc = 0
        self._length = 0

    def add(self, data: bytes) -> None:
        """Add the uncompressed next part to the checksum and length."""
        self._crc = _library.crc32(data, self._crc)
        self._length += len(data)

    def join(self, crc: int, length: int) -> None:
        """Add the checksum and length of the next part."""
        self._crc = crc32_combine(self._crc, crc, length)
        self._length += length

    @property
    def tail(self) -> bytes:
        """The empty last block, with the checksum and length of all parts."""
        return LAST_BLOCK + struct.pack("<II", self._crc, self._length & 0xFFFFFFFF)


def crc32(data: bytes | bytearray, crc: int = 0) -> int:
    """Return the CRC-32 of data, or of a text whose part before ``data`` has the checksum ``crc``."""
    return _library.crc32(data, crc)


#: The polynomial of the checksum, its highest bit first.
_POLYNOMIAL: Final = 0xEDB88320


def _combine(first: int, second: int, length: int) -> int:
    """Return the checksum of two texts from theirs, given the length of the second one.

    The checksum is a polynomial, modulo another one; the first is multiplied by x to the power of the bits that follow.
    """
    power, square, bits = 1 << 31, 1 << 30, 8 * length
    while bits:
        if bits & 1:
            power = _product(square, power)
        square = _product(square, square)
        bits >>= 1
    return _product(power, first) ^ second


def _product(one: int, other: int) -> int:
    product, bit = 0, 1 << 31
    while bit:
        if one & bit:
            product ^= other
        other = (other >> 1) ^ _POLYNOMIAL if other & 1 else other >> 1
        bit >>= 1
    return product


crc32_combine: Final = getattr(_library, "crc32_combine", _combine)


class Inflater:
    """Incremental inflater of a gzip or zlib stream, limited to ``limit`` bytes of output.

    ``finds_joinable``: :attr:`is_joinable` is found out, for which the last bytes are inflated by :meth:`rest`.
    """

    def __init__(self, limit: int, *, finds_joinable: bool = False) -> None:
        self._left = limit
        #: The last bytes so far, which are not inflated yet; None: all are.
        self._held: bytes | None = b"" if finds_joinable else None
        self._crc = self._length = 0
        #: True for a gzip stream whose blocks end at a byte boundary, before an empty last block (``joinable_gzip``).
        self.is_joinable = False
        #: True when the output ends with a line break.
        self.ends_line = False
        self._begin = b""
        self._streams = 1
        self._stream = _library.decompressobj(_ZLIB_OR_GZIP)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the next output in few, small pieces.

        Each step of the input yields a piece, empty if it inflates to nothing, so that the work per piece is short.
        Raises :class:`SizeLimitError` or :class:`DamagedError`.
        """
        if len(self._begin) < len(GZIP_HEAD):
            self._begin += data[: len(GZIP_HEAD) - len(self._begin)]
        if self._held is None:
            yield from self._steps(data)
            return
        data = self._held + data
        # The bytes of the end, and those before them that a joinable stream has.
        kept = len(GZIP_TAIL) + len(_FLUSHED)
        self._held = data[-kept:]
        yield from self._counted(data[:-kept])

    def rest(self) -> Iterator[bytes]:
        """Yield the output of the last bytes, of an inflater that finds joinable streams.

        A stream that looks joinable gets a block of random bytes in place of its last one: that comes out unchanged
        only if a block begins there. Raises :class:`SizeLimitError` or :class:`DamagedError`.
        """
        held, self._held = self._held or b"", b""
        if not (held.startswith(_FLUSHED + LAST_BLOCK) and len(held) == len(GZIP_TAIL) + len(_FLUSHED)):
            yield from self._counted(held)
            return
        yield from self._counted(held[: len(_FLUSHED)])
        if self._streams > 1 or self._stream.eof or self._begin[: len(GZIP_MAGIC) + 2] != GZIP_HEAD[:4]:
            yield from self._counted(held[len(_FLUSHED) :])
            return
        chance = os.urandom(_CHANCE)
        block = b"\x00" + struct.pack("<HH", _CHANCE, 0xFFFF ^ _CHANCE) + chance
        try:
            found = self._stream.decompress(block)
        except _library.error as error:
            raise DamagedError(str(error)) from None
        sums = struct.unpack("<II", held[-8:])
        if found != chance or sums != (self._crc, self._length & 0xFFFFFFFF):
            raise DamagedError("its end does not fit the rest of the data")
        self.is_joinable = True

    def _counted(self, data: bytes) -> Iterator[bytes]:
        for piece in self._steps(data):
            if piece:
                self._crc = _library.crc32(piece, self._crc)
                self._length += len(piece)
                self.ends_line = piece.endswith(b"\n")
            yield piece

    def _steps(self, data: bytes) -> Iterator[bytes]:
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
        return self.is_joinable or (self._streams == 1 and self._stream.eof and self._begin.startswith(GZIP_MAGIC))

    def end(self) -> None:
        """Raise :class:`DamagedError` if the stream was cut off."""
        if not (self.is_joinable or self._stream.eof):
            raise DamagedError("the compressed data is cut off")


#: Compression method, no flags; the time, level and system of a gzip header have these bytes.
_MARKED: Final = b"\x1f\x8b\x08\x00" + b"jl\x00\x01\x5a\x7f"
#: A block that holds a line break as it is.
_LINE_BREAK: Final = b"\x00\x01\x00\xfe\xff\n"
_SUMS: Final = struct.Struct("<II")


class GzipPart(NamedTuple):
    """The blocks of a joinable stream, with the checksum and length of their text, which ends with a line break."""

    blocks: memoryview
    crc: int
    length: int


def pack_lines(text: bytes) -> bytes:
    """Compress lines, the last of which has its line break, to a marked stream."""
    return _MARKED + deflated(text) + LAST_BLOCK + _SUMS.pack(crc32(text), len(text) & 0xFFFFFFFF)


def joinable(stream: bytes, *, ends_line: bool) -> bytes:
    """Mark a joinable stream, and end its last line unless that has a line break (``ends_line``)."""
    blocks, (crc, length) = stream[len(_MARKED) : -len(GZIP_TAIL)], _SUMS.unpack(stream[-_SUMS.size :])
    if ends_line:
        return b"".join([_MARKED, blocks, stream[-len(GZIP_TAIL) :]])
    sums = _SUMS.pack(crc32(b"\n", crc), (length + 1) & 0xFFFFFFFF)
    return b"".join([_MARKED, blocks, _LINE_BREAK, LAST_BLOCK, sums])


def unmarked(stream: bytes) -> bytes:
    """Return a gzip stream that is not joinable without the mark, which its sender may have set."""
    return GZIP_HEAD + stream[len(GZIP_HEAD) :] if stream.startswith(_MARKED) else stream


def part_of(stream: bytes) -> GzipPart | None:
    """Return the blocks of a marked stream; None for another one."""
    if not stream.startswith(_MARKED):
        return None
    crc, length = _SUMS.unpack(stream[-_SUMS.size :])
    return GzipPart(memoryview(stream)[len(_MARKED) : -len(GZIP_TAIL)], crc, length)
