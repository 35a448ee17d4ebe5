"""Responses that violate the rules of HTTP in ways that browsers and Scrapy ignore, repaired for aiohttp's parser.

* A line of the head without a colon is left out.
* A repeated ``Content-Length`` with one value is kept once.
* More interim responses (1xx) than any site sends end the connection.
* Data after a body of known length is dropped, and the connection is not used again: it may belong to another answer.

Everything else is left to the parser, which refuses what cannot be trusted.
"""

from __future__ import annotations

import asyncio
import functools
import re
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler

from scrapy_ext.server.net.guard import MOST_INTERIM

_START: Final = b"HTTP/"
_STATUS: Final = re.compile(rb"HTTP/\d\.\d (\d{3})\b")
_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")
#: Longest head that is repaired, in bytes. A longer one is passed on as it is.
_LONGEST_HEAD: Final = 256 * 1024
#: A length that the parser accepts; Python refuses to read 4301 digits.
_LENGTH: Final = re.compile(rb"[0-9]{1,20}")
#: Statuses of answers without a body.
_BODILESS: Final = frozenset({204, 304})
_SWITCHING: Final = 101


class LenientResponse:
    """One response of a site as its bytes arrive. Without ``has_body``, as to HEAD, it ends with its head."""

    def __init__(self, *, has_body: bool = True) -> None:
        self._has_body = has_body
        self._head = bytearray()
        self._is_in_head = True
        #: Heads of interim responses so far.
        self._interim = 0
        #: Remaining bytes of the body; None where the head does not state its length.
        self._left: int | None = None
        #: Whether bytes came after the end.
        self.is_overrun = False

    def feed(self, data: bytes) -> bytes:
        """Return the bytes to parse now: none as long as the head is not complete."""
        if not self._is_in_head:
            return self._of_body(data)
        heads: list[bytes] = []
        searched, start = max(0, len(self._head) - 2), 0
        self._head += data
        while self._is_in_head:
            end = _END_OF_HEAD.search(self._head, max(searched, start))
            begin = bytes(self._head[start : start + len(_START)])
            is_http = begin == _START or _START.startswith(begin)
            if is_http and end is None and len(self._head) - start <= _LONGEST_HEAD:
                del self._head[:start]
                return b"".join(heads)
            if not is_http or end is None:
                self._is_in_head = False
            else:
                heads.append(self._repaired(bytes(self._head[start : end.end()])))
                start = end.end()
        rest = bytes(self._head[start:])
        self._head.clear()
        return b"".join(heads) + self._of_body(rest)

    def _of_body(self, data: bytes) -> bytes:
        if self._left is None:
            return data
        kept = data[: self._left]
        self.is_overrun = self.is_overrun or len(data) > self._left
        self._left -= len(kept)
        return kept

    def rest(self) -> bytes:
        """Return the kept bytes of a head that does not end."""
        held = bytes(self._head)
        self._head.clear()
        return held

    def _repaired(self, head: bytes) -> bytes:
        lines: list[bytes] = []
        lengths: set[bytes] = set()
        is_coded = is_left_out = False
        for line in head.split(b"\n"):
            if not lines or not line.strip(b"\r"):
                lines.append(line)
                continue
            if not (line[:1] in (b" ", b"\t") and len(lines) > 1):  # else it continues the line before it
                name, colon, value = line.partition(b":")
                is_length = name.lower() == b"content-length"
                is_left_out = not colon or (is_length and value.strip() in lengths)
                is_coded = is_coded or name.lower() == b"transfer-encoding"
                if is_length:
                    lengths.add(value.strip())
            if not is_left_out:
                lines.append(line)
        self._begin_body(head, lengths, is_coded=is_coded)
        return b"\n".join(lines)

    def _begin_body(self, head: bytes, lengths: set[bytes], *, is_coded: bool) -> None:
        match = _STATUS.match(head)
        status = int(match[1]) if match else 0
        if 100 <= status < 200 and status != _SWITCHING:
            self._interim += 1
            if self._interim <= MOST_INTERIM:
                return  # The head of the final response follows.
            # One that never comes: all else is dropped with the connection.
            self._left, self.is_overrun = 0, True
        self._is_in_head = False
        if status in _BODILESS or (status >= 200 and not self._has_body):
            self._left = 0
        elif status >= 200 and not is_coded and len(lengths) == 1 and _LENGTH.fullmatch(length := lengths.pop()):
            self._left = int(length)


class LenientHandler(ResponseHandler):
    """aiohttp's side of a connection to a site, which repairs each response with :class:`LenientResponse`."""

    _answer: LenientResponse | None = None

    def set_response_params(self, *, skip_payload: bool = False, **params: Any) -> None:
        """Start a response; aiohttp calls this before each request."""
        self._answer = LenientResponse(has_body=not skip_payload)
        super().set_response_params(skip_payload=skip_payload, **params)

    def data_received(self, data: bytes) -> None:
        """Repair and parse data; the transport calls this, with no data when reading is resumed."""
        if self._answer is None or not data:
            super().data_received(data)
            return
        fed = self._answer.feed(data)
        if self._answer.is_overrun:
            self.force_close()
        if fed:
            super().data_received(fed)
        elif self._answer.is_overrun and self.transport is not None:
            self.transport.close()

    def eof_received(self) -> None:
        """Parse the rest of the head at the end of the stream."""
        self._flush()
        super().eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Parse the rest of the head when the connection is lost."""
        self._flush()
        super().connection_lost(exc)

    def _flush(self) -> None:
        held = self._answer.rest() if self._answer is not None else b""
        if held:
            super().data_received(held)


def use_lenient_handler(connector: aiohttp.TCPConnector) -> None:
    """Make the connections of a connector lenient; aiohttp has no public way to set their class."""
    connector._factory = functools.partial(LenientHandler, loop=asyncio.get_running_loop())  # type: ignore[assignment]
