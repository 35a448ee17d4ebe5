"""Delivery of webhooks from the outbox over HTTP, to addresses that the guard permits, without following redirects.

The guard of extraction applies (``net.guard``): otherwise a webhook could make the server call hosts that only
the server reaches. Redirects are failures, and only the status of the response is kept.
"""

from __future__ import annotations

import re
from typing import Final

import aiohttp
from yarl import URL

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.dispatching import POLL_INTERVAL, DeliveryError, OutboxLoop
from scrapy_ext.server.extraction.http.fetch import GuardedResolver
from scrapy_ext.server.net.guard import Guard
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.webhooks.webhooks import Claimed
from scrapy_ext.server.webhooks.signing import signed_headers

#: Timeout of a delivery in seconds; shorter than ``store.webhooks.CLAIM``.
TIMEOUT: Final = 15.0
#: Maximum response bytes to read, so that the connection closes cleanly.
_ANSWER_BYTES: Final = 16 * 1024
_OUTCOME: Final = 300


class Sender:
    """Sender of deliveries, used as an async context manager."""

    def __init__(self, guard: Guard, *, timeout: float = TIMEOUT) -> None:
        self._guard = guard
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Sender:
        # A connection per delivery: a kept one would use an address that was checked long ago.
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
        """Send a delivery signed for ``seconds`` (since 1970); return its status or raise :class:`DeliveryError`."""
        try:
            async with timeout_after(self._timeout):
                status = await self._post(delivery, seconds)
        except TIMEOUT_ERRORS:
            raise DeliveryError(f"no answer within {self._timeout:g} seconds") from None
        except ExtractionError as error:
            raise DeliveryError(_one_line(str(error))) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise DeliveryError(_one_line(_message(error))) from None
        if 200 <= status < 300:
            return f"answered {status}"
        followed = ": redirects are not followed" if 300 <= status < 400 else ""
        raise DeliveryError(f"answered {status}{followed}")

    async def _post(self, delivery: Claimed, seconds: int) -> int:
        if self._session is None:
            raise RuntimeError("the sender is not started")
        url = URL(delivery.url)
        # aiohttp calls its resolver for names only, not for addresses.
        await self._guard.endpoints(url.raw_host or "", url.port or 0)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "scrapy-ext",
            **signed_headers(delivery.secret, delivery.id, seconds, delivery.body),
        }
        async with self._session.post(url, data=delivery.body, headers=headers, allow_redirects=False) as response:
            await response.content.read(_ANSWER_BYTES)
            return response.status


def _message(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientSSLError | aiohttp.ClientConnectorCertificateError):
        return "the certificate is not valid, or the other end does not use TLS"
    if isinstance(error, aiohttp.ClientConnectorError | ConnectionRefusedError):
        return "no connection"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed without an answer"
    return "the answer is not HTTP, or broke off"


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text)[:_OUTCOME]


# ── dispatch ──

#: Webhooks served concurrently.
AT_ONCE: Final = 16


class Dispatcher(OutboxLoop[Claimed]):
    """Sender of a store's deliveries, until :meth:`run` is cancelled."""

    def __init__(self, store: Store, sender: Sender, *, poll_interval: float = POLL_INTERVAL) -> None:
        async def send(delivery: Claimed) -> str:
            return await sender.send(delivery, store.clock() // 1000)

        super().__init__("webhooks", store.webhooks, send, sender, at_once=AT_ONCE, poll_interval=poll_interval)
