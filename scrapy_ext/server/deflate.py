"""Compression: ISA-L where it is installed (three to ten times faster), else zlib, which reads and writes the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol

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
#: zlib's own header or gzip's, told apart while reading.
_ZLIB_OR_GZIP: Final = 47
#: Output of one step: small enough that what is made of it stays in the processor's cache.
_PIECE: Final = 64 * 1024
_GZIP_MAGIC: Final = b"\x1f\x8b"


class Compressor(Protocol):
    """What compresses a stream."""

    def compress(self, data: bytes, /) -> bytes:
        """Take more input; returns what output is ready."""

    def flush(self) -> bytes:
        """End the stream."""


class TooLargeError(ValueError):
    """Compressed data that inflates to more than was allowed."""


class DamagedError(ValueError):
    """Data that is not complete, correct deflate data."""


def pack(data: bytes) -> bytes:
    """Compress a piece that is stored."""
    return _library.compress(data, _LEVEL)


def unpack(data: bytes) -> bytes:
    """What :func:`pack` was given, or a gzip stream of another's; raises :class:`DamagedError`."""
    try:
        return _library.decompress(data, _ZLIB_OR_GZIP)
    except _library.error as error:
        raise DamagedError(str(error)) from None


def gzip_compressor() -> Compressor:
    """A gzip stream for a response."""
    return _library.compressobj(_LEVEL, _library.DEFLATED, _GZIP)


def gzip_whole(data: bytes, *, shorten: bool) -> bytes:
    """A response of one piece as gzip, which takes microseconds where it need not be ``shorten``ed."""
    return _library.compress(data, _LEVEL if shorten else _STORED, wbits=_GZIP)


class Inflater:
    """Inflates a gzip or zlib stream piece by piece, never further than ``limit`` bytes in all."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._begin = b""
        self._streams = 1
        self._stream = _library.decompressobj(_ZLIB_OR_GZIP)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The next output, in pieces that are small however much the input holds.

        Raises :class:`TooLargeError` or :class:`DamagedError`.
        """
        if len(self._begin) < len(_GZIP_MAGIC):
            self._begin += data[: len(_GZIP_MAGIC)]
        full = False
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
            if piece:
                yield piece
            # A full piece may leave output behind although all input was taken.
            full = len(piece) == _PIECE and not self._stream.eof
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail

    @property
    def is_one_gzip(self) -> bool:
        """Whether all that came was one gzip stream."""
        return self._streams == 1 and self._stream.eof and self._begin.startswith(_GZIP_MAGIC)

    def end(self) -> None:
        """Raises :class:`DamagedError` if the stream was cut off."""
        if not self._stream.eof:
            raise DamagedError("the compressed data is cut off")
