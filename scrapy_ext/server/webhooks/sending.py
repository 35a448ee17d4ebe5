"""One delivery over HTTP: to an address that the guard lets through, without following where it leads.

The guard is that of the pages which are extracted (``extraction.guard``): whoever may make a webhook could otherwise
have the server call what only the server reaches. Redirects count as failures, and nothing of the answer is kept but
its status.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final

import aiohttp
from yarl import URL

from scrapy_ext.api.extraction.errors import ExtractionError
from scrapy_ext.server.extraction.http.fetch import GuardedResolver
from scrapy_ext.server.net.guard import Guard
from scrapy_ext.server.store.webhooks.webhooks import Claimed
from scrapy_ext.server.webhooks.signing import signed_headers

#: Seconds for all of one delivery; less than ``store.webhooks.CLAIM``.
TIMEOUT: Final = 15.0
#: Bytes of an answer that are read, so that its connection ends well.
_ANSWER_BYTES: Final = 16 * 1024
_OUTCOME: Final = 300


class Outcome(Exception):  # noqa: N818 - it is an answer, not an error of the program
    """A delivery was not taken; the message says why, for who reads the list of deliveries."""


class Sender:
    """Sends deliveries. Use it as an async context manager."""

    def __init__(self, guard: Guard, *, timeout: float = TIMEOUT) -> None:
        self._guard = guard
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Sender:
        # A connection for each delivery: one that is kept would go to an address that was checked long ago.
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(self._guard), use_dns_cache=False, force_close=True, limit=0
        )
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, delivery: Claimed, seconds: int) -> str:
        """Send a delivery at a time (seconds since 1970); returns the status that took it, raises :class:`Outcome`."""
        try:
            async with asyncio.timeout(self._timeout):
                status = await self._post(delivery, seconds)
        except TimeoutError:
            raise Outcome(f"no answer within {self._timeout:g} seconds") from None
        except ExtractionError as error:
            raise Outcome(_one_line(str(error))) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Outcome(_one_line(_told(error))) from None
        if 200 <= status < 300:
            return f"answered {status}"
        followed = ": redirects are not followed" if 300 <= status < 400 else ""
        raise Outcome(f"answered {status}{followed}")

    async def _post(self, delivery: Claimed, seconds: int) -> int:
        if self._session is None:
            raise RuntimeError("the sender is not started")
        url = URL(delivery.url)
        # aiohttp asks its resolver about names only, and not about addresses.
        await self._guard.endpoints(url.raw_host or "", url.port or 0)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "scrapy-ext",
            **signed_headers(delivery.secret, delivery.id, seconds, delivery.body),
        }
        async with self._session.post(url, data=delivery.body, headers=headers, allow_redirects=False) as response:
            await response.content.read(_ANSWER_BYTES)
            return response.status


def _told(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientSSLError | aiohttp.ClientConnectorCertificateError):
        return "the certificate is not valid, or the other end speaks no TLS"
    if isinstance(error, aiohttp.ClientConnectorError | ConnectionRefusedError):
        return "no connection"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed without an answer"
    return "the answer is not HTTP, or broke off"


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text)[:_OUTCOME]
