"""Decoders of content codings: gzip, deflate, Brotli and Zstandard, each as often as it was applied.

* The limit applies to the result. Decoders get no more than the limit and one byte, so that a bomb takes no more memory
  than a page of that size.
* Deflate has two forms, with and without the wrapper of its standard. Browsers accept both.
* Data after the end of a gzip stream is read as another stream where it looks like one, and is else dropped.
* Of a stream that ends too early, the result is what could be decoded, as in browsers and Scrapy: the body arrived as
  the site sent it. The same holds for a gzip stream with a wrong checksum.
* An unknown coding is left as it is, with all that were applied before it.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from gzip import GzipFile
from io import BytesIO
from typing import Any, Final

import brotli
from isal import isal_zlib

from scrapy_ext.api.compression import GZIP_MAGIC

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ACCEPTED: Final = "gzip, deflate, br, zstd"
#: Most codings of a body.
_MOST: Final = 4
#: The window that decoders must support (RFC 9659), and so the most memory that one takes: 8 MiB.
_ZSTD_WINDOW: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: 23}
#: Most members of a gzip stream, and frames of Zstandard, in one body: this many take a second.
_MEMBERS: Final = 100_000
#: Bytes that are decoded at once.
_STEP: Final = 64 * 1024
_ISAL_ERROR: Final[Any] = isal_zlib.error
_ERRORS: Final[Any] = (zlib.error, isal_zlib.error, brotli.error, zstd.ZstdError, EOFError)


class CodingError(Exception):
    """A body that does not decode."""


class CutShortError(CodingError):
    """A body that ends before anything of it can be decoded."""


class OverLimitError(CodingError):
    """A body that is larger than the limit when it is decoded."""


def undo(body: bytes, content_encoding: str, limit: int) -> bytes:
    """Return a body without its codings, at most ``limit`` bytes; raises :class:`CodingError`."""
    names = [name.strip().lower() for name in content_encoding.split(",")]
    if len(names) > _MOST:
        raise CodingError
    for name in reversed(names):
        if name in ("", "identity"):
            continue
        decode = _DECODERS.get(name)
        if decode is None:
            break
        # The answer to HEAD, and 304, have the header without a body.
        if body:
            try:
                body = decode(body, limit + 1)
            except _ERRORS:
                raise CodingError from None
        if len(body) > limit:
            raise OverLimitError
    return body


def _gzip(body: bytes, most: int) -> bytes:
    if not GZIP_MAGIC.startswith(body[:2]):
        raise CodingError
    found, at = bytearray(), 0
    for _ in range(_MEMBERS):
        decoder, begin, size = isal_zlib.decompressobj(wbits=zlib.MAX_WBITS | 16), at, len(found)
        try:
            at = _decode_member(decoder, body, at, found, most)
        except _ISAL_ERROR:
            del found[size:]
            found += _damaged_gzip(body[begin:], most - size)
            break
        if not decoder.eof:
            _require_some(found)
            break
        if len(found) == most or not body.startswith(GZIP_MAGIC, at):
            break
    else:
        raise CodingError
    return bytes(found)


def _decode_member(decoder: Any, body: bytes, at: int, found: bytearray, most: int) -> int:
    """Decode a member of a body from ``at`` on until there are ``most`` bytes of output; return where it ends.

    It is decoded in steps because each decoder copies the data after its member: for a long body with many members that
    takes time by the square of its length.
    """
    view = memoryview(body)
    while not decoder.eof and at < len(body) and len(found) < most:
        step = view[at : at + _STEP]
        found += decoder.decompress(step, most - len(found))
        at += len(step) - len(decoder.unused_data)
    return at


def _damaged_gzip(body: bytes, most: int) -> bytes:
    """Decode as much as possible of a stream with a wrong checksum, of which isal returns nothing."""
    found = bytearray()
    file = GzipFile(fileobj=BytesIO(body))
    try:
        while len(found) < most and (part := file.read1(min(most - len(found), _STEP))):
            found += part
    except OSError:
        _require_some(found)
    return bytes(found)


def _require_some(found: bytes | bytearray) -> None:
    """Raise :class:`CutShortError` where nothing of a broken stream could be decoded."""
    if not found:
        raise CutShortError


def _deflate(body: bytes, most: int) -> bytes:
    wrapped = len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2]) % 31 == 0
    decoder = isal_zlib.decompressobj(wbits=zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
    return _checked(decoder, decoder.decompress(body, most))


def _zstd(body: bytes, most: int) -> bytes:
    found, at = bytearray(), 0
    for _ in range(_MEMBERS):
        decoder, size = zstd.ZstdDecompressor(options=_ZSTD_WINDOW), len(found)
        at = _decode_member(decoder, body, at, found, most)
        if not decoder.eof:
            _require_some(found[size:])
        if len(found) == most or at == len(body):
            break
    else:
        raise CodingError
    return bytes(found)


def _checked(decoder: Any, data: bytes) -> bytes:
    if not decoder.eof:
        _require_some(data)
    return data


def _brotli(body: bytes, most: int) -> bytes:
    decoder = brotli.Decompressor()
    parts = [decoder.process(body, output_buffer_limit=most)]
    size = len(parts[0])
    while size < most and not decoder.is_finished():
        part = decoder.process(b"", output_buffer_limit=most - size)
        if not part:
            _require_some(b"".join(parts))
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


_DECODERS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
