"""The body of an answer: read up to its limit, its content codings undone, counted while it is kept, and as text.

The encoding of a text is that of its headers, byte order mark or markup. Python has codecs that are no encodings of the
web: ``base64`` is none of a text, and ``punycode`` takes hours for a long page. Names of such codecs are ignored, as
browsers do.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from w3lib.encoding import (
    html_body_declared_encoding,
    html_to_unicode,
    http_content_type_encoding,
    read_bom,
    resolve_encoding,
)
from webencodings.labels import LABELS
from yarl import URL

from scrapy_ext.api.extraction import Cause
from scrapy_ext.api.extraction.errors import ExtractionError, permanent, temporary
from scrapy_ext.server.config.extraction_limits import MIB
from scrapy_ext.server.extraction.http.codings import CodingError, CutShortError, OverLimitError, undo

#: Encodings that pages declare although the web has no label for them.
_OLD: Final = (
    *("euc_jis_2004", "euc_jisx0213", "iso2022_jp_1", "iso2022_jp_2", "shift_jis_2004", "shift_jisx0213", "johab"),
    *("koi8-t", "kz1048", "ptcp154", "mac-cyrillic", "mac-greek", "mac-latin2", "mac-turkish"),
    *(f"cp{page}" for page in (437, 720, 737, 775, 850, 852, 855, 857, 858, 862, 864, 869, 950, 1125)),
    *("utf-32", "utf-32-le", "utf-32-be"),
)
#: Codecs of the web's encodings (encoding.spec.whatwg.org), as w3lib reads their labels, and of the old ones.
_CODECS: Final = frozenset(map(resolve_encoding, (*LABELS, *_OLD))) - {None}
_UTF_8: Final = "text/html; charset=utf-8"


def text_of(content_type: str | None, body: bytes) -> str:
    """Decode a page; undecodable bytes are replaced."""
    if http_content_type_encoding(content_type) not in _CODECS:
        content_type = None
    if content_type is None and read_bom(body)[0] is None:
        declared = html_body_declared_encoding(body)
        if declared is not None and declared not in _CODECS:
            content_type = _UTF_8
    return html_to_unicode(content_type, body)[1]


#: Counts bytes that a request holds until it is answered; raises :class:`ExtractionError` (503) for too many.
Hold = Callable[[int], None]

#: Bytes of a body that are not counted: the number of requests bounds their sum, and small pages are never refused
#: because of large ones.
UNCOUNTED: Final = 64 * 1024
#: Coded bodies shorter than this, with a text no longer than the second, are decoded without a thread, which takes
#: longer.
_SHORT: Final = 32 * 1024
_SHORT_TEXT: Final = MIB


def no_count(_size: int) -> None:
    """Count nothing."""


def growing(hold: Hold) -> Hold:
    """Return a function that counts one growing body; call it with the size so far."""
    counted = UNCOUNTED

    def count(size: int) -> None:
        nonlocal counted
        if size > counted:
            hold(size - counted)
            counted = size

    return count


async def read_body(response: aiohttp.ClientResponse, url: URL, limit: int, hold: Hold) -> bytes:
    """Read the body of an answer from ``url``, at most ``limit`` bytes; raises :class:`ExtractionError` (520, 521)."""
    count = growing(hold)
    coded = io.BytesIO()
    size = 0
    if (response.content_length or 0) > limit:
        raise _too_large(url, limit)
    # None when the body is complete and the connection is back in the pool.
    connection = response.connection
    protocol = connection.protocol if connection is not None else None
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise _too_large(url, limit)
        count(size)
        coded.write(chunk)
    if protocol is not None:
        _stop_read_timer(protocol)
    body = await _undo(coded.getvalue(), ",".join(response.headers.getall("Content-Encoding", ())), url, limit)
    count(len(body))
    return body


def _stop_read_timer(protocol: ResponseHandler) -> None:
    """Stop the timer of ``sock_read`` when a body was read to its end.

    aiohttp stops it at the end of a body, and starts it once more when reading was paused because the body came faster
    than it was read. On an idle connection it then fires, and the next request on that connection fails at once.
    """
    protocol.read_timeout = None
    protocol.start_timeout()


async def _undo(body: bytes, codings: str, url: URL, limit: int) -> bytes:
    if not codings:
        return body
    try:
        if len(body) < _SHORT:
            try:
                return undo(body, codings, min(_SHORT_TEXT, limit))
            except OverLimitError:
                pass  # The decoded body is long.
        return await asyncio.to_thread(undo, body, codings, limit)
    except OverLimitError:
        raise _too_large(url, limit) from None
    except CutShortError:
        raise temporary(f"{url.host}:{url.port} broke off in the middle of its answer.", Cause.CUT_SHORT) from None
    except CodingError:
        raise permanent(f"{url.host}:{url.port} answered with a content coding that does not decode.") from None


def _too_large(url: URL, limit: int) -> ExtractionError:
    return permanent(f"{url.host} answered with more than {limit // MIB} MiB.", Cause.TOO_LARGE)
