"""Sending of events to webhooks over HTTP, to addresses that the guard permits, without following redirects.

The guard of extraction applies (``net.guard``): otherwise a webhook could make the server call hosts that only
the server reaches. Redirects are failures, and only the status of the response is kept.
"""

from __future__ import annotations

import re
from typing import Final

import aiohttp
from yarl import URL

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.api.platform.webhooks import signed_headers
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.dispatching import POLL_INTERVAL, OutboxLoop, SendError
from scrapy_ext.server.net.guard import Guard
from scrapy_ext.server.net.resolver import GuardedResolver
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.webhook_queue import ClaimedEvent

#: Timeout of an event in seconds; shorter than ``store.webhook_queue.CLAIM``.
TIMEOUT: Final = 15.0
#: Maximum response bytes to read, so that the connection closes cleanly.
_ANSWER_BYTES: Final = 16 * 1024
_OUTCOME: Final = 300


class Sender:
    """Sender of events, used as an async context manager."""

    def __init__(self, guard: Guard, *, timeout: float = TIMEOUT) -> None:
        self._guard = guard
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Sender:
        # A connection per event: a kept one would use an address that was checked long ago.
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

    async def send(self, event: ClaimedEvent, seconds: int) -> str:
        """Send an event signed for ``seconds`` (since 1970); return its status or raise :class:`SendError`."""
        try:
            async with timeout_after(self._timeout):
                status = await self._post(event, seconds)
        except TIMEOUT_ERRORS:
            raise SendError(f"no answer within {self._timeout:g} seconds") from None
        except ExtractionError as error:
            raise SendError(_one_line(str(error))) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SendError(_one_line(_message(error))) from None
        if 200 <= status < 300:
            return f"answered {status}"
        followed = ": redirects are not followed" if 300 <= status < 400 else ""
        raise SendError(f"answered {status}{followed}")

    async def _post(self, event: ClaimedEvent, seconds: int) -> int:
        if self._session is None:
            raise RuntimeError("the sender is not started")
        url = URL(event.url)
        # aiohttp calls its resolver for names only, not for addresses.
        await self._guard.endpoints(url.raw_host or "", url.port or 0)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "scrapy-ext",
            **signed_headers(event.secret, event.id, seconds, event.body),
        }
        async with self._session.post(url, data=event.body, headers=headers, allow_redirects=False) as response:
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


class Dispatcher(OutboxLoop[ClaimedEvent]):
    """Sender of a store's events, until :meth:`run` is cancelled."""

    def __init__(self, store: Store, sender: Sender, *, poll_interval: float = POLL_INTERVAL) -> None:
        async def send(event: ClaimedEvent) -> str:
            return await sender.send(event, store.clock() // 1000)

        super().__init__("webhooks", store.webhooks, send, sender, at_once=AT_ONCE, poll_interval=poll_interval)
