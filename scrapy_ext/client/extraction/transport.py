"""``POST /extract`` over HTTP: one session, one request per call, no retries."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from scrapy_ext.api.extraction import EXTENSIONS_HEADER
from scrapy_ext.api.extraction.problems import Cause
from scrapy_ext.api.masking import without_user
from scrapy_ext.client.extraction.errors import TOO_LARGE, TooLargeError, UnreachableServiceError
from scrapy_ext.client.extraction.memory import AnswerMemory, Hold
from scrapy_ext.client.http import authorization, base_url, decompressed, is_compressed, proxy_of
from scrapy_ext.client.http1 import Answer, AnswerError, Body, ConnectError, Connections
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, Timeout, timeout_after

#: Bytes of an answer per byte of the content, and besides it: Base64 makes it a third longer, escapes in JSON up to
#: twice as long, and headers and extracted data are added.
_ANSWER_PER_BYTE: Final = 2
_ANSWER_ON_TOP: Final = 2**20

#: Most bytes of an answer that is read into one buffer: the server names its size.
_ONE_BUFFER: Final = 64 * 1024 * 1024
#: Copies of the bytes of an answer while its pieces are joined.
_JOINED: Final = 2

#: Seconds to connect, and the part of a shorter timeout that a connection may take.
_CONNECT: Final = 30.0
_OF_TIMEOUT: Final = 0.9
#: Seconds for the request of the extensions, which needs no extraction.
_EXTENSIONS_TIMEOUT: Final = 10.0
#: Remedies for requests that were sent to the service, so that it is up.
_RAISE_SETTING: Final = (
    "Raise the setting DOWNLOAD_TIMEOUT if the site needs longer, or download_timeout in the meta of its requests."
)
_RAISE_META: Final = (
    "Raise download_timeout, in the meta of the request or as an attribute of the spider, if the site needs longer."
)
_BROKEN_OFF: Final = "Look at the log of the service, and at the proxies in front of it."
#: Statuses of temporary failures.
_TEMPORARY: Final = (429, 500, 502, 503, 504)


class Bounds(msgspec.Struct, frozen=True):
    """Limits of one request: ``timeout`` in seconds, None: the transport's own; ``max_size`` in bytes of the page in
    the answer, 0: no limit."""

    timeout: float | None = None
    max_size: int = 0


UNBOUNDED: Final = Bounds()


class RawAnswer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: Body


class ExtractTransport:
    """The service at an address ending in ``/v1``. It can be created anywhere; its connections belong to the event loop
    of the first call.

    ``timeout``: seconds from the first byte of a request to the last one of its answer.
    """

    def __init__(self, url: str, key: str, timeout: float) -> None:
        self.url = base_url(url, "EXTRACT_API_URL", "https://extract.example.com/v1")
        #: The path of the operation.
        self.path = f"{urlsplit(self.url).path}/extract"
        self._headers = {
            "Authorization": authorization(key, "EXTRACT_API_KEY"),
            "Content-Type": "application/json",
            "Accept": "application/json, application/problem+json",
            # The one coding that is decompressed in pieces.
            "Accept-Encoding": "gzip",
        }
        self._proxy = proxy_of(self.url)
        self._timeout = timeout
        #: Fields of the service besides those of the contract, as its answers report; None: no answer yet.
        self.extensions: frozenset[str] | None = None
        self._opened: Connections | None = None

    def __repr__(self) -> str:
        return f"<ExtractTransport to {self.url}>"

    async def post(
        self,
        fields: bytes,
        bounds: Bounds = UNBOUNDED,
        hold: Hold | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> RawAnswer:
        """Send fields as JSON. ``hold`` counts the memory of the answer; ``headers`` are further ones.

        Raises :class:`~scrapy_ext.client.extraction.errors.UnreachableServiceError` when no whole answer comes, and
        :class:`~scrapy_ext.client.extraction.errors.TooLargeError`.
        """
        seconds = (self._timeout if bounds.timeout is None else bounds.timeout) or None
        # Less than the whole, so that a connection that does not open is not reported as a slow page.
        connect_timeout = min(_OF_TIMEOUT * seconds if seconds else _CONNECT, _CONNECT)
        try:
            # The deadline moves while the answer waits for memory.
            async with timeout_after(seconds) as deadline:
                with await self._connections.request(
                    "POST", "/extract", fields, headers, connect_timeout=connect_timeout
                ) as answer:
                    body = await _body(answer, bounds.max_size, hold or Hold(AnswerMemory()), deadline)
        except ConnectError as error:
            raise UnreachableServiceError(f"cannot connect to {self.url} ({_reason(error)})", ambiguous=False) from None
        except TIMEOUT_ERRORS as error:
            # Without the address of the service: the site is usually the slow one.
            fault = f"the service did not return the page within {seconds or 0:g} seconds, the download timeout"
            remedy = _RAISE_SETTING if bounds.timeout in (None, self._timeout) else _RAISE_META
            cause = Cause.TIMEOUT.value
            raise UnreachableServiceError(fault, ambiguous=True, cause=cause, remedy=remedy) from error
        except AnswerError as error:
            fault = f"no whole answer from {self.url} ({_reason(error)})"
            raise UnreachableServiceError(fault, ambiguous=True, remedy=_BROKEN_OFF) from None
        self._learn(answer.headers)
        return RawAnswer(answer.status, answer.headers, body)

    async def ask_extensions(self) -> None:
        """Request :attr:`extensions` from the service, without an extraction, which would be billed.

        Raises :class:`~scrapy_ext.client.extraction.errors.UnreachableServiceError` without an answer.
        """
        try:
            async with timeout_after(_EXTENSIONS_TIMEOUT):
                answer = await self._connections.request("OPTIONS", "/extract", connect_timeout=_EXTENSIONS_TIMEOUT)
        except (OSError, *TIMEOUT_ERRORS) as error:
            fault = f"{self.url} does not report its extensions ({_reason(error)})"
            raise UnreachableServiceError(fault, ambiguous=False) from None
        answer.close()
        self._learn(answer.headers)
        if self.extensions is None and answer.status not in _TEMPORARY:
            self.extensions = frozenset()

    def _learn(self, headers: Mapping[str, str]) -> None:
        named = headers.get(EXTENSIONS_HEADER)
        if named is not None and self.extensions is None:
            self.extensions = frozenset(name.strip() for name in named.split(","))

    async def close(self) -> None:
        """Close the connections. The transport can be used again afterwards."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    @property
    def _connections(self) -> Connections:
        if self._opened is None:
            self._opened = Connections(self.url, self._headers, proxy=self._proxy)
        return self._opened


def _reason(error: Exception) -> str:
    """Return the reason of an error, without the address of a proxy, which may contain its password."""
    return without_user(str(error)) or type(error).__name__


async def _body(answer: Answer, max_size: int, hold: Hold, deadline: Timeout) -> Body:
    """Read the body of an answer into memory, decompressed; raises ``TooLargeError``."""
    most = max_size * _ANSWER_PER_BYTE + _ANSWER_ON_TOP if max_size else sys.maxsize
    pieces, expected = answer.pieces(), answer.content_length
    if is_compressed(answer.headers):
        pieces = decompressed(pieces)
    elif expected is not None:
        if expected > most:
            raise TooLargeError(TOO_LARGE % (expected, max_size))
        if expected <= _ONE_BUFFER:
            await hold.resize(expected, deadline)
            return await answer.read()
    found: list[bytes] = []
    size = 0
    # Closed at once, also when a piece is refused: it refers to the hold.
    async with contextlib.aclosing(pieces):
        async for piece in pieces:
            size += len(piece)
            if size > most:
                raise TooLargeError(TOO_LARGE % (size, max_size))
            await hold.resize(_JOINED * size, deadline)
            found.append(piece)
    return b"".join(found)
