"""Gzip streams of JSON lines that are joined to one stream without being inflated.

A *joinable* stream has blocks of which none is the last, up to a byte boundary, and then an empty last block. So its
blocks can follow those of another such stream, and the checksum of both follows from theirs and their lengths.

:func:`joinable` marks such a stream in its header, in place of the time of a file, because its bytes do not prove that
the blocks end where the last one begins; :meth:`Inflater.rest <scrapy_ext.api.compression.Inflater.rest>` checks that
of a received stream. The text of a marked stream ends with a line break. Other programs read a marked stream like any
other.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from scrapy_ext.api.compression import GZIP_HEAD, GZIP_TAIL, LAST_BLOCK, crc32, deflated

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
