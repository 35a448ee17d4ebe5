"""Bodies of answers: read up to the limit, counted while they are kept, and decoded.

Content codings are gzip, deflate, Brotli and Zstandard, each as often as it was applied.

* The limit applies to the decoded body. Decoders get no more than the limit and one byte, so that a bomb takes no more
  memory than a page of that size.
* Deflate has two forms, with and without the wrapper of its standard. Browsers accept both.
* Data after the end of a gzip stream is read as another stream where it looks like one, and is else dropped.
* Of a stream that ends too early, the result is what could be decoded, as in browsers and Scrapy: the body arrived as
  the site sent it. The same holds for a gzip stream with a wrong checksum.
* An unknown coding is left as it is, with all that were applied before it.
* A body that never had the coding that its header names is the result as it came, without that header: the page of a
  broken server is what was asked for.
"""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Callable
from gzip import GzipFile
from io import BytesIO
from typing import Any, Final

import aiohttp
import brotli
from isal import isal_zlib
from yarl import URL

from scrapy_ext.api.compression import GZIP_MAGIC
from scrapy_ext.api.extraction import Cause
from scrapy_ext.api.extraction.problems import ExtractionError, permanent, temporary
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.config.extraction_limits import MIB
from scrapy_ext.server.extraction.request_limits import Hold, growing

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: Most codings of a body.
_MOST: Final = 4
#: The window that decoders must support (RFC 9659), and so the most memory that one takes: 8 MiB.
_ZSTD_WINDOW: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: 23}
#: Most members of a gzip stream, and frames of Zstandard, in one body: this many take a second.
_MEMBERS: Final = 100_000
#: Bytes that are decoded at once.
_STEP: Final = 64 * 1024
#: Signatures of the codings that have one.
_MAGIC: Final = {"gzip": GZIP_MAGIC[:2], "x-gzip": GZIP_MAGIC[:2], "zstd": b"\x28\xb5\x2f\xfd"}
#: Bytes that are examined; those that no text has; and lengths: any longer compressed body has some of these.
_SNIFFED: Final = 4096
_NOT_IN_TEXT: Final = bytes(set(range(32)) - set(b"\t\n\f\r"))
_ENOUGH: Final = 64
_ENOUGH_ASCII: Final = 4
#: Beginnings of files that servers also send with a false coding.
_FILES: Final = (b"%PDF-", b"PK\3\4", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
_ISAL_ERROR: Final[Any] = isal_zlib.error
_ERRORS: Final[Any] = (zlib.error, isal_zlib.error, brotli.error, zstd.ZstdError, EOFError)


class CodingError(Exception):
    """A body that does not decode."""


class NotCodedError(CodingError):
    """A body without the coding that its header names. ``body`` is as it came, without the codings before that one."""

    def __init__(self, body: bytes) -> None:
        self.body = body


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
            if not _MAGIC.get(name, b"").startswith(body[: len(_MAGIC.get(name, b""))]):
                raise NotCodedError(body)
            try:
                body = decode(body, limit + 1)
            except (*_ERRORS, CutShortError) as error:
                if name not in _MAGIC and _is_plain(body):
                    raise NotCodedError(body) from None
                raise CutShortError if isinstance(error, CutShortError) else CodingError from None
        if len(body) > limit:
            raise OverLimitError
    return body


def _is_plain(body: bytes) -> bool:
    """Return whether a body is a text or a usual file: compressed bytes are neither, unless there are few of them."""
    start = body[:_SNIFFED]
    enough = _ENOUGH_ASCII if start.isascii() else _ENOUGH
    is_text = len(start) >= enough and len(start.translate(None, _NOT_IN_TEXT)) == len(start)
    return is_text or start.startswith(_FILES)


def _gzip(body: bytes, most: int) -> bytes:
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
    """Decode as much as possible of a stream with a wrong checksum: isal returns nothing of it."""
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


def _require_coded(body: bytes, found: bytes) -> None:
    """Raise for a stream of a coding without a signature that does not end: some texts begin like one."""
    if not found or _is_plain(body):
        raise CutShortError


def _deflate(body: bytes, most: int) -> bytes:
    wrapped = len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    decoder = isal_zlib.decompressobj(wbits=zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
    found: bytes = decoder.decompress(body, most)
    if not decoder.eof and len(found) < most:
        _require_coded(body, found)
    return found


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


def _brotli(body: bytes, most: int) -> bytes:
    decoder = brotli.Decompressor()
    parts = [decoder.process(body, output_buffer_limit=most)]
    size = len(parts[0])
    while size < most and not decoder.is_finished():
        part = decoder.process(b"", output_buffer_limit=most - size)
        if not part:
            _require_coded(body, b"".join(parts))
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


#: Coded bodies shorter than this, with a text no longer than the second, are decoded without a thread, which takes
#: longer.
_SHORT: Final = 32 * 1024
_SHORT_TEXT: Final = MIB


async def read_body(response: aiohttp.ClientResponse, url: URL, limit: int, hold: Hold) -> tuple[bytes, bool]:
    """Read the body of an answer from ``url``, at most ``limit`` bytes, and whether its codings were false; raises
    :class:`ExtractionError` (520, 521)."""
    count = growing(hold)
    coded = io.BytesIO()
    size = 0
    if (response.content_length or 0) > limit:
        raise _too_large(url, limit)
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise _too_large(url, limit)
        count(size)
        coded.write(chunk)
    is_false = False
    try:
        body = await _undo(coded.getvalue(), ",".join(response.headers.getall("Content-Encoding", ())), url, limit)
    except NotCodedError as plain:
        body, is_false = plain.body, True
    count(len(body))
    return body, is_false


async def _undo(body: bytes, codings: str, url: URL, limit: int) -> bytes:
    if not codings:
        return body
    try:
        if len(body) < _SHORT:
            try:
                return undo(body, codings, min(_SHORT_TEXT, limit))
            except OverLimitError:
                pass  # The decoded body is long.
        return await in_data_thread(undo, body, codings, limit)
    except OverLimitError:
        raise _too_large(url, limit) from None
    except CutShortError:
        raise temporary(f"{url.raw_host}:{url.port} broke off in the middle of its answer.", Cause.CUT_SHORT) from None
    except NotCodedError:
        raise
    except CodingError:
        raise permanent(f"{url.raw_host}:{url.port} answered with a content coding that does not decode.") from None


def _too_large(url: URL, limit: int) -> ExtractionError:
    return permanent(f"{url.raw_host} answered with more than {limit // MIB} MiB.", Cause.TOO_LARGE)
